"""Implicit Euler against the equation of Baraff and Witkin, and its stability at long steps on stiff cloth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import dense_from_pairs, implicit_matrix, random_system
from tests.oracles.fixed_system import begin_fixed

from weft.errors import WeftError
from weft.integrators import Dynamics
from weft.integrators.implicit_euler import ImplicitEuler, ImplicitEulerParameters
from weft.jit import threads_for
from weft.linear.constraints import build_constraints
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


@pytest.mark.parametrize("dt", [1e-3, 1 / 30])
def test_step_answers_the_equation_of_baraff_and_witkin(rng, dt):
    """(M + dt D + dt^2 K) dv = dt (f - dt K v), eq. 6 of the paper, with K = -df/dx and D = -df/dv."""
    n = 30
    pairs, stiffness, damping, masses, extra = random_system(rng, n, 90)
    forces, v = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    integrator = ImplicitEuler(pairs, n, ImplicitEulerParameters(tolerance=1e-13, max_iterations=2000))
    begin_fixed(integrator, Dynamics(masses, forces, pairs, stiffness, damping, extra), v, dt)
    dv, impulse = integrator.solve(build_constraints(n))
    k = dense_from_pairs(pairs, stiffness, n)
    right = dt * (forces.ravel() - dt * k @ v.ravel())
    wanted = np.linalg.solve(implicit_matrix(masses, pairs, stiffness, damping, extra, dt), right)
    np.testing.assert_allclose(dv.ravel(), wanted, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(impulse, 0.0, atol=1e-9)


def test_iterations_are_counted_and_limited(rng):
    pairs, stiffness, damping, masses, extra = random_system(rng, 30, 90)
    integrator = ImplicitEuler(pairs, 30, ImplicitEulerParameters(tolerance=1e-13, max_iterations=3))
    begin_fixed(
        integrator,
        Dynamics(masses, rng.normal(size=(30, 3)), pairs, stiffness, damping, extra),
        np.zeros((30, 3)),
        0.01,
    )
    integrator.solve(build_constraints(30))
    assert integrator.iterations == 3


def test_stable_at_a_thirtieth_of_a_second_with_a_thousand_times_the_stiffness():
    """A sheet that hangs by two corners, crumpled at the start: it comes to rest and its energy only falls."""
    factors = {"structural": 1000.0, "shear": 1000.0, "flexion": 1000.0}
    scene = Scene.model_validate(
        {
            "name": "stiff",
            "fps": 30,
            "steps_per_frame": 1,
            "method": {"model": {"name": "mass_spring", **factors}},
            "cloth": [
                {
                    "grid": {
                        "size": [0.5, 0.5],
                        "vertices": [9, 9],
                        "plane": "xz",
                        "ripples": [{"amplitude": 0.03, "waves": [2.0, 1.0]}],
                    },
                    "pins": [{"vertices": [8, 80]}],
                }
            ],
        }
    )
    simulation = Simulation(scene)
    energies = [simulation.energy()]
    for _ in range(90):
        simulation.step()
        energies.append(simulation.energy())
    assert np.isfinite(energies).all()
    assert np.max(energies[1:]) <= energies[0]
    assert np.linalg.norm(simulation.state.velocities, axis=1).max() < 2.0
    assert np.abs(simulation.stretch()).max() < 0.05


def test_forces_that_are_not_finite_are_one_clear_error():
    """Conjugate gradients would return no change at all, and the cloth would stand still for no reason."""
    stiffness = np.tile(np.eye(3), (1, 1, 1))
    forces = np.array([[0.0, 0.0, 0.0], [1.0, np.nan, 0.0]])
    dynamics = Dynamics(np.ones(2), forces, np.array([[0, 1]], np.int32), stiffness, 0 * stiffness, np.zeros((2, 3, 3)))
    integrator = ImplicitEuler(dynamics.pairs, 2)
    begin_fixed(integrator, dynamics, np.zeros((2, 3)), 0.01)
    with pytest.raises(WeftError, match=r"^implicit step: unstable at this step, forces are not finite"):
        integrator.solve(build_constraints(2))
