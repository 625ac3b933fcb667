"""Which triangles pass through one another, by solving for each edge against each triangle with numpy."""

from __future__ import annotations

import numpy as np


def is_crossing(x, triangle_a, triangle_b):
    """Whether an edge of one triangle passes through the inside of the other, clear of rounding."""
    return any(
        _edge_through(x[p], x[q], x[second])
        for first, second in ((triangle_a, triangle_b), (triangle_b, triangle_a))
        for p, q in ((first[0], first[1]), (first[1], first[2]), (first[2], first[0]))
    )


def _edge_through(p, q, corners):
    a, b, c = corners
    matrix = np.stack([q - p, a - b, a - c], axis=1)
    scale = np.abs(matrix).max()
    if scale == 0.0 or abs(np.linalg.det(matrix / scale)) < 1e-9:
        return False
    s, u, v = np.linalg.solve(matrix, a - p)
    return 1e-9 < s < 1 - 1e-9 and u > 1e-9 and v > 1e-9 and u + v < 1 - 1e-9


def crossing_pairs(x, triangles, pairs):
    """Those of `pairs` (k, 2) that cross and share no vertex."""
    return [
        (i, j)
        for i, j in pairs
        if not set(triangles[i]) & set(triangles[j]) and is_crossing(x, triangles[i], triangles[j])
    ]
