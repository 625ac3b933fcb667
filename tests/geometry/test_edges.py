from __future__ import annotations

import numpy as np

from weft.geometry.edges import edge_lengths, mark_rings, overstretched
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
