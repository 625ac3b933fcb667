from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.collision.broad.boxes import (
    build_boxes,
    corners,
    is_overlapping,
    refit_vertex_boxes,
    update_primitive_boxes,
)

COORDINATE = st.floats(-1e6, 1e6, allow_nan=False)


@settings(deadline=None)
@example(1.7e-143, 1.7e-143, 1.7e-143)
@given(COORDINATE, COORDINATE, st.floats(0.0, 10.0))
def test_a_box_holds_both_ends_and_half_the_margin(a, b, margin):
    """In exact arithmetic."""
    boxes = build_boxes(1)
    refit_vertex_boxes(np.full((1, 3), a), np.full((1, 3), b), margin, 1, boxes)
    lower, upper = corners(boxes)
    half = Fraction(margin) / 2
    for d in range(3):
        assert Fraction(float(lower[0, d])) <= Fraction(min(a, b)) - half
        assert Fraction(float(upper[0, d])) >= Fraction(max(a, b)) + half
        size = abs(a) + abs(b) + margin
        assert upper[0, d] - lower[0, d] <= abs(a - b) + margin + 6e-7 * size + 1e-40


def test_vertices_exactly_a_margin_apart_meet():
    # 0.1 and 0.3 are not binary fractions, so that rounding has a chance to part them
    for gap in (0.1, 0.2, 0.3, 1e-5, 7e-3):
        for start in (0.0, 0.7, -123.456, 1e4 / 3):
            boxes = build_boxes(2)
            x = np.zeros((2, 3))
            x[:, 0] = start, start + gap
            refit_vertex_boxes(x, None, x[1, 0] - x[0, 0], 2, boxes)
            assert is_overlapping(boxes, 0, boxes, 1)


@pytest.mark.parametrize("axis", range(3))
def test_boxes_apart_along_one_axis_do_not_meet(axis):
    boxes = build_boxes(3)
    x = np.zeros((3, 3))
    x[1, axis] = 1.0
    x[2] = 0.5
    refit_vertex_boxes(x, None, 0.9, 3, boxes)
    assert not is_overlapping(boxes, 0, boxes, 1)
    assert not is_overlapping(boxes, 1, boxes, 0)
    assert is_overlapping(boxes, 0, boxes, 2)


def test_box_of_a_triangle():
    x = np.array([[0.0, 5, -1], [2, 3, -4], [1, 9, 8]])
    vertex_boxes, boxes = build_boxes(3), build_boxes(1)
    refit_vertex_boxes(x, x + np.array([0, 0, 1]), 0.5, 3, vertex_boxes)
    update_primitive_boxes(vertex_boxes, np.array([[0, 1, 2]], np.int32), boxes)
    lower, upper = corners(boxes)
    np.testing.assert_allclose(lower, [[-0.25, 2.75, -4.25]], rtol=1e-6)
    np.testing.assert_allclose(upper, [[2.25, 9.25, 9.25]], rtol=1e-6)
