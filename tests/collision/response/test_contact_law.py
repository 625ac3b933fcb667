"""Which pairs push: edges do where vertices do not already."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collision.response.soups import begun

from weft.collision.response.dividing_planes import DividingPlanes
from weft.geometry.mesh import Mesh, build_grid

REACH = 0.01  # [m] contact distance of `begun`


def springs_at_rest(mesh):
    """The vertices (m, 4) of the springs of cloth that stays: those of a vertex, and those of two edges."""
    response = begun(DividingPlanes, mesh, mesh.positions)
    springs = response.constraints().springs
    is_vertex = (springs.weights == 1.0).sum(axis=1) == 1
    return springs.vertices[is_vertex], springs.vertices[~is_vertex]


def joined(parts):
    x = np.concatenate([part.positions for part in parts])
    firsts = np.cumsum([0, *(part.n_vertices for part in parts)])
    triangles = [part.triangles + np.int32(first) for part, first in zip(parts, firsts, strict=False)]
    return Mesh(x, np.concatenate(triangles))


def two_layers():
    """A sheet of 1 m and, just above it, a smaller one that is turned."""
    wide, small = build_grid((1.0, 1.0), (9, 9)), build_grid((0.5, 0.5), (5, 5))
    c, s = np.cos(0.4), np.sin(0.4)
    turned = small.positions @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return joined([wide, Mesh(turned + np.array([0.01, 0.02, 0.9 * REACH]), small.triangles)])


def test_edges_of_flat_layers_repeat_what_their_vertices_bear():
    at_vertices, at_edges = springs_at_rest(two_layers())
    assert set(range(81, 106)) <= set(at_vertices[:, 0].tolist()), "each vertex of the smaller sheet bears"
    assert len(at_edges) == 0, "and so do both ends of each of its edges"


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("end", [0, 1])
def test_an_edge_with_an_end_that_does_not_bear_pushes(end, is_first):
    """One end of the upper edge is above a triangle, and the other beside it."""
    below = Mesh(np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, -2.0, 0.0]]), np.array([[0, 1, 2]], np.int32))
    ends = np.array([[0.0, -0.2, 0.8 * REACH], [0.0, 0.2, 0.8 * REACH]])
    order = ends if end == 0 else ends[::-1]
    above = Mesh(np.concatenate([order, [[0.0, 0.0, 1.0]]]), np.array([[0, 1, 2]], np.int32))
    at_vertices, at_edges = springs_at_rest(joined([above, below] if is_first else [below, above]))
    assert at_vertices[:, 0].tolist() == [end if is_first else 3 + end]
    assert len(at_edges) == 1


@pytest.mark.parametrize(("height", "pushes"), [(0.5, True), (0.05, False)])
def test_edges_that_are_nearer_than_their_ends_push(height, pushes):
    """Both ends of an edge bear on a floor of cloth; between them it crosses the ridge of a fold, higher than that."""
    floor = Mesh(np.array([[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [0.0, 9.0, 0.0]]), np.array([[0, 1, 2]], np.int32))
    z = 0.9 * REACH
    above = Mesh(np.array([[-0.5, 0.0, z], [0.5, 0.0, z], [0.0, 0.0, 1.0]]), np.array([[0, 1, 2]], np.int32))
    ridge = Mesh(
        np.array([[0.0, -3.0, height * REACH], [0.0, 3.0, height * REACH], [0.0, -9.1, -1.0]]),
        np.array([[0, 1, 2]], np.int32),
    )
    at_vertices, at_edges = springs_at_rest(joined([floor, above, ridge]))
    assert {3, 4} <= set(at_vertices[:, 0].tolist())
    crossing = [row for row in at_edges.tolist() if set(row) == {3, 4, 6, 7}]
    assert len(crossing) == int(pushes)


def test_edges_push_where_a_vertex_bears_on_another_side():
    """The ends of an upper edge bear on what is above them; between them it crosses an edge below."""
    above = Mesh(np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 3.0, 0.0]]), np.array([[0, 1, 2]], np.int32))
    z = 0.5 * REACH
    roof = Mesh(np.array([[-9.0, -9.0, z], [9.0, -9.0, z], [0.0, 9.0, z]]), np.array([[0, 1, 2]], np.int32))
    ridge = Mesh(np.array([[0.0, -3.0, -z], [0.0, 3.0, -z], [0.0, -3.0, -1.0]]), np.array([[0, 1, 2]], np.int32))
    at_vertices, at_edges = springs_at_rest(joined([above, roof, ridge]))
    assert {0, 1} <= set(at_vertices[:, 0].tolist())
    assert [row for row in at_edges.tolist() if set(row) == {0, 1, 6, 7}]
