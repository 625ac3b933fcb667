"""The matrix of a solve, row by row in the order of patches and in the layout of `lanes`.

An iteration takes as long as it takes to read the matrix. So its rows stand one after another, in single precision
where that is enough, and each block that is within one chunk of rows once for both of its rows. A chunk is a few whole
patches. What is stored, and where, is known before the first solve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints, Lanes, Longs
from weft.jit import kernel
from weft.linear.blocks import BlockMatrix
from weft.linear.lanes import BLOCK, ROW
from weft.linear.patches import Patches, find_blocks

CHUNKS = 32


class Rows(NamedTuple):
    """Blocks, even ones as factors apart: each in the row of its later end, and in that of the other, too, where the
    two are in different chunks."""

    starts: Ints
    """(n, 6) of each row: where blocks start, from which on they are not also those of another row, where they end; the
    same of factors"""
    columns: Ints
    """(e,) the other row of each block"""
    items: Ints
    """(e,) 2 * block of the matrix, plus 1 where its transpose counts"""
    blocks: Lanes
    """(9 e + 1,)"""
    factor_columns: Ints
    """(g,)"""
    factor_items: Ints
    """(g,) of the even blocks of the matrix"""
    factors: Lanes
    """(g,)"""
    own: Lanes
    """(9 n + 1,) of the diagonal: the rest makes row sums vanish"""
    run_starts: Ints
    """(n + 1,) runs of each row: what it shares with rows before it, by which of `Patches.blocks` adds it up"""
    runs: Ints
    """(r, 5) that block, where the run starts and ends in `blocks`, and where in `factors`"""


class _Entries(NamedTuple):
    rows: Longs
    columns: Longs
    items: Longs
    starts: Longs
    """(n + 1,)"""
    middles: Longs
    """(n,)"""


def build_rows(matrix: BlockMatrix, patches: Patches) -> Rows:
    """Room for the rows of `matrix`, in the precision of its blocks."""
    dtype = matrix.off_diagonal.dtype
    n_full = len(matrix.off_diagonal)
    full = _order_entries(matrix.ends[:n_full], patches)
    even = _order_entries(matrix.ends[n_full:], patches)
    run_starts, runs = _build_runs(full, even, patches)
    n, e = len(matrix.diagonal), len(full.rows)
    starts = [full.starts[:-1], full.middles, full.starts[1:], even.starts[:-1], even.middles, even.starts[1:]]
    return Rows(
        starts=np.ascontiguousarray(np.stack(starts, axis=1), np.int32).reshape(n, ROW),
        columns=full.columns.astype(np.int32),
        items=full.items.astype(np.int32),
        blocks=np.zeros(BLOCK * e + 1, dtype),
        factor_columns=even.columns.astype(np.int32),
        factor_items=(even.items >> 1).astype(np.int32),
        factors=np.zeros(len(even.rows), dtype),
        own=np.zeros(BLOCK * n + 1, dtype),
        run_starts=run_starts,
        runs=runs,
    )


def _order_entries(ends: Ints, patches: Patches) -> _Entries:
    """Where blocks between `ends` (b, 2) are stored: row by row, first those that are also of another row."""
    m, n, b = len(patches.inverse), len(patches.order), np.arange(len(ends))
    first_rows = patches.row_starts[patches.small_starts[np.arange(CHUNKS + 1) * m // CHUNKS]]
    chunk = np.searchsorted(first_rows, np.arange(n), side="right")
    i, j = patches.rows[ends].T.astype(np.int64)
    shared = chunk[i] == chunk[j]
    rows = np.concatenate([np.maximum(i, j)[shared], i[~shared], j[~shared]])
    columns = np.concatenate([np.minimum(i, j)[shared], j[~shared], i[~shared]])
    items = np.concatenate([2 * b[shared] + (i < j)[shared], 2 * b[~shared], 2 * b[~shared] + 1])
    is_own = np.arange(len(rows)) >= shared.sum()
    order = np.lexsort((columns, is_own, rows))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    middles = starts[:-1] + np.bincount(rows[~is_own], minlength=n)
    return _Entries(rows[order], columns[order], items[order], starts, middles)


def _build_runs(full: _Entries, even: _Entries, patches: Patches) -> tuple[Ints, Ints]:
    """The entries of each row, with rows before it, that add to the same block of `patches`.

    Rows of a patch follow each other, and so do, within a row, its entries with them.
    """
    small, large, n_small = patches.small, patches.large, len(patches.small_inverse)
    keys, places = [], []
    for part in (full, even):
        lower = np.flatnonzero(part.columns < part.rows)
        i, j = part.rows[lower], part.columns[lower]
        shared = n_small + find_blocks(patches.column_starts, patches.column_rows, large[i], large[j])
        place = np.where(small[i] == small[j], small[i], shared)
        keys.append(i * np.int64(len(patches.blocks)) + place)
        places.append(lower)
    all_keys = np.unique(np.concatenate(keys))
    runs = np.zeros((len(all_keys), 5), np.int32)
    runs[:, 0] = all_keys % max(len(patches.blocks), 1)
    for k, (key, lower) in enumerate(zip(keys, places, strict=True)):
        which, first, size = np.unique(key, return_index=True, return_counts=True)
        at = np.searchsorted(all_keys, which)
        runs[at, 1 + 2 * k] = lower[first]
        runs[at, 2 + 2 * k] = lower[first] + size
    counts = np.bincount(all_keys // max(len(patches.blocks), 1), minlength=len(patches.order))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), runs


@kernel
def copy_rows(first: int, last: int, order: Ints, matrix: BlockMatrix, rows: Rows) -> None:
    """Overwrite `rows`, from `first` to `last`, with those of `matrix`."""
    own, off_diagonal, even = matrix.own, matrix.off_diagonal, matrix.even
    starts, items, blocks = rows.starts, rows.items, rows.blocks
    factor_items, factors, own_out = rows.factor_items, rows.factors, rows.own
    for row in range(first, last):
        for q in range(starts[row, 0], starts[row, 2]):
            k, place = items[q] >> 1, BLOCK * q
            if items[q] & 1:
                for r in range(3):
                    for c in range(3):
                        blocks[place + 3 * c + r] = off_diagonal[k, c, r]
            else:
                for r in range(3):
                    for c in range(3):
                        blocks[place + 3 * c + r] = off_diagonal[k, r, c]
        for q in range(starts[row, 3], starts[row, 5]):
            factors[q] = even[factor_items[q]]
        copy_own(row, order, own, own_out)


@kernel
def copy_own(row: int, order: Ints, own: Floats, own_out: Lanes) -> None:
    """Overwrite what a row has on the diagonal."""
    for r in range(3):
        for c in range(3):
            own_out[BLOCK * row + 3 * c + r] = own[order[row], r, c]


@kernel
def load_block(blocks: Lanes, q: int, block_out: Floats) -> None:
    """Overwrite `block_out` (1, 3, 3) with block q."""
    for r in range(3):
        for c in range(3):
            block_out[0, r, c] = blocks[BLOCK * q + 3 * c + r]
