"""Pairs that hold while vertices stay in their rooms: none is missed, and few searches are made."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles import box_pairs

from weft.collision.broad import BROAD_PHASES
from weft.collision.response.lasting_pairs import ROOM, LastingPairs, stays_inside
from weft.geometry.mesh import build_grid

MARGIN = 1e-3


class Counted:
    """A broad phase that counts its searches."""

    def __init__(self, phase):
        self.phase, self.searches = phase, 0

    def refit(self, *arguments):
        self.phase.refit(*arguments)

    def apart_pairs(self):
        self.searches += 1
        return self.phase.apart_pairs()


def lasting(mesh):
    return LastingPairs(mesh, Counted(BROAD_PHASES.load("binary_tree")(mesh)), MARGIN)


def test_no_pair_is_missed_however_far_vertices_go():
    mesh = build_grid((1.0, 1.0), (9, 9))
    pairs = lasting(mesh)
    rng = np.random.default_rng(3)
    x = mesh.positions * [0.3, 0.3, 0.0] + rng.normal(0.0, 0.03, mesh.positions.shape)  # crumpled
    shared = (mesh.triangles[:, None, :, None] == mesh.triangles[None, :, None, :]).any(axis=(2, 3))
    steps = 60
    for step in range(steps):
        x_t1 = x + rng.normal(0.0, pairs.room * (0.02 if step % 6 else 1.0), x.shape)
        for _ in range(3):  # runs from the same start
            x_t1 += rng.normal(0.0, 0.02 * pairs.room, x.shape)
            found = {tuple(row) for row in pairs.between(x, x_t1).tolist()}
            wanted = {(a, b) for a, b in box_pairs.triangle_pairs(x, x_t1, mesh.triangles, MARGIN) if not shared[a, b]}
            assert wanted <= found
            assert not any(shared[a, b] for a, b in found)
        x = x_t1
    assert steps // 6 <= pairs.phase.searches < steps


def test_runs_and_small_steps_share_a_search():
    mesh = build_grid((1.0, 1.0), (6, 6))
    pairs = lasting(mesh)
    x = mesh.positions
    assert pairs.room == pytest.approx(ROOM * 0.2, rel=0.2)
    heights = pairs.room * np.outer([0.0, 0.2, 0.4, 0.6, 0.8, 2.0], [0.0, 0.0, 1.0])  # room for 0.2 and another 1.2
    for k in range(4):
        pairs.between(x + heights[k], x + heights[k + 1])
    assert pairs.phase.searches == 1
    pairs.between(x + heights[4], x + heights[5])
    assert pairs.phase.searches == 2


def test_a_vertex_may_go_on_as_far_again():
    mesh = build_grid((1.0, 1.0), (6, 6))
    pairs = lasting(mesh)
    x, way = mesh.positions, np.array([0.0, 0.1, -0.3])
    for searches, k in ((1, 0), (1, 1), (2, 2)):
        pairs.between(x + k * way, x + (k + 1) * way)
        assert pairs.phase.searches == searches


def test_a_vertex_is_inside_at_both_ends():
    lower, upper = np.zeros((2, 3)), np.ones((2, 3))
    inside = np.full((2, 3), 0.5)
    assert stays_inside(inside, inside, lower, upper)
    for value in (-0.1, 1.1, np.nan):
        out = inside.copy()
        out[1, 2] = value
        assert not stays_inside(inside, out, lower, upper)
        assert not stays_inside(out, inside, lower, upper)
