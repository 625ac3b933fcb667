"""Dividing planes on soups of triangles that fly through each other: no pair may meet on the way that is left to it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collision.response.soups import NOTHING, begun, n_meetings, soup

from weft.collision.certificate import self_intersections
from weft.collision.response.dividing_planes import DividingPlanes, DividingPlanesParameters
from weft.geometry.mesh import Mesh


def finished(cloth, goal, bodies=None, bodies_t1=None, guess=None, **parameters):
    """Where a step from `cloth` towards `goal` ends; `guess` is where the pairs were looked for."""
    expected = goal if guess is None else guess
    response = begun(
        lambda surroundings: DividingPlanes(surroundings, DividingPlanesParameters(**parameters)),
        cloth,
        expected,
        bodies=bodies,
        bodies_t1=bodies_t1,
    )
    return response, response.finish(goal.copy(), NOTHING)


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
