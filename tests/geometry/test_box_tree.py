"""The box tree against comparing every box with every other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.geometry.box_tree import FIRST_GUESS, LEAF_SIZE, build_box_tree, find_pairs, find_self_pairs
from weft.geometry.mesh import build_grid

LARGEST = np.finfo(np.float64).max
SMALLEST = np.nextafter(0.0, 1.0)


def soup(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and triangles of (m, 3, 3) corners."""
    return np.ascontiguousarray(corners.reshape(-1, 3)), np.arange(corners.size // 3, dtype=np.int32).reshape(-1, 3)


def boxes_meet(corners: np.ndarray, others: np.ndarray) -> np.ndarray:
    low, high = corners.min(axis=1)[:, None], corners.max(axis=1)[:, None]
    return ((low <= others.max(axis=1)[None]) & (others.min(axis=1)[None] <= high)).all(axis=2)


def check(corners: np.ndarray, others: np.ndarray) -> None:
    tree, other_tree = build_box_tree(*soup(corners)), build_box_tree(*soup(others))
    pairs = find_pairs(tree, other_tree)
    assert pairs.dtype == np.int32
    expected = np.argwhere(boxes_meet(corners, others)).tolist()
    assert sorted(pairs.tolist()) == expected
    self_pairs = find_self_pairs(tree)
    self_expected = np.argwhere(np.triu(boxes_meet(corners, corners), 1)).tolist()
    assert sorted(np.sort(self_pairs, axis=1).tolist()) == self_expected


def random_corners(seed: int, m: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(m, 1, 3)) + rng.normal(size=(m, 3, 3))


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 70), st.floats(0, 30))
def test_random(seed: int, m: int, n: int, spread: float) -> None:
    check(random_corners(seed, m, spread), random_corners(seed + 1, n, spread))


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 4), st.sampled_from([0, 1000, -1074]))
def test_touching_boxes(seed: int, m: int, width: int, exponent: int) -> None:
    """On a lattice many boxes touch in a face, an edge or a corner."""
    values = np.random.default_rng(seed).integers(-width, width + 1, (2, m, 3, 3)).astype(float)
    check(*np.ldexp(values, exponent))


@pytest.mark.parametrize("m", [1, LEAF_SIZE, LEAF_SIZE + 1, 4 * LEAF_SIZE, 300, 1025])
def test_sizes(m: int) -> None:
    check(random_corners(m, m, 3.0), random_corners(m + 1, 37, 3.0))


def test_extremes() -> None:
    values = [-LARGEST, -1.0, -SMALLEST, 0.0, SMALLEST, 1.0, LARGEST]
    check(*np.random.default_rng(5).choice(values, (2, 60, 3, 3)))


@pytest.mark.parametrize("point", [[0.0, 0.0, 0.0], [LARGEST, -LARGEST, SMALLEST]])
def test_all_in_one_point(point: list[float]) -> None:
    corners = np.broadcast_to(np.array(point), (30, 3, 3)).copy()
    check(corners, corners)


def test_more_pairs_than_guessed() -> None:
    """All boxes meet: the buffers must grow, and nothing may be lost."""
    m = 20 * FIRST_GUESS
    corners = random_corners(1, m, 0.0)
    corners[:, 0], corners[:, 1] = -9.0, 9.0
    tree = build_box_tree(*soup(corners))
    assert len(find_self_pairs(tree)) == m * (m - 1) // 2 > FIRST_GUESS * m
    assert len(np.unique(find_pairs(tree, tree), axis=0)) == m * m


def test_crowd_in_one_corner() -> None:
    """One chunk of the work finds nearly all pairs."""
    check(np.concatenate([random_corners(2, 100, 0.0), 50.0 * random_corners(3, 900, 9.0)]), random_corners(4, 50, 0.0))


def test_nodes_hold_their_children() -> None:
    grid = build_grid((1.0, 2.0), (12, 9))
    tree = build_box_tree(grid.positions, grid.triangles)
    assert sorted(tree.order.tolist()) == list(range(len(grid.triangles)))
    corners = grid.positions[grid.triangles][tree.order]
    np.testing.assert_array_equal(tree.boxes, np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1))
    np.testing.assert_array_equal(tree.nodes[0, :3], grid.positions.min(axis=0))
    np.testing.assert_array_equal(tree.nodes[0, 3:], grid.positions.max(axis=0))
    for node in range(len(tree.nodes) // 2):
        for child in (2 * node + 1, 2 * node + 2):
            assert (tree.nodes[node, :3] <= tree.nodes[child, :3]).all()
            assert (tree.nodes[node, 3:] >= tree.nodes[child, 3:]).all()
