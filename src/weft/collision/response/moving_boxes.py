"""Boxes of triangles that move over a step: when two of them meet, and on which plane.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), section 4.1. The box of a triangle moves from where it is at time t to where the run would have it at t + dt,
its faces linearly: that holds the true box, since the largest of linear functions is convex. For every axis d two boxes
overlap in a time interval T_d; where T = T_x & T_y & T_z is not empty the boxes collide, at its first time t'. The
collision plane d = k is where they touch on the axis whose interval starts at t' (eq. 7).

What we changed, and why.

- Strict inequalities need a number: boxes that do not touch keep `gap` between them, or what they have at time t where
  that is less.
- Where two axes start at the same t', the axis with the larger separation at time t is taken; only an axis on which the
  boxes are apart at time t has a plane.
"""

from __future__ import annotations

from weft.arrays import Floats, Ints, Longs
from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE
from weft.jit import kernel, prange

ROUNDING = 1e-11  # m by which a limit may be missed
LOWER, UPPER, LOWER_T1, UPPER_T1 = 0, 1, 2, 3  # corners of a moving box at the start and at the end of the step


@kernel(allocates=True)
def update_corners(x: Floats, triangles: Ints, lower: int, boxes_out: Floats) -> None:
    """Overwrite the corners of moving boxes (m, 4, 3) at one end of the step: `lower` is LOWER or LOWER_T1."""
    for ti in range(triangles.shape[0]):
        i, j, k = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
        for d in range(3):
            boxes_out[ti, lower, d] = min(x[i, d], x[j, d], x[k, d])
            boxes_out[ti, lower + 1, d] = max(x[i, d], x[j, d], x[k, d])


@kernel
def separations(boxes: Floats, ta: int, tb: int, d: int) -> tuple[float, float, float, float]:
    """How far tb is above and how far it is below ta along axis d, at the start, and the same at the end."""
    return (
        boxes[tb, LOWER, d] - boxes[ta, UPPER, d],
        boxes[ta, LOWER, d] - boxes[tb, UPPER, d],
        boxes[tb, LOWER_T1, d] - boxes[ta, UPPER_T1, d],
        boxes[ta, LOWER_T1, d] - boxes[tb, UPPER_T1, d],
    )


@kernel
def overlap_interval(above: float, below: float, above_t1: float, below_t1: float, gap: float) -> tuple[float, float]:
    """T_d: when, in [0, 1], two boxes with these separations overlap; (1, 0) for never.

    Boxes that are apart at time t overlap as soon as they are closer than `gap`, or than they are at time t.
    """
    enter, leave = 0.0, 1.0
    if above > 0.0 or below > 0.0:
        apart, apart_t1 = (above, above_t1) if above > 0.0 else (below, below_t1)
        least = min(gap, apart)
        if apart_t1 >= least - ROUNDING:
            return 1.0, 0.0
        enter = (apart - least) / (apart - apart_t1)
    if above <= 0.0 < above_t1:
        leave = above / (above - above_t1)
    elif below <= 0.0 < below_t1:
        leave = below / (below - below_t1)
    return enter, leave


@kernel
def is_colliding(boxes: Floats, ta: int, tb: int, gap: float) -> bool:
    """Whether T = T_x & T_y & T_z of two boxes is not empty."""
    first, last = 0.0, 1.0
    for d in range(3):
        above, below, above_t1, below_t1 = separations(boxes, ta, tb, d)
        enter, leave = overlap_interval(above, below, above_t1, below_t1, gap)
        first, last = max(first, enter), min(last, leave)
        if first > last:
            return False
    return True


@kernel
def collision_plane(boxes: Floats, ta: int, tb: int, gap: float) -> tuple[int, bool, float, float, float]:
    """The plane on which two boxes that collide meet first.

    Returns its axis, -1 where the boxes overlap at time t and there is none; whether the box of `ta` is the lower one;
    the top of the lower one at time t and when they meet, k; and how far the upper one must stay from there.
    """
    axis, time, widest = -1, -1.0, 0.0
    for d in range(3):
        above, below, above_t1, below_t1 = separations(boxes, ta, tb, d)
        enter, _ = overlap_interval(above, below, above_t1, below_t1, gap)
        apart = max(above, below)
        if apart > 0.0 and (enter > time or (enter == time and apart > widest)):
            axis, time, widest = d, enter, apart
    if axis < 0:
        return axis, False, 0.0, 0.0, 0.0
    a_is_lower = boxes[tb, LOWER, axis] > boxes[ta, UPPER, axis]
    lower = ta if a_is_lower else tb
    top = boxes[lower, UPPER, axis]
    return axis, a_is_lower, top, top + time * (boxes[lower, UPPER_T1, axis] - top), min(gap, widest)


@kernel
def select_colliding(boxes: Floats, pairs: Ints, gap: float, rows_out: Ints) -> int:
    """Write those of `pairs` that collide; return how many."""
    at = 0
    for row in range(len(pairs)):
        if is_colliding(boxes, pairs[row, 0], pairs[row, 1], gap):
            rows_out[at, 0], rows_out[at, 1] = pairs[row, 0], pairs[row, 1]
            at += 1
    return at


@kernel
def compare_rows(boxes: Floats, gap: float, first: int, last: int, rows_out: Ints, at: int, end: int) -> int:
    """Compute the intervals of boxes `first` to `last` with all boxes after them, and write the pairs that collide.

    Returns the next row.
    """
    for ta in range(first, last):
        for tb in range(ta + 1, len(boxes)):
            if is_colliding(boxes, ta, tb, gap):
                if at < end:
                    rows_out[at, 0], rows_out[at, 1] = ta, tb
                at += 1
    return at


@kernel(parallel=True)
def compare_every_pair(boxes: Floats, gap: float, starts: Longs, rows_out: Ints, counts_out: Longs) -> None:
    """Compute the intervals of every pair of boxes, and write the pairs that collide (the paper's S2)."""
    for i in prange(N_CHUNKS):
        chunk = (i * STRIDE) % N_CHUNKS
        first, last = chunk * len(boxes) // N_CHUNKS, (chunk + 1) * len(boxes) // N_CHUNKS
        at = compare_rows(boxes, gap, first, last, rows_out, starts[chunk], starts[chunk + 1])
        counts_out[chunk] = at - starts[chunk]
