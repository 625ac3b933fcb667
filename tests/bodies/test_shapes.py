"""Signed distances and surfaces of the shapes.

The oracle is the support function h(n) = max of n . x over the body: the signed distance to a convex body is the
maximum of n . p - h(n) over all unit vectors n, inside as outside, and its gradient is the n that attains it.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from weft.bodies import SHAPES, Body
from weft.bodies.motion import Pose
from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Sphere
from weft.errors import WeftError
from weft.parameters import check

BOX, SPHERE = Box(size=(0.4, 0.2, 0.6)), Sphere(radius=0.3)
CAPSULE, CYLINDER = Capsule(radius=0.1, length=0.5), Cylinder(radius=0.3, length=0.4)
PLANE, PLATE = Plane(normal=(1.0, -2.0, 2.0)), Box(size=(1.0, 1.0, 0.001))
SOLIDS = {"box": BOX, "sphere": SPHERE, "capsule": CAPSULE, "cylinder": CYLINDER, "plate": PLATE}
ALL = {**SOLIDS, "plane": PLANE}
VOLUMES = {
    "box": 0.4 * 0.2 * 0.6,
    "sphere": 4 / 3 * np.pi * 0.3**3,
    "capsule": 4 / 3 * np.pi * 0.1**3 + np.pi * 0.1**2 * 0.5,
    "cylinder": np.pi * 0.3**2 * 0.4,
    "plate": 0.001,
}


def support(name, n):
    """h(n) for unit vectors n (k, 3)."""
    if name in ("box", "plate"):
        return 0.5 * np.abs(n) @ np.array(SOLIDS[name].size)
    if name == "sphere":
        return np.full(len(n), SPHERE.radius)
    if name == "capsule":
        return CAPSULE.radius + 0.5 * CAPSULE.length * np.abs(n[:, 2])
    return CYLINDER.radius * np.hypot(n[:, 0], n[:, 1]) + 0.5 * CYLINDER.length * np.abs(n[:, 2])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def points_around(rng, name, count=2000):
    """Points inside, outside, on the surface and along the axes."""
    reach = 1.2
    random = rng.uniform(-reach, reach, size=(count, 3)) * rng.choice([0.05, 0.3, 1.0], size=(count, 1))
    surface = SOLIDS[name].triangulate()[0]
    axes = np.concatenate([np.outer(rng.uniform(-1, 1, 20), axis) for axis in np.eye(3)])
    return np.concatenate([random, surface, axes, np.zeros((1, 3))])


def test_every_shape_is_tested():
    assert {type(shape) for shape in ALL.values()} == set(SHAPES.values())


@pytest.mark.parametrize("name", SOLIDS)
def test_distance_is_the_largest_over_all_supporting_planes(name, rng):
    points = points_around(rng, name)
    d, normals = SOLIDS[name].distances(points)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, rtol=1e-12)
    attained = (normals * points).sum(axis=1) - support(name, normals)
    np.testing.assert_allclose(d, attained, atol=1e-12)
    some = unit(np.concatenate([rng.normal(size=(3000, 3)), np.eye(3), -np.eye(3)]))
    assert (d >= (points @ some.T - support(name, some)).max(axis=1) - 1e-12).all()


@pytest.mark.parametrize(
    ("shape", "point", "distance", "normal"),
    [
        (BOX, (0.5, 0.05, 0.1), 0.3, (1, 0, 0)),  # before a face
        (BOX, (0.0, -0.4, 0.0), 0.3, (0, -1, 0)),
        (BOX, (0.5, 0.5, 0.1), 0.5, (0.6, 0.8, 0)),  # before an edge
        (BOX, (-0.4, 0.2, -0.5), 0.3, (-2 / 3, 1 / 3, -2 / 3)),  # before a corner
        (BOX, (0.2, 0.03, 0.1), 0.0, (1, 0, 0)),  # on a face
        (BOX, (0.15, 0.0, 0.2), -0.05, (1, 0, 0)),  # inside
        (BOX, (0.0, -0.07, 0.0), -0.03, (0, -1, 0)),
        (SPHERE, (0.0, 0.3, 0.4), 0.2, (0, 0.6, 0.8)),
        (SPHERE, (0.0, 0.0, -0.1), -0.2, (0, 0, -1)),
        (CAPSULE, (0.3, 0.0, 0.1), 0.2, (1, 0, 0)),  # beside
        (CAPSULE, (0.0, 0.0, 0.5), 0.15, (0, 0, 1)),  # above
        (CAPSULE, (0.3, 0.0, -0.65), 0.4, (0.6, 0, -0.8)),  # before a round end
        (CAPSULE, (0.0, 0.04, -0.2), -0.06, (0, 1, 0)),
        (CYLINDER, (0.0, 0.5, 0.1), 0.2, (0, 1, 0)),
        (CYLINDER, (0.1, 0.1, 0.35), 0.15, (0, 0, 1)),
        (CYLINDER, (0.6, 0.0, 0.6), 0.5, (0.6, 0, 0.8)),  # before the rim
        (CYLINDER, (0.25, 0.0, 0.0), -0.05, (1, 0, 0)),
        (CYLINDER, (0.05, 0.0, -0.19), -0.01, (0, 0, -1)),
        (PLANE, (1.0, -2.0, 2.0), 3.0, (1 / 3, -2 / 3, 2 / 3)),
        (PLANE, (-3.0, 0.0, 0.0), -1.0, (1 / 3, -2 / 3, 2 / 3)),
    ],
)
def test_known_distances(shape, point, distance, normal):
    d, n = shape.distances(np.array([point]))
    assert d[0] == pytest.approx(distance, abs=1e-14)
    np.testing.assert_allclose(n[0], normal, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "point", "distance"),
    [
        (BOX, (0.0, 0.0, 0.0), -0.1),
        (BOX, (0.15, 0.05, 0.0), -0.05),  # as far from two faces
        (BOX, (0.2, 0.1, 0.3), 0.0),  # a corner
        (BOX, (0.2, 0.1, 0.0), 0.0),  # an edge
        (SPHERE, (0.0, 0.0, 0.0), -0.3),
        (CAPSULE, (0.0, 0.0, 0.13), -0.1),
        (CAPSULE, (0.0, 0.0, 0.25), -0.1),
        (CYLINDER, (0.0, 0.0, 0.0), -0.2),
        (CYLINDER, (0.2, 0.0, 0.1), -0.1),
        (CYLINDER, (0.3, 0.0, 0.2), 0.0),  # the rim
        (PLATE, (0.2, -0.3, 0.0), -0.0005),
    ],
)
def test_on_the_medial_axis_and_on_edges_one_of_the_normals_is_chosen(shape, point, distance):
    d, n = shape.distances(np.array([point]))
    assert d[0] == pytest.approx(distance, abs=1e-15)
    assert np.linalg.norm(n[0]) == pytest.approx(1.0, rel=1e-12)
    h = 1e-6  # leaving along the normal, the distance grows at the full rate
    assert shape.distances(np.array([point]) + h * n)[0][0] == pytest.approx(distance + h, abs=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_normals_are_the_gradient(name, rng):
    shape = ALL[name]
    points = rng.uniform(-0.7, 0.7, size=(3000, 3))
    h = 1e-6
    d, normals = shape.distances(points)
    numeric = np.empty_like(points)
    smooth = np.ones(len(points), bool)
    for axis in range(3):
        (up, n_up), (down, n_down) = (shape.distances(points + sign * h * np.eye(3)[axis]) for sign in (1, -1))
        numeric[:, axis] = (up - down) / (2 * h)
        smooth &= np.abs(n_up - n_down).max(axis=1) < 0.1  # the normal jumps across the medial axis
    assert smooth.mean() > 0.99
    assert (d[smooth] < 0).any() or name == "plate"
    np.testing.assert_allclose(numeric[smooth], normals[smooth], atol=1e-4)


coordinates = st.floats(-2.0, 2.0, allow_subnormal=False)
some_point = st.tuples(coordinates, coordinates, coordinates)


@pytest.mark.parametrize("name", ALL)
@given(p=some_point, q=some_point)
def test_distance_never_changes_faster_than_the_point_moves(name, p, q):
    d, _ = ALL[name].distances(np.array([p, q]))
    assert abs(d[0] - d[1]) <= np.linalg.norm(np.subtract(p, q)) + 1e-14


@pytest.mark.parametrize("name", ALL)
def test_no_points(name):
    d, normals = ALL[name].distances(np.zeros((0, 3)))
    assert d.shape == (0,)
    assert normals.shape == (0, 3)


@pytest.mark.parametrize("name", SOLIDS)
def test_surface_is_closed_outward_and_has_the_volume(name):
    positions, triangles = SOLIDS[name].triangulate()
    assert triangles.dtype == np.int32
    half_edges = {(a, b) for t in triangles.tolist() for a, b in zip(t, t[1:] + t[:1], strict=True)}
    assert len(half_edges) == 3 * len(triangles), "an edge is used twice in the same direction"
    assert half_edges == {(b, a) for a, b in half_edges}
    assert set(triangles.ravel()) == set(range(len(positions)))
    a, b, c = positions[triangles].transpose(1, 0, 2)
    volume = (np.cross(a, b) * c).sum() / 6.0
    assert volume == pytest.approx(VOLUMES[name], rel=1e-12 if name in ("box", "plate") else 0.025)
    assert volume <= VOLUMES[name] * (1 + 1e-12)
    outward = unit(np.cross(b - a, c - a))
    _, normals = SOLIDS[name].distances((a + b + c) / 3.0 + 1e-3 * outward)
    assert ((outward * normals).sum(axis=1) > 0.9).all()
    np.testing.assert_allclose(SOLIDS[name].distances(positions)[0], 0.0, atol=1e-12)


def test_surface_of_a_plane_is_a_large_square_through_it():
    positions, triangles = PLANE.triangulate()
    np.testing.assert_allclose(PLANE.distances(positions)[0], 0.0, atol=1e-12)
    a, b, c = positions[triangles].transpose(1, 0, 2)
    np.testing.assert_allclose(unit(np.cross(b - a, c - a)), np.tile([1 / 3, -2 / 3, 2 / 3], (2, 1)), atol=1e-12)
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2 == pytest.approx(100.0**2)


@pytest.mark.parametrize("name", ALL)
def test_a_body_that_is_turned_and_moved(name, rng):
    """Distances do not change, normals turn with the body, and the surface goes along."""
    shape, rotation, position = ALL[name], Rotation.random(rng=rng), rng.normal(size=3)
    body = Body("body", shape, Pose(rotation.as_matrix(), position))
    local = rng.uniform(-0.6, 0.6, size=(200, 3))
    d, normals = body.distances(rotation.apply(local) + position, 0.3)
    wanted, local_normals = shape.distances(local)
    np.testing.assert_allclose(d, wanted, atol=1e-12)
    inside_once = np.abs(wanted) > 1e-6
    np.testing.assert_allclose(normals[inside_once], rotation.apply(local_normals)[inside_once], atol=1e-6)
    positions, triangles = body.triangulate(0.3)
    np.testing.assert_allclose(positions, rotation.apply(shape.triangulate()[0]) + position, atol=1e-12)
    np.testing.assert_array_equal(triangles, shape.triangulate()[1])


@pytest.mark.parametrize(
    ("kind", "values", "key"),
    [
        ("plane", {"normal": (0.0, 0.0, 0.0)}, "normal"),
        ("box", {"size": (1.0, 0.0, 1.0)}, "size"),
        ("box", {"size": (1.0, 1.0, -1.0)}, "size"),
        ("sphere", {"radius": 0.0}, "radius"),
        ("capsule", {"radius": 0.1, "length": -1.0}, "length"),
        ("cylinder", {"radius": -0.1, "length": 1.0}, "radius"),
    ],
)
def test_shapes_without_extent_are_refused(kind, values, key):
    with pytest.raises(WeftError, match=f"collider: {key}"):
        check(SHAPES[kind], values, "collider")
