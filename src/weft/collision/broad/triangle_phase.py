"""What the broad phases of the papers share: triangle pairs first, candidates from them.

Every vertex and every edge is owned by one triangle (the first that has it). The box of an owner holds the boxes of
what it owns, so where the boxes of a vertex and of a triangle touch, the pair of the vertex's owner and that triangle
is found; and since the owner is one, it is found once. The same holds for two edges and their two owners. No list has
to be sorted to remove duplicates.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Bytes, Ints, Longs
from weft.collision.broad import Candidates, Counters, CrossCandidates, TestedBoxes
from weft.collision.broad.boxes import (
    Boxes,
    build_boxes,
    corners,
    is_overlapping,
    refit_vertex_boxes,
    update_primitive_boxes,
)
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE, PairBuffer
from weft.errors import WeftError
from weft.geometry.mesh import Mesh
from weft.jit import kernel, prange
from weft.parameters import Parameters

VERTEX_TRIANGLE, TRIANGLE_VERTEX, EDGE_EDGE = 0, 1, 2


class Primitives(NamedTuple):
    """Vertices, edges and triangles of a mesh, their owners, and their boxes."""

    triangles: Ints
    """(m, 3)"""
    edges: Ints
    """(e, 2)"""
    owned_vertices: Ints
    """(m, 3): vertices that a triangle owns, -1 where it owns fewer"""
    owned_edges: Ints
    """(m, 3)"""
    vertex_boxes: Boxes
    edge_boxes: Boxes
    """up to date once candidates of edges have been asked for"""
    triangle_boxes: Boxes
    touched: Bytes
    """(m,): 1 where the last search looked at a triangle's box, kept by members without boxes of their own"""


def build_primitives(mesh: Mesh) -> Primitives:
    topology = mesh.topology
    return Primitives(
        triangles=topology.triangles,
        edges=topology.edges,
        owned_vertices=_first_seen(topology.triangles),
        owned_edges=_first_seen(topology.triangle_edges),
        vertex_boxes=build_boxes(mesh.n_vertices),
        edge_boxes=build_boxes(len(topology.edges)),
        triangle_boxes=build_boxes(len(topology.triangles)),
        touched=np.ones(len(topology.triangles), np.uint8),
    )


def _first_seen(rows: Ints) -> Ints:
    """`rows` with every value kept where it stands first, -1 elsewhere."""
    _, first = np.unique(rows, return_index=True)
    owned = np.full(rows.size, -1, np.int32)
    owned[first] = rows.ravel()[first]
    return owned.reshape(rows.shape)


@kernel
def add_vertex_triangle(
    a: Primitives,
    b: Primitives,
    pairs: Ints,
    first: int,
    last: int,
    side: int,
    is_self: bool,
    rows_out: Ints,
    at: int,
    end: int,
) -> int:
    """Write the vertices of a that triangles in column `side` of the pairs own and that touch the other triangle.

    A row has the vertex first, but where side 1 is a second mesh, which stays second. Returns the next row.
    """
    vertex_column = side if not is_self else 0
    for row in range(first, last):
        ta, tb = pairs[row, side], pairs[row, 1 - side]
        for k in range(3):
            vi = a.owned_vertices[ta, k]
            if vi < 0 or not is_overlapping(a.vertex_boxes, vi, b.triangle_boxes, tb):
                continue
            if is_self and (vi == b.triangles[tb, 0] or vi == b.triangles[tb, 1] or vi == b.triangles[tb, 2]):
                continue
            if at < end:
                rows_out[at, vertex_column], rows_out[at, 1 - vertex_column] = vi, tb
            at += 1
    return at


@kernel
def add_edge_edge(
    a: Primitives, b: Primitives, pairs: Ints, first: int, last: int, is_self: bool, rows_out: Ints, at: int, end: int
) -> int:
    """Write the touching edges that the two triangles of each pair own; return the next row."""
    for row in range(first, last):
        for i in range(3):
            ea = a.owned_edges[pairs[row, 0], i]
            if ea < 0:
                continue
            a0, a1 = a.edges[ea, 0], a.edges[ea, 1]
            for j in range(3):
                eb = b.owned_edges[pairs[row, 1], j]
                if eb < 0 or not is_overlapping(a.edge_boxes, ea, b.edge_boxes, eb):
                    continue
                b0, b1 = b.edges[eb, 0], b.edges[eb, 1]
                if is_self and (a0 in (b0, b1) or a1 in (b0, b1)):
                    continue
                if at < end:
                    rows_out[at, 0] = min(ea, eb) if is_self else ea
                    rows_out[at, 1] = max(ea, eb) if is_self else eb
                at += 1
    return at


@kernel(parallel=True)
def collect_candidates(
    a: Primitives,
    b: Primitives,
    pairs: Ints,
    kind: int,
    is_self: bool,
    starts: Longs,
    rows_out: Ints,
    counts_out: Longs,
) -> None:
    """Write the candidates of one kind that triangle pairs hold, in chunks of pairs."""
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        at, end = starts[chunk], starts[chunk + 1]
        first, last = chunk * len(pairs) // N_CHUNKS, (chunk + 1) * len(pairs) // N_CHUNKS
        if kind == EDGE_EDGE:
            at = add_edge_edge(a, b, pairs, first, last, is_self, rows_out, at, end)
        if kind == VERTEX_TRIANGLE:
            at = add_vertex_triangle(a, b, pairs, first, last, 0, is_self, rows_out, at, end)
        if kind == TRIANGLE_VERTEX or (is_self and kind == VERTEX_TRIANGLE):
            at = add_vertex_triangle(b, a, pairs, first, last, 1, is_self, rows_out, at, end)
        counts_out[chunk] = at - starts[chunk]


@kernel
def mark_distant(triangles: Ints, pairs: Ints, shared: int, keep_out: Bools) -> None:
    """Overwrite `keep_out`: True where two triangles have fewer than `shared` vertices in common."""
    for row in range(pairs.shape[0]):
        n = 0
        for i in range(3):
            for j in range(3):
                n += int(triangles[pairs[row, 0], i] == triangles[pairs[row, 1], j])
        keep_out[row] = n < shared


def apart_rows(triangles: Ints, rows: Ints) -> Ints:
    """Those of the pairs of triangles that have no vertex in common."""
    keep = np.empty(len(rows), np.bool_)
    mark_distant(triangles, rows, 1, keep)
    return rows[keep]


class TrianglePhase:
    """Base of the members that find triangle pairs. A member adds `_update`, `_search_self` and `_search`."""

    Parameters: ClassVar[type[Parameters]]
    complete = True
    can_widen = False

    def __init__(self, mesh: Mesh, parameters: Any = None) -> None:
        self.parameters: Any = parameters if parameters is not None else self.Parameters()
        self.mesh = mesh
        self.counters = Counters()
        self.primitives = build_primitives(mesh)
        self._buffers: dict[str, PairBuffer] = {}
        self._chunk_tests = np.zeros(N_CHUNKS, np.int64)

    def refit(
        self, x_t0: npt.ArrayLike, x_t1: npt.ArrayLike | None = None, margin: float = 0.0, even: bool = False
    ) -> None:
        p = self.primitives
        with self.counters.timed():
            self._ends = refit_vertex_boxes(x_t0, x_t1, margin, self.mesh.n_vertices, p.vertex_boxes)
            update_primitive_boxes(p.vertex_boxes, p.triangles, p.triangle_boxes)
            self._update(margin)

    def self_pairs(self) -> Ints:
        with self.counters.timed():
            return self._found(self._search_self())

    def apart_pairs(self) -> Ints:
        with self.counters.timed():
            return self._found(self._search_apart())

    def pairs(self, other: Self) -> Ints:
        if type(other) is not type(self):
            raise WeftError(f"{type(self).__name__}: expected another of its kind to search against, got {other!r}")
        with self.counters.timed():
            return self._found(self._search(other))

    def candidates(self, marks: Bools | None = None) -> Candidates:
        pairs = self.self_pairs()
        with self.counters.timed():
            rows = Candidates(*(self._candidates(self, pairs, kind) for kind in (VERTEX_TRIANGLE, EDGE_EDGE)))
            if marks is not None:
                edges, triangles = self._marked(marks)
                first, second = rows.vertex_triangle.T
                one, other = rows.edge_edge.T
                rows = Candidates(
                    rows.vertex_triangle[marks[first] | triangles[second]], rows.edge_edge[edges[one] | edges[other]]
                )
            return Candidates(*map(self._found, rows))

    def _marked(self, marks: Bools) -> tuple[Bools, Bools]:
        """Which edges (e,) and triangles (m,) have a marked vertex."""
        p = self.primitives
        edges, triangles = np.zeros(len(p.edges), np.bool_), np.zeros(len(p.triangles), np.bool_)
        marks[p.edges].any(axis=1, out=edges)
        marks[p.triangles].any(axis=1, out=triangles)
        return edges, triangles

    def candidates_of(self, pairs: Ints) -> Candidates:
        """Candidates within the mesh of the given pairs of triangles, which a filter may have thinned out.

        An owner may be gone while another triangle at the same vertex is still there, so all vertices and edges of
        the pairs count here, and duplicates are removed by sorting.
        """
        everything = self.primitives._replace(
            owned_vertices=self.primitives.triangles, owned_edges=self.mesh.topology.triangle_edges
        )
        pairs = np.ascontiguousarray(pairs, np.int32)
        with self.counters.timed():
            found = [self._collect(everything, everything, pairs, kind) for kind in (VERTEX_TRIANGLE, EDGE_EDGE)]
            return Candidates(*(self._found(unique_rows(rows)) for rows in found))

    def candidates_with(self, other: Self, marks: Bools | None = None) -> CrossCandidates:
        pairs = self.pairs(other)
        with self.counters.timed():
            rows = [self._candidates(other, pairs, kind) for kind in (VERTEX_TRIANGLE, TRIANGLE_VERTEX, EDGE_EDGE)]
            if marks is not None:
                edges, triangles = self._marked(marks)
                rows = [part[own[part[:, 0]]] for part, own in zip(rows, (marks, triangles, edges), strict=True)]
            return CrossCandidates(*map(self._found, rows))

    def tested_boxes(self) -> TestedBoxes:
        """Boxes of the triangles, which are the whole structure unless a member has more."""
        lower, upper = corners(self.primitives.triangle_boxes)
        return TestedBoxes(lower, upper, np.zeros(len(lower), np.int32), self.primitives.touched != 0)

    def memory(self) -> int:
        arrays = [array for array in self.primitives if isinstance(array, np.ndarray)]
        return sum(array.nbytes for array in arrays) + sum(buffer.nbytes for buffer in self._buffers.values())

    def _update(self, margin: float) -> None:
        """Refit the member's own structure to the new triangle boxes."""

    def _search_self(self) -> Ints:
        raise NotImplementedError

    def _search_apart(self) -> Ints:
        return apart_rows(self.primitives.triangles, self._search_self())

    def _search(self, other: Self) -> Ints:
        raise NotImplementedError

    def _found(self, rows: Ints) -> Ints:
        self.counters.pairs_found += len(rows)
        return rows

    def _buffer(self, kind: str) -> PairBuffer:
        return self._buffers.setdefault(kind, PairBuffer(len(self.mesh.triangles)))

    def _candidates(self, other: Self, pairs: Ints, kind: int) -> Ints:
        return self._collect(self.primitives, other.primitives, pairs, kind)

    def _collect(self, a: Primitives, b: Primitives, pairs: Ints, kind: int) -> Ints:
        is_self = a is b
        if kind == EDGE_EDGE:
            for p in (a,) if is_self else (a, b):
                update_primitive_boxes(p.vertex_boxes, p.edges, p.edge_boxes)
        return self._buffer(f"candidates {kind} {is_self}").fill(
            lambda starts, rows_out, counts_out: collect_candidates(
                a, b, pairs, kind, is_self, starts, rows_out, counts_out
            )
        )


def unique_rows(rows: Ints) -> Ints:
    """Rows of two indices without duplicates, sorted."""
    keys = np.unique(rows[:, 0].astype(np.int64) << 32 | rows[:, 1])
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1).astype(np.int32)
