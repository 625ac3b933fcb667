from __future__ import annotations

import numpy as np

from weft.geometry.edges import edge_lengths, edges_at, lengthened, lengths_along, mark_rings, overstretched
from weft.geometry.mesh import build_grid


def test_edges_are_overstretched_that_are_long_and_became_so():
    x = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])
    edges = np.array([[0, 1], [1, 2], [2, 3]], np.int32)
    rest = np.array([1.0, 0.9, 1.0])
    end = x + np.array([[0.0, 0, 0], [0.15, 0, 0], [0.15, 0, 0], [0.2, 0, 0]])
    np.testing.assert_allclose(edge_lengths(end, edges), [1.15, 1.0, 1.05])
    assert overstretched(x, end, edges, rest, np.full(3, 0.1)).tolist() == [0]
    assert overstretched(x, end, edges, rest, np.full(3, 0.04)).tolist() == [0, 2]
    assert overstretched(x, end, edges, rest, np.array([0.16, 0.04, 0.04])).tolist() == [2]
    assert overstretched(end, end, edges, rest, np.full(3, 0.04)).tolist() == []


def test_edges_that_turned_are_longer_than_along_the_way_they_had():
    """Of four edges from the origin, one is pulled, one turns, one does both, and one turns while it is short."""
    about = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 2], [0.5, 0, 0]])
    edges = np.array([[0, 1], [2, 0], [0, 3], [0, 4]], np.int32)
    rest = np.array([1.0, 1.0, 2.0, 1.0])
    end = np.array([[0.0, 0, 0], [1.2, 0, 0], [0.4, 1, 0], [0, 0.8, 2.4], [0.5, 0.5, 0]])
    along = lengths_along(about, end, edges)
    np.testing.assert_allclose(along, [1.2, 1.0, 2.4, 0.5])
    excess = (edge_lengths(end, edges) - np.maximum(along, rest)) / rest
    np.testing.assert_allclose(excess, [0.0, 0.0770, 0.0649, -0.2929], atol=1e-4)
    for share in (0.01, 0.07, 0.1):
        assert lengthened(about, end, edges, rest, share).tolist() == np.flatnonzero(excess > share).tolist()
    assert lengths_along(np.zeros((5, 3)), end, edges).tolist() == [0.0] * 4


def test_edges_at_marked_vertices():
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]], np.int32)
    marks = np.array([False, True, True, False])
    assert edges_at(edges, marks, both=False).tolist() == [0, 1, 2]
    assert edges_at(edges, marks, both=True).tolist() == [1]
    assert edges_at(edges, np.zeros(4, np.bool_), both=False).tolist() == []


def test_rings_are_marked_edge_by_edge():
    mesh = build_grid((1.0, 1.0), (9, 9))
    marks = np.zeros(81, np.bool_)
    marks[40] = True
    neighbours = mesh.topology.vertex_neighbours
    expected = marks.copy()
    for rings in range(5):
        found = marks.copy()
        mark_rings(*neighbours, rings, found)
        np.testing.assert_array_equal(found, expected)
        for i in np.flatnonzero(expected):
            expected[neighbours.row(i)] = True
