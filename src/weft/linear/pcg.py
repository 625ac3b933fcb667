"""Preconditioned conjugate gradients on 3 x 3 blocks, with filtered constraints.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, section 5: each vertex has a filter S_i, the
projector on the directions in which it is free, and a prescribed change z_i in the others. With A the block matrix plus
the springs of contacts, we solve for y in S A S y = S (b - A z) and return S y + z (the form of Ascher and Boxerman,
2003, which drops no part of z in the preconditioner as the original does).

The preconditioner is the inverse of each vertex's own block plus the shifts of patches (see `levels`).

Sums run over a fixed number of chunks, merged in order: bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats
from weft.jit import kernel, prange
from weft.linear.blocks import BlockMatrix
from weft.linear.levels import Levels, update_levels, update_shifts
from weft.linear.springs import Springs, springs_on_diagonal, tension_at, update_tension

CHUNKS = 32


class PcgWork(NamedTuple):
    """Scratch memory of one solver."""

    r: Floats
    p: Floats
    q: Floats
    z: Floats
    inverse: Floats
    """(n, 3, 3) inverse of the diagonal blocks"""
    is_free: Bools
    """(n,) vertices that are free in all directions"""
    partial: Floats
    """(2, CHUNKS)"""


def build_work(n: int) -> PcgWork:
    vectors = np.zeros((4, n, 3))
    return PcgWork(*vectors, np.zeros((n, 3, 3)), np.zeros(n, np.bool_), np.zeros((2, CHUNKS)))


@kernel
def _ordered_sum(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@kernel
def _product_row(matrix: BlockMatrix, springs: Springs, x: Floats, i: int) -> tuple[float, float, float]:
    """Row i of A x; the tension of the springs must be up to date for x."""
    d, o = matrix.diagonal, matrix.off_diagonal
    y0 = d[i, 0, 0] * x[i, 0] + d[i, 0, 1] * x[i, 1] + d[i, 0, 2] * x[i, 2]
    y1 = d[i, 1, 0] * x[i, 0] + d[i, 1, 1] * x[i, 1] + d[i, 1, 2] * x[i, 2]
    y2 = d[i, 2, 0] * x[i, 0] + d[i, 2, 1] * x[i, 1] + d[i, 2, 2] * x[i, 2]
    for b in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
        j = matrix.columns[b]
        x0, x1, x2 = x[j, 0], x[j, 1], x[j, 2]
        y0 += o[b, 0, 0] * x0 + o[b, 0, 1] * x1 + o[b, 0, 2] * x2
        y1 += o[b, 1, 0] * x0 + o[b, 1, 1] * x1 + o[b, 1, 2] * x2
        y2 += o[b, 2, 0] * x0 + o[b, 2, 1] * x1 + o[b, 2, 2] * x2
    t0, t1, t2 = tension_at(springs, i)
    return y0 + t0, y1 + t1, y2 + t2


@kernel
def _block_times(blocks: Floats, i: int, x0: float, x1: float, x2: float) -> tuple[float, float, float]:
    return (
        blocks[i, 0, 0] * x0 + blocks[i, 0, 1] * x1 + blocks[i, 0, 2] * x2,
        blocks[i, 1, 0] * x0 + blocks[i, 1, 1] * x1 + blocks[i, 1, 2] * x2,
        blocks[i, 2, 0] * x0 + blocks[i, 2, 1] * x1 + blocks[i, 2, 2] * x2,
    )


@kernel
def _invert_block(a: Floats, springs: Springs, i: int, inverse_out: Floats) -> None:
    """Overwrite the inverse of the symmetric diagonal block of row i by its cofactors."""
    d00, d01, d02, d11, d12, d22 = springs_on_diagonal(springs, i)
    a00, a01, a02 = a[i, 0, 0] + d00, a[i, 0, 1] + d01, a[i, 0, 2] + d02
    a11, a12, a22 = a[i, 1, 1] + d11, a[i, 1, 2] + d12, a[i, 2, 2] + d22
    c00, c01, c02 = a11 * a22 - a12 * a12, a12 * a02 - a01 * a22, a01 * a12 - a11 * a02
    inv_det = 1.0 / (a00 * c00 + a01 * c01 + a02 * c02)
    inverse_out[i, 0, 0] = c00 * inv_det
    inverse_out[i, 0, 1] = inverse_out[i, 1, 0] = c01 * inv_det
    inverse_out[i, 0, 2] = inverse_out[i, 2, 0] = c02 * inv_det
    inverse_out[i, 1, 1] = (a00 * a22 - a02 * a02) * inv_det
    inverse_out[i, 1, 2] = inverse_out[i, 2, 1] = (a02 * a01 - a00 * a12) * inv_det
    inverse_out[i, 2, 2] = (a00 * a11 - a01 * a01) * inv_det


@kernel
def _is_identity(filters: Floats, i: int) -> bool:
    trace = filters[i, 0, 0] + filters[i, 1, 1] + filters[i, 2, 2]
    return bool(trace == 3.0)  # of a projector: nothing is taken away


@kernel
def _shift_at(levels: Levels, is_free: Bools, i: int) -> tuple[float, float, float]:
    """What the patches that hold vertex i add to its answer."""
    patch = levels.parents[i] - len(is_free)
    if patch < 0 or not is_free[i]:
        return 0.0, 0.0, 0.0
    return levels.shift[patch, 0], levels.shift[patch, 1], levels.shift[patch, 2]


@kernel(parallel=True)
def solve_filtered(
    matrix: BlockMatrix,
    springs: Springs,
    levels: Levels,
    b: Floats,
    filters: Floats,
    tolerance: float,
    max_iterations: int,
    work: PcgWork,
    x_inout: Floats,
) -> tuple[int, float]:
    """Solve A x = b in the free directions, keeping the constrained part of `x_inout` as it comes in.

    `x_inout` starts as z plus any guess in the free directions. `filters` (n, 3, 3) are the projectors S. Returns
    the iterations and the residual relative to the right-hand side, both in the norm of the preconditioner.
    """
    n, m = len(b), len(springs.vertices)
    r, p, q, z, inverse, is_free, partial = work
    for c in range(m):  # once, so not worth the seconds that another parallel loop takes to compile
        update_tension(springs, x_inout, c)
    for i in range(n):
        is_free[i] = _is_identity(filters, i)
    update_levels(levels, matrix, springs, is_free)
    for chunk in prange(CHUNKS):
        first = bound = 0.0
        for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            _invert_block(matrix.diagonal, springs, i, inverse)
            y0, y1, y2 = _product_row(matrix, springs, x_inout, i)
            r[i, 0], r[i, 1], r[i, 2] = _block_times(filters, i, b[i, 0] - y0, b[i, 1] - y1, b[i, 2] - y2)
            z0, z1, z2 = _block_times(inverse, i, r[i, 0], r[i, 1], r[i, 2])
            z[i, 0], z[i, 1], z[i, 2] = _block_times(filters, i, z0, z1, z2)
            first += r[i, 0] * z[i, 0] + r[i, 1] * z[i, 1] + r[i, 2] * z[i, 2]
            q[i, 0], q[i, 1], q[i, 2] = _block_times(filters, i, b[i, 0], b[i, 1], b[i, 2])
            h0, h1, h2 = _block_times(inverse, i, q[i, 0], q[i, 1], q[i, 2])
            bound += q[i, 0] * h0 + q[i, 1] * h1 + q[i, 2] * h2
        partial[0, chunk] = first
        partial[1, chunk] = bound
    scale = _ordered_sum(partial[1]) + update_shifts(levels, q, is_free)
    rho = _ordered_sum(partial[0]) + update_shifts(levels, r, is_free)
    scale = max(scale, rho)
    for i in range(n):
        s0, s1, s2 = _shift_at(levels, is_free, i)
        p[i, 0], p[i, 1], p[i, 2] = z[i, 0] + s0, z[i, 1] + s1, z[i, 2] + s2
    goal = tolerance * tolerance * scale
    iteration = 0
    while rho > goal and rho > 0.0 and iteration < max_iterations:
        iteration += 1
        if m > 0:
            for chunk in prange(CHUNKS):
                for c in range(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS):
                    update_tension(springs, p, c)
        for chunk in prange(CHUNKS):
            curvature = 0.0
            for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
                y0, y1, y2 = _product_row(matrix, springs, p, i)
                q[i, 0], q[i, 1], q[i, 2] = _block_times(filters, i, y0, y1, y2)
                curvature += p[i, 0] * q[i, 0] + p[i, 1] * q[i, 1] + p[i, 2] * q[i, 2]
            partial[0, chunk] = curvature
        alpha = rho / _ordered_sum(partial[0])
        for chunk in prange(CHUNKS):
            new = 0.0
            for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
                for c in range(3):
                    x_inout[i, c] += alpha * p[i, c]
                    r[i, c] -= alpha * q[i, c]
                z0, z1, z2 = _block_times(inverse, i, r[i, 0], r[i, 1], r[i, 2])
                z[i, 0], z[i, 1], z[i, 2] = _block_times(filters, i, z0, z1, z2)
                new += r[i, 0] * z[i, 0] + r[i, 1] * z[i, 1] + r[i, 2] * z[i, 2]
            partial[0, chunk] = new
        rho_new = _ordered_sum(partial[0]) + update_shifts(levels, r, is_free)
        beta = rho_new / rho
        rho = rho_new
        for i in range(n):
            s0, s1, s2 = _shift_at(levels, is_free, i)
            p[i, 0] = z[i, 0] + s0 + beta * p[i, 0]
            p[i, 1] = z[i, 1] + s1 + beta * p[i, 1]
            p[i, 2] = z[i, 2] + s2 + beta * p[i, 2]
    return iteration, np.sqrt(rho / scale) if scale > 0.0 else 0.0


@kernel
def update_residual(matrix: BlockMatrix, springs: Springs, x: Floats, b: Floats, residual_out: Floats) -> None:
    """Overwrite `residual_out` with A x - b: what the constraints contributed."""
    for c in range(len(springs.vertices)):
        update_tension(springs, x, c)
    for i in range(len(b)):
        y0, y1, y2 = _product_row(matrix, springs, x, i)
        residual_out[i, 0], residual_out[i, 1], residual_out[i, 2] = y0 - b[i, 0], y1 - b[i, 1], y2 - b[i, 2]
