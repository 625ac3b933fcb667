"""Exact squared distances in rational numbers, as the smallest over all features: nothing is decided by regions."""

from __future__ import annotations

from fractions import Fraction

import numpy.typing as npt

Point = tuple[Fraction, ...]


def as_points(x: npt.ArrayLike) -> list[Point]:
    """(4, 3) doubles as exact rational points."""
    return [tuple(Fraction(float(c)) for c in row) for row in x]  # type: ignore[union-attr]


def minus(a: Point, b: Point) -> Point:
    return tuple(p - q for p, q in zip(a, b, strict=True))


def dot(a: Point, b: Point) -> Fraction:
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def cross(a: Point, b: Point) -> Point:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def point_segment_sq(p: Point, a: Point, b: Point) -> Fraction:
    e, d = minus(b, a), minus(p, a)
    ee = dot(e, e)
    t = min(max(dot(d, e) / ee, Fraction(0)), Fraction(1)) if ee else Fraction(0)
    r = tuple(di - t * ei for di, ei in zip(d, e, strict=True))
    return dot(r, r)


def point_triangle_sq(p: Point, a: Point, b: Point, c: Point) -> Fraction:
    best = min(point_segment_sq(p, a, b), point_segment_sq(p, b, c), point_segment_sq(p, c, a))
    e1, e2, d = minus(b, a), minus(c, a), minus(p, a)
    n = cross(e1, e2)
    nn = dot(n, n)
    if nn:
        v, w = dot(n, cross(d, e2)) / nn, dot(n, cross(e1, d)) / nn
        if v >= 0 and w >= 0 and v + w <= 1:
            best = min(best, dot(n, d) ** 2 / nn)
    return best


def edge_edge_sq(a0: Point, a1: Point, b0: Point, b1: Point) -> Fraction:
    best = min(
        point_segment_sq(a0, b0, b1),
        point_segment_sq(a1, b0, b1),
        point_segment_sq(b0, a0, a1),
        point_segment_sq(b1, a0, a1),
    )
    e1, e2, d = minus(a1, a0), minus(b1, b0), minus(a0, b0)
    n = cross(e1, e2)
    nn = dot(n, n)
    if nn:
        s, t = dot(n, cross(e2, d)) / nn, dot(n, cross(e1, d)) / nn
        if 0 <= s <= 1 and 0 <= t <= 1:
            best = min(best, dot(n, d) ** 2 / nn)
    return best


def distance_sq(x: npt.ArrayLike, kind: str) -> Fraction:
    """Squared distance of a (4, 3) query: vertex and triangle, or two edges."""
    p, a, b, c = as_points(x)
    return point_triangle_sq(p, a, b, c) if kind == "vertex-triangle" else edge_edge_sq(p, a, b, c)


def distance_sq_at(x_t0: npt.ArrayLike, x_t1: npt.ArrayLike, t: Fraction, kind: str) -> Fraction:
    """Squared distance at the exact time t of a linear motion."""
    start, end = as_points(x_t0), as_points(x_t1)
    moved = [tuple(a + t * (b - a) for a, b in zip(p0, p1, strict=True)) for p0, p1 in zip(start, end, strict=True)]
    p, a, b, c = moved
    return point_triangle_sq(p, a, b, c) if kind == "vertex-triangle" else edge_edge_sq(p, a, b, c)
