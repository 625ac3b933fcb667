"""Exchanged impulses: what they conserve, what they reach, and what friction may do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from tests.collision.response.soups import DT, NOTHING, begun, n_meetings, soup

from weft.collision.narrow.proximity import closest_features
from weft.collision.response.impulses import Impulses, ImpulsesParameters, PairList, build_exchanges, exchange_impulses
from weft.geometry.mesh import Mesh


def contacts(rng, x, friction=0.0, n=12):
    """Pairs of random vertices of `x`, at their closest points, that must part by up to 1 mm."""
    rows = np.stack([rng.permutation(len(x))[:4] for _ in range(n)]).astype(np.int32)
    found = [closest_features(x, rows[:half], edges) for half, edges in ((n // 2, True), (n, False))]
    rows = np.concatenate([rows[: n // 2], rows])
    weights, normals = (np.concatenate([getattr(f, name) for f in found]) for name in ("weights", "normals"))
    k = len(rows)
    return build_exchanges(
        rows, weights, normals, np.zeros((k, 3)), rng.uniform(0, 1e-3, k), np.full(k, float(friction))
    )


def exchange(x, inv_masses, e, goal, sweeps):
    return exchange_impulses(
        x,
        inv_masses,
        e.rows,
        e.weights,
        e.normals,
        e.offsets,
        e.targets,
        e.friction,
        sweeps,
        0.0,
        e.pushes,
        e.drags,
        goal,
    )


def parting(x, e, goal):
    """How far each contact parts along its normal, and its slip."""
    way = np.einsum("qk,qkc->qc", e.weights, (goal - x)[e.rows]) - e.offsets
    across = (way * e.normals).sum(axis=1)
    return across, way - across[:, None] * e.normals


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_momentum_is_conserved(friction, rng):
    """And without friction, which acts at a distance, angular momentum about any point."""
    x, masses = rng.normal(size=(30, 3)), rng.uniform(1.0, 3.0, 30)
    goal = x + rng.normal(scale=0.01, size=x.shape)
    momenta = masses @ (goal - x), (masses[:, None] * np.cross(x, goal - x)).sum(axis=0)
    moved = goal.copy()
    exchange(x, 1.0 / masses, contacts(rng, x, friction), moved, 7)
    assert np.abs(moved - goal).max() > 1e-3
    np.testing.assert_allclose(masses @ (moved - x), momenta[0], atol=1e-14)
    if friction == 0.0:
        np.testing.assert_allclose((masses[:, None] * np.cross(x, moved - x)).sum(axis=0), momenta[1], atol=1e-13)


def test_sweeps_lead_to_the_nearest_motion_that_parts_all(rng):
    """The dual of min |y - y*|_M with C y >= t: lambda >= 0, by bounded least squares."""
    x, masses = rng.normal(size=(30, 3)), rng.uniform(1.0, 3.0, 30)
    e = contacts(rng, x)
    goal = x + rng.normal(scale=0.01, size=x.shape)
    gradient = np.zeros((len(e.rows), 30, 3))
    for q, row in enumerate(e.rows):
        for place, i in enumerate(row):
            gradient[q, i] += e.weights[q, place] * e.normals[q]
    scaled = (gradient / np.sqrt(masses)[None, :, None]).reshape(len(e.rows), -1)
    missing = e.targets - parting(x, e, goal)[0]
    root = np.linalg.cholesky(scaled @ scaled.T + 1e-15 * np.eye(len(e.rows)))
    dual = lsq_linear(root.T, np.linalg.solve(root, missing), bounds=(0.0, np.inf), tol=1e-14).x
    wanted = goal + (scaled.T @ dual).reshape(-1, 3) / np.sqrt(masses)[:, None]
    exchange(x, 1.0 / masses, e, goal, 20_000)
    assert (dual == 0.0).any() or (dual < 1e-12).any()
    np.testing.assert_allclose(goal, wanted, atol=1e-9)


def test_pins_and_bodies_stay_and_the_others_do_all_the_parting(rng):
    x = rng.normal(size=(8, 3))
    e = contacts(rng, x, n=1)
    inv_masses = np.zeros(8)
    free = e.rows[0, 0]
    inv_masses[free] = 5.0
    goal = x.copy()
    exchange(x, inv_masses, e, goal, 1)
    np.testing.assert_allclose(parting(x, e, goal)[0], e.targets, rtol=1e-12)
    others = np.delete(np.arange(8), free)
    np.testing.assert_array_equal(goal[others], x[others])


@pytest.mark.parametrize(("slip", "sticks"), [(2e-4, True), (9e-4, False)])
def test_coulomb(slip, sticks):
    """A vertex that approaches a body by 1 mm with friction 0.5 can be held against 0.5 mm of slip, not more."""
    x, goal = np.zeros((1, 3)), np.array([[slip, 0.0, -1e-3]])
    e = build_exchanges(
        np.zeros((1, 4), np.int32),
        np.array([[1.0, 0, 0, 0]]),
        np.array([[0.0, 0, 1]]),
        np.zeros((1, 3)),
        np.zeros(1),
        np.array([0.5]),
    )
    exchange(x, np.ones(1), e, goal, 3)
    np.testing.assert_allclose(goal, [[0.0 if sticks else slip - 5e-4, 0.0, 0.0]], atol=1e-15)


def test_a_later_sweep_takes_back_what_was_too_much_and_no_more():
    """Of two equal contacts the second has nothing to do, and none ever pulls."""
    x, goal = np.zeros((1, 3)), np.array([[0.0, 0.0, -1e-3]])
    one = (np.zeros((1, 4), np.int32), np.array([[1.0, 0, 0, 0]]), np.array([[0.0, 0, 1]]), np.zeros((1, 3)))
    e = build_exchanges(*(np.repeat(part, 2, axis=0) for part in one), np.array([2e-3, 1e-3]), np.zeros(2))
    exchange(x, np.ones(1), e, goal, 10)
    np.testing.assert_allclose(goal[0, 2], 2e-3, atol=1e-15)
    np.testing.assert_allclose(e.pushes, [3e-3, 0.0], atol=1e-15)


def sheets(gap):
    """Two triangles one above the other, the upper one coming down by 5 mm."""
    flat = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.3, 0.0]])
    small = 0.2 * flat + np.array([0.1, 0.1, gap])
    goal = np.concatenate([flat, small - np.array([0.0, 0.0, 0.005])])
    return Mesh(np.concatenate([flat, small]), np.arange(6, dtype=np.int32).reshape(2, 3)), goal


def test_stage_one_stops_what_is_near_and_parts_it():
    cloth, goal = sheets(0.006)
    heavy = np.repeat([1e6, 1.0], 3)
    response = begun(lambda s: Impulses(s, ImpulsesParameters(sweeps=1000)), cloth, goal, masses=heavy)
    end = response.finish(goal, NOTHING)
    gap = end[3:, 2].min() - end[:3, 2].max()
    overlap = 0.01 - 0.006
    assert gap == pytest.approx(0.006 + 0.1 * overlap, abs=1e-5)
    assert response.counts.near > 0
    assert response.counts.met == 0


def test_stage_two_stops_what_would_pass_through():
    cloth, goal = sheets(0.02)
    goal[3:, 2] -= 0.1
    assert n_meetings(cloth.positions, goal, cloth.triangles) == 1
    response = begun(Impulses, cloth, goal)
    end = response.finish(goal, NOTHING)
    assert response.counts.near == 0
    assert response.counts.met > 0
    assert end[3:, 2].mean() > end[:3, 2].mean()


def test_without_self_collision_cloth_passes_through_cloth():
    cloth, goal = sheets(0.006)
    goal[3:, 2] -= 0.1
    response = begun(lambda s: Impulses(s, ImpulsesParameters(self_collision=False)), cloth, goal)
    np.testing.assert_array_equal(response.finish(goal, NOTHING), goal)


def test_as_published_it_is_not_failsafe():
    """One pass of impulses, each for itself, leaves crossings in a soup that flies apart and together."""
    left = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cloth = soup(rng, 14, 0.6)
        goal = cloth.positions + rng.normal(size=cloth.positions.shape) * 0.1
        end = begun(Impulses, cloth, goal).finish(goal, NOTHING)
        left += n_meetings(cloth.positions, end, cloth.triangles)
    assert left > 0


def test_recovery_is_a_time(rng):
    """Half the recovery time, twice the speed of parting, up to a tenth of the overlap in a step."""
    ways = []
    for recovery in (0.4, 0.2, 1e-3):
        cloth, _ = sheets(0.006)
        still = cloth.positions
        response = begun(lambda s, r=recovery: Impulses(s, ImpulsesParameters(recovery=r)), cloth, still)
        end = response.finish(still, NOTHING)
        ways.append(float((end - still)[3:, 2].max()))
    assert ways[1] == pytest.approx(2.0 * ways[0], rel=1e-9)
    assert ways[2] == pytest.approx(ways[0] * 0.1 * 0.4 / DT, rel=1e-9)


def test_the_list_of_pairs_changes_nothing(rng):
    """A step from a list made steps ago ends with the same bits as one from a list of its own."""
    cloth, _ = sheets(0.006)
    walk = [cloth.positions + 1e-4 * k * rng.normal(size=cloth.positions.shape) for k in range(6)]
    parameters = ImpulsesParameters(sweeps=20, passes=5, detection="conservative", friction=True)
    old = begun(lambda s: Impulses(s, parameters), cloth, walk[1])
    listed = []
    for x, goal in pairwise(walk):
        far = goal + 3e-3 * np.sign(goal)
        start = old._start._replace(x=x)
        old.begin(start)
        wanted = old.finish(far.copy(), NOTHING)
        new = begun(lambda s: Impulses(s, parameters), cloth, walk[1])
        new.begin(start)
        np.testing.assert_array_equal(new.finish(far.copy(), NOTHING), wanted)
        listed.append(old._listed.x)
    assert new.counts.near > 0
    assert sum(a is not b for a, b in pairwise(listed)) < len(listed) - 1, "the list was made anew each time"


def test_pairs_are_listed_in_the_order_of_their_vertices(rng):
    """Whatever the broad phase gives: a run that is taken up again lists pairs at another time."""
    cloth = soup(rng, 14, 0.4)
    response = begun(Impulses, cloth, cloth.positions + 0.05)
    response.finish(cloth.positions + 0.05, NOTHING)
    for rows in (response._listed.vertex_triangle.tolist(), response._listed.edge_edge.tolist()):
        assert len(rows) > 10
        assert rows == sorted(rows)


def test_a_list_holds_as_long_as_no_vertex_leaves_its_reach():
    x = np.zeros((2, 3))
    none = np.zeros((0, 4), np.int32)
    listed = PairList(x, 0.1, none, none)
    assert listed.holds(x + 0.05, x - 0.05)
    assert not listed.holds(x, x + np.array([[0.0, 0, 0], [0.08, 0.08, 0]]))
    assert not listed._replace(reach=-1.0).holds(x, x)
