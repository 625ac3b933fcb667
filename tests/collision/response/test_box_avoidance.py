"""Collision planes, the limits that they set, conflicts between limits, and whole steps that keep boxes apart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collision.response.test_contact_filter import NOTHING

from weft.collision.broad import BROAD_PHASES, join_meshes
from weft.collision.certificate import self_intersections
from weft.collision.response import RESPONSES, StepStart, Surroundings
from weft.collision.response.box_avoidance import (
    BOXES,
    CLEAR,
    OBLIQUE,
    BoxAvoidance,
    BoxAvoidanceParameters,
    collision_plane,
    oblique_plane,
    within_rings,
)
from weft.geometry.mesh import Mesh, build_grid

TWO = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
GAP = 1e-4
DT = 0.01
UP = np.array([0.0, 0.0, 1.0])


def flat(height, offset=(0.0, 0.0)):
    """A level triangle."""
    return np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]) + np.array([*offset, height])


def plane(a_t0, a_t1, b_t0, b_t1, gap=GAP):
    return collision_plane(np.concatenate([a_t0, b_t0]), np.concatenate([a_t1, b_t1]), TWO, 0, 1, gap)


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


def test_rings_of_a_grid():
    mesh = build_grid((1.0, 1.0), (5, 4))
    edges = mesh.topology.edges
    joined = np.zeros((20, 20), bool)
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = True
    wanted = np.eye(20, dtype=bool)
    for rings in range(3):
        near = within_rings(mesh.topology, rings)
        found = np.zeros((20, 20), bool)
        for vi in range(20):
            found[vi, near.row(vi)] = True
        np.testing.assert_array_equal(found, wanted)
        wanted = wanted | (wanted.astype(int) @ joined > 0)


def surroundings(mesh, broad="binary_tree"):
    n = mesh.n_vertices
    return Surroundings(
        mesh, None, np.full(n, 1e-3), np.zeros(n), np.zeros(0), np.ones(n), partial(BROAD_PHASES.load(broad))
    )


def begun(mesh, v, response="box_avoidance", **parameters):
    member = RESPONSES.load(response)
    out = member(surroundings(mesh), member.Parameters(**parameters))
    none, empty = np.zeros((0, 3)), np.zeros(0, np.int32)
    x = mesh.positions
    ahead = x + DT * v
    out.begin(StepStart(x, v, ahead, ahead, np.zeros_like(x), NOTHING, empty, none, none, none, DT))
    return out


def apart(*triangles):
    return join_meshes([Mesh(np.ascontiguousarray(t), np.array([[0, 1, 2]], np.int32)) for t in triangles])


def solve(response, v):
    """What relaxation does to vertices that are joined by nothing: each goes its way, within its interval."""
    held = response.constraints()
    x = response._start.x
    return (np.clip(x + DT * v, held.lower, held.upper) - x) / DT - v


def settled(response, v):
    """Where a step ends: runs until the response asks for no more, then its last word."""
    dv = np.zeros_like(v)
    for _ in range(20):
        if not response.update(NOTHING, dv, np.zeros_like(v)):
            break
        dv = solve(response, v)
    return response.finish(response._start.x + DT * (v + dv), NOTHING)


def test_a_falling_triangle_stops_above_the_other():
    mesh = apart(flat(0.0), flat(0.01))
    v = np.repeat([[0.0, 0, 0], [0.3, 0, -3.0]], 3, axis=0)
    response = begun(mesh, v)
    end = settled(response, v)
    assert response.counts.runs == 2
    np.testing.assert_allclose(end[3:, 2], GAP)
    np.testing.assert_array_equal(end[:3], mesh.positions[:3])
    np.testing.assert_allclose(end[3:, 0], mesh.positions[3:, 0] + 0.3 * DT)  # free to slide
    assert response.counts.unfinished == 0


@pytest.mark.parametrize("speeds", [(3.0, 0.0, -3.0), (3.0, 1.0, -3.0), (6.0, 3.0, -1.0)])
@pytest.mark.parametrize("heights", [(0.0, 0.01, 0.02), (0.0, 0.02, 0.0201), (0.0, 1e-4, 2e-4)])
def test_a_vertex_between_two_obstacles_is_in_conflict_and_gets_out_of_it(speeds, heights):
    """Fig. 6: the middle one is met from above and from below at once, and may press against one of them."""
    mesh = apart(*(flat(height) for height in heights))
    v = np.repeat([[0.0, 0, speed] for speed in speeds], 3, axis=0)
    response = begun(mesh, v)
    end = settled(response, v)
    assert (np.diff(end[::3, 2]) >= 0.99 * GAP).all()
    assert response.counts.most_runs <= 8
    assert response.counts.unfinished == 0


def test_intervals_hold_the_start_so_that_no_limit_pushes():
    mesh = apart(flat(0.0), flat(0.01))
    v = np.repeat([[0.0, 0, -0.1], [0, 0, -3.0]], 3, axis=0)
    response = begun(mesh, v)
    assert response.update(NOTHING, np.zeros_like(v), np.zeros_like(v))
    held = response.constraints()
    assert (held.lower <= mesh.positions).all()
    assert (held.upper >= mesh.positions).all()


@pytest.mark.parametrize("name", ["box_avoidance", "vertex_fixing"])
def test_what_runs_leave_goes_back(name):
    """Without a single solve, `finish` alone keeps triangles from crossing, and leaves the others alone."""
    mesh = apart(flat(0.0), flat(0.01), flat(0.5))
    mesh.positions[3:6] += [[0.2, 0.2, 0.0], [0.1, 0.1, 0.05], [0.2, 0.1, 0.05]]
    v = np.repeat([[0.0, 0, 0], [0, 0, -4.0], [1.0, 0, 0]], 3, axis=0)
    response = begun(mesh, v, name)
    goal = mesh.positions + DT * v
    assert len(self_intersections(goal, mesh.triangles)) == 1
    assert response.finish(goal, NOTHING) is None  # the step is to be halved first
    assert response.counts.halved == 1
    response._longest = 4.0 * DT  # as if it had been, twice
    end = response.finish(goal, NOTHING)
    assert len(self_intersections(end, mesh.triangles)) == 0
    np.testing.assert_array_equal(end[6:], goal[6:])
    assert response.counts.unfinished == 1


def test_neighbours_keep_apart_along_a_direction_of_their_own():
    """A strip of four quads bends until its ends would pass through each other, all of it near itself."""
    mesh = build_grid((0.4, 0.1), (5, 2))
    x = mesh.positions.copy()
    turn = np.cumsum([0.0, 1.4, 1.4, 1.4])
    x[:, 0] = np.repeat(np.cumsum([0.0, *(0.1 * np.cos(turn))]), 2)
    x[:, 2] = np.repeat(np.cumsum([0.0, *(0.1 * np.sin(turn))]), 2)
    curled = Mesh(np.ascontiguousarray(x), mesh.triangles, mesh.material, mesh.grid_shape)
    v = np.zeros_like(x)
    v[8:] = [3.0, 0.0, -6.0]  # the last edge dives through the first quad
    goal = x + DT * v
    assert len(self_intersections(x, mesh.triangles)) == 0
    assert len(self_intersections(goal, mesh.triangles)) > 0
    response = begun(curled, v, rings=4)
    end = settled(response, v)
    assert len(self_intersections(end, mesh.triangles)) == 0


def test_triangles_that_cross_already_are_left_alone():
    tilted = np.array([[0.1, 0.1, -0.1], [0.2, 0.1, 0.3], [0.1, 0.2, 0.3]])
    x = np.concatenate([flat(0.0), tilted])
    collides, _, _ = oblique_plane(x, x + 0.1, TWO, 0, 1, GAP)
    assert not collides


def test_vertices_of_crossing_triangles_are_fixed_in_s1():
    mesh = apart(flat(0.0), flat(0.01), flat(0.5))
    mesh.positions[4:6, 2] += 0.05
    v = np.repeat([[0.0, 0, 0], [0, 0, -3.0], [1.0, 0, 0]], 3, axis=0)
    response = begun(mesh, v, "vertex_fixing")
    assert response.update(NOTHING, np.zeros_like(v), np.zeros_like(v))
    held = response.constraints()
    np.testing.assert_array_equal(held.lower[:6], mesh.positions[:6])
    np.testing.assert_array_equal(held.upper[:6], mesh.positions[:6])
    assert np.isinf(held.upper[6:]).all()
    dv = solve(response, v)
    assert not response.update(NOTHING, dv, np.zeros_like(v))


def test_parameters_are_bounded():
    assert BoxAvoidance.Parameters is BoxAvoidanceParameters
    with pytest.raises(ValueError, match="gap"):
        BoxAvoidanceParameters(gap=0.0)
