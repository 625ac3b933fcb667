"""When moving boxes meet, on which plane, and that every pair is compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.collision.broad.pair_buffer import PairBuffer
from weft.collision.response.moving_boxes import (
    LOWER,
    LOWER_T1,
    collision_plane,
    compare_every_pair,
    is_colliding,
    update_corners,
)

TWO = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
GAP = 1e-4
UP = np.array([0.0, 0.0, 1.0])
CLEAR, BOXES, OBLIQUE = "clear", "boxes", "oblique"


def flat(height, offset=(0.0, 0.0)):
    """A level triangle."""
    return np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]) + np.array([*offset, height])


def moving(x_t0, x_t1, triangles):
    boxes = np.empty((len(triangles), 4, 3))
    update_corners(x_t0, triangles, LOWER, boxes)
    update_corners(x_t1, triangles, LOWER_T1, boxes)
    return boxes


def plane(a_t0, a_t1, b_t0, b_t1, gap=GAP):
    boxes = moving(np.concatenate([a_t0, b_t0]), np.concatenate([a_t1, b_t1]), TWO)
    axis, *rest = collision_plane(boxes, 0, 1, gap)
    state = CLEAR if not is_colliding(boxes, 0, 1, gap) else BOXES if axis >= 0 else OBLIQUE
    return state, axis, *rest


def test_the_plane_is_where_boxes_first_touch():
    """Eq. 7: a rises by 0.2, b sinks by 0.6; they start 0.4 apart and touch after half the step."""
    state, axis, a_is_lower, top, k, apart = plane(flat(0.0), flat(0.2), flat(0.4), flat(-0.2))
    assert (state, axis, a_is_lower, top) == (BOXES, 2, True, 0.0)
    assert k == pytest.approx(0.1, abs=1e-4)
    assert apart == GAP
    other = plane(flat(0.4), flat(-0.2), flat(0.0), flat(0.2))
    assert (other[0], other[1], other[2]) == (BOXES, 2, False)
    assert other[4] == pytest.approx(k)


def test_boxes_that_move_the_same_way_are_told_apart_by_their_order():
    """Both are above k at time t, where eqs. 8 and 9 would keep both above it."""
    state, _, a_is_lower, top, k, _ = plane(flat(1.0), flat(0.9), flat(1.1), flat(0.5))
    assert (state, a_is_lower) == (BOXES, True)
    assert 0.9 < k < 1.0 == top


def test_boxes_that_pass_beside_each_other_are_clear():
    """They overlap along x and along z, but never at the same time."""
    a = flat(0.0)
    assert plane(a, a, flat(0.5, (3.0, 0.0)), flat(-0.5, (-0.5, 0.0)))[0] == CLEAR
    assert plane(a, a, flat(0.5, (1.5, 0.0)), flat(-0.5, (-0.5, 0.0)))[0] == BOXES


def test_boxes_that_pass_through_each_other_meet_for_a_while():
    """Along z they have passed when they meet along x."""
    a = flat(0.0)
    assert plane(a, a, flat(0.1, (1.5, 0.0)), flat(-0.9, (0.5, 0.0)))[0] == CLEAR
    assert plane(a, a, flat(0.8, (1.5, 0.0)), flat(-0.2, (0.5, 0.0)))[0] == BOXES


def test_boxes_at_rest_in_contact_do_not_collide():
    a, b = flat(0.0), flat(0.3 * GAP)
    assert plane(a, a, b, b)[0] == CLEAR
    state, axis, _, top, k, apart = plane(a, a, b, b - 0.1 * GAP * UP)
    assert (state, axis, top, k) == (BOXES, 2, 0.0, 0.0)
    assert apart == pytest.approx(0.3 * GAP)  # what they have, not what they should have


def test_of_two_axes_that_meet_at_once_the_wider_apart_is_taken():
    a = flat(0.0)
    b_t0, b_t1 = flat(0.5, (1.25, 0.0)), flat(-0.5, (0.75, 0.0))
    assert plane(a, a, b_t0, b_t1, gap=0.0)[1] == 2
    b_t0, b_t1 = flat(0.25, (1.5, 0.0)), flat(-0.25, (0.5, 0.0))
    assert plane(a, a, b_t0, b_t1, gap=0.0)[1] == 0


def test_boxes_that_overlap_at_the_start_have_no_plane():
    tilted = np.array([[0.1, 0.1, -0.1], [0.4, 0.1, 0.3], [0.1, 0.4, 0.3]])
    assert plane(flat(0.0), flat(0.0), tilted, tilted)[0] == OBLIQUE


points = st.lists(st.floats(-1, 1).map(lambda v: round(v, 3)), min_size=9, max_size=9).map(
    lambda values: np.array(values).reshape(3, 3)
)


@given(points, points, points, points)
def test_no_collision_of_boxes_is_missed_and_clamped_ones_are_clear(a_t0, a_t1, b_t0, b_t1):
    a_t1, b_t1 = a_t0 + 0.5 * a_t1, b_t0 + 0.5 * b_t1
    state, axis, a_is_lower, _, k, apart = plane(a_t0, a_t1, b_t0, b_t1)
    s = np.linspace(0.0, 1.0, 101)[:, None, None]
    a, b = a_t0 + s * (a_t1 - a_t0), b_t0 + s * (b_t1 - b_t0)
    meet = ((a.min(axis=1) <= b.max(axis=1)) & (b.min(axis=1) <= a.max(axis=1))).all(axis=1)
    if state == CLEAR:
        assert not meet.any()
    if state == OBLIQUE:
        assert meet[0]
    if state == BOXES:
        assert not meet[0]
        low, high = (a_t1, b_t1) if a_is_lower else (b_t1, a_t1)
        low[:, axis] = np.minimum(low[:, axis], k)
        high[:, axis] = np.maximum(high[:, axis], k + apart)
        assert plane(a_t0, a_t1, b_t0, b_t1)[0] == CLEAR


@pytest.mark.parametrize("n", [1, 2, 150])
def test_every_pair_is_compared(n):
    rng = np.random.default_rng(n)
    x_t0 = np.repeat(rng.uniform(0.0, 1.0, (n, 3)), 3, axis=0) + rng.uniform(0.0, 0.2, (3 * n, 3))
    boxes = moving(x_t0, x_t0 + rng.normal(0.0, 0.1, x_t0.shape), np.arange(3 * n, dtype=np.int32).reshape(n, 3))
    rows = PairBuffer().fill(lambda starts, rows, counts: compare_every_pair(boxes, GAP, starts, rows, counts))
    wanted = [(a, b) for a in range(n) for b in range(a + 1, n) if is_colliding(boxes, a, b, GAP)]
    assert rows.tolist() == [list(pair) for pair in wanted]
    assert len(wanted) > 500 or n < 150
