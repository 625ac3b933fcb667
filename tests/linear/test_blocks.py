"""The block matrix against a dense one, assembled entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import dense_from_pairs, implicit_matrix, random_system

from weft.linear.blocks import build_matrix, update_implicit_matrix


def assembled(pairs, stiffness, damping, masses, extra, v, dt):
    n = len(masses)
    matrix = build_matrix(pairs, n)
    k_times_v = np.full((n, 3), np.nan)
    update_implicit_matrix(v, masses, extra, stiffness, damping, dt, matrix, k_times_v)
    return matrix, k_times_v


def to_dense(matrix):
    n = len(matrix.diagonal)
    dense = np.zeros((n, 3, n, 3))
    for i in range(n):
        dense[i, :, i, :] += matrix.diagonal[i]
        for b in range(matrix.row_starts[i], matrix.row_starts[i + 1]):
            dense[i, :, matrix.columns[b], :] += matrix.off_diagonal[b]
    return dense.reshape(3 * n, 3 * n)


@pytest.mark.parametrize(("n", "n_pairs"), [(2, 5), (9, 30), (40, 120)])
def test_matrix_is_the_dense_one(rng, n, n_pairs):
    pairs, stiffness, damping, masses, extra = random_system(rng, n, n_pairs)
    v = rng.normal(size=(n, 3))
    matrix, k_times_v = assembled(pairs, stiffness, damping, masses, extra, v, 0.01)
    wanted = implicit_matrix(masses, pairs, stiffness, damping, extra, 0.01)
    np.testing.assert_allclose(to_dense(matrix), wanted, rtol=1e-12, atol=1e-12)
    k = dense_from_pairs(pairs, stiffness, n)
    np.testing.assert_allclose(k_times_v.ravel(), k @ v.ravel(), rtol=1e-11, atol=1e-9)


def test_pairs_in_both_orders_enter_as_transposes(rng):
    """Blocks that are not symmetric show which of the two rows each one goes to."""
    pairs = np.array([[0, 2], [2, 0], [0, 2], [1, 2]], np.int32)
    stiffness = rng.normal(size=(4, 3, 3))
    none, v = np.zeros((4, 3, 3)), rng.normal(size=(3, 3))
    matrix, k_times_v = assembled(pairs, stiffness, none, np.zeros(3), np.zeros((3, 3, 3)), v, 1.0)
    wanted = dense_from_pairs(pairs, stiffness, 3)
    np.testing.assert_allclose(to_dense(matrix), wanted, atol=1e-14)
    np.testing.assert_allclose(k_times_v.ravel(), wanted @ v.ravel(), atol=1e-13)


def test_repeated_pairs_share_one_block():
    pairs = np.array([[3, 1], [1, 3], [1, 3], [0, 3]], np.int32)
    matrix = build_matrix(pairs, 5)
    np.testing.assert_array_equal(matrix.row_starts, [0, 1, 2, 2, 4, 4])
    np.testing.assert_array_equal(matrix.columns, [3, 3, 0, 1])
    np.testing.assert_array_equal(np.diff(matrix.source_starts), [1, 3, 1, 3])
    np.testing.assert_array_equal(matrix.sources[1:4], [2 * 0 + 1, 2 * 1, 2 * 2])  # in the order of the pairs


def test_assembly_overwrites_what_was_there(rng):
    pairs, stiffness, damping, masses, extra = random_system(rng, 6, 12)
    v = rng.normal(size=(6, 3))
    matrix, first = assembled(pairs, stiffness, damping, masses, extra, v, 0.02)
    once = to_dense(matrix)
    again = first.copy()
    update_implicit_matrix(v, masses, extra, stiffness, damping, 0.02, matrix, again)
    np.testing.assert_array_equal(to_dense(matrix), once)
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_no_pairs(n):
    pairs = np.zeros((0, 2), np.int32)
    none = np.zeros((0, 3, 3))
    masses = np.arange(1.0, n + 1.0)
    matrix, k_times_v = assembled(pairs, none, none, masses, np.zeros((n, 3, 3)), np.ones((n, 3)), 0.1)
    np.testing.assert_array_equal(to_dense(matrix), np.diag(np.repeat(masses, 3)))
    np.testing.assert_array_equal(k_times_v, np.zeros((n, 3)))
