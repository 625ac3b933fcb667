"""Pairs of features that may come near each other in a step, with their closest points: what responses share.

A pair is a vertex and a triangle, or two edges, of the cloth with itself or with bodies, whose vertices follow those of
the cloth. The broad phase names them, and `measured` says how far apart they are and along which normal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Bytes, Floats, Ints
from weft.collision.broad import Candidates, CrossCandidates
from weft.collision.narrow.proximity import (
    EDGE_EDGE,
    NODE_TRIANGLE,
    closest_edge_edge,
    closest_vertex_triangle,
    spanned_normal,
    unit_normal,
)
from weft.collision.response import Surroundings
from weft.geometry.rows import mean_way
from weft.geometry.vectors import Vector
from weft.jit import kernel, prange

ASIDE = 1e-5  # edges: a vertex that is no further beside a triangle is above it, as on the border of a stack of sheets
KEPT = 0.1  # of the contact distance: pairs that can come nearer than this are looked at
SLOW = 2.0  # of the contact distance: vertices that go no further have short paths, whose boxes are quicker to test
FEW = 0.05  # of all vertices: boxes are widened for them, rather than all be fitted anew
CHUNKS = 32
NO_MARKS = np.zeros(0, np.uint8)


class Pairs(NamedTuple):
    """Candidates: a vertex and a triangle, or two edges. Vertices of bodies follow those of the cloth."""

    rows: Ints
    """(k, 4) their vertices"""
    edges: bool
    normals: Floats
    """(k, 3) from the closest point of the second side to that of the first"""
    gaps: Floats
    """(k,) distance of the closest points"""
    weights: Floats
    """(k, 4) signed weights of the closest points"""
    bears: Bools
    """(k,) it pushes if it is too near: its closest points lie inside both features, or it is pressed hard"""

    def select(self, keep: Bools) -> Pairs:
        return Pairs(
            self.rows[keep], self.edges, self.normals[keep], self.gaps[keep], self.weights[keep], self.bears[keep]
        )


class CandidateRows(NamedTuple):
    """What a broad phase found: pairs of a vertex or an edge with what `seconds` says are triangles or edges."""

    pairs: Ints
    """(k, 2)"""
    edges: Ints
    """(e, 2) of the cloth"""
    seconds: Ints
    """(m, 3) or (m, 2)"""
    is_edges: bool


class PairFinder:
    """Candidates of the cloth with itself and with bodies, and their closest points."""

    def __init__(self, surroundings: Surroundings, pressed: float) -> None:
        """All pairs nearer than `pressed` times the contact distance bear."""
        cloth, bodies = surroundings.cloth, surroundings.bodies
        self._n = cloth.n_vertices
        self.reach = float(surroundings.clearance.max())
        self.pressed = pressed * self.reach
        self._cloth_phase = surroundings.broad(cloth)
        self._body_phase = None if bodies is None else surroundings.broad(bodies)
        self._triangles, self._edges = cloth.triangles, cloth.topology.edges
        self._paths: tuple[Floats, Floats, float] | None = None  # to be looked at, where the boxes do not hold them yet
        self._holds_likely = False  # the boxes hold what `search` was asked for,
        self._holds_ends = False  # or where all vertices without a mark go,
        self._are_even = False  # each at its time of the step, if it goes there at an even pace
        self._of_bodies: tuple[bytes, bytes, float, bool] | None = None  # what the boxes of bodies hold
        if bodies is not None:
            self._body_triangles = bodies.triangles + np.int32(self._n)
            self._body_edges = bodies.topology.edges + np.int32(self._n)

    def search(self, x_t0: Floats, x_t1: Floats, margin: float) -> None:
        """Look for candidates: all that can cross while every vertex goes straight to somewhere near `x_t1`.

        That is no further from it than half of `margin` [m] along each axis.
        """
        self._refit(x_t0, x_t1, margin, even=True)
        self._holds_likely = True
        self._candidates = self._find()

    def _refit(self, x_t0: Floats, x_t1: Floats, margin: float, even: bool) -> None:
        n, self._holds_likely = self._n, False
        even = self._are_even = even and mean_way(x_t0[:n], x_t1[:n]) > SLOW * self.reach
        self._cloth_phase.refit(x_t0[:n], x_t1[:n], margin, even)
        of_bodies = x_t0[n:].tobytes(), x_t1[n:].tobytes(), margin, even
        if self._body_phase is not None and of_bodies != self._of_bodies:  # most bodies stay where they are
            self._body_phase.refit(x_t0[n:], x_t1[n:], margin, even)
            self._of_bodies = of_bodies

    def _find(self, marks: Bools | None = None) -> list[CandidateRows]:
        own, body_phase = self._cloth_phase.candidates(marks), self._body_phase
        return self._rows(own, None if body_phase is None else self._cloth_phase.candidates_with(body_phase, marks))

    def _rows(self, own: Candidates, cross: CrossCandidates | None) -> list[CandidateRows]:
        rows = [
            CandidateRows(own.vertex_triangle, self._edges, self._triangles, False),
            CandidateRows(own.edge_edge, self._edges, self._edges, True),
        ]
        if cross is None:
            return rows
        through = cross.triangle_vertex[:, ::-1] + np.array([self._n, 0], np.int32)
        return [
            CandidateRows(cross.vertex_triangle, self._edges, self._body_triangles, False),
            *rows,
            CandidateRows(through, self._edges, self._triangles, False),
            CandidateRows(cross.edge_edge, self._edges, self._body_edges, True),
        ]

    def near(self, x_t0: Floats, x_t1: Floats, x_free: Floats, margin: float) -> tuple[tuple[Pairs, Pairs], int]:
        """Vertex-triangle and edge-edge pairs; the first of the former, so many, are a cloth vertex on a body.

        They are the candidates that can cross if every vertex goes straight to a place that is no further than half of
        `margin` [m] from its end, along each axis, and those that would meet on the way to `x_free`.
        """
        spaces, margin = (self.reach, KEPT * self.reach), 0.5 * margin
        rows = [near_rows(*part, x_t0, x_t1, x_free, margin, spaces, False, NO_MARKS) for part in self._candidates]
        return self._measured(x_t0, x_free, rows), 0 if self._body_phase is None else len(rows[0])

    def near_marked(self, x_t0: Floats, x_t1: Floats, margin: float, marks: Bytes) -> tuple[Pairs, ...]:
        """All that can cross and have a vertex of the cloth with the mark 1; every vertex goes straight to `x_t1`.

        Those without a mark end no further from where `search` had them go than it allows. `along_paths` then looks at
        these paths.
        """
        self._paths, self._holds_ends = (x_t0, x_t1, margin), self._holds_likely
        if not marks.any():
            return ()
        if not (self._holds_likely and self._widen(x_t0, x_t1, margin, marks)):
            self._refit(x_t0, x_t1, margin, even=True)
        self._holds_ends = True
        return self._near_of(x_t0, x_t1, marks, may_stop=False)

    def set_paths(self, x_t0: Floats, x_t1: Floats, margin: float) -> None:
        """Have `along_paths` look at other paths, from where the last ones ended: only marked vertices go on."""
        self._paths = x_t0, x_t1, margin

    def along_paths(self, x_t0: Floats, x_t1: Floats, marks: Bytes) -> tuple[Pairs, Pairs]:
        """All that can cross and have a vertex of the cloth with the mark 1.

        Every vertex goes straight towards `x_t1`, along a part of its path; those with a mark may stop on their way.
        Those with the mark 2 had the mark 1 before, and their pairs are known; but where boxes move, not those of which
        another vertex did not have a mark then: it was taken to go all the way.
        """
        if self._paths is not None and not (self._holds_ends and self._widen(*self._paths, marks)):
            self._refit(*self._paths, even=False)
            self._paths, self._holds_ends = None, True
        if self._are_even:
            marks = (marks == 1).view(np.uint8)
        return self._near_of(x_t0, x_t1, marks, may_stop=True)

    def _widen(self, x_t0: Floats, x_t1: Floats, margin: float, marks: Bytes) -> bool:
        """Have the boxes hold the ways of vertices with the mark 1, if these are few; False where they are not."""
        phase, which = self._cloth_phase, marks[: self._n] == 1
        if not phase.can_widen or np.count_nonzero(which) > FEW * self._n:
            return False
        phase.widen(which, x_t0[: self._n], x_t1[: self._n], margin)
        return True

    def _near_of(self, x_t0: Floats, x_t1: Floats, marks: Bytes, may_stop: bool) -> tuple[Pairs, Pairs]:
        spaces = KEPT * self.reach, KEPT * self.reach
        candidates = self._find(marks[: self._n] == 1)
        rows = [near_rows(*part, x_t0, x_t1, x_t1, 0.0, spaces, may_stop, marks) for part in candidates]
        return self._measured(x_t0, x_t1, rows)

    def _measured(self, x_t0: Floats, x_t1: Floats, rows: list[Ints]) -> tuple[Pairs, Pairs]:
        by_kind = [
            np.concatenate([part for part, of in zip(rows, self._candidates, strict=True) if of.is_edges is is_edges])
            for is_edges in (False, True)
        ]
        return (
            measured(x_t0, x_t1, by_kind[0], False, self.reach, self.pressed),
            measured(x_t0, x_t1, by_kind[1], True, self.reach, self.pressed),
        )


@kernel(inline=True)
def _vertices(pairs: Ints, q: int, edges: Ints, seconds: Ints, is_edges: bool) -> tuple[int, int, int, int]:
    """The vertices of both sides of pair q: an edge and an edge, or a vertex and a triangle."""
    a, b = pairs[q, 0], pairs[q, 1]
    if is_edges:
        return edges[a, 0], edges[a, 1], seconds[b, 0], seconds[b, 1]
    return a, seconds[b, 0], seconds[b, 1], seconds[b, 2]


@kernel(inline=True)
def _lowest(x_t0: Floats, x_t1: Floats, i: int, nx: float, ny: float, nz: float) -> float:
    """The lowest place along a direction that a vertex has in the box around its path."""
    x, y, z = min(x_t0[i, 0] * nx, x_t1[i, 0] * nx), min(x_t0[i, 1] * ny, x_t1[i, 1] * ny), x_t0[i, 2] * nz
    return float(x + y + min(z, x_t1[i, 2] * nz))


@kernel(inline=True)
def _highest(x_t0: Floats, x_t1: Floats, i: int, nx: float, ny: float, nz: float) -> float:
    x, y, z = max(x_t0[i, 0] * nx, x_t1[i, 0] * nx), max(x_t0[i, 1] * ny, x_t1[i, 1] * ny), x_t0[i, 2] * nz
    return float(x + y + max(z, x_t1[i, 2] * nz))


@kernel(inline=True)
def _between(x: Floats, i: int, j: int, k: int, m: int, is_edges: bool) -> Vector:
    """A direction in which the second side is likely to lie before the first, of any length.

    From the middle of the triangle to the vertex, or from the middle of an edge to the nearest end of the other.
    """
    ix, iy, iz = x[i, 0], x[i, 1], x[i, 2]
    jx, jy, jz = x[j, 0], x[j, 1], x[j, 2]
    kx, ky, kz = x[k, 0], x[k, 1], x[k, 2]
    mx, my, mz = x[m, 0], x[m, 1], x[m, 2]
    if not is_edges:
        return ix - (jx + kx + mx) / 3.0, iy - (jy + ky + my) / 3.0, iz - (jz + kz + mz) / 3.0
    px, py, pz = 0.5 * (ix + jx), 0.5 * (iy + jy), 0.5 * (iz + jz)
    qx, qy, qz = 0.5 * (kx + mx), 0.5 * (ky + my), 0.5 * (kz + mz)
    ax, ay, az, a = ix - qx, iy - qy, iz - qz, (ix - qx) ** 2 + (iy - qy) ** 2 + (iz - qz) ** 2
    bx, by, bz, b = jx - qx, jy - qy, jz - qz, (jx - qx) ** 2 + (jy - qy) ** 2 + (jz - qz) ** 2
    if b < a:
        ax, ay, az, a = bx, by, bz, b
    cx, cy, cz, c = px - kx, py - ky, pz - kz, (px - kx) ** 2 + (py - ky) ** 2 + (pz - kz) ** 2
    dx, dy, dz, d = px - mx, py - my, pz - mz, (px - mx) ** 2 + (py - my) ** 2 + (pz - mz) ** 2
    if d < c:
        cx, cy, cz, c = dx, dy, dz, d
    if c < a:
        return cx, cy, cz
    return ax, ay, az


@kernel(inline=True)
def _are_apart(
    x_t0: Floats,
    x_t1: Floats,
    i: int,
    j: int,
    k: int,
    m: int,
    is_edges: bool,
    nx: float,
    ny: float,
    nz: float,
    margin: float,
    spaces: tuple[float, float],
) -> bool:
    """Whether two sides have free space along a direction at both ends of their paths, and so all the way."""
    size = math.sqrt(nx * nx + ny * ny + nz * nz)
    if not free_space(x_t0, i, j, k, m, is_edges, nx, ny, nz) > spaces[0] * size:
        return False
    left = free_space(x_t1, i, j, k, m, is_edges, nx, ny, nz) - 2.0 * margin * (abs(nx) + abs(ny) + abs(nz))
    return bool(left > spaces[1] * size)


@kernel(inline=True)
def _stay_apart(
    x_t0: Floats,
    x_t1: Floats,
    i: int,
    j: int,
    k: int,
    m: int,
    is_edges: bool,
    nx: float,
    ny: float,
    nz: float,
    space: float,
) -> bool:
    """Whether two sides have free space along a direction wherever their vertices are in the boxes of their paths."""
    low, high = _lowest(x_t0, x_t1, i, nx, ny, nz), _highest(x_t0, x_t1, m, nx, ny, nz)
    if is_edges:
        low = min(low, _lowest(x_t0, x_t1, j, nx, ny, nz))
    else:
        high = max(high, _highest(x_t0, x_t1, j, nx, ny, nz))
    high = max(high, _highest(x_t0, x_t1, k, nx, ny, nz))
    return bool(low - high > space * math.sqrt(nx * nx + ny * ny + nz * nz))


@kernel(parallel=True)
def near_rows(
    pairs: Ints,
    edges: Ints,
    seconds: Ints,
    is_edges: bool,
    x_t0: Floats,
    x_t1: Floats,
    x_free: Floats,
    margin: float,
    spaces: tuple[float, float],
    may_stop: bool,
    marks: Bytes,
) -> Ints:
    """The vertices (k, 4) of each pair that may come nearer than `spaces` [m], at the start and on the way.

    Where vertices have `marks`, only pairs count that have one with the mark 1, and none with the mark 2.

    Neighbours in the mesh are the most of all pairs whose boxes touch. They drop out: they move together, and along the
    line between their middles one is before the other at the start and at the end, which may be off by `margin` [m]
    along each axis; if it may, then at `x_free`, too. Where vertices `may_stop` on their way, the boxes around their
    paths have to be apart.
    """
    n = len(pairs)
    keep = np.empty(n, np.bool_)
    counts = np.zeros(CHUNKS + 1, np.int64)
    for chunk in prange(CHUNKS):
        count = 0
        for q in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            i, j, k, m = _vertices(pairs, q, edges, seconds, is_edges)
            if len(marks) > 0 and max(max(marks[i], marks[j]), max(marks[k], marks[m])) != 1:
                keep[q] = False
                continue
            nx, ny, nz = _between(x_t0, i, j, k, m, is_edges)
            if may_stop:
                keep[q] = not _stay_apart(x_t0, x_t1, i, j, k, m, is_edges, nx, ny, nz, spaces[1])
            else:
                keep[q] = not _are_apart(x_t0, x_t1, i, j, k, m, is_edges, nx, ny, nz, margin, spaces)
                if margin > 0.0 and not keep[q]:
                    keep[q] = not free_space(x_free, i, j, k, m, is_edges, nx, ny, nz) > 0.0
            count += int(keep[q])
        counts[chunk + 1] = count
    for chunk in range(CHUNKS):
        counts[chunk + 1] += counts[chunk]
    rows = np.empty((counts[CHUNKS], 4), np.int32)
    for chunk in prange(CHUNKS):
        at = counts[chunk]
        for q in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            if keep[q]:
                rows[at, 0], rows[at, 1], rows[at, 2], rows[at, 3] = _vertices(pairs, q, edges, seconds, is_edges)
                at += 1
    return rows


def measured(x_t0: Floats, x_t1: Floats, rows: Ints, edges: bool, reach: float, pressed: float) -> Pairs:
    """The pairs of `rows` (k, 4) with their closest points at `x_t0`; all that are nearer than `pressed` [m] bear.

    Those that stay further apart than `reach` [m] along the line between their middles (see `_between`), at `x_t0` and
    at `x_t1`, are not worth the search: that line is their normal, and the space along it their gap.
    """
    k = len(rows)
    pairs = Pairs(rows, edges, np.empty((k, 3)), np.empty(k), np.empty((k, 4)), np.empty(k, np.bool_))
    update_closest(x_t0, x_t1, rows, edges, reach, pressed, pairs.normals, pairs.gaps, pairs.weights, pairs.bears)
    return pairs


@kernel(inline=True)
def free_space(x: Floats, i: int, j: int, k: int, m: int, edges: bool, nx: float, ny: float, nz: float) -> float:
    """How far the sides are apart along the normal; negative where they overlap."""
    low, high = bounds(
        along(x, i, nx, ny, nz), along(x, j, nx, ny, nz), along(x, k, nx, ny, nz), along(x, m, nx, ny, nz), edges
    )
    return low - high


@kernel(inline=True)
def _is_above(x: Floats, j: int, k: int, m: int, rx: float, ry: float, rz: float) -> bool:
    """Whether r, from the closest point of a triangle, stands on it but for `ASIDE`."""
    nx, ny, nz = spanned_normal(x, j, j, k, m, False)
    size_sq, up = nx * nx + ny * ny + nz * nz, rx * nx + ry * ny + rz * nz
    aside_sq = (rx * rx + ry * ry + rz * rz) * size_sq - up * up
    return bool(aside_sq <= ASIDE * ASIDE * size_sq * math.sqrt(size_sq))


@kernel(parallel=True)
def update_closest(
    x_t0: Floats,
    x_t1: Floats,
    rows: Ints,
    edges: bool,
    reach: float,
    pressed: float,
    normals_out: Floats,
    gaps_out: Floats,
    weights_out: Floats,
    bears_out: Bools,
) -> None:
    """Overwrite what `Pairs` says of each row of `rows`."""
    x = x_t0
    for q in prange(len(rows)):
        i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        nx, ny, nz = _between(x, i, j, k, m, edges)
        size = math.sqrt(nx * nx + ny * ny + nz * nz)
        space = free_space(x, i, j, k, m, edges, nx, ny, nz)
        if space > reach * size and free_space(x_t1, i, j, k, m, edges, nx, ny, nz) > reach * size:
            normals_out[q, 0], normals_out[q, 1], normals_out[q, 2] = nx / size, ny / size, nz / size
            gaps_out[q] = space / size
            bears_out[q] = False
            continue
        if edges:
            w0, w1, w2, w3, rx, ry, rz, kind = closest_edge_edge(x, i, j, k, m)
        else:
            w0, w1, w2, w3, rx, ry, rz, kind = closest_vertex_triangle(x, i, j, k, m)
        nx, ny, nz, distance = unit_normal(rx, ry, rz, 0.0, 0.0, 0.0)
        normals_out[q, 0], normals_out[q, 1], normals_out[q, 2] = nx, ny, nz
        weights_out[q, 0], weights_out[q, 1], weights_out[q, 2], weights_out[q, 3] = w0, w1, w2, w3
        gaps_out[q] = distance
        inside = kind == EDGE_EDGE if edges else kind == NODE_TRIANGLE or _is_above(x, j, k, m, rx, ry, rz)
        bears_out[q] = distance > 0.0 and (inside or distance < pressed)


@kernel(inline=True)
def along(x: Floats, i: int, nx: float, ny: float, nz: float) -> float:
    return float(x[i, 0] * nx + x[i, 1] * ny + x[i, 2] * nz)


@kernel(inline=True)
def bounds(a: float, b: float, c: float, d: float, edges: bool) -> tuple[float, float]:
    """The lowest of the first side and the highest of the second, from the four places along the normal."""
    if edges:
        return min(a, b), max(c, d)
    return a, max(b, max(c, d))
