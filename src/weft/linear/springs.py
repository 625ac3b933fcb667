"""Contacts in the linear system: each couples up to four vertices, with one stiffness along its normal and one across.

A contact with signed weights w (its gap is n . sum_k w_k x_k) adds (w w^T) (x) B to the matrix, where
B = a n n^T + c (I - n n^T): a resists what comes near, and c what slips. The matrix is never assembled, since contacts
come and go with every step: products go through t = B sum_k w_k x_k, then each vertex gathers w_k t over its contacts,
in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.jit import kernel, prange


class Springs(NamedTuple):
    """m contacts between n vertices."""

    vertices: Ints
    """(m, 4)"""
    weights: Floats
    """(m, 4) signed; 0 where a vertex is not free to move"""
    normals: Floats
    """(m, 3) of length 1"""
    along: Floats
    """(m,) a [kg]"""
    across: Floats
    """(m,) c [kg]"""
    starts: Ints
    """(n + 1,) contacts of vertex i are items[starts[i] : starts[i + 1]]"""
    items: Ints
    """4 * contact + place of the vertex in it"""


def build_springs(
    vertices: Ints, weights: Floats, normals: Floats, along: Floats, across: Floats, n_vertices: int
) -> Springs:
    """Collect contacts by vertex; places of weight 0 are left out."""
    return Springs(vertices, weights, normals, along, across, *_collect(vertices, weights, n_vertices))


@kernel(allocates=True)
def _collect(vertices: Ints, weights: Floats, n: int) -> tuple[Ints, Ints]:
    """The places of weights other than 0 by vertex, in order: `starts` and `items` of `Springs`."""
    starts = np.zeros(n + 1, np.int32)
    for c in range(len(vertices)):
        for place in range(4):
            if weights[c, place] != 0.0:
                starts[vertices[c, place] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    ends, items = starts[:-1].copy(), np.empty(starts[n], np.int32)
    for c in range(len(vertices)):
        for place in range(4):
            if weights[c, place] != 0.0:
                i = vertices[c, place]
                items[ends[i]] = 4 * c + place
                ends[i] += 1
    return starts, items


def no_springs(n_vertices: int) -> Springs:
    none = np.zeros(0)
    return build_springs(np.zeros((0, 4), np.int32), np.zeros((0, 4)), np.zeros((0, 3)), none, none, n_vertices)


@kernel(inline=True)
def resist(
    normals: Floats, along: Floats, across: Floats, c: int, s0: float, s1: float, s2: float
) -> tuple[float, float, float]:
    """B_c times a vector."""
    n0, n1, n2 = normals[c, 0], normals[c, 1], normals[c, 2]
    part, lift = across[c], (along[c] - across[c]) * (n0 * s0 + n1 * s1 + n2 * s2)
    return part * s0 + lift * n0, part * s1 + lift * n1, part * s2 + lift * n2


@kernel(parallel=True)
def spring_impulses(springs: Springs, x: Floats) -> Floats:
    """The product of all springs with the vector `x` (n, 3)."""
    vertices, weights, normals, along, across, starts, items = springs
    tension, out = np.empty((len(vertices), 3)), np.zeros_like(x)
    for c in prange(len(vertices)):
        s0 = s1 = s2 = 0.0
        for place in range(4):
            i, w = vertices[c, place], weights[c, place]
            s0, s1, s2 = s0 + w * x[i, 0], s1 + w * x[i, 1], s2 + w * x[i, 2]
        tension[c, 0], tension[c, 1], tension[c, 2] = resist(normals, along, across, c, s0, s1, s2)
    for i in prange(len(x)):
        for k in range(starts[i], starts[i + 1]):
            c, w = items[k] >> 2, weights[items[k] >> 2, items[k] & 3]
            for r in range(3):
                out[i, r] += w * tension[c, r]
    return out
