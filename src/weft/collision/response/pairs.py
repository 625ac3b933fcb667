"""Pairs of features that may come near each other in a step, with their closest points: what responses share.

A pair is a vertex and a triangle, or two edges, of the cloth with itself or with bodies, whose vertices follow those of
the cloth. The broad phase names them, and `measured` says how far apart they are and along which normal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.collision.narrow.proximity import (
    EDGE_EDGE,
    NODE_TRIANGLE,
    closest_edge_edge,
    closest_vertex_triangle,
    unit_normal,
)
from weft.collision.response import Surroundings
from weft.geometry.vectors import Vector
from weft.jit import kernel, prange

NO_DRIFT = np.zeros(3)


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
        if bodies is not None:
            self._body_triangles = bodies.triangles + np.int32(self._n)
            self._body_edges = bodies.topology.edges + np.int32(self._n)

    def find(
        self, x_t0: Floats, x_t1: Floats, margin: float, drift: Floats = NO_DRIFT
    ) -> tuple[tuple[Pairs, Pairs], int]:
        """Vertex-triangle and edge-edge pairs; the first of the former, so many, are a cloth vertex on a body.

        The cloth's own are looked for in a frame that moves by `drift` (3,) [m] in the step.
        """
        n = self._n
        self._cloth_phase.refit(x_t0[:n], x_t1[:n] - drift, margin)
        own = self._cloth_phase.candidates()
        vertex_triangle = [_rows(own.vertex_triangle, None, self._triangles)]
        edge_edge = [_rows(own.edge_edge, self._edges, self._edges)]
        beside = 0
        if self._body_phase is not None:
            if drift.any():
                self._cloth_phase.refit(x_t0[:n], x_t1[:n], margin)
            self._body_phase.refit(x_t0[n:], x_t1[n:], margin)
            cross = self._cloth_phase.candidates_with(self._body_phase)
            on_body = _rows(cross.vertex_triangle, None, self._body_triangles)
            beside = len(on_body)
            through = cross.triangle_vertex[:, ::-1] + np.array([n, 0], np.int32)
            vertex_triangle = [on_body, *vertex_triangle, _rows(through, None, self._triangles)]
            edge_edge.append(_rows(cross.edge_edge, self._edges, self._body_edges))
        pairs = (
            measured(x_t0, x_t1, np.concatenate(vertex_triangle), False, self.reach, self.pressed),
            measured(x_t0, x_t1, np.concatenate(edge_edge), True, self.reach, self.pressed),
        )
        return pairs, beside


def _rows(pairs: Ints, first: Ints | None, second: Ints) -> Ints:
    """(k, 4): the vertices of both sides of each pair; `first` None where the first side is a vertex itself."""
    rows = np.empty((len(pairs), 4), np.int32)
    if first is None:
        fill_vertex_triangle(pairs, second, rows)
    else:
        fill_edge_edge(pairs, first, second, rows)
    return rows


@kernel
def fill_vertex_triangle(pairs: Ints, triangles: Ints, rows_out: Ints) -> None:
    for q in range(len(pairs)):
        rows_out[q, 0] = pairs[q, 0]
        for c in range(3):
            rows_out[q, 1 + c] = triangles[pairs[q, 1], c]


@kernel
def fill_edge_edge(pairs: Ints, first: Ints, second: Ints, rows_out: Ints) -> None:
    for q in range(len(pairs)):
        for c in range(2):
            rows_out[q, c] = first[pairs[q, 0], c]
            rows_out[q, 2 + c] = second[pairs[q, 1], c]


def measured(x_t0: Floats, x_t1: Floats, rows: Ints, edges: bool, reach: float, pressed: float) -> Pairs:
    """The pairs of `rows` (k, 4) with their closest points at `x_t0`; all that are nearer than `pressed` [m] bear.

    Those that stay further apart than `reach` [m] along the line between their middles, at `x_t0` and at `x_t1`, are
    not worth the search: that line is their normal, and the space along it their gap. Neighbours in the mesh, the most
    of all candidates, are of this kind.
    """
    k = len(rows)
    pairs = Pairs(rows, edges, np.empty((k, 3)), np.empty(k), np.empty((k, 4)), np.empty(k, np.bool_))
    update_closest(x_t0, x_t1, rows, edges, reach, pressed, pairs.normals, pairs.gaps, pairs.weights, pairs.bears)
    return pairs


@kernel
def _middle_line(x: Floats, i: int, j: int, k: int, m: int, edges: bool) -> Vector:
    """From the middle of the second side to that of the first, of any length."""
    if edges:
        return (
            x[i, 0] + x[j, 0] - x[k, 0] - x[m, 0],
            x[i, 1] + x[j, 1] - x[k, 1] - x[m, 1],
            x[i, 2] + x[j, 2] - x[k, 2] - x[m, 2],
        )
    return (
        3.0 * x[i, 0] - x[j, 0] - x[k, 0] - x[m, 0],
        3.0 * x[i, 1] - x[j, 1] - x[k, 1] - x[m, 1],
        3.0 * x[i, 2] - x[j, 2] - x[k, 2] - x[m, 2],
    )


@kernel
def free_space(x: Floats, i: int, j: int, k: int, m: int, edges: bool, nx: float, ny: float, nz: float) -> float:
    """How far the sides are apart along the normal; negative where they overlap."""
    low, high = bounds(
        along(x, i, nx, ny, nz), along(x, j, nx, ny, nz), along(x, k, nx, ny, nz), along(x, m, nx, ny, nz), edges
    )
    return low - high


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
        nx, ny, nz = _middle_line(x, i, j, k, m, edges)
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
        inside = kind == (EDGE_EDGE if edges else NODE_TRIANGLE)
        bears_out[q] = distance > 0.0 and (inside or distance < pressed)


@kernel
def along(x: Floats, i: int, nx: float, ny: float, nz: float) -> float:
    return float(x[i, 0] * nx + x[i, 1] * ny + x[i, 2] * nz)


@kernel
def bounds(a: float, b: float, c: float, d: float, edges: bool) -> tuple[float, float]:
    """The lowest of the first side and the highest of the second, from the four places along the normal."""
    if edges:
        return min(a, b), max(c, d)
    return a, max(b, max(c, d))
