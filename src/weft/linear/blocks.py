"""A sparse symmetric matrix of 3 x 3 blocks, assembled from pairs of vertices.

Each pair (i, j) gives the block B_ij; B_ji is its transpose and the diagonal makes row sums vanish (see
`weft.models`). Rows are gathered, never scattered: the sum of a block is taken in the order of the pairs, so the
matrix is bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.jit import kernel, prange


class BlockPattern(NamedTuple):
    """Which blocks off the diagonal there are, and which pairs add up to each."""

    row_starts: Ints
    """(n + 1,) blocks of row i are row_starts[i] to row_starts[i + 1]"""
    columns: Ints
    """(b,) column of each block, ascending within a row"""
    source_starts: Ints
    """(b + 1,) sources of each block"""
    sources: Ints
    """2 * pair, plus 1 where the pair's block enters transposed"""


def build_pattern(pairs: Ints, n_vertices: int) -> BlockPattern:
    """The pattern of `pairs` (p, 2), each of which may repeat, in any order of its two vertices."""
    p = len(pairs)
    rows = np.concatenate([pairs[:, 0], pairs[:, 1]]).astype(np.int64)
    columns = np.concatenate([pairs[:, 1], pairs[:, 0]]).astype(np.int64)
    sources = np.concatenate([2 * np.arange(p), 2 * np.arange(p) + 1])
    keys, block = np.unique(rows * n_vertices + columns, return_inverse=True)
    order = np.lexsort((sources, block))
    counts = np.bincount(block, minlength=len(keys))
    row_counts = np.bincount(keys // max(n_vertices, 1), minlength=n_vertices)
    return BlockPattern(
        row_starts=_starts(row_counts),
        columns=(keys % max(n_vertices, 1)).astype(np.int32),
        source_starts=_starts(counts),
        sources=sources[order].astype(np.int32),
    )


def _starts(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


class BlockMatrix(NamedTuple):
    """Values on a pattern."""

    pattern: BlockPattern
    diagonal: Floats
    """(n, 3, 3)"""
    off_diagonal: Floats
    """(b, 3, 3)"""


def build_matrix(pattern: BlockPattern) -> BlockMatrix:
    """A matrix of zeros."""
    n = len(pattern.row_starts) - 1
    return BlockMatrix(pattern, np.zeros((n, 3, 3)), np.zeros((len(pattern.columns), 3, 3)))


@kernel(parallel=True)
def update_implicit_matrix(
    v: Floats,
    masses: Floats,
    extra_damping: Floats,
    stiffness: Floats,
    damping: Floats,
    dt: float,
    matrix: BlockMatrix,
    stiffness_times_v_out: Floats,
) -> None:
    """Overwrite `matrix` with M + dt (D + extra) + dt^2 K, and `stiffness_times_v_out` with K v.

    `stiffness` and `damping` (p, 3, 3) are the blocks of the pairs; `extra_damping` (n, 3, 3) adds to the diagonal.
    """
    row_starts, columns, source_starts, sources = matrix.pattern
    for i in prange(len(v)):
        for r in range(3):
            for c in range(3):
                matrix.diagonal[i, r, c] = dt * extra_damping[i, r, c]
            matrix.diagonal[i, r, r] += masses[i]
            stiffness_times_v_out[i, r] = 0.0
        for b in range(row_starts[i], row_starts[i + 1]):
            j = columns[b]
            for r in range(3):
                for c in range(3):
                    k_rc = d_rc = 0.0
                    for s in range(source_starts[b], source_starts[b + 1]):
                        pair = sources[s] >> 1
                        if sources[s] & 1:
                            k_rc += stiffness[pair, c, r]
                            d_rc += damping[pair, c, r]
                        else:
                            k_rc += stiffness[pair, r, c]
                            d_rc += damping[pair, r, c]
                    value = dt * d_rc + dt * dt * k_rc
                    matrix.off_diagonal[b, r, c] = value
                    matrix.diagonal[i, r, c] -= value
                    stiffness_times_v_out[i, r] += k_rc * (v[j, c] - v[i, c])
