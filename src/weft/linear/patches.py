"""Patches of cloth that move as rigid bodies: what a preconditioner has to know beyond single vertices.

Conjugate gradients with the inverse of each vertex's own block pass news on by one vertex an iteration, and stiff cloth
needs hundreds: stopped early, it floats, since nobody has told its far end that it falls. Here vertices are gathered
into small patches of about 16, and these into large ones of about 64, on fine meshes 256 (from about 180 x 180 vertices
on). A patch may shift and turn, six ways in all: with r_i the way from its middle to vertex i, in units of its size,
Z_i = (I, -[r_i]x) says what they do there. Turning matters: cloth bends easily, so what moves far without being
stretched are patches that turn. The preconditioner is

    sum over vertices of A_ii^-1  +  over small patches a of Z_a C_a^-1 Z_a^T  +  Z C^-1 Z^T,    C = Z^T A Z,

the last for all large patches together, by a sparse factor of C (additive Schwarz with a coarse space; M. Dryja, O.
Widlund, 1987). On crumpled cloth of 101 x 101 vertices it takes half the iterations that shifts of patches at seven
levels took, each level by the blocks on its diagonal alone; with the small patches in the factor it would be a third,
but the factor would take longer than what they save.

A vertex that is held in a direction follows its patch only where it is free: S_i Z_i in place of Z_i. In the others it
adds to C as if it were tied there, so that C has an inverse even where a whole patch is held. Contacts couple patches
that are no neighbours in the mesh, for which the factor has no room: such a contact counts with the blocks on the
diagonal of C alone, as if the other side stood still.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from weft.arrays import Floats, Ints, Lanes, Longs
from weft.jit import kernel
from weft.linear.blocks import BlockMatrix
from weft.linear.lanes import (
    MODES,
    MODES_BLOCK,
    MODES_WIDTH,
    gather_rows,
    lower_column,
    lower_modes,
    lower_row,
    multiply_modes,
)

SMALL, LARGE = 4, 2  # times that patches are joined in pairs: to 16 vertices, then to 64, and so on by four (patches of
# 128, twice as long as wide, left errors that made heaps a quarter denser)
MOST = 0.5  # while there are more large ones than so many times n^(2/3): a factor of m of them takes m^(3/2), so n
LOST = 1e-9  # share of its stiffness that is left of a way to move when others have answered: it is one of them


class Patches(NamedTuple):
    """Rows are the vertices in the order of their patches; large patches in that in which they are eliminated."""

    order: Ints
    """(n,) the vertex of each row"""
    rows: Ints
    """(n,) the row of each vertex"""
    row_starts: Ints
    """(s + 1,) rows of each small patch"""
    small_starts: Ints
    """(m + 1,) small patches of each large one"""
    small: Ints
    """(n,) the small patch of each row"""
    large: Ints
    """(n,) the large patch of each row"""
    pieces: Ints
    """(m,) which connected piece of cloth each large patch belongs to"""
    column_starts: Ints
    """(m + 1,) blocks of the factor below its diagonal, by columns"""
    column_rows: Ints
    """(c,)"""
    update_starts: Ints
    """(m + 1,)"""
    updates: Ints
    """(u, 3) when column k is done: which of `blocks` to lower, and the two blocks of the column that lower it"""
    arms: Floats
    """(n, 3) scratch: r of each row"""
    small_inverse: Floats
    """(s, 6, 6) scratch: inverse of C_a"""
    blocks: Floats
    """(s + m + c, 6, 8) scratch, by columns: the C_a of small patches, the diagonal of C, and what is below it"""
    factor: Floats
    """(c, 6, 8) scratch, by columns: C is L D L^T, and this is L below the diagonal"""
    inverse: Floats
    """(m, 6, 8) scratch: the inverse of D"""
    small_right: Floats
    """(s, 8) scratch: Z^T r of small patches"""
    small_answers: Floats
    """(s, 6) scratch"""
    right: Floats
    """(m, 8) scratch: Z^T r of large patches"""
    answers: Floats
    """(m, 8) scratch"""
    piece_blocks: Floats
    """(p, 3, 3) scratch: what a piece of cloth as a whole meets when it shifts"""


def build_patches(matrix: BlockMatrix) -> Patches:
    """Gather the vertices of `matrix` into patches along its blocks."""
    n = len(matrix.diagonal)
    i, j = matrix.ends[:, 0].astype(np.int64), matrix.ends[:, 1].astype(np.int64)
    graph = csr_array((np.ones(2 * len(i)), (np.concatenate([i, j]), np.concatenate([j, i]))), (n, n))
    small, merged = _join(graph, SMALL)
    large, merged = _join(merged, LARGE)
    while merged.shape[0] > max(MOST * n ** (2 / 3), connected_components(merged, directed=False)[0]):
        larger, merged = _join(merged, LARGE)
        large = larger[large]
    m = merged.shape[0]
    columns = _eliminate(merged)
    place = np.empty(m, np.int64)
    place[[k for k, _ in columns]] = np.arange(m)
    by_size = np.lexsort((np.arange(len(large)), place[large]))  # small patches, large one by large one
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(len(by_size))
    order = np.lexsort((np.arange(n), rank[small])).astype(np.int32)
    rows = np.empty(n, np.int32)
    rows[order] = np.arange(n)
    below = [np.sort(place[others]) for _, others in columns]
    column_starts = _starts([len(part) for part in below])
    s, c = len(large), int(column_starts[-1])
    column_rows = _joined(below)
    places = [np.tril_indices(len(part)) for part in below]  # two blocks of a column, which lower another
    p, q = (_joined([start + index[k] for start, index in zip(column_starts, places, strict=False)]) for k in (0, 1))
    lowered = s + find_blocks(column_starts, column_rows, column_rows[p], column_rows[q])
    pieces = connected_components(merged, directed=False)[1]
    return Patches(
        order=order,
        rows=rows,
        row_starts=_starts(np.bincount(rank[small], minlength=s)),
        small_starts=_starts(np.bincount(place[large], minlength=m)),
        small=rank[small[order]].astype(np.int32),
        large=place[large[small[order]]].astype(np.int32),
        pieces=pieces[[k for k, _ in columns]].astype(np.int32),
        column_starts=column_starts,
        column_rows=column_rows.astype(np.int32),
        update_starts=_starts([len(first) for first, _ in places]),
        updates=np.stack([lowered, p, q], axis=1).astype(np.int32),
        arms=np.zeros((n, 3)),
        small_inverse=np.zeros((s, MODES, MODES)),
        blocks=np.zeros((s + m + c, MODES, MODES_WIDTH)),
        factor=np.zeros((c, MODES, MODES_WIDTH)),
        inverse=np.zeros((m, MODES, MODES_WIDTH)),
        small_right=np.zeros((s, MODES_WIDTH)),
        small_answers=np.zeros((s, MODES)),
        right=np.zeros((m, MODES_WIDTH)),
        answers=np.zeros((m, MODES_WIDTH)),
        piece_blocks=np.zeros((int(pieces.max(initial=-1)) + 1, 3, 3)),
    )


def find_blocks(column_starts: Ints, column_rows: Longs | Ints, i: Longs | Ints, j: Longs | Ints) -> Longs:
    """Which block of C, from its first on, couples large patches i and j, i not before j; -1 for none."""
    m, c = len(column_starts) - 1, len(column_rows)
    columns = np.repeat(np.arange(m), np.diff(column_starts))
    keys = np.concatenate([np.arange(m) * (m + 1), column_rows * np.int64(m) + columns])
    sorting = np.argsort(keys)
    found = sorting[np.searchsorted(keys, i * np.int64(m) + j, sorter=sorting).clip(max=m + c - 1)]
    return np.where(keys[found] == i * np.int64(m) + j, found, -1)


def _joined(parts: list[Longs]) -> Longs:
    return np.concatenate([*parts, np.zeros(0, np.int64)])


def _starts(counts: list[int] | Longs) -> Ints:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))]).astype(np.int32)


def _join(graph: csr_array, times: int) -> tuple[Longs, csr_array]:
    """Join nodes in pairs along the heaviest ties, and again; the group of each node, and the graph of the groups."""
    group = np.arange(graph.shape[0])
    for _ in range(times):
        n = graph.shape[0]
        pair = np.full(n, -1, np.int64)
        n_pairs = match_neighbours(
            graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data.astype(np.float64), pair
        )
        to_pair = coo_array((np.ones(n), (np.arange(n), pair)), (n, n_pairs)).tocsr()
        graph = csr_array(to_pair.T @ graph @ to_pair)
        graph.setdiag(0.0)
        graph.eliminate_zeros()
        graph.sort_indices()
        group = pair[group]
    return group, graph


def _eliminate(graph: csr_array) -> list[tuple[int, Longs]]:
    """The nodes in the order in which to eliminate them, each with the later ones that it is then tied to.

    The node with the fewest ties goes first (minimum degree, W. Tinney and J. Walker 1967): SciPy's own such orderings
    come only with a factorisation of numbers, not of blocks.
    """
    ties = [set(graph.indices[graph.indptr[k] : graph.indptr[k + 1]].tolist()) - {k} for k in range(graph.shape[0])]
    left = [(len(others), k) for k, others in enumerate(ties)]
    heapify(left)
    out: dict[int, Longs] = {}
    while left:
        degree, k = heappop(left)
        if k in out or degree != len(ties[k]):
            continue
        out[k] = np.array(sorted(ties[k]), np.int64)
        for node in ties[k]:
            ties[node] |= ties[k]
            ties[node] -= {k, node}
            heappush(left, (len(ties[node]), node))
    return list(out.items())


@kernel
def match_neighbours(starts: Longs, columns: Longs, ties: Floats, pair_out: Longs) -> int:
    """Overwrite `pair_out`, -1 at first, with the number of each node's pair; one without a partner is a pair alone."""
    n_pairs = 0
    for i in range(len(pair_out)):
        if pair_out[i] >= 0:
            continue
        best, best_tie = -1, 0.0
        for k in range(starts[i], starts[i + 1]):
            j = columns[k]
            if j != i and pair_out[j] < 0 and ties[k] > best_tie:
                best, best_tie = j, ties[k]
        pair_out[i] = n_pairs
        if best >= 0:
            pair_out[best] = n_pairs
        n_pairs += 1
    return n_pairs


@kernel
def measure_arms(patch: int, x: Floats, order: Ints, row_starts: Ints, small_starts: Ints, arms_out: Floats) -> None:
    """Overwrite the arms of the rows of one large patch, whose vertices stand at `x`."""
    first, last = row_starts[small_starts[patch]], row_starts[small_starts[patch + 1]]
    square = 0.0
    for c in range(3):
        middle = 0.0
        for row in range(first, last):
            middle += x[order[row], c]
        middle /= last - first
        for row in range(first, last):
            arms_out[row, c] = x[order[row], c] - middle
            square += arms_out[row, c] * arms_out[row, c]
    if square > 0.0:
        scale = np.sqrt((last - first) / square)
        for row in range(first, last):
            for c in range(3):
                arms_out[row, c] *= scale


@kernel
def invert_modes(blocks: Floats, k: int, inverse_out: Floats) -> None:
    """Overwrite the inverse of block k, symmetric and not negative; 0 for ways to move that others already cover.

    What rounding leaves that is not symmetric would grow from patch to patch: with 401 x 401 vertices, solves failed.
    In a fixed order, a patch of two vertices that can turn about itself left a way to move that was nothing but
    rounding, and solves failed, too.
    """
    for r in range(MODES):
        for c in range(MODES):
            inverse_out[k, r, c] = 0.5 * (blocks[k, r, c] + blocks[k, c, r])
    left = 2**MODES - 1
    for _ in range(MODES):  # sweeps, the way that is least covered first: after all the negative inverse is left
        p, most = -1, LOST
        for c in range(MODES):
            if left >> c & 1 and inverse_out[k, c, c] > most * blocks[k, c, c]:
                p, most = c, inverse_out[k, c, c] / blocks[k, c, c]
        if p < 0:
            break
        left ^= 1 << p
        d = 1.0 / inverse_out[k, p, p]
        for r in range(MODES):
            if r == p:
                continue
            share = inverse_out[k, r, p] * d
            for c in range(MODES):
                if c != p:
                    inverse_out[k, r, c] -= share * inverse_out[k, p, c]
        for r in range(MODES):
            inverse_out[k, r, p] *= d
            inverse_out[k, p, r] = inverse_out[k, r, p]
        inverse_out[k, p, p] = -d
    for r in range(MODES):
        for c in range(MODES):
            is_covered = left >> r & 1 or left >> c & 1
            inverse_out[k, r, c] = 0.0 if is_covered else -inverse_out[k, r, c]


@kernel(inline=True)
def _dot_row(blocks: Floats, k: int, i: int, y0: float, y1: float, y2: float, y3: float, y4: float, y5: float) -> float:
    """Row i of block k times the vector (y0, ..., y5)."""
    first = blocks[k, i, 0] * y0 + blocks[k, i, 1] * y1 + blocks[k, i, 2] * y2
    return float(first + blocks[k, i, 3] * y3 + blocks[k, i, 4] * y4 + blocks[k, i, 5] * y5)


@kernel
def factorise(
    first: int,
    column_starts: Ints,
    update_starts: Ints,
    updates: Ints,
    blocks_inout: Floats,
    factor_out: Floats,
    inverse_out: Floats,
) -> None:
    """Overwrite L below the diagonal and the inverse of D; C, from block `first` on, is used up."""
    m = len(inverse_out)
    diagonal, below = blocks_inout[first : first + m], blocks_inout[first + m :]
    for k in range(m):
        invert_modes(diagonal, k, inverse_out)
        for q in range(column_starts[k], column_starts[k + 1]):
            multiply_modes(factor_out, q, below, q, inverse_out, k)  # the inverse is symmetric
        for u in range(update_starts[k], update_starts[k + 1]):
            lower_modes(blocks_inout, updates[u, 0], factor_out, updates[u, 1], below, updates[u, 2])


@kernel
def pack_modes(blocks: Floats, k: int, out: Lanes) -> None:
    """Overwrite block k of `out`, which has no gaps."""
    at = MODES_BLOCK * k
    for r in range(MODES):
        for c in range(MODES):
            out[at + MODES * r + c] = blocks[k, r, c]


@kernel(inline=True)
def gather(
    patch: int,
    row_starts: Ints,
    small_starts: Ints,
    arms: Lanes,
    small_inverse: Floats,
    residual: Lanes,
    small_right: Floats,
    small_answers_out: Floats,
    right_out: Floats,
) -> float:
    """Overwrite the answers of the small patches of one large patch to a filtered `residual`, and its own Z^T r.

    Returns the sum of residual times answer of the small ones.
    """
    total = 0.0
    for c in range(MODES):
        right_out[patch, c] = 0.0
    for a in range(small_starts[patch], small_starts[patch + 1]):
        gather_rows(residual, arms, row_starts[a], row_starts[a + 1], small_right, a)
        g0, g1, g2 = small_right[a, 0], small_right[a, 1], small_right[a, 2]
        g3, g4, g5 = small_right[a, 3], small_right[a, 4], small_right[a, 5]
        for c in range(MODES):
            small_answers_out[a, c] = _dot_row(small_inverse, a, c, g0, g1, g2, g3, g4, g5)
            total += small_answers_out[a, c] * small_right[a, c]
            right_out[patch, c] += small_right[a, c]
    return total


@kernel
def answer(
    column_starts: Ints, column_rows: Ints, factor: Lanes, inverse: Floats, right: Floats, answers_out: Floats
) -> float:
    """Overwrite the answers of all large patches to Z^T r; return the product of both.

    `factor` (36 c + 2,) is L without gaps. It may be in single precision, which is read in half the time: the
    answers stay symmetric and positive. The inverses, of D and of small patches, may not: a patch that is one row of
    vertices can turn about itself, and what single precision leaves of that way to move is wrong.
    """
    m = len(right)
    for k in range(m):
        for i in range(MODES_WIDTH):
            answers_out[k, i] = right[k, i]
    for k in range(m):
        for q in range(column_starts[k], column_starts[k + 1]):
            lower_row(factor, q, answers_out, k, column_rows[q])
    total = 0.0
    for k in range(m - 1, -1, -1):
        y0, y1, y2 = answers_out[k, 0], answers_out[k, 1], answers_out[k, 2]
        y3, y4, y5 = answers_out[k, 3], answers_out[k, 4], answers_out[k, 5]
        for i in range(MODES):
            answers_out[k, i] = _dot_row(inverse, k, i, y0, y1, y2, y3, y4, y5)
        lower_column(factor, column_rows, column_starts[k], column_starts[k + 1], answers_out, k)
        for i in range(MODES):
            total += answers_out[k, i] * right[k, i]
    return total
