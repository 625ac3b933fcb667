"""A sparse symmetric matrix of 3 x 3 blocks, assembled from pairs of vertices.

Each pair (i, j) gives the block B_ij; B_ji is its transpose and the diagonal makes row sums vanish (see
`weft.models`). So each block is stored once. Rows are gathered, never scattered: the sum of a block is taken in the
order of the pairs, so the matrix is bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.jit import kernel, prange


class BlockMatrix(NamedTuple):
    """Blocks above the diagonal, the diagonal apart, and which pairs add up to each block."""

    ends: Ints
    """(b, 2) the vertices i < j of each block B_ij"""
    row_starts: Ints
    """(n + 1,) vertex i is an end of row_blocks[row_starts[i] : row_starts[i + 1]]"""
    row_blocks: Ints
    """(2 b,) 2 * block, plus 1 at its later end, which meets its transpose; in the order of the other ends"""
    source_starts: Ints
    """(b + 1,) sources of each block"""
    sources: Ints
    """2 * pair, plus 1 where the pair's block enters transposed"""
    diagonal: Floats
    """(n, 3, 3)"""
    off_diagonal: Floats
    """(b, 3, 3)"""


def build_matrix(pairs: Ints, n_vertices: int) -> BlockMatrix:
    """A matrix of zeros for `pairs` (p, 2), each of which may repeat, in any order of its two vertices."""
    n = max(n_vertices, 1)
    first, last = pairs.min(axis=1, initial=n).astype(np.int64), pairs.max(axis=1, initial=-1).astype(np.int64)
    sources = 2 * np.arange(len(pairs)) + (pairs[:, 0] > pairs[:, 1])
    keys, block = np.unique(first * n + last, return_inverse=True)
    i, j, b = keys // n, keys % n, np.arange(len(keys))
    rows, others, items = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([2 * b, 2 * b + 1])
    return BlockMatrix(
        ends=np.ascontiguousarray(np.stack([i, j], axis=1), np.int32),
        row_starts=_starts(np.bincount(rows, minlength=n_vertices)),
        row_blocks=items[np.lexsort((others, rows))].astype(np.int32),
        source_starts=_starts(np.bincount(block, minlength=len(keys))),
        sources=sources[np.lexsort((sources, block))].astype(np.int32),
        diagonal=np.zeros((n_vertices, 3, 3)),
        off_diagonal=np.zeros((len(keys), 3, 3)),
    )


def _starts(counts: Longs) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@kernel(inline=True)
def times_block(blocks: Floats, item: int, x0: float, x1: float, x2: float) -> tuple[float, float, float]:
    """The product of a block, or for an odd `item` of its transpose, with the vector (x0, x1, x2)."""
    k = item >> 1
    if item & 1:
        return (
            blocks[k, 0, 0] * x0 + blocks[k, 1, 0] * x1 + blocks[k, 2, 0] * x2,
            blocks[k, 0, 1] * x0 + blocks[k, 1, 1] * x1 + blocks[k, 2, 1] * x2,
            blocks[k, 0, 2] * x0 + blocks[k, 1, 2] * x1 + blocks[k, 2, 2] * x2,
        )
    return (
        blocks[k, 0, 0] * x0 + blocks[k, 0, 1] * x1 + blocks[k, 0, 2] * x2,
        blocks[k, 1, 0] * x0 + blocks[k, 1, 1] * x1 + blocks[k, 1, 2] * x2,
        blocks[k, 2, 0] * x0 + blocks[k, 2, 1] * x1 + blocks[k, 2, 2] * x2,
    )


@kernel(parallel=True)
def update_implicit_matrix(
    masses: Floats, extra_damping: Floats, stiffness: Floats, damping: Floats, dt: float, matrix: BlockMatrix
) -> None:
    """Overwrite `matrix` with M + dt (D + extra) + dt^2 K.

    `stiffness` and `damping` (p, 3, 3) are the blocks of the pairs; `extra_damping` (n, 3, 3) adds to the diagonal.
    """
    _ends, row_starts, row_blocks, source_starts, sources, diagonal, off_diagonal = matrix
    for b in prange(len(off_diagonal)):
        for r in range(3):
            for c in range(3):
                off_diagonal[b, r, c] = 0.0
        for s in range(source_starts[b], source_starts[b + 1]):
            pair = sources[s] >> 1
            if sources[s] & 1:
                for r in range(3):
                    for c in range(3):
                        off_diagonal[b, r, c] += dt * (damping[pair, c, r] + dt * stiffness[pair, c, r])
            else:
                for r in range(3):
                    for c in range(3):
                        off_diagonal[b, r, c] += dt * (damping[pair, r, c] + dt * stiffness[pair, r, c])
    for i in prange(len(masses)):
        for r in range(3):
            for c in range(3):
                diagonal[i, r, c] = dt * extra_damping[i, r, c]
            diagonal[i, r, r] += masses[i]
        for q in range(row_starts[i], row_starts[i + 1]):
            b = row_blocks[q] >> 1
            if row_blocks[q] & 1:
                for r in range(3):
                    for c in range(3):
                        diagonal[i, r, c] -= off_diagonal[b, c, r]
            else:
                for r in range(3):
                    for c in range(3):
                        diagonal[i, r, c] -= off_diagonal[b, r, c]


@kernel(parallel=True)
def update_stiffness_product(matrix: BlockMatrix, stiffness: Floats, v: Floats, out: Floats) -> None:
    """Overwrite `out` with K v, `stiffness` (p, 3, 3) being the blocks of the pairs."""
    ends, row_starts, row_blocks, source_starts, sources, _diagonal, _off_diagonal = matrix
    for i in prange(len(v)):
        for r in range(3):
            out[i, r] = 0.0
        for q in range(row_starts[i], row_starts[i + 1]):
            b, is_later = row_blocks[q] >> 1, row_blocks[q] & 1
            j = ends[b, 1 - is_later]
            u0, u1, u2 = v[j, 0] - v[i, 0], v[j, 1] - v[i, 1], v[j, 2] - v[i, 2]
            for s in range(source_starts[b], source_starts[b + 1]):
                y0, y1, y2 = times_block(stiffness, sources[s] ^ is_later, u0, u1, u2)
                out[i, 0] += y0
                out[i, 1] += y1
                out[i, 2] += y2


@kernel(parallel=True)
def block_products(blocks: Floats, x: Floats) -> Floats:
    """The product (n, 3) of each of `blocks` (n, 3, 3) with its row of `x` (n, 3)."""
    out = np.empty_like(x)
    for i in prange(len(x)):
        for r in range(3):
            out[i, r] = blocks[i, r, 0] * x[i, 0] + blocks[i, r, 1] * x[i, 1] + blocks[i, r, 2] * x[i, 2]
    return out
