"""Arithmetic on rows, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.rows import (
    centred_rows,
    chosen_rows,
    differing,
    drift,
    fall,
    further_apart,
    is_finite,
    mean_way,
    row_products,
    scaled_rows,
    ways_along,
    weighted_square,
    weighted_way,
)


def test_sums_over_rows_are_those_of_numpy(rng):
    x, y, weights = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), rng.uniform(size=50)
    direction = rng.normal(size=3)
    assert mean_way(x, y) == pytest.approx(np.linalg.norm(y - x, axis=1).mean())
    assert weighted_square(weights, x) == pytest.approx((weights[:, None] * x**2).sum())
    assert weighted_way(weights, x, y, direction) == pytest.approx(weights @ (y - x) @ direction)


def test_rows_are_those_of_numpy(rng):
    x, y, z = rng.normal(size=(3, 50, 3))
    weights, gravity, dt = rng.uniform(size=50), rng.normal(size=3), 0.1
    near = {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(centred_rows(x), x - x.mean(axis=0), **near)
    np.testing.assert_allclose(scaled_rows(weights, x), weights[:, None] * x, **near)
    np.testing.assert_allclose(row_products(x, y), (x * y).sum(axis=1), **near)
    np.testing.assert_array_equal(chosen_rows(weights > 0.5, x, y), np.where(weights[:, None] > 0.5, x, y))
    which = np.array([3, 7, 3, 49], np.int32)
    np.testing.assert_allclose(ways_along(which, x, y, z[:4]), ((y - x)[which] * z[:4]).sum(axis=1), **near)
    np.testing.assert_allclose(drift(x, y, z, dt), x + dt * (y + z), **near)
    ahead, free = fall(x, y, weights, gravity, dt)
    np.testing.assert_allclose(ahead, x + dt * y, **near)
    np.testing.assert_allclose(free, x + dt * y + dt**2 * weights[:, None] * gravity, **near)


@pytest.mark.parametrize(("bad", "finite"), [(0.0, True), (1e300, True), (np.nan, False), (np.inf, False)])
def test_one_number_that_is_not_finite_shows(bad, finite):
    x = np.ones((4, 3))
    x[2, 1] = bad
    assert is_finite(x) == finite


def test_no_rows_have_no_middle_and_a_bad_one_shows():
    assert centred_rows(np.zeros((0, 3))).shape == (0, 3)
    assert mean_way(np.zeros((0, 3)), np.zeros((0, 3))) == 0.0
    x = np.ones((3, 3))
    x[1, 2] = np.nan
    assert np.isnan(weighted_square(np.ones(3), x))


def test_rows_are_further_apart_in_any_column():
    x, y = np.zeros((5, 3)), np.zeros((5, 3))
    y[1, 0], y[2, 1], y[3, 2], y[4, 1] = 0.2, -0.3, 0.1, np.nan
    np.testing.assert_array_equal(further_apart(x, y, 0.1), [False, True, True, False, True])


def test_rows_differ_in_any_column():
    x = np.zeros((4, 3))
    y = x.copy()
    y[1, 2], y[2, 0], x[3, 1] = 1e-300, np.nan, -0.0
    np.testing.assert_array_equal(differing(x, y), [False, True, True, False])
