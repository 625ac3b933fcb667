"""The continuous test that never misses: separating directions, certified over intervals of time.

Four vertices move on straight lines, x(t) = x_t0 + t (x_t1 - x_t0), 0 <= t <= 1. A vertex meets a triangle, or an edge
an edge, when 0 lies in the convex hull of the differences D_k(t) between vertices of the one and of the other: three
for vertex-triangle, four for edge-edge. They are "in contact" when the hull is no farther than `separation`, s, from 0;
touching counts, at t = 0 and t = 1 too.

The test. Take any direction n. If n . D_k(t) > s |n| for all k, the two are farther apart than s at t. Each
n . D_k(t) is linear in t, so the two ends of an interval decide for all of it. Hence:

1. Two directions at t = 0, the normal of the triangle (of the two edges) and the line between the middles, settle
   nearly all candidates of a cloth: positive, or negative, for all k at both t = 0 and t = 1. No root, no division.
2. Otherwise advance from t = 0: n = the direction between the closest points at t, and the first time at which one of
   the n . D_k falls to s |n| is the next t. The step is at least (distance - s) / (fastest D_k), the step of additive
   CCD, and mostly far longer: it is Newton's on a smooth approach, and two steps pass a vertex at any distance.
3. Where n turns with the elements the steps become short. Then n may turn linearly too, from n_a at t_a to n_b at t_b:
   n(t) . D_k(t) is a quadratic, with Bernstein coefficients n_a.D_a, (n_a.D_b + n_b.D_a) / 2, n_b.D_b; it is positive
   on the interval if the outer two are and the middle one exceeds minus their geometric mean.
4. The time reached is returned when the next step is shorter than 10^-12 of it, and contact is no farther ahead
   by the rate at which the gap closes; or after MAX_STEPS steps. Infinity is returned only when all of [0, 1] has been
   certified.

Why it cannot miss and is never late, rounding included. Nothing is assumed of n: closest points found wrongly, for a
sliver or by underflow, only cost progress. All that is trusted are lower bounds of n . D_k at t = 0 and t = 1:

- D_k is one rounded subtraction per component, so its relative error is at most u = 2^-53 (sums of doubles do not
  underflow); a product and two sums bring the error of the dot product below 4.01 u |n|_1 max|D| + 2^-1073;
- from it 16 u |n|_1 max|D| + 1e-290 is taken away, and s |n| (1 + 16 u). What is taken too much, three times what is
  needed, pays for the rounding of the lines that follow: the difference itself, (1 - t) A + t B (three roundings) and
  the halved sum in 3;
- with the lower bounds A at t = 0 and B at t = 1, (1 - t) A + t B is a lower bound at t. It is positive at the time
  reached, or the test ends there. Its zero A / (A - B) has two roundings and is lowered by four, so it is not late;
- the error bounds hold while nothing overflows. Differences outside 1e-60 .. 1e60 are multiplied by a power of two, to
  at most 1, and so are the coordinates first where a difference overflows: what falls below the smallest double in
  this is covered by the 1e-290;
- every comparison is written so that a NaN means "not certified".

So every time below the one returned is certified, and all times if infinity is returned. What it cannot tell from
contact: gaps (beyond s) below about 1e-15 of the largest difference, and passes so close that the steps stall.

The idea of advancing by lower bounds of the distance is that of additive CCD (Li, Kaufman, Jiang, "Codimensional
incremental potential contact", 2021, section 5); the directions, and the bounds, are ours.
"""

from __future__ import annotations

import math

from weft.arrays import Floats, Ints
from weft.geometry.distances import closest_on_edges, closest_on_triangle
from weft.geometry.vectors import Vector
from weft.jit import kernel, prange

ROUNDING = 2.0**-49  # 16 roundings of a double: see above
LATER_ROUNDING = 1.0 - 2.0**-51  # 4 roundings
UNDERFLOW = 1e-290
SMALLEST, LARGEST = 1e-60, 1e60  # differences outside are scaled first
DOWN = 2.0**-8  # differences of such multiples of doubles are finite
LEAST_PROGRESS = 1e-12  # of the time reached; 1e-6 takes a third fewer steps and reports passes at 1e-9 as contacts
MAX_STEPS = 64
CERTIFIED = 2.0  # what `_reach` says of a whole interval

Differences = tuple[float, float, float, float, float, float, float, float, float, float, float, float]


@kernel
def _differences(x: Floats, i: int, j: int, k: int, m: int, edges: bool, scale: float) -> Differences:
    """The D_k of vertex i and triangle (j, k, m), the last one twice; or of edges (i, j) and (k, m)."""
    ix, iy, iz = x[i, 0] * scale, x[i, 1] * scale, x[i, 2] * scale
    jx, jy, jz = x[j, 0] * scale, x[j, 1] * scale, x[j, 2] * scale
    kx, ky, kz = x[k, 0] * scale, x[k, 1] * scale, x[k, 2] * scale
    mx, my, mz = x[m, 0] * scale, x[m, 1] * scale, x[m, 2] * scale
    ikx, iky, ikz = ix - kx, iy - ky, iz - kz
    imx, imy, imz = ix - mx, iy - my, iz - mz
    if edges:
        return ikx, iky, ikz, imx, imy, imz, jx - kx, jy - ky, jz - kz, jx - mx, jy - my, jz - mz
    return ix - jx, iy - jy, iz - jz, ikx, iky, ikz, imx, imy, imz, imx, imy, imz


@kernel
def _largest(d: Differences) -> float:
    m = max(max(abs(d[0]), abs(d[1])), max(abs(d[2]), abs(d[3])))
    m = max(m, max(max(abs(d[4]), abs(d[5])), max(abs(d[6]), abs(d[7]))))
    return max(m, max(max(abs(d[8]), abs(d[9])), max(abs(d[10]), abs(d[11]))))


@kernel
def _scaled(d: Differences, f: float) -> Differences:
    return (
        d[0] * f, d[1] * f, d[2] * f, d[3] * f, d[4] * f, d[5] * f,
        d[6] * f, d[7] * f, d[8] * f, d[9] * f, d[10] * f, d[11] * f,
    )  # fmt: skip


@kernel
def _dot(n: Vector, d: Differences, k: int) -> float:
    return n[0] * d[k] + n[1] * d[k + 1] + n[2] * d[k + 2]


@kernel
def _margins(n: Vector, largest_t0: float, largest_t1: float, separation: float) -> tuple[float, float]:
    """What is taken from n . D_k at t = 0 and t = 1: rounding and the separation."""
    size = abs(n[0]) + abs(n[1]) + abs(n[2])
    lift = UNDERFLOW
    if separation > 0.0:
        nn = n[0] * n[0] + n[1] * n[1] + n[2] * n[2]
        # a square below the smallest double would lose the separation
        lift = separation * math.sqrt(nn) * (1.0 + ROUNDING) + UNDERFLOW if nn > UNDERFLOW else math.inf
    return ROUNDING * largest_t0 * size + lift, ROUNDING * largest_t1 * size + lift


@kernel
def _is_apart(
    n: Vector, d_t0: Differences, d_t1: Differences, largest_t0: float, largest_t1: float, separation: float
) -> bool:
    """Step 1: does n, or -n, separate the two all the time?"""
    margin_t0, margin_t1 = _margins(n, largest_t0, largest_t1, separation)
    a, b, c, d = _dot(n, d_t0, 0), _dot(n, d_t0, 3), _dot(n, d_t0, 6), _dot(n, d_t0, 9)
    low_t0, high_t0 = min(min(a, b), min(c, d)), max(max(a, b), max(c, d))
    a, b, c, d = _dot(n, d_t1, 0), _dot(n, d_t1, 3), _dot(n, d_t1, 6), _dot(n, d_t1, 9)
    low_t1, high_t1 = min(min(a, b), min(c, d)), max(max(a, b), max(c, d))
    return (low_t0 > margin_t0 and low_t1 > margin_t1) or (high_t0 < -margin_t0 and high_t1 < -margin_t1)


@kernel
def _normal(d: Differences) -> Vector:
    """Normal of the triangle, or of the two edges."""
    e1x, e1y, e1z = d[6] - d[0], d[7] - d[1], d[8] - d[2]
    e2x, e2y, e2z = d[3] - d[0], d[4] - d[1], d[5] - d[2]
    return e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x


@kernel
def _middle(d: Differences) -> Vector:
    """Roughly the difference between the middles."""
    return d[0] + d[3] + d[6] + d[9], d[1] + d[4] + d[7] + d[10], d[2] + d[5] + d[8] + d[11]


@kernel
def _direction(d_t0: Differences, d_t1: Differences, t: float, edges: bool) -> Vector:
    """The unit direction between the closest points at t, from the second element to the first."""
    ax, ay, az = d_t0[0] + t * (d_t1[0] - d_t0[0]), d_t0[1] + t * (d_t1[1] - d_t0[1]), d_t0[2] + t * (d_t1[2] - d_t0[2])
    bx, by, bz = d_t0[3] + t * (d_t1[3] - d_t0[3]), d_t0[4] + t * (d_t1[4] - d_t0[4]), d_t0[5] + t * (d_t1[5] - d_t0[5])
    cx, cy, cz = d_t0[6] + t * (d_t1[6] - d_t0[6]), d_t0[7] + t * (d_t1[7] - d_t0[7]), d_t0[8] + t * (d_t1[8] - d_t0[8])
    if edges:
        _, _, x, y, z = closest_on_edges(ax, ay, az, cx - ax, cy - ay, cz - az, ax - bx, ay - by, az - bz)
    else:
        _, _, _, x, y, z = closest_on_triangle(ax, ay, az, bx, by, bz, cx, cy, cz)
    length = math.sqrt(x * x + y * y + z * z)
    if not length > 0.0:
        return 0.0, 0.0, 0.0
    return x / length, y / length, z / length


@kernel
def _reach(a: float, b: float, at_t: float) -> float:
    """Until when a line stays positive that is a at 0, b at 1 and at_t now; -1 where it is not positive now."""
    if not at_t > 0.0:
        return -1.0
    if b > 0.0:
        return CERTIFIED
    return a / (a - b) * LATER_ROUNDING


@kernel
def _is_positive(na: float, nb: float, ma: float, mb: float, ta: float, tb: float) -> bool:
    """Step 3 for one D_k, with its lower bounds along n at t = 0 and 1 (na, nb), and along m (ma, mb)."""
    first = (1.0 - ta) * na + ta * nb
    last = (1.0 - tb) * ma + tb * mb
    middle = 0.5 * (((1.0 - tb) * na + tb * nb) + ((1.0 - ta) * ma + ta * mb))
    if not (first > 0.0 and last > 0.0):
        return False
    return middle > 0.0 or middle * middle < first * last * (1.0 - 1e-12)


@kernel
def _advance(
    d_t0: Differences, d_t1: Differences, largest_t0: float, largest_t1: float, edges: bool, separation: float
) -> float:
    """Steps 2 to 4."""
    t, t_before, gap_before, longest, short_by = 0.0, 0.0, math.inf, 1.0, 0.1
    n, known = (0.0, 0.0, 0.0), False
    for _ in range(MAX_STEPS):
        if not known:
            n = _direction(d_t0, d_t1, t, edges)
        margin_t0, margin_t1 = _margins(n, largest_t0, largest_t1, separation)
        a0, a1 = _dot(n, d_t0, 0) - margin_t0, _dot(n, d_t1, 0) - margin_t1
        b0, b1 = _dot(n, d_t0, 3) - margin_t0, _dot(n, d_t1, 3) - margin_t1
        c0, c1 = _dot(n, d_t0, 6) - margin_t0, _dot(n, d_t1, 6) - margin_t1
        d0, d1 = _dot(n, d_t0, 9) - margin_t0, _dot(n, d_t1, 9) - margin_t1
        at, bt, ct, dt = (
            (1.0 - t) * a0 + t * a1,
            (1.0 - t) * b0 + t * b1,
            (1.0 - t) * c0 + t * c1,
            (1.0 - t) * d0 + t * d1,
        )
        reach = min(min(_reach(a0, a1, at), _reach(b0, b1, bt)), min(_reach(c0, c1, ct), _reach(d0, d1, dt)))
        if reach > 1.0:
            return math.inf
        if not (reach > t and reach > UNDERFLOW):
            return t
        gap = min(min(at, bt), min(ct, dt))
        closing = gap_before - gap
        left = gap * (t - t_before) / closing if closing > 0.0 else math.inf
        if max(left, reach - t) < LEAST_PROGRESS * t:
            return reach
        end = min(1.0, t + min((1.0 - short_by) * left, longest))
        known = False
        if t > 0.0 and end > reach:
            m = _direction(d_t0, d_t1, end, edges)
            margin_t0, margin_t1 = _margins(m, largest_t0, largest_t1, separation)
            if (
                _is_positive(a0, a1, _dot(m, d_t0, 0) - margin_t0, _dot(m, d_t1, 0) - margin_t1, t, end)
                and _is_positive(b0, b1, _dot(m, d_t0, 3) - margin_t0, _dot(m, d_t1, 3) - margin_t1, t, end)
                and _is_positive(c0, c1, _dot(m, d_t0, 6) - margin_t0, _dot(m, d_t1, 6) - margin_t1, t, end)
                and _is_positive(d0, d1, _dot(m, d_t0, 9) - margin_t0, _dot(m, d_t1, 9) - margin_t1, t, end)
            ):
                if end == 1.0:
                    return math.inf
                reach, n, known = end, m, True
                longest, short_by = 4.0 * longest, 0.1 * short_by
            else:
                longest, short_by = 0.25 * (end - t), 0.5
        t, t_before, gap_before = reach, t, gap
    return t


@kernel
def first_contact(x_t0: Floats, x_t1: Floats, i: int, j: int, k: int, m: int, edges: bool, separation: float) -> float:
    """Time at which vertex i meets triangle (j, k, m), or edge (i, j) meets edge (k, m): never late; inf for never.

    Parameters
    ----------
    x_t0, x_t1 : (n, 3) float64, finite
    i, j, k, m : rows of x
    edges : True for two edges
    separation : at least 0, in the unit of x; contact is a distance of at most this
    """
    d_t0 = _differences(x_t0, i, j, k, m, edges, 1.0)
    d_t1 = _differences(x_t1, i, j, k, m, edges, 1.0)
    largest_t0, largest_t1 = _largest(d_t0), _largest(d_t1)
    if not SMALLEST < max(largest_t0, largest_t1) < LARGEST:
        if max(largest_t0, largest_t1) == math.inf:
            d_t0 = _differences(x_t0, i, j, k, m, edges, DOWN)
            d_t1 = _differences(x_t1, i, j, k, m, edges, DOWN)
            separation *= DOWN
        exponent = math.frexp(max(_largest(d_t0), _largest(d_t1)))[1]
        scale = math.ldexp(1.0, max(-1022, min(1022, -exponent)))
        separation *= scale
        d_t0, d_t1 = _scaled(d_t0, scale), _scaled(d_t1, scale)
        largest_t0, largest_t1 = _largest(d_t0), _largest(d_t1)
    if _is_apart(_normal(d_t0), d_t0, d_t1, largest_t0, largest_t1, separation):
        return math.inf
    if _is_apart(_middle(d_t0), d_t0, d_t1, largest_t0, largest_t1, separation):
        return math.inf
    return _advance(d_t0, d_t1, largest_t0, largest_t1, edges, separation)


@kernel(parallel=True)
def compute_first_contacts(
    x_t0: Floats, x_t1: Floats, vertices: Ints, edges: bool, separation: float, times_out: Floats
) -> None:
    """Overwrites times_out[q] with `first_contact` of the four vertices in row q."""
    for q in prange(len(vertices)):
        times_out[q] = first_contact(
            x_t0, x_t1, vertices[q, 0], vertices[q, 1], vertices[q, 2], vertices[q, 3], edges, separation
        )
