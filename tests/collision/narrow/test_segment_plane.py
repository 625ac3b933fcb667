"""Segment against triangle: every step of the paper's test, every kind of contact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.collision.narrow import ContactKind
from weft.collision.narrow.segment_plane import (
    INSIDE_TESTS,
    NONE,
    TOLERANCE,
    SegmentPlane,
    is_same_side,
    segment_triangle,
)
from weft.errors import WeftError

NO_PAIRS = np.empty((0, 4), np.int32)
TRIANGLE = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
INSIDE_RANDOM = 400


def crossing_kind(at: list[float], by_angles: bool, tolerance: float = TOLERANCE) -> int:
    """Kind of a segment that crosses the triangle's plane at (x, y)."""
    start, end = (at[0] + 0.1, at[1], 0.5), (at[0] - 0.1, at[1], -0.5)
    kind, t = segment_triangle(start, end, tuple(TRIANGLE.ravel()), by_angles, tolerance)
    assert t == pytest.approx(0.5)
    return int(kind)


def test_same_side_filter() -> None:
    assert is_same_side(1.0, 2.0)
    assert is_same_side(-1.0, -2.0)
    assert not is_same_side(1.0, -2.0)
    assert not is_same_side(0.0, -2.0)  # on the plane: neither side
    assert not is_same_side(1.0, 0.0)
    assert is_same_side(0.0, 0.0)  # within the plane: crosses nowhere


@pytest.mark.parametrize("by_angles", [True, False])
def test_inside_and_outside(by_angles: bool) -> None:
    assert crossing_kind([0.3, 0.3], by_angles) == ContactKind.NODE_TRIANGLE
    assert crossing_kind([0.7, 0.7], by_angles) == NONE
    assert crossing_kind([-0.3, 0.3], by_angles) == NONE
    assert crossing_kind([0.3, -0.3], by_angles) == NONE


def test_both_inside_tests_agree_away_from_the_sides() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(INSIDE_RANDOM):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        corners = TRIANGLE @ turn.T
        weights = rng.uniform(-0.5, 1.5, size=3)
        weights /= weights.sum()
        if np.abs(weights).min() < 0.02 or np.abs(weights).max() > 3:
            continue
        q, along = weights @ corners, turn[:, 2] + 0.3 * rng.normal(size=3)
        found = [
            segment_triangle(tuple(q + along), tuple(q - along), tuple(corners.ravel()), by_angles, 1e-6)[0]
            for by_angles in (True, False)
        ]
        expected = ContactKind.NODE_TRIANGLE if weights.min() > 0 else NONE
        assert found == [expected, expected]
        inside += weights.min() > 0
    assert 20 < inside < INSIDE_RANDOM - 20


def test_sides_and_corners() -> None:
    assert crossing_kind([0.5, 0.0], by_angles=True) == ContactKind.NODE_EDGE
    assert crossing_kind([0.5, -0.01], by_angles=True) == ContactKind.NODE_EDGE  # within the tolerance
    assert crossing_kind([0.5, -0.01], by_angles=True, tolerance=1e-3) == NONE
    for by_angles in (True, False):
        assert crossing_kind([0.0, 0.0], by_angles) == ContactKind.NODE_NODE
        assert crossing_kind([1.0, 0.0], by_angles) == ContactKind.NODE_NODE
        assert crossing_kind([0.0, 1.0], by_angles) == ContactKind.NODE_NODE


def test_the_tolerance_of_the_paper() -> None:
    assert pytest.approx(0.0628, abs=1e-4) == TOLERANCE


@pytest.mark.parametrize("inside", INSIDE_TESTS)
def test_path_of_a_node(inside: str) -> None:
    x_t0 = np.concatenate([[[0.2, 0.2, 0.3]], TRIANGLE])
    x_t1 = x_t0.copy()
    x_t1[0] = [0.2, 0.2, -0.1]
    rows = np.array([[0, 1, 2, 3]], np.int32)
    found = SegmentPlane(inside=inside).find_contacts(x_t0, x_t1, rows, NO_PAIRS)
    np.testing.assert_allclose(found.times, [0.75])
    np.testing.assert_allclose(found.weights, [[1.0, -0.6, -0.2, -0.2]])
    np.testing.assert_allclose(found.normals, [[0.0, 0.0, 1.0]])
    assert found.kinds.tolist() == [ContactKind.NODE_TRIANGLE]
    from_below = SegmentPlane(inside=inside).find_contacts(x_t1, x_t0, rows, NO_PAIRS)
    np.testing.assert_allclose(from_below.normals, [[0.0, 0.0, -1.0]])


def test_an_edge_against_a_triangle() -> None:
    """Node 1 of edge (0, 1) crosses the plane; or both ends stay on their sides and the edge sweeps in."""
    rows = np.array([[0, 1, 2, 3, 4]], np.int32)
    x_t0 = np.concatenate([[[0.2, 0.2, 0.5], [0.2, 0.2, 0.1]], TRIANGLE])
    x_t1 = x_t0.copy()
    x_t1[1] = [0.2, 0.2, -0.5]
    found = SegmentPlane().find_edge_contacts(x_t0, x_t1, rows)
    assert found.kinds.tolist() == [ContactKind.NODE_TRIANGLE]
    np.testing.assert_array_equal(found.vertices, [[1, 2, 3, 4]])

    x_t0[1] = [0.2, -0.7, -0.5]  # below, and outside: the edge crosses the plane beside the triangle
    assert len(SegmentPlane().find_edge_contacts(x_t0, x_t0, rows).times) == 0
    found = SegmentPlane().find_edge_contacts(x_t0, x_t1, rows)  # the end slides in under the triangle
    assert found.kinds.tolist() == [ContactKind.EDGE_EDGE]


def test_parameters_are_checked() -> None:
    with pytest.raises(WeftError, match="unknown inside test 'angles'"):
        SegmentPlane(inside="angles")
    with pytest.raises(WeftError, match="tolerance: expected 0 to pi"):
        SegmentPlane(tolerance=4.0)
    assert SegmentPlane().tolerance == 2 * math.pi / 100
