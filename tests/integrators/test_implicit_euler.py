"""Implicit Euler against the equation of Baraff and Witkin, and its stability at long steps on stiff cloth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import dense_from_pairs, implicit_matrix, random_system
from tests.oracles.fixed_system import begin_fixed

from weft.errors import UnstableError, WeftError
from weft.integrators import INTEGRATORS, Dynamics, Start
from weft.integrators.implicit_euler import ImplicitEuler, ImplicitEulerParameters
from weft.jit import threads_for
from weft.linear import filtered
from weft.linear.constraints import build_constraints
from weft.linear.springs import build_springs
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
    integrator = ImplicitEuler(pairs, n, ImplicitEulerParameters(solver="linear", tolerance=1e-13, max_iterations=2000))
    begin_fixed(integrator, Dynamics(masses, forces, pairs, stiffness, damping, extra), v, dt)
    dv, impulse = integrator.solve(build_constraints(n))
    k = dense_from_pairs(pairs, stiffness, n)
    right = dt * (forces.ravel() - dt * k @ v.ravel())
    wanted = np.linalg.solve(implicit_matrix(masses, pairs, stiffness, damping, extra, dt), right)
    np.testing.assert_allclose(dv.ravel(), wanted, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(impulse, 0.0, atol=1e-9)


def test_a_solve_goes_on_when_contacts_are_let_go(rng):
    """From a rough solve with a spring, and a drag, to the same end as a solve that never had them."""
    n, dt = 30, 1 / 60
    pairs, stiffness, damping, masses, extra = random_system(rng, n, 90)
    dynamics = Dynamics(masses, rng.normal(size=(n, 3)), pairs, stiffness, damping, extra)
    held = build_constraints(n)
    vertices, weights = np.array([[0, 1, 2, 3], [4, 5, 6, 7]], np.int32), rng.normal(size=(2, 4))
    normals, stiff = np.tile([0.0, 0.0, 1.0], (2, 1)), np.full(2, 100.0)
    both = build_springs(vertices, weights, normals, stiff, stiff.copy(), n)
    one = build_springs(vertices[1:], weights[1:], normals[1:], stiff[1:], stiff[1:], n)
    integrator = ImplicitEuler(pairs, n, ImplicitEulerParameters(tolerance=1e-10, error=1e-9))
    begin_fixed(integrator, dynamics, np.zeros((n, 3)), dt)
    held.drag[9] = 50.0 * np.eye(3)
    rough, _ = integrator.try_out(held._replace(springs=both))
    held.drag[9] = both.along[0] = both.across[0] = 0.0
    went_on, _ = integrator.solve_on(held._replace(springs=both))
    begin_fixed(integrator, dynamics, np.zeros((n, 3)), dt)
    without, _ = integrator.solve(held._replace(springs=one))
    np.testing.assert_allclose(went_on, without, atol=1e-7)
    assert np.abs(rough - without).max() > 1e-3


class Dumbbell:
    """Two masses on a stiff spring of length 1."""

    masses, pairs = np.ones(2), np.array([[0, 1]], np.int32)
    stiffness = 1e6

    def dynamics(self, x, v, elapsed):
        along = x[1] - x[0]
        length = np.linalg.norm(along)
        d = along / length
        pull = self.stiffness * (length - 1.0) * d
        block = -self.stiffness * np.outer(d, d) - self.stiffness * max(0.0, 1.0 - 1.0 / length) * (
            np.eye(3) - np.outer(d, d)
        )
        none = np.zeros((2, 3, 3))
        return Dynamics(self.masses, np.stack([pull, -pull]), self.pairs, block[None], none[:1], none)


@pytest.mark.parametrize("solver", ["linear", "ahead"])
def test_only_a_solve_about_where_inertia_leads_lets_stiff_things_turn(solver):
    """A dumbbell turns by 0.2 rad a step. About its start, the step leaves it longer by 2 % and the next one takes that
    back; about where it leads, it keeps its length and loses a share of its spin of the order of the angle squared."""
    angle, dt = 0.2, 0.01
    x, v = np.array([[0.0, 0, 0], [1.0, 0, 0]]), np.array([[0, -0.5 * angle / dt, 0], [0, 0.5 * angle / dt, 0]])
    parameters = ImplicitEulerParameters(solver=solver, tolerance=1e-6, error=1e-9)
    integrator = ImplicitEuler(Dumbbell.pairs, 2, parameters)
    stretch = []
    for _ in range(5):
        integrator.begin(Dumbbell(), Start(x, v, np.zeros((0, 2, 3))), dt)
        dv, _ = integrator.solve(build_constraints(2))
        v = v + dv
        x = x + dt * v
        stretch.append(abs(np.linalg.norm(x[1] - x[0]) - 1.0))
    if solver == "linear":
        assert stretch[0] == pytest.approx(0.5 * angle**2, rel=0.05)
    else:
        assert max(stretch) < 1e-3


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


def test_a_solve_that_goes_astray_is_not_taken_for_an_answer(rng, monkeypatch):
    """The step is then halved; kept, it threw resting cloth about at 20 m/s."""
    pairs, stiffness, damping, masses, extra = random_system(rng, 30, 90)
    integrator = ImplicitEuler(pairs, 30, ImplicitEulerParameters(max_iterations=3))
    dynamics = Dynamics(masses, rng.normal(size=(30, 3)), pairs, stiffness, damping, extra)
    begin_fixed(integrator, dynamics, np.zeros((30, 3)), 0.01)
    monkeypatch.setattr(filtered, "solve_filtered", lambda *_: (3, 1.5))
    with pytest.raises(UnstableError, match="no solution in 3 iterations"):
        integrator.solve(build_constraints(30))


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


@pytest.mark.parametrize("name", ["implicit_euler", "bdf2"])
def test_refining_leads_to_the_solution_of_newton(triangle, name):
    """A long step, one vertex held and one that drags: each solve about the last end is nearer to Newton's end."""
    system, x, v = triangle
    c = build_constraints(3)
    c.filters[0], c.change[0] = 0.0, [0.1, -0.2, 0.05]
    c.drag[1], c.impulses[1] = 0.3 * np.eye(3), [0.0, 0.1, 0.0]
    member, ends = INTEGRATORS.load(name), []
    for solver in ("newton", "ahead"):
        tight = {"tolerance": 1e-12, "error": 1e-12, "newton_tolerance": 1e-11}
        integrator = member(system.pairs, 3, member.Parameters(solver=solver, **tight))
        integrator.begin(system, Start(x, v, np.zeros((0, 3, 3))), 0.5)
        ends.append([integrator.solve(c)])
    for _ in range(12):
        ends[1].append(integrator.refine(c, ends[1][-1][0]))
    (wanted, force), found = ends[0][0], [np.abs(dv - ends[0][0][0]).max() for dv, _ in ends[1]]
    assert found[0] > 1e-2
    assert found[1] < 0.5 * found[0]
    assert found[-1] < 1e-8
    np.testing.assert_array_equal(ends[1][-1][0][0], wanted[0])
    np.testing.assert_allclose(ends[1][-1][1], np.where(np.arange(3)[:, None] == 0, force, 0.0), atol=1e-7)
