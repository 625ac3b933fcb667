"""Dividing planes on soups of triangles that fly through each other: no pair may meet on the way that is left to it."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pytest

from weft.collision.broad import BROAD_PHASES
from weft.collision.broad.boxes import corners
from weft.collision.certificate import self_intersections
from weft.collision.narrow.continuous import time_of_impact
from weft.collision.response import StepStart, Surroundings
from weft.collision.response.dividing_planes import DividingPlanes, DividingPlanesParameters
from weft.geometry.contacts import join_contacts
from weft.geometry.mesh import Mesh

DT = 0.01
NOTHING = join_contacts([])


def soup(rng, n_triangles, spread=1.0):
    """Triangles of about 0.2 m that do not cross, packed into a box."""
    kept: list[np.ndarray] = []
    while len(kept) < n_triangles:
        new = rng.uniform(-spread / 2, spread / 2, 3) + rng.uniform(-0.15, 0.15, (3, 3))
        points = np.concatenate([*kept, new])
        if len(self_intersections(points, np.arange(len(points), dtype=np.int32).reshape(-1, 3))) == 0:
            kept.append(new)
    return Mesh(np.concatenate(kept), np.arange(3 * n_triangles, dtype=np.int32).reshape(-1, 3))


def finished(cloth, goal, bodies=None, bodies_t1=None, guess=None, **parameters):
    """Where a step from `cloth` towards `goal` ends; `guess` is where the pairs were looked for."""
    x, n = cloth.positions, cloth.n_vertices
    bodies_t0 = np.zeros((0, 3)) if bodies is None else bodies.positions
    surroundings = Surroundings(
        cloth,
        bodies,
        np.full(n, 0.01),
        np.full(n, 0.3),
        np.full(len(bodies_t0), -1.0),
        np.full(n, 1e-3),
        partial(BROAD_PHASES.load("linear_tree")),
    )
    response = DividingPlanes(surroundings, DividingPlanesParameters(**parameters))
    none = np.zeros(0, np.int32)
    expected = goal if guess is None else guess
    v = (expected - x) / DT
    response.begin(
        StepStart(
            x=x,
            v=v,
            ahead=expected,
            x_free=expected,
            impulses=np.zeros_like(x),
            contacts=NOTHING,
            pinned=none,
            pin_velocities=np.zeros((0, 3)),
            bodies_t0=bodies_t0,
            bodies_t1=bodies_t0 if bodies_t1 is None else bodies_t1,
            dt=DT,
        )
    )
    return response, response.finish(goal.copy(), NOTHING)


def n_meetings(x_t0, x_t1, triangles, kinds=("vertex-triangle", "edge-edge")):
    """Pairs of triangles without a common vertex that meet on the straight way, by the conservative test."""
    found = 0
    for a, b in combinations(range(len(triangles)), 2):
        p, q = triangles[a], triangles[b]
        rows = [(i, *q) for i in p] + [(i, *p) for i in q]
        found += int((time_of_impact(x_t0[rows], x_t1[rows], kind=kinds[0]) <= 1.0).any())
        edges = [((t[0], t[1]), (t[1], t[2]), (t[2], t[0])) for t in (p, q)]
        rows = [(*e, *f) for e in edges[0] for f in edges[1]]
        found += int((time_of_impact(x_t0[rows], x_t1[rows], kind=kinds[1]) <= 1.0).any())
    return found


@pytest.mark.parametrize("speed", [0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_meets_on_the_way(seed, speed):
    """One safe move. Each vertex flies its own way, so pairs count on vertices that other pairs hold back."""
    rng = np.random.default_rng(seed)
    cloth = soup(rng, 14, 0.6)
    goal = cloth.positions + rng.normal(size=cloth.positions.shape) * speed
    assert n_meetings(cloth.positions, goal, cloth.triangles) > 0
    response, end = finished(cloth, goal, rounds=1)
    assert n_meetings(cloth.positions, end, cloth.triangles) == 0
    assert response.held_back > 0


def test_more_rounds_go_further_and_cross_nothing(rng):
    cloth = soup(rng, 14, 0.6)
    goal = cloth.positions + rng.normal(size=cloth.positions.shape) * 0.1
    ends = [finished(cloth, goal, rounds=rounds)[1] for rounds in (1, 6)]
    left = [np.linalg.norm(goal - end, axis=1).sum() for end in ends]
    assert left[1] < left[0]
    assert len(self_intersections(ends[1], cloth.triangles)) == 0


def test_what_moves_together_is_not_held_back(rng):
    """The whole soup goes a long way and turns a little: no pair comes closer, and all get there."""
    cloth = soup(rng, 14, 0.6)
    goal = cloth.positions + np.array([3.0, -1.0, 0.5])
    response, end = finished(cloth, goal)
    np.testing.assert_array_equal(end, goal)
    assert response.held_back == 0


def test_no_vertex_leaves_the_box_in_which_its_pairs_were_looked_for(rng):
    cloth = soup(rng, 6, 0.6)
    x = cloth.positions
    _, end = finished(cloth, x + 0.5, guess=x + np.array([0.0, 0.0, 0.1]), rounds=1)
    assert (end - x)[:, :2].max() < 0.01
    assert (end - x)[:, 2].max() < 0.11


def test_boxes_of_the_broad_phase_hold_what_vertices_may_do(rng):
    """Cloth is pushed in all directions from where it is expected: no vertex leaves the box that found its pairs."""
    cloth = soup(rng, 6, 0.6)
    x = cloth.positions
    response, end = finished(cloth, x + rng.normal(size=x.shape), guess=x, rounds=1)
    lower, upper = corners(response._finder._cloth_phase._vertex_boxes)
    assert (np.abs(end - x).max(axis=0) > 0.005).all(), "the boxes leave room"
    assert (lower[:-1] <= end).all()
    assert (end <= upper[:-1]).all()


def test_a_body_that_moves_into_cloth_asks_for_a_shorter_step(rng):
    cloth = soup(rng, 1, 0.1)
    body = Mesh(cloth.positions - np.array([0.0, 0.0, 0.5]), cloth.triangles)
    low = cloth.positions.copy()
    _, end = finished(cloth, low, body, body.positions + np.array([0.0, 0.0, 1.0]))
    assert end is None
    away = body.positions - np.array([0.0, 0.0, 1.0])
    np.testing.assert_array_equal(finished(cloth, low, body, away)[1], low)


def test_cloth_that_flees_from_a_body_is_let_go(rng):
    """The body comes to where the cloth was, and the cloth is no longer there."""
    cloth = soup(rng, 1, 0.1)
    body = Mesh(cloth.positions - np.array([0.0, 0.0, 0.5]), cloth.triangles)
    goal = cloth.positions + np.array([0.0, 0.0, 1.0])
    _, end = finished(cloth, goal, body, body.positions + np.array([0.0, 0.0, 0.8]))
    np.testing.assert_array_equal(end, goal)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_what_follows_cloth_that_is_held_back_is_held_back_too(order):
    """A large triangle flees from a small one, but another small one stops it: the first must stop as well."""
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    places = [(0.1, [0.05, 0.05, 0.0], 0.4), (1.0, [0.0, 0.0, 0.1], 0.6), (0.1, [0.8, 0.05, 0.3], 0.3)]
    chosen = [places[k] for k in order]
    x = np.concatenate([size * flat + at for size, at, _ in chosen])
    goal = x.copy()
    goal[:, 2] = np.repeat([height for _, _, height in chosen], 3)
    cloth = Mesh(x, np.arange(9, dtype=np.int32).reshape(-1, 3))
    assert n_meetings(x, goal, cloth.triangles) == 1  # the large one and the upper small one
    _, end = finished(cloth, goal, rounds=1)
    assert n_meetings(x, end, cloth.triangles) == 0
