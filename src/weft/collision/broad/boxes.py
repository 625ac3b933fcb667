"""Boxes of vertices, edges and triangles, at one instant or swept over a step.

A box is a row of eight float32: (lower x, y, z, -upper x, -upper y, -upper z, unused, unused). With the upper corner
negated, the box around two boxes is the minimum of their rows, the empty box is +inf everywhere, and two boxes a, b
touch where a[d] <= -b[d + 3] and b[d] <= -a[d + 3] for all three axes d.

Float32 halves the memory that a search reads. Rounding must not lose a pair, so every bound is moved outward by
2^-23 of its own size before the cast (at most two float32 steps; 2^-148 near zero): that covers the rounding of the
cast and of the float64 arithmetic before it. One metre from the origin this is 0.2 micrometres.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints
from weft.errors import WeftError
from weft.jit import kernel, prange

ROW = 8
CHUNKS = 16  # fixed, so that nothing depends on the number of threads
OUTWARD = 2.0**-23
SMALLEST = 2.0**-148  # two steps of float32 around zero
FARTHEST = 1e37  # m: beyond it the float32 bounds would be infinite and meet the empty boxes

Boxes = npt.NDArray[np.float32]


def build_boxes(n: int) -> Boxes:
    """`n` empty boxes."""
    return np.full((n, ROW), np.inf, np.float32)


@kernel(inline=True)
def _outward(bound: float) -> np.float32:
    """A lower or negated upper bound in float32, no higher than it was."""
    return np.float32(bound - abs(bound) * OUTWARD - SMALLEST)


@kernel(parallel=True)
def update_vertex_boxes(x_t0: Floats, x_t1: Floats, half_margin: float, boxes_out: Boxes) -> int:
    """Overwrite `boxes_out[: n_vertices]`; return the first vertex that is NaN or too far away, or -1."""
    n = len(x_t0)
    bad = np.full(CHUNKS, n)
    for chunk in prange(CHUNKS):
        for vi in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            size = 0.0
            for d in range(3):
                a = x_t0[vi, d]
                b = x_t1[vi, d]
                size += abs(a) + abs(b)
                boxes_out[vi, d] = _outward(min(a, b) - half_margin)
                boxes_out[vi, d + 3] = _outward(-max(a, b) - half_margin)
            if not size < FARTHEST:
                bad[chunk] = min(bad[chunk], vi)
    first = bad.min()
    return first if first < n else -1


@kernel
def widen_vertex_boxes(marks: Bools, x_t0: Floats, x_t1: Floats, half_margin: float, boxes_inout: Boxes) -> int:
    """Enlarge the boxes of marked vertices to hold their way; return the first that is NaN or too far away, or -1."""
    bad = -1
    for vi in range(len(marks)):
        if not marks[vi]:
            continue
        size = 0.0
        for d in range(3):
            a, b = x_t0[vi, d], x_t1[vi, d]
            size += abs(a) + abs(b)
            boxes_inout[vi, d] = min(boxes_inout[vi, d], _outward(min(a, b) - half_margin))
            boxes_inout[vi, d + 3] = min(boxes_inout[vi, d + 3], _outward(-max(a, b) - half_margin))
        if bad < 0 and not size < FARTHEST:
            bad = vi
    return bad


@kernel
def add_box(boxes: Boxes, i: int, boxes_out: Boxes, at: int) -> None:
    """Enlarge box `at` of `boxes_out` to hold box `i` of `boxes`."""
    for d in range(ROW):  # with the unused ones, eight at once
        boxes_out[at, d] = min(boxes_out[at, d], boxes[i, d])


@kernel
def update_primitive_boxes(vertex_boxes: Boxes, primitives: Ints, boxes_out: Boxes) -> None:
    """Overwrite `boxes_out` with the boxes of `primitives` (m, k), each given by its k vertices."""
    for i in range(primitives.shape[0]):
        boxes_out[i, :] = np.inf
        for k in range(primitives.shape[1]):
            add_box(vertex_boxes, primitives[i, k], boxes_out, i)


@kernel
def is_overlapping(boxes_a: Boxes, a: int, boxes_b: Boxes, b: int) -> bool:
    """Whether box `a` of `boxes_a` and box `b` of `boxes_b` touch or overlap."""
    # & rather than `and`: which of the six fails first cannot be predicted
    return bool(
        (boxes_a[a, 0] <= -boxes_b[b, 3])
        & (boxes_b[b, 0] <= -boxes_a[a, 3])
        & (boxes_a[a, 1] <= -boxes_b[b, 4])
        & (boxes_b[b, 1] <= -boxes_a[a, 4])
        & (boxes_a[a, 2] <= -boxes_b[b, 5])
        & (boxes_b[b, 2] <= -boxes_a[a, 5])
    )


def refit_vertex_boxes(
    x_t0: npt.ArrayLike, x_t1: npt.ArrayLike | None, margin: float, n_vertices: int, boxes_out: Boxes
) -> tuple[Floats, Floats]:
    """Check the positions, overwrite the boxes, and return both ends as contiguous float64.

    A NaN would make every overlap test false and lose pairs silently, so it is refused here.
    """
    start = _as_rows(x_t0, n_vertices, "x_t0")
    end = start if x_t1 is None else _as_rows(x_t1, n_vertices, "x_t1")
    if not 0.0 <= margin < np.inf:
        raise WeftError(f"margin: expected a finite length of at least 0 m, got {margin}")
    refuse_far(update_vertex_boxes(start, end, 0.5 * margin, boxes_out))
    return start, end


def refuse_far(vertex: int) -> None:
    """Raise, unless `vertex` is -1."""
    if vertex >= 0:
        raise WeftError(f"positions: vertex {vertex} is NaN, infinite or beyond {FARTHEST:.0e} m")


def _as_rows(x: npt.ArrayLike, n_vertices: int, name: str) -> Floats:
    rows = np.ascontiguousarray(x, dtype=np.float64)
    if rows.shape != (n_vertices, 3):
        raise WeftError(f"{name}: expected shape ({n_vertices}, 3), got {rows.shape}")
    return rows


def corners(boxes: Boxes) -> tuple[Floats, Floats]:
    """Lower and upper corners of boxes, (n, 3) float64 each."""
    return boxes[:, 0:3].astype(np.float64), -boxes[:, 3:6].astype(np.float64)
