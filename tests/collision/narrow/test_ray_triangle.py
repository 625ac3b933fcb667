"""Rays against triangles, and the depth of vertices inside a body."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.collision.narrow.bouncing_node import icosahedron

from weft.collision.narrow.ray_triangle import RayTriangle, ray_triangle

NO_PAIRS = np.empty((0, 4), np.int32)


def test_hit_and_miss() -> None:
    a, b, c = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    t, u, v, determinant = ray_triangle((0.2, 0.3, 2.0), (0.0, 0.0, -1.0), a, b, c)
    assert (t, u, v) == pytest.approx((2.0, 0.2, 0.3))
    assert determinant > 0.0  # seen from the front
    t, _, _, determinant = ray_triangle((0.2, 0.3, -2.0), (0.0, 0.0, 1.0), a, b, c)
    assert t == 2.0
    assert determinant < 0.0
    assert math.isinf(ray_triangle((0.2, 0.3, 2.0), (0.0, 0.0, 1.0), a, b, c)[0])  # behind the ray
    assert math.isinf(ray_triangle((0.8, 0.8, 2.0), (0.0, 0.0, -1.0), a, b, c)[0])  # beside
    assert math.isinf(ray_triangle((0.2, 0.3, 2.0), (1.0, 0.0, 0.0), a, b, c)[0])  # parallel


def test_random_hits_by_construction() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        corners, direction = rng.normal(size=(3, 3)), rng.normal(size=3)
        u, v = rng.uniform(-0.5, 1.5, size=2)
        t = rng.uniform(0.1, 3.0)
        origin = (1 - u - v) * corners[0] + u * corners[1] + v * corners[2] - t * direction
        found = ray_triangle(tuple(origin), tuple(direction), *map(tuple, corners))
        if min(u, v, 1 - u - v) > 1e-9:
            assert found[:3] == pytest.approx((t, u, v), rel=1e-6)
        elif min(u, v, 1 - u - v) < -1e-9:
            assert math.isinf(found[0])


def test_depth_inside_a_body() -> None:
    """A vertex just below the centre of one face of an icosahedron, one above it."""
    body, faces = icosahedron()
    face = body[faces[4]]
    centre = face.mean(axis=0)
    normal = centre / np.linalg.norm(centre)
    x = np.concatenate([body[:12], [0.95 * centre, 1.05 * centre]])
    rows = np.array([[vertex, *corners] for vertex in (12, 13) for corners in faces], np.int32)
    found = RayTriangle().find_contacts(x, x, rows, NO_PAIRS)
    np.testing.assert_array_equal(found.vertices, [[12, *faces[4]]])
    np.testing.assert_allclose(found.distances, [-0.05 * np.linalg.norm(centre)])
    np.testing.assert_allclose(found.normals, [normal], atol=1e-12)
    np.testing.assert_allclose(found.weights @ [1, 1, 1, 1], [0.0], atol=1e-15)
    assert len(RayTriangle(max_depth=0.01).find_contacts(x, x, rows, NO_PAIRS).times) == 0


def test_of_equally_near_triangles_the_first_decides() -> None:
    x = np.array([[0.0, 0.0, -0.5], [1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]])
    rows = np.array([[0, 1, 2, 3], [0, 1, 3, 2]], np.int32)
    found = RayTriangle().find_contacts(x, x, rows, NO_PAIRS)
    np.testing.assert_array_equal(found.vertices, rows[:1])
    assert len(RayTriangle().find_contacts(x, x, rows[::-1].copy(), NO_PAIRS).times) == 0
