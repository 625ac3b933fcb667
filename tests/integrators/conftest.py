"""A small mechanical system, written apart from the cloth models, that drives integrators."""

from __future__ import annotations

import numpy as np
import pytest

from weft.integrators import INTEGRATORS, Dynamics, Start
from weft.jit import threads_for
from weft.linear.constraints import build_constraints


class Springs:
    """Masses joined by springs of energy 1/2 k (l - L)^2 with dampers, and a uniform force that may vary in time."""

    def __init__(self, masses, pairs, k, lengths, damping=0.0, force=lambda t: np.zeros(3)):
        self.masses = np.array(masses, float)
        self.pairs = np.array(pairs, np.int32)
        self.k, self.lengths, self.damping = np.array(k, float), np.array(lengths, float), damping
        self.force = force
        self.time = 0.0

    def _parts(self, x):
        e = x[self.pairs[:, 1]] - x[self.pairs[:, 0]]
        length = np.linalg.norm(e, axis=1)
        return length, e / length[:, None]

    def forces(self, x, v, elapsed):
        length, n = self._parts(x)
        rate = ((v[self.pairs[:, 1]] - v[self.pairs[:, 0]]) * n).sum(axis=1)
        pull = (self.k * (length - self.lengths) + self.damping * rate)[:, None] * n
        f = self.masses[:, None] * self.force(self.time + elapsed)
        np.add.at(f, self.pairs[:, 0], pull)
        np.add.at(f, self.pairs[:, 1], -pull)
        return f

    def dynamics(self, x, v, elapsed):
        length, n = self._parts(x)
        nn = n[:, :, None] * n[:, None, :]
        across = np.maximum(0.0, 1.0 - self.lengths / length)[:, None, None]
        k = -self.k[:, None, None] * (nn + across * (np.eye(3) - nn))
        d = -self.damping * nn
        extra = np.zeros((len(x), 3, 3))
        return Dynamics(self.masses, self.forces(x, v, elapsed), self.pairs, k, d, extra)

    def energy(self, x, v):
        length, _ = self._parts(x)
        kinetic = 0.5 * (self.masses[:, None] * v**2).sum()
        return kinetic + 0.5 * (self.k * (length - self.lengths) ** 2).sum()


@pytest.fixture
def triangle():
    """Three masses in a spinning triangle, always under tension, where derivatives are exact."""
    x = np.array([[0.0, 0.0, 0.0], [1.3, 0.0, 0.1], [0.5, 1.2, -0.1]])
    v = np.array([[0.3, -0.4, 0.1], [0.1, 0.6, 0.0], [-0.5, 0.0, 0.2]])
    return Springs([1.0, 2.0, 1.5], [[0, 1], [1, 2], [2, 0]], [4.0, 6.0, 5.0], [0.2, 0.3, 0.25]), x, v


def run(name, parameters, system, x, v, dt, steps, constraints=None):
    """Integrate freely; returns the final positions and velocities, and the integrator."""
    member = INTEGRATORS.load(name)
    integrator = member(system.pairs, len(x), member.Parameters(**parameters))
    x, v, memory = x.copy(), v.copy(), np.zeros((0, *x.shape))
    with threads_for(len(x)):
        for step in range(steps):
            system.time = step * dt
            integrator.begin(system, Start(x, v, memory), dt)
            dv, _ = integrator.solve(constraints or build_constraints(len(x)))
            x = x + dt * (v + dv)
            v, memory = integrator.end()
    return x, v, integrator
