"""The cloths as one surface: its pieces, borders and normals."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from weft.arrays import Bools, Floats, Ints, Longs
from weft.geometry.edges import edge_lengths
from weft.geometry.mesh import Mesh

SHORTEST = 1e-12  # [m] of an edge, where lengths are weights or divide something


class Surface:
    """All cloths as one mesh, with what does not change while they are untangled."""

    def __init__(self, cloth: Mesh) -> None:
        self.mesh, self.topology, self.n = cloth, cloth.topology, cloth.n_vertices
        edges = self.topology.edges
        self.is_border = self.topology.edge_triangles[:, 1] < 0
        self._edge_keys = edges[:, 0].astype(np.int64) * self.n + edges[:, 1]

    @cached_property
    def edge_lengths(self) -> Floats:
        """(e,) at rest [m]"""
        return edge_lengths(self.mesh.positions, self.topology.edges)

    @cached_property
    def mean_edge(self) -> float:
        """The mean length of an edge at rest [m]."""
        return float(self.edge_lengths.mean())

    @cached_property
    def areas(self) -> Floats:
        """(n,) of the cloth around each vertex at rest [m2]"""
        corners = self.mesh.positions[self.mesh.triangles]
        area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 6.0
        return np.bincount(self.mesh.triangles.ravel(), np.repeat(area, 3), minlength=self.n).astype(np.float64)

    @cached_property
    def pieces(self) -> Ints:
        """(n,) number of the connected piece of each vertex, in the order of the first vertices"""
        edges = self.topology.edges
        return connected_components(graph(edges, self.n), directed=False)[1]

    @cached_property
    def _border_ways(self) -> tuple[Floats, Ints]:
        """How far (n,) [m] each vertex is from the nearest border, and the next vertex (n,) on the way there."""
        border = np.unique(self.topology.edges[self.is_border])
        lengths = graph(self.topology.edges, self.n, np.maximum(self.edge_lengths, SHORTEST))
        far, following, _ = dijkstra(lengths, directed=False, indices=border, return_predecessors=True, min_only=True)
        return far, following

    def edge_of(self, ends: Ints) -> Longs:
        """(k,): the edges between the vertices `ends` (k, 2), the smaller first."""
        found: Longs = np.searchsorted(self._edge_keys, ends[:, 0].astype(np.int64) * self.n + ends[:, 1])
        return found

    def connected(self, vertices: Ints) -> list[Ints]:
        """The parts of `vertices` (k,) that edges between them hold together."""
        chosen = np.zeros(self.n, bool)
        chosen[vertices] = True
        edges = self.topology.edges[chosen[self.topology.edges].all(axis=1)]
        part = connected_components(graph(edges, self.n), directed=False)[1][vertices]
        return [vertices[part == label] for label in np.unique(part)]

    def way_to_border(self, ti: int) -> tuple[list[int], float]:
        """The vertices from triangle `ti` to the nearest border, along edges, and how far [m] it is."""
        corners = self.mesh.triangles[ti]
        far, following = self._border_ways
        way = [int(corners[np.argmin(far[corners])])]
        while following[way[-1]] >= 0:
            way.append(int(following[way[-1]]))
        return way, float(far[way[0]])

    def are_neighbours(self, first: Ints, second: Ints) -> Bools:
        """(k,): whether an edge joins one of the vertices `first` (k, a) to one of `second` (k, b)."""
        joined = np.zeros(len(first), bool)
        for a in first.T:
            for b in second.T:
                keys = np.minimum(a, b).astype(np.int64) * self.n + np.maximum(a, b)
                at = np.minimum(np.searchsorted(self._edge_keys, keys), len(self._edge_keys) - 1)
                joined |= self._edge_keys[at] == keys
        return joined

    def normals(self, x: Floats) -> Floats:
        """(m, 3): unit normals of the triangles, 0 where one has no area."""
        corners = x[self.mesh.triangles]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        size = np.linalg.norm(normals, axis=1, keepdims=True)
        unit: Floats = np.divide(normals, size, out=np.zeros_like(normals), where=size > 0.0)
        return unit

    def vertex_normals(self, x: Floats) -> Floats:
        """(n, 3): mean normals of the triangles around each vertex."""
        normals, total = self.normals(x), np.zeros((self.n, 3))
        for corner in self.mesh.triangles.T:
            np.add.at(total, corner, normals)
        size = np.linalg.norm(total, axis=1, keepdims=True)
        unit: Floats = np.divide(total, size, out=np.zeros_like(total), where=size > 0.0)
        return unit


def graph(links: Ints | Longs, n: int, lengths: Floats | None = None) -> csr_array:
    """A graph of `n` nodes in which `links` (k, 2) join two each."""
    values = np.ones(len(links)) if lengths is None else lengths
    return coo_array((values, (links[:, 0], links[:, 1])), shape=(n, n)).tocsr()
