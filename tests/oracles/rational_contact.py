"""Exact continuous collision in whole numbers: is there contact in [0, 1], and when first?

Doubles are dyadic numbers: scaled by one power of two, all coordinates are integers, and the motion is linear in t with
integer coefficients. Four points touch only when they are coplanar; the times at which they are, are the roots of a
cubic with integer coefficients; whether they touch then is a matter of signs of polynomials at those roots. Where the
cubic vanishes for all t (motion in one plane), contact can begin only at t = 0 or where one of the deciding polynomials
changes sign, so its roots are the times to look at.

Independent of the code under test: no floating-point number takes part after the conversion.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from tests.oracles.algebraic import Polynomial, Root, add, multiply, negate, roots_in_unit_interval, trimmed

Vector = tuple[Polynomial, Polynomial, Polynomial]
TIME_ZERO = Root([0, 1], 0, 0, True)


def subtract(a: Vector, b: Vector) -> Vector:
    return (add(a[0], negate(b[0])), add(a[1], negate(b[1])), add(a[2], negate(b[2])))


def cross(a: Vector, b: Vector) -> Vector:
    def minor(i: int, j: int) -> Polynomial:
        return add(multiply(a[i], b[j]), negate(multiply(a[j], b[i])))

    return minor(1, 2), minor(2, 0), minor(0, 1)


def dot(a: Vector, b: Vector) -> Polynomial:
    return add(add(multiply(a[0], b[0]), multiply(a[1], b[1])), multiply(a[2], b[2]))


def moving_points(x_t0: npt.ArrayLike, x_t1: npt.ArrayLike) -> list[Vector]:
    """Integer polynomials of degree 1 for four points, all scaled by the same power of two."""
    rows = [np.asarray(x_t0, np.float64), np.asarray(x_t1, np.float64)]
    exact = [[[Fraction(float(c)) for c in point] for point in x] for x in rows]
    scale = max(c.denominator for x in exact for point in x for c in point)
    start, end = ([[int(c * scale) for c in point] for point in x] for x in exact)
    return [
        tuple([p0, p1 - p0] for p0, p1 in zip(a, b, strict=True))  # type: ignore[misc]
        for a, b in zip(start, end, strict=True)
    ]


class Segment:
    """Is `p` on the segment from `a` to `b`? Decided by the signs of four polynomials."""

    def __init__(self, p: Vector, a: Vector, b: Vector) -> None:
        to_a, to_b = subtract(p, a), subtract(p, b)
        self.off_line = list(cross(to_a, to_b))
        self.outside = dot(to_a, to_b)  # on the line: negative strictly between a and b

    def polynomials(self) -> list[Polynomial]:
        return [*self.off_line, self.outside]

    def holds(self, time: Root) -> bool:
        return all(time.sign_of(q) == 0 for q in self.off_line) and time.sign_of(self.outside) <= 0


class VertexTriangle:
    def __init__(self, points: list[Vector]) -> None:
        p, a, b, c = points
        e1, e2, d = subtract(b, a), subtract(c, a), subtract(p, a)
        n = cross(e1, e2)
        self.coplanar = dot(n, d)
        self.area = dot(n, n)
        weight_b, weight_c = dot(n, cross(d, e2)), dot(n, cross(e1, d))
        self.inside = [add(self.area, negate(add(weight_b, weight_c))), weight_b, weight_c]
        self.segments = [Segment(p, a, b), Segment(p, b, c), Segment(p, c, a)]

    def holds(self, time: Root) -> bool:
        """Do they touch at a time at which they are coplanar?"""
        if time.sign_of(self.area) != 0:
            return all(time.sign_of(q) >= 0 for q in self.inside)
        return any(segment.holds(time) for segment in self.segments)


class EdgeEdge:
    def __init__(self, points: list[Vector]) -> None:
        a0, a1, b0, b1 = points
        e1, e2, d = subtract(a1, a0), subtract(b1, b0), subtract(a0, b0)
        n = cross(e1, e2)
        self.coplanar = dot(n, d)
        self.area = dot(n, n)
        s, t = dot(n, cross(e2, d)), dot(n, cross(e1, d))
        self.inside = [s, add(self.area, negate(s)), t, add(self.area, negate(t))]
        self.segments = [Segment(a0, b0, b1), Segment(a1, b0, b1), Segment(b0, a0, a1), Segment(b1, a0, a1)]

    holds = VertexTriangle.holds


QUERIES = {"vertex-triangle": VertexTriangle, "edge-edge": EdgeEdge}


def first_contact(x_t0: npt.ArrayLike, x_t1: npt.ArrayLike, kind: str) -> Root | None:
    """The first time in [0, 1] at which the two touch, exactly; None if they never do.

    Parameters
    ----------
    x_t0, x_t1 : (4, 3) float64
    kind : "vertex-triangle" (the vertex first) or "edge-edge"
    """
    query = QUERIES[kind](moving_points(x_t0, x_t1))
    if trimmed(query.coplanar):
        return next((time for time in roots_in_unit_interval(query.coplanar) if query.holds(time)), None)
    deciding = [query.area, *query.inside, *(q for segment in query.segments for q in segment.polynomials())]
    times = [time for q in deciding for time in roots_in_unit_interval(q) if query.holds(time)]
    if query.holds(TIME_ZERO):
        return TIME_ZERO
    return min(times, key=Root.approximate, default=None)


def certainly_apart(x_t0: npt.NDArray[np.float64], x_t1: npt.NDArray[np.float64], kind: str) -> npt.NDArray[np.bool_]:
    """Queries (n, 4, 3) that plainly have no contact, so that the exact test need not look at them.

    Either the swept boxes of the two are apart along an axis (comparisons of doubles are exact), or the Bernstein
    coefficients of the coplanarity cubic have one sign, each beyond a generous bound of its rounding.
    """
    split = 1 if kind == "vertex-triangle" else 2
    both = np.stack([x_t0, x_t1])
    low_a, high_a = both[:, :, :split].min(axis=(0, 2)), both[:, :, :split].max(axis=(0, 2))
    low_b, high_b = both[:, :, split:].min(axis=(0, 2)), both[:, :, split:].max(axis=(0, 2))
    apart: npt.NDArray[np.bool_] = ((low_a > high_b) | (low_b > high_a)).any(axis=1)

    sides = both[:, :, 1:] - both[:, :, :1]
    size = np.abs(sides).max(axis=(0, 2, 3))
    usable = (size > 1e-90) & (size < 1e90) & np.isfinite(size)
    sides = np.where(usable[None, :, None, None], sides, 0.0)

    def mixed(ends: tuple[int, int, int]) -> npt.NDArray[np.float64]:
        a, b, c = (sides[end, :, k] for k, end in enumerate(ends))
        return np.einsum("qi,qi->q", np.cross(a, b), c)

    coefficients = np.stack(
        [
            mixed((0, 0, 0)),
            (mixed((1, 0, 0)) + mixed((0, 1, 0)) + mixed((0, 0, 1))) / 3,
            (mixed((1, 1, 0)) + mixed((1, 0, 1)) + mixed((0, 1, 1))) / 3,
            mixed((1, 1, 1)),
        ]
    )
    bound = 1e-13 * np.where(usable, size, 1.0) ** 3
    return apart | (usable & ((coefficients > bound).all(axis=0) | (coefficients < -bound).all(axis=0)))
