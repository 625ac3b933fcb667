"""The block matrix against a dense one, assembled entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import dense_from_pairs, implicit_matrix, random_system

from weft.arrays import NO_FLOATS
from weft.linear.blocks import build_matrix, update_implicit_matrix, update_stiffness_product


def assembled(pairs, stiffness, damping, masses, extra, dt, even=NO_FLOATS):
    matrix = build_matrix(pairs, len(masses), len(even))
    update_implicit_matrix(masses, extra, stiffness, damping, even, dt, matrix)
    return matrix


def to_dense(matrix):
    n = len(matrix.diagonal)
    dense = np.zeros((n, 3, n, 3))
    for i in range(n):
        dense[i, :, i, :] += matrix.diagonal[i]
        for item in matrix.row_blocks[matrix.row_starts[i] : matrix.row_starts[i + 1]]:
            block, is_later = divmod(item, 2)
            full = len(matrix.off_diagonal)
            b = matrix.off_diagonal[block] if block < full else matrix.even[block - full] * np.eye(3)
            dense[i, :, matrix.ends[block, 1 - is_later], :] += b.T if is_later else b
    return dense.reshape(3 * n, 3 * n)


@pytest.mark.parametrize(("n", "n_pairs"), [(2, 5), (9, 30), (40, 120)])
def test_matrix_is_the_dense_one(rng, n, n_pairs):
    pairs, stiffness, damping, masses, extra = random_system(rng, n, n_pairs)
    matrix = assembled(pairs, stiffness, damping, masses, extra, 0.01)
    wanted = implicit_matrix(masses, pairs, stiffness, damping, extra, 0.01)
    np.testing.assert_allclose(to_dense(matrix), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "n_pairs"), [(3, 4), (40, 120)])
def test_stiffness_product_is_the_dense_one(rng, n, n_pairs):
    pairs = rng.integers(0, n, size=(n_pairs, 2)).astype(np.int32)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    stiffness, v = rng.normal(size=(len(pairs), 3, 3)), rng.normal(size=(n, 3))
    out = np.full((n, 3), np.nan)
    update_stiffness_product(build_matrix(pairs, n), stiffness, NO_FLOATS, v, out)
    np.testing.assert_allclose(out.ravel(), dense_from_pairs(pairs, stiffness, n) @ v.ravel(), rtol=1e-11, atol=1e-11)


def test_even_pairs_are_multiples_of_the_identity(rng):
    """Some beside full pairs of the same vertices, which then have a full block, some twice, some alone."""
    pairs = np.array([[0, 1], [2, 1], [1, 2], [3, 0], [0, 3], [2, 3]], np.int32)
    stiffness, damping = rng.normal(size=(2, 2, 3, 3))
    even, masses, v = rng.normal(size=4), np.arange(1.0, 5.0), rng.normal(size=(4, 3))
    matrix = assembled(pairs, stiffness, damping, masses, np.zeros((4, 3, 3)), 0.3, even)
    assert (len(matrix.off_diagonal), len(matrix.even)) == (2, 2)
    whole = np.concatenate([stiffness, even[:, None, None] * np.eye(3)])
    padded = np.concatenate([damping, np.zeros((4, 3, 3))])
    wanted = implicit_matrix(masses, pairs, whole, padded, np.zeros((4, 3, 3)), 0.3)
    np.testing.assert_allclose(to_dense(matrix), wanted, rtol=1e-12, atol=1e-12)
    out = np.full((4, 3), np.nan)
    update_stiffness_product(matrix, stiffness, even, v, out)
    np.testing.assert_allclose(out.ravel(), dense_from_pairs(pairs, whole, 4) @ v.ravel(), rtol=1e-12, atol=1e-12)


def test_pairs_in_both_orders_enter_as_transposes(rng):
    """Blocks that are not symmetric show which of the two rows each one goes to."""
    pairs = np.array([[0, 2], [2, 0], [0, 2], [1, 2]], np.int32)
    stiffness = rng.normal(size=(4, 3, 3))
    none = np.zeros((4, 3, 3))
    matrix = assembled(pairs, stiffness, none, np.zeros(3), np.zeros((3, 3, 3)), 1.0)
    wanted = dense_from_pairs(pairs, stiffness, 3)
    np.testing.assert_allclose(to_dense(matrix), wanted, atol=1e-14)


def test_repeated_pairs_share_one_block():
    pairs = np.array([[3, 1], [1, 3], [1, 3], [0, 3]], np.int32)
    matrix = build_matrix(pairs, 5)
    np.testing.assert_array_equal(matrix.ends, [[0, 3], [1, 3]])
    np.testing.assert_array_equal(matrix.row_starts, [0, 1, 2, 2, 4, 4])
    np.testing.assert_array_equal(matrix.row_blocks, [2 * 0, 2 * 1, 2 * 0 + 1, 2 * 1 + 1])
    np.testing.assert_array_equal(np.diff(matrix.source_starts), [1, 3])
    np.testing.assert_array_equal(matrix.sources[1:4], [2 * 0 + 1, 2 * 1, 2 * 2])  # in the order of the pairs


def test_assembly_overwrites_what_was_there(rng):
    pairs, stiffness, damping, masses, extra = random_system(rng, 6, 12)
    matrix = assembled(pairs, stiffness, damping, masses, extra, 0.02)
    once = to_dense(matrix)
    update_implicit_matrix(masses, extra, stiffness, damping, NO_FLOATS, 0.02, matrix)
    np.testing.assert_array_equal(to_dense(matrix), once)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_no_pairs(n):
    pairs = np.zeros((0, 2), np.int32)
    none = np.zeros((0, 3, 3))
    masses = np.arange(1.0, n + 1.0)
    matrix = assembled(pairs, none, none, masses, np.zeros((n, 3, 3)), 0.1)
    np.testing.assert_array_equal(to_dense(matrix), np.diag(np.repeat(masses, 3)))
