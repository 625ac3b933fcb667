"""A tree of bounding boxes over triangles, built anew for each query, and the pairs whose boxes meet.

Triangles are sorted along a Morton curve and cut into leaves of four in that order; above them stands a complete
binary tree with the nodes in heap order (the children of node k are 2 k + 1 and 2 k + 2). The order decides only how
fast the tree is: boxes are smallest and largest coordinates, compared with <=, so no rounding enters and no pair is
missed. The tree is deliberately apart from the broad phases of `weft.collision`, whose work it helps to check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints, Longs
from weft.jit import kernel, prange

LEAF_SIZE = 4
MORTON_STEPS = 2**21 - 1  # 21 bits an axis: 63 bits in all
MAX_STACK = 128  # two nodes a level, of at most 32 levels; twice that within one mesh
N_CHUNKS = 64  # fixed, so that nothing depends on the number of threads
FIRST_GUESS = 24  # box pairs a triangle; a cloth at rest has about 10


class BoxTree(NamedTuple):
    """Boxes are rows (low x, low y, low z, high x, high y, high z); slots are places in Morton order."""

    order: Ints
    """(m,): the triangle in each slot"""
    boxes: Floats
    """(m, 6): its box"""
    nodes: Floats
    """(2 p - 1, 6): boxes of the nodes; the last p are leaves, of LEAF_SIZE slots each; empty ones meet nothing"""


def build_box_tree(x: Floats, triangles: Ints) -> BoxTree:
    """The tree over the boxes of `triangles`.

    Parameters
    ----------
    x : (n, 3) float64, finite
    triangles : (m, 3) int32
    """
    boxes = np.empty((len(triangles), 6))
    codes = np.empty(len(triangles), np.uint64)
    _update_boxes(x, triangles, boxes, codes)
    order = np.argsort(codes, kind="stable").astype(np.int32)
    boxes = boxes[order]
    n_leaves = 1 << max(0, (-(-len(triangles) // LEAF_SIZE) - 1).bit_length())
    nodes = np.empty((2 * n_leaves - 1, 6))
    _update_nodes(boxes, nodes)
    return BoxTree(order, boxes, nodes)


def find_self_pairs(tree: BoxTree) -> Ints:
    """(k, 2) int32: every two triangles whose boxes meet, once, in no promised order."""
    return _find_pairs(tree, tree, True)


def find_pairs(tree_a: BoxTree, tree_b: BoxTree) -> Ints:
    """(k, 2) int32: every triangle of A and triangle of B whose boxes meet, in no promised order."""
    return _find_pairs(tree_a, tree_b, False)


def _find_pairs(tree_a: BoxTree, tree_b: BoxTree, is_self: bool) -> Ints:
    size = FIRST_GUESS * len(tree_a.boxes)
    starts: npt.NDArray[np.int64] = np.arange(N_CHUNKS + 1, dtype=np.int64) * size // N_CHUNKS
    counts = np.empty(N_CHUNKS, np.int64)
    while True:
        pairs = np.empty((starts[-1], 2), np.int32)
        _update_pairs(tree_a, tree_b, is_self, starts, pairs, counts)
        if (counts <= np.diff(starts)).all():
            break
        starts[1:] = np.cumsum(counts)
    found = [pairs[start : start + count] for start, count in zip(starts, counts, strict=False)]
    return np.concatenate(found)


@kernel(allocates=True)
def _update_boxes(x: Floats, triangles: Ints, boxes_out: Floats, codes_out: npt.NDArray[np.uint64]) -> None:
    """Overwrite the box of each triangle and the Morton code of the box's centre."""
    low = np.full(3, np.inf)
    high = np.full(3, -np.inf)
    for ti in range(len(triangles)):
        for axis in range(3):
            a, b, c = x[triangles[ti, 0], axis], x[triangles[ti, 1], axis], x[triangles[ti, 2], axis]
            boxes_out[ti, axis] = min(a, b, c)
            boxes_out[ti, 3 + axis] = max(a, b, c)
            low[axis] = min(low[axis], boxes_out[ti, axis])
            high[axis] = max(high[axis], boxes_out[ti, 3 + axis])
    extent = max(high[0] - low[0], high[1] - low[1], high[2] - low[2])
    scale = MORTON_STEPS / extent
    for ti in range(len(triangles)):
        code = np.uint64(0)
        for axis in range(3):
            center = 0.5 * boxes_out[ti, axis] + 0.5 * boxes_out[ti, 3 + axis]
            step = (center - low[axis]) * scale
            # Written so that NaN, from an extent of zero or beyond the largest double, goes to 0.
            step = min(step, float(MORTON_STEPS)) if step > 0.0 else 0.0
            code |= _spread(np.uint64(step)) << np.uint64(axis)
        codes_out[ti] = code


@kernel
def _spread(bits: np.uint64) -> np.uint64:
    """Move bit i to place 3 i."""
    bits = (bits | bits << np.uint64(32)) & np.uint64(0x1F00000000FFFF)
    bits = (bits | bits << np.uint64(16)) & np.uint64(0x1F0000FF0000FF)
    bits = (bits | bits << np.uint64(8)) & np.uint64(0x100F00F00F00F00F)
    bits = (bits | bits << np.uint64(4)) & np.uint64(0x10C30C30C30C30C3)
    return (bits | bits << np.uint64(2)) & np.uint64(0x1249249249249249)


@kernel
def _update_nodes(boxes: Floats, nodes_out: Floats) -> None:
    """Overwrite the boxes of all nodes, from the leaves up."""
    first_leaf = len(nodes_out) // 2
    for node in range(len(nodes_out) - 1, -1, -1):
        for axis in range(3):
            low, high = np.inf, -np.inf
            if node < first_leaf:
                low = min(nodes_out[2 * node + 1, axis], nodes_out[2 * node + 2, axis])
                high = max(nodes_out[2 * node + 1, 3 + axis], nodes_out[2 * node + 2, 3 + axis])
            else:
                start = (node - first_leaf) * LEAF_SIZE
                for slot in range(start, min(start + LEAF_SIZE, len(boxes))):
                    low = min(low, boxes[slot, axis])
                    high = max(high, boxes[slot, 3 + axis])
            nodes_out[node, axis] = low
            nodes_out[node, 3 + axis] = high


@kernel
def _boxes_meet(boxes_a: Floats, a: int, boxes_b: Floats, b: int) -> bool:
    return bool(
        boxes_a[a, 0] <= boxes_b[b, 3]
        and boxes_b[b, 0] <= boxes_a[a, 3]
        and boxes_a[a, 1] <= boxes_b[b, 4]
        and boxes_b[b, 1] <= boxes_a[a, 4]
        and boxes_a[a, 2] <= boxes_b[b, 5]
        and boxes_b[b, 2] <= boxes_a[a, 5]
    )


@kernel(parallel=True)
def _update_pairs(
    tree_a: BoxTree, tree_b: BoxTree, is_self: bool, starts: Longs, pairs_out: Ints, counts_out: Longs
) -> None:
    """Find the pairs of every leaf of A. Chunk c of the leaves fills `pairs_out` from `starts[c]` on.

    `counts_out` gets how many pairs each chunk found, also where `starts` left it too little room: then the pairs are
    incomplete and the caller comes again with more.
    """
    n_leaves = (len(tree_a.boxes) + LEAF_SIZE - 1) // LEAF_SIZE
    for chunk in prange(N_CHUNKS):
        stack = np.empty(MAX_STACK, np.int64)
        first = np.int64(chunk) * n_leaves // N_CHUNKS
        last = np.int64(chunk + 1) * n_leaves // N_CHUNKS
        free = starts[chunk]
        for leaf in range(first, last):
            free = _add_pairs(tree_a, leaf, tree_b, is_self, starts[chunk + 1], stack, free, pairs_out)
        counts_out[chunk] = free - starts[chunk]


@kernel
def _add_pairs(
    tree_a: BoxTree, leaf_a: int, tree_b: BoxTree, is_self: bool, end: int, stack: Longs, free: int, pairs_out: Ints
) -> int:
    """Write the pairs of one leaf of A from row `free` on, as far as `end`; returns the next free row, as if all had
    found room. Within one mesh a leaf is paired with itself and with those after it."""
    boxes_a, boxes_b, nodes_b = tree_a.boxes, tree_b.boxes, tree_b.nodes
    first_leaf_a, first_leaf_b = len(tree_a.nodes) // 2, len(nodes_b) // 2
    n_stack = 1
    stack[0] = first_leaf_a + leaf_a if is_self else 0
    if is_self:
        node = first_leaf_a + leaf_a
        while node > 0:  # what lies after a leaf are the right siblings on its way to the root
            if node % 2 == 1:
                stack[n_stack] = node + 1
                n_stack += 1
            node = (node - 1) // 2
    while n_stack > 0:
        n_stack -= 1
        node = stack[n_stack]
        if not _boxes_meet(tree_a.nodes, first_leaf_a + leaf_a, nodes_b, node):
            continue
        if node < first_leaf_b:
            stack[n_stack] = 2 * node + 1
            stack[n_stack + 1] = 2 * node + 2
            n_stack += 2
            continue
        first_b = (node - first_leaf_b) * LEAF_SIZE
        for a in range(leaf_a * LEAF_SIZE, min((leaf_a + 1) * LEAF_SIZE, len(boxes_a))):
            if not _boxes_meet(boxes_a, a, nodes_b, node):
                continue
            for b in range(max(first_b, a + 1) if is_self else first_b, min(first_b + LEAF_SIZE, len(boxes_b))):
                if _boxes_meet(boxes_a, a, boxes_b, b):
                    if free < end:
                        pairs_out[free, 0] = tree_a.order[a]
                        pairs_out[free, 1] = tree_b.order[b]
                    free += 1
    return free
