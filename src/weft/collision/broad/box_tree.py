"""Trees of boxes over triangles: the shape, the refit, and the search of two trees, or of one, together.

Nodes stand in preorder: the children of node i start at i + 1, and `skip[i]` is the node after everything below i.
A leaf is a node whose skip is the next node.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from weft.arrays import Bools, Bytes, Ints, Longs
from weft.collision.broad import TestedBoxes
from weft.collision.broad.boxes import Boxes, add_box, build_boxes, corners, is_overlapping
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE
from weft.collision.broad.triangle_phase import TrianglePhase
from weft.geometry.mesh import Mesh
from weft.jit import kernel, prange

FRONT = 512  # pairs of nodes shared out to the chunks
WIDEST = 10  # pairs that replace one: four children of a node among themselves


class BoxTree(NamedTuple):
    """A tree over triangles, in preorder."""

    boxes: Boxes
    """(n, 8)"""
    parents: Ints
    """(n,): -1 for the root"""
    skip: Ints
    """(n,): the first node that is not below"""
    depth: Ints
    """(n,): 0 for the root"""
    starts: Ints
    """(n,): the triangles below are items[starts : ends]"""
    ends: Ints
    """(n,)"""
    items: Ints
    """(m,): triangles, from the first leaf to the last"""
    closed: Bools
    """(n,): parts that need no search within (a culling filter sets them); all False"""
    touched: Bytes
    """(n,): 1 where the last search looked at a box"""

    @property
    def n_boxes(self) -> int:
        return len(self.parents)


def build_box_tree(paths: Longs) -> BoxTree:
    """The tree in which triangle t hangs at the end of path `paths[t]`, a row of child numbers from the root down.

    Triangles with equal paths share a leaf. A step that does not part any triangles makes no node.
    """
    n_triangles, n_steps = paths.shape
    items = np.lexsort(paths.T[::-1]) if n_steps else np.arange(n_triangles)
    ranges = [(np.zeros(1, np.int64), np.full(1, n_triangles, np.int64))]
    changed = np.zeros(n_triangles, np.bool_)
    changed[:1] = True
    for step in range(n_steps):
        column = paths[items, step]
        changed = changed | (np.diff(column, prepend=column[:1]) != 0)
        first = np.flatnonzero(changed)
        ranges.append((first, np.append(first[1:], n_triangles)))
    both = np.concatenate([np.stack(pair, axis=1) for pair in ranges])
    # the larger range first among those with one start: the parent before its first child
    unique = np.unique(np.stack([both[:, 0], -both[:, 1]], axis=1), axis=0)
    starts, ends = unique[:, 0], -unique[:, 1]
    skip = np.maximum(np.searchsorted(starts, ends), np.arange(len(starts)) + 1)
    parents, depth = _parents(ends.tolist())
    n = len(starts)
    return BoxTree(
        boxes=build_boxes(n),
        parents=parents,
        skip=skip.astype(np.int32),
        depth=depth,
        starts=starts.astype(np.int32),
        ends=ends.astype(np.int32),
        items=items.astype(np.int32),
        closed=np.zeros(n, np.bool_),
        touched=np.zeros(n, np.uint8),
    )


def _parents(ends: list[int]) -> tuple[Ints, Ints]:
    """Parent and depth of every node, from the ends of the nodes' ranges in preorder."""
    parents = np.full(len(ends), -1, np.int32)
    depth = np.zeros(len(ends), np.int32)
    open_nodes: list[int] = []
    for node, end in enumerate(ends):
        while open_nodes and ends[open_nodes[-1]] < end:
            open_nodes.pop()
        if open_nodes:
            parents[node] = open_nodes[-1]
            depth[node] = len(open_nodes)
        open_nodes.append(node)
    return parents, depth


@kernel
def update_tree(triangle_boxes: Boxes, tree: BoxTree) -> None:
    """Overwrite the boxes, from the leaves up to the root. O(n)."""
    skip, boxes = tree.skip, tree.boxes
    for node in range(len(skip) - 1, -1, -1):
        boxes[node, :] = np.inf
        if skip[node] == node + 1:
            for i in range(tree.starts[node], tree.ends[node]):
                add_box(triangle_boxes, tree.items[i], boxes, node)
        child = node + 1
        while child < skip[node]:
            add_box(boxes, child, boxes, node)
            child = skip[child]


@kernel
def push_own_children(skip: Ints, node: int, pairs: Ints, n: int) -> int:
    """Push every child of `node` with itself and with each later child."""
    first = node + 1
    while first < skip[node]:
        second = first
        while second < skip[node]:
            pairs[n, 0], pairs[n, 1] = first, second
            n += 1
            second = skip[second]
        first = skip[first]
    return n


@kernel
def push_children(skip: Ints, node: int, other: int, side: int, pairs: Ints, n: int) -> int:
    """Push every child of `node`, on `side` 0 or 1 of the pair, with the node `other`."""
    child = node + 1
    while child < skip[node]:
        pairs[n, side], pairs[n, 1 - side] = child, other
        n += 1
        child = skip[child]
    return n


@kernel
def descend(
    tree_a: BoxTree,
    tree_b: BoxTree,
    is_self: bool,
    pairs: Ints,
    head: int,
    n: int,
    is_queue: bool,
    rows_out: Ints,
    at: int,
    end: int,
) -> tuple[int, int, int, int]:
    """Work off `pairs[head : n]` of nodes, replacing each that meets by pairs one level down.

    A node with itself stands for all pairs within it; of two nodes the larger one is opened. As a stack the last pair
    goes first, and leaf pairs are written from row `at` on. As a queue the first pair goes first, leaf pairs wait
    untested, and the work ends as soon as there are enough pairs to share out. Returns head, n, the next row and the
    number of tests.
    """
    skip_a, skip_b = tree_a.skip, tree_b.skip
    n_tests = 0
    while head < n and not (is_queue and (n - head >= FRONT or n + WIDEST > pairs.shape[0])):
        if is_queue:
            a, b = pairs[head, 0], pairs[head, 1]
            head += 1
        else:
            n -= 1
            a, b = pairs[n, 0], pairs[n, 1]
        is_leaf_a, is_leaf_b = skip_a[a] == a + 1, skip_b[b] == b + 1
        if is_queue and is_leaf_a and is_leaf_b:
            pairs[n, 0], pairs[n, 1] = a, b
            n += 1
            continue
        is_same = is_self and a == b
        if is_same and tree_a.closed[a]:
            continue
        if not is_same:
            n_tests += 1
            tree_a.touched[a] = 1
            tree_b.touched[b] = 1
            if not is_overlapping(tree_a.boxes, a, tree_b.boxes, b):
                continue
        if is_leaf_a and is_leaf_b:
            for i in range(tree_a.starts[a], tree_a.ends[a]):
                ta = tree_a.items[i]
                for j in range(i + 1 if is_same else tree_b.starts[b], tree_b.ends[b]):
                    tb = tree_b.items[j]
                    if at < end:
                        rows_out[at, 0] = min(ta, tb) if is_self else ta
                        rows_out[at, 1] = max(ta, tb) if is_self else tb
                    at += 1
        elif is_same:
            n = push_own_children(skip_a, a, pairs, n)
        elif is_leaf_b or (not is_leaf_a and tree_a.ends[a] - tree_a.starts[a] >= tree_b.ends[b] - tree_b.starts[b]):
            n = push_children(skip_a, a, b, 0, pairs, n)
        else:
            n = push_children(skip_b, b, a, 1, pairs, n)
    return head, n, at, n_tests


@kernel(parallel=True)
def search_together(
    tree_a: BoxTree,
    tree_b: BoxTree,
    is_self: bool,
    front: Ints,
    head: int,
    n_front: int,
    stack_size: int,
    starts: Longs,
    rows_out: Ints,
    counts_out: Longs,
    tests_out: Longs,
) -> None:
    """Go down two trees at once, or one against itself, below pairs `head` to `n_front` of the front."""
    size = n_front - head
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        first, last = head + chunk * size // N_CHUNKS, head + (chunk + 1) * size // N_CHUNKS
        stack = np.empty((stack_size + last - first, 2), np.int32)
        for k in range(first, last):
            stack[last - 1 - k, 0], stack[last - 1 - k, 1] = front[k, 0], front[k, 1]
        _, _, at, n_tests = descend(
            tree_a, tree_b, is_self, stack, 0, last - first, False, rows_out, starts[chunk], starts[chunk + 1]
        )
        counts_out[chunk] = at - starts[chunk]
        tests_out[chunk] = n_tests


class TreePhase(TrianglePhase):
    """Base of the members with one tree over the triangles. A member builds the paths to them."""

    def __init__(self, mesh: Mesh, parameters: object = None) -> None:
        super().__init__(mesh, parameters)
        self.tree = build_box_tree(self._paths())
        self._front = np.zeros((16 * FRONT, 2), np.int32)

    def _paths(self) -> Longs:
        """(m, steps): which child to take from the root down to each triangle."""
        raise NotImplementedError

    def _update(self, margin: float) -> None:
        update_tree(self.primitives.triangle_boxes, self.tree)

    def tested_boxes(self) -> TestedBoxes:
        lower, upper = corners(self.tree.boxes)
        return TestedBoxes(lower, upper, self.tree.depth, self.tree.touched != 0)

    def memory(self) -> int:
        arrays = [array for array in self.tree if isinstance(array, np.ndarray)]
        return super().memory() + sum(array.nbytes for array in (*arrays, self._front))

    def _search_self(self) -> Ints:
        return self._search_trees(self, self.tree)

    def _search(self, other: Self) -> Ints:
        return self._search_trees(other, other.tree)

    def _search_trees(self, other: Self, other_tree: BoxTree) -> Ints:
        """Both trees together, from the roots down."""
        is_self = other_tree is self.tree
        self._clear_touched(other_tree)
        front = self._front
        front[0] = 0
        no_rows = np.empty((0, 2), np.int32)
        head, n_front, _, n_tests = descend(self.tree, other_tree, is_self, front, 0, 1, True, no_rows, 0, 0)
        stack_size = WIDEST * (int(self.tree.depth.max()) + int(other_tree.depth.max()) + 2)
        rows = self._buffer(f"pairs {is_self}").fill(
            lambda starts, rows_out, counts_out: search_together(
                self.tree,
                other_tree,
                is_self,
                front,
                head,
                n_front,
                stack_size,
                starts,
                rows_out,
                counts_out,
                self._chunk_tests,
            )
        )
        self._count(n_tests, other_tree)
        return rows

    def _clear_touched(self, other_tree: BoxTree) -> None:
        self.tree.touched[:] = 0
        other_tree.touched[:] = 0

    def _count(self, n_tests: int, other_tree: BoxTree) -> None:
        self.counters.boxes_tested += n_tests + int(self._chunk_tests.sum())
        skipped = int((self.tree.touched == 0).sum())
        self.counters.boxes_skipped += (
            skipped if other_tree is self.tree else skipped + int((other_tree.touched == 0).sum())
        )
