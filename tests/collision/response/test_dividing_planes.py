"""Dividing planes on soups of triangles that fly through each other: no pair may meet on the way that is left to it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collision.response.soups import DT, NOTHING, begun, n_meetings, soup

from weft.collision.broad.linear_tree import LinearTree
from weft.collision.certificate import self_intersections
from weft.collision.response.contact_law import Law, Slips, excess_drags, let_slide, normal_impulses, push_off
from weft.collision.response.dividing_planes import DividingPlanes, DividingPlanesParameters
from weft.geometry.contacts import PlaneContacts
from weft.geometry.mesh import Mesh, build_grid


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


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_meets_where_a_few_go_another_way(seed, rounds, monkeypatch):
    """The boxes are widened for these few, and for those that they hold back."""
    rng = np.random.default_rng(seed)
    cloth = soup(rng, 60, 1.0)
    guess = cloth.positions + np.array([0.0, 0.0, -0.3])
    goal = guess.copy()
    goal[rng.choice(180, 6, replace=False)] += 0.8 * rng.normal(size=(6, 3))
    widened = []
    widen = LinearTree.widen
    monkeypatch.setattr(LinearTree, "widen", lambda self, *args: widened.append(args) or widen(self, *args))
    assert n_meetings(cloth.positions, goal, cloth.triangles) > 0
    _, end = finished(cloth, goal, guess=guess, rounds=rounds)
    assert len(self_intersections(end, cloth.triangles)) == 0
    assert rounds > 1 or n_meetings(cloth.positions, end, cloth.triangles) == 0
    assert widened


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


@pytest.mark.parametrize("fall", [[0.0, 0.0, 0.0], [0.0, 0.0, -0.4]])
def test_a_pair_that_was_not_expected_to_meet_is_found(fall):
    """Two triangles far apart, and one goes through the other though both were to fall side by side."""
    small = np.array([[-0.1, -0.1, 0.0], [0.1, -0.1, 0.0], [0.0, 0.1, 0.0]])
    x = np.concatenate([small, 10.0 * small - [0.0, 0.0, 1.0]])
    cloth = Mesh(x, np.arange(6, dtype=np.int32).reshape(-1, 3))
    goal = x + fall
    goal[:3, 2] -= 2.0
    assert n_meetings(x, goal, cloth.triangles) > 0
    _, end = finished(cloth, goal, guess=x + fall, rounds=1)
    assert n_meetings(x, end, cloth.triangles) == 0
    np.testing.assert_array_equal(finished(cloth, x + fall)[1], x + fall)


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
    response, stays = finished(cloth, x, rounds=1)
    assert n_meetings(stays, response.follow(goal), cloth.triangles) == 0


def test_a_pair_that_turns_as_it_passes_is_not_held_back():
    """A small triangle above a large one goes over its edge and down beside it: what divides them at the start does not
    at the end."""
    small = np.array([[0.0, 0.0, 0.1], [0.01, 0.0, 0.1], [0.0, 0.01, 0.1]])
    x = np.concatenate([small, [[-1.0, -1.0, 0.0], [0.05, -1.0, 0.0], [0.05, 1.0, 0.0]]])
    cloth = Mesh(x, np.arange(6, dtype=np.int32).reshape(-1, 3))
    goal = x.copy()
    goal[:3] += [0.3, 0.0, -0.2]
    response, end = finished(cloth, goal, rounds=1)
    assert n_meetings(x, goal, cloth.triangles) == 0
    assert response.held_back == 0
    np.testing.assert_array_equal(end, goal)


def test_what_is_put_before_a_plane_is_not_squeezed(rng):
    """Vertices all want to go through a slanted plane, and end just before it: rounding must not stop the step."""
    mesh = build_grid((1.0, 1.0), (30, 30))
    cloth = Mesh(mesh.positions + rng.normal(size=(900, 3)) * 1e-3 + [0.3, 0.2, 2.0], mesh.triangles)
    normals = np.tile(np.array([0.3, -0.1, 1.0]) / np.linalg.norm([0.3, -0.1, 1.0]), (900, 1))
    gaps = (cloth.positions * normals).sum(axis=1) - 1.0
    assert gaps.min() > 0.1
    every = np.arange(900, dtype=np.int32)
    contacts = PlaneContacts(every, 0 * every, normals, gaps, np.zeros((900, 3)), np.zeros(900))
    goal = cloth.positions - 1.5 * gaps[:, None] * normals
    response = begun(lambda surroundings: DividingPlanes(surroundings), cloth, goal)
    end = response.finish(goal, contacts)
    assert response.held_back == 0
    assert ((end * normals).sum(axis=1) > 1.0 - 0.01).all()


@pytest.mark.parametrize("seed", range(6))
def test_following_goes_on_from_where_the_step_ended_and_crosses_nothing(seed):
    rng = np.random.default_rng(seed)
    cloth = soup(rng, 14, 0.6)
    response, end = finished(cloth, cloth.positions + rng.normal(size=cloth.positions.shape) * 0.1, rounds=1)
    goal = end + rng.normal(size=end.shape) * 0.2
    goal[::3] = end[::3]
    assert n_meetings(end, goal, cloth.triangles) > 0
    moved = response.follow(goal)
    assert n_meetings(end, moved, cloth.triangles) == 0
    np.testing.assert_array_equal(moved[::3], end[::3])
    assert np.linalg.norm(goal - moved) < 0.9 * np.linalg.norm(goal - end)
    held_back = response.held_back
    back = response.follow(moved)
    np.testing.assert_array_equal(back, moved)
    assert response.held_back == held_back > 0


FLAT = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def stacked(places):
    """Triangles in planes z = const, a size and a place each."""
    x = np.concatenate([size * FLAT + at for size, at in places])
    return Mesh(x, np.arange(len(x), dtype=np.int32).reshape(-1, 3))


def test_a_pair_that_was_to_move_together_is_found_when_one_stays():
    """Two were to rise together, two others to sink, so that nothing drifts; then the upper ones of both stay."""
    cloth = stacked([(0.02, [0, 0, 0]), (0.02, [0, 0, 0.1]), (0.02, [5, 0, 0]), (0.02, [5, 0, 0.1])])
    x = cloth.positions
    guess = x + np.repeat([0.6, 0.6, -0.6, -0.6], 3)[:, None] * [0.0, 0.0, 1.0]
    goal = guess.copy()
    goal[3:6], goal[9:] = x[3:6], x[9:]
    assert n_meetings(x, goal, cloth.triangles) > 0
    _, end = finished(cloth, goal, guess=guess, rounds=1)
    assert n_meetings(x, end, cloth.triangles) == 0
    np.testing.assert_array_equal(finished(cloth, guess)[1], guess)


def test_what_moved_together_with_cloth_that_is_held_back_is_held_back_too():
    """A small triangle rises below a larger one that rises faster, until a third stops the larger one."""
    cloth = stacked([(0.02, [0, 0, 0]), (0.1, [0, 0, 0.1]), (0.02, [0.08, 0, 0.3])])
    x, goal = cloth.positions, cloth.positions.copy()
    goal[:, 2] = np.repeat([0.4, 0.6, 0.3], 3)
    _, end = finished(cloth, goal, rounds=1)
    assert n_meetings(x, end, cloth.triangles) == 0
    assert (end[:3, 2] < 0.3).all()


def test_what_is_held_back_later_is_found_by_what_was_held_back_before():
    """One end of an edge is stopped at once; it lifts its other end below a triangle that was to rise as fast.

    That triangle is stopped only by one that is stopped first, so the pair is looked for when one of its vertices was
    held back before, and the others were then taken to go all the way.
    """
    ways = [
        # the edge from the first to the second vertex; the second goes against a wall
        ([[0.2, 0.87, 0.0], [2.0, 0.87, 0.0], [2.0, 0.3, 0.0]], [[0.0, 0.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        ([[2.1, -3.0, -3.0], [2.1, 5.0, -3.0], [2.1, 0.87, 6.0]], np.zeros((3, 3))),
        ([[0.4, 0.83, 0.1], [0.4, 0.95, 0.1], [0.8, 4.0, 0.1]], np.tile([0.0, 0.0, 0.5], (3, 1))),
        # above the one before, stopped by the last
        ([[-1.0, 2.0, 0.2], [1.8, 2.0, 0.2], [1.0, 3.0, 0.2]], np.tile([0.0, 0.0, 0.5], (3, 1))),
        ([[-2.0, 1.5, 0.3], [-0.5, 1.5, 0.3], [-1.0, 3.0, 0.3]], np.zeros((3, 3))),
    ]
    others = build_grid((1.0, 1.0), (20, 20))  # boxes are widened where few are held back
    n = 3 * len(ways)
    x = np.concatenate([*(part for part, _ in ways), others.positions + 9.0])
    goal = x + np.concatenate([*(way for _, way in ways), np.tile([0.0, 0.0, 0.5], (others.n_vertices, 1))])
    triangles = np.concatenate([np.arange(n, dtype=np.int32).reshape(-1, 3), others.triangles + np.int32(n)])
    _, end = finished(Mesh(x, triangles), goal, rounds=1)
    assert n_meetings(x, end, triangles[: len(ways)]) == 0
    assert (end[6:9, 2] < 0.3).all(), "the second was stopped"
    assert end[1, 0] < 2.1, "and so was the end of the edge"


def pushed(depth, speed, dt=1 / 120, load=0.0):
    """Impulse (3,) and drag (3, 3) on a vertex of 1 g, `depth` too near a floor at rest and rising at `speed`.

    In the last step the floor bore `load` [N].
    """
    x, v = np.array([[0.0, 0.0, 0.01 - depth]]), np.array([[0.0, 0.0, speed]])
    drag, impulse = np.zeros((1, 3, 3)), np.zeros((1, 3))
    up, none, one = np.array([[0.0, 0.0, 1.0]]), np.zeros((1, 3)), np.zeros(1, np.int32)
    ahead = x + dt * v
    law = (dt, 500.0 * 120.0**2, 5.0, 5e-4)
    motion = (x, ahead, ahead, v)
    masses, clearance = np.array([1e-3]), np.array([0.01])
    touches, is_loose = np.zeros(1, np.uint8), np.zeros(1, np.bool_)
    along, drags, limits = np.zeros((3, 1))
    push_off(
        one,
        up,
        np.array([-depth]),
        none,
        np.zeros(1),
        motion,
        clearance,
        masses,
        dt * load * up,
        law,
        drag,
        impulse,
        touches,
        along,
        np.zeros((1, 3)),
        is_loose,
        drags,
        limits,
    )
    return impulse[0], drag[0]


def test_what_parts_by_itself_is_neither_pushed_nor_pulled():
    """At the speed of its inertia the contact gives nothing; only what would slow it down is resisted."""
    impulse, drag = pushed(0.004, 0.3)
    np.testing.assert_allclose(impulse, 0.0, atol=1e-15)
    assert drag[2, 2] > 0.0
    assert pushed(0.004, 0.05)[0][2] > 0.0, "slower than it should come apart"
    impulse, drag = pushed(0.004, 2.0)
    assert not impulse.any()
    assert not drag.any(), "it ends the step apart"


@pytest.mark.parametrize(("speed", "slides"), [(0.4, False), (0.6, True)])
def test_what_drags_by_more_than_friction_allows_slides(speed, slides):
    """A drag of 2 kg may give 1 N s: at 0.5 m/s. What slides is held by just that, and not harder if it goes faster."""
    vertices, weights = np.arange(4, dtype=np.int32)[None], np.array([[0.5, 0.5, -1.0, 0.0]])
    up, carried = np.array([[0.0, 0.0, 1.0]]), np.array([[0.0, 0.1, 0.0]])
    v_t0, v_t1 = np.zeros((2, 4, 3))
    v_t1[:2] = [speed, -0.1, -3.0]
    slips = Slips(up, carried, np.array([2.0]), np.array([1.0]))
    assert excess_drags(vertices, weights, slips, v_t1)[0] == pytest.approx(0.2 if slides else 0.0)
    push = let_slide(vertices, weights, slips, v_t0, v_t1)
    if slides:
        np.testing.assert_allclose(push, [[-1.0, 0.2, 0.0]], atol=1e-15)  # the drag at the start is taken back
    else:
        assert not push.any()
    assert slips.drags[0] == (0.0 if slides else 2.0)
    assert not let_slide(vertices, weights, slips, v_t0, v_t1).any(), "only once"


def test_the_impulse_of_a_contact():
    """It pushes with 1 N s, less 2 N s for each m/s at which it parts."""
    vertices, weights = np.arange(4, dtype=np.int32)[None], np.array([[0.5, 0.5, -1.0, 0.0]])
    up, pushes, one = np.array([[0.0, 0.0, 1.0]]), np.array([[0.3, 0.0, 1.0]]), np.ones(1)
    law = Law(vertices, weights, up, 2.0 * one, one, one, pushes, one > 0.0)
    dv = np.zeros((4, 3))
    dv[:2] = [5.0, 0.0, 0.6]
    np.testing.assert_allclose(normal_impulses(law, dv), [-0.2])


def come_down_on_a_triangle(gap):
    """A vertex comes down on a triangle, at a contact distance of 10 mm, and sideways: a response, and velocities."""
    above = [[0.3, 0.3, gap], [2.0, 2.0, 0.5], [2.0, 2.1, 0.6]]
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], *above])
    expected = x - np.array([0.001, 0.0, 0.005]) * (np.arange(6) == 3)[:, None]
    response = begun(DividingPlanes, Mesh(x, np.array([[0, 1, 2], [3, 4, 5]], np.int32)), expected)
    return response, (expected - x) / DT


@pytest.mark.parametrize(("gap", "n_loose"), [(0.0095, 0), (0.0105, 0), (0.0125, 1)])
def test_only_what_was_expected_to_meet_is_let_go(gap, n_loose):
    """The solve has it stay where it is; a later one has it come down after all."""
    response, v = come_down_on_a_triangle(gap)
    assert (response.n_springs, response.n_loose) == (1, n_loose)
    before = response.constraints().impulses.copy()
    assert before.any()
    assert response.release(-v) == (n_loose > 0)
    held = response.constraints()
    assert held.springs.along.any() == (n_loose == 0)
    assert held.springs.across.any() == (gap < 0.01), "nor may it rub"
    assert held.impulses.any() == (n_loose == 0)
    assert not response.release(-v), "only once"
    assert response.release(0.0 * v) == (n_loose > 0), "it is taken back"
    assert response.constraints().springs.along.any()
    np.testing.assert_allclose(response.constraints().impulses, before, atol=1e-15)


@pytest.mark.parametrize(("gap", "is_loose"), [(0.0095, False), (0.0105, True)])
def test_what_does_not_touch_a_body_is_let_go_where_it_would_pull(gap, is_loose):
    """A vertex comes down on a floor 10 mm away at the most; a solve has it go up, a later one down after all."""
    x = np.array([[0.0, 0.0, gap], [1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    v = np.array([[0.3, 0.0, -0.6], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    one, up = np.zeros(1, np.int32), np.array([[0.0, 0.0, 1.0]])
    floor = PlaneContacts(one, one, up, np.array([gap - 0.01]), np.zeros((1, 3)), np.full(1, 0.3))
    response = begun(DividingPlanes, Mesh(x, np.array([[0, 1, 2]], np.int32)), x + DT * v, contacts=floor)
    held = response.constraints()
    before = held.drag.copy(), held.impulses.copy()
    assert before[0].any()
    assert response.release(np.array([0.0, 0.0, 9.0]) - v) == is_loose
    assert np.abs(held.drag).max() < (1e-15 if is_loose else np.inf)
    assert np.abs(held.impulses).max() < (1e-15 if is_loose else np.inf)
    assert response.release(0.0 * v) == is_loose, "it is taken back"
    for part, was in zip((held.drag, held.impulses), before, strict=True):
        np.testing.assert_allclose(part, was, atol=1e-15)


def test_what_a_solve_tears_loose_slides_before_the_step_ends():
    """A vertex that sticks to a floor is dragged off: friction is then the third of what it bears, and no more."""
    x = np.array([[0.0, 0.0, 0.009], [1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    one, up = np.zeros(1, np.int32), np.array([[0.0, 0.0, 1.0]])
    floor = PlaneContacts(one, one, up, np.array([-0.001]), np.zeros((1, 3)), np.full(1, 1.0 / 3.0))
    response = begun(DividingPlanes, Mesh(x, np.array([[0, 1, 2]], np.int32)), x, contacts=floor)
    held, dv = response.constraints(), np.zeros((3, 3))
    limit = response._planes[1].limits[0]
    assert limit > 0.0
    assert not response.slide(dv)
    dv[0] = [3.0, 4.0, 0.0]
    assert response.slide(dv)
    np.testing.assert_allclose(held.impulses[0, :2], [-0.6 * limit, -0.8 * limit])
    assert np.abs(held.drag[0, :2, :2]).max() < 1e-12
    assert held.drag[0, 2, 2] > 0.0, "it still bears"
    assert not response.slide(2.0 * dv), "only once"


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_contact_that_is_pressed_hard_bears_what_it_bore(dt):
    """A floor bore 5 kN with a vertex of 1 g, 10 mm being the contact distance: it does so at a third of that."""
    assert pushed(0.00683, 0.0, dt, 5000.0)[0][2] / dt == pytest.approx(5000.0, rel=5e-3)
    assert pushed(0.009, 0.0, dt, 5000.0)[0][2] / dt > 5000.0
    for depth in (0.001, 0.005):  # not pressed hard
        np.testing.assert_array_equal(pushed(depth, 0.0, dt, 5000.0)[0], pushed(depth, 0.0, dt)[0])
    assert pushed(0.009, 0.0, dt, 1e9)[0][2] / dt < 1e6, "there is a limit"


@pytest.mark.parametrize(("upper", "lower", "is_stiffer"), [(1.0, 1.0, True), (1.0, 0.0, False), (0.0, 1.0, False)])
def test_both_sides_must_say_that_they_were_pressed_together(upper, lower, is_stiffer):
    """A vertex hangs 1 mm above a triangle, at a contact distance of 10 mm; each side says what contacts gave it."""
    x = np.array(
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.001], [2.0, 2.0, 0.5], [2.0, 2.1, 0.6]]
    )
    impulses = np.zeros((6, 3))
    impulses[3, 2], impulses[:3, 2] = 100.0 * upper, -100.0 / 3.0 * lower
    mesh = Mesh(x, np.array([[0, 1, 2], [3, 4, 5]], np.int32))
    usual, asked = (begun(DividingPlanes, mesh, x, impulses=given) for given in (0.0 * impulses, impulses))
    along = [float(response.constraints().springs.along[0]) for response in (usual, asked)]
    assert (along[1] > 2.0 * along[0]) == is_stiffer
    assert is_stiffer or along[1] == along[0]


def test_a_shorter_step_does_not_push_harder():
    """The force is the same, so that a step that is split does not throw cloth that lies still."""
    whole, half = (pushed(1e-4, 0.0, dt)[0][2] / dt for dt in (1 / 120, 1 / 240))
    assert half == pytest.approx(whole, rel=1e-12)


def floor_contacts(gaps):
    """The first vertices, so far [m] above a floor, at a contact distance of 10 mm."""
    k = len(gaps)
    up, none = np.tile([0.0, 0.0, 1.0], (k, 1)), np.zeros((k, 3))
    return PlaneContacts(
        np.arange(k, dtype=np.int32), np.zeros(k, np.int32), up, np.array(gaps) - 0.01, none, np.full(k, 0.3)
    )


def drawn_down(start, end, **more):
    """A response that did not expect its first vertex to go from `start` to `end` [m] above a floor, and where to."""
    x = np.array([[0.0, 0.0, start], [1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    goal = x - np.array([0.0, 0.0, start - end]) * (np.arange(3) == 0)[:, None]
    return begun(DividingPlanes, Mesh(x, np.array([[0, 1, 2]], np.int32)), x, **more), goal


@pytest.mark.parametrize(
    ("start", "end", "missed"), [(0.012, 0.004, True), (0.012, 0.006, False), (0.009, 0.004, False)]
)
def test_a_body_was_missed_where_it_stops_cloth_close_before_it(start, end, missed):
    """Out of its reach at first, at less than half of it in the end; what was pressed before is no surprise."""
    response, goal = drawn_down(start, end)
    response.finish(goal, floor_contacts([start]))
    assert response.missed_bodies == missed


@pytest.mark.parametrize(("n_surprised", "missed"), [(2, False), (3, True)])
def test_a_surprise_in_five_contacts_is_usual(n_surprised, missed):
    """Ten vertices lie on a floor, and a few more come as near as half of its reach though they were to stay."""
    mesh = build_grid((1.0, 1.0), (5, 5))
    gaps = np.where(np.arange(25) < 10, 0.009, 0.012)
    x = mesh.positions + gaps[:, None] * [0.0, 0.0, 1.0]
    response = begun(DividingPlanes, Mesh(x, mesh.triangles), x, contacts=floor_contacts(gaps[:10]))
    assert response.n_contacts() == 10
    goal = x.copy()
    goal[10 : 10 + n_surprised, 2] = 0.004
    response.finish(goal, floor_contacts(gaps))
    assert response.missed_bodies == missed


@pytest.mark.parametrize(("n_surprised", "missed"), [(1, False), (2, True)])
def test_one_in_a_thousand_vertices_is_too_few_to_be_solved_for_again(n_surprised, missed):
    mesh = build_grid((1.0, 1.0), (32, 32))
    x = mesh.positions + np.array([0.0, 0.0, 0.012])
    goal = x.copy()
    goal[:n_surprised, 2] = 0.004
    response = begun(DividingPlanes, Mesh(x, mesh.triangles), x)
    response.finish(goal, floor_contacts(np.full(n_surprised, 0.012)))
    assert response.missed_bodies == missed


def test_a_step_that_is_solved_again_meets_the_bodies_on_its_way():
    response, goal = drawn_down(0.012, 0.004)
    assert not response.constraints().impulses.any()
    v = (goal - response._start.x) / DT
    for _ in range(2):  # nothing is taken up twice
        response.revise(floor_contacts([0.012]), v)
        held = response.constraints()
        exerted = held.impulses - np.einsum("nij,nj->ni", held.drag, v)
        assert exerted[0, 2] == pytest.approx(DT * 200.0 * 1e-3 * 120.0**2 * 0.006), "it ends 6 mm too near"
        assert not exerted[1:].any()
    response.revise(floor_contacts([0.012]), 0.0 * v)
    assert not response.constraints().impulses.any(), "it stays out of reach"


def test_a_pin_meets_no_body_when_a_step_is_solved_again():
    response, goal = drawn_down(0.012, 0.004, pinned=np.zeros(1, np.int32))
    response.revise(floor_contacts([0.012]), (goal - response._start.x) / DT)
    held = response.constraints()
    assert not held.filters[0].any()
    assert not held.impulses.any()


def test_contacts_of_cloth_stay_when_a_step_is_solved_again():
    """Nothing of theirs is lost or taken up twice, be it how they push or what they touch."""
    response, v = come_down_on_a_triangle(0.009)
    impulses, touches = response.constraints().impulses.copy(), response.touches.copy()
    assert impulses[3, 2] > 0.0
    assert touches[3] > 0
    for _ in range(2):
        response.revise(NOTHING, 0.5 * v)
        np.testing.assert_array_equal(response.constraints().impulses, impulses)
        np.testing.assert_array_equal(response.touches, touches)


def test_what_tears_loose_from_cloth_slides_when_a_step_is_solved_again():
    """Its drag becomes a force that is no more than friction allows: the third of the load that it bears."""
    response, v = come_down_on_a_triangle(0.009)
    v = v + np.array([50.0, 0.0, 0.0]) * (np.arange(6) == 3)[:, None]
    limit = float(response._slips.limits[0])
    before = response.constraints().impulses.copy()
    response.revise(NOTHING, v)
    held = response.constraints()
    assert held.springs.across[0] == 0.0
    assert held.impulses[3, 0] < before[3, 0]
    taken_up = held.impulses.copy()
    np.testing.assert_allclose(taken_up.sum(axis=0), 0.0, atol=1e-15)
    assert -held.impulses[3, 0] == pytest.approx(limit, rel=1e-9)
    response.revise(NOTHING, v)
    np.testing.assert_allclose(response.constraints().impulses, taken_up, rtol=1e-14, atol=1e-18)


def test_what_was_let_go_stays_so_when_a_step_is_solved_again():
    response, v = come_down_on_a_triangle(0.0125)
    assert response.release(-v)
    response.revise(NOTHING, 0.0 * v)
    held = response.constraints()
    assert not held.impulses.any()
    assert not held.springs.along.any()
