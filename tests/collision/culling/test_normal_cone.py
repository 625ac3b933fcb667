import numpy as np
import pytest
from tests.collision.broad import states
from tests.oracles.triangle_crossings import crossing_pairs

from weft.collision.broad.all_pairs import AllPairs
from weft.collision.broad.quad_tree import QuadTree
from weft.collision.culling.normal_cone import NormalCone, merge_cones
from weft.geometry.mesh import Mesh, build_grid


def make(mesh, variant):
    return NormalCone(mesh, NormalCone.Parameters(variant=variant))


def crossings(mesh, x):
    phase = AllPairs(mesh)
    phase.refit(x)
    return np.array(crossing_pairs(x, mesh.triangles, phase.self_pairs()), np.int32).reshape(-1, 2)


def staircase(turns=1.53):
    """A strip wound up like a spiral staircase whose upper turn sinks through the lower one: all normals point up."""
    mesh = build_grid((1.0, 1.0), (33, 5))
    u, v = mesh.material[:, 0] + 0.5, mesh.material[:, 1] + 0.5
    angle, radius = 2 * np.pi * turns * u, 1.0 + 0.5 * v
    height = 0.6 * (u - 0.5) ** 2
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    return mesh, np.ascontiguousarray(x)


def test_published_loses_the_staircase_and_sound_does_not():
    mesh, x = staircase()
    crossing = crossings(mesh, x)
    assert len(crossing) > 3
    published, sound = make(mesh, "published"), make(mesh, "sound")
    for filter_ in (published, sound):
        filter_.refit(x)
    assert published.closed[0]  # one cone for the whole strip
    assert not published.keep(crossing).any()
    assert not sound.closed[0]
    assert sound.keep(crossing).all()
    # and it still saves work on the parts that do not overlap
    assert sound.closed.sum() > 0


@pytest.mark.parametrize("variant", ["published", "sound"])
def test_a_flat_cloth_needs_no_test(variant):
    mesh = build_grid((1.0, 1.0), (10, 12))
    filter_ = make(mesh, variant)
    filter_.refit(mesh.positions, mesh.positions + np.array([0, 0, 0.5]))
    assert filter_.closed.tolist() == [True] + [False] * (filter_.tree.n_boxes - 1)
    pairs = AllPairs(mesh)
    pairs.refit(mesh.positions)
    assert len(filter_.apply(pairs.self_pairs())) == 0


@pytest.mark.parametrize("variant", ["published", "sound"])
def test_cones_hold_their_normals(variant):
    mesh, x_t0, x_t1, _ = states.crumpled()
    filter_ = make(mesh, variant)
    filter_.refit(x_t0, x_t1)
    tree = filter_.tree
    times = (0.0, 0.25, 0.5, 0.75, 1.0) if variant == "sound" else (1.0,)
    normals = []
    for t in times:
        x = (1 - t) * x_t0 + t * x_t1
        a, b, c = (x[mesh.triangles[:, k]] for k in range(3))
        n = np.cross(b - a, c - a)
        normals.append(n / np.linalg.norm(n, axis=1, keepdims=True))
    for node in range(tree.n_boxes):
        axis, half_angle = filter_.cones[node, :3], filter_.cones[node, 3]
        if half_angle >= np.pi / 2:
            continue
        inside = tree.items[tree.starts[node] : tree.ends[node]]
        for n in normals:
            assert np.arccos(np.clip(n[inside] @ axis, -1, 1)).max() <= half_angle + 1e-7


def test_equation_1_and_the_smallest_cone():
    degree = np.pi / 180
    a = (0.0, 0.0, 1.0, 10 * degree)
    b = (np.sin(60 * degree), 0.0, np.cos(60 * degree), 30 * degree)
    x, y, z, half_angle = merge_cones(a, b, False)
    assert half_angle == pytest.approx((60 / 2 + 30) * degree)
    np.testing.assert_allclose((x, y, z), (np.sin(30 * degree), 0, np.cos(30 * degree)), atol=1e-12)
    x, y, z, half_angle = merge_cones(a, b, True)
    assert half_angle == pytest.approx((10 + 60 + 30) / 2 * degree, abs=1e-5)
    assert np.arctan2(x, z) == pytest.approx((50 - 10) * degree, abs=1e-5)
    # one inside the other
    assert merge_cones((0.0, 0.0, 1.0, 80 * degree), b, True)[3] == pytest.approx((80 + 60 + 30) / 2 * degree, abs=1e-5)
    wide = (0.0, 0.0, 1.0, 89 * degree)
    near = (np.sin(0.1), 0.0, np.cos(0.1), 0.2)
    assert merge_cones(wide, near, True) == wide
    assert merge_cones(near, wide, True) == wide
    # opposite axes: no cone
    for is_sound in (False, True):
        assert merge_cones((0.0, 0.0, 1.0, 0.0), (0.0, 0.0, -1.0, 0.0), is_sound)[3] == np.pi


def test_sound_sees_what_happens_on_the_way():
    """A cloth that turns over through itself is flat at both ends of the step, and a point in between."""
    mesh = build_grid((1.0, 1.0), (9, 9))
    x_t1 = mesh.positions * [-1.0, 1.0, 1.0]
    published, sound = make(mesh, "published"), make(mesh, "sound")
    for filter_ in (published, sound):
        filter_.refit(mesh.positions, x_t1)
    assert published.closed[0]
    assert not sound.closed.any()


def test_a_moving_border_that_crosses_is_seen():
    """Two arms of a strip swing through each other in the plane: all normals stay up."""
    mesh, x = staircase(turns=0.7)
    _, y = staircase(turns=1.3)
    x[:, 2] = y[:, 2] = 0.0
    sound = make(mesh, "sound")
    sound.refit(x)
    assert sound.closed[0]
    sound.refit(x, y)
    assert not sound.closed[0]


def test_triangles_without_area_close_nothing():
    mesh = build_grid((1.0, 1.0), (5, 5))
    for variant in ("published", "sound"):
        filter_ = make(mesh, variant)
        filter_.refit(np.zeros_like(mesh.positions))
        assert not filter_.closed.any()


def test_triangles_wound_the_other_way_close_nothing_around_them():
    """Fold a strip flat onto itself and turn the winding of the upper half: all normals point up."""
    grid = build_grid((1.0, 0.2), (9, 2))
    triangles = grid.triangles.copy()
    right = grid.positions[triangles].mean(axis=1)[:, 0] > 0
    triangles[right] = triangles[right][:, ::-1]
    x = grid.positions.copy()
    x[:, 2] = np.where(x[:, 0] > 0, 0.05 - 0.3 * x[:, 0], 0.0)
    x[:, 0] = -np.abs(x[:, 0])
    mesh = Mesh(grid.positions, np.ascontiguousarray(triangles), grid.material, grid.grid_shape)
    crossing = crossings(mesh, x)
    assert len(crossing)
    sound = make(mesh, "sound")
    sound.refit(x)
    assert sound.keep(crossing).all()


def test_a_ring_is_not_taken_for_a_disc():
    """A part with a hole has two borders; only single polygons are judged."""
    mesh = states.unstructured().mesh
    sound = make(mesh, "sound")
    assert not sound._is_ring[0]


def test_closed_nodes_cut_the_search_of_the_quad_tree():
    mesh, x_t0, _, margin = states.crumpled((23, 19))
    phase, filter_ = QuadTree(mesh), make(mesh, "sound")
    phase.refit(x_t0, None, margin)
    filter_.refit(x_t0)
    filtered = filter_.apply(phase.self_pairs())
    tested = phase.counters.boxes_tested
    phase.counters.clear()
    phase.close(filter_.closed)
    found = phase.self_pairs()
    assert {tuple(r) for r in found.tolist()} == {tuple(r) for r in filtered.tolist()}
    assert phase.counters.boxes_tested < tested
