"""Contacts by proximity: weights, normals, kinds, and the public distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.oracles.rational_distance import distance_sq

from weft.collision.narrow import ContactKind
from weft.collision.narrow.proximity import Proximity, closest_features, distances
from weft.errors import WeftError
from weft.jit import set_threads

NO_PAIRS = np.empty((0, 4), np.int32)
TRIANGLE = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
ROW = np.array([[0, 1, 2, 3]], np.int32)


@pytest.mark.parametrize(
    ("point", "distance", "normal", "kind"),
    [
        ([0.25, 0.25, 2.0], 2.0, [0, 0, 1], ContactKind.NODE_TRIANGLE),
        ([0.25, 0.25, -2.0], 2.0, [0, 0, -1], ContactKind.NODE_TRIANGLE),
        ([0.5, -3.0, 4.0], 5.0, [0, -0.6, 0.8], ContactKind.NODE_EDGE),
        ([-3.0, 0.5, 0.0], 3.0, [-1, 0, 0], ContactKind.NODE_EDGE),
        ([1.5, 1.5, 0.0], math.sqrt(2.0), [math.sqrt(0.5), math.sqrt(0.5), 0], ContactKind.NODE_EDGE),
        ([4.0, -0.5, 0.0], math.hypot(3.0, 0.5), None, ContactKind.NODE_NODE),
        ([-3.0, -4.0, 0.0], 5.0, [-0.6, -0.8, 0], ContactKind.NODE_NODE),
        ([0.25, 0.25, 0.0], 0.0, [0, 0, 1], ContactKind.NODE_TRIANGLE),
    ],
)
def test_regions_of_a_triangle(point: list[float], distance: float, normal: list[float], kind: ContactKind) -> None:
    x = np.array([point, *TRIANGLE])
    found = closest_features(x, ROW, edges=False)
    assert found.distances[0] == pytest.approx(distance)
    assert found.kinds[0] == kind
    if normal:
        np.testing.assert_allclose(found.normals[0], normal, atol=1e-15)
    np.testing.assert_allclose(found.weights[0] @ x, distance * found.normals[0], atol=1e-15)


@pytest.mark.parametrize(
    ("edges", "distance", "kind"),
    [
        ([[-1, 0, 1], [1, 0, 1], [0, -1, 0], [0, 1, 0]], 1.0, ContactKind.EDGE_EDGE),
        ([[-1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 3, 0]], 1.0, ContactKind.NODE_EDGE),
        ([[0, 0, 0], [1, 0, 0], [4, 4, 0], [9, 9, 0]], 5.0, ContactKind.NODE_NODE),
        ([[0, 0, 0], [4, 0, 0], [1, 2, 0], [3, 2, 0]], 2.0, ContactKind.NODE_EDGE),
        ([[0, 0, 0], [0, 0, 0], [3, 4, 0], [3, 4, 0]], 5.0, ContactKind.NODE_NODE),
    ],
)
def test_edges(edges: list[list[float]], distance: float, kind: ContactKind) -> None:
    x = np.array(edges, np.float64)
    found = closest_features(x, ROW, edges=True)
    assert found.distances[0] == pytest.approx(distance)
    assert found.kinds[0] == kind
    np.testing.assert_allclose(found.weights[0] @ x, distance * found.normals[0], atol=1e-15)


def test_only_near_candidates_are_contacts() -> None:
    x = np.array([[0.2, 0.2, 0.01], [0.2, 0.2, 0.3], *TRIANGLE])
    rows = np.array([[0, 2, 3, 4], [1, 2, 3, 4]], np.int32)
    found = Proximity(thickness=0.1).find_contacts(x, x, rows, NO_PAIRS)
    np.testing.assert_array_equal(found.vertices, rows[:1])
    np.testing.assert_allclose(found.weights, [[1.0, -0.6, -0.2, -0.2]])
    np.testing.assert_allclose(found.distances, [0.01])


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    rows = rng.integers(0, 400, size=(5000, 4)).astype(np.int32)
    try:
        set_threads(1)
        serial = closest_features(x, rows, edges=True)
        set_threads(None)
        for a, b in zip(serial, closest_features(x, rows, edges=True), strict=True):
            np.testing.assert_array_equal(a, b)
    finally:
        set_threads(None)


@pytest.mark.parametrize("kind", ["vertex-triangle", "edge-edge"])
@pytest.mark.parametrize("exponent", [-1060, -600, 0, 600, 1023])
def test_public_distances_of_any_size(exponent: int, kind: str) -> None:
    x = np.ldexp(np.random.default_rng(2).uniform(-0.5, 0.5, size=(40, 4, 3)), exponent)
    for row, found in zip(x, distances(x, kind), strict=True):
        exact = math.sqrt(distance_sq(np.ldexp(row, -exponent), kind))
        assert math.ldexp(found, -exponent) == pytest.approx(exact, rel=1e-12, abs=2.0**-13 if exponent < -1000 else 0)


def test_public_distances_far_from_the_origin() -> None:
    x = np.array([[[0, 0, 2], *TRIANGLE]]) + 1e6
    assert distances(x) == pytest.approx([2.0], abs=1e-9)
    assert distances(np.empty((0, 4, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("x", "kind", "message"),
    [
        (np.zeros((2, 3)), "edge-edge", "x: expected shape (n, 4, 3), got (2, 3)"),
        ([["a"]], "edge-edge", "x: expected an (n, 4, 3) array of numbers"),
        (np.full((2, 4, 3), np.nan), "edge-edge", "x: query 0 is NaN or infinite"),
        (np.zeros((1, 4, 3)), "edges", "unknown kind 'edges'; choose from edge-edge, vertex-triangle"),
    ],
)
def test_bad_input_is_named(x: object, kind: str, message: str) -> None:
    with pytest.raises(WeftError) as caught:
        distances(x, kind)  # type: ignore[arg-type]
    assert str(caught.value) == message
