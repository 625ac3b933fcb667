"""What couples patches: the blocks of Z^T A Z, gathered row by row from the matrix and from contacts.

See `patches` for Z and the layout of the blocks. A large patch adds only to blocks of its own row, so patches can be
gathered in any order.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.jit import kernel, prange
from weft.linear.blocks import BlockMatrix
from weft.linear.patches import MODES, Patches, factorise, invert_modes, measure_arms
from weft.linear.springs import Springs


@kernel
def is_identity(filters: Floats, i: int) -> bool:
    """Whether vertex i is free in all directions; `filters` are projectors."""
    return bool(filters[i, 0, 0] + filters[i, 1, 1] + filters[i, 2, 2] == 3.0)


@kernel
def is_multiple(blocks: Floats, k: int) -> bool:
    """Whether block k is a multiple of the identity."""
    value = blocks[k, 0, 0]
    return bool(
        blocks[k, 0, 1] == blocks[k, 0, 2] == blocks[k, 1, 0] == blocks[k, 1, 2] == blocks[k, 2, 0] == 0.0
        and blocks[k, 2, 1] == 0.0
        and blocks[k, 1, 1] == value
        and blocks[k, 2, 2] == value
    )


@kernel
def _add_product(y_inout: Floats, source: Floats, q: int, factor: float, arms: Floats, column: int) -> None:
    """Add `factor` B_q Z_column to y (3, 6)."""
    ax, ay, az = arms[column, 0], arms[column, 1], arms[column, 2]
    for r in range(3):
        b0, b1, b2 = factor * source[q, r, 0], factor * source[q, r, 1], factor * source[q, r, 2]
        y_inout[r, 0] += b0
        y_inout[r, 1] += b1
        y_inout[r, 2] += b2
        y_inout[r, 3] += ay * b2 - az * b1
        y_inout[r, 4] += az * b0 - ax * b2
        y_inout[r, 5] += ax * b1 - ay * b0


@kernel
def _add_multiple(y_inout: Floats, f: float, arms: Floats, column: int) -> None:
    """Add f Z_column to y (3, 6)."""
    fx, fy, fz = f * arms[column, 0], f * arms[column, 1], f * arms[column, 2]
    y_inout[0, 0] += f
    y_inout[1, 1] += f
    y_inout[2, 2] += f
    y_inout[0, 4] += fz
    y_inout[0, 5] -= fy
    y_inout[1, 3] -= fz
    y_inout[1, 5] += fx
    y_inout[2, 3] += fy
    y_inout[2, 4] -= fx


@kernel
def _add_moments(blocks_inout: Floats, k: int, arms: Floats, row: int, y_inout: Floats) -> None:
    """Add Z_row^T y to block k, and make y (3, 6) zero."""
    ax, ay, az = arms[row, 0], arms[row, 1], arms[row, 2]
    out = blocks_inout[k]
    for c in range(MODES):
        y0, y1, y2 = y_inout[0, c], y_inout[1, c], y_inout[2, c]
        out[0, c] += y0
        out[1, c] += y1
        out[2, c] += y2
        out[3, c] += ay * y2 - az * y1
        out[4, c] += az * y0 - ax * y2
        out[5, c] += ax * y1 - ay * y0
        y_inout[0, c] = y_inout[1, c] = y_inout[2, c] = 0.0


@kernel
def _filter_block(source: Floats, q: int, filters: Floats, i: int, j: int, block_out: Floats) -> None:
    """Overwrite `block_out` (1, 3, 3) with S_i B_q S_j."""
    for r in range(3):
        for c in range(3):
            value = 0.0
            for p in range(3):
                for s in range(3):
                    value += filters[i, r, p] * source[q, p, s] * filters[j, s, c]
            block_out[0, r, c] = value


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


@kernel
def _size(blocks: Floats, i: int) -> float:
    return float(blocks[i, 0, 0] + blocks[i, 1, 1] + blocks[i, 2, 2]) / 3.0


@kernel
def _tie_down(blocks_inout: Floats, k: int, filters: Floats, i: int, size: float) -> None:
    """Add `size` times I - S_i to block k."""
    for r in range(3):
        for c in range(3):
            blocks_inout[k, r, c] -= size * filters[i, r, c]
        blocks_inout[k, r, r] += size


@kernel
def _couple_patch(
    patch: int,
    order: Ints,
    rows: Ints,
    row_starts: Ints,
    small_starts: Ints,
    places: Ints,
    arms: Floats,
    matrix: BlockMatrix,
    filters: Floats,
    is_free: Bools,
    blocks_inout: Floats,
) -> None:
    """Add to C, and to the C_a of its small patches, what the rows of one large patch hold."""
    near, far, block = np.zeros((3, 6)), np.zeros((3, 6)), np.empty((1, 3, 3))
    off_diagonal = matrix.off_diagonal
    own = len(row_starts) - 1 + patch
    for a in range(small_starts[patch], small_starts[patch + 1]):
        for row in range(row_starts[a], row_starts[a + 1]):
            i = order[row]
            if is_free[row]:
                _add_product(near, matrix.diagonal, i, 1.0, arms, row)
            else:
                _filter_block(matrix.diagonal, i, filters, i, i, block)
                _tie_down(block, 0, filters, i, _size(matrix.diagonal, i))
                _add_product(near, block, 0, 1.0, arms, row)
            for k in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
                place = places[k]
                if place < 0:
                    continue
                j = matrix.columns[k]
                column = rows[j]
                y = near if place == a else far
                if not (is_free[row] and is_free[column]):
                    _filter_block(off_diagonal, k, filters, i, j, block)
                    _add_product(y, block, 0, 1.0, arms, column)
                elif is_multiple(off_diagonal, k):
                    _add_multiple(y, off_diagonal[k, 0, 0], arms, column)
                else:
                    _add_product(y, off_diagonal, k, 1.0, arms, column)
                if place != a:
                    _add_moments(blocks_inout, place, arms, row, far)
            _add_moments(blocks_inout, a, arms, row, near)
        for r in range(6):
            for c in range(6):
                blocks_inout[own, r, c] += blocks_inout[a, r, c]


@kernel
def _couple_springs(
    patch: int,
    order: Ints,
    rows: Ints,
    row_starts: Ints,
    small_starts: Ints,
    large: Ints,
    column_starts: Ints,
    column_rows: Ints,
    arms: Floats,
    springs: Springs,
    has_room: Bools,
    filters: Floats,
    blocks_inout: Floats,
) -> None:
    """Add to C, and to the C_a of its small patches, what springs couple to the rows of one large patch."""
    y, block = np.zeros((3, 6)), np.empty((1, 3, 3))
    first = len(row_starts) - 1
    for a in range(small_starts[patch], small_starts[patch + 1]):
        for row in range(row_starts[a], row_starts[a + 1]):
            i = order[row]
            for k in range(springs.starts[i], springs.starts[i + 1]):
                spring, place = springs.items[k] >> 2, springs.items[k] & 3
                for q in range(4):
                    w = springs.weights[spring, place] * springs.weights[spring, q]
                    j = springs.vertices[spring, q]
                    column = rows[j]
                    if w == 0.0 or large[column] > patch or (large[column] < patch and not has_room[spring]):
                        continue
                    _filter_block(springs.blocks, spring, filters, i, j, block)
                    at = _find_block(column_starts, column_rows, patch, large[column])
                    _add_product(y, block, 0, w, arms, column)
                    _add_moments(blocks_inout, first + at, arms, row, y)
                    if row_starts[a] <= column < row_starts[a + 1]:
                        _add_product(y, block, 0, w, arms, column)
                        _add_moments(blocks_inout, a, arms, row, y)


@kernel
def _weigh_pieces(first: int, pieces: Ints, column_starts: Ints, blocks: Floats, piece_blocks_out: Floats) -> None:
    """Overwrite what each piece meets as a whole: the sum over its patches in C, from block `first` on, of shifts."""
    m = len(pieces)
    piece_blocks_out[:] = 0.0
    for k in range(m):
        out = piece_blocks_out[pieces[k]]
        for r in range(3):
            for c in range(3):
                out[r, c] += blocks[first + k, r, c]
                for q in range(first + m + column_starts[k], first + m + column_starts[k + 1]):
                    out[r, c] += blocks[q, r, c] + blocks[q, c, r]


@kernel
def _weigh_springs(springs: Springs, rows: Ints, large: Ints, pieces: Ints, filters: Floats, out: Floats) -> None:
    """Add what springs do to a piece as a whole: between two of its parts, nothing."""
    total = np.empty((3, 3))
    for k in range(len(springs.vertices)):
        piece = -1
        total[:] = 0.0
        for p in range(4):
            w = springs.weights[k, p]
            if w != 0.0:
                i = springs.vertices[k, p]
                piece = pieces[large[rows[i]]]
                for r in range(3):
                    for c in range(3):
                        total[r, c] += w * filters[i, r, c]
        if piece < 0:
            continue
        for r in range(3):
            for c in range(3):
                for p in range(3):
                    for q in range(3):
                        out[piece, r, c] += total[p, r] * springs.blocks[k, p, q] * total[q, c]


@kernel
def _find_room(springs: Springs, rows: Ints, large: Ints, column_starts: Ints, column_rows: Ints) -> Bools:
    """Whether C has room for all that each spring couples."""
    out = np.ones(len(springs.vertices), np.bool_)
    for k in range(len(out)):
        for p in range(4):
            if springs.weights[k, p] == 0.0:
                continue
            a = large[rows[springs.vertices[k, p]]]
            for q in range(p):
                if springs.weights[k, q] != 0.0:
                    b = large[rows[springs.vertices[k, q]]]
                    out[k] &= _find_block(column_starts, column_rows, max(a, b), min(a, b)) >= 0
    return out


@kernel(parallel=True)
def update_patches(matrix: BlockMatrix, springs: Springs, patches: Patches, positions: Floats, filters: Floats) -> None:
    """Overwrite what `patches` keeps of a matrix with contacts, whose vertices stand at `positions`."""
    order, rows, row_starts, small_starts, large = (
        patches.order,
        patches.rows,
        patches.row_starts,
        patches.small_starts,
        patches.large,
    )
    places, arms, blocks, small_inverse = patches.places, patches.arms, patches.blocks, patches.small_inverse
    column_starts, column_rows = patches.column_starts, patches.column_rows
    n_small, n_large = len(small_inverse), len(patches.inverse)
    is_free = np.empty(len(order), np.bool_)
    for row in range(len(order)):
        is_free[row] = is_identity(filters, order[row])
    blocks[:] = 0.0
    for patch in range(n_large):
        measure_arms(patch, positions, order, row_starts, small_starts, arms)
    for patch in prange(n_large):
        _couple_patch(patch, order, rows, row_starts, small_starts, places, arms, matrix, filters, is_free, blocks)
    _weigh_pieces(n_small, patches.pieces, column_starts, blocks, patches.piece_blocks)
    for row in range(len(order)):
        if not is_free[row]:
            i = order[row]
            _tie_down(patches.piece_blocks, patches.pieces[large[row]], filters, i, -_size(matrix.diagonal, i))
    _weigh_springs(springs, rows, large, patches.pieces, filters, patches.piece_blocks)
    has_room = _find_room(springs, rows, large, column_starts, column_rows)
    for patch in prange(n_large):
        _couple_springs(
            patch,
            order,
            rows,
            row_starts,
            small_starts,
            large,
            column_starts,
            column_rows,
            arms,
            springs,
            has_room,
            filters,
            blocks,
        )
        for a in range(small_starts[patch], small_starts[patch + 1]):
            invert_modes(blocks, a, small_inverse)
    factorise(n_small, column_starts, patches.update_starts, patches.updates, blocks, patches.factor, patches.inverse)
