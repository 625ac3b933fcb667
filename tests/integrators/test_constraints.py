"""Pins, intervals, refusals and memory of the integrators."""

from __future__ import annotations

import numpy as np
import pytest

from weft.collision.response.contact_filter import ContactFilter
from weft.errors import WeftError
from weft.integrators import INTEGRATORS, Start, check_fit
from weft.integrators.gauss_seidel import GaussSeidel
from weft.linear.constraints import build_constraints
from weft.models.mass_spring import MassSpring

from .conftest import Springs, run

GRAVITY = np.array([0.0, 0.0, -9.81])


def hanging():
    x = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -0.5], [0.0, 0.0, -1.0]])
    return Springs([1.0, 1.0, 1.0], [[0, 1], [1, 2]], [50.0, 50.0], [0.5, 0.5], 2.0, lambda t: GRAVITY), x


def pinned(n, vertex):
    c = build_constraints(n)
    c.filters[vertex] = 0.0
    return c


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_pin_holds_and_tells_the_weight(name):
    system, x = hanging()
    x[1, 2] -= 2.0 * 9.81 / 50.0
    x[2, 2] -= 3.0 * 9.81 / 50.0
    x_end, v_end, integrator = run(name, {}, system, x, np.zeros_like(x), 0.01, 20, pinned(3, 0))
    np.testing.assert_allclose(x_end, x, atol=1e-4)
    np.testing.assert_allclose(v_end, 0.0, atol=1e-3)
    integrator.begin(system, Start(x_end, np.zeros_like(x), np.zeros((0, 3, 3))), 0.01)
    _, impulses = integrator.solve(pinned(3, 0))
    np.testing.assert_allclose(impulses[0] / 0.01, [0.0, 0.0, 3.0 * 9.81], rtol=1e-3)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_vertex_stopped_by_a_plane_does_not_bounce(name):
    """Falling at 1 m/s onto a plane that it may not cross: at rest after the step, its momentum given up once."""
    system = Springs([2.0, 2.0], [[0, 1]], [1e-9], [1.0], force=lambda t: GRAVITY)
    x, v = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]), np.tile([0.2, 0.0, -1.0], (2, 1))
    member = INTEGRATORS.load(name)
    integrator = member(system.pairs, 2)
    dt = 0.01
    fallen = v - dt * GRAVITY
    memory = np.stack([v, fallen]) if name == "bdf2" else np.zeros((0, 2, 3))
    integrator.begin(system, Start(x, v, memory), dt)
    c = build_constraints(2)
    c.filters[0, 2, 2] = 0.0
    c.change[0, 2] = 1.0
    dv, impulses = integrator.solve(c)
    v_end, _ = integrator.end()
    assert (v + dv)[0, 2] == pytest.approx(0.0, abs=1e-12)
    assert v_end[0, 2] == pytest.approx(0.0, abs=1e-12)
    assert v_end[0, 0] == pytest.approx(0.2, abs=1e-6)
    assert v_end[1, 2] == pytest.approx(-1.0 - dt * 9.81, rel=0.01)
    assert impulses[0, 2] == pytest.approx(2.0 * (1.0 + dt * 9.81), rel=0.1)
    np.testing.assert_allclose(impulses[1], 0.0, atol=1e-5)


def test_memory_makes_bdf2_resume_bit_by_bit(triangle):
    system, x, v = triangle
    member = INTEGRATORS.load("bdf2")
    free = build_constraints(3)

    def advance(integrator, state, steps):
        x, v, memory = state
        for _ in range(steps):
            integrator.begin(system, Start(x, v, memory), 0.02)
            dv, _ = integrator.solve(free)
            x = x + 0.02 * (v + dv)
            v, memory = integrator.end()
        return x, v, memory

    start = (x, v, np.zeros((0, 3, 3)))
    whole = advance(member(system.pairs, 3), start, 10)
    resumed = advance(member(system.pairs, 3), advance(member(system.pairs, 3), start, 4), 6)
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(a, b)


def test_gauss_seidel_matches_conjugate_gradients(triangle):
    system, x, v = triangle
    a = run("implicit_euler", {"solver": "linear", "tolerance": 1e-12}, system, x, v, 0.05, 20)
    b = run("gauss_seidel", {"tolerance": 1e-12, "max_sweeps": 5000}, system, x, v, 0.05, 20)
    np.testing.assert_allclose(a[0], b[0], atol=1e-9)


def test_gauss_seidel_keeps_intervals_and_finds_the_constrained_minimum():
    """Eq. 11: within [lower, upper] the result minimises the energy of the step: the gradient vanishes where a
    coordinate is free and points outwards where it is at a limit."""
    system, x = hanging()
    integrator = GaussSeidel(system.pairs, 3, GaussSeidel.Parameters(tolerance=1e-13, max_sweeps=10000))
    v = np.tile([0.4, -0.1, 0.0], (3, 1))
    dt = 0.1
    integrator.begin(system, Start(x, v, np.zeros((0, 3, 3))), dt)
    lower, upper = np.full((3, 3), -np.inf), np.full((3, 3), np.inf)
    lower[2, 2], upper[1, 0], upper[0, 1], lower[0, 1] = -1.02, 0.01, 0.002, -0.002
    dv, pushes = integrator.solve(pinned(3, 2)._replace(filters=build_constraints(3).filters, lower=lower, upper=upper))
    end = x + dt * (v + dv)
    assert np.all(end >= lower - 1e-12)
    assert np.all(end <= upper + 1e-12)
    at_lower, at_upper = np.isclose(end, lower, atol=1e-12), np.isclose(end, upper, atol=1e-12)
    assert at_lower[2, 2]
    assert at_upper[1, 0]
    assert at_lower[0, 1]
    assert np.all(pushes[at_lower] > 0.0)
    assert np.all(pushes[at_upper] < 0.0)
    np.testing.assert_allclose(pushes[~at_lower & ~at_upper], 0.0, atol=1e-10)


def test_gauss_seidel_with_a_slanted_plane_and_a_pin(triangle):
    """A vertex that may only slide along a plane: the same as conjugate gradients find."""
    system, x, v = triangle
    c = pinned(3, 1)
    normal = np.array([1.0, 2.0, 2.0]) / 3.0
    c.filters[0] -= np.outer(normal, normal)
    c.change[0] = 0.7 * normal
    ends = []
    for name, parameters in (
        ("implicit_euler", {"solver": "linear", "tolerance": 1e-12}),
        ("gauss_seidel", {"tolerance": 1e-13, "max_sweeps": 10000}),
    ):
        member = INTEGRATORS.load(name)
        integrator = member(system.pairs, 3, member.Parameters(**parameters))
        integrator.begin(system, Start(x, v, np.zeros((0, 3, 3))), 0.1)
        ends.append(integrator.solve(c))
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=1e-9)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=1e-8)


@pytest.mark.parametrize("name", ["symplectic_euler", "runge_kutta"])
def test_explicit_integrators_refuse_long_steps_and_name_the_longest(name):
    system = Springs([1e-3, 1e-3], [[0, 1]], [1e3], [1.0])
    x, v = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.zeros((2, 3))
    with pytest.raises(
        WeftError, match=rf"^{name}: a step of 10 ms is beyond .* ms; multiply steps_per_frame by \d+"
    ) as e:
        run(name, {}, system, x, v, 0.01, 1)
    longest = float(str(e.value).split("cloth, ")[1].split(" ms")[0]) * 1e-3
    v[1, 0] = 0.1
    x_end, _, _ = run(name, {}, system, x, v, 0.999 * longest, 3000)
    assert np.abs(x_end[1] - x_end[0]).max() < 2.0, "the step it calls safe explodes"
    w = np.sqrt(2.0 * 1e3 / 1e-3)
    assert longest > 0.3 / w, "needlessly short"


def test_the_embedded_pair_refuses_what_it_cannot_finish():
    system = Springs([1e-3, 1e-3], [[0, 1]], [1e7], [1.0])
    x, v = np.array([[0.0, 0.0, 0.0], [1.1, 0.0, 0.0]]), np.zeros((2, 3))
    with pytest.raises(WeftError, match="runge_kutta: 20 inner steps"):
        run("runge_kutta", {"scheme": "dormand_prince", "max_substeps": 20}, system, x, v, 0.01, 1)


def test_newton_reaches_its_tolerance_and_says_when_it_does_not():
    """A stiff spring compressed and turned: one linear solve leaves a residual that Newton removes."""
    system = Springs([1e-3] * 3, [[0, 1], [1, 2]], [1e4, 1e4], [1.0, 1.0], force=lambda t: GRAVITY)
    x = np.array([[0.0, 0.0, 0.0], [0.7, 0.1, 0.0], [1.2, -0.4, 0.2]])
    v = np.array([[0.0, 3.0, 0.0], [1.0, -2.0, 0.0], [0.0, 5.0, -4.0]])
    newton = {"solver": "newton", "newton_tolerance": 1e-9, "tolerance": 1e-10}
    x_end, v_end, integrator = run("implicit_euler", newton, system, x, v, 0.02, 1)
    missing = system.masses[:, None] * (v_end - v) - 0.02 * system.forces(x_end, v_end, 0.02)
    assert integrator.residual <= 1e-9
    assert 1 < integrator.newton_iterations < 30
    np.testing.assert_allclose(missing / system.masses[:, None], 0.0, atol=1e-4)
    _, _, hurried = run("implicit_euler", {**newton, "max_newton": 1}, system, x, v, 0.02, 1)
    assert hurried.residual > 1e-9


def test_what_does_not_fit_is_refused_by_name():
    class ForcesOnly(MassSpring):
        has_jacobians = False

    class Intervals(ContactFilter):
        needs_limits = True

    bdf2, relaxed = INTEGRATORS.load("bdf2"), INTEGRATORS.load("gauss_seidel")
    check_fit("bdf2", bdf2, "mass_spring", MassSpring, "contact_filter", ContactFilter)
    check_fit("gauss_seidel", relaxed, "mass_spring", MassSpring, "intervals", Intervals)
    with pytest.raises(WeftError, match="bdf2 needs derivatives of the forces, which forces_only does not give"):
        check_fit("bdf2", bdf2, "forces_only", ForcesOnly, "contact_filter", ContactFilter)
    with pytest.raises(WeftError, match="bdf2 cannot keep the constraint intervals of intervals; use gauss_seidel"):
        check_fit("bdf2", bdf2, "mass_spring", MassSpring, "intervals", Intervals)
