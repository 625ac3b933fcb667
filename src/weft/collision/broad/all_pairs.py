"""Every pair of boxes compared: the baseline of paper 000 (its S2, and S1 with an exact test behind it), and the
oracle that the other members are tested against.

Liu, Ko, Chang, "A simple self-collision avoidance for cloth animation", 1998, section 3: O(n^2) pairs. 20,000
triangles take a quarter of a second, so use it for small meshes and for checks.
"""

from __future__ import annotations

from typing import Self

from weft.arrays import Ints, Longs
from weft.collision.broad.boxes import Boxes, is_overlapping
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE
from weft.collision.broad.triangle_phase import TrianglePhase
from weft.jit import kernel, prange
from weft.parameters import Parameters


@kernel
def compare_chunk(
    boxes_a: Boxes, boxes_b: Boxes, is_self: bool, first: int, last: int, rows_out: Ints, at: int, end: int
) -> int:
    """Compare boxes `first` to `last` of a with every box of b; return the next row."""
    for ta in range(first, last):
        for tb in range(ta + 1 if is_self else 0, boxes_b.shape[0]):
            if is_overlapping(boxes_a, ta, boxes_b, tb):
                if at < end:
                    rows_out[at, 0], rows_out[at, 1] = ta, tb
                at += 1
    return at


@kernel(parallel=True)
def compare_all(
    boxes_a: Boxes, boxes_b: Boxes, is_self: bool, starts: Longs, rows_out: Ints, counts_out: Longs
) -> None:
    """Compare every box of a with every box of b, or with those after it where both are the same mesh."""
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        first, last = chunk * len(boxes_a) // N_CHUNKS, (chunk + 1) * len(boxes_a) // N_CHUNKS
        at = compare_chunk(boxes_a, boxes_b, is_self, first, last, rows_out, starts[chunk], starts[chunk + 1])
        counts_out[chunk] = at - starts[chunk]


class AllPairsParameters(Parameters):
    """None."""


class AllPairs(TrianglePhase):
    """Every pair of triangles compared; see the module."""

    Parameters = AllPairsParameters

    def _search_self(self) -> Ints:
        n = len(self.primitives.triangles)
        self.counters.boxes_tested += n * (n - 1) // 2
        return self._compare(self.primitives.triangle_boxes, is_self=True)

    def _search(self, other: Self) -> Ints:
        self.counters.boxes_tested += len(self.primitives.triangles) * len(other.primitives.triangles)
        return self._compare(other.primitives.triangle_boxes, is_self=False)

    def _compare(self, boxes_b: Boxes, is_self: bool) -> Ints:
        boxes_a = self.primitives.triangle_boxes
        return self._buffer(f"pairs {is_self}").fill(
            lambda starts, rows_out, counts_out: compare_all(boxes_a, boxes_b, is_self, starts, rows_out, counts_out)
        )
