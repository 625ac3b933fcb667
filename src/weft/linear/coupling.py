"""What couples patches: the blocks of Z^T A Z, gathered row by row from the matrix and from contacts.

See `patches` for Z and the layout of the blocks. A large patch adds only to blocks of its own row, so patches can be
gathered in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints, Lanes
from weft.jit import kernel, prange
from weft.linear.blocks import BlockMatrix, times_block
from weft.linear.lanes import BLOCK, add_outer
from weft.linear.patches import LOST, Patches, invert_modes
from weft.linear.rows import Rows, copy_rows, load_block
from weft.linear.springs import Springs


@kernel(inline=True)
def is_identity(filters: Floats, i: int) -> bool:
    """Whether vertex i is free in all directions; `filters` are projectors."""
    return bool(filters[i, 0, 0] + filters[i, 1, 1] + filters[i, 2, 2] == 3.0)


@kernel(inline=True)
def _add_column(
    out_inout: Floats, k: int, c: int, w: float, x: float, y: float, z: float, y0: float, y1: float, y2: float
) -> None:
    """Add w Z^T (y0, y1, y2) to column c of block k, Z being that of an arm and (x, y, z) w times the arm."""
    out_inout[k, c, 0] += w * y0
    out_inout[k, c, 1] += w * y1
    out_inout[k, c, 2] += w * y2
    out_inout[k, c, 3] += y * y2 - z * y1
    out_inout[k, c, 4] += z * y0 - x * y2
    out_inout[k, c, 5] += x * y1 - y * y0


@kernel(inline=True)
def _add_coupling(
    out_inout: Floats,
    k: int,
    source: Floats,
    q: int,
    left: tuple[float, float, float, float],
    right: tuple[float, float, float, float],
) -> None:
    """Add w Z^T B_q Z' w' to block k; `left` are w and w times the arm of Z, `right` the same of Z'."""
    w, x, y, z = left
    h, u, v, t = right
    b00, b01, b02 = source[q, 0, 0], source[q, 0, 1], source[q, 0, 2]
    b10, b11, b12 = source[q, 1, 0], source[q, 1, 1], source[q, 1, 2]
    b20, b21, b22 = source[q, 2, 0], source[q, 2, 1], source[q, 2, 2]
    _add_column(out_inout, k, 0, w, x, y, z, h * b00, h * b10, h * b20)
    _add_column(out_inout, k, 1, w, x, y, z, h * b01, h * b11, h * b21)
    _add_column(out_inout, k, 2, w, x, y, z, h * b02, h * b12, h * b22)
    _add_column(out_inout, k, 3, w, x, y, z, v * b02 - t * b01, v * b12 - t * b11, v * b22 - t * b21)
    _add_column(out_inout, k, 4, w, x, y, z, t * b00 - u * b02, t * b10 - u * b12, t * b20 - u * b22)
    _add_column(out_inout, k, 5, w, x, y, z, u * b01 - v * b00, u * b11 - v * b10, u * b21 - v * b20)


@kernel
def _add_block(
    out_inout: Floats, k: int, source: Floats, q: int, factor: float, arms: Floats, row: int, column: int
) -> None:
    """Add `factor` Z_row^T B_q Z_column to block k."""
    left = 1.0, arms[row, 0], arms[row, 1], arms[row, 2]
    right = factor, factor * arms[column, 0], factor * arms[column, 1], factor * arms[column, 2]
    _add_coupling(out_inout, k, source, q, left, right)


@kernel(allocates=True)
def _filter_block(block_inout: Floats, filters: Floats, i: int, j: int) -> None:
    """Overwrite a block B (1, 3, 3) with S_i B S_j."""
    out = np.empty((3, 3))
    for c in range(3):
        y0, y1, y2 = times_block(block_inout, 0, filters[j, 0, c], filters[j, 1, c], filters[j, 2, c])
        for r in range(3):
            out[r, c] = filters[i, r, 0] * y0 + filters[i, r, 1] * y1 + filters[i, r, 2] * y2
    block_inout[0] = out


@kernel
def _find_block(column_starts: Ints, column_rows: Ints, row: int, column: int) -> int:
    """Which block of C couples two large patches, `row` the later one; -1 where there is no room for it."""
    if row == column:
        return column
    low, high = column_starts[column], column_starts[column + 1]
    while low < high:
        middle = (low + high) // 2
        if column_rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    if low < column_starts[column + 1] and column_rows[low] == row:
        return int(len(column_starts) - 1 + low)
    return -1


@kernel(inline=True)
def _size(blocks: Floats, i: int) -> float:
    return float(blocks[i, 0, 0] + blocks[i, 1, 1] + blocks[i, 2, 2]) / 3.0


@kernel
def _tie_down(blocks_inout: Floats, k: int, filters: Floats, i: int, size: float) -> None:
    """Add `size` times I - S_i to block k."""
    for r in range(3):
        for c in range(3):
            blocks_inout[k, r, c] -= size * filters[i, r, c]
        blocks_inout[k, r, r] += size


@kernel(inline=True)
def _add_run(
    out_inout: Floats,
    runs: Ints,
    run: int,
    row: int,
    arms: Floats,
    columns: Ints,
    blocks: Lanes,
    factor_columns: Ints,
    factors: Lanes,
) -> None:
    """Add to a block of the patches Z_row^T times the sum of B_k Z_column, over the blocks B_k of a run.

    Sums are numbers of their own, which stay in registers: an array for them takes three times as long, and one that is
    part of another more yet, since numba counts who refers to it.
    """
    a00 = a01 = a02 = a03 = a04 = a05 = 0.0
    a10 = a11 = a12 = a13 = a14 = a15 = 0.0
    a20 = a21 = a22 = a23 = a24 = a25 = 0.0
    place = runs[run, 0]
    for k in range(runs[run, 1], runs[run, 2]):
        column, at = columns[k], BLOCK * k
        x, y, z = arms[column, 0], arms[column, 1], arms[column, 2]
        b00, b10, b20 = blocks[at], blocks[at + 1], blocks[at + 2]
        b01, b11, b21 = blocks[at + 3], blocks[at + 4], blocks[at + 5]
        b02, b12, b22 = blocks[at + 6], blocks[at + 7], blocks[at + 8]
        a00, a01, a02 = a00 + b00, a01 + b01, a02 + b02
        a03, a04, a05 = a03 + y * b02 - z * b01, a04 + z * b00 - x * b02, a05 + x * b01 - y * b00
        a10, a11, a12 = a10 + b10, a11 + b11, a12 + b12
        a13, a14, a15 = a13 + y * b12 - z * b11, a14 + z * b10 - x * b12, a15 + x * b11 - y * b10
        a20, a21, a22 = a20 + b20, a21 + b21, a22 + b22
        a23, a24, a25 = a23 + y * b22 - z * b21, a24 + z * b20 - x * b22, a25 + x * b21 - y * b20
    total = u = v = w = 0.0
    for k in range(runs[run, 3], runs[run, 4]):
        column, factor = factor_columns[k], factors[k]
        total, u = total + factor, u + factor * arms[column, 0]
        v, w = v + factor * arms[column, 1], w + factor * arms[column, 2]
    a00, a11, a22 = a00 + total, a11 + total, a22 + total
    a04, a05, a13, a15, a23, a24 = a04 + w, a05 - v, a13 - w, a15 + u, a23 + v, a24 - u
    x, y, z = arms[row, 0], arms[row, 1], arms[row, 2]
    _add_column(out_inout, place, 0, 1.0, x, y, z, a00, a10, a20)
    _add_column(out_inout, place, 1, 1.0, x, y, z, a01, a11, a21)
    _add_column(out_inout, place, 2, 1.0, x, y, z, a02, a12, a22)
    _add_column(out_inout, place, 3, 1.0, x, y, z, a03, a13, a23)
    _add_column(out_inout, place, 4, 1.0, x, y, z, a04, a14, a24)
    _add_column(out_inout, place, 5, 1.0, x, y, z, a05, a15, a25)


@kernel(inline=True)
def _add_transpose(blocks_inout: Floats, k: int) -> None:
    """Add to block k its own transpose."""
    for r in range(6):
        blocks_inout[k, r, r] *= 2.0
        for c in range(r):
            blocks_inout[k, r, c] += blocks_inout[k, c, r]
            blocks_inout[k, c, r] = blocks_inout[k, r, c]


@kernel(allocates=True)
def _couple_patch(
    patch: int,
    order: Ints,
    row_starts: Ints,
    small_starts: Ints,
    arms: Floats,
    diagonal: Floats,
    rows: Rows,
    filters: Floats,
    is_free: Bools,
    blocks_inout: Floats,
) -> None:
    """Add what the rows of one large patch hold: within a small patch a to C_a, else to C.

    Of what is in one patch, half is added up, that below the diagonal and half of the diagonal itself, and then its
    transpose.
    """
    block = np.empty((1, 3, 3))
    columns, blocks, factor_columns, factors = rows.columns, rows.blocks, rows.factor_columns, rows.factors
    run_starts, runs = rows.run_starts, rows.runs
    for a in range(small_starts[patch], small_starts[patch + 1]):
        for row in range(row_starts[a], row_starts[a + 1]):
            i = order[row]
            if is_free[row]:
                _add_block(blocks_inout, a, diagonal, i, 0.5, arms, row, row)
            else:
                block[0] = diagonal[i]
                _filter_block(block, filters, i, i)
                _tie_down(block, 0, filters, i, _size(diagonal, i))
                _add_block(blocks_inout, a, block, 0, 0.5, arms, row, row)
            for run in range(run_starts[row], run_starts[row + 1]):
                all_free = is_free[row]
                for k in range(runs[run, 1], runs[run, 2]):
                    all_free = all_free and is_free[columns[k]]
                for k in range(runs[run, 3], runs[run, 4]):
                    all_free = all_free and is_free[factor_columns[k]]
                if all_free:
                    _add_run(blocks_inout, runs, run, row, arms, columns, blocks, factor_columns, factors)
                    continue
                for k in range(runs[run, 1], runs[run, 2]):
                    load_block(blocks, k, block)
                    _filter_block(block, filters, i, order[columns[k]])
                    _add_block(blocks_inout, runs[run, 0], block, 0, 1.0, arms, row, columns[k])
                for k in range(runs[run, 3], runs[run, 4]):
                    block[0] = factors[k] * np.eye(3)
                    _filter_block(block, filters, i, order[factor_columns[k]])
                    _add_block(blocks_inout, runs[run, 0], block, 0, 1.0, arms, row, factor_columns[k])
        _add_transpose(blocks_inout, a)
    _add_transpose(blocks_inout, len(row_starts) - 1 + patch)


class SpringEnds(NamedTuple):
    """The free ends of springs, with weights other than 0; -1 for the others."""

    rows: Ints
    """(m, 4)"""
    small: Ints
    """(m, 4) their small patches"""
    large: Ints
    """(m, 4) and large ones"""
    has_room: Bools
    """(m,) whether C has room for all that a spring couples"""


@kernel(inline=True)
def _is_first(of: Ints, spring: int, place: int) -> bool:
    """Whether no end of a spring before `place` is `of` the same patch."""
    is_first = True
    for p in range(place):
        is_first = is_first and of[spring, p] != of[spring, place]
    return is_first


@kernel(inline=True)
def _find_ends(
    spring: int,
    vertices: Ints,
    weights: Floats,
    rows: Ints,
    is_free: Bools,
    small: Ints,
    large: Ints,
    column_starts: Ints,
    column_rows: Ints,
    rows_out: Ints,
    small_out: Ints,
    large_out: Ints,
    has_room_out: Bools,
) -> None:
    """Overwrite the ends of one spring; see `SpringEnds`."""
    has_room = True
    for p in range(4):
        row = rows[vertices[spring, p]]
        if weights[spring, p] == 0.0 or not is_free[row]:
            rows_out[spring, p] = small_out[spring, p] = large_out[spring, p] = -1
            continue
        rows_out[spring, p], small_out[spring, p], large_out[spring, p] = row, small[row], large[row]
        if not has_room or not _is_first(large_out, spring, p):
            continue
        for q in range(p):
            own, other = large[row], large_out[spring, q]
            if other >= 0 and _is_first(large_out, spring, q):
                room = _find_block(column_starts, column_rows, max(own, other), min(own, other))
                has_room = has_room and room >= 0
    has_room_out[spring] = has_room


@kernel(inline=True)
def _sum_arms(
    spring: int, weights: Floats, rows: Ints, arms: Floats, of: Ints, group: int
) -> tuple[float, float, float, float]:
    """The sum of the weights of a spring's ends that are `of` a patch, and that of weights times arms."""
    total = x = y = z = 0.0
    for p in range(4):
        if of[spring, p] == group:
            row, w = rows[spring, p], weights[spring, p]
            total, x, y, z = total + w, x + w * arms[row, 0], y + w * arms[row, 1], z + w * arms[row, 2]
    return total, x, y, z


@kernel(inline=True)
def _turned(
    part: tuple[float, float, float, float], n0: float, n1: float, n2: float
) -> tuple[float, float, float, float, float, float]:
    """w Z^T n; `part` are w and w times the arm of Z."""
    w, x, y, z = part
    return w * n0, w * n1, w * n2, y * n2 - z * n1, z * n0 - x * n2, x * n1 - y * n0


@kernel(inline=True)
def _add_spring(
    blocks_inout: Floats,
    k: int,
    normals: Floats,
    along: Floats,
    across: Floats,
    spring: int,
    left: tuple[float, float, float, float],
    right: tuple[float, float, float, float],
) -> None:
    """Add w Z^T B Z' w' to block k; `left` are w and w times the arm of Z, `right` the same of Z'."""
    n0, n1, n2 = normals[spring, 0], normals[spring, 1], normals[spring, 2]
    part = across[spring]
    add_outer(blocks_inout, k, _turned(left, n0, n1, n2), _turned(right, n0, n1, n2), along[spring] - part)
    if part > 0.0:
        add_outer(blocks_inout, k, _turned(left, 1.0, 0.0, 0.0), _turned(right, 1.0, 0.0, 0.0), part)
        add_outer(blocks_inout, k, _turned(left, 0.0, 1.0, 0.0), _turned(right, 0.0, 1.0, 0.0), part)
        add_outer(blocks_inout, k, _turned(left, 0.0, 0.0, 1.0), _turned(right, 0.0, 0.0, 1.0), part)


@kernel
def _couple_springs(
    patch: int,
    first_row: int,
    last_row: int,
    first: int,
    order: Ints,
    column_starts: Ints,
    column_rows: Ints,
    arms: Floats,
    springs: Springs,
    ends: SpringEnds,
    blocks_inout: Floats,
) -> None:
    """Add what springs couple to one large patch, rows `first_row` to `last_row`: within a small patch a to C_a, else
    to C, which starts at block `first`. An end that is held counts as one that stands still."""
    _vertices, weights, normals, along, across, starts, items = springs
    rows, small, large, has_room = ends
    for row in range(first_row, last_row):
        for k in range(starts[order[row]], starts[order[row] + 1]):
            spring, place = items[k] >> 2, items[k] & 3
            if large[spring, place] != patch or not _is_first(large, spring, place):
                continue
            own = 0.0, 0.0, 0.0, 0.0
            for p in range(place, 4):
                if large[spring, p] != patch or not _is_first(small, spring, p):
                    continue
                at = small[spring, p]
                part = _sum_arms(spring, weights, rows, arms, small, at)
                _add_spring(blocks_inout, at, normals, along, across, spring, part, part)
                if p > place:
                    _add_spring(blocks_inout, first + patch, normals, along, across, spring, own, part)
                    _add_spring(blocks_inout, first + patch, normals, along, across, spring, part, own)
                own = own[0] + part[0], own[1] + part[1], own[2] + part[2], own[3] + part[3]
            if not has_room[spring]:
                continue
            for p in range(4):
                at = large[spring, p]
                if 0 <= at < patch and _is_first(large, spring, p):
                    other = _sum_arms(spring, weights, rows, arms, large, at)
                    to = first + _find_block(column_starts, column_rows, patch, at)
                    _add_spring(blocks_inout, to, normals, along, across, spring, own, other)


@kernel
def _weigh_patch(k: int, first: int, small_starts: Ints, column_starts: Ints, blocks: Floats, out: Floats) -> None:
    """Overwrite block k of `out` with what shifts of patch k meet, and what couples them to those of later patches.

    C starts at block `first` of `blocks`.
    """
    below = first + len(column_starts) - 1
    for r in range(3):
        for c in range(3):
            total = blocks[first + k, r, c]
            for a in range(small_starts[k], small_starts[k + 1]):
                total += blocks[a, r, c]
            for q in range(below + column_starts[k], below + column_starts[k + 1]):
                total += blocks[q, r, c] + blocks[q, c, r]
            out[k, r, c] = total


@kernel
def _weigh_springs(
    springs: Springs, rows: Ints, large: Ints, pieces: Ints, is_free: Bools, piece_blocks_inout: Floats
) -> None:
    """Add what springs do to a piece as a whole: between two of its parts, nothing."""
    vertices, weights, normals, along, across, _starts, _items = springs
    for k in range(len(vertices)):
        piece, total = -1, 0.0
        for p in range(4):
            row = rows[vertices[k, p]]
            if weights[k, p] != 0.0 and is_free[row]:
                piece, total = pieces[large[row]], total + weights[k, p]
        if abs(total) > LOST:
            part, lift = total * total * across[k], total * total * (along[k] - across[k])
            for r in range(3):
                piece_blocks_inout[piece, r, r] += part
                for c in range(3):
                    piece_blocks_inout[piece, r, c] += lift * normals[k, r] * normals[k, c]


@kernel(parallel=True)
def update_patches(
    matrix: BlockMatrix, rows: Rows, springs: Springs, patches: Patches, filters: Floats, is_free: Bools
) -> None:
    """Overwrite `rows` with those of a matrix, and the blocks of `patches`, whose arms are measured, with contacts."""
    order, row_of, row_starts, small_starts = patches.order, patches.rows, patches.row_starts, patches.small_starts
    small, large = patches.small, patches.large
    arms, blocks, small_inverse = patches.arms, patches.blocks, patches.small_inverse
    column_starts, column_rows = patches.column_starts, patches.column_rows
    diagonal, pieces, piece_blocks = matrix.diagonal, patches.pieces, patches.piece_blocks
    n_small, n_large = len(small_inverse), len(patches.inverse)
    blocks[:] = 0.0
    for patch in prange(n_large):
        copy_rows(row_starts[small_starts[patch]], row_starts[small_starts[patch + 1]], order, matrix, rows)
        _couple_patch(patch, order, row_starts, small_starts, arms, diagonal, rows, filters, is_free, blocks)
    weights_of = np.empty((n_large, 3, 3))
    for patch in prange(n_large):
        _weigh_patch(patch, n_small, small_starts, column_starts, blocks, weights_of)
    piece_blocks[:] = 0.0
    for patch in range(n_large):
        for r in range(3):
            for c in range(3):
                piece_blocks[pieces[patch], r, c] += weights_of[patch, r, c]
    for row in range(len(order)):
        if not is_free[row]:
            i = order[row]
            _tie_down(piece_blocks, pieces[large[row]], filters, i, -_size(diagonal, i))
    _weigh_springs(springs, row_of, large, pieces, is_free, piece_blocks)
    vertices, weights = springs.vertices, springs.weights
    m = len(vertices)
    end_rows, end_small, end_large = np.empty((m, 4), np.int32), np.empty((m, 4), np.int32), np.empty((m, 4), np.int32)
    has_room = np.empty(m, np.bool_)
    for spring in prange(m):
        _find_ends(
            spring,
            vertices,
            weights,
            row_of,
            is_free,
            small,
            large,
            column_starts,
            column_rows,
            end_rows,
            end_small,
            end_large,
            has_room,
        )
    ends = SpringEnds(end_rows, end_small, end_large, has_room)
    for patch in prange(n_large):
        first_row, last_row = row_starts[small_starts[patch]], row_starts[small_starts[patch + 1]]
        _couple_springs(
            patch, first_row, last_row, n_small, order, column_starts, column_rows, arms, springs, ends, blocks
        )
        for a in range(small_starts[patch], small_starts[patch + 1]):
            for r in range(6):
                for c in range(6):
                    blocks[n_small + patch, r, c] += blocks[a, r, c]
            invert_modes(blocks, a, small_inverse)
