"""Do two triangles have a common point beyond the corners they share? Decided exactly, for every finite double.

Triangles are closed sets: touching counts, and so does overlap in one plane. A triangle without area is the segment
or the point that its corners span. What two triangles share is told by vertex index, never by position:

- no shared vertex: any common point counts;
- one shared vertex p: any common point other than p;
- two shared vertices p, q: any common point outside the closed segment pq;
- the same three vertices: always counts.

A pair is a small array of six points, A in rows 0 to 2 and B in rows 3 to 5, the shared corners first in both. Cheap
floating-point proofs of separation come first; they settle almost every pair, also in a flat cloth where all
neighbours lie in one plane. What they leave is decided by the exact signs of `weft.geometry.predicates`.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Bools, Floats, Ints, Longs
from weft.geometry.predicates import UNDERFLOW_ERROR, build_limbs, filter_orient2d, orient2d, orient3d
from weft.geometry.vectors import cross, difference
from weft.jit import kernel, prange

SEPARATION_ERROR = 2.0**-50
OVERFLOW_ERROR = 2.0**960  # reached before any product or sum of it can overflow
ROWS = np.arange(6)  # rows as values; see `predicates` on literal numbers
N_CHUNKS = 64  # fixed, so that nothing depends on the number of threads


@kernel(parallel=True)
def update_crossings(
    x_a: Floats, triangles_a: Ints, x_b: Floats, triangles_b: Ints, same_mesh: bool, pairs: Ints, crossing_out: Bools
) -> None:
    """Decide every pair; overwrites `crossing_out`.

    Parameters
    ----------
    x_a, x_b : (n, 3) float64, finite
    triangles_a, triangles_b : (m, 3) int32
    same_mesh : whether equal indices in the two meshes name the same vertex
    pairs : (k, 2) int32, a triangle of A and one of B
    crossing_out : (k,) bool
    """
    for chunk in prange(N_CHUNKS):
        points = np.empty((6, 3))
        corners = np.empty((2, 3), np.int32)
        limbs = build_limbs()
        first = np.int64(chunk) * len(pairs) // N_CHUNKS
        last = np.int64(chunk + 1) * len(pairs) // N_CHUNKS
        for k in range(first, last):
            for corner in range(3):
                corners[0, corner] = triangles_a[pairs[k, 0], corner]
                corners[1, corner] = triangles_b[pairs[k, 1], corner]
            n_shared = _sort_shared_first(corners) if same_mesh else 0
            for corner in range(3):
                for axis in range(3):
                    points[corner, axis] = x_a[corners[0, corner], axis]
                    points[3 + corner, axis] = x_b[corners[1, corner], axis]
            if n_shared == 0:
                crossing_out[k] = _is_crossing(points, limbs)
            elif n_shared == 1:
                crossing_out[k] = _is_crossing_beyond_vertex(points, limbs)
            elif n_shared == 2:
                crossing_out[k] = _is_crossing_beyond_edge(points, limbs)
            else:
                crossing_out[k] = True


@kernel
def _sort_shared_first(corners: Ints) -> int:
    """Bring the indices that both rows of `corners` have to the front of both, in the same order; returns how many."""
    n = 0
    for i in range(3):
        for j in range(n, 3):
            if corners[0, i] == corners[1, j]:
                corners[0, i], corners[0, n] = corners[0, n], corners[0, i]
                corners[1, j], corners[1, n] = corners[1, n], corners[1, j]
                n += 1
                break
    return n


@kernel
def _is_crossing(points: Floats, limbs: Longs) -> bool:
    """No shared corner. Two triangles meet if and only if an edge of one meets the other."""
    if _has_separating_direction(points):
        return False
    for triangle in range(0, 6, 3):
        other = 3 - triangle
        sides = (
            orient3d(points, triangle, triangle + 1, triangle + 2, other, limbs),
            orient3d(points, triangle, triangle + 1, triangle + 2, other + 1, limbs),
            orient3d(points, triangle, triangle + 1, triangle + 2, other + 2, limbs),
        )
        if sides[0] != 0 and sides[0] == sides[1] and sides[1] == sides[2]:
            return False
        for k in range(3):
            after = (k + 1) % 3
            if _segment_meets_triangle(points, other + k, other + after, sides[k], sides[after], triangle, limbs):
                return True
    return False


@kernel
def _is_crossing_beyond_vertex(points: Floats, limbs: Longs) -> bool:
    """Corner p is shared (rows 0 and 3).

    From p, walk towards another common point as far as both triangles reach: the walk ends on the side of A or of B
    that faces p. So if the planes differ, one of those two sides meets the other triangle. If all lies in one plane,
    or a triangle has no area, then a side that starts at p runs inside the other triangle.
    """
    if _parts_at_vertex(points) or _has_separating_line(points):
        return False
    flat = False
    for triangle in range(0, 6, 3):
        other = 3 - triangle
        side_1 = orient3d(points, triangle, triangle + 1, triangle + 2, other + 1, limbs)
        side_2 = orient3d(points, triangle, triangle + 1, triangle + 2, other + 2, limbs)
        if side_1 * side_2 > 0:
            return False
        flat = flat or (side_1 == 0 and side_2 == 0)
    for triangle in range(0, 6, 3):
        other = 3 - triangle
        if flat:
            for k in range(1, 3):
                if _side_runs_inside(points, other + k, triangle, limbs):
                    return True
        elif _line_meets_triangle(points, other + 1, other + 2, triangle, limbs):
            return True
    return False


@kernel
def _is_crossing_beyond_edge(points: Floats, limbs: Longs) -> bool:
    """Edge pq is shared (rows 0, 1 and 3, 4); a and b are the free corners (rows 2 and 5).

    Triangles with area meet beyond pq only if they lie in one plane and on the same side of pq. One without area
    reaches past p or past q, and so must the other, in the same direction.
    """
    p, q, a, b = ROWS[0], ROWS[1], ROWS[2], ROWS[5]
    axis = _dominant_axis(points)
    if filter_orient2d(points, axis, p, q, a) * filter_orient2d(points, axis, p, q, b) < 0:
        return False
    if orient3d(points, p, q, a, b, limbs) != 0:
        return False
    axis = _faithful_axis(points, p, q, a, limbs)
    if axis >= 0:
        return orient2d(points, axis, p, q, a, limbs) * orient2d(points, axis, p, q, b, limbs) > 0
    if _faithful_axis(points, p, q, b, limbs) >= 0 or _faithful_axis(points, p, a, b, limbs) >= 0:
        return False
    past = _compare(points, a, p)
    return (
        past != 0
        and past == _compare(points, a, q)
        and past == _compare(points, b, p)
        and past == _compare(points, b, q)
    )


@kernel
def _segment_meets_triangle(
    points: Floats, s: int, t: int, sign_s: int, sign_t: int, triangle: int, limbs: Longs
) -> bool:
    """Whether segment st meets the triangle in rows `triangle` to `triangle + 2`.

    `sign_s` and `sign_t` tell on which side of the triangle's plane the ends lie; both 0 also where it has no area.
    """
    if sign_s * sign_t > 0:
        return False
    if sign_s != 0 or sign_t != 0:
        return _line_meets_triangle(points, s, t, triangle, limbs)
    a, b, c = triangle, triangle + 1, triangle + 2
    axis = _faithful_axis(points, a, b, c, limbs)
    if axis < 0:
        low, high = a, a
        for k in range(a + 1, a + 3):
            low = k if _compare(points, k, low) < 0 else low
            high = k if _compare(points, k, high) > 0 else high
        return _segments_meet(points, s, t, low, high, limbs)
    # In the plane: two convex sets are apart only if a line along a side of one of them has them on two sides.
    turn = orient2d(points, axis, a, b, c, limbs)
    for k in range(3):
        u, v = triangle + k, triangle + (k + 1) % 3
        if orient2d(points, axis, u, v, s, limbs) == -turn and orient2d(points, axis, u, v, t, limbs) == -turn:
            return False
    side_a = orient2d(points, axis, s, t, a, limbs)
    side_b = orient2d(points, axis, s, t, b, limbs)
    side_c = orient2d(points, axis, s, t, c, limbs)
    return side_a == 0 or side_a != side_b or side_b != side_c


@kernel
def _line_meets_triangle(points: Floats, s: int, t: int, triangle: int, limbs: Longs) -> bool:
    """Whether the line st, which crosses the plane of the triangle in one point, passes through the triangle."""
    side_0 = orient3d(points, s, t, triangle, triangle + 1, limbs)
    side_1 = orient3d(points, s, t, triangle + 1, triangle + 2, limbs)
    if side_0 * side_1 < 0:
        return False
    side_2 = orient3d(points, s, t, triangle + 2, triangle, limbs)
    return side_0 * side_2 >= 0 and side_1 * side_2 >= 0


@kernel
def _segments_meet(points: Floats, s: int, t: int, u: int, v: int, limbs: Longs) -> bool:
    """Whether segments st and uv meet; either may be a single point."""
    if orient3d(points, s, t, u, v, limbs) != 0:
        return False
    for axis in range(3):
        side_u, side_v = orient2d(points, axis, s, t, u, limbs), orient2d(points, axis, s, t, v, limbs)
        side_s, side_t = orient2d(points, axis, u, v, s, limbs), orient2d(points, axis, u, v, t, limbs)
        if side_u != 0 or side_v != 0 or side_s != 0 or side_t != 0:
            return side_u * side_v <= 0 and side_s * side_t <= 0
    # All on one line, where the order of coordinates is the order along the line.
    if _compare(points, s, t) > 0:
        s, t = t, s
    if _compare(points, u, v) > 0:
        u, v = v, u
    return _compare(points, s, v) <= 0 and _compare(points, u, t) <= 0


@kernel
def _side_runs_inside(points: Floats, r: int, triangle: int, limbs: Longs) -> bool:
    """Whether segment pr and the triangle pbc in rows `triangle` on have a common point other than p."""
    p, b, c = triangle, triangle + 1, triangle + 2
    axis = _faithful_axis(points, p, b, c, limbs)
    if axis < 0:
        return _same_direction(points, p, r, b, limbs) or _same_direction(points, p, r, c, limbs)
    if orient3d(points, p, b, c, r, limbs) != 0:
        return False
    turn = orient2d(points, axis, p, b, c, limbs)
    from_b = turn * orient2d(points, axis, p, b, r, limbs)
    to_c = turn * orient2d(points, axis, p, r, c, limbs)
    return from_b >= 0 and to_c >= 0 and from_b + to_c > 0


@kernel
def _same_direction(points: Floats, p: int, a: int, b: int, limbs: Longs) -> bool:
    """Whether a and b lie on one ray from p, both apart from p."""
    order = _compare(points, a, p)
    return order != 0 and order == _compare(points, b, p) and _faithful_axis(points, p, a, b, limbs) < 0


@kernel
def _faithful_axis(points: Floats, a: int, b: int, c: int, limbs: Longs) -> int:
    """An axis along which the plane of abc can be looked at without losing a dimension; -1 where abc has no area."""
    for axis in range(3):
        if filter_orient2d(points, axis, a, b, c) != 0:
            return axis
    for axis in range(3):
        if orient2d(points, axis, a, b, c, limbs) != 0:
            return axis
    return -1


@kernel
def _compare(points: Floats, a: int, b: int) -> int:
    """The order of two points by x, then y, then z: -1, 0 or 1."""
    for axis in range(3):
        if points[a, axis] < points[b, axis]:
            return -1
        if points[a, axis] > points[b, axis]:
            return 1
    return 0


@kernel
def _dominant_axis(points: Floats) -> int:
    """The axis closest to the normal of A, as far as floating point can tell."""
    normal = cross(difference(points, ROWS[1], points, ROWS[0]), difference(points, ROWS[2], points, ROWS[0]))
    nx, ny, nz = abs(normal[0]), abs(normal[1]), abs(normal[2])
    if nx >= ny and nx >= nz:
        return 0
    return 1 if ny >= nz else 2


@kernel
def _parts_at_vertex(points: Floats) -> bool:
    """Whether floating point proves that A and B, which share corner p, are apart elsewhere: along the direction from
    A's free corners to B's, p lies strictly between them. Bounds as in `_separation_error`."""
    dx = (points[4, 0] - points[1, 0]) + (points[5, 0] - points[2, 0])
    dy = (points[4, 1] - points[1, 1]) + (points[5, 1] - points[2, 1])
    dz = (points[4, 2] - points[1, 2]) + (points[5, 2] - points[2, 2])
    error = _separation_error(points, dx, dy, dz)
    at_p = dx * points[0, 0] + dy * points[0, 1] + dz * points[0, 2]
    for k in range(1, 3):
        before = dx * points[k, 0] + dy * points[k, 1] + dz * points[k, 2]
        after = dx * points[3 + k, 0] + dy * points[3 + k, 1] + dz * points[3 + k, 2]
        if not (at_p - before > error and after - at_p > error):
            return False
    return True


@kernel
def _has_separating_line(points: Floats) -> bool:
    """Whether floating point proves the same: seen along one axis, a side that starts at p has its own triangle on one
    side and all of the other one on the other. In one plane that is so for all that are apart and have no two sides
    on one line."""
    axis = _dominant_axis(points)
    p, a1, a2, b1, b2 = ROWS[0], ROWS[1], ROWS[2], ROWS[4], ROWS[5]
    a1_a2 = filter_orient2d(points, axis, p, a1, a2)
    b1_b2 = filter_orient2d(points, axis, p, b1, b2)
    a1_b1 = filter_orient2d(points, axis, p, a1, b1)
    a1_b2 = filter_orient2d(points, axis, p, a1, b2)
    if a1_a2 != 0 and a1_b1 == -a1_a2 and a1_b2 == -a1_a2:
        return True
    a2_b1 = filter_orient2d(points, axis, p, a2, b1)
    a2_b2 = filter_orient2d(points, axis, p, a2, b2)
    if a1_a2 != 0 and a2_b1 == a1_a2 and a2_b2 == a1_a2:
        return True
    return b1_b2 != 0 and ((a1_b1 == b1_b2 and a2_b1 == b1_b2) or (a1_b2 == -b1_b2 and a2_b2 == -b1_b2))


@kernel
def _has_separating_direction(points: Floats) -> bool:
    """Whether floating point proves A and B apart: along some direction d, all of A lies before all of B.

    Any d will do, however it was rounded. Tried are the normals, the perpendiculars of the sides within each plane,
    and the products of two sides.
    """
    sides = (
        difference(points, ROWS[1], points, ROWS[0]),
        difference(points, ROWS[2], points, ROWS[1]),
        difference(points, ROWS[0], points, ROWS[2]),
        difference(points, ROWS[4], points, ROWS[3]),
        difference(points, ROWS[5], points, ROWS[4]),
        difference(points, ROWS[3], points, ROWS[5]),
    )
    normals = (cross(sides[0], sides[1]), cross(sides[3], sides[4]))
    for k in range(17):
        if k < 2:
            direction = normals[k]
        elif k < 8:
            direction = cross(normals[(k - 2) // 3], sides[k - 2])
        else:
            direction = cross(sides[(k - 8) // 3], sides[3 + (k - 8) % 3])
        if _separates(points, direction):
            return True
    return False


@kernel
def _separates(points: Floats, direction: tuple[float, float, float]) -> bool:
    """Whether `direction` surely has A before B or B before A."""
    dx, dy, dz = direction
    low_a, high_a, low_b, high_b = np.inf, -np.inf, np.inf, -np.inf
    for k in range(3):
        along = dx * points[k, 0] + dy * points[k, 1] + dz * points[k, 2]
        low_a, high_a = min(low_a, along), max(high_a, along)
        along = dx * points[3 + k, 0] + dy * points[3 + k, 1] + dz * points[3 + k, 2]
        low_b, high_b = min(low_b, along), max(high_b, along)
    error = _separation_error(points, dx, dy, dz)
    return low_b - high_a > error or low_a - high_b > error


@kernel
def _separation_error(points: Floats, dx: float, dy: float, dz: float) -> float:
    """How far two products d . x, d . y of the points must differ, as computed, to be surely in that order.

    A product is wrong by less than 3.01 u s with s = |d|_1 |x|_max, a difference of two by 6.02 u s, and it is rounded
    once more: 8 u s is above all of it, and 2^-1000 above what may underflow. Near overflow nothing is sure.
    """
    reach = 0.0
    for row in range(6):
        for axis in range(3):
            reach = max(reach, abs(points[row, axis]))
    error = SEPARATION_ERROR * ((abs(dx) + abs(dy) + abs(dz)) * reach) + UNDERFLOW_ERROR
    return error if error < OVERFLOW_ERROR else np.inf
