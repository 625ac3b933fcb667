"""Who is next to whom in a triangle mesh, as arrays.

Everything is built by sorting, so 10^6 triangles take seconds. Index conventions: `ti`, `ei`, `vi` for triangles,
edges and vertices; -1 where there is none. Rows of variable length are CSR: row `i` of `items` is
`items[starts[i] : starts[i + 1]]`, in ascending order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Ints


class Csr(NamedTuple):
    """Rows of variable length: row `i` is `items[starts[i] : starts[i + 1]]`."""

    starts: Ints
    """(n + 1,) int32"""
    items: Ints
    """(starts[-1],) int32"""

    def row(self, i: int) -> Ints:
        return self.items[self.starts[i] : self.starts[i + 1]]


class Topology(NamedTuple):
    """Incidence of a manifold triangle mesh (each edge has one or two triangles)."""

    n_vertices: int
    triangles: Ints
    """(m, 3): vertices, anticlockwise seen from the front"""
    edges: Ints
    """(e, 2): vertices, the smaller first; sorted"""
    edge_triangles: Ints
    """(e, 2): the triangles at an edge, the smaller first; -1 in the second column at the border"""
    edge_opposite: Ints
    """(e, 2): the vertex of each of those triangles that is not on the edge; -1 at the border"""
    triangle_edges: Ints
    """(m, 3): edge k runs from corner k to corner k + 1"""
    vertex_triangles: Csr
    """triangles around each vertex"""
    vertex_neighbours: Csr
    """vertices joined to each vertex by an edge"""


def group_rows(keys: Ints, values: Ints, n_rows: int) -> Csr:
    """Collect `values` by `keys` into CSR rows, each in ascending order of value."""
    order = np.lexsort((values, keys))
    starts = np.zeros(n_rows + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n_rows), out=starts[1:])
    return Csr(starts.astype(np.int32), values[order].astype(np.int32))


def build_topology(triangles: Ints, n_vertices: int) -> Topology:
    """Build all incidence arrays of `triangles`.

    The mesh must have passed `mesh.check_mesh`: an edge with three triangles would lose one here.
    """
    m = len(triangles)
    half_edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    owner = np.tile(np.arange(m, dtype=np.int32), 3)
    opposite = np.concatenate([triangles[:, 2], triangles[:, 0], triangles[:, 1]])
    low, high = half_edges.min(axis=1).astype(np.int64), half_edges.max(axis=1).astype(np.int64)

    keys, edge_of_half = np.unique(low * n_vertices + high, return_inverse=True)
    edges = np.stack([keys // max(n_vertices, 1), keys % max(n_vertices, 1)], axis=1).astype(np.int32)
    by_edge = np.lexsort((owner, edge_of_half))
    counts = np.bincount(edge_of_half, minlength=len(keys))
    first = np.cumsum(counts) - counts
    edge_triangles = np.full((len(keys), 2), -1, np.int32)
    edge_opposite = np.full((len(keys), 2), -1, np.int32)
    edge_triangles[:, 0], edge_opposite[:, 0] = owner[by_edge[first]], opposite[by_edge[first]]
    inner = counts > 1
    edge_triangles[inner, 1] = owner[by_edge[first[inner] + 1]]
    edge_opposite[inner, 1] = opposite[by_edge[first[inner] + 1]]

    both_ends = np.concatenate([edges[:, 0], edges[:, 1]])
    other_ends = np.concatenate([edges[:, 1], edges[:, 0]])
    return Topology(
        n_vertices=n_vertices,
        triangles=np.ascontiguousarray(triangles, np.int32),
        edges=np.ascontiguousarray(edges),
        edge_triangles=edge_triangles,
        edge_opposite=edge_opposite,
        triangle_edges=np.ascontiguousarray(edge_of_half.reshape(3, m).T.astype(np.int32)),
        vertex_triangles=group_rows(triangles.ravel(), np.repeat(np.arange(m, dtype=np.int32), 3), n_vertices),
        vertex_neighbours=group_rows(both_ends, other_ends, n_vertices),
    )
