"""Shifts of whole pieces: no net residual is left, and no solution is made worse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import (
    implicit_matrix,
    random_projectors,
    random_system,
    solve_constrained,
    spring_matrix,
)

from weft.linear.blocks import build_matrix, update_implicit_matrix
from weft.linear.constraints import build_constraints
from weft.linear.pcg import update_residual
from weft.linear.springs import build_springs
from weft.linear.translations import Translations

N = 30  # vertices: two pieces of 12 and 16, and two single ones
PIECES = [np.arange(12), np.arange(12, 28), np.array([28]), np.array([29])]


@pytest.fixture
def pieces(rng):
    """The matrix in blocks and dense, its pairs and a right-hand side."""
    parts = [random_system(rng, len(piece), 4 * len(piece)) for piece in PIECES[:2]]
    pairs = np.concatenate([part[0] + np.int32(piece[0]) for part, piece in zip(parts, PIECES, strict=False)])
    stiffness, damping = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    masses, extra = rng.uniform(0.5, 2.0, N), np.zeros((N, 3, 3))
    matrix = build_matrix(pairs, N)
    update_implicit_matrix(np.zeros((N, 3)), masses, extra, stiffness, damping, 0.05, matrix, np.zeros((N, 3)))
    dense = implicit_matrix(masses, pairs, stiffness, damping, extra, 0.05)
    return pairs, matrix, dense, rng.normal(size=(N, 3))


def corrected(pieces, constraints, x):
    pairs, matrix, _, b = pieces
    x, residual = x.copy(), np.empty_like(x)
    update_residual(matrix, constraints.springs, x, b, residual)
    Translations(pairs, N).correct(matrix, constraints, x, residual)
    fresh = np.empty_like(x)
    update_residual(matrix, constraints.springs, x, b, fresh)
    np.testing.assert_allclose(residual, fresh, atol=1e-10)
    return x, residual


def test_free_pieces_keep_no_net_residual_each(pieces, rng):
    _, residual = corrected(pieces, build_constraints(N), rng.normal(size=(N, 3)))
    for piece in PIECES:
        np.testing.assert_allclose(residual[piece].sum(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("free", [(3,), (2,), (0, 3), (0, 1, 2, 3)])
def test_error_in_the_energy_norm_never_grows(pieces, rng, free):
    _, _, dense, b = pieces
    constraints = build_constraints(N)
    constraints.filters[:] = random_projectors(rng, np.resize(free, N))
    blocked = np.eye(3) - constraints.filters
    start = rng.normal(size=(N, 3))
    change = np.einsum("nij,nj->ni", blocked, start)
    exact = solve_constrained(dense, b, constraints.filters, change)
    x, _ = corrected(pieces, constraints, start)
    before, after = ((y - exact).ravel() @ dense @ (y - exact).ravel() for y in (start, x))
    assert after < before
    np.testing.assert_allclose(np.einsum("nij,nj->ni", blocked, x), change, atol=1e-12)


def test_what_is_pinned_stays(pieces, rng):
    constraints = build_constraints(N)
    constraints.filters[PIECES[0]] = 0.0
    start = rng.normal(size=(N, 3))
    x, residual = corrected(pieces, constraints, start)
    np.testing.assert_array_equal(x[PIECES[0]], start[PIECES[0]])
    np.testing.assert_allclose(residual[PIECES[1]].sum(axis=0), 0.0, atol=1e-10)


def test_pieces_in_contact_are_shifted_together(pieces, rng):
    """A stiff contact between two pieces: alone, each would be shifted against the other."""
    _, _, dense, b = pieces
    vertices = np.array([[3, 14, 15, 16], [28, 0, 0, 0]], np.int32)
    weights = np.array([[1.0, -0.5, -0.25, -0.25], [1.0, 0.0, 0.0, 0.0]])
    blocks = np.stack([1e4 * np.eye(3), np.eye(3)])
    constraints = build_constraints(N)._replace(springs=build_springs(vertices, weights, blocks, N))
    full = dense + spring_matrix(vertices, weights, blocks, N)
    exact = np.linalg.solve(full, b.ravel()).reshape(-1, 3)
    start = exact + 1e-3 * rng.normal(size=(N, 3))
    x, residual = corrected(pieces, constraints, start)
    both = np.concatenate(PIECES[:2])
    np.testing.assert_allclose(residual[both].sum(axis=0), 0.0, atol=1e-9)
    before, after = ((y - exact).ravel() @ full @ (y - exact).ravel() for y in (start, x))
    assert after < before
