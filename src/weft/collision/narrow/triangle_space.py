"""A continuous point-triangle test in the triangle's own space.

Paper: da Silva, "Cloth animation with collision detection", section 9.1.2, as suggested there by S. Rotemberg: make the
triangle stationary, project the point's first and last positions into its space, and report a collision where they lie
on opposite sides of the plane z = 0.

The paper only sketches it. Our space is spanned by two sides e1, e2 and the unit normal of the triangle, each at its
own end of the step, so that a triangle that turns and stretches is stationary: (u, v) are barycentric coordinates, z is
the height. The point's path between the two ends is taken as straight in that space, which is exact only where the
triangle moves without turning or changing shape. The path crosses z = 0 at t = z_0 / (z_0 - z_1), and the crossing is a
contact where u, v >= 0 and u + v <= 1. Points within the separation of the plane count as on it.

Kept for comparison: where a triangle turns over, or degenerates, its sides mean nothing, and a point that crosses and
returns within a step is not seen. Edges have no such space: the paper tests them by the cubic only.
"""

from __future__ import annotations

import math

from weft.arrays import Floats, Ints
from weft.geometry.vectors import Vector
from weft.jit import kernel


@kernel
def local_coordinates(x: Floats, i: int, a: int, b: int, c: int) -> Vector:
    """u, v, z of vertex i in the space of triangle (a, b, c); NaN where the triangle has no area."""
    e1x, e1y, e1z = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    e2x, e2y, e2z = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
    dx, dy, dz = x[i, 0] - x[a, 0], x[i, 1] - x[a, 1], x[i, 2] - x[a, 2]
    nx, ny, nz = e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x
    nn = nx * nx + ny * ny + nz * nz
    u = (nx * (dy * e2z - dz * e2y) + ny * (dz * e2x - dx * e2z) + nz * (dx * e2y - dy * e2x)) / nn
    v = (nx * (e1y * dz - e1z * dy) + ny * (e1z * dx - e1x * dz) + nz * (e1x * dy - e1y * dx)) / nn
    return u, v, (nx * dx + ny * dy + nz * dz) / math.sqrt(nn)


@kernel
def compute_triangle_space_contacts(
    x_t0: Floats, x_t1: Floats, vertices: Ints, separation: float, times_out: Floats
) -> None:
    """Overwrites times_out with the time at which vertex and triangle of each row meet; infinity for never."""
    for q in range(len(vertices)):
        i, a, b, c = vertices[q, 0], vertices[q, 1], vertices[q, 2], vertices[q, 3]
        u0, v0, z0 = local_coordinates(x_t0, i, a, b, c)
        u1, v1, z1 = local_coordinates(x_t1, i, a, b, c)
        times_out[q] = math.inf
        if min(z0, z1) > separation or max(z0, z1) < -separation:
            continue
        t = 0.0
        if abs(z0) > separation:
            t = (abs(z0) - separation) / abs(z0 - z1)
        u, v = u0 + t * (u1 - u0), v0 + t * (v1 - v0)
        if u >= 0.0 and v >= 0.0 and u + v <= 1.0:
            times_out[q] = t
