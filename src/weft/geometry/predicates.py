"""Exact signs: on which side of a plane or a line does a point lie?

Each predicate first computes in floating point with a bound on its own error (after Shewchuk, "Adaptive precision
floating-point arithmetic and fast robust geometric predicates", 1997). Where the bound cannot tell the sign, the
determinant is computed once more in whole numbers. A double is a whole number of units 2^-1074, so the coordinates
of a few points are whole numbers of one common unit, written as digits ("limbs") of 24 bits. Nothing can round,
overflow or underflow there, and the answer is right for every finite double: huge, tiny, subnormal or mixed.

Why not floating-point expansions: they need a range check and a second way for what falls outside; digits need
neither, and at the usual three digits a coordinate they take well under a microsecond.

Points are rows of one small array; predicates name them by row. `limbs` is the workspace of `build_limbs`, one for
each thread of work. Callers pass rows as variables: each literal number handed to a kernel compiles a variant of it
and of all that it calls (200 s instead of 10 s for the intersections, measured).

Error bounds, with u = 2^-53 the rounding unit and e = 2^-1022, more than a product can lose when it underflows:

- orient3d: every monomial passes through at most 8 roundings (three differences, two products, one subtraction, two
  sums), so the error is below ((1 + u)^8 - 1) p < 8.01 u p, where p is the sum of the absolute values of the
  monomials; p as computed is at least (1 - u)^8 p. Underflow adds at most 2 e for each minor, times its coordinate
  difference, and e for each of the last products. 16 u p + 2^-1000 (1 + |d - a|_1) is above all of it.
- orient2d: 4 roundings a monomial, so 8 u p + 2^-1000.

Where something overflows, p is infinite or NaN too, the comparison is false and the whole numbers decide.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Longs
from weft.jit import kernel

ORIENT3D_ERROR = 2.0**-49
ORIENT2D_ERROR = 2.0**-50
UNDERFLOW_ERROR = 2.0**-1000

LIMB_BITS = 24  # a difference has digits below 2^26, so 2 * 88 products of two still fit 63 bits without a carry
LIMB_MASK = (1 << LIMB_BITS) - 1
MAX_LIMBS = 88  # the largest double over the smallest: 2045 + 53 bits
MINOR_ROW = 9  # rows 0 to 8: differences b - a, c - a, d - a; then three minors; then the determinant
MANTISSA_MASK = (1 << 52) - 1
MAGNITUDE_MASK = (1 << 63) - 1


@kernel(allocates=True)
def build_limbs() -> Longs:
    """The workspace of the exact stage; its contents never matter between calls."""
    return np.empty((MINOR_ROW + 4, 3 * MAX_LIMBS + 4), np.int64)


@kernel
def orient3d(points: Floats, a: int, b: int, c: int, d: int, limbs: Longs) -> int:
    """The sign of (b - a) x (c - a) . (d - a), exactly: 1 where d lies on the side to which the normal of abc points.

    Parameters
    ----------
    points : (n, 3) float64, finite
    a, b, c, d : rows of `points`
    limbs : workspace of `build_limbs`
    """
    sign = filter_orient3d(points, a, b, c, d)
    if sign != 0:
        return sign
    return _orient3d_exact(points, a, b, c, d, limbs)


@kernel
def orient2d(points: Floats, axis: int, a: int, b: int, c: int, limbs: Longs) -> int:
    """The sign of component `axis` of (b - a) x (c - a), exactly.

    That is 1 where abc runs anticlockwise in the plane of the two other axes, seen from the positive end of `axis`.
    """
    sign = filter_orient2d(points, axis, a, b, c)
    if sign != 0:
        return sign
    return _orient2d_exact(points, axis, a, b, c, limbs)


@kernel
def filter_orient3d(points: Floats, a: int, b: int, c: int, d: int) -> int:
    """The sign of `orient3d`, or 0 where floating point cannot tell."""
    ax, ay, az = points[a, 0], points[a, 1], points[a, 2]
    bx, by, bz = points[b, 0] - ax, points[b, 1] - ay, points[b, 2] - az
    cx, cy, cz = points[c, 0] - ax, points[c, 1] - ay, points[c, 2] - az
    dx, dy, dz = points[d, 0] - ax, points[d, 1] - ay, points[d, 2] - az
    by_cz, bz_cy = by * cz, bz * cy
    bz_cx, bx_cz = bz * cx, bx * cz
    bx_cy, by_cx = bx * cy, by * cx
    determinant = dx * (by_cz - bz_cy) + dy * (bz_cx - bx_cz) + dz * (bx_cy - by_cx)
    dx, dy, dz = abs(dx), abs(dy), abs(dz)
    magnitude = (
        dx * (abs(by_cz) + abs(bz_cy)) + dy * (abs(bz_cx) + abs(bx_cz)) + dz * (abs(bx_cy) + abs(by_cx))
    )  # p in the module's docstring
    error = ORIENT3D_ERROR * magnitude + UNDERFLOW_ERROR * (1.0 + dx + dy + dz)
    return _sure_sign(determinant, error)


@kernel
def filter_orient2d(points: Floats, axis: int, a: int, b: int, c: int) -> int:
    """The sign of `orient2d`, or 0 where floating point cannot tell."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    left = (points[b, i] - points[a, i]) * (points[c, j] - points[a, j])
    right = (points[b, j] - points[a, j]) * (points[c, i] - points[a, i])
    determinant = left - right
    error = ORIENT2D_ERROR * (abs(left) + abs(right)) + UNDERFLOW_ERROR
    return _sure_sign(determinant, error)


@kernel
def _sure_sign(value: float, error: float) -> int:
    if value > error:
        return 1
    return -1 if value < -error else 0


@kernel
def _orient3d_exact(points: Floats, a: int, b: int, c: int, d: int, limbs: Longs) -> int:
    bits = points.view(np.int64)
    low, n = _find_unit(bits)
    ends = (b, c, d)
    for row in range(9):
        _load_difference(bits, a, ends[row // 3], row % 3, low, n, limbs, row)
    determinant = MINOR_ROW + 3
    for i in range(3 * n + 1):
        limbs[determinant, i] = 0
    for axis in range(3):
        _update_minor(limbs, axis, n)
        minor = MINOR_ROW + axis
        limbs[minor, 2 * n] = _carry(limbs, minor, 2 * n)
        for i in range(n):
            _add_multiple(limbs, limbs[6 + axis, i], minor, 2 * n + 1, determinant, i)
    return _sign(limbs, determinant, 3 * n + 1)


@kernel
def _orient2d_exact(points: Floats, axis: int, a: int, b: int, c: int, limbs: Longs) -> int:
    bits = points.view(np.int64)
    low, n = _find_unit(bits)
    ends = (b, c)
    for row in range(6):
        if row % 3 != axis:
            _load_difference(bits, a, ends[row // 3], row % 3, low, n, limbs, row)
    _update_minor(limbs, axis, n)
    return _sign(limbs, MINOR_ROW + axis, 2 * n)


@kernel
def _find_unit(bits: Longs) -> tuple[int, int]:
    """The smallest exponent among the doubles of `bits`, and how many limbs of that unit hold the largest one.

    Exponents are counted as in the format, so that a double of exponent k is its mantissa times 2^(k - 1075);
    subnormal numbers share exponent 1. Zeros do not count.
    """
    low, high = 2047, 0
    for row in range(bits.shape[0]):
        for axis in range(3):
            magnitude = bits[row, axis] & MAGNITUDE_MASK
            if magnitude != 0:
                exponent = max(magnitude >> 52, 1)
                low = min(low, exponent)
                high = max(high, exponent)
    if high == 0:
        low = 1
        high = 1
    return low, (high - low + 53 + LIMB_BITS - 1) // LIMB_BITS


@kernel
def _load_difference(bits: Longs, a: int, b: int, axis: int, low: int, n: int, limbs: Longs, row: int) -> None:
    """Overwrite `row` with b - a along `axis`; digits are left without carry, below 2^26 in size, of either sign."""
    for i in range(n + 3):
        limbs[row, i] = 0
    for end in range(2):
        value = bits[b, axis] if end == 1 else bits[a, axis]
        sign = 1 if (end == 1) == (value >= 0) else -1
        mantissa = value & MANTISSA_MASK
        exponent = (value & MAGNITUDE_MASK) >> 52
        if exponent == 0:
            exponent = 1
        else:
            mantissa |= MANTISSA_MASK + 1
        if mantissa == 0:
            continue  # a zero has no place among limbs that start at the smallest number
        limb = (exponent - low) // LIMB_BITS
        shift = (exponent - low) % LIMB_BITS
        for _ in range(3):  # 53 bits in three digits, each shifted over two limbs
            part = (mantissa & LIMB_MASK) << shift
            limbs[row, limb] += sign * (part & LIMB_MASK)
            limbs[row, limb + 1] += sign * (part >> LIMB_BITS)
            mantissa >>= LIMB_BITS
            limb += 1


@kernel
def _update_minor(limbs: Longs, axis: int, n: int) -> None:
    """Overwrite the minor of `axis`, from the differences b - a and c - a, without carry."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    row = MINOR_ROW + axis
    for k in range(2 * n):
        limbs[row, k] = 0
    for k in range(n):
        _add_multiple(limbs, limbs[i, k], 3 + j, n, row, k)
        _add_multiple(limbs, -limbs[j, k], 3 + i, n, row, k)


@kernel
def _add_multiple(limbs: Longs, digit: int, row: int, n: int, to_row: int, place: int) -> None:
    """Add digit * row to `to_row`, from `place` on and without carry."""
    if digit == 0:  # a double fills at most four limbs, however many the range of the points asks for
        return
    for i in range(n):
        limbs[to_row, place + i] += digit * limbs[row, i]


@kernel
def _carry(limbs: Longs, row: int, n: int) -> int:
    """Bring n digits into 0 .. 2^24 - 1 and return what is carried out of the last, which has the number's sign."""
    carried = 0
    for i in range(n):
        value = limbs[row, i] + carried
        carried = value >> LIMB_BITS
        limbs[row, i] = value & LIMB_MASK
    return carried


@kernel
def _sign(limbs: Longs, row: int, n: int) -> int:
    carried = _carry(limbs, row, n)
    if carried != 0:
        return 1 if carried > 0 else -1
    for i in range(n):
        if limbs[row, i] != 0:
            return 1
    return 0
