"""Spatial enumeration with a hash table, after paper 004: cubes in space, found by key.

Bigliani, Eischen, "Collision detection in cloth modeling", section 3.3. Space is cut into cubes of edge L. The cube at
(dx, dy, dz) has the key

    K = dx + N_cpl dz + N_cpp dy                     (18)

with N_cpl cubes along x and N_cpp in an x, z plane. Only cubes that hold something are stored, in an array of N_array
places: a key starts at h = K mod N_array (19) and, where that place is taken by another key, goes on by the quadratic
survey h <- h + d, d <- d + 2, from d = 1 (20). L must exceed the way of a vertex in one step, L > v_max dt (21), and
be comparable with the triangles: by default L is the mean edge, or the longest way of any vertex in this step if that
is larger, and the margin on top.

Two ways to fill the table:

- `nodes`, as in the paper. Each node enters the one cube it has arrived in, at the end of the step. Two nodes in one
  cube make all triangles of the one pairs with all triangles of the other. Neighbours in different cubes are missed,
  and so is a node in the middle of a triangle larger than a cube. This member is then not `complete`;
  `benchmarks/broad_phase.py` prints the share it misses: on a crumpled 51 x 51 cloth a quarter of the pairs that meet,
  and a tenth of those that cross.
- `complete`: each triangle enters every cube that its box touches. A pair of boxes that meets in several cubes is
  reported in the one that holds the lower corner of their common part, so each pair comes out once, without sorting.

What was changed, and why. Coordinates are measured from the lower corner of all boxes: `div` cuts towards zero, so the
cubes on either side of 0 would be one. N_array is not a fraction of all cubes, of which a cloth that flies apart has
any number, but the first prime above twice the number of entries: the survey by squares is certain to find a free place
only in a table of prime size that is at most half full. The paper's bound of N_box / N_array places looked at before
the right one is the mean number of cubes to a place, not a maximum. A cube grows until a triangle meets 27 on average
at most, and until all keys fit in 62 bits.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.collision.broad.boxes import Boxes, build_boxes, corners, is_overlapping
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE
from weft.collision.broad.triangle_phase import Primitives, TrianglePhase, unique_rows
from weft.geometry.mesh import Mesh
from weft.geometry.topology import Csr
from weft.jit import kernel, prange
from weft.parameters import Parameters, quantity

MEAN_CUBES = 27  # per triangle, at most: a box as large as a cube meets 8 of them, 27 leaves room for a bad mix
LARGEST_KEY = 2.0**62


class Table(NamedTuple):
    """The hash table over the cubes."""

    shape: Longs
    """(3,): number of cubes along each axis"""
    cubes: Longs
    """(n, 6): first and last cube of each item along x, y, z"""
    keys: Longs
    """(N_array,): key at each place, -1 where it is free"""
    starts: Longs
    """(N_array + 1,): what the cube at place h holds is items[starts[h] : starts[h + 1]]"""
    items: Ints
    """triangles or nodes, ascending within a cube"""


@kernel
def update_cubes(boxes: Boxes, origin: Floats, size: float, shape: Longs, cubes_out: Longs) -> float:
    """Overwrite the first and last cube of every box, clipped to those that exist; return how many are met in all."""
    total = 0.0
    for i in range(boxes.shape[0]):
        n = 1.0
        for d in range(3):
            for side in range(2):
                coordinate = boxes[i, d] if side == 0 else -boxes[i, d + 3]
                cube = np.floor((coordinate - origin[d]) / size)
                cubes_out[i, 3 * side + d] = np.int64(min(max(cube, 0.0), shape[d] - 1.0))
            n *= cubes_out[i, 3 + d] - cubes_out[i, d] + 1.0
        total += n
    return total


@kernel
def key_of(shape: Longs, i: int, j: int, k: int) -> int:
    """Key of the cube (i, j, k), eq. 18."""
    return int(i + shape[0] * k + shape[0] * shape[2] * j)


@kernel
def find_place(keys: Longs, key: int) -> int:
    """The place of `key`, or the free place where it belongs: eq. 19 and 20."""
    n = keys.shape[0]
    place = key % n
    step = 1
    while keys[place] != key and keys[place] != -1:
        place = (place + step) % n
        step += 2
    return int(place)


@kernel
def fill_table(table: Table, places: Longs) -> None:
    """Enter every item in every cube it touches; overwrites keys, starts and items.

    `places` is scratch, one for each entry.
    """
    shape, cubes, keys, starts, items = table
    entry = 0
    for item in range(cubes.shape[0]):
        for i in range(cubes[item, 0], cubes[item, 3] + 1):
            for j in range(cubes[item, 1], cubes[item, 4] + 1):
                for k in range(cubes[item, 2], cubes[item, 5] + 1):
                    key = key_of(shape, i, j, k)
                    place = find_place(keys, key)
                    keys[place] = key
                    places[entry] = place
                    starts[place + 1] += 1
                    entry += 1
    for place in range(keys.shape[0]):
        starts[place + 1] += starts[place]
    entry = 0
    for item in range(cubes.shape[0]):
        n_cubes = (cubes[item, 3] - cubes[item, 0] + 1) * (cubes[item, 4] - cubes[item, 1] + 1)
        for _ in range(n_cubes * (cubes[item, 5] - cubes[item, 2] + 1)):
            place = places[entry]
            items[starts[place]] = item
            starts[place] += 1
            entry += 1
    # filling moved every start to the end of its cube, which is the start of the next one
    for place in range(keys.shape[0], 0, -1):
        starts[place] = starts[place - 1]
    starts[0] = 0


@kernel
def search_triangles(
    table: Table,
    a: Primitives,
    b: Primitives,
    cubes_b: Longs,
    is_self: bool,
    first: int,
    last: int,
    rows_out: Ints,
    at: int,
    end: int,
) -> tuple[int, int]:
    """Pairs of triangles `first` to `last` of b with those in the table that share a cube; next row, tests."""
    shape, cubes_a, keys, starts, items = table
    n_tests = 0
    for tb in range(first, last):
        for i in range(cubes_b[tb, 0], cubes_b[tb, 3] + 1):
            for j in range(cubes_b[tb, 1], cubes_b[tb, 4] + 1):
                for k in range(cubes_b[tb, 2], cubes_b[tb, 5] + 1):
                    place = find_place(keys, key_of(shape, i, j, k))
                    for entry in range(starts[place], starts[place + 1]):
                        ta = items[entry]
                        # only in the cube with the lower corner of the common part
                        if (
                            (is_self and ta <= tb)
                            or i != max(cubes_a[ta, 0], cubes_b[tb, 0])
                            or j != max(cubes_a[ta, 1], cubes_b[tb, 1])
                            or k != max(cubes_a[ta, 2], cubes_b[tb, 2])
                        ):
                            continue
                        n_tests += 1
                        a.touched[ta] = 1
                        b.touched[tb] = 1
                        if is_overlapping(a.triangle_boxes, ta, b.triangle_boxes, tb):
                            if at < end:
                                rows_out[at, 0] = tb if is_self else ta
                                rows_out[at, 1] = ta if is_self else tb
                            at += 1
    return at, n_tests


@kernel
def search_nodes(
    table: Table,
    a: Primitives,
    around_a: Csr,
    b: Primitives,
    around_b: Csr,
    cubes_b: Longs,
    is_self: bool,
    first: int,
    last: int,
    rows_out: Ints,
    at: int,
    end: int,
) -> tuple[int, int]:
    """Pairs of triangles around nodes `first` to `last` of b and around nodes in the same cube; next row, tests."""
    n_tests = 0
    for vb in range(first, last):
        place = find_place(table.keys, key_of(table.shape, cubes_b[vb, 0], cubes_b[vb, 1], cubes_b[vb, 2]))
        for entry in range(table.starts[place], table.starts[place + 1]):
            va = table.items[entry]
            if is_self and va <= vb:
                continue
            for i in range(around_a.starts[va], around_a.starts[va + 1]):
                ta = around_a.items[i]
                for j in range(around_b.starts[vb], around_b.starts[vb + 1]):
                    tb = around_b.items[j]
                    n_tests += 1
                    a.touched[ta] = 1
                    b.touched[tb] = 1
                    if (is_self and ta == tb) or not is_overlapping(a.triangle_boxes, ta, b.triangle_boxes, tb):
                        continue
                    if at < end:
                        rows_out[at, 0] = min(ta, tb) if is_self else ta
                        rows_out[at, 1] = max(ta, tb) if is_self else tb
                    at += 1
    return at, n_tests


@kernel(parallel=True)
def search_table(
    table: Table,
    a: Primitives,
    around_a: Csr,
    b: Primitives,
    around_b: Csr,
    cubes_b: Longs,
    is_self: bool,
    by_nodes: bool,
    starts: Longs,
    rows_out: Ints,
    counts_out: Longs,
    tests_out: Longs,
) -> None:
    """Search the table with the nodes or the triangles of b, in chunks."""
    n = len(cubes_b)
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        at, end = starts[chunk], starts[chunk + 1]
        first, last = chunk * n // N_CHUNKS, (chunk + 1) * n // N_CHUNKS
        if by_nodes:
            at, n_tests = search_nodes(
                table, a, around_a, b, around_b, cubes_b, is_self, first, last, rows_out, at, end
            )
        else:
            at, n_tests = search_triangles(table, a, b, cubes_b, is_self, first, last, rows_out, at, end)
        counts_out[chunk] = at - starts[chunk]
        tests_out[chunk] = n_tests


def next_prime(n: int) -> int:
    """The smallest prime that is at least `n`."""
    n = max(n, 2)
    while any(n % k == 0 for k in range(2, int(n**0.5) + 1)):
        n += 1
    return n


class SpatialHashParameters(Parameters):
    """How the table is filled, and its cubes."""

    fill: Literal["complete", "nodes"] = quantity(
        "complete: triangles in every cube they touch; nodes: as published, misses pairs", default="complete"
    )
    cube_size: float | None = quantity(
        "edge of a cube; by default from the mean edge and the motion, eq. 21", default=None, unit="m", gt=0, le=1e4
    )


class SpatialHash(TrianglePhase):
    """Cubes in a hash table; see the module."""

    Parameters = SpatialHashParameters

    def __init__(self, mesh: Mesh, parameters: SpatialHashParameters | None = None) -> None:
        super().__init__(mesh, parameters)
        self._by_nodes = self.parameters.fill == "nodes"
        self.complete = not self._by_nodes

    def _update(self, margin: float) -> None:
        boxes = self._item_boxes()
        lower, upper = corners(boxes)
        self._origin = lower.min(axis=0, initial=np.inf) if len(boxes) else np.zeros(3)
        extent = upper.max(axis=0, initial=-np.inf) - self._origin if len(boxes) else np.zeros(3)
        self.cube_size = self._first_cube_size(margin)
        cubes = np.empty((len(boxes), 6), np.int64)
        while True:
            shape = np.floor(extent / self.cube_size) + 1.0
            if np.prod(shape) < LARGEST_KEY:
                n_met = update_cubes(boxes, self._origin, self.cube_size, shape.astype(np.int64), cubes)
                if n_met <= MEAN_CUBES * len(boxes):
                    break
            self.cube_size *= 1.5
        n_places = next_prime(2 * int(n_met) + 1)
        self.table = Table(
            shape=shape.astype(np.int64),
            cubes=cubes,
            keys=np.full(n_places, -1, np.int64),
            starts=np.zeros(n_places + 1, np.int64),
            items=np.empty(int(n_met), np.int32),
        )
        fill_table(self.table, np.empty(int(n_met), np.int64))

    def _item_boxes(self) -> Boxes:
        """Boxes of what enters the table: triangles, or nodes at the end of the step."""
        if not self._by_nodes:
            return self.primitives.triangle_boxes
        boxes = build_boxes(self.mesh.n_vertices)
        boxes[:, :3], boxes[:, 3:6] = self._ends[1], -self._ends[1]
        return boxes

    def _first_cube_size(self, margin: float) -> float:
        """Eq. 21, and comparable with the triangles."""
        if self.parameters.cube_size is not None:
            return float(self.parameters.cube_size)
        x_t0, x_t1 = self._ends
        edges = self.primitives.edges
        mean_edge = float(np.linalg.norm(x_t0[edges[:, 0]] - x_t0[edges[:, 1]], axis=1).mean()) if len(edges) else 0.0
        longest_way = float(np.linalg.norm(x_t1 - x_t0, axis=1).max(initial=0.0))
        # a mesh that has collapsed to a point and stands still has no length of its own
        return max(mean_edge, longest_way * (1.0 + 1e-9)) + margin or 1.0

    def memory(self) -> int:
        return super().memory() + sum(array.nbytes for array in self.table if isinstance(array, np.ndarray))

    def _search_self(self) -> Ints:
        return self._search(self)

    def _search(self, other: Self) -> Ints:
        is_self = other is self
        cubes_b = self.table.cubes
        if not is_self:
            boxes_b = other._item_boxes()
            cubes_b = np.empty((len(boxes_b), 6), np.int64)
            update_cubes(boxes_b, self._origin, self.cube_size, self.table.shape, cubes_b)
        around = [phase.mesh.topology.vertex_triangles for phase in (self, other)]
        self.primitives.touched[:] = 0
        other.primitives.touched[:] = 0
        rows = self._buffer(f"pairs {is_self}").fill(
            lambda starts, rows_out, counts_out: search_table(
                self.table,
                self.primitives,
                around[0],
                other.primitives,
                around[1],
                cubes_b,
                is_self,
                self._by_nodes,
                starts,
                rows_out,
                counts_out,
                self._chunk_tests,
            )
        )
        skipped = [int((phase.primitives.touched == 0).sum()) for phase in (self, other)]
        self.counters.boxes_skipped += skipped[0] if is_self else sum(skipped)
        self.counters.boxes_tested += int(self._chunk_tests.sum())
        # several pairs of nodes lead to one pair of triangles
        return unique_rows(rows) if self._by_nodes else rows
