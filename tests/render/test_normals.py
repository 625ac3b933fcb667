"""Normals at corners: smooth where asked for, broken at creases."""

from __future__ import annotations

import numpy as np
import pytest
from tests.render.shapes import box, sphere

from weft.geometry.mesh import build_grid
from weft.render.normals import compute_corner_normals


def cosines(triangles, crease):
    return np.full(len(triangles), -2.0 if crease is None else np.cos(np.radians(crease)))


def face_normals(x, triangles):
    a, b, c = x[triangles].transpose(1, 0, 2)
    n = np.cross(b - a, c - a)
    return n / np.linalg.norm(n, axis=1, keepdims=True)


def test_a_box_keeps_flat_faces():
    x, triangles = box((1.0, 2.0, 3.0), (0.0, 0.0, 0.0))
    normals = compute_corner_normals(x, triangles, cosines(triangles, 40.0))
    assert normals == pytest.approx(np.repeat(face_normals(x, triangles)[:, None], 3, axis=1))


def test_cloth_is_smooth_over_every_edge():
    x, triangles = box((1.0, 2.0, 3.0), (0.0, 0.0, 0.0))
    normals = compute_corner_normals(x, triangles, cosines(triangles, None))
    for vertex in range(len(x)):
        at_vertex = normals[triangles == vertex]
        assert at_vertex == pytest.approx(np.tile(at_vertex[0], (len(at_vertex), 1)))
        assert (at_vertex[0] * x[vertex] > 0.0).all()  # outwards


def test_large_triangles_count_more():
    """Two walls of a roof, one twice as long: the ridge leans towards the larger one's normal, by area."""
    x = np.array([(0, -1, 0), (0, 1, 0), (2, 0, 0), (0, 0, -1)], float)
    triangles = np.array([[0, 2, 1], [0, 1, 3]], np.int32)
    normals = compute_corner_normals(x, triangles, cosines(triangles, None))
    expected = np.array([(0, 0, 4), (-2, 0, 0)]).sum(axis=0) / np.sqrt(20)
    assert normals[0, 0] == pytest.approx(expected) or normals[0, 0] == pytest.approx(expected * (1, 1, -1))


@pytest.mark.parametrize("crease", [40.0, None])
def test_a_sphere_is_round(crease):
    x, triangles = sphere(0.5, (0.0, 0.0, 0.0), 16)
    normals = compute_corner_normals(x, triangles, cosines(triangles, crease))
    # away from the poles, where the triangles are thin
    middle = np.abs(x[triangles][:, :, 2]).max(axis=1) < 0.4
    assert normals[middle] == pytest.approx(2.0 * x[triangles][middle], abs=0.02)


def test_triangles_without_area_take_the_normal_of_their_neighbours():
    mesh = build_grid((1.0, 1.0), (3, 3))
    x = mesh.positions.copy()
    x[4] = x[1]  # some triangles collapse
    normals = compute_corner_normals(x, mesh.triangles, cosines(mesh.triangles, None))
    assert np.isfinite(normals).all()
    assert np.linalg.norm(normals, axis=2) == pytest.approx(np.ones((len(mesh.triangles), 3)))
