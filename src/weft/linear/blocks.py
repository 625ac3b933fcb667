"""A sparse symmetric matrix of 3 x 3 blocks, assembled from pairs of vertices.

Each pair (i, j) gives the block B_ij; B_ji is its transpose and the diagonal makes row sums vanish (see
`weft.models`). Rows are gathered, never scattered: the sum of a block is taken in the order of the pairs, so the
matrix is bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.jit import kernel, prange


class BlockMatrix(NamedTuple):
    """Blocks off the diagonal in rows, the diagonal apart, and which pairs add up to each block."""

    row_starts: Ints
    """(n + 1,) blocks of row i are row_starts[i] to row_starts[i + 1]"""
    columns: Ints
    """(b,) column of each block, ascending within a row"""
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
    p = len(pairs)
    rows = np.concatenate([pairs[:, 0], pairs[:, 1]]).astype(np.int64)
    columns = np.concatenate([pairs[:, 1], pairs[:, 0]]).astype(np.int64)
    sources = np.concatenate([2 * np.arange(p), 2 * np.arange(p) + 1])
    keys, block = np.unique(rows * n_vertices + columns, return_inverse=True)
    order = np.lexsort((sources, block))
    counts = np.bincount(block, minlength=len(keys))
    row_counts = np.bincount(keys // max(n_vertices, 1), minlength=n_vertices)
    return BlockMatrix(
        row_starts=_starts(row_counts),
        columns=(keys % max(n_vertices, 1)).astype(np.int32),
        source_starts=_starts(counts),
        sources=sources[order].astype(np.int32),
        diagonal=np.zeros((n_vertices, 3, 3)),
        off_diagonal=np.zeros((len(keys), 3, 3)),
    )


def _starts(counts: Longs) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@kernel(parallel=True)
def update_implicit_matrix(
    masses: Floats, extra_damping: Floats, stiffness: Floats, damping: Floats, dt: float, matrix: BlockMatrix
) -> None:
    """Overwrite `matrix` with M + dt (D + extra) + dt^2 K.

    `stiffness` and `damping` (p, 3, 3) are the blocks of the pairs; `extra_damping` (n, 3, 3) adds to the diagonal.
    """
    row_starts, _columns, source_starts, sources, diagonal, off_diagonal = matrix
    for i in prange(len(masses)):
        for r in range(3):
            for c in range(3):
                diagonal[i, r, c] = dt * extra_damping[i, r, c]
            diagonal[i, r, r] += masses[i]
        for b in range(row_starts[i], row_starts[i + 1]):
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
            for r in range(3):
                for c in range(3):
                    diagonal[i, r, c] -= off_diagonal[b, r, c]


@kernel(parallel=True)
def update_stiffness_product(matrix: BlockMatrix, stiffness: Floats, v: Floats, out: Floats) -> None:
    """Overwrite `out` with K v, `stiffness` (p, 3, 3) being the blocks of the pairs."""
    row_starts, columns, source_starts, sources, _diagonal, _off_diagonal = matrix
    for i in prange(len(v)):
        for r in range(3):
            out[i, r] = 0.0
        for b in range(row_starts[i], row_starts[i + 1]):
            j = columns[b]
            u0, u1, u2 = v[j, 0] - v[i, 0], v[j, 1] - v[i, 1], v[j, 2] - v[i, 2]
            for s in range(source_starts[b], source_starts[b + 1]):
                k = stiffness[sources[s] >> 1]
                for r in range(3):
                    if sources[s] & 1:
                        out[i, r] += k[0, r] * u0 + k[1, r] * u1 + k[2, r] * u2
                    else:
                        out[i, r] += k[r, 0] * u0 + k[r, 1] * u1 + k[r, 2] * u2


@kernel(parallel=True)
def block_products(blocks: Floats, x: Floats) -> Floats:
    """The product (n, 3) of each of `blocks` (n, 3, 3) with its row of `x` (n, 3)."""
    out = np.empty_like(x)
    for i in prange(len(x)):
        for r in range(3):
            out[i, r] = blocks[i, r, 0] * x[i, 0] + blocks[i, r, 1] * x[i, 1] + blocks[i, r, 2] * x[i, 2]
    return out
