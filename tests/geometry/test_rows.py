"""Sums over rows, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.rows import differing, further_apart, mean_row, mean_way, weighted_square, weighted_way


def test_sums_over_rows_are_those_of_numpy(rng):
    x, y, weights = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), rng.uniform(size=50)
    direction = rng.normal(size=3)
    np.testing.assert_allclose(mean_row(x), x.mean(axis=0), atol=1e-14)
    assert mean_way(x, y) == pytest.approx(np.linalg.norm(y - x, axis=1).mean())
    assert weighted_square(weights, x) == pytest.approx((weights[:, None] * x**2).sum())
    assert weighted_way(weights, x, y, direction) == pytest.approx(weights @ (y - x) @ direction)


def test_no_rows_have_no_middle_and_a_bad_one_shows():
    np.testing.assert_array_equal(mean_row(np.zeros((0, 3))), np.zeros(3))
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
