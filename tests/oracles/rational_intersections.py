"""Which triangles intersect, by linear programming in whole numbers: slow, and nothing like the production code.

A common point of two triangles is a solution of linear equations and inequalities in six barycentric weights. That it
is none of the shared points is one more strict inequality, out of a few that together leave out exactly the shared
vertex or edge. Fourier-Motzkin elimination decides whether a solution exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from math import gcd, lcm

import numpy as np

Vector = tuple[int, ...]
Row = tuple[Vector, bool]
"""Coefficients of the unknowns, then a constant: their sum is >= 0, or > 0 where the flag is set."""


def self_intersections(positions: np.ndarray, triangles: np.ndarray) -> list[tuple[int, int]]:
    """All pairs i < j that intersect, by trying all of them."""
    corners = [np.asarray(positions)[t] for t in triangles]
    return [
        (i, j)
        for i, j in combinations(range(len(triangles)), 2)
        if boxes_meet(corners[i], corners[j])
        and is_crossing(corners[i], corners[j], triangles[i].tolist(), triangles[j].tolist())
    ]


def intersections(
    positions: np.ndarray, triangles: np.ndarray, other_positions: np.ndarray, other_triangles: np.ndarray
) -> list[tuple[int, int]]:
    """All pairs of a triangle and one of another mesh that intersect, by trying all of them."""
    corners, others = [np.asarray(positions)[t] for t in triangles], [np.asarray(other_positions)[t] for t in other_triangles]
    return [
        (i, j)
        for i, j in product(range(len(corners)), range(len(others)))
        if boxes_meet(corners[i], others[j]) and is_crossing(corners[i], others[j], [0, 1, 2], [3, 4, 5])
    ]


def boxes_meet(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a.min(axis=0) <= b.max(axis=0)).all() and (b.min(axis=0) <= a.max(axis=0)).all())


def is_crossing(a: np.ndarray, b: np.ndarray, indices_a: Sequence[int], indices_b: Sequence[int]) -> bool:
    """Whether triangles a and b, (3, 3) each, have a common point beyond the vertices they share by index."""
    shared = list((Counter(indices_a) & Counter(indices_b)).elements())
    if len(shared) == 3:
        return True
    points_a, points_b = whole_numbers(a, b)
    outside = [None]
    if shared:
        corner_of = dict(zip(indices_a, points_a, strict=True))
        outside = outside_of(corner_of[shared[0]], corner_of[shared[-1]])
    return any(has_common_point(points_a, points_b, side) for side in outside)


def whole_numbers(a: np.ndarray, b: np.ndarray) -> tuple[list[Vector], list[Vector]]:
    """The same points in a unit of which every coordinate is a multiple."""
    ratios = [float(value).as_integer_ratio() for value in np.concatenate([a, b]).ravel()]
    unit = lcm(*(denominator for _, denominator in ratios))
    values = [numerator * (unit // denominator) for numerator, denominator in ratios]
    points = [tuple(values[i : i + 3]) for i in range(0, 18, 3)]
    return points[:3], points[3:]


def outside_of(p: Vector, q: Vector) -> list[tuple[Vector, int]]:
    """Half-spaces n . x > c whose union is all of space but the closed segment pq (or the point, where p = q)."""
    w = tuple(q[k] - p[k] for k in range(3))
    axes = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    across = axes if w == (0, 0, 0) else [cross(w, axis) for axis in axes]
    sides = [(n, dot(n, p)) for n in across] + [(negative(n), -dot(n, p)) for n in across]
    return [*sides, (w, dot(w, q)), (negative(w), -dot(w, p))]


def dot(u: Vector, v: Vector) -> int:
    return sum(x * y for x, y in zip(u, v, strict=True))


def cross(u: Vector, v: Vector) -> Vector:
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


def negative(u: Vector) -> Vector:
    return tuple(-x for x in u)


def has_common_point(a: list[Vector], b: list[Vector], outside: tuple[Vector, int] | None) -> bool:
    """Whether weights exist that make one point of a and of b, beyond the plane `outside` where one is given."""
    equations = [(*(p[k] for p in a), *(-p[k] for p in b), 0) for k in range(3)]
    equations += [(1, 1, 1, 0, 0, 0, -1), (0, 0, 0, 1, 1, 1, -1)]
    rows: list[Row] = [(tuple(int(i == j) for j in range(7)), False) for i in range(6)]
    if outside is not None:
        normal, offset = outside
        rows.append(((*(dot(normal, p) for p in a), 0, 0, 0, -offset), True))
    while equations:
        equation = equations.pop()
        pivot = next((i for i in range(6) if equation[i] != 0), None)
        if pivot is None:
            if equation[6] != 0:
                return False
            continue
        equations = [substitute(other, equation, pivot) for other in equations]
        rows = [(substitute(row, equation, pivot), strict) for row, strict in rows]
    return has_solution(rows)


def substitute(row: Vector, equation: Vector, pivot: int) -> Vector:
    """`row`, times a positive number, without the unknown `pivot`."""
    scale, factor = abs(equation[pivot]), row[pivot] * (1 if equation[pivot] > 0 else -1)
    return reduced(tuple(scale * x - factor * y for x, y in zip(row, equation, strict=True)))


def reduced(row: Vector) -> Vector:
    divisor = gcd(*row)
    return tuple(x // divisor for x in row) if divisor > 1 else row


def has_solution(rows: list[Row]) -> bool:
    """Fourier-Motzkin: pair every lower bound of an unknown with every upper one, until no unknown is left."""
    for unknown in range(6):
        lower = [row for row in rows if row[0][unknown] > 0]
        upper = [row for row in rows if row[0][unknown] < 0]
        kept = {row for row in rows if row[0][unknown] == 0}
        for (low, low_strict), (high, high_strict) in product(lower, upper):
            scale_low, scale_high = -high[unknown], low[unknown]
            both = tuple(scale_low * x + scale_high * y for x, y in zip(low, high, strict=True))
            kept.add((reduced(both), low_strict or high_strict))
        rows = list(kept)
    return all(row[6] > 0 or (row[6] == 0 and not strict) for row, strict in rows)
