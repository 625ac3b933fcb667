import numpy as np

from weft.collision.broad import join_meshes
from weft.collision.broad.layout import compact_order, pattern_coordinates, split_evenly
from weft.geometry.mesh import Mesh, build_grid


def test_halves_are_even_and_cut_across_the_longest_axis():
    rng = np.random.default_rng(0)
    points = rng.random((101, 2)) * [1.0, 5.0]
    group = rng.integers(0, 3, 101)
    side = split_evenly(points, group)
    for g in range(3):
        inside = group == g
        n = inside.sum()
        assert (side[inside] == 0).sum() == -(-n // 2)
        assert points[inside & (side == 0), 1].max() <= points[inside & (side == 1), 1].min()


def test_equal_points_are_parted_by_index():
    side = split_evenly(np.zeros((7, 3)), np.zeros(7, np.int64))
    np.testing.assert_array_equal(side, [0, 0, 0, 0, 1, 1, 1])


def test_compact_order_is_a_permutation_into_small_clusters():
    points = build_grid((1.0, 1.0), (33, 33)).positions[:, :2]
    order = compact_order(points, 8)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(points)))
    clusters = points[order][: len(points) // 8 * 8].reshape(-1, 8, 2)
    extent = np.ptp(clusters, axis=1).max(axis=1)
    # eight points of a grid fit into 3 x 4; along a row they would span 7 cells
    assert np.median(extent) <= 3.01 / 32
    assert extent.max() <= 5.01 / 32


def test_parts_that_overlap_in_the_pattern_are_taken_apart():
    part = build_grid((1.0, 1.0), (5, 5))
    coordinates = pattern_coordinates(join_meshes([part, part]))
    assert coordinates[:25, 0].max() < coordinates[25:, 0].min()


def test_front_and_back_of_a_thin_body_are_taken_apart():
    front = build_grid((1.0, 1.0), (9, 9))
    x = np.concatenate([front.positions, front.positions - np.array([0, 0, 1e-4])])
    border = [i for i in range(81) if i // 9 in (0, 8) or i % 9 in (0, 8)]
    weld = np.arange(162)
    weld[np.array(border) + 81] = border
    triangles = np.concatenate([front.triangles, weld[front.triangles[:, ::-1] + 81]])
    mesh = Mesh(x, triangles.astype(np.int32))
    coordinates = pattern_coordinates(mesh)
    middle = 40
    distance = np.linalg.norm(coordinates[middle] - coordinates[middle + 81])
    assert distance > 5 / 8  # more than five edges, though 0.1 mm apart at rest
