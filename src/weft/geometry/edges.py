"""Lengths of edges, and whether they are strained too far."""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.jit import kernel


@kernel
def _length(x: Floats, i: int, j: int) -> float:
    return math.sqrt((x[j, 0] - x[i, 0]) ** 2 + (x[j, 1] - x[i, 1]) ** 2 + (x[j, 2] - x[i, 2]) ** 2)


@kernel(inline=True)
def _is_longer(x: Floats, i: int, j: int, length: float) -> bool:
    """Without a root: most edges are not."""
    dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
    return bool(dx * dx + dy * dy + dz * dz > length * length)


@kernel(allocates=True)
def edge_lengths(x: Floats, edges: Ints) -> Floats:
    """(e,) [m]"""
    lengths = np.empty(len(edges))
    for e in range(len(edges)):
        lengths[e] = _length(x, edges[e, 0], edges[e, 1])
    return lengths


@kernel(allocates=True)
def overstretched(x_t0: Floats, x_t1: Floats, edges: Ints, rest: Floats, limits: Floats) -> Ints:
    """(k,) the edges that end strained beyond their `limits` (e,), and grew by more than a quarter of these."""
    found = np.empty(len(edges), np.int32)
    count = 0
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        more = limits[e] * rest[e]
        if _is_longer(x_t1, i, j, rest[e] + more) and _length(x_t1, i, j) > _length(x_t0, i, j) + 0.25 * more:
            found[count] = e
            count += 1
    return found[:count].copy()


@kernel(inline=True)
def _along(about: Floats, x: Floats, i: int, j: int) -> float:
    """How long an edge at `x` is along the direction that it has at `about`."""
    dot = 0.0
    for c in range(3):
        dot += (about[j, c] - about[i, c]) * (x[j, c] - x[i, c])
    length = _length(about, i, j)
    return dot / length if length > 0.0 else 0.0


@kernel(allocates=True)
def lengths_along(about: Floats, x: Floats, edges: Ints) -> Floats:
    """(e,) [m] at `x` along the directions that edges have at `about`: of changes from there, what is linear."""
    lengths = np.empty(len(edges))
    for e in range(len(edges)):
        lengths[e] = _along(about, x, edges[e, 0], edges[e, 1])
    return lengths


@kernel(allocates=True)
def lengthened(about: Floats, x: Floats, edges: Ints, rest: Floats, share: float) -> Ints:
    """(k,) the edges that exceed both their length at rest and that along their way at `about`, by `share` of rest."""
    found = np.empty(len(edges), np.int32)
    count = 0
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        more = share * rest[e]
        if _is_longer(x, i, j, rest[e] + more) and _length(x, i, j) > _along(about, x, i, j) + more:
            found[count] = e
            count += 1
    return found[:count].copy()


@kernel(allocates=True)
def edges_at(edges: Ints, marks: Bools, both: bool) -> Ints:
    """(k,) the edges with a marked end, or with two where `both` is asked for."""
    found = np.empty(len(edges), np.int32)
    count = 0
    for e in range(len(edges)):
        if int(marks[edges[e, 0]]) + int(marks[edges[e, 1]]) > int(both):
            found[count] = e
            count += 1
    return found[:count].copy()


@kernel(allocates=True)
def mark_rings(starts: Ints, items: Ints, rings: int, marks_inout: Bools) -> None:
    """Mark all vertices that are no more than `rings` edges from a marked one; the neighbours are CSR rows."""
    front = np.flatnonzero(marks_inout)
    for _ in range(rings):
        n_next = 0
        reached = np.empty(len(marks_inout), np.int64)
        for i in front:
            for k in range(starts[i], starts[i + 1]):
                if not marks_inout[items[k]]:
                    marks_inout[items[k]] = True
                    reached[n_next] = items[k]
                    n_next += 1
        front = reached[:n_next]
