"""Exact signs against determinants in fractions, over every kind of double."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.geometry.predicates import build_limbs, filter_orient2d, filter_orient3d, orient2d, orient3d

LARGEST = np.finfo(np.float64).max
SMALLEST = np.nextafter(0.0, 1.0)
LIMBS = build_limbs()

lattice = st.integers(-3, 3).map(float)
doubles = st.floats(allow_nan=False, allow_infinity=False)
extremes = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, LARGEST, -LARGEST, SMALLEST, -SMALLEST, 2.0**-1022, 1e-300, 1e300, 0.1]
)
anything = st.one_of(lattice, doubles, extremes, st.floats(-1, 1))


def points_of(coordinate: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return st.lists(coordinate, min_size=12, max_size=12).map(lambda values: np.array(values).reshape(4, 3))


def exact_signs(points: np.ndarray) -> tuple[int, list[int]]:
    """The sign of the volume of the four points, and of the three projected areas of the first three."""
    a, b, c, d = [[Fraction(value) for value in row] for row in points.tolist()]
    u, v, w = ([x - y for x, y in zip(p, a, strict=True)] for p in (b, c, d))
    areas = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
    volume = sum(x * y for x, y in zip(areas, w, strict=True))
    return sign_of(volume), [sign_of(area) for area in areas]


def sign_of(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def check(points: np.ndarray) -> None:
    volume, areas = exact_signs(points)
    assert orient3d(points, 0, 1, 2, 3, LIMBS) == volume
    assert orient3d(points, 1, 0, 2, 3, LIMBS) == -volume
    assert filter_orient3d(points, 0, 1, 2, 3) in (0, volume)
    for axis in range(3):
        assert orient2d(points, axis, 0, 1, 2, LIMBS) == areas[axis]
        assert orient2d(points, axis, 1, 0, 2, LIMBS) == -areas[axis]
        assert filter_orient2d(points, axis, 0, 1, 2) in (0, areas[axis])


def test_sign_convention() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert orient3d(points, 0, 1, 2, 3, LIMBS) == 1
    assert orient2d(points, 2, 0, 1, 2, LIMBS) == 1
    assert orient2d(points, 0, 0, 2, 3, LIMBS) == 1
    assert orient2d(points, 1, 0, 3, 1, LIMBS) == 1


@settings(deadline=None, max_examples=300)
@given(points_of(anything))
@example(np.array([[-LARGEST] * 3, [LARGEST, SMALLEST, 0], [0, LARGEST, SMALLEST], [SMALLEST, 0, LARGEST]]))
@example(np.array([[SMALLEST] * 3, [-SMALLEST, 0, 0], [LARGEST, LARGEST, LARGEST], [1, 1, 1]]))
@example(np.zeros((4, 3)))
@example(np.array([[0, 0, 0], [2.0**-400, 0, 0], [0, 2.0**-400, 0], [0, 0, 2.0**-400]]))
@example(np.array([[0, 0, 0], [2.0**500, 0, 0], [0, 2.0**500, 0], [0, 0, 2.0**500]]))
def test_any_doubles(points: np.ndarray) -> None:
    check(points)


@settings(deadline=None, max_examples=200)
@given(
    points_of(lattice),
    st.integers(0, 11),
    st.sampled_from([-np.inf, np.inf]),
    st.sampled_from([0, 500, -500, -1023, -1074]),
)
def test_one_ulp_from_a_lattice(points: np.ndarray, which: int, towards: float, exponent: int) -> None:
    points = np.ldexp(points, exponent)
    check(points)
    points.ravel()[which] = np.nextafter(points.ravel()[which], towards)
    check(points)


@settings(deadline=None, max_examples=200)
@given(points_of(st.floats(-1, 1)), st.floats(0, 1), st.floats(0, 1), st.floats(-1e3, 1e3))
def test_rounded_onto_a_plane(points: np.ndarray, s: float, t: float, shift: float) -> None:
    """The fourth point is computed to lie in the plane of the others: only exact arithmetic sees on which side."""
    points[3] = points[0] + s * (points[1] - points[0]) + t * (points[2] - points[0])
    check(points)
    check(points + shift)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, -340, -355, -500, -530, -537, -1000]))
def test_near_lines_and_planes_down_to_underflow(seed: int, exponent: int) -> None:
    """Products that underflow must not decide, nor rounding where a point is computed to lie on a line."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (4, 3))
    points[2] = points[0] + rng.uniform() * (points[1] - points[0])
    check(np.ldexp(points, exponent))
    check(np.ldexp(points + rng.uniform(-9, 9), exponent))
    points[3] = points[0] + rng.uniform() * (points[1] - points[0])
    check(np.ldexp(np.round(4 * points), exponent) + np.ldexp(rng.integers(-1, 2, (4, 3)), -1074))


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_filter_settles_ordinary_points(scale: float) -> None:
    rng = np.random.default_rng(0)
    settled = [filter_orient3d(scale * rng.normal(size=(4, 3)), 0, 1, 2, 3) != 0 for _ in range(200)]
    assert all(settled)


def test_other_points_do_not_matter() -> None:
    """The unit is taken from all rows of the array; rows that are not named must not change the sign."""
    points = np.array([[0.0, 0, 0], [1, 1, 0], [3, 3, 1], [2, 2, 5], [LARGEST, SMALLEST, 0], [0, 0, 1e-200]])
    assert orient3d(points, 0, 1, 2, 3, LIMBS) == 0
    points[3, 0] = np.nextafter(2.0, 3.0)
    assert orient3d(points, 0, 1, 2, 3, LIMBS) == exact_signs(points[:4])[0] != 0
