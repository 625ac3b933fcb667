"""Whether the border of a part of the cloth, projected along a direction, stays a simple polygon during a step."""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.jit import kernel

N_DIRECTIONS = 16  # tried in a half turn where the obvious direction fails
CLEARANCE = 1e-12  # of the largest coordinate: far above rounding, far below any cloth


@kernel
def project_border(
    x_t0: Floats,
    x_t1: Floats,
    edges: Ints,
    items: Ints,
    first: int,
    last: int,
    axes: Floats,
    node: int,
    points_out: Floats,
) -> float:
    """Overwrite `points_out` (n, 4, 2): both ends of each edge at the start, then at the end; return the largest.

    The plane has the normal `axes[node]`; its own axes are the coordinate axis least along the normal, made square to
    it, and the third direction.
    """
    nx, ny, nz = axes[node, 0], axes[node, 1], axes[node, 2]
    if abs(nx) <= abs(ny) and abs(nx) <= abs(nz):
        ux, uy, uz = 0.0, nz, -ny
    elif abs(ny) <= abs(nz):
        ux, uy, uz = -nz, 0.0, nx
    else:
        ux, uy, uz = ny, -nx, 0.0
    vx, vy, vz = ny * uz - nz * uy, nz * ux - nx * uz, nx * uy - ny * ux
    largest = 0.0
    for i in range(last - first):
        for k in range(4):
            x = x_t0 if k < 2 else x_t1
            vi = edges[items[first + i], k % 2]
            points_out[i, k, 0] = ux * x[vi, 0] + uy * x[vi, 1] + uz * x[vi, 2]
            points_out[i, k, 1] = vx * x[vi, 0] + vy * x[vi, 1] + vz * x[vi, 2]
            largest = max(largest, abs(points_out[i, k, 0]), abs(points_out[i, k, 1]))
    return largest


@kernel
def is_separating(points: Floats, i: int, j: int, wx: float, wy: float, clearance: float) -> bool:
    """Whether edges i and j lie on two sides of a line square to w, at both times."""
    low_i = low_j = np.inf
    high_i = high_j = -np.inf
    for k in range(4):
        along_i = wx * points[i, k, 0] + wy * points[i, k, 1]
        along_j = wx * points[j, k, 0] + wy * points[j, k, 1]
        low_i, high_i = min(low_i, along_i), max(high_i, along_i)
        low_j, high_j = min(low_j, along_j), max(high_j, along_j)
    return high_i + clearance < low_j or high_j + clearance < low_i


@kernel
def is_advancing(points: Floats, i: int, j: int, at_i: int, at_j: int, wx: float, wy: float, clearance: float) -> bool:
    """Whether the walk along edge i to its end `at_i`, which is end `at_j` of edge j, and on along j advances in w."""
    for k in range(0, 4, 2):
        px, py = points[i, k + at_i, 0], points[i, k + at_i, 1]
        first = wx * (px - points[i, k + 1 - at_i, 0]) + wy * (py - points[i, k + 1 - at_i, 1])
        second = wx * (points[j, k + 1 - at_j, 0] - px) + wy * (points[j, k + 1 - at_j, 1] - py)
        if not (first > clearance and second > clearance):
            return False
    return True


@kernel
def is_pair_apart(points: Floats, i: int, j: int, at_i: int, at_j: int, clearance: float) -> bool:
    """Whether two edges stay apart, but for the vertex they share (end `at_i` of i is end `at_j` of j; -1: none)."""
    if at_i < 0:
        wx = points[i, 0, 0] + points[i, 1, 0] - points[j, 0, 0] - points[j, 1, 0]
        wy = points[i, 0, 1] + points[i, 1, 1] - points[j, 0, 1] - points[j, 1, 1]
    else:
        wx = points[j, 1 - at_j, 0] - points[i, 1 - at_i, 0]
        wy = points[j, 1 - at_j, 1] - points[i, 1 - at_i, 1]
    length = np.sqrt(wx * wx + wy * wy)
    for k in range(-1, 2 * N_DIRECTIONS):
        if k < 0:
            if length == 0.0:
                continue
            wx, wy = wx / length, wy / length
        else:
            wx, wy = np.cos(k * np.pi / N_DIRECTIONS), np.sin(k * np.pi / N_DIRECTIONS)
        if at_i < 0:
            # a line separates both ways, so half a turn is enough
            if k < N_DIRECTIONS and is_separating(points, i, j, wx, wy, clearance):
                return True
        elif is_advancing(points, i, j, at_i, at_j, wx, wy, clearance):
            return True
    return False


@kernel(allocates=True)
def is_contour_simple(
    x_t0: Floats, x_t1: Floats, edges: Ints, items: Ints, first: int, last: int, axes: Floats, node: int
) -> bool:
    """Whether edges `items[first : last]`, projected along `axes[node]`, meet only at shared vertices, at all times."""
    n = last - first
    points = np.empty((n, 4, 2))
    clearance = CLEARANCE * project_border(x_t0, x_t1, edges, items, first, last, axes, node, points)
    for i in range(n):
        a0, a1 = edges[items[first + i], 0], edges[items[first + i], 1]
        for j in range(i + 1, n):
            b0, b1 = edges[items[first + j], 0], edges[items[first + j], 1]
            at_i = 0 if a0 in (b0, b1) else 1 if a1 in (b0, b1) else -1
            shared = a0 if at_i == 0 else a1
            at_j = 0 if shared == b0 else 1
            if not is_pair_apart(points, i, j, at_i, at_j, clearance):
                return False
    return True
