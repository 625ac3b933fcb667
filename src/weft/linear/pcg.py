"""Preconditioned conjugate gradients on 3 x 3 blocks, with filtered constraints.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, section 5: each vertex has a filter S_i, the
projector on the directions in which it is free, and a prescribed change z_i in the others. With A the block matrix plus
the springs of contacts, we solve for y in S A S y = S (b - A z) and return S y + z (the form of Ascher and Boxerman,
2003, which drops no part of z in the preconditioner as the original does).

The preconditioner is the inverse of each vertex's own block plus the shifts and turns of patches (see `patches`). Rows
of the system stand in the order of the patches (see `rows`). Iterations run in single precision where the tolerance
leaves room for it, and in double where it does not.

Sums run over a fixed number of chunks, merged in order: bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints, Lanes, Longs
from weft.jit import kernel, prange
from weft.linear.blocks import BlockMatrix, times_block, times_item
from weft.linear.coupling import is_identity, update_patches
from weft.linear.lanes import (
    BLOCK,
    MODES_BLOCK,
    WIDTH,
    add_multiple,
    dot_rows,
    multiply_block,
    multiply_row,
    pull_row,
    tighten,
    turn_row,
)
from weft.linear.patches import Patches, answer, factorise, gather, measure_arms, pack_modes
from weft.linear.rows import CHUNKS, Rows, build_rows, copy_own
from weft.linear.springs import Springs, spring_impulses

SINGLE = 1e-4  # tolerance from which on single precision is enough, with an error of this in m/s


def precision(tolerance: float, error: float) -> type[np.floating]:
    """The precision that solves to `tolerance` and `error` [m/s] need."""
    return np.float32 if min(tolerance, error) >= SINGLE else np.float64


class PcgWork(NamedTuple):
    """Scratch memory of one solver in one precision."""

    inverse: Lanes
    """(9 n + 1,) filtered inverse of the diagonal blocks"""
    arms: Lanes
    """(n, 4) those of the patches"""
    vectors: Lanes
    """(5, n, 4) x, r, p, q, z"""
    is_free: Bools
    """(n,) vertices that are free in all directions"""
    met: Ints
    """(n,) rows of vertices that springs pull at, those of a chunk where the chunk begins"""
    n_met: Longs
    """(CHUNKS,) how many of each chunk"""
    partial: Floats
    """(2, CHUNKS)"""
    factor: Lanes
    """(36 c + 2,) that of the patches"""


def build_work(matrix: BlockMatrix, patches: Patches) -> tuple[Rows, PcgWork]:
    """Memory for solves of `matrix`, in the precision of its blocks."""
    dtype, n = matrix.off_diagonal.dtype, len(matrix.diagonal)
    return build_rows(matrix, patches), PcgWork(
        np.zeros(BLOCK * n + 1, dtype),
        np.zeros((n, WIDTH), dtype),
        np.zeros((5, n, WIDTH), dtype),
        np.zeros(n, np.bool_),
        np.zeros(n, np.int32),
        np.zeros(CHUNKS, np.int64),
        np.zeros((2, CHUNKS)),
        np.zeros(MODES_BLOCK * len(patches.factor) + 2, dtype),
    )


@kernel
def _ordered_sum(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@kernel(inline=True)
def invert_symmetric(
    a00: float, a01: float, a02: float, a11: float, a12: float, a22: float
) -> tuple[float, float, float, float, float, float]:
    """The inverse of a symmetric block by its cofactors, in the same order; 0 for a block that is not positive."""
    c00, c01, c02 = a11 * a22 - a12 * a12, a12 * a02 - a01 * a22, a01 * a12 - a11 * a02
    determinant = a00 * c00 + a01 * c01 + a02 * c02
    is_positive = not (a00 <= 0.0 or c00 <= 0.0 or determinant <= 1e-12 * a00 * a11 * a22)
    f = 1.0 / determinant if is_positive else 0.0
    return (
        f * c00, f * c01, f * c02,
        f * (a00 * a22 - a02 * a02), f * (a02 * a01 - a00 * a12), f * (a00 * a11 - a01 * a01),
    )  # fmt: skip


@kernel
def _filter_inverse(filters: Floats, i: int, first: int, inverse_inout: Lanes) -> None:
    """Overwrite the inverse C that starts at `first` with S C S; both are symmetric."""
    for c in range(3):  # S C, column by column
        y = first + 3 * c
        y0, y1, y2 = inverse_inout[y], inverse_inout[y + 1], inverse_inout[y + 2]
        for r in range(3):
            inverse_inout[y + r] = filters[i, r, 0] * y0 + filters[i, r, 1] * y1 + filters[i, r, 2] * y2
    for r in range(3):
        y0, y1, y2 = inverse_inout[first + r], inverse_inout[first + 3 + r], inverse_inout[first + 6 + r]
        for c in range(3):
            inverse_inout[first + 3 * c + r] = filters[i, c, 0] * y0 + filters[i, c, 1] * y1 + filters[i, c, 2] * y2


@kernel
def _invert_rows(
    first: int, last: int, order: Ints, diagonal: Floats, springs: Springs, filters: Floats, work: PcgWork
) -> None:
    """Overwrite the inverse diagonal blocks of rows `first` to `last`, with springs."""
    _vertices, weights, normals, along, across, starts, items = springs
    is_free, out = work.is_free, work.inverse
    for row in range(first, last):
        i = order[row]
        a00, a01, a02 = diagonal[i, 0, 0], diagonal[i, 0, 1], diagonal[i, 0, 2]
        a11, a12, a22 = diagonal[i, 1, 1], diagonal[i, 1, 2], diagonal[i, 2, 2]
        for k in range(starts[i], starts[i + 1]):
            spring, place = items[k] >> 2, items[k] & 3
            w = weights[spring, place] ** 2
            part, lift = w * across[spring], w * (along[spring] - across[spring])
            n0, n1, n2 = normals[spring, 0], normals[spring, 1], normals[spring, 2]
            a00, a01, a02 = a00 + part + lift * n0 * n0, a01 + lift * n0 * n1, a02 + lift * n0 * n2
            a11, a12, a22 = a11 + part + lift * n1 * n1, a12 + lift * n1 * n2, a22 + part + lift * n2 * n2
        c00, c01, c02, c11, c12, c22 = invert_symmetric(a00, a01, a02, a11, a12, a22)
        at = BLOCK * row
        out[at], out[at + 1], out[at + 2] = c00, c01, c02
        out[at + 3], out[at + 4], out[at + 5] = c01, c11, c12
        out[at + 6], out[at + 7], out[at + 8] = c02, c12, c22
        if not is_free[row]:
            _filter_inverse(filters, i, at, out)


@kernel(inline=True)
def _filter_row(filters: Floats, i: int, row: int, y_inout: Lanes) -> None:
    y0, y1, y2 = y_inout[row, 0], y_inout[row, 1], y_inout[row, 2]
    for r in range(3):
        y_inout[row, r] = filters[i, r, 0] * y0 + filters[i, r, 1] * y1 + filters[i, r, 2] * y2


@kernel(parallel=True)
def _copy_springs(springs: Springs, row_of: Ints, x: Lanes) -> tuple[Ints, Lanes, Lanes, Lanes, Ints, Lanes]:
    """Springs in the layout of `lanes` and the precision of `x`.

    Rows (m, 4) and weights (m, 4) of each; its normal, and how much stiffer it is along it (m, 4); its stiffness across
    (m,); and of each of `springs.items` its spring and its weight.
    """
    vertices, weights, normals, along, across, _starts, items = springs
    m, k = len(vertices), len(items)
    rows_out, weights_out = np.empty((m, WIDTH), np.int32), np.empty((m, WIDTH), x.dtype)
    normals_out, across_out = np.empty((m, WIDTH), x.dtype), np.empty(m, x.dtype)
    items_out, item_weights_out = np.empty(k, np.int32), np.empty(k, x.dtype)
    for c in prange(m):
        for place in range(WIDTH):
            rows_out[c, place] = row_of[vertices[c, place]]
            weights_out[c, place] = weights[c, place]
        for r in range(3):
            normals_out[c, r] = normals[c, r]
        normals_out[c, 3], across_out[c] = along[c] - across[c], across[c]
    for q in prange(k):
        items_out[q] = items[q] >> 2
        item_weights_out[q] = weights[items[q] >> 2, items[q] & 3]
    return rows_out, weights_out, normals_out, across_out, items_out, item_weights_out


@kernel(inline=True)
def _multiply_rows(
    first: int,
    last: int,
    n_met: int,
    order: Ints,
    rows: Rows,
    met: Ints,
    starts: Ints,
    items: Ints,
    weights: Lanes,
    tension: Lanes,
    x: Lanes,
    y_out: Lanes,
) -> None:
    """Overwrite rows `first` to `last` of y, a chunk, with A x; the tension of the springs must be up to date for x."""
    row_starts, columns, blocks, own = rows.starts, rows.columns, rows.blocks, rows.own
    factor_columns, factors = rows.factor_columns, rows.factors
    for row in range(first, last):
        for c in range(WIDTH):
            y_out[row, c] = 0.0
    for row in range(first, last):
        multiply_row(row_starts, blocks, columns, factors, factor_columns, own, x, row, y_out)
    for q in range(first, first + n_met):
        i = order[met[q]]
        pull_row(items, weights, tension, starts[i], starts[i + 1], met[q], y_out)


@kernel(inline=True)
def _turn_rows(
    patch: int,
    beta: float,
    order: Ints,
    row_starts: Ints,
    small_starts: Ints,
    arms: Lanes,
    small_answers: Floats,
    answers: Floats,
    filters: Floats,
    is_free: Bools,
    z: Lanes,
    p_inout: Lanes,
) -> None:
    """Overwrite the direction p with the preconditioned residual, of vertices and patches, plus beta p."""
    for a in range(small_starts[patch], small_starts[patch + 1]):
        tx, ty, tz = (
            small_answers[a, 0] + answers[patch, 0],
            small_answers[a, 1] + answers[patch, 1],
            small_answers[a, 2] + answers[patch, 2],
        )
        wx, wy, wz = (
            small_answers[a, 3] + answers[patch, 3],
            small_answers[a, 4] + answers[patch, 4],
            small_answers[a, 5] + answers[patch, 5],
        )
        for row in range(row_starts[a], row_starts[a + 1]):
            if is_free[row]:
                turn_row((tx, ty, tz, wx, wy, wz), arms, row, z, beta, p_inout)
                continue
            i, ax, ay, az = order[row], arms[row, 0], arms[row, 1], arms[row, 2]
            dx, dy, dz = tx + wy * az - wz * ay, ty + wz * ax - wx * az, tz + wx * ay - wy * ax
            for c in range(3):
                way = filters[i, c, 0] * dx + filters[i, c, 1] * dy + filters[i, c, 2] * dz
                p_inout[row, c] = z[row, c] + way + beta * p_inout[row, c]


@kernel(parallel=True)
def solve_filtered(
    matrix: BlockMatrix,
    springs: Springs,
    patches: Patches,
    positions: Floats,
    b: Floats,
    filters: Floats,
    tolerance: float,
    energy: float,
    max_iterations: int,
    anew: bool,
    rows: Rows,
    work: PcgWork,
    x_inout: Floats,
) -> tuple[int, float]:
    """Solve A x = b in the free directions, keeping the constrained part of `x_inout` as it comes in.

    `x_inout` starts as z plus any guess in the free directions. `filters` (n, 3, 3) are the projectors S, `positions`
    where the vertices stand. Unless `anew`, the matrix is that of the last solve but for its diagonal, and so are the
    patches. Returns the iterations and the residual relative to the right-hand side, both in the norm of the
    preconditioner. It goes on until that is below `tolerance` and the square of the residual itself, which estimates
    the energy x A x of what is still missing, below `energy`.
    """
    n, m = len(b), len(springs.vertices)
    inverse, arms, vectors, is_free = work.inverse, work.arms, work.vectors, work.is_free
    met, n_met, partial = work.met, work.n_met, work.partial
    x, r, p, q, z = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    order, row_of, row_starts, small_starts = (
        patches.order,
        patches.rows,
        patches.row_starts,
        patches.small_starts,
    )
    column_starts, column_rows = patches.column_starts, patches.column_rows
    small_inverse, factor, patch_inverse = patches.small_inverse, work.factor, patches.inverse
    small_right, small_answers = patches.small_right, patches.small_answers
    right, answers = patches.right, patches.answers
    starts, own, own_rows = springs.starts, matrix.own, rows.own
    end_rows, end_weights, normals, across, items, weights = _copy_springs(springs, row_of, x)
    tension = np.empty((m, WIDTH), x.dtype)
    n_large = len(patch_inverse)
    patch_arms = patches.arms
    if anew:
        for patch in prange(n_large):
            measure_arms(patch, positions, order, row_starts, small_starts, patch_arms)
    for chunk in prange(CHUNKS):
        first = row_starts[small_starts[chunk * n_large // CHUNKS]]
        last = row_starts[small_starts[(chunk + 1) * n_large // CHUNKS]]
        n_met[chunk] = 0
        for row in range(first, last):
            i = order[row]
            is_free[row] = is_identity(filters, i)
            if starts[i + 1] > starts[i]:
                met[first + n_met[chunk]] = row
                n_met[chunk] += 1
            for c in range(3):
                arms[row, c] = patch_arms[row, c]
                x[row, c] = x_inout[i, c]
                p[row, c] = 0.0
                r[row, c] = b[i, c]
            if not is_free[row]:
                _filter_row(filters, i, row, r)
            if not anew:
                copy_own(row, order, own, own_rows)
        partial[1, chunk] = dot_rows(x, x, first, last)
    if anew:
        update_patches(matrix, rows, springs, patches, filters, is_free)
    wide_factor = patches.factor
    middle = 0 if anew else n // 2
    for part in prange(2):  # one patch after another, on one thread: vertices have theirs done on another meanwhile
        if part == 0 and anew:
            factorise(
                len(small_inverse),
                column_starts,
                patches.update_starts,
                patches.updates,
                patches.blocks,
                wide_factor,
                patch_inverse,
            )
            for k in range(len(wide_factor)):
                pack_modes(wide_factor, k, factor)
        first, last = (0, middle) if part == 0 else (middle, n)
        _invert_rows(first, last, order, matrix.diagonal, springs, filters, work)
    rho = scale = 0.0
    for start in range(2):  # the right-hand side gives the scale, then what the guess leaves of it the residual
        if start == 1:
            if _ordered_sum(partial[1]) == 0.0:
                break
            for chunk in prange(CHUNKS):
                for c in range(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS):
                    tighten(end_rows, end_weights, normals, across, x, c, tension)
            for chunk in prange(CHUNKS):
                first = row_starts[small_starts[chunk * n_large // CHUNKS]]
                last = row_starts[small_starts[(chunk + 1) * n_large // CHUNKS]]
                _multiply_rows(first, last, n_met[chunk], order, rows, met, starts, items, weights, tension, x, r)
                for row in range(first, last):
                    for c in range(3):
                        r[row, c] = b[order[row], c] - r[row, c]
                    if not is_free[row]:
                        _filter_row(filters, order[row], row, r)
        for chunk in prange(CHUNKS):
            first = row_starts[small_starts[chunk * n_large // CHUNKS]]
            last = row_starts[small_starts[(chunk + 1) * n_large // CHUNKS]]
            for row in range(first, last):
                multiply_block(inverse, r, row, z)
            partial[0, chunk] = dot_rows(r, z, first, last)
            for patch in range(chunk * n_large // CHUNKS, (chunk + 1) * n_large // CHUNKS):
                partial[0, chunk] += gather(
                    patch, row_starts, small_starts, arms, small_inverse, r, small_right, small_answers, right
                )
        rho = _ordered_sum(partial[0]) + answer(column_starts, column_rows, factor, patch_inverse, right, answers)
        scale = max(scale, rho)
    for patch in prange(n_large):
        _turn_rows(patch, 0.0, order, row_starts, small_starts, arms, small_answers, answers, filters, is_free, z, p)
    goal = min(tolerance * tolerance * scale, energy)
    iteration = 0
    while rho > goal and rho > 0.0 and iteration < max_iterations:
        iteration += 1
        if m > 0:
            for chunk in prange(CHUNKS):
                for c in range(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS):
                    tighten(end_rows, end_weights, normals, across, p, c, tension)
        for chunk in prange(CHUNKS):
            first = row_starts[small_starts[chunk * n_large // CHUNKS]]
            last = row_starts[small_starts[(chunk + 1) * n_large // CHUNKS]]
            _multiply_rows(first, last, n_met[chunk], order, rows, met, starts, items, weights, tension, p, q)
            for row in range(first, last):
                if not is_free[row]:
                    _filter_row(filters, order[row], row, q)
            partial[0, chunk] = dot_rows(p, q, first, last)
        alpha = rho / _ordered_sum(partial[0])
        for chunk in prange(CHUNKS):
            first = row_starts[small_starts[chunk * n_large // CHUNKS]]
            last = row_starts[small_starts[(chunk + 1) * n_large // CHUNKS]]
            for row in range(first, last):
                add_multiple(-alpha, q, row, r)
                multiply_block(inverse, r, row, z)
            partial[0, chunk] = dot_rows(r, z, first, last)
            for patch in range(chunk * n_large // CHUNKS, (chunk + 1) * n_large // CHUNKS):
                partial[0, chunk] += gather(
                    patch, row_starts, small_starts, arms, small_inverse, r, small_right, small_answers, right
                )
        for part in prange(2):  # patches answer one after another, on one thread: x goes on another meanwhile
            if part == 0:
                partial[1, 0] = answer(column_starts, column_rows, factor, patch_inverse, right, answers)
            else:
                for row in range(n):
                    add_multiple(alpha, p, row, x)
        rho_new = _ordered_sum(partial[0]) + partial[1, 0]
        beta = rho_new / rho
        rho = rho_new
        for chunk in prange(CHUNKS):
            for patch in range(chunk * n_large // CHUNKS, (chunk + 1) * n_large // CHUNKS):
                _turn_rows(
                    patch, beta, order, row_starts, small_starts, arms, small_answers, answers, filters, is_free, z, p
                )
    for row in prange(n):
        i = order[row]
        if is_free[row]:
            x_inout[i, 0], x_inout[i, 1], x_inout[i, 2] = x[row, 0], x[row, 1], x[row, 2]
        else:  # what is held keeps its digits
            d0, d1, d2 = x[row, 0] - x_inout[i, 0], x[row, 1] - x_inout[i, 1], x[row, 2] - x_inout[i, 2]
            for c in range(3):
                x_inout[i, c] += filters[i, c, 0] * d0 + filters[i, c, 1] * d1 + filters[i, c, 2] * d2
    return iteration, np.sqrt(rho / scale) if scale > 0.0 else 0.0


@kernel(parallel=True)
def _update_product(matrix: BlockMatrix, x: Floats, b: Floats, held: Bools, residual_out: Floats) -> None:
    ends, row_starts, row_blocks, diagonal = matrix.ends, matrix.row_starts, matrix.row_blocks, matrix.diagonal
    for i in prange(len(b)):
        if not held[i]:
            residual_out[i, 0] = residual_out[i, 1] = residual_out[i, 2] = 0.0
            continue
        y0, y1, y2 = times_block(diagonal, 2 * i, x[i, 0], x[i, 1], x[i, 2])
        for q in range(row_starts[i], row_starts[i + 1]):
            j = ends[row_blocks[q] >> 1, 1 - (row_blocks[q] & 1)]
            z0, z1, z2 = times_item(matrix, row_blocks[q], x[j, 0], x[j, 1], x[j, 2])
            y0, y1, y2 = y0 + z0, y1 + z1, y2 + z2
        residual_out[i, 0], residual_out[i, 1], residual_out[i, 2] = y0 - b[i, 0], y1 - b[i, 1], y2 - b[i, 2]


def update_impulses(
    matrix: BlockMatrix, springs: Springs, x: Floats, b: Floats, held: Bools, impulses_out: Floats
) -> None:
    """Overwrite `impulses_out` with A x - b, what constraints contributed, where vertices are `held`; else with 0."""
    _update_product(matrix, x, b, held, impulses_out)
    if len(springs.vertices) and held.any():
        impulses_out[held] += spring_impulses(springs, x)[held]
