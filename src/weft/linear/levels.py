"""Patches of patches: the levels of a preconditioner that moves whole pieces of cloth at once.

Conjugate gradients with the inverse of each vertex's own block pass news on by one vertex an iteration, and stiff cloth
needs hundreds: stopped early, it floats, since nobody has told its far end that it falls. Here vertices are gathered
into patches of about four, these into patches of four, and so on. The shift of a patch as a whole meets the block

    D_a = sum of A_ij over i and j in the patch,

in which all that is inside has cancelled: the patch's mass and what ties it to others. The preconditioner is the sum of
the inverses over all levels (additive, after Bramble, Pasciak and Xu, "Parallel multilevel preconditioners", 1990):
symmetric, positive definite and cheap. It takes a third of the iterations, and the norm that it gives to
residuals sees slow motion of large pieces, which the norm of the vertices' own blocks does not.

A vertex that is held in a direction follows the shift of its patch only where it is free: with its filter S_i, D_a is
the sum of S_i A_ij S_j. Each direction in which it is held adds to D_a as if it were tied there, so that D_a has an
inverse even where a whole patch is held.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from weft.arrays import Bools, Floats, Ints, Lanes, Longs
from weft.geometry.topology import group_rows
from weft.jit import kernel
from weft.linear.blocks import BlockMatrix
from weft.linear.springs import Springs


class Levels(NamedTuple):
    """A tree: nodes 0 to n - 1 are the vertices, patches follow level by level."""

    parents: Ints
    """(n + m,) the patch of each node, -1 at the top"""
    roots: Ints
    """(n,) the patch of each vertex at the top, as a number from 0: its whole piece; -1 for a vertex alone"""
    child_starts: Ints
    """(m + 1,) nodes of patch a are children[child_starts[a] : child_starts[a + 1]]"""
    children: Ints
    n_smallest: int
    """patches of vertices; those of patches follow"""
    meeting: Ints
    """(b,) the smallest patch that holds both vertices of each block of the matrix, as a number from 0; -1 for none"""
    blocks: Floats
    """(m, 3, 3) D of each patch"""
    inverse: Floats
    """(m, 3, 3) and its inverse; 0 where nothing is free"""
    right: Floats
    """(m, 3) scratch: residuals summed over patches"""
    shift: Floats
    """(m, 3) scratch: the answer of each patch and all above it"""


def build_levels(matrix: BlockMatrix) -> Levels:
    """Gather the vertices of `matrix` into patches along its blocks."""
    n = len(matrix.diagonal)
    graph = csr_array(
        (np.ones(len(matrix.columns)), matrix.columns.astype(np.int64), matrix.row_starts.astype(np.int64)), (n, n)
    )
    parents, first = [], 0
    while graph.nnz > 0:  # until each patch is a piece that nothing ties to others
        patch, merged = _merge(graph)
        twice, merged = _merge(merged)
        first += graph.shape[0]
        parents.append(first + twice[patch])
        graph = merged
    top = graph.shape[0] if parents else 0
    all_parents = np.concatenate([*parents, np.full(top if parents else n, -1)]).astype(np.int32)
    m = len(all_parents) - n
    child = np.flatnonzero(all_parents >= 0).astype(np.int32)
    groups = group_rows((all_parents[child] - n).astype(np.int32), child, m)
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(matrix.row_starts))
    meeting = np.empty(len(rows), np.int32)
    find_meetings(all_parents, rows, matrix.columns, n, meeting)
    roots = np.arange(len(all_parents))
    for node in range(len(all_parents) - 1, -1, -1):
        if all_parents[node] >= 0:
            roots[node] = roots[all_parents[node]]
    return Levels(
        all_parents,
        np.maximum(roots[:n] - n, -1).astype(np.int32),
        groups.starts,
        groups.items,
        int(all_parents[:n].max(initial=n - 1)) + 1 - n if parents else 0,
        meeting,
        np.zeros((m, 3, 3)),
        np.zeros((m, 3, 3)),
        np.zeros((m, 3)),
        np.zeros((m, 3)),
    )


def _merge(graph: csr_array) -> tuple[Longs, csr_array]:
    """Join nodes in pairs along the heaviest ties; the pair of each node, and the graph of the pairs."""
    n = graph.shape[0]
    pair = np.full(n, -1, np.int64)
    n_pairs = match_neighbours(
        graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data.astype(np.float64), pair
    )
    to_pair = coo_array((np.ones(n), (np.arange(n), pair)), (n, n_pairs)).tocsr()
    merged = csr_array(to_pair.T @ graph @ to_pair)
    merged.setdiag(0.0)
    merged.eliminate_zeros()
    merged.sort_indices()
    return pair, merged


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
def meeting_of(parents: Ints, i: int, j: int, n: int) -> int:
    """The smallest patch that holds vertices i and j, as a number from 0; -1 where there is none."""
    a, b = parents[i], parents[j]
    while a != b and a >= 0 and b >= 0:
        a, b = parents[a], parents[b]
    return a - n if a == b and a >= 0 else -1


@kernel
def find_meetings(parents: Ints, rows: Ints, columns: Ints, n: int, meeting_out: Ints) -> None:
    for k in range(len(rows)):
        meeting_out[k] = meeting_of(parents, rows[k], columns[k], n)


@kernel
def add_block(blocks_inout: Floats, a: int, source: Floats, i: int, factor: float) -> None:
    for r in range(3):
        for c in range(3):
            blocks_inout[a, r, c] += factor * source[i, r, c]


@kernel
def add_filtered(
    blocks_inout: Floats, a: int, filters: Floats, i: int, j: int, source: Floats, k: int, factor: float
) -> None:
    """Add `factor` times S_i B_k S_j, made symmetric, to block a."""
    for r in range(3):
        for c in range(3):
            value = 0.0
            for p in range(3):
                for q in range(3):
                    value += filters[i, r, p] * source[k, p, q] * filters[j, q, c]
            blocks_inout[a, r, c] += 0.5 * factor * value
            blocks_inout[a, c, r] += 0.5 * factor * value


@kernel
def tie_down(blocks_inout: Floats, a: int, filters: Floats, i: int, size: float) -> None:
    """Add `size` times I - S_i to block a."""
    for r in range(3):
        for c in range(3):
            blocks_inout[a, r, c] -= size * filters[i, r, c]
        blocks_inout[a, r, r] += size


@kernel
def update_levels(levels: Levels, matrix: BlockMatrix, springs: Springs, filters: Floats, is_free: Bools) -> None:
    """Overwrite D and its inverse of every patch; `is_free` (n,) where the filter takes nothing away."""
    n, m = len(is_free), len(levels.blocks)
    parents, meeting, blocks, inverse = levels.parents, levels.meeting, levels.blocks, levels.inverse
    blocks[:] = 0.0
    for i in range(n):
        own = parents[i] - n
        if own < 0:
            continue
        if is_free[i]:
            add_block(blocks, own, matrix.diagonal, i, 1.0)
        else:
            add_filtered(blocks, own, filters, i, i, matrix.diagonal, i, 1.0)
            size = (matrix.diagonal[i, 0, 0] + matrix.diagonal[i, 1, 1] + matrix.diagonal[i, 2, 2]) / 3.0
            tie_down(blocks, own, filters, i, size)
        for b in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
            j = matrix.columns[b]
            if meeting[b] < 0:
                continue
            if is_free[i] and is_free[j]:
                add_block(blocks, meeting[b], matrix.off_diagonal, b, 1.0)
            else:
                add_filtered(blocks, meeting[b], filters, i, j, matrix.off_diagonal, b, 1.0)
    for k in range(len(springs.vertices)):
        for p in range(4):
            i, w = springs.vertices[k, p], springs.weights[k, p]
            if w == 0.0 or parents[i] < 0:
                continue
            add_filtered(blocks, parents[i] - n, filters, i, i, springs.blocks, k, w * w)
            for q in range(p):
                j, u = springs.vertices[k, q], springs.weights[k, q]
                if u != 0.0:
                    a = meeting_of(parents, i, j, n)
                    if a >= 0:
                        add_filtered(blocks, a, filters, i, j, springs.blocks, k, 2.0 * w * u)
    for a in range(m):  # patches come after their nodes, so D is complete when it is handed on
        if parents[n + a] >= 0:
            add_block(blocks, parents[n + a] - n, blocks, a, 1.0)
        invert_symmetric(blocks, a, inverse)


@kernel
def invert_symmetric(blocks: Floats, i: int, inverse_out: Floats) -> None:
    """Overwrite the inverse of the symmetric block i by its cofactors; 0 for a block that is not positive."""
    a00, a01, a02 = blocks[i, 0, 0], blocks[i, 0, 1], blocks[i, 0, 2]
    a11, a12, a22 = blocks[i, 1, 1], blocks[i, 1, 2], blocks[i, 2, 2]
    c00, c01, c02 = a11 * a22 - a12 * a12, a12 * a02 - a01 * a22, a01 * a12 - a11 * a02
    determinant = a00 * c00 + a01 * c01 + a02 * c02
    if a00 <= 0.0 or c00 <= 0.0 or determinant <= 1e-12 * a00 * a11 * a22:
        for r in range(3):
            for c in range(3):
                inverse_out[i, r, c] = 0.0
        return
    scale = 1.0 / determinant
    inverse_out[i, 0, 0] = c00 * scale
    inverse_out[i, 0, 1] = inverse_out[i, 1, 0] = c01 * scale
    inverse_out[i, 0, 2] = inverse_out[i, 2, 0] = c02 * scale
    inverse_out[i, 1, 1] = (a00 * a22 - a02 * a02) * scale
    inverse_out[i, 1, 2] = inverse_out[i, 2, 1] = (a02 * a01 - a00 * a12) * scale
    inverse_out[i, 2, 2] = (a00 * a11 - a01 * a01) * scale


@kernel
def shift_smallest(
    first: int,
    last: int,
    n: int,
    child_starts: Ints,
    children: Ints,
    inverse: Floats,
    residual: Lanes,
    right_out: Floats,
    shift_out: Floats,
) -> float:
    """Overwrite the own shifts of patches `first` to `last` of vertices; return the sum of residual times shift."""
    total = 0.0
    for a in range(first, last):
        s0 = s1 = s2 = 0.0
        for k in range(child_starts[a], child_starts[a + 1]):
            i = children[k]
            s0 += residual[i, 0]
            s1 += residual[i, 1]
            s2 += residual[i, 2]
        total += answer_patch(a, s0, s1, s2, inverse, right_out, shift_out)
    return total


@kernel
def answer_patch(
    a: int, s0: float, s1: float, s2: float, inverse: Floats, right_out: Floats, shift_out: Floats
) -> float:
    """Overwrite the own shift of patch a, whose residual sums up to s; return the product of both."""
    right_out[a, 0], right_out[a, 1], right_out[a, 2] = s0, s1, s2
    for r in range(3):
        shift_out[a, r] = inverse[a, r, 0] * s0 + inverse[a, r, 1] * s1 + inverse[a, r, 2] * s2
    return float(s0 * shift_out[a, 0] + s1 * shift_out[a, 1] + s2 * shift_out[a, 2])


@kernel
def shift_larger(levels: Levels, n: int) -> float:
    """The same for patches of patches; then each patch takes part in the shifts of all above it."""
    right, shift, inverse = levels.right, levels.shift, levels.inverse
    total = 0.0
    for a in range(levels.n_smallest, len(right)):
        s0 = s1 = s2 = 0.0
        for k in range(levels.child_starts[a], levels.child_starts[a + 1]):
            child = levels.children[k] - n
            s0 += right[child, 0]
            s1 += right[child, 1]
            s2 += right[child, 2]
        total += answer_patch(a, s0, s1, s2, inverse, right, shift)
    for a in range(len(right) - 1, -1, -1):
        parent = levels.parents[n + a]
        if parent >= 0:
            for r in range(3):
                shift[a, r] += shift[parent - n, r]
    return total


@kernel
def update_shifts(levels: Levels, residual: Lanes) -> float:
    """Overwrite the shift of every patch for a filtered `residual`; return the sum of residual times shift."""
    n = len(residual)
    child_starts, children, inverse = levels.child_starts, levels.children, levels.inverse
    total = shift_smallest(
        0, levels.n_smallest, n, child_starts, children, inverse, residual, levels.right, levels.shift
    )
    return total + shift_larger(levels, n)


@kernel
def correct_pieces(levels: Levels, residual: Lanes, filters: Floats, x_inout: Lanes) -> None:
    """Shift each piece until its residual has no net sum: an inexact solve must not slow down a piece that is free.

    The residual that iterations leave has a net sum, and that is a force from nowhere. The shift that takes it away is
    the best one in the energy norm for each piece alone.
    """
    update_shifts(levels, residual)
    right, inverse, shift = levels.right, levels.inverse, levels.shift
    for a in range(len(right)):
        if levels.parents[len(residual) + a] < 0:
            for r in range(3):
                shift[a, r] = (
                    inverse[a, r, 0] * right[a, 0] + inverse[a, r, 1] * right[a, 1] + inverse[a, r, 2] * right[a, 2]
                )
    for i in range(len(residual)):
        root = levels.roots[i]
        if root >= 0:
            for r in range(3):
                x_inout[i, r] += (
                    filters[i, r, 0] * shift[root, 0]
                    + filters[i, r, 1] * shift[root, 1]
                    + filters[i, r, 2] * shift[root, 2]
                )
