"""The stability limit of symplectic Euler: refused beyond it, stable up to it, and energy bounded."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.oracles.dense_system import dense_from_pairs
from tests.oracles.fixed_system import begin_fixed

from weft.errors import WeftError
from weft.geometry.mesh import build_grid
from weft.integrators import Dynamics
from weft.integrators.symplectic_euler import SymplecticEuler, SymplecticEulerParameters, stable_step
from weft.jit import threads_for
from weft.linear.constraints import build_constraints
from weft.models.fabrics import load_fabric
from weft.models.mass_spring import MassSpring


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


class Cloth:
    """A small sheet, linearised about its rest shape or as it is."""

    def __init__(self, damping=0.0, air=0.0):
        mesh = build_grid((0.2, 0.15), (5, 4))
        fabric = load_fabric("cotton").model_copy(update={"damping": damping})
        self.model = MassSpring(mesh, fabric)
        self.x = mesh.positions.copy()
        self.n = len(self.x)
        self.masses = np.full(self.n, 2e-4)
        self.air = air

    def jacobians(self, x):
        stiffness, damping = np.zeros((2, len(self.model.pairs), 3, 3))
        self.model.update_jacobians(x, np.zeros_like(x), stiffness, damping)
        return stiffness, damping

    def dynamics(self, x, v):
        forces = -self.air * v
        self.model.add_forces(x, v, forces)
        extra = np.tile(self.air * np.eye(3), (self.n, 1, 1))
        return Dynamics(self.masses, forces, self.model.pairs, *self.jacobians(x), extra)

    def true_limit(self, dt_limit=1.0):
        """The largest stable step of the linearised sheet, by bisection on the spectral radius of a dense step."""
        k, d = (dense_from_pairs(self.model.pairs, blocks, self.n) for blocks in self.jacobians(self.x))
        d += self.air * np.eye(3 * self.n)
        inverse = np.diag(np.repeat(1.0 / self.masses, 3))
        k, d, one = inverse @ k, inverse @ d, np.eye(3 * self.n)

        def is_stable(dt):
            to_v = np.hstack([-dt * k, one - dt * d])
            step = np.vstack([np.hstack([one, np.zeros_like(one)]) + dt * to_v, to_v])
            return np.abs(np.linalg.eigvals(step)).max() < 1.0 + 1e-6

        low, high = 0.0, dt_limit
        for _ in range(20):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_stable(middle) else (low, middle)
        return low


def largest_displacement(cloth, dt, steps, rng, *, check=True):
    """How far a sheet that is shaken by 1e-6 m moves from its rest shape."""
    integrator = SymplecticEuler(cloth.model.pairs, cloth.n, SymplecticEulerParameters(safety=1.0))
    x = cloth.x + rng.normal(scale=1e-6, size=cloth.x.shape)
    v = np.zeros_like(x)
    constraints = build_constraints(cloth.n)
    far = 0.0
    for _ in range(steps):
        dynamics = cloth.dynamics(x, v)
        if check:
            begin_fixed(integrator, dynamics, v, dt)
            v = v + integrator.solve(constraints)[0]
        else:  # what would happen without the refusal
            v = v + dt * dynamics.forces / cloth.masses[:, None]
        x = x + dt * v
        far = max(far, float(np.abs(x - cloth.x).max()))
    return far


CASES = {"undamped": (0.0, 0.0), "damped": (1e-4, 0.0), "strongly damped": (2e-2, 0.0), "in air": (1e-4, 0.05)}


@pytest.mark.parametrize("case", CASES)
def test_bound_is_below_the_true_limit_and_not_far(case):
    cloth = Cloth(*CASES[case])
    bound, true = stable_step(cloth.dynamics(cloth.x, np.zeros_like(cloth.x))), cloth.true_limit()
    assert 0.4 * true < bound <= true * (1 + 1e-4)


@pytest.mark.parametrize("case", CASES)
def test_stable_at_the_bound_and_explodes_at_twice_the_true_limit(case, rng):
    cloth = Cloth(*CASES[case])
    bound, true = stable_step(cloth.dynamics(cloth.x, np.zeros_like(cloth.x))), cloth.true_limit()
    assert largest_displacement(cloth, 0.999 * bound, 1000, rng) < 1e-4
    with np.errstate(over="ignore", invalid="ignore"):
        far = largest_displacement(cloth, 2.0 * true, 60, rng, check=False)
    assert not far < 1.0


@pytest.mark.parametrize("heavier", [1.0, 1.1, 1.2, 1.3, 1.4])
def test_refusal_names_the_largest_safe_step_and_that_one_is_taken(heavier):
    cloth = Cloth()
    cloth.masses *= heavier
    dynamics = cloth.dynamics(cloth.x, np.zeros_like(cloth.x))
    integrator = SymplecticEuler(cloth.model.pairs, cloth.n)
    with pytest.raises(WeftError, match="symplectic_euler") as refusal:
        begin_fixed(integrator, dynamics, np.zeros_like(cloth.x), 1 / 60)
    text = str(refusal.value)
    assert "\n" not in text
    named = 1e-3 * float(re.search(r"largest safe step of this cloth, ([\d.e+-]+) ms", text)[1])
    assert named == pytest.approx(0.9 * stable_step(dynamics), rel=1e-2)
    begin_fixed(integrator, dynamics, np.zeros_like(cloth.x), named)
    factor = int(re.search(r"steps_per_frame by (\d+)", text)[1])
    begin_fixed(integrator, dynamics, np.zeros_like(cloth.x), 1 / 60 / factor)
    with pytest.raises(WeftError):
        begin_fixed(integrator, dynamics, np.zeros_like(cloth.x), 1 / 60 / (factor - 1))


def test_no_limit_without_forces():
    pairs = np.zeros((0, 2), np.int32)
    none = np.zeros((0, 3, 3))
    free = Dynamics(np.ones(2), np.zeros((2, 3)), pairs, none, none, np.zeros((2, 3, 3)))
    assert stable_step(free) == np.inf
    in_air = free._replace(extra_damping=np.tile(4.0 * np.diag([0.0, 0.0, 1.0]), (2, 1, 1)))
    assert stable_step(in_air) == pytest.approx(0.5)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_energy_of_an_oscillator_is_bounded(share):
    """1500 steps at w dt = 2 share: the energy swings by no more than the shadow energy allows, and does not drift.

    Symplectic Euler keeps v^2 + w^2 x^2 - w^2 dt x v (v at the end of the step) exactly.
    """
    w, dt = 1.0, 2.0 * share
    pairs = np.array([[0, 1]], np.int32)
    block = -np.eye(3)[None] * w**2
    x, v = np.array([[0.0, 0, 0], [1.0, 0, 0]]), np.zeros((2, 3))
    integrator = SymplecticEuler(pairs, 2, SymplecticEulerParameters(safety=1.0))
    constraints = build_constraints(2)
    constraints.filters[0] = 0.0
    kept = []
    for _ in range(1500):
        forces = w**2 * (x[::-1] - x)
        # The refusal is pessimistic for one spring: a quarter of its stiffness lets steps up to the true limit pass.
        dynamics = Dynamics(np.ones(2), forces, pairs, 0.25 * block, 0 * block, np.zeros((2, 3, 3)))
        begin_fixed(integrator, dynamics, v, dt)
        v = v + integrator.solve(constraints)[0]
        x = x + dt * v
        a, b = x[1, 0], v[1, 0]
        kept.append(b * b + w * w * a * a - w * w * dt * a * b)
    np.testing.assert_allclose(kept, kept[0], rtol=1e-9)
    assert np.abs(x).max() <= 1.0 / np.sqrt(1.0 - share**2) + 1e-9
