"""Lengths of edges, and whether they are strained too far."""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Floats, Ints
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
def overstretched(x_t0: Floats, x_t1: Floats, edges: Ints, rest: Floats, limit: float) -> bool:
    """Whether an edge ends strained beyond `limit` and by more than a quarter of it more than at the start."""
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        end = _length(x_t1, i, j)
        if end > (1.0 + limit) * rest[e] and end > _length(x_t0, i, j) + 0.25 * limit * rest[e]:
            return True
    return False
