"""Symplectic (semi-implicit) Euler: v' = v + dt M^-1 f(x, v), x' = x + dt v'.

First order, explicit, keeps the energy of an undamped oscillator bounded as long as dt < 2 / w for the highest
frequency w of the cloth. Beyond that it explodes, so a step that is too long is refused by name, with the longest
one that is safe.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.integrators import Dynamics, Start, System
from weft.integrators.stability import refuse_long_step, spectral_bounds
from weft.linear.blocks import block_products
from weft.linear.constraints import Constraints
from weft.parameters import Parameters, quantity


class SymplecticEulerParameters(Parameters):
    """How close to the limit of stability a step may come."""

    safety: float = quantity("largest step as a share of the stability limit", default=0.9, gt=0, le=1)


class SymplecticEuler:
    """Explicit Euler with the new velocity in the position update; needs small steps."""

    Parameters = SymplecticEulerParameters
    solves_springs = False
    needs_jacobians = True  # for the stability limit
    takes_limits = False

    def __init__(self, pairs: Ints, n_vertices: int, parameters: SymplecticEulerParameters | None = None) -> None:
        self.parameters = parameters or SymplecticEulerParameters()
        self.iterations = 0

    def begin(self, system: System, start: Start, dt: float) -> None:
        dynamics = system.dynamics(start.x, start.v, 0.0)
        refuse_long_step("symplectic_euler", dt, self.parameters.safety * stable_step(dynamics))
        self._v = start.v
        self._masses = dynamics.masses[:, None]
        self._impulse = dt * dynamics.forces

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        given = self._impulse + constraints.impulses
        matrix = self._masses[:, :, None] * np.eye(3) + constraints.drag
        s, z = constraints.filters, constraints.change[:, :, None]
        reduced = s @ matrix @ s + (np.eye(3) - s)  # the matrix in the free directions, 1 in the others
        self._dv: Floats = (s @ np.linalg.solve(reduced, s @ (given[:, :, None] - matrix @ z)) + z)[:, :, 0]
        return self._dv, block_products(matrix, self._dv) - given

    def end(self) -> tuple[Floats, Floats]:
        return self._v + self._dv, np.zeros((0, *self._v.shape))


def stable_step(dynamics: Dynamics) -> float:
    """A lower bound of the stability limit [s]: dt^2 w^2 + 2 dt d < 4 with bounds w^2 and d of the spectra."""
    w_sq, rate = spectral_bounds(dynamics)
    if w_sq == 0.0:
        return np.inf if rate == 0.0 else 2.0 / rate
    return float((np.sqrt(rate**2 + 4.0 * w_sq) - rate) / w_sq)
