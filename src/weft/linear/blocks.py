"""A sparse symmetric matrix of 3 x 3 blocks, assembled from pairs of vertices.

Each pair (i, j) gives the block B_ij; B_ji is its transpose and the diagonal makes row sums vanish (see
`weft.models`). So each block is stored once, and one that is a multiple of the identity, as those of bending across a
hinge are, half of all, as one number. Rows are gathered, never scattered: the sum of a block is taken in the order of
the pairs, so the matrix is bitwise the same for any number of threads.

Blocks may be in single precision. The diagonal is then the sum of what they were rounded to, so that cloth that moves
as a whole meets its inertia and nothing else. On a square metre of 401 x 401 vertices and in a step of 1/60 s, blocks
are a million times the mass of a vertex: rounded by itself, the diagonal would be wrong by a twentieth of that mass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints, Lanes, Longs
from weft.jit import kernel, prange


class BlockMatrix(NamedTuple):
    """Blocks above the diagonal, the diagonal apart, and which pairs add up to each block."""

    ends: Ints
    """(b, 2) the vertices i < j of each block B_ij, even ones last"""
    row_starts: Ints
    """(n + 1,) vertex i is an end of row_blocks[row_starts[i] : row_starts[i + 1]]"""
    row_blocks: Ints
    """(2 b,) 2 * block, plus 1 at its later end, which meets its transpose; in the order of the other ends"""
    source_starts: Ints
    """(b + 1,) sources of each block"""
    sources: Ints
    """2 * pair, plus 1 where the pair's block enters transposed"""
    own: Floats
    """(n, 3, 3) what the diagonal has beside that which makes row sums vanish: mass, and drag"""
    diagonal: Floats
    """(n, 3, 3)"""
    off_diagonal: Lanes
    """(f, 3, 3)"""
    even: Lanes
    """(b - f,) even blocks, times the identity"""


def build_matrix(pairs: Ints, n_vertices: int, n_even: int = 0, dtype: type[np.floating] = np.float64) -> BlockMatrix:
    """A matrix of zeros for `pairs` (p, 2), each of which may repeat, in any order of its two vertices.

    The last `n_even` of them are multiples of the identity; `dtype` is that of the blocks beside the diagonal.
    """
    n = max(n_vertices, 1)
    first, last = pairs.min(axis=1, initial=n).astype(np.int64), pairs.max(axis=1, initial=-1).astype(np.int64)
    sources = 2 * np.arange(len(pairs)) + (pairs[:, 0] > pairs[:, 1])
    keys, block = np.unique(first * n + last, return_inverse=True)
    is_even = np.ones(len(keys), bool)
    is_even[block[: len(pairs) - n_even]] = False
    order = np.argsort(is_even, kind="stable")
    keys, block = keys[order], np.argsort(order)[block]
    i, j, b = keys // n, keys % n, np.arange(len(keys))
    rows, others, items = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([2 * b, 2 * b + 1])
    return BlockMatrix(
        ends=np.ascontiguousarray(np.stack([i, j], axis=1), np.int32),
        row_starts=_starts(np.bincount(rows, minlength=n_vertices)),
        row_blocks=items[np.lexsort((others, rows))].astype(np.int32),
        source_starts=_starts(np.bincount(block, minlength=len(keys))),
        sources=sources[np.lexsort((sources, block))].astype(np.int32),
        own=np.zeros((n_vertices, 3, 3)),
        diagonal=np.zeros((n_vertices, 3, 3)),
        off_diagonal=np.zeros((len(keys) - is_even.sum(), 3, 3), dtype),
        even=np.zeros(is_even.sum(), dtype),
    )


def _starts(counts: Longs) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@kernel(inline=True)
def times_block(blocks: Lanes, item: int, x0: float, x1: float, x2: float) -> tuple[float, float, float]:
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


@kernel(inline=True)
def times_item(matrix: BlockMatrix, item: int, x0: float, x1: float, x2: float) -> tuple[float, float, float]:
    """The product of a block that may be even, or for an odd `item` of its transpose, with the vector (x0, x1, x2)."""
    n_full = len(matrix.off_diagonal)
    if item >> 1 < n_full:
        return times_block(matrix.off_diagonal, item, x0, x1, x2)
    factor = matrix.even[(item >> 1) - n_full]
    return factor * x0, factor * x1, factor * x2


@kernel(parallel=True)
def update_implicit_matrix(
    masses: Floats,
    extra_damping: Floats,
    stiffness: Floats,
    damping: Floats,
    even: Floats,
    dt: float,
    matrix: BlockMatrix,
) -> None:
    """Overwrite `matrix` with M + dt (D + extra) + dt^2 K.

    `stiffness` and `damping` (p, 3, 3) are the blocks of the pairs, and `even` (q,) the stiffness of the pairs after
    these, times the identity; `extra_damping` (n, 3, 3) adds to the diagonal.
    """
    _ends, row_starts, row_blocks, source_starts, sources, own, diagonal, off_diagonal, even_out = matrix
    n_full, n_pairs = len(off_diagonal), len(stiffness)
    for b in prange(n_full):
        for r in range(3):
            for c in range(3):
                off_diagonal[b, r, c] = 0.0
        for s in range(source_starts[b], source_starts[b + 1]):
            pair = sources[s] >> 1
            if pair >= n_pairs:
                for r in range(3):
                    off_diagonal[b, r, r] += dt * dt * even[pair - n_pairs]
            elif sources[s] & 1:
                for r in range(3):
                    for c in range(3):
                        off_diagonal[b, r, c] += dt * (damping[pair, c, r] + dt * stiffness[pair, c, r])
            else:
                for r in range(3):
                    for c in range(3):
                        off_diagonal[b, r, c] += dt * (damping[pair, r, c] + dt * stiffness[pair, r, c])
    for b in prange(len(even_out)):
        even_out[b] = 0.0
        for s in range(source_starts[n_full + b], source_starts[n_full + b + 1]):
            even_out[b] += dt * dt * even[(sources[s] >> 1) - n_pairs]
    for i in prange(len(masses)):
        for r in range(3):
            for c in range(3):
                own[i, r, c] = dt * extra_damping[i, r, c]
            own[i, r, r] += masses[i]
            for c in range(3):
                diagonal[i, r, c] = own[i, r, c]
        for q in range(row_starts[i], row_starts[i + 1]):
            b = row_blocks[q] >> 1
            if b >= n_full:
                for r in range(3):
                    diagonal[i, r, r] -= even_out[b - n_full]
            elif row_blocks[q] & 1:
                for r in range(3):
                    for c in range(3):
                        diagonal[i, r, c] -= off_diagonal[b, c, r]
            else:
                for r in range(3):
                    for c in range(3):
                        diagonal[i, r, c] -= off_diagonal[b, r, c]


@kernel(parallel=True)
def update_stiffness_product(matrix: BlockMatrix, stiffness: Floats, even: Floats, v: Floats, out: Floats) -> None:
    """Overwrite `out` with K v, `stiffness` (p, 3, 3) and `even` (q,) being the blocks of the pairs."""
    ends, row_starts, row_blocks, source_starts, sources, _own, _diagonal, _off_diagonal, _even = matrix
    n_pairs = len(stiffness)
    for i in prange(len(v)):
        for r in range(3):
            out[i, r] = 0.0
        for q in range(row_starts[i], row_starts[i + 1]):
            b, is_later = row_blocks[q] >> 1, row_blocks[q] & 1
            j = ends[b, 1 - is_later]
            u0, u1, u2 = v[j, 0] - v[i, 0], v[j, 1] - v[i, 1], v[j, 2] - v[i, 2]
            for s in range(source_starts[b], source_starts[b + 1]):
                pair = sources[s] >> 1
                if pair < n_pairs:
                    y0, y1, y2 = times_block(stiffness, sources[s] ^ is_later, u0, u1, u2)
                else:
                    y0, y1, y2 = even[pair - n_pairs] * u0, even[pair - n_pairs] * u1, even[pair - n_pairs] * u2
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
