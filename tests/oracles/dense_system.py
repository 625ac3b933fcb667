"""Dense matrices from pairs of vertices, and the constrained solve in a basis of the free directions."""

from __future__ import annotations

import numpy as np


def dense_from_pairs(pairs, blocks, n):
    """(3n, 3n): each pair adds its block, the transposed one opposite it, and what makes the row sums vanish."""
    matrix = np.zeros((3 * n, 3 * n))
    for (i, j), block in zip(np.asarray(pairs), blocks, strict=True):
        rows, columns = slice(3 * i, 3 * i + 3), slice(3 * j, 3 * j + 3)
        matrix[rows, columns] += block
        matrix[columns, rows] += block.T
        matrix[rows, rows] -= block
        matrix[columns, columns] -= block.T
    return matrix


def block_diagonal(blocks):
    """(3n, 3n) with (n, 3, 3) on its diagonal."""
    n = len(blocks)
    matrix = np.zeros((n, 3, n, 3))
    for i, block in enumerate(blocks):
        matrix[i, :, i, :] = block
    return matrix.reshape(3 * n, 3 * n)


def spring_blocks(springs):
    """(m, 3, 3) a n n^T + c (I - n n^T) of each."""
    n = springs.normals
    lift = (springs.along - springs.across)[:, None, None] * n[:, :, None] * n[:, None, :]
    return lift + springs.across[:, None, None] * np.eye(3)


def spring_matrix(vertices, weights, blocks, n):
    """(3n, 3n): the sum of (w w^T) (x) B over contacts of four vertices."""
    matrix = np.zeros((n, 3, n, 3))
    for row, w, block in zip(vertices, weights, blocks, strict=True):
        for i, wi in zip(row, w, strict=True):
            for j, wj in zip(row, w, strict=True):
                matrix[i, :, j, :] += wi * wj * block
    return matrix.reshape(3 * n, 3 * n)


def implicit_matrix(masses, pairs, stiffness, damping, extra, dt):
    """M + dt (D + extra) + dt^2 K of Baraff and Witkin."""
    n = len(masses)
    k, d = dense_from_pairs(pairs, stiffness, n), dense_from_pairs(pairs, damping, n)
    return np.diag(np.repeat(masses, 3)) + dt * (d + block_diagonal(extra)) + dt**2 * k


def solve_constrained(matrix, b, filters, change):
    """The x that is `change` plus something free, with no residual in the free directions.

    The free directions are the eigenvectors of the projectors with eigenvalue 1: the system is reduced to them, which
    is another way than the filtered iteration takes.
    """
    columns = []
    for i, projector in enumerate(filters):
        values, vectors = np.linalg.eigh(projector)
        for vector in vectors.T[values > 0.5]:
            column = np.zeros((len(filters), 3))
            column[i] = vector
            columns.append(column.ravel())
    z = change.ravel()
    if not columns:
        return change.copy()
    basis = np.stack(columns, axis=1)
    y = np.linalg.solve(basis.T @ matrix @ basis, basis.T @ (b.ravel() - matrix @ z))
    return (z + basis @ y).reshape(-1, 3)


def random_system(rng, n, n_pairs, *, repeated=True):
    """Pairs (some repeated, in both orders) with negative semi-definite blocks, masses and air damping."""
    pairs = rng.integers(0, n, size=(n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if repeated and len(pairs):
        pairs = np.concatenate([pairs, pairs[: len(pairs) // 2], pairs[: len(pairs) // 3, ::-1]])
    roots = rng.normal(size=(2, len(pairs), 3, 3))
    stiffness, damping = -(roots @ roots.transpose(0, 1, 3, 2)) * np.array([50.0, 0.5])[:, None, None, None]
    roots = rng.normal(size=(n, 3, 3))
    extra = roots @ roots.transpose(0, 2, 1)
    return pairs.astype(np.int32), stiffness, damping, rng.uniform(0.5, 2.0, n), extra


def random_projectors(rng, free):
    """(n, 3, 3) projectors on `free[i]` random directions each."""
    filters = np.zeros((len(free), 3, 3))
    for i, k in enumerate(free):
        q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        filters[i] = q[:, :k] @ q[:, :k].T if k < 3 else np.eye(3)
    return filters
