"""Signed distances of all shapes, and the first touch along a path, one point at a time.

Box, sphere and capsule are one solid: a box that may be flat, a line or a point, rounded by a radius.
"""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Floats, Ints
from weft.bodies.solids import CYLINDER, PLANE, Solid
from weft.geometry.vectors import Vector
from weft.jit import kernel, prange

TRACE_STEPS = 64  # of Newton's method, which takes about 4; a vertex still under way then counts as touching
TOUCH = 1e-9  # [m] closer than this to the contact distance is touching


@kernel
def signed_distance(kind: int, size: Floats, x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """The distance of a point in the frame of the solid, negative inside, and the outward normal."""
    if kind == PLANE:
        return x * size[0] + y * size[1] + z * size[2], size[0], size[1], size[2]
    if kind == CYLINDER:
        rho = math.sqrt(x * x + y * y)
        ex, ey = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
        side, end = rho - size[0], abs(z) - size[1]
        up = -1.0 if z < 0.0 else 1.0
        if side > 0.0 and end > 0.0:
            far = math.sqrt(side * side + end * end)
            return far, side / far * ex, side / far * ey, end / far * up
        if side >= end:
            return side, ex, ey, 0.0
        return end, 0.0, 0.0, up
    qx, qy, qz = abs(x) - size[0], abs(y) - size[1], abs(z) - size[2]
    sx, sy, sz = -1.0 if x < 0.0 else 1.0, -1.0 if y < 0.0 else 1.0, -1.0 if z < 0.0 else 1.0
    ox, oy, oz = max(qx, 0.0), max(qy, 0.0), max(qz, 0.0)
    far = math.sqrt(ox * ox + oy * oy + oz * oz)
    if far > 0.0:
        return far - size[3], sx * ox / far, sy * oy / far, sz * oz / far
    if qx >= qy and qx >= qz:
        return qx - size[3], sx, 0.0, 0.0
    if qy >= qz:
        return qy - size[3], 0.0, sy, 0.0
    return qz - size[3], 0.0, 0.0, sz


@kernel
def update_distances(kind: int, size: Floats, points: Floats, distances_out: Floats, normals_out: Floats) -> None:
    """Overwrite the distance and the normal of each of `points`."""
    for i in range(len(points)):
        d, nx, ny, nz = signed_distance(kind, size, points[i, 0], points[i, 1], points[i, 2])
        distances_out[i] = d
        normals_out[i, 0], normals_out[i, 1], normals_out[i, 2] = nx, ny, nz


def distances(solid: Solid, points: Floats) -> tuple[Floats, Floats]:
    """Signed distances (n,) [m] and outward unit normals (n, 3) at `points` (n, 3), in the frame of the solid."""
    points = np.ascontiguousarray(points)
    d, normals = np.empty(len(points)), np.empty((len(points), 3))
    update_distances(solid.kind, solid.size, points, d, normals)
    return d, normals


@kernel
def _to_local(rotation: Floats, position: Floats, x: Floats, i: int) -> Vector:
    dx, dy, dz = x[i, 0] - position[0], x[i, 1] - position[1], x[i, 2] - position[2]
    return (
        rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz,
        rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz,
        rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz,
    )


@kernel
def _to_world(rotation: Floats, x: float, y: float, z: float) -> Vector:
    return (
        rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] * z,
        rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] * z,
        rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z,
    )


@kernel
def _first_touch(kind: int, size: Floats, p: Vector, way: Vector, clearance: float) -> float:
    """The share of the way from p at which the point is first closer than `clearance`; -1 where it never is.

    The distance to a convex solid is convex along the way, so that Newton's method never steps over the first touch.
    """
    gap, nx, ny, nz = signed_distance(kind, size, p[0], p[1], p[2])
    gap -= clearance
    if gap > math.sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]) + TOUCH:
        return -1.0
    s = 0.0
    for _ in range(TRACE_STEPS):
        if gap <= TOUCH:
            return s
        rate = nx * way[0] + ny * way[1] + nz * way[2]
        if gap + (1.0 - s) * rate >= TOUCH:
            return -1.0
        s -= gap / rate
        gap, nx, ny, nz = signed_distance(kind, size, p[0] + s * way[0], p[1] + s * way[1], p[2] + s * way[2])
        gap -= clearance
    return s


@kernel(parallel=True)
def update_shares(
    kind: int,
    size: Floats,
    poses: tuple[Floats, Floats, Floats, Floats],
    x_t0: Floats,
    x_t1: Floats,
    clearance: Floats,
    shares_out: Floats,
) -> None:
    """Overwrite the share of its way at which each vertex first touches the solid; -1 where it never does.

    `poses` are the rotation (3, 3) and the position (3,) at the start, then at the end.
    """
    rotation_t0, position_t0, rotation_t1, position_t1 = poses
    for i in prange(len(x_t0)):
        p = _to_local(rotation_t0, position_t0, x_t0, i)
        q = _to_local(rotation_t1, position_t1, x_t1, i)
        shares_out[i] = _first_touch(kind, size, p, (q[0] - p[0], q[1] - p[1], q[2] - p[2]), clearance[i])


@kernel
def fill_contacts(
    kind: int,
    size: Floats,
    poses: tuple[Floats, Floats, Floats, Floats],
    x_t0: Floats,
    x_t1: Floats,
    clearance: Floats,
    shares: Floats,
    dt: float,
    vertices_out: Ints,
    normals_out: Floats,
    gaps_out: Floats,
    velocities_out: Floats,
) -> None:
    """Overwrite what `PlaneContacts` says of the vertices whose share is not -1, in order."""
    rotation_t0, position_t0, rotation_t1, position_t1 = poses
    k = 0
    for i in range(len(x_t0)):
        s = shares[i]
        if s < 0.0:
            continue
        p = _to_local(rotation_t0, position_t0, x_t0, i)
        q = _to_local(rotation_t1, position_t1, x_t1, i)
        hx, hy, hz = p[0] + s * (q[0] - p[0]), p[1] + s * (q[1] - p[1]), p[2] + s * (q[2] - p[2])
        d, nx, ny, nz = signed_distance(kind, size, hx, hy, hz)
        normal, end, start = (
            _to_world(rotation_t1, nx, ny, nz),
            _to_world(rotation_t1, hx, hy, hz),
            _to_world(rotation_t0, hx, hy, hz),
        )
        gap = d - clearance[i]
        for c in range(3):
            point = end[c] + position_t1[c]
            gap += (x_t0[i, c] - point) * normal[c]
            normals_out[k, c] = normal[c]
            velocities_out[k, c] = (point - start[c] - position_t0[c]) / dt
        vertices_out[k] = i
        gaps_out[k] = gap
        k += 1
