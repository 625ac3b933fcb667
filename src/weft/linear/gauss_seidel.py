"""Constrained Gauss-Seidel: relaxation of A x = b in which each coordinate of each vertex stays in an interval.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), eq. 11. Coordinates are relaxed one after another, x then y then z of each vertex in the order of vertices:

    d_i <- (b_i - sum_{j != i} a_ij d_j) / a_ii,   then clamped to [lower_i, upper_i].

For a symmetric positive definite A every relaxation lowers 1/2 x A x - b x within the intervals, so the sweeps
converge to its constrained minimum, from any start, whatever the intervals are. The printed equation compares the
old value of d_i with its limits; it is the relaxed one that must be.

The paper's A has no coupling between x, y and z; ours may (3 x 3 blocks), and the same loop then relaxes all 3 n
unknowns. A vertex whose filter leaves it a plane or a line moves there by exact line search along its residual.
Sequential by nature, hence serial: the order of relaxation is part of the result.
"""

from __future__ import annotations

from weft.arrays import Floats
from weft.jit import kernel
from weft.linear.blocks import BlockMatrix, times_item


@kernel
def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@kernel
def relax_constrained(
    matrix: BlockMatrix,
    b: Floats,
    filters: Floats,
    lower: Floats,
    upper: Floats,
    tolerance: float,
    max_sweeps: int,
    x_inout: Floats,
) -> tuple[int, float]:
    """Relax A x = b from `x_inout` within [`lower`, `upper`] (n, 3), which may be infinite.

    `filters` (n, 3, 3) are projectors on the free directions; the rest of `x_inout` stays as it comes in. Stops when
    no coordinate changes by more than `tolerance` in a sweep; returns the sweeps and the last largest change.
    """
    d = matrix.diagonal
    change = 0.0
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(len(b)):
            free = filters[i, 0, 0] + filters[i, 1, 1] + filters[i, 2, 2]
            if free < 0.5:
                continue
            t0, t1, t2 = b[i, 0], b[i, 1], b[i, 2]
            for k in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
                item = matrix.row_blocks[k]
                j = matrix.ends[item >> 1, 1 - (item & 1)]
                y0, y1, y2 = times_item(matrix, item, x_inout[j, 0], x_inout[j, 1], x_inout[j, 2])
                t0, t1, t2 = t0 - y0, t1 - y1, t2 - y2
            x0, x1, x2 = x_inout[i, 0], x_inout[i, 1], x_inout[i, 2]
            if free > 2.5:
                y0 = _clamp((t0 - d[i, 0, 1] * x1 - d[i, 0, 2] * x2) / d[i, 0, 0], lower[i, 0], upper[i, 0])
                y1 = _clamp((t1 - d[i, 1, 0] * y0 - d[i, 1, 2] * x2) / d[i, 1, 1], lower[i, 1], upper[i, 1])
                y2 = _clamp((t2 - d[i, 2, 0] * y0 - d[i, 2, 1] * y1) / d[i, 2, 2], lower[i, 2], upper[i, 2])
            else:
                t0 -= d[i, 0, 0] * x0 + d[i, 0, 1] * x1 + d[i, 0, 2] * x2
                t1 -= d[i, 1, 0] * x0 + d[i, 1, 1] * x1 + d[i, 1, 2] * x2
                t2 -= d[i, 2, 0] * x0 + d[i, 2, 1] * x1 + d[i, 2, 2] * x2
                p0 = filters[i, 0, 0] * t0 + filters[i, 0, 1] * t1 + filters[i, 0, 2] * t2
                p1 = filters[i, 1, 0] * t0 + filters[i, 1, 1] * t1 + filters[i, 1, 2] * t2
                p2 = filters[i, 2, 0] * t0 + filters[i, 2, 1] * t1 + filters[i, 2, 2] * t2
                q0 = d[i, 0, 0] * p0 + d[i, 0, 1] * p1 + d[i, 0, 2] * p2
                q1 = d[i, 1, 0] * p0 + d[i, 1, 1] * p1 + d[i, 1, 2] * p2
                q2 = d[i, 2, 0] * p0 + d[i, 2, 1] * p1 + d[i, 2, 2] * p2
                curvature = p0 * q0 + p1 * q1 + p2 * q2
                step = (p0 * p0 + p1 * p1 + p2 * p2) / curvature if curvature > 0.0 else 0.0
                y0 = _clamp(x0 + step * p0, lower[i, 0], upper[i, 0])
                y1 = _clamp(x1 + step * p1, lower[i, 1], upper[i, 1])
                y2 = _clamp(x2 + step * p2, lower[i, 2], upper[i, 2])
            change = max(change, abs(y0 - x0), abs(y1 - x1), abs(y2 - x2))
            x_inout[i, 0], x_inout[i, 1], x_inout[i, 2] = y0, y1, y2
        if change <= tolerance:
            return sweep + 1, change
    return max_sweeps, change
