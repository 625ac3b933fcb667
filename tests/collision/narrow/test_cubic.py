"""The papers' cubic: its coefficients and roots are right; that the test misses contacts is shown, not hoped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.oracles.contact_queries import KINDS, build
from tests.oracles.rational_contact import QUERIES, moving_points

from weft.collision.narrow.continuous import time_of_impact
from weft.collision.narrow.cubic import cardano_roots, coplanarity_cubic, monotone_roots


def test_coefficients_against_exact_polynomials() -> None:
    """Small whole numbers leave no room for rounding: the coefficients must agree to the last digit."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        x_t0, x_t1 = rng.integers(-9, 10, size=(2, 4, 3)).astype(np.float64)
        exact = QUERIES["vertex-triangle"](moving_points(x_t0, x_t1)).coplanar
        found = coplanarity_cubic(x_t0, x_t1, 0, 1, 2, 3)
        # the oracle measures the vertex from the triangle, the paper the triangle from the vertex
        np.testing.assert_array_equal(found, [-c for c in exact] + [0] * (4 - len(exact)))


@pytest.mark.parametrize("solve", [cardano_roots, monotone_roots])
@pytest.mark.parametrize(
    "roots", [(0.25, 0.5, 0.75), (0.1, 2.0, -3.0), (0.5, 0.5, 0.9), (0.3, 0.3, 0.3), (5.0, 6.0, 7.0), (0.0, 1.0, 2.0)]
)
def test_roots(solve: object, roots: tuple[float, float, float]) -> None:
    a, b, c = roots
    cubic = (-3.0 * a * b * c, 3.0 * (a * b + b * c + c * a), -3.0 * (a + b + c), 3.0)
    found = [t for t in solve(cubic) if -1e-4 <= t <= 1.0001]  # type: ignore[operator]
    for root in roots:
        if 0.0 <= root <= 1.0:
            assert min(abs(t - root) for t in found) < 2e-5  # a threefold root is good to a third of the digits
    for t in found:
        assert min(abs(t - root) for root in roots) < 2e-5


def test_lower_degrees_and_one_real_root() -> None:
    assert sorted(cardano_roots((0.5, -1.5, 1.0, 0.0)))[:2] == pytest.approx([0.5, 1.0])
    assert cardano_roots((-1.0, 4.0, 0.0, 0.0))[0] == 0.25
    assert all(math.isinf(t) for t in cardano_roots((0.0, 0.0, 0.0, 0.0)))
    # (t - 0.5)(t^2 + 1)
    assert cardano_roots((-0.5, 1.0, -0.5, 1.0)) == pytest.approx((0.5, math.inf, math.inf, math.inf))
    assert 0.5 in [pytest.approx(t) for t in monotone_roots((-0.5, 1.0, -0.5, 1.0))]


@pytest.mark.parametrize("method", ["cubic", "cubic-monotone"])
@pytest.mark.parametrize("kind", KINDS)
def test_most_plain_crossings_are_found(kind: str, method: str) -> None:
    queries = build("crossing", np.random.default_rng(2), 2000, kind)
    times = time_of_impact(queries.x_t0, queries.x_t1, kind, method=method)
    assert np.isfinite(times).mean() > 0.95
    assert np.nanmedian(np.where(np.isfinite(times), np.abs(times - queries.contact_times), np.nan)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_published_test_misses(kind: str) -> None:
    """Contacts of motions in one plane have no root; touching at an end is a matter of luck."""
    for family, share in (("sliding in plane", 0.8), ("no motion", 1.0), ("touching at t = 0", 0.2)):
        queries = build(family, np.random.default_rng(3), 2000, kind)
        missed = np.isinf(time_of_impact(queries.x_t0, queries.x_t1, kind, method="cubic"))
        assert missed.mean() >= share
