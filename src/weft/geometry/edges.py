"""Lengths of edges, and whether they are strained too far."""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.jit import kernel


@kernel
def _length(x: Floats, i: int, j: int) -> float:
    return math.sqrt((x[j, 0] - x[i, 0]) ** 2 + (x[j, 1] - x[i, 1]) ** 2 + (x[j, 2] - x[i, 2]) ** 2)


@kernel
def edge_lengths(x: Floats, edges: Ints) -> Floats:
    """(e,) [m]"""
    lengths = np.empty(len(edges))
    for e in range(len(edges)):
        lengths[e] = _length(x, edges[e, 0], edges[e, 1])
    return lengths


@kernel
def overstretched(x_t0: Floats, x_t1: Floats, edges: Ints, rest: Floats, limits: Floats) -> Ints:
    """(k,) the edges that end strained beyond their `limits` (e,), and grew by more than a quarter of these."""
    found = np.empty(len(edges), np.int32)
    count = 0
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        end = _length(x_t1, i, j)
        more = limits[e] * rest[e]
        if end > rest[e] + more and end > _length(x_t0, i, j) + 0.25 * more:
            found[count] = e
            count += 1
    return found[:count].copy()


@kernel
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
