"""Contacts along a path: none missed however fast or thin, and each with the right plane.

The oracle uses that the distance to a convex body is convex along a straight path: its minimum is found by
ternary search, and the first touch by bisection before it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from weft.bodies import Body
from weft.bodies.contacts import find_contacts
from weft.bodies.distances import update_shares
from weft.bodies.motion import Motion, Pose
from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Sphere

DT = 1 / 120
CLEARANCE = 0.002
STILL = Pose(np.eye(3), np.zeros(3))
PLATE = Box(size=(0.5, 0.5, 0.001))
SHAPES = {
    "plate": PLATE,
    "box": Box(size=(0.3, 0.2, 0.4)),
    "sphere": Sphere(radius=0.2),
    "capsule": Capsule(radius=0.01, length=0.6),
    "cylinder": Cylinder(radius=0.2, length=0.02),
    "plane": Plane(normal=(0.6, 0.0, 0.8)),
}


def moving(shape, move=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), start=STILL, **more):
    """A body that goes through `move` and `turn` [deg] within one step."""
    motion = Motion.model_validate({"keyframes": [{"time": 0.0}, {"time": DT, "move": move, "turn": turn}]})
    return Body("body", shape, start, motion, **more)


def contacts_of(bodies, x_t0, x_t1, clearance=CLEARANCE, friction=0.3):
    n = len(x_t0)
    return find_contacts(bodies, x_t0, x_t1, np.full(n, clearance), np.full(n, friction), 0.0, DT)


def trace(shape, p0, p1, clearance):
    """Whether each path touches the shape, and the share of it where it first does."""
    shares = np.empty(len(p0))
    update_shares(*shape.solid(), (*STILL, *STILL), p0, p1, clearance, shares)
    return shares >= 0.0, shares


def least_distance(shape, p0, p1):
    """The least distance along each path, and the share of the path where it is."""
    low, high = np.zeros(len(p0)), np.ones(len(p0))

    def at(s):
        return shape.distances(p0 + s[:, None] * (p1 - p0))[0]

    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        left = at(a) <= at(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    s = 0.5 * (low + high)
    return at(s), s


def first_touch(shape, p0, p1, until, clearance):
    """The share of the path, before `until`, where the distance first falls to `clearance`."""
    low, high = np.zeros(len(p0)), until.copy()
    for _ in range(80):
        middle = 0.5 * (low + high)
        far = shape.distances(p0 + middle[:, None] * (p1 - p0))[0] > clearance
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return high


def random_paths(rng, shape, n, length):
    """From outside, towards points in, on and around the body: about half of the paths meet it."""
    surface = shape.triangulate()[0]
    if isinstance(shape, Plane):
        surface = surface / 100.0
    corners = surface[rng.integers(0, len(surface), size=(n, 3))]
    inside = np.einsum("nk,nkc->nc", rng.dirichlet(np.ones(3), n), corners)
    targets = inside * rng.uniform(0.3, 1.3, size=(n, 1)) + rng.normal(scale=0.005, size=(n, 3))
    away = rng.normal(size=(n, 3))
    away /= np.linalg.norm(away, axis=1)[:, None]
    p0 = targets + rng.uniform(0.05, 0.9, size=(n, 1)) * min(length, 1.0) * away
    outside = shape.distances(p0)[0] > 2.0 * CLEARANCE
    return p0[outside], (p0 - length * away)[outside]


@pytest.mark.parametrize("length", [0.3, 1000.0 * DT])
@pytest.mark.parametrize("name", SHAPES)
def test_no_path_that_meets_a_body_is_missed(name, length, rng):
    """Up to 1000 m/s; and no path that does not meet it is reported."""
    shape = SHAPES[name]
    p0, p1 = random_paths(rng, shape, 4000, length)
    touching, s = trace(shape, p0, p1, np.full(len(p0), CLEARANCE))
    least, until = least_distance(shape, p0, p1)
    meets = least < CLEARANCE
    assert meets.mean() > 0.2
    assert touching[meets].all()
    assert not touching[least - CLEARANCE > 1e-8].any()
    wanted = first_touch(shape, p0[meets], p1[meets], until[meets], CLEARANCE)
    assert (s[meets] <= wanted + 1e-9).all(), "a contact later than the first touch"
    gap = shape.distances(p0[meets] + s[meets, None] * (p1 - p0)[meets])[0] - CLEARANCE
    assert np.abs(gap).max() < 1e-8


@pytest.mark.parametrize("name", SHAPES)
def test_end_of_a_path_short_of_the_body_is_no_contact(name, rng):
    shape = SHAPES[name]
    p0, p1 = random_paths(rng, shape, 500, 2.0)
    least, until = least_distance(shape, p0, p1)
    reach = least < CLEARANCE
    p0, p1, until = p0[reach], p1[reach], until[reach]
    s = first_touch(shape, p0, p1, until, CLEARANCE)
    short, far = p0 + (s * 0.98)[:, None] * (p1 - p0), p0 + np.minimum(s * 1.02, 1.0)[:, None] * (p1 - p0)
    assert not trace(shape, p0, short, np.full(len(p0), CLEARANCE))[0].any()
    assert trace(shape, p0, far, np.full(len(p0), CLEARANCE))[0].all()


@pytest.mark.parametrize("move", [(0.0, 0.0, 0.0), (0.0, 0.0, 3.0), (-5.0, 2.0, 1.0)])
@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (70.0, 0.0, 0.0), (-30.0, 100.0, 40.0)])
@pytest.mark.parametrize("name", SHAPES)
def test_every_plane_leaves_the_whole_body_behind_it(name, move, turn, rng):
    """At the end of the step: whoever stays before the plane is out of the body, by the clearance."""
    start = Pose(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3))
    body = moving(SHAPES[name], move, turn, start)
    local_t0, local_t1 = random_paths(rng, SHAPES[name], 600, 1.0)
    x0, x1 = body.pose(0.0).to_world(local_t0), body.pose(DT).to_world(local_t1)
    c = contacts_of([body], x0, x1)
    assert len(c.vertices) > 20
    np.testing.assert_allclose(np.linalg.norm(c.normals, axis=1), 1.0, rtol=1e-12)
    surface, _ = body.triangulate(DT)
    ahead = (c.normals @ surface.T) - ((c.normals * x0[c.vertices]).sum(axis=1) - c.gaps)[:, None]
    assert ahead.max() <= -CLEARANCE + 1e-9
    if name != "plane":  # and it touches it: no plane is farther off than the body needs, but for the corners of facets
        assert ahead.max(axis=1).min() > -CLEARANCE - 5e-3


def test_plane_gap_and_velocity_for_a_fall_on_a_resting_plate():
    x0 = np.array([[0.1, -0.1, 0.05], [0.0, 0.0, 1.0], [0.4, 0.0, 0.05]])
    x1 = x0 + np.array([0.02, 0.0, -8.0])
    c = contacts_of([Body("plate", PLATE, STILL)], x0, x1)
    np.testing.assert_array_equal(c.vertices, [0, 1])
    np.testing.assert_array_equal(c.bodies, [0, 0])
    np.testing.assert_allclose(c.normals, [[0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(c.gaps, [0.05 - 0.0005 - CLEARANCE, 1.0 - 0.0005 - CLEARANCE], atol=1e-9)
    np.testing.assert_array_equal(c.velocities, np.zeros((2, 3)))
    np.testing.assert_array_equal(c.friction, [0.3, 0.3])


def test_a_plate_that_rushes_up_pushes_what_lies_above_it():
    """1000 m/s through vertices at rest: their plane is the plate's upper side at the end of the step."""
    body = moving(PLATE, move=(0.0, 0.0, 1000.0 * DT))
    x = np.array([[0.0, 0.0, 0.1], [0.2, 0.1, 4.0], [0.0, 0.0, 9.0], [0.0, 0.0, -0.1]])
    c = contacts_of([body], x, x)
    np.testing.assert_array_equal(c.vertices, [0, 1])
    np.testing.assert_allclose(c.normals, [[0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(c.gaps, x[:2, 2] - (1000.0 * DT + 0.0005 + CLEARANCE), atol=1e-7)
    np.testing.assert_allclose(c.velocities, [[0, 0, 1000], [0, 0, 1000]], rtol=1e-9)


def test_a_body_and_a_vertex_that_go_along_together_do_not_meet():
    body = moving(PLATE, move=(0.0, 0.0, 5.0))
    x = np.array([[0.0, 0.0, 0.01]])
    assert len(contacts_of([body], x, x + np.array([0.0, 0.0, 5.0])).vertices) == 0


@pytest.mark.parametrize("angle", [5.0, 60.0, 120.0, -90.0, 170.0])
def test_a_turning_plate_sweeps_up_what_it_passes(angle, rng):
    """Vertices at rest in the sector that a plate turns through about its middle: all end up on the side it came to."""
    body = moving(PLATE, turn=(angle, 0.0, 0.0))
    side = np.sign(angle)
    phi = np.deg2rad(rng.uniform(0.1, 0.9, 300) * abs(angle))
    r = rng.uniform(0.03, 0.24, 300)
    x = np.stack([rng.uniform(-0.2, 0.2, 300), r * np.cos(phi), side * r * np.sin(phi)], axis=1)
    swept = np.abs(x[:, 2]) > 2.0 * CLEARANCE
    x = x[swept]
    c = contacts_of([body], x, x)
    np.testing.assert_array_equal(c.vertices, np.arange(len(x)))
    ends = x[c.vertices] - c.gaps[:, None] * c.normals  # the least motion that is allowed
    local = body.pose(DT).to_local(ends)
    assert (side * local[:, 2] > 0).all()
    assert body.shape.distances(local)[0].min() > CLEARANCE - 1e-6


def test_velocity_of_a_turning_body_at_the_point_of_touch():
    """A vertex that rests on a slowly turning drum: w x r."""
    drum = Cylinder(radius=0.2, length=1.0)
    w = 2.0  # rad/s about the axis, z
    body = moving(drum, turn=(0.0, 0.0, np.rad2deg(w * DT)))
    x = np.array([[0.2 + CLEARANCE, 0.0, 0.1], [0.0, -0.2 - CLEARANCE, -0.3]])
    c = contacts_of([body], x, x)
    radius = 0.2 + CLEARANCE
    np.testing.assert_allclose(c.velocities, [[0, w * radius, 0], [w * radius, 0, 0]], atol=2 * w * radius * w * DT)
    np.testing.assert_allclose(c.normals, [[1, 0, 0], [0, -1, 0]], atol=w * DT)


@pytest.mark.parametrize("height", [-1e-7, 1e-12, 1e-7, 1e-4])
def test_grazing(height):
    """Along a plate, as near as makes no difference to its clearance: a contact only where it is nearer."""
    z = 0.0005 + CLEARANCE + height
    x0, x1 = np.array([[-0.2, 0.0, z]]), np.array([[0.2, 0.0, z]])
    c = contacts_of([Body("plate", PLATE, STILL)], x0, x1)
    assert len(c.vertices) == (1 if height < 1e-9 else 0)
    np.testing.assert_allclose(c.normals[:, 2], 1.0, atol=1e-12)
    np.testing.assert_allclose(c.gaps, height, atol=1e-12)


def test_resting_exactly_at_the_clearance_is_a_contact_and_leaving_it_too():
    z = 0.0005 + CLEARANCE
    x = np.array([[0.0, 0.0, z], [0.1, 0.0, z]])
    c = contacts_of([Body("plate", PLATE, STILL)], x, x + np.array([[0, 0, 0], [0, 0, 0.01]]))
    np.testing.assert_array_equal(c.vertices, [0, 1])
    np.testing.assert_allclose(c.gaps, 0.0, atol=1e-12)


def test_a_vertex_that_starts_inside_is_asked_to_come_out():
    x = np.array([[0.05, 0.0, 0.0]])
    c = contacts_of([Body("ball", Sphere(radius=0.2), STILL)], x, x)
    np.testing.assert_allclose(c.normals, [[1, 0, 0]])
    np.testing.assert_allclose(c.gaps, [-0.15 - CLEARANCE])


def test_clearance_may_differ_from_vertex_to_vertex():
    x = np.array([[0.0, 0.0, 0.25], [0.0, 0.0, 0.25]])
    c = find_contacts(
        [Body("ball", Sphere(radius=0.2), STILL)], x, x, np.array([0.04, 0.06]), np.array([0.1, 0.2]), 0.0, DT
    )
    np.testing.assert_array_equal(c.vertices, [1])
    np.testing.assert_allclose(c.gaps, [-0.01])
    np.testing.assert_array_equal(c.friction, [0.2])


def test_several_bodies_and_their_own_friction():
    floor = Body("floor", Plane(), STILL)
    ball = Body("ball", Sphere(radius=0.2), Pose(np.eye(3), np.array([1.0, 0.0, 0.0])), friction=0.9)
    x0 = np.array([[0.0, 0.0, 0.1], [1.0, 0.0, 0.5], [5.0, 0.0, 3.0]])
    c = contacts_of([floor, ball], x0, x0 - np.array([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(c.vertices, [0, 1, 1])
    np.testing.assert_array_equal(c.bodies, [0, 0, 1])
    np.testing.assert_array_equal(c.friction, [0.3, 0.3, 0.9])
    np.testing.assert_allclose(c.gaps, [0.1 - CLEARANCE, 0.5 - CLEARANCE, 0.3 - CLEARANCE], atol=1e-8)


@pytest.mark.parametrize("bodies", [[], [Body("floor", Plane(), STILL)]])
@pytest.mark.parametrize("n", [0, 3])
def test_nothing_to_touch(bodies, n):
    x = np.tile([0.0, 0.0, 9.0], (n, 1))
    c = contacts_of(bodies, x, x)
    assert [part.shape for part in c] == [(0,), (0,), (0, 3), (0,), (0, 3), (0,)]
    assert c.vertices.dtype == c.bodies.dtype == np.int32
