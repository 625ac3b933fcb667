"""The z-buffer against counted pixels and against rays shot one by one."""

from __future__ import annotations

import numpy as np
import pytest

from weft.render.camera import look_at
from weft.render.rasteriser import NOTHING, rasterise, sample_offsets

CENTRE = np.array([[0.5, 0.5]])


def draw(vertices, triangles, size=(8, 8), offsets=CENTRE, near=0.01, **options):
    width, height = size
    keys = np.empty((height, width, len(offsets)), np.float32)
    ids = np.empty((height, width, len(offsets)), np.int32)
    rasterise(
        np.ascontiguousarray(vertices, np.float64),
        np.ascontiguousarray(triangles, np.int32),
        offsets,
        near,
        keys,
        ids,
        **options,
    )
    return keys, ids


def flat(places, depth=1.0):
    """Vertices at places in the picture, all at one depth."""
    places = np.asarray(places, float)
    return np.column_stack([places * depth, np.full(len(places), depth), np.ones(len(places))])


def camera_vertices(camera, points, size):
    return np.column_stack([camera.project(np.asarray(points, float), size), np.ones(len(points))])


def shoot_rays(camera, x, triangles, size, offsets, near):
    """What is seen along the ray of every sample: the nearest hit (Moller and Trumbore), one triangle at a time."""
    width, height = size
    right, up, forward = camera.axes
    focal = camera.focal_length(height)
    px = np.arange(width)[None, :, None] + offsets[:, 0]
    py = np.arange(height)[:, None, None] + offsets[:, 1]
    rays = (
        forward + ((px - width / 2) / focal)[..., None] * right - ((py - height / 2) / focal)[..., None] * up
    )  # depth 1 each
    depths = np.full(rays.shape[:-1], np.inf)
    ids = np.full(rays.shape[:-1], NOTHING)
    for ti, (a, b, c) in enumerate(x[triangles]):
        u, v, from_a = b - a, c - a, camera.position - a
        across = np.cross(rays, v)
        det = across @ u
        with np.errstate(divide="ignore", invalid="ignore"):
            s = across @ from_a / det
            q = np.cross(from_a, u)
            t = rays @ q / det
            depth = v @ q / det
        hit = (s >= 0) & (t >= 0) & (s + t <= 1) & (depth >= near) & (depth < depths)
        depths[hit], ids[hit] = depth[hit], ti
    return depths, ids


def test_a_triangle_covers_the_pixels_whose_centres_it_holds():
    _, ids = draw(flat([(1.0, 1.0), (5.0, 1.0), (1.0, 5.0)]), [[0, 1, 2]])
    expected = np.full((8, 8), NOTHING)
    for row in range(1, 5):
        expected[row, 1 : 6 - row] = 0  # the long side passes through centres, which count
    assert (ids[:, :, 0] == expected).all()


def test_winding_does_not_matter():
    places = flat([(0.3, 0.2), (7.1, 2.5), (3.3, 6.9)])
    _, one = draw(places, [[0, 1, 2]])
    _, other = draw(places, [[0, 2, 1]])
    assert (one == other).all()
    assert (one == 0).any()


def test_the_nearer_triangle_is_seen_whatever_the_order():
    square = [(0.0, 0.0), (8.0, 0.0), (0.0, 8.0)]
    vertices = np.concatenate([flat(square, 2.0), flat(square, 1.0)])
    keys, ids = draw(vertices, [[0, 1, 2], [3, 4, 5]])
    assert ids[1, 1, 0] == 1
    assert keys[1, 1, 0] == pytest.approx(1.0)
    _, ids = draw(vertices, [[3, 4, 5], [0, 1, 2]])
    assert ids[1, 1, 0] == 0


def test_of_two_at_one_place_the_first_is_seen():
    square = flat([(0.0, 0.0), (8.0, 0.0), (0.0, 8.0)])
    _, ids = draw(np.concatenate([square, square]), [[0, 1, 2], [3, 4, 5]])
    assert set(np.unique(ids)) == {NOTHING, 0}


def test_crossing_triangles_are_cut_along_their_line():
    left_near = np.array([[0, 0, 1, 1], [0, 8, 1, 1], [8 * 3, 4 * 3, 3, 1]], float)  # (X, Y, W, 1): near on the left
    right_near = np.array([[8, 0, 1, 1], [8, 8, 1, 1], [0, 4 * 3, 3, 1]], float)
    _, ids = draw(np.concatenate([left_near, right_near]), [[0, 1, 2], [3, 4, 5]])
    assert ids[4, 1, 0] == 0
    assert ids[4, 6, 0] == 1


def test_no_sample_is_missed_between_neighbours():
    rng = np.random.default_rng(5)
    rim = np.array([(-1, -1), (40, -1), (41, 40), (-1, 41)], float)
    for _ in range(20):
        vertices = flat(np.vstack([rim, rng.uniform(1, 39, 2)]), rng.uniform(0.5, 2.0))
        _, ids = draw(vertices, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]], (40, 40), sample_offsets(2))
        assert (ids != NOTHING).all()


@pytest.mark.parametrize("seed", range(4))
def test_samples_show_what_rays_hit(seed):
    """Triangles before, behind, beside and through the camera and its near plane."""
    rng = np.random.default_rng(seed)
    size, offsets = (24, 18), sample_offsets(2)
    camera = look_at((0.0, -2.0, 0.3), (0.0, 0.0, 0.0), field_of_view=70.0, near=0.4)
    x = rng.normal(size=(60, 3)) * (2.0, 2.5, 2.0) + (0.0, -1.0, 0.0)
    triangles = rng.permutation(60).reshape(20, 3)
    assert (camera.project(x, size)[:, 2] < 0.0).any()
    keys, ids = draw(camera_vertices(camera, x, size), triangles, size, offsets, camera.near)
    depths, expected = shoot_rays(camera, x, triangles, size, offsets, camera.near)
    assert (ids == expected).mean() > 0.998  # a sample on an edge may fall to either side
    assert len(np.unique(ids)) > 5
    same = (ids == expected) & (ids != NOTHING)
    assert 1.0 / keys[same] == pytest.approx(depths[same], rel=1e-5)
    assert (keys[ids == NOTHING] == -np.inf).all()


def test_the_near_plane_cuts_a_triangle_that_passes_the_eye():
    size = (16, 16)
    camera = look_at((0.0, -1.0, 0.0), (0.0, 0.0, 0.0), field_of_view=90.0, near=0.5)
    floor = [(-9.0, -5.0, -0.5), (9.0, -5.0, -0.5), (0.0, 30.0, -0.5)]  # from behind the eye to far ahead
    keys, ids = draw(camera_vertices(camera, floor, size), [[0, 1, 2]], size, near=camera.near)
    assert (ids[:8] == NOTHING).all()  # above the horizon
    assert (ids[8:, 8] == 0).all()
    assert keys.max() <= 1.0 / camera.near
    nearer = look_at((0.0, -1.0, 0.0), (0.0, 0.0, 0.0), field_of_view=90.0, near=0.6)
    _, ids = draw(camera_vertices(nearer, floor, size), [[0, 1, 2]], size, near=nearer.near)
    assert (ids[-1] == NOTHING).all()  # the last row sees the floor at depth 0.533
    assert (ids[-4, 8] == 0).all()


@pytest.mark.parametrize(
    "points",
    [
        [(-1, -5, -1), (1, -5, -1), (0, -5, 1)],  # behind the camera
        [(50, 0, 0), (51, 0, 0), (50, 0, 1)],  # off to the side
        [(0, 0, 0), (0.5, 0, 0.5), (1, 0, 1)],  # without area
        [(0, 0, 0), (0, 1, 0), (0, 2, 0)],  # a line towards the eye
        [(0, 0, 0), (0, 0, 0), (0, 0, 0)],
    ],
)
def test_what_cannot_be_seen_is_not_drawn(points):
    size = (12, 12)
    camera = look_at((0.0, -2.0, 0.0), (0.0, 0.0, 0.0))
    keys, ids = draw(camera_vertices(camera, points, size), [[0, 1, 2]], size)
    assert (ids == NOTHING).all()
    assert (keys == -np.inf).all()


def test_a_light_takes_the_greatest_height():
    """W = 1 and K the height, without near plane: a shadow map."""
    places = np.array([(0, 0), (8, 0), (0, 8)], float)
    vertices = np.column_stack([np.vstack([places, places]), np.ones(6), [-1, -1, -1, 700, 701, 702]])
    keys = np.empty((8, 8, 1), np.float32)
    no_ids = np.empty((0, 0, 0), np.int32)
    rasterise(vertices, np.array([[0, 1, 2], [3, 4, 5]], np.int32), CENTRE, 0.5, keys, no_ids)
    assert keys[2, 1, 0] == pytest.approx(700 + 1.5 / 8 + 2 * 2.5 / 8, rel=1e-6)
    assert keys[7, 7, 0] == -np.inf


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_samples_share_no_row_and_no_column(side):
    offsets = sample_offsets(side)
    n = side * side
    expected = (np.arange(n) + 0.5) / n
    assert np.sort(offsets[:, 0]) == pytest.approx(expected)
    assert np.sort(offsets[:, 1]) == pytest.approx(expected)


def test_bands_do_not_change_the_picture():
    rng = np.random.default_rng(8)
    vertices = np.column_stack([rng.uniform(-5, 45, (60, 2)), np.ones(60), rng.uniform(1, 2, 60)])
    triangles = rng.integers(0, 60, (80, 3))
    keys, ids = draw(vertices, triangles, (40, 30), sample_offsets(2), near=0.1, n_bands=1)
    for n_bands in (2, 7, 30, 100):
        other_keys, other_ids = draw(vertices, triangles, (40, 30), sample_offsets(2), near=0.1, n_bands=n_bands)
        assert (keys == other_keys).all()
        assert (ids == other_ids).all()
