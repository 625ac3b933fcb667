"""Trees of eight over clusters of eight primitives: the structure of `linear_tree`, and its refit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.arrays import Bytes, Floats, Ints, Longs
from weft.collision.broad.boxes import Boxes
from weft.collision.broad.lanes import LANES
from weft.collision.broad.layout import compact_order
from weft.collision.broad.pair_buffer import N_CHUNKS
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange

DIGIT = 1024  # of the radix sort: three digits of ten bits


class ClusterTree(NamedTuple):
    """Primitives in clusters of eight, and the boxes above them.

    Level 0 of `blocks` holds the boxes of the primitives, one block a cluster, in sorted order; block b of level l + 1
    holds the boxes around blocks 8 b to 8 b + 7 of level l. The top level is one block.
    """

    items: Ints
    """(c, 8): primitives of each cluster, -1 where the last cluster is not full"""
    corners: Ints
    """(c, 3, 8): their vertices; a vertex or an edge repeats its last one, a missing primitive has the empty vertex"""
    blocks: npt.NDArray[np.float32]
    """(b, 6, 8) boxes around paths, or at the start of a step"""
    ends: npt.NDArray[np.float32]
    """(b, 6, 8) boxes at its end, where those of `blocks` are at the start"""
    levels: Longs
    """(n_levels + 1,): where each level starts in `blocks`"""
    order: Ints
    """(c,): cluster at each sorted place"""
    rank: Ints
    """(c,): sorted place of each cluster"""
    touched: Bytes
    """(b,): 1 where the last search looked at a block"""
    marked: Bytes
    """(b,): bit i says that box i of a block holds a marked vertex; see `update_mark`"""
    user_starts: Ints
    """(n + 2,)"""
    users: Ints
    """8 * cluster + place in it of the primitives that have a vertex, vertex by vertex"""


def build_cluster_tree(primitives: Ints, names: Ints, points: Floats, empty_vertex: int) -> ClusterTree:
    """A tree over `primitives` (m, k), called `names` (m,), with `points` (m, d) that say which ones stay close."""
    n_clusters = max(-(-len(primitives) // LANES), 1)
    order = compact_order(points, LANES)
    items = np.full(n_clusters * LANES, -1, np.int32)
    items[: len(order)] = names[order]
    corners = np.full((n_clusters * LANES, 3), empty_vertex, np.int32)
    k = primitives.shape[1]
    corners[: len(order)] = primitives[order][:, [0, min(1, k - 1), min(2, k - 1)]]
    users = group_rows(corners.ravel(), np.repeat(np.arange(n_clusters * LANES, dtype=np.int32), 3), empty_vertex + 1)
    sizes = [n_clusters]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // LANES))
    return ClusterTree(
        items=items.reshape(n_clusters, LANES),
        corners=np.ascontiguousarray(corners.reshape(n_clusters, LANES, 3).transpose(0, 2, 1)),
        blocks=np.full((sum(sizes), 6, LANES), np.inf, np.float32),
        ends=np.full((sum(sizes), 6, LANES), np.inf, np.float32),
        levels=np.cumsum([0, *sizes]),
        order=np.arange(n_clusters, dtype=np.int32),
        rank=np.arange(n_clusters, dtype=np.int32),
        touched=np.zeros(sum(sizes), np.uint8),
        marked=np.zeros(sum(sizes), np.uint8),
        user_starts=users.starts,
        users=users.items,
    )


@kernel
def morton_bits(cell: int) -> int:
    """Ten bits spread to every third place."""
    cell = (cell | (cell << 16)) & 0x030000FF
    cell = (cell | (cell << 8)) & 0x0300F00F
    cell = (cell | (cell << 4)) & 0x030C30C3
    return (cell | (cell << 2)) & 0x09249249


@kernel(allocates=True)
def update_order(vertex_boxes: Boxes, tree: ClusterTree) -> None:
    """Overwrite `order` and `rank`: clusters along the Morton curve through their first vertices (stable radix sort).

    The curve runs in a cube around these vertices, 1024 cells to a side.
    """
    corners, order, rank = tree.corners, tree.order, tree.rank
    n = order.shape[0]
    keys, other_keys, other_order = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
    lower = np.empty(3)
    upper = np.empty(3)
    for d in range(3):
        lower[d], upper[d] = np.inf, -np.inf
    for ci in range(n):
        for d in range(3):
            lower[d] = min(lower[d], vertex_boxes[corners[ci, 0, 0], d])
            upper[d] = max(upper[d], vertex_boxes[corners[ci, 0, 0], d])
    size = max(upper[0] - lower[0], upper[1] - lower[1], upper[2] - lower[2])
    scale = (DIGIT - 1) / size if size > 0.0 and np.isfinite(size) else 0.0
    counts = np.zeros((3, DIGIT), np.int64)
    for ci in range(n):
        key = 0
        if scale > 0.0:
            for d in range(3):
                key |= morton_bits(int((vertex_boxes[corners[ci, 0, 0], d] - lower[d]) * scale)) << d
        keys[ci] = key
        order[ci] = ci
        for digit in range(3):
            counts[digit, (key >> (10 * digit)) & (DIGIT - 1)] += 1
    for digit in range(3):
        before = 0
        for value in range(DIGIT):
            count = counts[digit, value]
            counts[digit, value] = before
            before += count
        for i in range(n):
            value = (keys[i] >> (10 * digit)) & (DIGIT - 1)
            place = counts[digit, value]
            counts[digit, value] = place + 1
            other_keys[place] = keys[i]
            other_order[place] = order[i]
        for i in range(n):
            keys[i] = other_keys[i]
            order[i] = other_order[i]
    for place in range(n):
        rank[order[place]] = place


@kernel(parallel=True)
def update_orders(vertex_boxes: Boxes, vertices: ClusterTree, edges: ClusterTree, triangles: ClusterTree) -> None:
    """Overwrite `order` and `rank` of three trees."""
    for i in prange(3):
        update_order(vertex_boxes, vertices if i == 0 else edges if i == 1 else triangles)


@kernel
def update_cluster(vertex_boxes: Boxes, tree: ClusterTree, ci: int, blocks: Boxes) -> None:
    """Overwrite the boxes of cluster `ci` and the box around it in `blocks`, one of the tree's own.

    Spelt out bound by bound: with an inner loop over the six the refit took twice as long.
    """
    corners, x = tree.corners, vertex_boxes
    place = tree.rank[ci]
    c0 = c1 = c2 = c3 = c4 = c5 = np.float32(np.inf)
    for lane in range(8):
        i, j, k = corners[ci, 0, lane], corners[ci, 1, lane], corners[ci, 2, lane]
        b0, b1, b2 = min(x[i, 0], x[j, 0], x[k, 0]), min(x[i, 1], x[j, 1], x[k, 1]), min(x[i, 2], x[j, 2], x[k, 2])
        b3, b4, b5 = min(x[i, 3], x[j, 3], x[k, 3]), min(x[i, 4], x[j, 4], x[k, 4]), min(x[i, 5], x[j, 5], x[k, 5])
        blocks[place, 0, lane], blocks[place, 1, lane], blocks[place, 2, lane] = b0, b1, b2
        blocks[place, 3, lane], blocks[place, 4, lane], blocks[place, 5, lane] = b3, b4, b5
        c0, c1, c2 = min(c0, b0), min(c1, b1), min(c2, b2)
        c3, c4, c5 = min(c3, b3), min(c4, b4), min(c5, b5)
    if tree.levels.shape[0] > 2:
        parent, lane = tree.levels[1] + (place >> 3), place & 7
        blocks[parent, 0, lane], blocks[parent, 1, lane], blocks[parent, 2, lane] = c0, c1, c2
        blocks[parent, 3, lane], blocks[parent, 4, lane], blocks[parent, 5, lane] = c3, c4, c5


@kernel
def update_parent(tree: ClusterTree, level: int, place: int, blocks: Boxes) -> None:
    """Write the box around block `place` of `level` into the level above."""
    block = tree.levels[level] + place
    parent = tree.levels[level + 1] + (place >> 3)
    for d in range(6):
        bound = blocks[block, d, 0]
        for lane in range(1, 8):
            bound = min(bound, blocks[block, d, lane])
        blocks[parent, d, place & 7] = bound


@kernel
def update_levels(tree: ClusterTree, blocks: Boxes) -> None:
    """Overwrite the levels above the clusters' own boxes."""
    for level in range(1, tree.levels.shape[0] - 2):
        for place in range(tree.levels[level + 1] - tree.levels[level]):
            update_parent(tree, level, place, blocks)


@kernel(parallel=True)
def update_blocks(
    start_boxes: Boxes,
    end_boxes: Boxes,
    vertices: ClusterTree,
    edges: ClusterTree,
    triangles: ClusterTree,
    is_moving: bool,
) -> None:
    """Overwrite all blocks of three trees, and where boxes move their ends; `rank` must be up to date. O(n)."""
    for i in prange(3 * N_CHUNKS):
        chunk = i // 3
        tree = vertices if i % 3 == 0 else edges if i % 3 == 1 else triangles
        n, blocks, ends = tree.order.shape[0], tree.blocks, tree.ends
        for ci in range(chunk * n // N_CHUNKS, (chunk + 1) * n // N_CHUNKS):
            update_cluster(start_boxes, tree, ci, blocks)
            if is_moving:
                update_cluster(end_boxes, tree, ci, ends)
    for i in prange(3):
        tree = vertices if i == 0 else edges if i == 1 else triangles
        update_levels(tree, tree.blocks)
        if is_moving:
            update_levels(tree, tree.ends)


@kernel
def widen_blocks(vertex_boxes: Boxes, tree: ClusterTree, blocks: Boxes) -> None:
    """Bring those of `blocks`, the tree's own or its ends, up to date that hold a marked vertex; see `update_mark`."""
    for ci in range(len(tree.order)):
        if tree.marked[tree.rank[ci]] != 0:
            update_cluster(vertex_boxes, tree, ci, blocks)
    for level in range(1, tree.levels.shape[0] - 2):
        for place in range(tree.levels[level + 1] - tree.levels[level]):
            if tree.marked[tree.levels[level] + place] != 0:
                update_parent(tree, level, place, blocks)


@kernel
def update_mark(vertices: Longs, tree: ClusterTree) -> None:
    """Overwrite `marked`, which then tells all boxes that hold one of `vertices`; `rank` must be up to date."""
    levels, rank, starts, users, marked = tree.levels, tree.rank, tree.user_starts, tree.users, tree.marked
    marked[:] = 0
    for i in vertices:
        for k in range(starts[i], starts[i + 1]):
            place, lane = rank[users[k] >> 3], users[k] & 7
            for level in range(levels.shape[0] - 1):
                block = levels[level] + place
                if marked[block] >> lane & 1:  # and so are those above it
                    break
                marked[block] |= 1 << lane
                place, lane = place >> 3, place & 7


@kernel(parallel=True)
def update_marks(marked: Longs, vertices: ClusterTree, edges: ClusterTree, triangles: ClusterTree) -> None:
    """The same for three trees."""
    for i in prange(3):
        update_mark(marked, vertices if i == 0 else edges if i == 1 else triangles)
