"""Closest points against exact rational distances, in every region and for every degeneracy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.oracles.rational_distance import distance_sq

from weft.geometry.distances import closest_on_edges, closest_on_segment, closest_on_triangle

Floats = npt.NDArray[np.float64]
KINDS = ("vertex-triangle", "edge-edge")
ROUNDINGS = 8  # of the largest difference: measured at most 4
UNIT_ROUNDOFF = 2.0**-53


def check(x: Floats, kind: str) -> None:
    """Distance, weights and vector of one query against the exact distance."""
    size = max(np.abs(x - corner).max() for corner in x)
    exact = math.sqrt(distance_sq(x, kind))
    if kind == "vertex-triangle":
        *weights, rx, ry, rz = closest_on_triangle(*(x[0] - x[1:]).ravel())
        assert min(weights) >= 0.0
        assert sum(weights) == pytest.approx(1.0, abs=4 * UNIT_ROUNDOFF)
        gap = np.array(weights) @ (x[0] - x[1:])
    else:
        s, t, rx, ry, rz = closest_on_edges(*(x[0] - x[2]), *(x[1] - x[0]), *(x[3] - x[2]))
        assert 0.0 <= s <= 1.0
        assert 0.0 <= t <= 1.0
        gap = (x[0] - x[2]) + s * (x[1] - x[0]) - t * (x[3] - x[2])
    bound = ROUNDINGS * UNIT_ROUNDOFF * size
    assert abs(math.sqrt(rx * rx + ry * ry + rz * rz) - exact) <= bound
    assert abs(math.sqrt(gap @ gap) - exact) <= bound


def random(rng: np.random.Generator, kind: str) -> Floats:
    return rng.normal(size=(4, 3))


def close(rng: np.random.Generator, kind: str) -> Floats:
    """Over the inside, the sides and the corners, from far to a few roundings away."""
    x = rng.normal(size=(4, 3))
    height = 10.0 ** rng.uniform(-14, 0) * rng.normal(size=3)
    if kind == "vertex-triangle":
        weights = rng.dirichlet([1, 1, 1]) if rng.random() < 0.5 else rng.uniform(-0.5, 1.5, size=3)
        x[0] = weights @ x[1:] + height
    else:
        target = x[2] + rng.uniform(-0.3, 1.3) * (x[3] - x[2]) + height
        x[1] = x[0] + (target - x[0]) / rng.uniform(0.1, 1.5)
    return x


def sliver(rng: np.random.Generator, kind: str) -> Floats:
    """Triangles and pairs of edges within angles of 0.1 to 1e-17."""
    x = rng.normal(size=(4, 3))
    width, height = 10.0 ** rng.uniform(-17, -1), 10.0 ** rng.uniform(-17, 0)
    if kind == "vertex-triangle":
        i, j, k = 1 + rng.permutation(3)
        x[k] = x[i] + rng.uniform(-0.5, 1.5) * (x[j] - x[i]) + width * rng.normal(size=3)
        x[0] = rng.dirichlet([1, 1, 1]) @ x[1:] + height * rng.normal(size=3)
    else:
        along = x[1] - x[0]
        x[3] = x[2] + rng.choice([-1, 1]) * rng.uniform(0.1, 2.0) * along + width * rng.normal(size=3)
        target = x[0] + rng.uniform(-0.5, 1.5) * along + height * rng.normal(size=3)
        x[2:] += target - (x[2] + rng.random() * (x[3] - x[2]))
    return x


def needle(rng: np.random.Generator, kind: str) -> Floats:
    """Sides of very different length."""
    x = rng.normal(size=(4, 3))
    x[1:] = x[1] + (x[1:] - x[1]) * np.array([[1.0], [1e-6], [1e-12]])
    x[0] = x[1] + rng.normal(size=3) * 10.0 ** rng.uniform(-13, 0)
    return x


def degenerate(rng: np.random.Generator, kind: str) -> Floats:
    """Equal vertices: points in place of edges and triangles."""
    x = rng.normal(size=(4, 3)).round(1)
    for _ in range(rng.integers(1, 4)):
        x[rng.integers(4)] = x[rng.integers(4)]
    return x


def whole(rng: np.random.Generator, kind: str) -> Floats:
    """Small whole numbers: parallel, orthogonal, collinear, touching."""
    return rng.integers(-2, 3, size=(4, 3)).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [random, close, sliver, needle, degenerate, whole])
def test_distances_are_exact_to_a_few_roundings(make: Callable[..., Floats], kind: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(500):
        check(make(rng, kind), kind)


@pytest.mark.parametrize("kind", KINDS)
@given(
    x=arrays(
        np.float64,
        (4, 3),
        elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1.0 + 2.0**-52, 1e-9, 1e-17, 3.0]),
    )
)
@settings(max_examples=300, deadline=None)
def test_hostile_coordinates(kind: str, x: Floats) -> None:
    check(x, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_scales_without_overflow(scale: float, kind: str) -> None:
    rng = np.random.default_rng(12)
    for _ in range(50):
        check(close(rng, kind) * scale, kind)


def test_the_direction_survives_tiny_gaps() -> None:
    """r is orthogonal to the triangle, or to both edges, though it is 1e-13 of their size."""
    rng = np.random.default_rng(13)
    for _ in range(200):
        a, e1, e2 = rng.normal(size=(3, 3))
        normal = np.cross(e1, e2) / np.linalg.norm(np.cross(e1, e2))
        p = a + 0.3 * e1 + 0.3 * e2 + 1e-13 * normal
        r = np.array(closest_on_triangle(*(p - a), *(p - a - e1), *(p - a - e2))[3:])
        assert abs(np.linalg.norm(r) - 1e-13) < 1e-14
        assert max(abs(r @ e1), abs(r @ e2)) < 1e-14 * np.linalg.norm(r) * 100


def test_the_ends_of_a_segment() -> None:
    assert closest_on_segment(-1.0, 2.0, 0.0, 4.0, 0.0, 0.0) == (0.0, -1.0, 2.0, 0.0)
    assert closest_on_segment(5.0, 2.0, 0.0, 4.0, 0.0, 0.0) == (1.0, 1.0, 2.0, 0.0)
    assert closest_on_segment(1.0, 2.0, 0.0, 4.0, 0.0, 0.0) == (0.25, 0.0, 2.0, 0.0)
    assert closest_on_segment(1.0, 2.0, 0.0, 0.0, 0.0, 0.0) == (0.0, 1.0, 2.0, 0.0)
