"""Impact zones on soups of triangles that fly through each other: whatever meets, the step ends without it.

The first two stages are off, so that zones have everything to do.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from tests.collision.response.soups import NONE, NOTHING, begun, n_meetings, soup

from weft.collision.narrow.continuous import time_of_impact
from weft.collision.response.impact_zones import ImpactZones, ImpactZonesParameters, nearest_change, rigid_motion
from weft.geometry.contacts import PlaneContacts
from weft.geometry.mesh import Mesh

ZONES = ["inelastic", "rigid"]
FORCED = {"repulsion": False, "passes": 0}


def finished(cloth, goal, zones, *, parameters=FORCED, **more):
    response = begun(
        lambda surroundings: ImpactZones(surroundings, ImpactZonesParameters(zones=zones, **parameters)),
        cloth,
        goal,
        **more,
    )
    return response, response.finish(goal.copy(), NOTHING)


@pytest.mark.parametrize("zones", ZONES)
@pytest.mark.parametrize("speed", [0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_meets_on_the_way(seed, speed, zones):
    rng = np.random.default_rng(seed)
    cloth = soup(rng, 14, 0.6)
    goal = cloth.positions + rng.normal(size=cloth.positions.shape) * speed
    assert n_meetings(cloth.positions, goal, cloth.triangles) > 0
    response, end = finished(cloth, goal, zones)
    assert end is not None
    assert n_meetings(cloth.positions, end, cloth.triangles) == 0
    assert response.counts.zone_steps == 1


@pytest.mark.parametrize("parameters", [{}, {"repulsion": False}, {"passes": 0}])
def test_stages_before_zones_change_nothing_about_it(parameters, rng):
    cloth = soup(rng, 14, 0.6)
    goal = cloth.positions + rng.normal(size=cloth.positions.shape) * 0.2
    _, end = finished(cloth, goal, "inelastic", parameters=parameters)
    assert n_meetings(cloth.positions, end, cloth.triangles) == 0


@pytest.mark.parametrize("zones", ZONES)
def test_momentum_is_conserved(zones, rng):
    cloth = soup(rng, 14, 0.6)
    masses = rng.uniform(1.0, 3.0, cloth.n_vertices)
    x, goal = cloth.positions, cloth.positions + rng.normal(size=cloth.positions.shape) * 0.1
    _, end = finished(cloth, goal, zones, masses=masses)
    assert np.abs(end - goal).max() > 0.01
    np.testing.assert_allclose(masses @ (end - x), masses @ (goal - x), atol=1e-11)


def test_a_rigid_zone_keeps_angular_momentum_and_its_shape(rng):
    """To second order in the turn: the way to the end of a turn is a chord."""
    x, masses = rng.normal(size=(9, 3)), rng.uniform(1.0, 3.0, 9)
    wanted = rng.normal(size=(9, 3))
    lost = []
    for share in (1e-2, 5e-3):
        end = rigid_motion(masses, x, x + share * wanted)
        np.testing.assert_allclose(masses @ (end - x), share * masses @ wanted, atol=1e-12)
        apart = [np.linalg.norm(y[:, None] - y[None], axis=2) for y in (x, end)]
        np.testing.assert_allclose(apart[1], apart[0], atol=1e-12)
        spins = [(masses[:, None] * np.cross(x, y)).sum(axis=0) for y in (end - x, share * wanted)]
        lost.append(np.linalg.norm(spins[0] - spins[1]) / np.linalg.norm(spins[1]))
    assert lost[1] < 0.6 * lost[0] < 0.01


def test_rigid_motion_of_what_turns_is_the_turn(rng):
    x, masses = rng.normal(size=(9, 3)), rng.uniform(1.0, 3.0, 9)
    spin = np.array([0.001, -0.002, 0.0015])
    center = masses @ x / masses.sum()
    end = rigid_motion(masses, x, x + np.cross(spin, x - center))
    np.testing.assert_allclose(end - center, Rotation.from_rotvec(spin).apply(x - center), atol=1e-12)


def test_nearest_change_against_a_general_solver(rng):
    for _ in range(5):
        gradient, missing = rng.normal(size=(6, 12)), rng.normal(size=6)
        found = nearest_change(gradient, missing)
        oracle = minimize(
            lambda y: y @ y,
            np.zeros(12),
            jac=lambda y: 2 * y,
            constraints={
                "type": "ineq",
                "fun": lambda y, g=gradient, m=missing: g @ y - m,
                "jac": lambda y, g=gradient: g,
            },
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert oracle.success
        np.testing.assert_allclose(found, oracle.x, atol=1e-6)
        assert (gradient @ found >= missing - 1e-9).all()


def test_nearest_change_knows_what_cannot_be():
    assert nearest_change(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0])) is None
    np.testing.assert_array_equal(nearest_change(np.array([[1.0, 0.0]]), np.array([0.0])), [0.0, 0.0])


def test_inelastic_zones_slide_and_rigid_ones_do_not():
    """A small triangle goes down and along above a large one that is much heavier."""
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    small = 0.2 * flat + np.array([0.1, 0.1, 0.05])
    cloth = Mesh(np.concatenate([flat, small]), np.arange(6, dtype=np.int32).reshape(2, 3))
    goal = cloth.positions.copy()
    goal[3:] += np.array([0.1, 0.0, -0.2])
    masses = np.repeat([1e6, 1.0], 3)
    ways = {zones: (finished(cloth, goal, zones, masses=masses)[1] - cloth.positions)[3:, 0] for zones in ZONES}
    np.testing.assert_allclose(ways["inelastic"], 0.1, atol=1e-6)
    np.testing.assert_allclose(ways["rigid"], 0.0, atol=1e-3)


@pytest.mark.parametrize("zones", ZONES)
def test_pins_go_where_they_are_told(zones, rng):
    cloth = soup(rng, 10, 0.6)
    goal = cloth.positions + rng.normal(size=cloth.positions.shape) * 0.1
    pinned = np.array([0, 1, 2], np.int32)
    goal[pinned] = cloth.positions[pinned] + np.array([0.0, 0.0, 0.05])
    _, end = finished(cloth, goal, zones, pinned=pinned)
    np.testing.assert_array_equal(end[pinned], goal[pinned])
    assert n_meetings(cloth.positions, end, cloth.triangles) == 0


@pytest.mark.parametrize("zones", ZONES)
def test_a_pinned_triangle_takes_a_free_one_along(zones):
    """It goes up by 0.3 m through where the other lies, 0.1 m above, and is not moved by it."""
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    cloth = Mesh(
        np.concatenate([0.2 * flat + 0.2, flat + np.array([0.0, 0.0, 0.3])]), np.arange(6, dtype=np.int32).reshape(2, 3)
    )
    pinned = np.array([0, 1, 2], np.int32)
    goal = cloth.positions.copy()
    goal[pinned, 2] += 0.3
    response, end = finished(cloth, goal, zones, pinned=pinned)
    np.testing.assert_array_equal(end[pinned], goal[pinned])
    assert response.counts.zone_steps == 1
    assert n_meetings(cloth.positions, end, cloth.triangles) == 0
    assert end[3:, 2].mean() > 0.35


def plate(height):
    corners = np.array([[-2.0, -2.0, height], [2.0, -2.0, height], [0.0, 3.0, height]])
    return Mesh(corners, np.array([[0, 1, 2]], np.int32))


@pytest.mark.parametrize("zones", ZONES)
def test_a_rising_plate_takes_all_cloth_along(zones, rng):
    """The plate passes where the cloth was; what it does not touch itself is pushed by what it does."""
    cloth = soup(rng, 8, 0.5)
    body = plate(-0.5)
    rise = np.array([0.0, 0.0, 0.6])
    move = np.column_stack([np.eye(3), rise])[None]
    x = cloth.positions
    _, end = finished(cloth, x, zones, bodies=body, bodies_t1=body.positions + rise, body_moves=move)
    assert end is not None
    triangles = np.concatenate([cloth.triangles, body.triangles + cloth.n_vertices])
    both = [np.concatenate(parts) for parts in ((x, body.positions), (end, body.positions + rise))]
    assert n_meetings(*both, triangles) == 0
    assert end[:, 2].min() > 0.1


@pytest.mark.parametrize("zones", ZONES)
def test_a_turning_body_carries_what_is_stuck_to_it(zones, rng):
    cloth = soup(rng, 8, 0.5)
    body = plate(-0.5)
    turn = Rotation.from_rotvec([0.4, 0.1, 0.3]).as_matrix()
    move = np.column_stack([turn, [0.0, 0.0, 0.4]])
    x, bodies_t1 = cloth.positions, body.positions @ turn.T + move[:, 3]
    goal = x + rng.normal(size=x.shape) * 0.1
    _, end = finished(cloth, goal, zones, bodies=body, bodies_t1=bodies_t1, body_moves=move[None])
    assert end is not None
    triangles = np.concatenate([cloth.triangles, body.triangles + cloth.n_vertices])
    both = [np.concatenate(parts) for parts in ((x, body.positions), (end, bodies_t1))]
    assert n_meetings(*both, triangles) == 0


def floor(height):
    """Contacts of vertices with the half space below `height`, as bodies report them."""

    def touching(x_t0):
        def find(x_t1, distance):
            near = np.minimum(x_t0[:, 2], x_t1[:, 2]) < height + distance
            vertices = np.flatnonzero(near).astype(np.int32)
            k = len(vertices)
            up = np.tile([0.0, 0.0, 1.0], (k, 1))
            gaps = x_t0[vertices, 2] - height - distance[vertices]
            return PlaneContacts(vertices, np.zeros(k, np.int32), up, gaps, np.zeros((k, 3)), np.zeros(k))

        return find

    return touching


@pytest.mark.parametrize("zones", ZONES)
def test_no_vertex_ends_behind_a_plane(zones, rng):
    cloth = soup(rng, 10, 0.6)
    height = cloth.positions[:, 2].min() - 0.01
    goal = cloth.positions + rng.normal(size=cloth.positions.shape) * 0.1 - np.array([0.0, 0.0, 0.3])
    still = np.column_stack([np.eye(3), np.zeros(3)])[None]
    _, end = finished(cloth, goal, zones, touching=floor(height)(cloth.positions), body_moves=still)
    assert n_meetings(cloth.positions, end, cloth.triangles) == 0
    assert end[:, 2].min() > height


def test_cloth_between_bodies_that_close_in_asks_for_a_shorter_step(rng):
    cloth = soup(rng, 1, 0.1)
    low, high = plate(-0.5), plate(0.5)
    bodies = Mesh(np.concatenate([low.positions, high.positions]), np.array([[0, 1, 2], [3, 4, 5]], np.int32))
    t1 = bodies.positions.copy()
    t1[:3, 2], t1[3:, 2] = 0.6, -0.6
    moves = np.stack([np.column_stack([np.eye(3), [0.0, 0.0, z]]) for z in (1.1, -1.1)])

    def build(surroundings):
        two = surroundings._replace(body_of=np.array([0, 0, 0, 1, 1, 1], np.int32))
        return ImpactZones(two, ImpactZonesParameters(**FORCED))

    response = begun(build, cloth, cloth.positions, bodies=bodies, bodies_t1=t1, body_moves=moves)
    assert response.finish(cloth.positions, NOTHING) is None
    assert response.counts.refused == 1


def test_what_is_almost_in_contact_is_kept_apart_again_and_again(rng):
    """A small triangle is pressed on a large one in a hundred steps: the gap stays what float32 can tell."""
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    x = np.concatenate([flat, 0.2 * flat + np.array([0.1, 0.1, 1e-5])])
    triangles = np.arange(6, dtype=np.int32).reshape(2, 3)
    for _ in range(100):
        goal = x.copy()
        goal[3:, 2] -= rng.uniform(0.0, 0.01, 3)
        _, end = finished(Mesh(x, triangles), goal, "inelastic", masses=np.repeat([1e9, 1.0], 3))
        rows = np.array([[3, 0, 1, 2], [4, 0, 1, 2], [5, 0, 1, 2]])
        assert not np.isfinite(time_of_impact(x[rows], end[rows])).any()
        x = end
    assert (x[3:, 2] - x[:3, 2].max()).min() > 1e-6


def test_what_does_not_meet_is_left_alone(rng):
    cloth = soup(rng, 14, 0.6)
    goal = cloth.positions + np.array([3.0, -1.0, 0.5])
    response, end = finished(cloth, goal, "inelastic", pinned=NONE)
    np.testing.assert_array_equal(end, goal)
    assert response.counts.zone_steps == 0
