"""The limits that collision planes set, conflicts between limits, and whole steps that keep boxes apart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.collision.response.test_contact_filter import NOTHING

from weft.collision.broad import BROAD_PHASES, join_meshes
from weft.collision.certificate import self_intersections
from weft.collision.response import RESPONSES, StepStart, Surroundings
from weft.collision.response.box_avoidance import (
    BoxAvoidance,
    BoxAvoidanceParameters,
    _is_near,
    near_triangles,
    oblique_plane,
)
from weft.geometry.mesh import Mesh, build_grid

TWO = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
GAP = 1e-4
DT = 0.01


def flat(height, offset=(0.0, 0.0)):
    """A level triangle."""
    return np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]) + np.array([*offset, height])


def test_rings_of_a_grid():
    mesh = build_grid((1.0, 1.0), (5, 4))
    edges, triangles = mesh.topology.edges, mesh.triangles
    joined = np.eye(20, dtype=int)
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = 1
    corners = (triangles[:, :, None] == np.arange(20)).any(axis=1).astype(int)
    for rings in range(3):
        wanted = corners @ np.linalg.matrix_power(joined, rings) @ corners.T > 0
        near = near_triangles(mesh.topology, rings)
        for ta in range(len(triangles)):
            np.testing.assert_array_equal(near.row(ta), np.flatnonzero(wanted[ta]))
            assert [_is_near(near, ta, tb) for tb in range(len(triangles))] == wanted[ta].tolist()


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
    out.begin(StepStart(x, v, ahead, ahead, ahead, np.zeros_like(x), NOTHING, empty, none, none, none, DT))
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


def test_the_hierarchy_finds_the_same_pairs():
    """Over steps and runs, with vertices that stay where they were searched for and others that do not."""
    mesh = build_grid((1.0, 1.0), (13, 13))
    rng = np.random.default_rng(5)
    x = mesh.positions * [0.4, 0.4, 0.0] + rng.normal(0.0, 0.01, mesh.positions.shape)
    searched, compared = (begun(mesh, np.zeros_like(x), hierarchy=hierarchy) for hierarchy in (True, False))
    for step in range(12):
        way = rng.normal(0.0, 1e-2 if step % 4 == 0 else 1e-5, x.shape)
        for response in (searched, compared):
            response.begin(response._start._replace(x=x))
        for run in range(3):
            x_t1 = x + way / (run + 1)
            found = [{tuple(row) for row in r._colliding(x_t1).tolist()} for r in (searched, compared)]
            assert found[0] == found[1]
            assert len(found[0]) > 100
        x = x_t1
    assert 0 < searched.counts.box_tests < 0.5 * compared.counts.box_tests


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
