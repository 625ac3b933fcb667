import numpy as np
import pytest

from weft.collision.culling.centroid_distance import CentroidDistance
from weft.geometry.mesh import Mesh

PAIR = np.array([[0, 1]], np.int32)


def two(corners_a, corners_b):
    x = np.array([*corners_a, *corners_b], float)
    return Mesh(x, np.array([[0, 1, 2], [3, 4, 5]], np.int32))


def is_kept(mesh, threshold, x_t1=None):
    filter_ = CentroidDistance(mesh, CentroidDistance.Parameters(threshold=threshold))
    filter_.refit(mesh.positions, x_t1)
    return bool(filter_.keep(PAIR)[0])


def test_right_isosceles_triangles_that_touch_corner_to_corner():
    """Section IV: 2/3 sqrt(5) legs, with the hypotenuse as the longest edge."""
    leg = 0.3
    a = np.array([[0.0, 0, 0], [leg, 0, 0], [0, leg, 0]])
    b = 2 * a[1] - a  # mirrored through the end of the hypotenuse
    limit = 2 / 3 * np.sqrt(5) * leg / (np.sqrt(2) * leg)
    assert limit == pytest.approx(1.0541, abs=1e-4)
    assert is_kept(two(a, b), limit + 1e-6)
    assert not is_kept(two(a, b), limit - 1e-6)


def test_four_thirds_cannot_be_bettered():
    """Needles that touch tip to tip come as close to 4/3 of the longest edge as one likes."""
    thin = 1e-6
    a = np.array([[1.0, 0, 0], [0, thin, 0], [0, -thin, 0]])
    b = np.array([[1.0, 0, 0], [2, thin, 0], [2, -thin, 0]])
    assert is_kept(two(a, b), 4 / 3)
    assert not is_kept(two(a, b), 4 / 3 - 1e-3)


def test_the_way_between_the_ends_counts():
    a = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    b = a + np.array([0, 0, 10.0])
    passing = np.concatenate([a, a - np.array([0, 0, 10.0])])
    assert not is_kept(two(a, b), 1.0)
    assert is_kept(two(a, b), 1.0, passing)


def test_soundness_is_declared_from_four_thirds_on():
    mesh = two(np.eye(3), np.eye(3))
    assert CentroidDistance(mesh).sound
    assert not CentroidDistance(mesh, CentroidDistance.Parameters(threshold=1.3)).sound
