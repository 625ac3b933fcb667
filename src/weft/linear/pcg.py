"""Preconditioned conjugate gradients on 3 x 3 blocks, with filtered constraints.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, section 5: each vertex has a filter S_i, the
projector on the directions in which it is free, and a prescribed change z_i in the others. With A the block matrix plus
the springs of contacts, we solve for y in S A S y = S (b - A z) and return S y + z (the form of Ascher and Boxerman,
2003, which drops no part of z in the preconditioner as the original does).

The preconditioner is the inverse of each vertex's own block plus the shifts of patches (see `levels`).

Iterations run on blocks in registers (see `lanes`): in single precision where the tolerance leaves room for it, which
halves what has to be read, and in double where it does not. Blocks that are a multiple of the identity, as those of
bending across a hinge are, half of all, are stored as one number.

Sums run over a fixed number of chunks, merged in order: bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints, Lanes, Longs
from weft.jit import kernel, prange
from weft.linear.blocks import BlockMatrix
from weft.linear.lanes import WIDTH, add_multiples, multiply_block, multiply_row
from weft.linear.levels import (
    Levels,
    add_block,
    invert_symmetric,
    shift_larger,
    shift_smallest,
    update_levels,
    update_shifts,
)
from weft.linear.springs import Springs, spring_impulses

CHUNKS = 32
SINGLE = 1e-4  # tolerance from which on single precision is enough, with an error of this in m/s


class PcgWork(NamedTuple):
    """Scratch memory of one solver in one precision: the system in the layout of `lanes`."""

    rows: Longs
    """(n, 4) blocks of row i are rows[i, 0] to rows[i, 1], its diagonal one first, factors rows[i, 2] to rows[i, 3]"""
    columns: Ints
    """(b + n,)"""
    blocks: Lanes
    """(b + n, 3, 4)"""
    factor_columns: Ints
    """(b,)"""
    factors: Lanes
    """(b,)"""
    inverse: Lanes
    """(n, 3, 4) filtered inverse of the diagonal blocks"""
    vectors: Lanes
    """(5, n, 4) x, r, p, q, z"""
    is_free: Bools
    """(n,) vertices that are free in all directions"""
    partial: Floats
    """(3, CHUNKS)"""


def build_work(matrix: BlockMatrix, tolerance: float, error: float) -> PcgWork:
    """Memory for solves of `matrix` to `tolerance` and `error` [m/s]."""
    dtype = np.float32 if min(tolerance, error) >= SINGLE else np.float64
    n, b = len(matrix.diagonal), len(matrix.columns)
    return PcgWork(
        np.zeros((n, 4), np.int64),
        np.zeros(b + n, np.int32),
        np.zeros((b + n, 3, WIDTH), dtype),
        np.zeros(b, np.int32),
        np.zeros(b, dtype),
        np.zeros((n, 3, WIDTH), dtype),
        np.zeros((5, n, WIDTH), dtype),
        np.zeros(n, np.bool_),
        np.zeros((3, CHUNKS)),
    )


@kernel
def _ordered_sum(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@kernel
def _is_multiple(blocks: Floats, k: int) -> bool:
    """Whether block k is a multiple of the identity."""
    value = blocks[k, 0, 0]
    return bool(
        blocks[k, 0, 1] == blocks[k, 0, 2] == blocks[k, 1, 0] == blocks[k, 1, 2] == blocks[k, 2, 0] == 0.0
        and blocks[k, 2, 1] == 0.0
        and blocks[k, 1, 1] == value
        and blocks[k, 2, 2] == value
    )


@kernel
def _copy_rows(
    first: int,
    last: int,
    matrix: BlockMatrix,
    springs: Springs,
    filters: Floats,
    is_free: Bools,
    rows_out: Longs,
    columns_out: Ints,
    blocks_out: Lanes,
    factor_columns_out: Ints,
    factors_out: Lanes,
    inverse_out: Lanes,
) -> None:
    """Overwrite rows `first` to `last` of the system in the layout of `lanes`, and their inverse diagonal blocks."""
    diagonal, off_diagonal = matrix.diagonal, matrix.off_diagonal
    block = np.empty((1, 3, 3))
    inverse = np.empty((1, 3, 3))
    at, factor_at = matrix.row_starts[first] + first, matrix.row_starts[first]
    for i in range(first, last):
        rows_out[i, 0], rows_out[i, 2] = at, factor_at
        columns_out[at] = i
        for r in range(3):
            for c in range(3):
                blocks_out[at, c, r] = diagonal[i, r, c]
                block[0, r, c] = diagonal[i, r, c]
        at += 1
        for k in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
            if _is_multiple(off_diagonal, k):
                factor_columns_out[factor_at] = matrix.columns[k]
                factors_out[factor_at] = off_diagonal[k, 0, 0]
                factor_at += 1
                continue
            columns_out[at] = matrix.columns[k]
            for r in range(3):
                for c in range(3):
                    blocks_out[at, c, r] = off_diagonal[k, r, c]
            at += 1
        rows_out[i, 1], rows_out[i, 3] = at, factor_at
        for k in range(springs.starts[i], springs.starts[i + 1]):
            c, place = springs.items[k] >> 2, springs.items[k] & 3
            add_block(block, 0, springs.blocks, c, springs.weights[c, place] ** 2)
        invert_symmetric(block, 0, inverse)
        for r in range(3):
            for c in range(3):
                value = inverse[0, r, c]
                if not is_free[i]:
                    value = 0.0
                    for k in range(3):
                        for m in range(3):
                            value += filters[i, r, k] * inverse[0, k, m] * filters[i, m, c]
                inverse_out[i, c, r] = value


@kernel
def _filter_row(filters: Floats, i: int, y_inout: Lanes) -> None:
    y0, y1, y2 = y_inout[i, 0], y_inout[i, 1], y_inout[i, 2]
    for r in range(3):
        y_inout[i, r] = filters[i, r, 0] * y0 + filters[i, r, 1] * y1 + filters[i, r, 2] * y2


@kernel
def _multiply_rows(first: int, last: int, work: PcgWork, springs: Springs, x: Lanes, y_out: Lanes) -> None:
    """Overwrite rows `first` to `last` of y with A x; the tension of the springs must be up to date for x."""
    rows, columns, blocks, factor_columns, factors = (
        work.rows,
        work.columns,
        work.blocks,
        work.factor_columns,
        work.factors,
    )
    starts, items, weights, tension = springs.starts, springs.items, springs.weights, springs.tension
    for i in range(first, last):
        multiply_row(blocks, columns, rows[i, 0], rows[i, 1], x, i, y_out)
        add_multiples(factors, factor_columns, rows[i, 2], rows[i, 3], x, i, y_out)
        for k in range(starts[i], starts[i + 1]):
            c, w = items[k] >> 2, weights[items[k] >> 2, items[k] & 3]
            y_out[i, 0] += w * tension[c, 0]
            y_out[i, 1] += w * tension[c, 1]
            y_out[i, 2] += w * tension[c, 2]


@kernel
def _tighten(first: int, last: int, vertices: Ints, weights: Floats, blocks: Floats, x: Lanes, tension: Floats) -> None:
    """Overwrite the tension of springs `first` to `last` for the vector x."""
    for c in range(first, last):
        s0 = s1 = s2 = 0.0
        for k in range(4):
            w, i = weights[c, k], vertices[c, k]
            s0 += w * x[i, 0]
            s1 += w * x[i, 1]
            s2 += w * x[i, 2]
        for r in range(3):
            tension[c, r] = blocks[c, r, 0] * s0 + blocks[c, r, 1] * s1 + blocks[c, r, 2] * s2


@kernel
def _dot_rows(first: int, last: int, x: Lanes, y: Lanes) -> float:
    s0 = s1 = s2 = 0.0
    for i in range(first, last):
        s0 += x[i, 0] * y[i, 0]
        s1 += x[i, 1] * y[i, 1]
        s2 += x[i, 2] * y[i, 2]
    return s0 + s1 + s2


@kernel
def _advance_rows(first: int, last: int, alpha: float, p: Lanes, q: Lanes, x_inout: Lanes, r_inout: Lanes) -> None:
    for i in range(first, last):
        for c in range(WIDTH):
            x_inout[i, c] += alpha * p[i, c]
            r_inout[i, c] -= alpha * q[i, c]


@kernel
def _turn_rows(
    first: int,
    last: int,
    beta: float,
    parents: Ints,
    shift: Floats,
    filters: Floats,
    is_free: Bools,
    z: Lanes,
    p_inout: Lanes,
) -> None:
    """Overwrite the direction p with the preconditioned residual, of vertices and patches, plus beta p."""
    n = len(is_free)
    for i in range(first, last):
        patch = parents[i] - n
        for c in range(3):
            p_inout[i, c] = z[i, c] + beta * p_inout[i, c]
        if patch < 0:
            continue
        if is_free[i]:
            for c in range(3):
                p_inout[i, c] += shift[patch, c]
        else:
            for c in range(3):
                p_inout[i, c] += (
                    filters[i, c, 0] * shift[patch, 0]
                    + filters[i, c, 1] * shift[patch, 1]
                    + filters[i, c, 2] * shift[patch, 2]
                )


@kernel(parallel=True)
def solve_filtered(
    matrix: BlockMatrix,
    springs: Springs,
    levels: Levels,
    b: Floats,
    filters: Floats,
    tolerance: float,
    energy: float,
    max_iterations: int,
    work: PcgWork,
    x_inout: Floats,
) -> tuple[int, float]:
    """Solve A x = b in the free directions, keeping the constrained part of `x_inout` as it comes in.

    `x_inout` starts as z plus any guess in the free directions. `filters` (n, 3, 3) are the projectors S. Returns
    the iterations and the residual relative to the right-hand side, both in the norm of the preconditioner. It goes on
    until that is below `tolerance` and the square of the residual itself, which estimates the energy x A x of what is
    still missing, below `energy`.
    """
    n, m = len(b), len(springs.vertices)
    rows, columns, blocks, factor_columns, factors, inverse, vectors, is_free, partial = work
    x, r, p, q, z = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    parents, shift, right, patch_inverse = levels.parents, levels.shift, levels.right, levels.inverse
    child_starts, children = levels.child_starts, levels.children
    s_vertices, s_weights, s_blocks, _starts, _items, tension = springs
    n_patches = levels.n_smallest
    for i in range(n):
        is_free[i] = filters[i, 0, 0] + filters[i, 1, 1] + filters[i, 2, 2] == 3.0  # of a projector: all is left
        for c in range(3):
            x[i, c] = x_inout[i, c]
            p[i, c] = 0.0
    update_levels(levels, matrix, springs, filters, is_free)
    _tighten(0, m, s_vertices, s_weights, s_blocks, x, tension)
    for chunk in prange(CHUNKS):
        first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        _copy_rows(
            first,
            last,
            matrix,
            springs,
            filters,
            is_free,
            rows,
            columns,
            blocks,
            factor_columns,
            factors,
            inverse,
        )
        _multiply_rows(first, last, work, springs, x, r)
        for i in range(first, last):
            for c in range(3):
                r[i, c] = b[i, c] - r[i, c]
                q[i, c] = b[i, c]
            if not is_free[i]:
                _filter_row(filters, i, r)
                _filter_row(filters, i, q)
            multiply_block(inverse, q, i, z)
        partial[1, chunk] = _dot_rows(first, last, q, z)
        for i in range(first, last):
            multiply_block(inverse, r, i, z)
        partial[0, chunk] = _dot_rows(first, last, r, z)
    scale = _ordered_sum(partial[1]) + update_shifts(levels, q)
    rho = _ordered_sum(partial[0]) + update_shifts(levels, r)
    scale = max(scale, rho)
    _turn_rows(0, n, 0.0, parents, shift, filters, is_free, z, p)
    goal = min(tolerance * tolerance * scale, energy)
    iteration = 0
    while rho > goal and rho > 0.0 and iteration < max_iterations:
        iteration += 1
        if m > 0:
            for chunk in prange(CHUNKS):
                _tighten(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS, s_vertices, s_weights, s_blocks, p, tension)
        for chunk in prange(CHUNKS):
            first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
            _multiply_rows(first, last, work, springs, p, q)
            for i in range(first, last):
                if not is_free[i]:
                    _filter_row(filters, i, q)
            partial[0, chunk] = _dot_rows(first, last, p, q)
        alpha = rho / _ordered_sum(partial[0])
        for chunk in prange(CHUNKS):
            first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
            _advance_rows(first, last, alpha, p, q, x, r)
            for i in range(first, last):
                multiply_block(inverse, r, i, z)
            partial[0, chunk] = _dot_rows(first, last, r, z)
        for chunk in prange(CHUNKS):
            first, last = chunk * n_patches // CHUNKS, (chunk + 1) * n_patches // CHUNKS
            partial[1, chunk] = shift_smallest(first, last, n, child_starts, children, patch_inverse, r, right, shift)
        rho_new = _ordered_sum(partial[0]) + _ordered_sum(partial[1]) + shift_larger(levels, n)
        beta = rho_new / rho
        rho = rho_new
        for chunk in prange(CHUNKS):
            first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
            _turn_rows(first, last, beta, parents, shift, filters, is_free, z, p)
    for i in range(n):
        if is_free[i]:
            x_inout[i, 0], x_inout[i, 1], x_inout[i, 2] = x[i, 0], x[i, 1], x[i, 2]
        else:  # what is held keeps its digits
            d0, d1, d2 = x[i, 0] - x_inout[i, 0], x[i, 1] - x_inout[i, 1], x[i, 2] - x_inout[i, 2]
            for c in range(3):
                x_inout[i, c] += filters[i, c, 0] * d0 + filters[i, c, 1] * d1 + filters[i, c, 2] * d2
    return iteration, np.sqrt(rho / scale) if scale > 0.0 else 0.0


@kernel(parallel=True)
def _update_product(matrix: BlockMatrix, x: Floats, b: Floats, residual_out: Floats) -> None:
    row_starts, columns, _starts, _sources, diagonal, off_diagonal = matrix
    for i in prange(len(b)):
        for r in range(3):
            y = diagonal[i, r, 0] * x[i, 0] + diagonal[i, r, 1] * x[i, 1] + diagonal[i, r, 2] * x[i, 2]
            for k in range(row_starts[i], row_starts[i + 1]):
                j = columns[k]
                y += off_diagonal[k, r, 0] * x[j, 0] + off_diagonal[k, r, 1] * x[j, 1] + off_diagonal[k, r, 2] * x[j, 2]
            residual_out[i, r] = y - b[i, r]


def update_residual(matrix: BlockMatrix, springs: Springs, x: Floats, b: Floats, residual_out: Floats) -> None:
    """Overwrite `residual_out` with A x - b: what the constraints contributed."""
    _update_product(matrix, x, b, residual_out)
    if len(springs.vertices):
        residual_out += spring_impulses(springs, x)
