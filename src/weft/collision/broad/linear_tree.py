"""Eight-way trees over fixed clusters, sorted along a Morton curve at every refit: the engine's broad phase.

Not from the papers. What makes it fast, each measured on crumpled cloth of 101 x 101 vertices, one thread:

- Vertices, edges and triangles have a tree each, so vertex-triangle and edge-edge candidates come out directly,
  without a list of triangle pairs between.
- Eight primitives that are close in the flat pattern form a cluster, once and for all. Cloth keeps its lengths, so
  clusters stay small; cutting them out by halves of halves instead of along a Morton curve halves the number of
  cluster pairs.
- Clusters, not primitives, are sorted along a Morton curve at every refit: an eighth of the keys (0.18 ms), and the
  upper boxes follow the crumpled shape rather than the pattern.
- Boxes stand in blocks of eight, and one vector routine tests two blocks, 64 pairs of boxes, in 12 ns (`lanes`). It
  serves every level: a pair of nodes, a pair of clusters. Testing one cluster against eight nodes took twice as long.
- Boxes move with what is in them, where vertices go at an even pace: two that are apart on the same side at both ends
  of the step never touch. Cloth of 201 x 201 vertices that falls on a table has 1,500,000 candidates by boxes around
  paths, and 310,000 by boxes that move, as many as at rest; each test takes half as long again.
- Cluster pairs are collected in batches and run through three loops without branches (overlap, shared vertices,
  rows): 17 % less than deciding pair by pair, since those branches cannot be predicted.

The rows depend on the positions alone, with no memory of earlier steps: a run that resumes from a checkpoint sees the
same order as one that never stopped. That is why nothing is carried over from step to step (front tracking).

Limits: a mesh whose triangles change their distance in the pattern (a soup that flies apart) keeps its old clusters,
stays correct, and gets slower. Build a new one then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints, Longs
from weft.collision.broad import Candidates, Counters, CrossCandidates, TestedBoxes
from weft.collision.broad.boxes import build_boxes, refit_vertex_boxes, refuse_far, widen_vertex_boxes
from weft.collision.broad.cluster_tree import (
    ClusterTree,
    build_cluster_tree,
    update_blocks,
    update_marks,
    update_orders,
    widen_blocks,
)
from weft.collision.broad.lanes import LANES, count_bits, lowest_bit, meeting_mask, overlap_mask, shared_vertex_mask
from weft.collision.broad.layout import centres, pattern_coordinates
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE, PairBuffer
from weft.collision.broad.triangle_phase import apart_rows
from weft.errors import WeftError
from weft.geometry.mesh import Mesh
from weft.jit import kernel, prange, threads_for
from weft.parameters import Parameters

FRONT = 512  # pairs of nodes that are handed out to chunks; the work of one is then small against the whole
BATCH = 512  # cluster pairs in flight: 12 kB, a third of a first-level cache

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ABOVE = np.uint64(sum(1 << (8 * i + j) for i in range(8) for j in range(i + 1, 8)))
_FIRST_COLUMN = np.uint64(0x0101010101010101)
_FIRST_ROW = np.uint64(0xFF)
_ROWS = np.array([sum(0xFF << (8 * i) for i in range(8) if byte >> i & 1) for byte in range(256)], np.uint64)
_FROM = np.uint64(sum(1 << (8 * i + j) for i in range(8) for j in range(i, 8)))


Rules = tuple[bool, bool, bool, bool]
"""within one tree, leave out primitives that share a vertex, leave out pairs without a mark, boxes move"""


@kernel(inline=True)
def touching_mask(tree_a: ClusterTree, tree_b: ClusterTree, rules: Rules, a: int, b: int) -> np.uint64:
    """Which of the 8 x 8 pairs of boxes of two blocks may touch."""
    if rules[3]:
        return meeting_mask(tree_a.blocks, tree_a.ends, a, tree_b.blocks, tree_b.ends, b)  # type: ignore[no-any-return]
    return overlap_mask(tree_a.blocks, a, tree_b.blocks, b)  # type: ignore[no-any-return]


@kernel(inline=True)
def marked_mask(tree_a: ClusterTree, tree_b: ClusterTree, a: int, b: int) -> np.uint64:
    """Which of the 8 x 8 pairs of boxes of two blocks hold a marked vertex."""
    return _ROWS[tree_a.marked[a]] | (_FIRST_COLUMN * np.uint64(tree_b.marked[b]))  # type: ignore[no-any-return]


@kernel
def expand_front(
    tree_a: ClusterTree, tree_b: ClusterTree, rules: Rules, front: Longs, spare: Longs
) -> tuple[int, int, int]:
    """Pairs of nodes whose boxes touch, level by level, until there are enough to share out.

    Of trees of unequal height the higher one is opened alone until both are on one level. Returns that level, the
    number of pairs, and how many blocks were tested. `front` and `spare` must hold 64 * FRONT pairs, and the blocks of
    the higher tree on the top level of the lower one.
    """
    level_a, level_b = tree_a.levels.shape[0] - 2, tree_b.levels.shape[0] - 2
    front[0, 0], front[0, 1] = 0, 0
    n, n_tests = 1, 0
    while level_a != level_b or (level_a > 0 and n < FRONT):
        n_next = 0
        n_tests += n
        opens_a, opens_b = level_a >= level_b, level_b >= level_a
        for i in range(n):
            a, b = front[i, 0], front[i, 1]
            mask = node_mask(tree_a, tree_b, rules, level_a, level_b, a, b)
            if not opens_b:
                mask = any_column(mask)
            elif not opens_a:
                mask = any_row(mask)
            while mask != _ZERO:
                k = lowest_bit(mask)
                mask &= mask - _ONE
                spare[n_next, 0] = 8 * a + (k >> 3) if opens_a else a
                spare[n_next, 1] = 8 * b + (k & 7) if opens_b else b
                n_next += 1
        for i in range(n_next):
            front[i, 0], front[i, 1] = spare[i, 0], spare[i, 1]
        n = n_next
        level_a -= int(opens_a)
        level_b -= int(opens_b)
    return level_a, n, n_tests


@kernel(inline=True)
def node_mask(
    tree_a: ClusterTree,
    tree_b: ClusterTree,
    rules: Rules,
    level_a: int,
    level_b: int,
    a: int,
    b: int,
) -> np.uint64:
    """Which children of nodes `a` and `b` touch; within one tree each pair of children once."""
    block_a = tree_a.levels[level_a] + a
    block_b = tree_b.levels[level_b] + b
    tree_a.touched[block_a] = 1
    tree_b.touched[block_b] = 1
    mask = touching_mask(tree_a, tree_b, rules, block_a, block_b)
    if rules[0] and a == b:
        mask &= _FROM
    if rules[2]:
        mask &= marked_mask(tree_a, tree_b, block_a, block_b)
    return mask


@kernel
def any_column(mask: np.uint64) -> np.uint64:
    """Bit 8 i: whether box i of side a touches any of side b."""
    mask |= mask >> np.uint64(4)
    mask |= mask >> np.uint64(2)
    mask |= mask >> np.uint64(1)
    return mask & _FIRST_COLUMN


@kernel
def any_row(mask: np.uint64) -> np.uint64:
    """Bit j: whether box j of side b touches any of side a."""
    mask |= mask >> np.uint64(32)
    mask |= mask >> np.uint64(16)
    mask |= mask >> np.uint64(8)
    return mask & _FIRST_ROW


@kernel
def write_batch(
    tree_a: ClusterTree,
    tree_b: ClusterTree,
    rules: Rules,
    batch: Longs,
    n: int,
    masks: npt.NDArray[np.uint64],
    rows_out: Ints,
    at: int,
    end: int,
) -> int:
    """Write the rows of `n` pairs of clusters from row `at` on, go on counting from row `end` on; return the next row.

    Three loops, the first two without branches: each keeps only what has bits left.
    """
    is_self, is_apart, is_marked, _ = rules
    n_hit = 0
    for i in range(n):
        a, b = batch[i, 0], batch[i, 1]
        tree_a.touched[a] = 1
        tree_b.touched[b] = 1
        mask = touching_mask(tree_a, tree_b, rules, a, b)
        if is_self and a == b:
            mask &= _ABOVE
        if is_marked:
            mask &= marked_mask(tree_a, tree_b, a, b)
        masks[n_hit] = mask
        batch[n_hit, 0] = tree_a.order[a]
        batch[n_hit, 1] = tree_b.order[b]
        n_hit += int(mask != _ZERO)
    if is_apart:
        n_tested = n_hit
        n_hit = 0
        for i in range(n_tested):
            a, b = batch[i, 0], batch[i, 1]
            mask = masks[i] & ~shared_vertex_mask(tree_a.corners, a, tree_b.corners, b)
            masks[n_hit] = mask
            batch[n_hit, 0] = a
            batch[n_hit, 1] = b
            n_hit += int(mask != _ZERO)
    for i in range(n_hit):
        mask = masks[i]
        if at + 64 > end:
            count = count_bits(mask)
            if at + count > end:
                at += count
                continue
        a, b = batch[i, 0], batch[i, 1]
        while mask != _ZERO:
            k = lowest_bit(mask)
            mask &= mask - _ONE
            item_a, item_b = tree_a.items[a, k >> 3], tree_b.items[b, k & 7]
            rows_out[at, 0] = min(item_a, item_b) if is_self else item_a
            rows_out[at, 1] = max(item_a, item_b) if is_self else item_b
            at += 1
    return at


@kernel(allocates=True)
def search_chunk(
    tree_a: ClusterTree,
    tree_b: ClusterTree,
    rules: Rules,
    level: int,
    front: Longs,
    first: int,
    last: int,
    rows_out: Ints,
    at: int,
    end: int,
) -> tuple[int, int]:
    """Search below pairs `first` to `last` of the front, depth first; return the next row and the blocks tested."""
    stack = np.empty((64 * (level + 1), 3), np.int64)
    batch = np.empty((BATCH, 2), np.int64)
    masks = np.empty(BATCH, np.uint64)
    n = 0
    n_tests = 0
    for i in range(first, last):
        stack[0, 0], stack[0, 1], stack[0, 2] = level, front[i, 0], front[i, 1]
        depth = 1
        while depth > 0:
            depth -= 1
            below, a, b = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            if n + 64 > BATCH:
                at = write_batch(tree_a, tree_b, rules, batch, n, masks, rows_out, at, end)
                n_tests += n
                n = 0
            if below == 0:
                batch[n, 0], batch[n, 1] = a, b
                n += 1
                continue
            mask = node_mask(tree_a, tree_b, rules, below, below, a, b)
            n_tests += 1
            if below == 1:
                while mask != _ZERO:
                    k = lowest_bit(mask)
                    mask &= mask - _ONE
                    batch[n, 0], batch[n, 1] = 8 * a + (k >> 3), 8 * b + (k & 7)
                    n += 1
                continue
            while mask != _ZERO:
                k = lowest_bit(mask)
                mask &= mask - _ONE
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = below - 1, 8 * a + (k >> 3), 8 * b + (k & 7)
                depth += 1
    at = write_batch(tree_a, tree_b, rules, batch, n, masks, rows_out, at, end)
    return at, n_tests + n


@kernel(parallel=True)
def search_front(
    tree_a: ClusterTree,
    tree_b: ClusterTree,
    rules: Rules,
    level: int,
    front: Longs,
    n_front: int,
    starts: Longs,
    rows_out: Ints,
    counts_out: Longs,
    tests_out: Longs,
) -> None:
    """Search below every pair of the front, in chunks that each own a stretch of `rows_out`."""
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        first, last = chunk * n_front // N_CHUNKS, (chunk + 1) * n_front // N_CHUNKS
        at, n_tests = search_chunk(
            tree_a, tree_b, rules, level, front, first, last, rows_out, starts[chunk], starts[chunk + 1]
        )
        counts_out[chunk] = at - starts[chunk]
        tests_out[chunk] = n_tests


@kernel
def count_untouched(tree: ClusterTree) -> int:
    """Boxes in blocks that the last search did not look at; the empty ones that fill up a block are none."""
    count = 0
    for block in range(len(tree.touched)):
        if tree.touched[block] == 0:
            for lane in range(LANES):
                count += int(np.isfinite(tree.blocks[block, 0, lane]))
    return count


class LinearTreeParameters(Parameters):
    """None: the layout is fixed by what was measured."""


class LinearTree:
    """Eight-way trees over vertices, edges and triangles; see the module."""

    Parameters = LinearTreeParameters
    complete = True
    can_widen = True

    def __init__(self, mesh: Mesh, parameters: LinearTreeParameters | None = None) -> None:
        self.parameters = parameters or LinearTreeParameters()
        self.counters = Counters()
        self.mesh = mesh
        n = mesh.n_vertices
        topology = mesh.topology
        coordinates = pattern_coordinates(mesh)
        used = np.unique(mesh.triangles)  # a vertex that no triangle has takes no part
        # around paths or at the start, and at the end; the last one stays empty
        self._vertex_boxes = build_boxes(n + 1), build_boxes(n + 1)
        self._trees = tuple(
            build_cluster_tree(rows, names.astype(np.int32), centres(coordinates, rows), n)
            for rows, names in (
                (used[:, None].astype(np.int32), used),
                (topology.edges, np.arange(len(topology.edges))),
                (topology.triangles, np.arange(len(topology.triangles))),
            )
        )
        self.vertices, self.edges, self.triangles = self._trees
        self._fronts: list[Longs] = [np.empty((64 * FRONT, 2), np.int64) for _ in range(2)]
        self._tests = np.zeros(N_CHUNKS, np.int64)
        self._buffers: dict[str, PairBuffer] = {}
        self._marks: Bools | None = None  # those that the trees hold
        self._is_moving = False

    def refit(
        self, x_t0: npt.ArrayLike, x_t1: npt.ArrayLike | None = None, margin: float = 0.0, even: bool = False
    ) -> None:
        boxes, end_boxes = self._vertex_boxes
        n, trees, end = self.mesh.n_vertices, (self.vertices, self.edges, self.triangles), x_t1 if even else None
        with self.counters.timed(), threads_for(len(self.mesh.triangles)):
            refit_vertex_boxes(x_t0, None if even else x_t1, margin, n, boxes)
            if end is not None:
                refit_vertex_boxes(end, None, margin, n, end_boxes)
            update_orders(boxes, *trees)
            update_blocks(boxes, end_boxes, *trees, end is not None)
        self._marks, self._is_moving = None, end is not None

    def widen(self, marks: Bools, x_t0: Floats, x_t1: Floats, margin: float) -> None:
        """Enlarge boxes so that marked vertices (n,) may be anywhere on their way, at any time of the step."""
        with self.counters.timed():
            self._mark(marks)
            for boxes, is_end in zip(self._vertex_boxes, (False, True)[: 1 + self._is_moving], strict=False):
                refuse_far(widen_vertex_boxes(marks, x_t0, x_t1, 0.5 * margin, boxes))
                for tree in self._trees:
                    widen_blocks(boxes, tree, tree.ends if is_end else tree.blocks)

    def self_pairs(self) -> Ints:
        with self.counters.timed():
            return self._search("triangle_triangle", self.triangles, self.triangles, is_self=True)

    def apart_pairs(self) -> Ints:
        return apart_rows(self.mesh.topology.triangles, self.self_pairs())

    def pairs(self, other: LinearTree) -> Ints:
        self._check(other)
        with self.counters.timed():
            return self._search("cross_triangle_triangle", self.triangles, other.triangles)

    def candidates(self, marks: Bools | None = None) -> Candidates:
        with self.counters.timed():
            self._mark(marks)
            m = marks is not None
            return Candidates(
                self._search("vertex_triangle", self.vertices, self.triangles, is_apart=True, is_marked=m),
                self._search("edge_edge", self.edges, self.edges, is_self=True, is_apart=True, is_marked=m),
            )

    def candidates_with(self, other: LinearTree, marks: Bools | None = None) -> CrossCandidates:
        self._check(other)
        with self.counters.timed():
            self._mark(marks)
            m = marks is not None
            return CrossCandidates(
                self._search("cross_vertex_triangle", self.vertices, other.triangles, is_marked=m),
                self._search("cross_triangle_vertex", self.triangles, other.vertices, is_marked=m),
                self._search("cross_edge_edge", self.edges, other.edges, is_marked=m),
            )

    def _mark(self, marks: Bools | None) -> None:
        if marks is None or (self._marks is not None and np.array_equal(marks, self._marks)):
            return
        self._marks = np.array(marks)
        update_marks(np.flatnonzero(marks), *self._trees)

    def tested_boxes(self) -> TestedBoxes:
        """Boxes of the triangle tree; level 0 of a block tree is its deepest."""
        tree = self.triangles
        blocks = np.minimum(tree.blocks, tree.ends) if self._is_moving else tree.blocks
        bounds = blocks.transpose(0, 2, 1).reshape(-1, 6).astype(np.float64)
        top = len(tree.levels) - 2
        depth = np.repeat(top - np.arange(top + 1), np.diff(tree.levels) * LANES)
        tested = np.repeat(tree.touched != 0, LANES)
        real = np.isfinite(bounds[:, 0])
        return TestedBoxes(bounds[real, :3], -bounds[real, 3:], depth[real].astype(np.int32), tested[real])

    def memory(self) -> int:
        total = sum(buffer.nbytes for buffer in self._buffers.values())
        for part in (*self._trees, self._vertex_boxes, self._fronts):
            total += sum(array.nbytes for array in part if isinstance(array, np.ndarray))
        return total

    def _check(self, other: object) -> None:
        if not isinstance(other, LinearTree):
            raise WeftError(f"linear_tree: expected another linear_tree to search against, got {type(other).__name__}")
        if other._is_moving != self._is_moving:
            raise WeftError("linear_tree: refit both to the same step, evenly or not")

    def _search(
        self,
        kind: str,
        tree_a: ClusterTree,
        tree_b: ClusterTree,
        *,
        is_self: bool = False,
        is_apart: bool = False,
        is_marked: bool = False,
    ) -> Ints:
        rules = is_self, is_apart, is_marked, self._is_moving
        if is_marked and not any(tree_b is own for own in self._trees):
            tree_b = tree_b._replace(marked=np.zeros_like(tree_b.marked))
        for tree in (tree_a, tree_b):
            tree.touched[:] = 0
        lower_top = min(len(tree_a.levels), len(tree_b.levels)) - 2
        n_needed = max(int(tree.levels[lower_top + 1] - tree.levels[lower_top]) for tree in (tree_a, tree_b))
        if n_needed > len(self._fronts[0]):
            self._fronts = [np.empty((n_needed, 2), np.int64) for _ in range(2)]
        front, spare = self._fronts
        level, n_front, n_tests = expand_front(tree_a, tree_b, rules, front, spare)
        if kind not in self._buffers:
            self._buffers[kind] = PairBuffer(tree_a.items.size)
        rows = self._buffers[kind].fill(
            lambda starts, rows_out, counts_out: search_front(
                tree_a, tree_b, rules, level, front, n_front, starts, rows_out, counts_out, self._tests
            )
        )
        self.counters.boxes_tested += LANES * LANES * (n_tests + int(self._tests.sum()))
        if not is_marked:
            self.counters.boxes_skipped += count_untouched(tree_a) + (0 if is_self else count_untouched(tree_b))
        self.counters.pairs_found += len(rows)
        return rows
