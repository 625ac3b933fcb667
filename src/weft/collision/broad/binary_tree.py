"""Binary box tree of paper 000: even halves in material coordinates, down to one triangle.

Liu, Ko, Chang, "A simple self-collision avoidance for cloth animation", 1998, section 3. The cloth is cut in two
along its longer side, again and again, until each node holds one triangle: n triangles make 2 n - 1 boxes. The boxes
are updated from the leaves to the root in O(n). Children are looked at only where their parent meets something.

What we changed, and why.

- The paper searches from the root with the box of each triangle in turn: some 80 tests a triangle, since its box meets
  those of all its neighbours and of all nodes that hold them. But nodes with a common vertex always meet, however the
  cloth moves. The search here begins where that is no longer so: at the pairs of nodes without a common vertex that one
  gets to, from the root against itself, by opening pairs with one. They are found once, when the tree is built. A flat
  sheet of 51 x 51 vertices takes 5 tests a triangle.
- No cut of a grid goes through a quad before the last one: boxes of halves that share a row of quads would overlap.

Triangles that share a vertex are no part of the search; the paper leaves them out, too (`apart_pairs`). A mesh without
a grid is cut in its material coordinates, or in its rest positions where it has none.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.collision.broad.box_tree import BoxTree, TreePhase, push_children, push_own_children
from weft.collision.broad.boxes import is_overlapping
from weft.collision.broad.layout import centres, grid_places, halve_range, pattern_coordinates, split_evenly
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE
from weft.geometry.mesh import Mesh
from weft.geometry.topology import Csr
from weft.jit import kernel, prange
from weft.parameters import Parameters

BATCH = 64  # pairs of nodes tested at once


def halve(points: Floats, leaf_size: int = 1) -> Longs:
    """Paths of the tree that cuts `points` in even halves down to `leaf_size`."""
    group = np.zeros(len(points), np.int64)
    columns = []
    largest = len(points)
    while largest > leaf_size:
        side = split_evenly(points, group)
        columns.append(side)
        group = 2 * group + side
        largest = -(-largest // 2)
    return np.stack(columns, axis=1) if columns else np.zeros((len(points), 0), np.int64)


def halve_grid(grid_shape: tuple[int, int]) -> Longs:
    """Paths of the tree that cuts a grid between rows or columns, the longer side first, and the quads last."""
    row, column, half = grid_places(grid_shape)
    rows = np.zeros_like(row), np.full_like(row, grid_shape[0] - 1)
    columns = np.zeros_like(column), np.full_like(column, grid_shape[1] - 1)
    steps = []
    while max(n_rows := (rows[1] - rows[0]).max(), n_columns := (columns[1] - columns[0]).max()) > 1:
        if n_rows >= n_columns:
            side, rows = halve_range(row, *rows)
        else:
            side, columns = halve_range(column, *columns)
        steps.append(side)
    return np.stack([*steps, half], axis=1)


@kernel
def has_common_vertex(tree: BoxTree, triangles: Ints, places: Csr, a: int, b: int) -> bool:
    """Whether a triangle below node `a` has a vertex in common with one below node `b`."""
    if tree.ends[a] - tree.starts[a] > tree.ends[b] - tree.starts[b]:
        a, b = b, a
    for i in range(tree.starts[a], tree.ends[a]):
        for k in range(3):
            vi = triangles[tree.items[i], k]
            for row in range(places.starts[vi], places.starts[vi + 1]):
                if tree.starts[b] <= places.items[row] < tree.ends[b]:
                    return True
    return False


@kernel
def open_larger(skip: Ints, a: int, b: int, pairs: Ints, n: int) -> int:
    """Push the children of the larger of two nodes, each with the other node; return how many pairs there are then."""
    if skip[a] - a >= skip[b] - b:
        return push_children(skip, a, b, 0, pairs, n)
    return push_children(skip, b, a, 1, pairs, n)


@kernel(allocates=True)
def find_front(tree: BoxTree, triangles: Ints, places: Csr, apart_out: Ints, joined_out: Ints) -> tuple[int, int]:
    """Write the pairs of nodes without a common vertex that one gets to by opening pairs with one.

    `places` are the places in `tree.items` of the triangles around each vertex. The pairs of leaves with a common
    vertex are written to `joined_out`, as triangles. Returns how many there are of both, which may be more than fit.
    """
    skip = tree.skip
    stack = np.zeros((4 * (tree.depth.max() + 1), 2), np.int32)
    n, n_apart, n_joined = 1, 0, 0
    while n > 0:
        n -= 1
        a, b = stack[n, 0], stack[n, 1]
        if a == b:
            n = push_own_children(skip, a, stack, n)
        elif not has_common_vertex(tree, triangles, places, a, b):
            if n_apart < len(apart_out):
                apart_out[n_apart, 0], apart_out[n_apart, 1] = a, b
            n_apart += 1
        elif skip[a] > a + 1 or skip[b] > b + 1:
            n = open_larger(skip, a, b, stack, n)
        else:
            if n_joined < len(joined_out):
                ta, tb = tree.items[tree.starts[a]], tree.items[tree.starts[b]]
                joined_out[n_joined, 0], joined_out[n_joined, 1] = min(ta, tb), max(ta, tb)
            n_joined += 1
    return n_apart, n_joined


@kernel(allocates=True)
def search_below(
    tree: BoxTree, front: Ints, first: int, last: int, rows_out: Ints, at: int, end: int
) -> tuple[int, int]:
    """Write the triangles that meet below pairs `first` to `last` of the front; return the next row and the tests.

    Pairs are taken from the end of a stack, BATCH at a time: all are tested without a branch, which could not be
    predicted, and then those that meet are opened. One after the other took twice as long.
    """
    skip, boxes, touched = tree.skip, tree.boxes, tree.touched
    n = last - first
    stack = np.empty((n + 4 * BATCH * (tree.depth.max() + 1), 2), np.int32)
    for k in range(n):
        stack[k, 0], stack[k, 1] = front[last - 1 - k, 0], front[last - 1 - k, 1]
    met = np.empty((BATCH, 2), np.int32)
    n_tests = 0
    while n > 0:
        size = min(n, BATCH)
        n -= size
        n_tests += size
        n_met = 0
        for k in range(n, n + size):
            a, b = stack[k, 0], stack[k, 1]
            touched[a] = touched[b] = 1
            met[n_met, 0], met[n_met, 1] = a, b
            n_met += int(is_overlapping(boxes, a, boxes, b))
        for k in range(n_met):
            a, b = met[k, 0], met[k, 1]
            if skip[a] > a + 1 or skip[b] > b + 1:
                n = open_larger(skip, a, b, stack, n)
                continue
            if at < end:
                ta, tb = tree.items[tree.starts[a]], tree.items[tree.starts[b]]
                rows_out[at, 0], rows_out[at, 1] = min(ta, tb), max(ta, tb)
            at += 1
    return at, n_tests


@kernel(parallel=True)
def search_front(
    tree: BoxTree, front: Ints, starts: Longs, rows_out: Ints, counts_out: Longs, tests_out: Longs
) -> None:
    """Write the triangles that meet below all pairs of the front."""
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        first, last = chunk * len(front) // N_CHUNKS, (chunk + 1) * len(front) // N_CHUNKS
        at, n_tests = search_below(tree, front, first, last, rows_out, starts[chunk], starts[chunk + 1])
        counts_out[chunk] = at - starts[chunk]
        tests_out[chunk] = n_tests


class BinaryTreeParameters(Parameters):
    """None."""


class BinaryTree(TreePhase):
    """Binary tree split evenly in material coordinates; see the module."""

    Parameters = BinaryTreeParameters

    def __init__(self, mesh: Mesh, parameters: BinaryTreeParameters | None = None) -> None:
        super().__init__(mesh, parameters)
        around = mesh.topology.vertex_triangles
        places = Csr(around.starts, np.argsort(self.tree.items).astype(np.int32)[around.items])
        self._apart, self._joined = np.empty((2, 0, 2), np.int32)
        sizes = find_front(self.tree, mesh.topology.triangles, places, self._apart, self._joined)
        self._apart, self._joined = (np.empty((n, 2), np.int32) for n in sizes)
        find_front(self.tree, mesh.topology.triangles, places, self._apart, self._joined)

    def _paths(self) -> Longs:
        if self.mesh.grid_shape is not None:
            return halve_grid(self.mesh.grid_shape)
        return halve(centres(pattern_coordinates(self.mesh), self.mesh.triangles))

    def memory(self) -> int:
        return super().memory() + self._apart.nbytes + self._joined.nbytes

    def _search_self(self) -> Ints:
        return np.concatenate([self._joined, self._search_apart()])

    def _search_apart(self) -> Ints:
        self._clear_touched(self.tree)
        rows = self._buffer("apart").fill(
            lambda starts, rows_out, counts_out: search_front(
                self.tree, self._apart, starts, rows_out, counts_out, self._chunk_tests
            )
        )
        self._count(0, self.tree)
        return rows
