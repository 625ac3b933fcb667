"""Static intersection contours: the lines along which surfaces pass through one another already.

Two triangles that cross do so along a segment, and each end of it is a point where an edge of the one pierces the
other. The same edge and triangle meet in the pairs on both sides of that edge, so a point is known by its edge and its
triangle, and the segments are chained by these names, never by comparing coordinates. A contour is closed, or ends at a
border of a surface, or at a vertex that the two crossing triangles share (a cloth that passes through itself next to a
fold). Every point carries its place on both surfaces: the parameter on the edge, the barycentric weights in the
triangle. Cloth against cloth, itself, or a body: all share one array of positions and one of triangles.

Which edges pierce which triangles is decided by the signs of volumes of four vertices. Each is computed from the four
in ascending order, whoever asks, and zero counts as positive there; so all who ask about the same four vertices get the
same answer, and a rounding error cannot tear a contour at one pair only. Where vertices lie exactly in the plane of a
triangle the contours may still branch or end early: they tell how surfaces cross, they do not certify that they do not.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints, as_indices, as_positions
from weft.jit import kernel


class Contours(NamedTuple):
    """c polylines over p points; polyline i has the points starts[i] to starts[i + 1]."""

    starts: Ints
    """(c + 1,)"""
    closed: Bools
    """(c,): whether the last point is joined to the first"""
    points: Floats
    """(p, 3) [m]"""
    edges: Ints
    """(p, 2): the edge that pierces, the smaller vertex first; one vertex twice where two triangles share it"""
    parameters: Floats
    """(p,): s, the point is (1 - s) x[edge 0] + s x[edge 1]"""
    triangles: Ints
    """(p,): the triangle that is pierced; -1 at a shared vertex"""
    barycentric: Floats
    """(p, 3): the point's weights in that triangle"""


@kernel
def _volume_sign(x: Floats, i: int, j: int, k: int, m: int) -> int:
    """Sign of the volume (i - m) x (j - m) . (k - m); zero counts as positive for ascending vertices."""
    sign = 1
    if i > j:
        i, j, sign = j, i, -sign
    if k > m:
        k, m, sign = m, k, -sign
    if i > k:
        i, k, sign = k, i, -sign
    if j > m:
        j, m, sign = m, j, -sign
    if j > k:
        j, k, sign = k, j, -sign
    ax, ay, az = x[i, 0] - x[m, 0], x[i, 1] - x[m, 1], x[i, 2] - x[m, 2]
    bx, by, bz = x[j, 0] - x[m, 0], x[j, 1] - x[m, 1], x[j, 2] - x[m, 2]
    cx, cy, cz = x[k, 0] - x[m, 0], x[k, 1] - x[m, 1], x[k, 2] - x[m, 2]
    volume = (ay * bz - az * by) * cx + (az * bx - ax * bz) * cy + (ax * by - ay * bx) * cz
    return sign if volume >= 0.0 else -sign


@kernel
def _pierces(x: Floats, p: int, q: int, a: int, b: int, c: int) -> bool:
    """Does the edge (p, q) pass through the triangle (a, b, c)? No vertex may be in both."""
    if _volume_sign(x, a, b, c, p) == _volume_sign(x, a, b, c, q):
        return False
    side = _volume_sign(x, p, q, a, b)
    return side == _volume_sign(x, p, q, b, c) and side == _volume_sign(x, p, q, c, a)


@kernel
def find_piercings(x: Floats, triangles: Ints, pairs: Ints, ends_out: Ints) -> None:
    """Overwrites row r of ends_out (m, 6) with the two ends of the crossing of pair r, each an edge and a triangle.

    A shared vertex v is the end (v, v, -1); -1 in all columns where the two do not cross.
    """
    for r in range(len(pairs)):
        found = 0
        shared, vertex = 0, -1
        for k in range(6):
            ends_out[r, k] = -1
        for i in range(3):
            for j in range(3):
                if triangles[pairs[r, 0], i] == triangles[pairs[r, 1], j]:
                    shared += 1
                    vertex = triangles[pairs[r, 0], i]
        if shared > 1:
            continue
        for side in range(2):
            edge_of, face = pairs[r, side], pairs[r, 1 - side]
            a, b, c = triangles[face, 0], triangles[face, 1], triangles[face, 2]
            for k in range(3):
                p, q = triangles[edge_of, k], triangles[edge_of, (k + 1) % 3]
                if found == 2 or (shared == 1 and vertex in (p, q)):
                    continue
                if _pierces(x, p, q, a, b, c):
                    ends_out[r, 3 * found] = min(p, q)
                    ends_out[r, 3 * found + 1] = max(p, q)
                    ends_out[r, 3 * found + 2] = face
                    found += 1
        if shared == 1 and found == 1:
            ends_out[r, 3], ends_out[r, 4], ends_out[r, 5] = vertex, vertex, -1
            found = 2
        if found == 1:
            ends_out[r, 0] = -1


def _locate(x: Floats, triangles: Ints, names: Ints) -> tuple[Floats, Floats]:
    """Parameter on the edge and barycentric weights in the triangle of each named point."""
    on_vertex = names[:, 2] < 0
    p, q = x[names[:, 0]], x[names[:, 1]]
    corners = x[triangles[names[:, 2]]]
    a, e1, e2 = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    n = np.cross(e1, e2)
    at_p, at_q = np.einsum("ri,ri->r", n, p - a), np.einsum("ri,ri->r", n, q - a)
    span = np.where(at_p == at_q, 1.0, at_p - at_q)
    s = np.where(on_vertex, 0.0, np.clip(at_p / span, 0.0, 1.0))
    d = p + s[:, None] * (q - p) - a
    nn = np.einsum("ri,ri->r", n, n)
    nn = np.where(nn > 0, nn, 1.0)
    v = np.einsum("ri,ri->r", n, np.cross(d, e2)) / nn
    w = np.einsum("ri,ri->r", n, np.cross(e1, d)) / nn
    weights = np.clip(np.stack([1.0 - v - w, v, w], axis=1), 0.0, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    weights[on_vertex] = 0.0
    return s, weights


def _chains(segments: Ints, n_points: int) -> list[tuple[list[int], bool]]:
    """Point lists of the polylines, each with whether it is closed; they end where other than two segments meet."""
    neighbours: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, (a, b) in enumerate(segments.tolist()):
        neighbours[a].append((index, b))
        neighbours[b].append((index, a))
    used = np.zeros(len(segments), np.bool_)

    def follow(start: int) -> list[int]:
        line, here = [start], start
        while True:
            ahead = next(((index, there) for index, there in neighbours[here] if not used[index]), None)
            if ahead is None:
                return line
            used[ahead[0]] = True
            here = ahead[1]
            line.append(here)
            if len(neighbours[here]) != 2:
                return line

    chains = []
    ends = [point for point in range(n_points) if len(neighbours[point]) not in (0, 2)]
    for start in [*ends, *range(n_points)]:
        while any(not used[index] for index, _ in neighbours[start]):
            line = follow(start)
            closed = len(line) > 2 and line[0] == line[-1]
            chains.append((line[:-1] if closed else line, closed))
    return chains


def find_contours(positions: npt.ArrayLike, triangles: npt.ArrayLike, pairs: npt.ArrayLike) -> Contours:
    """The contours along which pairs of triangles cross.

    Parameters
    ----------
    positions : (n, 3) float64 [m], of all surfaces
    triangles : (t, 3) int32
    pairs : (m, 2) int32, candidate pairs of triangles, each once; pairs that share an edge are left out

    Examples
    --------
    >>> x = [[0, 0, 0], [3, 0, 0], [0, 3, 0], [1, 1, -1], [1, 1, 1], [5, 5, 1]]
    >>> contours = find_contours(x, [[0, 1, 2], [3, 4, 5]], [[0, 1]])
    >>> contours.points.round(3)
    array([[1.5, 1.5, 0. ],
           [1. , 1. , 0. ]])
    """
    x = as_positions(positions)
    faces = as_indices(triangles, len(x))
    candidates = as_indices(pairs, len(faces), columns=2, name="pairs")
    ends = np.empty((len(candidates), 6), np.int32)
    find_piercings(x, faces, candidates, ends)
    ends = ends[ends[:, 0] >= 0].reshape(-1, 3)
    names, inverse = np.unique(ends, axis=0, return_inverse=True)
    chains = _chains(inverse.reshape(-1, 2).astype(np.int32), len(names))
    order = np.array([point for line, _ in chains for point in line], np.int64)
    names = names[order].astype(np.int32).reshape(-1, 3)
    parameters, barycentric = _locate(x, faces, names)
    points = x[names[:, 0]] + parameters[:, None] * (x[names[:, 1]] - x[names[:, 0]])
    return Contours(
        starts=np.cumsum([0, *(len(line) for line, _ in chains)]).astype(np.int32),
        closed=np.array([closed for _, closed in chains], np.bool_),
        points=points,
        edges=np.ascontiguousarray(names[:, :2]),
        parameters=parameters,
        triangles=np.ascontiguousarray(names[:, 2]),
        barycentric=barycentric,
    )
