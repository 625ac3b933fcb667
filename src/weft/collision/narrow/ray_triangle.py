"""Ray against triangle (Moeller and Trumbore), with the depth of penetration.

Paper: Zhu, Xia, Yu and Mao, "A novel method for cloth-body collision detection", section 2.3: from each cloth vertex a
ray towards the centre of each body triangle of its section.

A ray that aims at the centre of a triangle always meets it, at u = v = 1/3, so "the ray hits" says nothing by itself;
the paper does not say what decides. What the test does tell is from which side the triangle is seen, by the sign of the
determinant, and how far away it is. Ours: of all candidate triangles of a vertex the one whose centre is nearest
decides, and the vertex has penetrated where it sees that triangle from behind. The depth is measured along the
triangle's normal. Triangles are anticlockwise seen from outside.

Limits: near a sharp edge of the body the nearest centre may belong to a triangle that faces away, so a vertex outside
may be taken for one inside; `max_depth` bounds how far away such a triangle may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.collision.narrow import ContactKind, Contacts
from weft.geometry.vectors import Vector
from weft.jit import kernel

Hit = tuple[float, float, float, float]


@kernel
def ray_triangle(origin: Vector, direction: Vector, a: Vector, b: Vector, c: Vector) -> Hit:
    """Where a ray meets a triangle.

    Returns
    -------
    t, u, v, determinant : the ray meets the triangle at origin + t direction = (1 - u - v) a + u b + v c, t >= 0;
        t is infinite where it does not. The determinant is -direction . n with n = (b - a) x (c - a): positive where
        the triangle is seen from its front
    """
    e1x, e1y, e1z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    e2x, e2y, e2z = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    px = direction[1] * e2z - direction[2] * e2y
    py = direction[2] * e2x - direction[0] * e2z
    pz = direction[0] * e2y - direction[1] * e2x
    determinant = e1x * px + e1y * py + e1z * pz
    if determinant == 0.0:
        return math.inf, 0.0, 0.0, 0.0
    sx, sy, sz = origin[0] - a[0], origin[1] - a[1], origin[2] - a[2]
    u = (sx * px + sy * py + sz * pz) / determinant
    qx, qy, qz = sy * e1z - sz * e1y, sz * e1x - sx * e1z, sx * e1y - sy * e1x
    v = (direction[0] * qx + direction[1] * qy + direction[2] * qz) / determinant
    t = (e2x * qx + e2y * qy + e2z * qz) / determinant
    if u < 0.0 or v < 0.0 or u + v > 1.0 or t < 0.0:
        return math.inf, u, v, determinant
    return t, u, v, determinant


@kernel
def compute_depths(
    x: Floats, vertex_triangles: Ints, reaches_out: Floats, depths_out: Floats, normals_out: Floats
) -> None:
    """Overwrites, for each row, the length of the ray to the centre, and the depth and normal behind the triangle.

    A depth is negative where the triangle is seen from its front; a reach is infinite where the ray misses.
    """
    for r in range(len(vertex_triangles)):
        i, a, b, c = vertex_triangles[r, 0], vertex_triangles[r, 1], vertex_triangles[r, 2], vertex_triangles[r, 3]
        origin = x[i, 0], x[i, 1], x[i, 2]
        pa, pb, pc = (x[a, 0], x[a, 1], x[a, 2]), (x[b, 0], x[b, 1], x[b, 2]), (x[c, 0], x[c, 1], x[c, 2])
        direction = (
            (pa[0] + pb[0] + pc[0]) / 3.0 - origin[0],
            (pa[1] + pb[1] + pc[1]) / 3.0 - origin[1],
            (pa[2] + pb[2] + pc[2]) / 3.0 - origin[2],
        )
        t, _, _, determinant = ray_triangle(origin, direction, pa, pb, pc)
        ux, uy, uz = pb[0] - pa[0], pb[1] - pa[1], pb[2] - pa[2]
        vx, vy, vz = pc[0] - pa[0], pc[1] - pa[1], pc[2] - pa[2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        reach = math.sqrt(direction[0] ** 2 + direction[1] ** 2 + direction[2] ** 2)
        reaches_out[r] = t * reach
        depths_out[r] = -t * determinant / length
        normals_out[r, 0], normals_out[r, 1], normals_out[r, 2] = nx / length, ny / length, nz / length


@dataclass(frozen=True)
class RayTriangle:
    """Vertices that are behind the nearest of their candidate triangles at the end of the step.

    | parameter | unit | default | range |
    |---|---|---|---|
    | max_depth | m | infinite | > 0; deeper ones are taken to be outside, beyond another part of the body |

    Candidates should be the triangles of a body near the vertex, a section of Skin-H for one. Edges are not looked at.
    """

    max_depth: float = math.inf

    def find_contacts(self, x_t0: Floats, x_t1: Floats, vertex_triangles: Ints, edge_edges: Ints) -> Contacts:
        m = len(vertex_triangles)
        reaches, depths, normals = np.empty(m), np.empty(m), np.empty((m, 3))
        compute_depths(x_t1, vertex_triangles, reaches, depths, normals)
        found = np.flatnonzero(_is_nearest(vertex_triangles[:, 0], reaches) & (depths > 0) & (depths <= self.max_depth))
        weights = np.tile([1.0, -1.0 / 3.0, -1.0 / 3.0, -1.0 / 3.0], (len(found), 1))
        kinds = np.full(len(found), ContactKind.NODE_TRIANGLE, np.int8)
        return Contacts(vertex_triangles[found], weights, normals[found], -depths[found], np.ones(len(found)), kinds)


def _is_nearest(vertices: Ints, reaches: Floats) -> Bools:
    """For each row, whether no row of the same vertex has a shorter ray; of equals the first wins."""
    nearest = np.zeros(len(vertices), np.bool_)
    order = np.lexsort((reaches, vertices))
    first = np.ones(len(vertices), np.bool_)
    first[1:] = vertices[order][1:] != vertices[order][:-1]
    nearest[order[first]] = True
    return nearest & np.isfinite(reaches)
