"""The papers' continuous test: solve for the times at which four points are coplanar, then test proximity then.

Paper: da Silva, "Cloth animation with collision detection", sections 6.3 and 7.2, after Provot 1997. Kept as published,
for comparison: it misses contacts (see `benchmarks/narrow_phase.py`), so nothing of ours relies on it.

With x_ij = x_i - x_j and v_ij likewise, the four points are coplanar where

    (x_21 + t v_21) x (x_31 + t v_31) . (x_41 + t v_41) = a3 t^3 + a2 t^2 + a1 t + a0 = 0.

The paper's list of coefficients uses the letters n, o, p twice, for two different vectors, and q, r, s never: the last
three lines of its list should read q, r, s. Multiplied out, with a = x_21, b = v_21, c = x_31, d = v_31, e = x_41,
f = v_41 and the vectors

    K = b x d        (k, l, m),
    N = a x d + b x c  (n, o, p),
    Q = a x c        (q, r, s; printed as n, o, p again):

    a3 = f . K,   a2 = e . K + f . N,   a1 = e . N + f . Q,   a0 = e . Q.

Time runs from 0 to 1 here, so velocities are displacements over the step. Two ways to find the roots:

- Cardano's formula, as the paper cites it from MathWorld. It loses digits where the cubic is nearly quadratic, and
  where roots are close together;
- monotone pieces: between the extrema of the cubic a change of sign is found by bisection, and the extrema themselves
  are kept where the cubic is zero up to rounding. No root with a change of sign is lost.

The paper tests proximity at the root "using a small thickness to account for rounding error" and gives no number; ours
is ROUNDING_THICKNESS. Its point-triangle proximity (section 6.1) is the distance to the plane, then barycentric
coordinates. Where the points are coplanar at all times the cubic has no root, and the published test sees nothing.
"""

from __future__ import annotations

import math

from weft.arrays import Floats, Ints
from weft.collision.narrow.proximity import closest_edge_edge
from weft.geometry.vectors import cross, difference, dot, minus
from weft.jit import kernel

ROUNDING_THICKNESS = 1e-6  # m
BISECTIONS = 60
TWO_THIRDS_PI = 2.0 * math.pi / 3.0

Cubic = tuple[float, float, float, float]
Times = tuple[float, float, float, float]


@kernel
def coplanarity_cubic(x_t0: Floats, x_t1: Floats, i: int, j: int, k: int, m: int) -> Cubic:
    """a0, a1, a2, a3 of the four points i, j, k, m moving from x_t0 to x_t1."""
    a, c, e = difference(x_t0, j, x_t0, i), difference(x_t0, k, x_t0, i), difference(x_t0, m, x_t0, i)
    b = minus(difference(x_t1, j, x_t1, i), a)
    d = minus(difference(x_t1, k, x_t1, i), c)
    f = minus(difference(x_t1, m, x_t1, i), e)
    k_, q_ = cross(b, d), cross(a, c)
    ad, bc = cross(a, d), cross(b, c)
    n_ = (ad[0] + bc[0], ad[1] + bc[1], ad[2] + bc[2])
    return dot(e, q_), dot(e, n_) + dot(f, q_), dot(e, k_) + dot(f, n_), dot(f, k_)


@kernel
def _quadratic_roots(c: float, b: float, a: float) -> tuple[float, float]:
    """Real roots of a t^2 + b t + c, infinity for each that does not exist."""
    if a == 0.0:
        return (-c / b if b != 0.0 else math.inf), math.inf
    discriminant = b * b - 4.0 * a * c
    if discriminant < 0.0:
        return math.inf, math.inf
    q = -0.5 * (b + math.copysign(math.sqrt(discriminant), b))
    if q == 0.0:
        return 0.0, 0.0
    return q / a, c / q


@kernel
def cardano_roots(cubic: Cubic) -> Times:
    """The real roots by Cardano's formula, unordered, infinity for those that do not exist."""
    if cubic[3] == 0.0:
        first, second = _quadratic_roots(cubic[0], cubic[1], cubic[2])
        return first, second, math.inf, math.inf
    a0, a1, a2 = cubic[0] / cubic[3], cubic[1] / cubic[3], cubic[2] / cubic[3]
    q = (3.0 * a1 - a2 * a2) / 9.0
    r = (9.0 * a2 * a1 - 27.0 * a0 - 2.0 * a2 * a2 * a2) / 54.0
    discriminant = q * q * q + r * r
    if discriminant > 0.0:
        root = math.sqrt(discriminant)
        s = math.copysign(abs(r + root) ** (1.0 / 3.0), r + root)
        t = math.copysign(abs(r - root) ** (1.0 / 3.0), r - root)
        return s + t - a2 / 3.0, math.inf, math.inf, math.inf
    if not q < 0.0:  # q = r = 0: one root three times (or not a number)
        return -a2 / 3.0, math.inf, math.inf, math.inf
    theta = math.acos(max(-1.0, min(1.0, r / math.sqrt(-q * q * q))))
    size = 2.0 * math.sqrt(-q)
    return (
        size * math.cos(theta / 3.0) - a2 / 3.0,
        size * math.cos(theta / 3.0 + TWO_THIRDS_PI) - a2 / 3.0,
        size * math.cos(theta / 3.0 + 2.0 * TWO_THIRDS_PI) - a2 / 3.0,
        math.inf,
    )


@kernel
def _value(cubic: Cubic, t: float) -> float:
    return ((cubic[3] * t + cubic[2]) * t + cubic[1]) * t + cubic[0]


@kernel
def _root_between(cubic: Cubic, low: float, high: float, noise: float) -> float:
    """The root in [low, high], where the cubic is monotone; infinity for none. An end may be a root up to noise."""
    at_low, at_high = _value(cubic, low), _value(cubic, high)
    if abs(at_low) <= noise:
        return low
    if at_low * at_high > 0.0:
        return high if abs(at_high) <= noise else math.inf
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if (_value(cubic, middle) > 0.0) == (at_low > 0.0):
            low = middle
        else:
            high = middle
    return low


@kernel
def monotone_roots(cubic: Cubic) -> Times:
    """The roots in [0, 1], one at most for each of the three monotone pieces, and 1 where the cubic ends at zero."""
    noise = 1e-14 * (abs(cubic[0]) + abs(cubic[1]) + abs(cubic[2]) + abs(cubic[3]))
    first, second = _quadratic_roots(cubic[1], 2.0 * cubic[2], 3.0 * cubic[3])
    if first > second:
        first, second = second, first
    first, second = min(max(first, 0.0), 1.0), min(max(second, 0.0), 1.0)
    return (
        _root_between(cubic, 0.0, first, noise),
        _root_between(cubic, first, second, noise),
        _root_between(cubic, second, 1.0, noise),
        1.0 if abs(_value(cubic, 1.0)) <= noise else math.inf,
    )


@kernel
def _is_near(x: Floats, edges: bool, thickness: float) -> bool:
    """The paper's proximity tests (sections 6.1, 6.2) of four points."""
    if edges:
        _, _, _, _, rx, ry, rz, _ = closest_edge_edge(x, 0, 1, 2, 3)
        return math.sqrt(rx * rx + ry * ry + rz * rz) < thickness
    e1, e2, d = difference(x, 2, x, 1), difference(x, 3, x, 1), difference(x, 0, x, 1)
    n = cross(e1, e2)
    nn = dot(n, n)
    if not abs(dot(n, d)) < thickness * math.sqrt(nn):
        return False
    v, w = dot(n, cross(d, e2)) / nn, dot(n, cross(e1, d)) / nn
    return v >= 0.0 and w >= 0.0 and v + w <= 1.0


@kernel(allocates=True)
def compute_cubic_contacts(
    x_t0: Floats, x_t1: Floats, vertices: Ints, edges: bool, separation: float, monotone: bool, times_out: Floats
) -> None:
    """Overwrites times_out with the first root in [0, 1] at which row q of `vertices` is near; infinity for none."""
    x = x_t0[:4].copy()
    for q in range(len(vertices)):
        i, j, k, m = vertices[q, 0], vertices[q, 1], vertices[q, 2], vertices[q, 3]
        cubic = coplanarity_cubic(x_t0, x_t1, i, j, k, m)
        roots = monotone_roots(cubic) if monotone else cardano_roots(cubic)
        best = math.inf
        for root in roots:
            if 0.0 <= root <= 1.0 and root < best:
                for axis in range(3):
                    for corner in range(4):
                        start = x_t0[vertices[q, corner], axis]
                        x[corner, axis] = start + root * (x_t1[vertices[q, corner], axis] - start)
                if _is_near(x, edges, separation + ROUNDING_THICKNESS):
                    best = root
        times_out[q] = best
