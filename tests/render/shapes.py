"""Closed shapes to draw, with outward triangles."""

from __future__ import annotations

import numpy as np


def box(size, center):
    """A box of eight vertices and twelve triangles."""
    corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [(a, b, c) for a, b, c, _ in quads] + [(a, c, d) for a, _, c, d in quads]
    return corners * size + np.asarray(center, float), np.array(triangles, np.int32)


def sphere(radius, center, n=16):
    """A sphere of n rings from pole to pole."""
    polar, around = np.meshgrid(np.pi * np.arange(n + 1) / n, np.pi * np.arange(2 * n) / n, indexing="ij")
    x = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1)
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(n), np.arange(2 * n), indexing="ij"))
    a, b = i * 2 * n + j, i * 2 * n + (j + 1) % (2 * n)
    c, d = a + 2 * n, b + 2 * n
    triangles = np.concatenate([np.stack([a, c, b], 1)[i > 0], np.stack([b, c, d], 1)[i < n - 1]])
    return radius * x.reshape(-1, 3) + np.asarray(center, float), triangles.astype(np.int32)
