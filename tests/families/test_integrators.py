"""Every integrator: free fall, order of accuracy, momentum, constraints and the impulses that they take."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import block_diagonal, random_projectors, solve_constrained

from weft.integrators import INTEGRATORS, Dynamics, Start
from weft.jit import threads_for
from weft.linear.constraints import build_constraints

GRAVITY = np.array([0.3, 0.0, -9.81])
NO_PAIRS = np.zeros((0, 2), np.int32)
# the others tell the mean velocity and that at the end apart within their first step
ONE_VELOCITY = [name for name in INTEGRATORS if name not in ("runge_kutta", "central")]


@pytest.fixture(autouse=True)
def _one_thread():
    """A second thread on a few vertices costs more than it brings."""
    with threads_for(1):
        yield


@pytest.fixture(params=list(INTEGRATORS))
def name(request):
    return request.param


def build(name, pairs, n, *, exact=True):
    """The integrator with its default parameters, or, `exact`, with as tight a tolerance as makes sense."""
    integrator = INTEGRATORS.load(name)
    tight = {"tolerance": 1e-13, "max_iterations": 10_000}
    fields = integrator.Parameters.model_fields
    values = {key: value for key, value in tight.items() if key in fields} if exact else {}
    return integrator(pairs, n, integrator.Parameters(**values))


class Network:
    """Vertices joined by springs of no length at rest, f_i = k (x_j - x_i) + c (v_j - v_i), and outer forces."""

    def __init__(self, masses, pairs, stiffness, damping=0.0, outer=None):
        self.masses = np.asarray(masses, np.float64)
        self.pairs = np.asarray(pairs, np.int32).reshape(-1, 2)
        self.n = len(self.masses)
        self.k = np.broadcast_to(np.asarray(stiffness, np.float64), len(self.pairs))
        self.c = np.broadcast_to(np.asarray(damping, np.float64), len(self.pairs))
        self.outer = np.zeros((self.n, 3)) if outer is None else outer

    def forces(self, x, v, elapsed):
        forces = self.outer.copy()
        a, b = self.pairs.T
        pull = self.k[:, None] * (x[b] - x[a]) + self.c[:, None] * (v[b] - v[a])
        np.add.at(forces, a, pull)
        np.add.at(forces, b, -pull)
        return forces

    def dynamics(self, x, v, elapsed):
        forces = self.forces(x, v, elapsed)
        blocks = -np.eye(3) * np.stack([self.k, self.c])[:, :, None, None]
        return Dynamics(self.masses, forces, self.pairs, blocks[0], blocks[1], np.zeros((self.n, 3, 3)))


def begin(integrator, network, x, v, dt):
    integrator.begin(network, Start(x, v, np.zeros((0, *x.shape))), dt)


def advance(integrator, network, x, v, dt, steps, constraints=None):
    constraints = constraints or build_constraints(network.n)
    memory = np.zeros((0, *v.shape))
    for _ in range(steps):
        integrator.begin(network, Start(x, v, memory), dt)
        dv, _ = integrator.solve(constraints)
        x = x + dt * (v + dv)
        v, memory = integrator.end()
    return x, v


def random_network(rng, n=40, n_pairs=120, **more):
    pairs = rng.integers(0, n, size=(n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return Network(rng.uniform(0.01, 0.02, n), pairs, rng.uniform(20.0, 200.0, len(pairs)), **more)


def test_free_fall(name):
    """v = g t; x = g t^2 / 2 up to a term of the order of dt."""
    n, dt, steps = 3, 1e-3, 200
    masses = np.array([0.1, 2.0, 30.0])
    network = Network(masses, NO_PAIRS, 0.0, outer=masses[:, None] * GRAVITY)
    x, v = advance(build(name, NO_PAIRS, n), network, np.zeros((n, 3)), np.zeros((n, 3)), dt, steps)
    t = steps * dt
    np.testing.assert_allclose(v, np.tile(t * GRAVITY, (n, 1)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(x, np.tile(0.5 * t**2 * GRAVITY, (n, 1)), rtol=1.01 * dt / t, atol=1e-14)


def test_order_of_accuracy_on_a_linear_oscillator(name):
    """A mass on a spring that is pinned: halving the step at least halves the error, and it tends to the cosine."""
    network = Network([1.0, 0.5], [[0, 1]], 8.0)  # w = 4 / s
    constraints = build_constraints(2)
    constraints.filters[0] = 0.0
    start = np.array([[0.0, 0.0, 0.0], [0.2, -0.1, 0.3]])
    t = 1.1
    errors = []
    for steps in (200, 400, 800):
        x, v = advance(build(name, network.pairs, 2), network, start, np.zeros((2, 3)), t / steps, steps, constraints)
        np.testing.assert_array_equal(x[0], 0.0)
        errors.append(
            max(np.abs(x[1] - start[1] * np.cos(4 * t)).max(), np.abs(v[1] + 4 * start[1] * np.sin(4 * t)).max())
        )
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.all(orders > 0.9), f"errors {errors}, orders {orders}"
    assert errors[-1] < 0.02


def test_damped_oscillator_tends_to_its_closed_form(name):
    network = Network([1.0, 0.5], [[0, 1]], 8.0, damping=1.0)
    constraints = build_constraints(2)
    constraints.filters[0] = 0.0
    start = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    t, decay = 0.9, 1.0  # c / 2m
    w = np.sqrt(16.0 - decay**2)
    wanted = 0.2 * np.exp(-decay * t) * (np.cos(w * t) + decay / w * np.sin(w * t))
    x, _ = advance(build(name, network.pairs, 2), network, start, np.zeros((2, 3)), t / 1000, 1000, constraints)
    assert x[1, 0] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("held", ["nothing", "plane"])
def test_momentum_is_conserved(name, held, rng):
    """With default parameters: internal forces move no centre of mass, however loosely the system is solved.

    Held to a plane without friction, momentum along it is conserved.
    """
    network = random_network(rng)
    v = rng.normal(size=(network.n, 3))
    normal = np.array([0.6, 0.0, 0.8])
    constraints = build_constraints(network.n)
    if held == "plane":
        v -= (v @ normal)[:, None] * normal
        constraints.filters[:] = np.eye(3) - np.outer(normal, normal)
    before = network.masses @ v
    _, v = advance(
        build(name, network.pairs, network.n, exact=False), network, rng.normal(size=v.shape), v, 4e-4, 50, constraints
    )
    np.testing.assert_allclose(network.masses @ v, before, atol=1e-12)
    assert np.abs(v).max() < 1e3


def test_impulses_of_constraints_are_what_newton_asks_for(name, rng):
    """Change of momentum = outer impulse + impulse of the constraints, and none where a vertex is free."""
    network = random_network(rng, outer=rng.normal(size=(40, 3)))
    x, v, dt = rng.normal(size=(40, 3)), rng.normal(size=(40, 3)), 4e-4
    constraints = build_constraints(40)
    constraints.filters[:] = random_projectors(rng, np.arange(40) % 4)
    blocked = np.eye(3) - constraints.filters
    constraints.change[:] = np.einsum("nij,nj->ni", blocked, rng.normal(size=(40, 3)))
    integrator = build(name, network.pairs, 40)
    begin(integrator, network, x, v, dt)
    _, impulse = integrator.solve(constraints)
    momentum = network.masses @ (integrator.end()[0] - v)
    np.testing.assert_allclose(momentum, dt * network.outer.sum(axis=0) + impulse.sum(axis=0), atol=1e-11)
    along = np.einsum("nij,nj->ni", constraints.filters, impulse)
    np.testing.assert_allclose(along, 0.0, atol=1e-9 * np.abs(impulse).max())
    assert np.abs(impulse[0]).max() > 1e-3


def test_a_pinned_vertex_is_carried_by_its_pin(name):
    masses = np.array([0.2, 0.5])
    network = Network(masses, NO_PAIRS, 0.0, outer=masses[:, None] * GRAVITY)
    constraints = build_constraints(2)
    constraints.filters[0] = 0.0
    integrator = build(name, NO_PAIRS, 2)
    begin(integrator, network, np.zeros((2, 3)), np.zeros((2, 3)), 0.01)
    dv, impulse = integrator.solve(constraints)
    np.testing.assert_array_equal(dv[0], 0.0)
    np.testing.assert_allclose(impulse[0], -0.01 * 0.2 * GRAVITY, rtol=1e-12)
    np.testing.assert_allclose(impulse[1], 0.0, atol=1e-15)
    np.testing.assert_allclose(integrator.end()[0], [np.zeros(3), 0.01 * GRAVITY], rtol=1e-12)


def test_pins_and_filters_are_respected_exactly(name, rng):
    """With default parameters: to the rounding of a position."""
    network = random_network(rng)
    free = np.arange(40) % 4
    constraints = build_constraints(40)
    constraints.filters[:] = random_projectors(rng, free)
    blocked = np.eye(3) - constraints.filters
    constraints.change[:] = np.einsum("nij,nj->ni", blocked, rng.normal(size=(40, 3)))
    integrator = build(name, network.pairs, 40, exact=False)
    v = rng.normal(size=(40, 3))
    begin(integrator, network, rng.normal(size=(40, 3)), v, 4e-4)
    dv, _ = integrator.solve(constraints)
    off = 4e-4 * (np.einsum("nij,nj->ni", blocked, dv) - constraints.change)
    np.testing.assert_allclose(off, 0.0, atol=2e-15)


@pytest.mark.parametrize("name", ONE_VELOCITY)
def test_drag_of_one_sliding_vertex(name):
    """m dv = dt f + j - drag dv along the plane, the prescribed change across it."""
    mass, dt, drag = 0.3, 0.01, 0.7
    network = Network([mass], NO_PAIRS, 0.0, outer=np.array([[2.0, 0.0, -3.0]]))
    constraints = build_constraints(1)
    tangent = np.diag([1.0, 1.0, 0.0])
    constraints.filters[0] = tangent
    constraints.drag[0] = drag * tangent
    constraints.impulses[0] = [0.0, 0.05, 0.0]
    constraints.change[0] = [0.0, 0.0, 0.11]
    integrator = build(name, NO_PAIRS, 1)
    begin(integrator, network, np.zeros((1, 3)), np.zeros((1, 3)), dt)
    dv, impulse = integrator.solve(constraints)
    np.testing.assert_allclose(dv[0], [dt * 2.0 / (mass + drag), 0.05 / (mass + drag), 0.11], rtol=1e-12)
    np.testing.assert_allclose(impulse[0], [0.0, 0.0, mass * 0.11 + dt * 3.0], atol=1e-15)


def test_what_friction_holds_neither_slides_nor_creeps(name):
    """A force along the plane and a drag that outweighs it a million times, from rest."""
    network = Network([0.3], NO_PAIRS, 0.0, outer=np.array([[2.0, 0.0, 0.0]]))
    constraints = build_constraints(1)
    constraints.drag[0] = 1e6 * np.eye(3)
    integrator = build(name, NO_PAIRS, 1)
    begin(integrator, network, np.zeros((1, 3)), np.zeros((1, 3)), 0.01)
    dv, _ = integrator.solve(constraints)
    np.testing.assert_allclose(dv, 0.0, atol=1e-7)
    np.testing.assert_allclose(integrator.end()[0], 0.0, atol=1e-7)


@pytest.mark.parametrize("name", ONE_VELOCITY)
def test_drag_in_any_direction_matches_the_dense_system(name, rng):
    """Drag that does not commute with the filters, as of a second body at a slant."""
    n, dt = 12, 0.01
    masses = rng.uniform(0.1, 1.0, n)
    network = Network(masses, NO_PAIRS, 0.0, outer=rng.normal(size=(n, 3)))
    constraints = build_constraints(n)
    constraints.filters[:] = random_projectors(rng, np.arange(n) % 4)
    constraints.change[:] = np.einsum("nij,nj->ni", np.eye(3) - constraints.filters, rng.normal(size=(n, 3)))
    roots = rng.normal(size=(n, 3, 3))
    constraints.drag[:] = roots @ roots.transpose(0, 2, 1)
    constraints.impulses[:] = rng.normal(size=(n, 3))
    integrator = build(name, NO_PAIRS, n)
    begin(integrator, network, np.zeros((n, 3)), np.zeros((n, 3)), dt)
    dv, impulse = integrator.solve(constraints)
    matrix = np.diag(np.repeat(masses, 3)) + block_diagonal(constraints.drag)
    right = dt * network.outer + constraints.impulses
    wanted = solve_constrained(matrix, right, constraints.filters, constraints.change)
    np.testing.assert_allclose(dv, wanted, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(impulse.ravel(), matrix @ wanted.ravel() - right.ravel(), atol=1e-10)


def test_solves_of_one_step_do_not_depend_on_one_another(name, rng):
    """Constraints come and go within a step: nothing of an earlier solve may stay behind."""
    network = random_network(rng)
    x, v, dt = rng.normal(size=(40, 3)), rng.normal(size=(40, 3)), 4e-4
    other = build_constraints(40)
    other.filters[:] = random_projectors(rng, np.arange(40) % 3)
    other.drag[:] = 5.0 * np.eye(3)
    other.impulses[:] = rng.normal(size=(40, 3))
    free = build_constraints(40)
    once, often = build(name, network.pairs, 40), build(name, network.pairs, 40)
    begin(once, network, x, v, dt)
    begin(often, network, x, v, dt)
    often.solve(other)
    wanted, got = once.solve(free), often.solve(free)
    np.testing.assert_allclose(got[0], wanted[0], atol=1e-9)
    np.testing.assert_allclose(got[1], wanted[1], atol=1e-9)
