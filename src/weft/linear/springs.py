"""Contacts in the linear system: each couples up to four vertices by one 3 x 3 block.

A contact with signed weights w (its gap is n . sum_k w_k x_k) adds (w w^T) (x) B to the matrix, B being its stiffness
and friction. The matrix is never assembled, since contacts come and go with every step: products go through
t = B sum_k w_k x_k, then each vertex gathers w_k t over its contacts, in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.geometry.topology import group_rows
from weft.jit import kernel


class Springs(NamedTuple):
    """m contacts between n vertices."""

    vertices: Ints
    """(m, 4)"""
    weights: Floats
    """(m, 4) signed; 0 where a vertex is not free to move"""
    blocks: Floats
    """(m, 3, 3) symmetric, positive semi-definite [kg]"""
    starts: Ints
    """(n + 1,) contacts of vertex i are items[starts[i] : starts[i + 1]]"""
    items: Ints
    """4 * contact + place of the vertex in it"""


def build_springs(vertices: Ints, weights: Floats, blocks: Floats, n_vertices: int) -> Springs:
    """Collect contacts by vertex; places of weight 0 are left out."""
    used = np.flatnonzero(weights.ravel())
    rows = group_rows(vertices.ravel()[used], used.astype(np.int32), n_vertices)
    return Springs(vertices, weights, blocks, rows.starts, rows.items)


def no_springs(n_vertices: int) -> Springs:
    return build_springs(np.zeros((0, 4), np.int32), np.zeros((0, 4)), np.zeros((0, 3, 3)), n_vertices)


def spring_impulses(springs: Springs, x: Floats) -> Floats:
    """The product of all springs with the vector `x` (n, 3)."""
    out = np.zeros_like(x)
    add_spring_impulses(springs.vertices, springs.weights, springs.blocks, x, out)
    return out


@kernel
def add_spring_impulses(vertices: Ints, weights: Floats, blocks: Floats, x: Floats, out_inout: Floats) -> None:
    """Add the product of all springs with the vector `x` to `out_inout` (n, 3)."""
    gap = np.empty(3)
    for k in range(len(vertices)):
        for c in range(3):
            gap[c] = 0.0
            for place in range(4):
                gap[c] += weights[k, place] * x[vertices[k, place], c]
        for c in range(3):
            tension = blocks[k, c, 0] * gap[0] + blocks[k, c, 1] * gap[1] + blocks[k, c, 2] * gap[2]
            for place in range(4):
                out_inout[vertices[k, place], c] += weights[k, place] * tension
