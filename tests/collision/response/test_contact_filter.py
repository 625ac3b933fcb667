"""Contacts and pins as constraints: planes, edges, corners, letting go, friction."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.fixed_system import begin_fixed

from weft.collision.response import StepStart
from weft.collision.response.contact_filter import ContactFilter, ContactFilterParameters
from weft.geometry.contacts import PlaneContacts, join_contacts
from weft.integrators import Dynamics
from weft.integrators.symplectic_euler import SymplecticEuler

DT = 0.01
CREEP = 5e-4
X, Y, Z = np.eye(3)


def planes(*rows):
    """Contacts from (vertex, normal, gap) and, where given, friction and the velocity of the body."""
    full = [(*row, *((0.0, np.zeros(3))[len(row) - 3 :])) for row in rows]
    if not full:
        return join_contacts([])
    vertices, normals, gaps, friction, velocities = zip(*full, strict=True)
    normals = np.array(normals, np.float64)
    return PlaneContacts(
        vertices=np.array(vertices, np.int32),
        bodies=np.arange(len(full), dtype=np.int32),
        normals=normals / np.linalg.norm(normals, axis=1)[:, None],
        gaps=np.array(gaps, np.float64),
        velocities=np.array(velocities, np.float64),
        friction=np.array(friction, np.float64),
    )


NOTHING = planes()


def begun(contacts, v, impulses=None, pins=(), pin_velocities=()):
    v = np.array(v, np.float64)
    response = ContactFilter(None, ContactFilterParameters(creep=CREEP))
    response.begin(
        StepStart(
            x=np.zeros_like(v),
            v=v,
            ahead=DT * v,
            x_free=DT * v,
            touches=np.zeros(len(v), np.uint8),
            impulses=np.zeros_like(v) if impulses is None else np.array(impulses, np.float64),
            contacts=contacts,
            pinned=np.array(pins, np.int32),
            pin_velocities=np.array(pin_velocities, np.float64).reshape(-1, 3),
            bodies_t0=np.zeros((0, 3)),
            bodies_t1=np.zeros((0, 3)),
            dt=DT,
        )
    )
    return response


def solved(response, v, force, mass=1.0):
    """One solve of vertices of `mass` under `force`, by the integrator that couples no two of them."""
    v = np.array(v, np.float64)
    n = len(v)
    none = np.zeros((0, 3, 3))
    forces = np.broadcast_to(np.array(force, np.float64), v.shape).copy()
    integrator = SymplecticEuler(np.zeros((0, 2), np.int32), n)
    begin_fixed(
        integrator,
        Dynamics(np.full(n, mass), forces, np.zeros((0, 2), np.int32), none, none, np.zeros((n, 3, 3))),
        v,
        DT,
    )
    return integrator.solve(response.constraints())


def settled(contacts, v, force, **more):
    """Solve as often as the response asks for, as a step does; return the new velocity and the number of solves."""
    response = begun(contacts, v, **more)
    for solves in range(1, 10):
        dv, impulses = solved(response, v, force)
        met = contacts.select(contacts.gaps + DT * ((v + dv)[contacts.vertices] * contacts.normals).sum(axis=1) < -1e-9)
        if not response.update(met, dv, impulses):
            return np.array(v) + dv, solves
    raise AssertionError("contacts never settle")


def speeds(contacts, velocities):
    return (velocities[contacts.vertices] * contacts.normals).sum(axis=1)


def test_free_vertices_are_not_constrained():
    out = begun(NOTHING, np.ones((3, 3))).constraints()
    np.testing.assert_array_equal(out.filters, np.tile(np.eye(3), (3, 1, 1)))
    for part in (out.change, out.drag, out.impulses):
        assert not part.any()


@pytest.mark.parametrize("gap", [0.0, 0.003, -0.002])
def test_one_plane(gap):
    """The vertex ends on the plane: gap + dt n . v' = 0; along the plane it is free."""
    normal = np.array([0.6, 0.0, 0.8])
    v = np.array([[0.3, -0.4, -2.0], [1.0, 1.0, 1.0]])
    response = begun(planes((0, normal, gap)), v)
    out = response.constraints()
    np.testing.assert_allclose(out.filters[0], np.eye(3) - np.outer(normal, normal), atol=1e-15)
    np.testing.assert_array_equal(out.filters[1], np.eye(3))
    assert normal @ (v[0] + out.change[0]) == pytest.approx(-gap / DT)
    np.testing.assert_allclose(np.cross(out.change[0], normal), 0.0, atol=1e-15)
    assert response.n_contacts() == 1


@pytest.mark.parametrize("second", [(0.0, 1.0, 0.0), (0.5, 0.0, 1.0), (-0.9, 0.1, 0.6), (-0.9, 0.0, -0.5)])
def test_two_planes_leave_the_edge_between_them(second):
    contacts = planes((0, X, 0.001), (0, second, -0.004))
    v = np.array([[-1.0, -2.0, -3.0]])
    out = begun(contacts, v).constraints()
    edge = np.cross(*contacts.normals)
    edge /= np.linalg.norm(edge)
    np.testing.assert_allclose(out.filters[0], np.outer(edge, edge), atol=1e-12)
    np.testing.assert_allclose(speeds(contacts, v + out.change), -contacts.gaps / DT)
    assert out.change[0] @ edge == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_three_planes_leave_nothing(tilt):
    """Exactly nothing: what rounding leaves of a projector would let a vertex out of a corner."""
    contacts = planes((0, X + tilt * Y, 0.001), (0, Y - tilt * Z, 0.002), (0, Z + tilt * X, -0.003))
    v = np.array([[-1.0, -2.0, -3.0]])
    response = begun(contacts, v)
    out = response.constraints()
    np.testing.assert_array_equal(out.filters, np.zeros((1, 3, 3)))
    np.testing.assert_allclose(speeds(contacts, v + out.change), -contacts.gaps / DT)
    assert response.n_contacts() == 3


def test_a_fourth_plane_changes_nothing_that_three_hold():
    three = planes((0, X, 0.0), (0, Y, 0.0), (0, Z, 0.0))
    four = planes((0, X, 0.0), (0, Y, 0.0), (0, Z, 0.0), (0, X + Y + Z, 0.001))
    v = -np.ones((1, 3))
    np.testing.assert_array_equal(begun(four, v).constraints().change, begun(three, v).constraints().change)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("normal", [Z, np.array([0.02, 0.0, 1.0])])
def test_of_parallel_planes_the_first_in_the_way_holds(order, normal):
    """A plate just above a floor: the vertex stays on the plate, whichever body comes first in the scene."""
    rows = [(0, Z, 0.05), (0, normal, 0.01)]
    contacts = planes(*(rows[k] for k in order))
    v = np.array([[0.0, 0.0, -10.0]])
    out = begun(contacts, v).constraints()
    assert speeds(contacts, v + out.change).min() == pytest.approx(-0.01 / DT, rel=1e-2)


def test_several_vertices_at_once():
    contacts = planes((2, Z, 0.0), (0, X, 0.0), (2, X, 0.0), (1, Y, 0.001), (2, Y, 0.0), (0, Y, 0.0))
    v = -np.ones((4, 3))
    out = begun(contacts, v).constraints()
    np.testing.assert_allclose(out.filters, [np.diag([0, 0, 1]), np.diag([1, 0, 1]), np.zeros((3, 3)), np.eye(3)])
    np.testing.assert_allclose(v + out.change, [[0, 0, -1], [-1, -0.1, -1], [0, 0, 0], [-1, -1, -1]], atol=1e-14)


def test_pin_beats_contact():
    v = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, -1.0]])
    contacts = planes((0, Z, 0.5, 0.9, np.zeros(3)), (1, Z, 0.0))
    response = begun(contacts, v, impulses=np.ones((2, 3)), pins=[0], pin_velocities=[[5.0, 0.0, -7.0]])
    out = response.constraints()
    np.testing.assert_array_equal(out.filters[0], 0.0)
    np.testing.assert_array_equal(v[0] + out.change[0], [5.0, 0.0, -7.0])
    assert not out.drag[0].any()
    assert response.n_contacts() == 1
    assert not response.update(contacts, np.zeros((2, 3)), np.zeros((2, 3)))


def test_a_contact_that_would_pull_lets_go():
    """Lifted from a floor that it rests on: free after one more solve, as if the floor were not there."""
    v = np.array([[0.1, 0.0, 0.0]])
    end, solves = settled(planes((0, Z, 0.0, 0.5)), v, (0.0, 0.0, 3.0))
    np.testing.assert_allclose(end, [[0.1, 0.0, 0.03]], atol=1e-14)
    assert solves == 2


def test_a_contact_that_presses_holds():
    end, solves = settled(planes((0, Z, 0.0)), np.zeros((1, 3)), (1.0, 0.0, -3.0))
    np.testing.assert_allclose(end, [[0.01, 0.0, 0.0]], atol=1e-15)
    assert solves == 1


def test_a_vertex_that_does_not_reach_a_plane_is_let_go():
    """Foreseen to touch, but slower than foreseen: it ends where it would without the plane, not on it."""
    end, _ = settled(planes((0, Z, 0.02)), np.array([[0.0, 0.0, -1.0]]), (0.0, 0.0, 0.0))
    np.testing.assert_allclose(end, [[0.0, 0.0, -1.0]])


def test_in_an_obtuse_wedge_only_the_contact_that_pulls_lets_go():
    """Two slopes that face away from each other, and a force down one of them: that one holds, the other lets go."""
    left, right = np.array([-0.2, 0.0, 1.0]), np.array([0.2, 0.0, 1.0])
    force = np.array([1.0, 0.0, -2.0])
    contacts = planes((0, left, 0.0), (0, right, 0.0))
    end, _ = settled(contacts, np.zeros((1, 3)), force)
    normal = contacts.normals[0]
    wanted = DT * (force - (force @ normal) * normal)
    np.testing.assert_allclose(end[0], wanted, atol=1e-14)
    assert speeds(contacts, end).min() >= -1e-14


def test_in_an_acute_groove_both_hold_at_once():
    """A wall and a steep slope against it: the total impulse points away from the wall, but the wall bears."""
    contacts = planes((0, X, 0.0), (0, (-np.sin(1.4), 0.0, np.cos(1.4)), 0.0))
    end, solves = settled(contacts, np.zeros((1, 3)), (0.1, 0.5, -1.0))
    np.testing.assert_allclose(end, [[0.0, 0.005, 0.0]], atol=1e-13)
    assert solves == 1


def test_new_contacts_on_the_way_are_taken_up():
    v = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, -1.0]])
    response = begun(planes((0, Z, 0.0)), v)
    dv, impulses = solved(response, v, (0.0, 0.0, 0.0))
    later = planes((0, Z, 0.0), (1, Z, 0.004))._replace(bodies=np.zeros(2, np.int32))
    assert response.update(later, dv, impulses)
    assert response.n_contacts() == 2
    dv, impulses = solved(response, v, (0.0, 0.0, 0.0))
    np.testing.assert_allclose((v + dv)[:, 2], [0.0, -0.4], atol=1e-14)
    assert not response.update(later, dv, impulses)


def test_a_contact_let_go_is_held_again_where_the_path_comes_back():
    """Two vertices' worth of doubt: after letting go, another solve sends the vertex through the plane again."""
    v = np.array([[0.0, 0.0, 0.0]])
    response = begun(planes((0, Z, 0.0)), v)
    dv, impulses = solved(response, v, (0.0, 0.0, 3.0))
    assert response.update(NOTHING, dv, impulses)
    assert response.n_contacts() == 0
    through = np.array([[0.0, 0.0, -0.5]])
    assert response.update(NOTHING, through, np.zeros((1, 3)))
    assert response.n_contacts() == 1
    dv, impulses = solved(response, v, (0.0, 0.0, -3.0))
    np.testing.assert_allclose(dv, 0.0, atol=1e-15)
    assert not response.update(NOTHING, dv, impulses)


@pytest.mark.parametrize("slip", [0.0, 1e-4, 0.3])
def test_friction_is_a_drag_against_slip(slip):
    """Coefficient mu j_n / max(slip, creep), against the velocity relative to the body and only along the plane."""
    mu, pressing, belt = 0.4, 0.02, np.array([0.1, 0.0, 0.0])
    v = np.array([[0.1, slip, -1.0]])
    out = begun(planes((0, Z, 0.0, mu, belt)), v, impulses=[[0.7, 0.0, pressing]]).constraints()
    coefficient = mu * pressing / max(slip, CREEP)
    np.testing.assert_allclose(out.drag[0], coefficient * np.diag([1, 1, 0]), atol=1e-15)
    np.testing.assert_allclose(out.impulses[0], [0.0, -coefficient * slip, 0.0], atol=1e-15)


def test_no_friction_from_an_impulse_that_pulls():
    out = begun(planes((0, Z, 0.0, 0.5)), np.array([[1.0, 0, 0]]), impulses=[[0.0, 0.0, -1.0]]).constraints()
    assert not out.drag.any()


def test_a_belt_takes_a_vertex_along():
    """Slower than the belt, a vertex is sped up by mu j_n in a step; the solve does not overshoot the belt."""
    belt, mass, pressing = np.array([2.0, 0.0, 0.0]), 1.0, 0.0981
    v = np.zeros((1, 3))
    response = begun(planes((0, Z, 0.0, 0.3, belt)), v, impulses=[[0.0, 0.0, pressing]])
    dv, _ = solved(response, v, (0.0, 0.0, -9.81), mass)
    assert dv[0, 0] == pytest.approx(0.3 * pressing / mass, rel=0.02)
    strong = begun(planes((0, Z, 0.0, 10.0, belt)), v, impulses=[[0.0, 0.0, 1e3]])
    assert 1.99 < solved(strong, v, (0.0, 0.0, -9.81), mass)[0][0, 0] <= 2.0


def test_friction_of_two_planes_is_by_what_each_of_them_bears():
    """In a groove, j = a n1 + b n2: friction goes by a and b, not by j . n, which is less where normals face."""
    n1, n2 = np.array([np.sin(1.2), 0.0, np.cos(1.2)]), np.array([-np.sin(1.2), 0.0, np.cos(1.2)])
    bears = 0.03, 0.05
    impulse = bears[0] * n1 + bears[1] * n2
    contacts = planes((0, n1, 0.0, 0.5), (0, n2, 0.0, 0.2))
    out = begun(contacts, np.zeros((1, 3)), impulses=[impulse]).constraints()
    along_groove = (0.5 * bears[0] + 0.2 * bears[1]) / CREEP
    assert out.drag[0, 1, 1] == pytest.approx(along_groove)


def test_two_bodies_with_one_surface_do_not_double_the_friction():
    """Across the seam of two tables a vertex touches both, with one and the same weight."""
    v, weight = np.array([[0.2, 0.0, 0.0]]), [[0.0, 0.0, 0.05]]
    one = begun(planes((0, Z, 0.0, 0.3)), v, impulses=weight).constraints()
    two = begun(planes((0, Z, 0.0, 0.3), (0, Z, 0.0, 0.3)), v, impulses=weight).constraints()
    np.testing.assert_allclose(two.drag, one.drag)
    np.testing.assert_allclose(two.impulses, one.impulses)


def test_friction_is_learnt_from_the_solve_when_contacts_change():
    """A vertex that lands is slowed by the impulse of its landing within the step."""
    v = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0]])
    response = begun(planes((0, Z, 0.0, 0.25)), v)
    dv, impulses = solved(response, v, (0.0, 0.0, 0.0))
    assert dv[0, 0] == 0.0
    newer = planes((0, Z, 0.0), (1, Z, 0.0))
    assert response.update(newer, dv, impulses)
    dv, _ = solved(response, v, (0.0, 0.0, 0.0))
    assert dv[0, 0] == pytest.approx(-0.5 / 1.5)  # drag 0.25 * 2 / 1 on a mass of 1
