"""Preconditioned conjugate gradients on 3 x 3 blocks, with filtered constraints.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, section 5: each vertex has a filter S_i, the
projector on the directions in which it is free, and a prescribed change z_i in the others. With A the block matrix plus
the springs of contacts, we solve for y in S A S y = S (b - A z) and return S y + z (the form of Ascher and Boxerman,
2003, which drops no part of z in the preconditioner as the original does).

Sums run over a fixed number of chunks, merged in order: bitwise the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats
from weft.jit import kernel, prange
from weft.linear.blocks import BlockMatrix
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
    partial: Floats
    """(2, CHUNKS)"""


def build_work(n: int) -> PcgWork:
    vectors = np.zeros((4, n, 3))
    return PcgWork(vectors[0], vectors[1], vectors[2], vectors[3], np.zeros((n, 3, 3)), np.zeros((2, CHUNKS)))


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


@kernel(parallel=True)
def solve_filtered(
    matrix: BlockMatrix,
    springs: Springs,
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
    r, p, q, z, inverse, partial = work
    for c in range(m):  # once, so not worth the seconds that another parallel loop takes to compile
        update_tension(springs, x_inout, c)
    for chunk in prange(CHUNKS):
        first = bound = 0.0
        for i in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            _invert_block(matrix.diagonal, springs, i, inverse)
            y0, y1, y2 = _product_row(matrix, springs, x_inout, i)
            r[i, 0], r[i, 1], r[i, 2] = _block_times(filters, i, b[i, 0] - y0, b[i, 1] - y1, b[i, 2] - y2)
            z0, z1, z2 = _block_times(inverse, i, r[i, 0], r[i, 1], r[i, 2])
            p[i, 0], p[i, 1], p[i, 2] = _block_times(filters, i, z0, z1, z2)
            first += r[i, 0] * p[i, 0] + r[i, 1] * p[i, 1] + r[i, 2] * p[i, 2]
            g0, g1, g2 = _block_times(filters, i, b[i, 0], b[i, 1], b[i, 2])
            h0, h1, h2 = _block_times(inverse, i, g0, g1, g2)
            bound += g0 * h0 + g1 * h1 + g2 * h2
        partial[0, chunk] = first
        partial[1, chunk] = bound
    rho = _ordered_sum(partial[0])
    scale = max(_ordered_sum(partial[1]), rho)
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
        rho_new = _ordered_sum(partial[0])
        beta = rho_new / rho
        rho = rho_new
        for i in range(n):
            for c in range(3):
                p[i, c] = z[i, c] + beta * p[i, c]
    return iteration, np.sqrt(rho / scale) if scale > 0.0 else 0.0


@kernel
def update_residual(matrix: BlockMatrix, springs: Springs, x: Floats, b: Floats, residual_out: Floats) -> None:
    """Overwrite `residual_out` with A x - b: what the constraints contributed."""
    for c in range(len(springs.vertices)):
        update_tension(springs, x, c)
    for i in range(len(b)):
        y0, y1, y2 = _product_row(matrix, springs, x, i)
        residual_out[i, 0], residual_out[i, 1], residual_out[i, 2] = y0 - b[i, 0], y1 - b[i, 1], y2 - b[i, 2]
