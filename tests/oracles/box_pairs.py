"""Which boxes meet, by comparing all of them in float64 with numpy: what the broad phases are tested against."""

from __future__ import annotations

import numpy as np


def primitive_boxes(x_t0, x_t1, primitives, margin):
    """Lower and upper corners (m, 3) of primitives (m, k) swept from x_t0 to x_t1 and inflated by margin / 2."""
    points = np.concatenate([x_t0[primitives], x_t1[primitives]], axis=1)
    return points.min(axis=1) - margin / 2, points.max(axis=1) + margin / 2


def meeting(a, b):
    """(n, m) bool: box i of a meets box j of b."""
    lower_a, upper_a = a
    lower_b, upper_b = b
    return ((lower_a[:, None] <= upper_b[None]) & (lower_b[None] <= upper_a[:, None])).all(axis=2)


def sharing(primitives_a, primitives_b):
    """(n, m) bool: primitive i of a has a vertex in common with primitive j of b."""
    return (primitives_a[:, None, :, None] == primitives_b[None, :, None, :]).any(axis=(2, 3))


def triangle_pairs(x_t0, x_t1, triangles, margin):
    boxes = primitive_boxes(x_t0, x_t1, triangles, margin)
    return set(zip(*np.nonzero(np.triu(meeting(boxes, boxes), 1)), strict=True))


def vertex_triangle(x_t0, x_t1, triangles, margin):
    vertices = np.unique(triangles)[:, None]
    hits = meeting(
        primitive_boxes(x_t0, x_t1, vertices, margin), primitive_boxes(x_t0, x_t1, triangles, margin)
    ) & ~sharing(vertices, triangles)
    rows, columns = np.nonzero(hits)
    return set(zip(vertices[rows, 0], columns, strict=True))


def edge_edge(x_t0, x_t1, edges, margin):
    boxes = primitive_boxes(x_t0, x_t1, edges, margin)
    return set(zip(*np.nonzero(np.triu(meeting(boxes, boxes) & ~sharing(edges, edges), 1)), strict=True))


def cross_pairs(ends_a, primitives_a, ends_b, primitives_b, margin):
    hits = meeting(primitive_boxes(*ends_a, primitives_a, margin), primitive_boxes(*ends_b, primitives_b, margin))
    return set(zip(*np.nonzero(hits), strict=True))
