"""A node that bounces inside an icosahedron (Bigliani and Eischen, Fig. 6): the first test that fails lets it out.

Free fall between the steps, restitution 1 at the walls (eq. 11 with a wall at rest), and the node keeps its position in
a step in which it collides, as the paper recommends. Every few bounces the node is aimed at a point of an edge, or at a
vertex, exactly: there, where triangles meet, an inside test may fail for all of them.
"""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Floats, Ints
from weft.collision.narrow.conservative import first_contact
from weft.collision.narrow.cubic import compute_cubic_contacts
from weft.collision.narrow.segment_plane import NONE, segment_triangle, triangle_at, triangle_normal
from weft.collision.narrow.triangle_space import compute_triangle_space_contacts
from weft.jit import kernel

ANGLE_SUM, AXIS_CROSSING, CONSERVATIVE, CUBIC, CUBIC_MONOTONE, TRIANGLE_SPACE = range(6)
NODE = 12  # its row in the positions, after the icosahedron's twelve vertices
AIM_EVERY = 5  # bounces


def icosahedron() -> tuple[Floats, Ints]:
    """Positions of an icosahedron of radius 1, and of the node in its centre; its triangles, outwards."""
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    x = np.array([p for a in (-1, 1) for b in (-golden, golden) for p in ((0, a, b), (a, b, 0), (b, 0, a))], np.float64)
    x /= np.linalg.norm(x[0])
    # a turn that is no multiple of anything, so that no coordinate is exact by chance
    turn = np.linalg.qr(np.array([[0.3, 0.5, -0.2], [0.7, -0.1, 0.4], [0.2, 0.6, 0.9]]))[0]
    x = np.concatenate([x @ turn.T, np.zeros((1, 3))])
    side = np.linalg.norm(x[0] - x[1:12], axis=1).min()
    near = np.linalg.norm(x[:12, None] - x[None, :12], axis=2) < 1.1 * side
    faces = [
        (i, j, k) if np.dot(np.cross(x[j] - x[i], x[k] - x[i]), x[i]) > 0 else (i, k, j)
        for i in range(12)
        for j in range(i + 1, 12)
        for k in range(j + 1, 12)
        if near[i, j] and near[j, k] and near[i, k]
    ]
    assert len(faces) == 20
    return x, np.array(faces, np.int32)


@kernel
def _hits(x_t0: Floats, x_t1: Floats, row: Ints, test: int, tolerance: float, times: Floats) -> bool:
    """Does the node meet the triangle in this step, as the test sees it?"""
    if test in (ANGLE_SUM, AXIS_CROSSING):
        start = x_t0[row[0, 0], 0], x_t0[row[0, 0], 1], x_t0[row[0, 0], 2]
        end = x_t1[row[0, 0], 0], x_t1[row[0, 0], 1], x_t1[row[0, 0], 2]
        s = triangle_at(x_t0, row[0, 1], row[0, 2], row[0, 3])
        kind, _ = segment_triangle(start, end, s, test == ANGLE_SUM, tolerance)
        return bool(kind != NONE)
    if test == CONSERVATIVE:
        return bool(first_contact(x_t0, x_t1, row[0, 0], row[0, 1], row[0, 2], row[0, 3], False, tolerance) <= 1.0)
    if test == TRIANGLE_SPACE:
        compute_triangle_space_contacts(x_t0, x_t1, row, tolerance, times)
    else:
        compute_cubic_contacts(x_t0, x_t1, row, False, tolerance, test == CUBIC_MONOTONE, times)
    return bool(times[0] <= 1.0)


@kernel(allocates=True)
def bounce(
    x_t0: Floats,
    faces: Ints,
    test: int,
    tolerance: float,
    stride: float,
    landing: bool,
    n_steps: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Steps until the node is outside (-1 for never), and the number of bounces.

    Parameters
    ----------
    x_t0 : (13, 3), overwritten
    stride : length of the node's path in a step; the radius is 1
    landing : a node that is aimed at a wall is to end its step exactly there, up to rounding
    """
    x_t1 = x_t0.copy()
    v = np.array([0.6, 0.48, 0.64]) * stride
    fall = 0.01 * stride
    row, times = np.empty((1, 4), np.int32), np.empty(1)
    bounces = 0
    for step in range(n_steps):
        v[2] -= fall
        for axis in range(3):
            x_t1[NODE, axis] = x_t0[NODE, axis] + v[axis]
        hit = False
        for f in range(len(faces)):
            row[0, 0], row[0, 1], row[0, 2], row[0, 3] = NODE, faces[f, 0], faces[f, 1], faces[f, 2]
            n = triangle_normal(triangle_at(x_t0, faces[f, 0], faces[f, 1], faces[f, 2]))
            nn = n[0] * n[0] + n[1] * n[1] + n[2] * n[2]
            along = (n[0] * v[0] + n[1] * v[1] + n[2] * v[2]) / nn
            if _hits(x_t0, x_t1, row, test, tolerance, times):
                hit = True
                if along > 0.0:  # restitution 1 along the wall's normal
                    for axis in range(3):
                        v[axis] -= 2.0 * along * n[axis]
        if hit:
            bounces += 1
            if bounces % AIM_EVERY == 0:
                face, corner = int(rng.random() * len(faces)), int(rng.random() * 3.0)
                part = rng.random() if rng.random() < 0.7 else 0.0
                a, b = faces[face, corner], faces[face, (corner + 1) % 3]
                for axis in range(3):
                    v[axis] = (1.0 - part) * x_t0[a, axis] + part * x_t0[b, axis] - x_t0[NODE, axis]
                if landing:
                    v[2] += fall
                    continue
            speed = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
            for axis in range(3):
                v[axis] *= stride / speed
            continue
        for axis in range(3):
            x_t0[NODE, axis] = x_t1[NODE, axis]
        for f in range(len(faces)):
            s = triangle_at(x_t0, faces[f, 0], faces[f, 1], faces[f, 2])
            n = triangle_normal(s)
            if n[0] * (x_t0[NODE, 0] - s[0]) + n[1] * (x_t0[NODE, 1] - s[1]) + n[2] * (x_t0[NODE, 2] - s[2]) > 1e-12:
                return step, bounces
    return -1, bounces
