"""Normals at the corners of triangles: smooth over cloth, broken at the creases of a body."""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Floats, Ints
from weft.geometry.topology import group_rows
from weft.jit import kernel


@kernel
def _update_areas(x: Floats, triangles: Ints, areas_out: Floats, inv_lengths_out: Floats) -> None:
    """Area vectors (twice the area times the unit normal) and one over their lengths; 0 where there is no area."""
    for ti in range(len(triangles)):
        a, b, c = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
        ux, uy, uz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        vx, vy, vz = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        areas_out[ti, 0], areas_out[ti, 1], areas_out[ti, 2] = nx, ny, nz
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        inv_lengths_out[ti] = 1.0 / length if length > 0.0 else 0.0


@kernel
def _update_corner_normals(
    triangles: Ints,
    crease_cosines: Floats,
    starts: Ints,
    around: Ints,
    areas: Floats,
    inv_lengths: Floats,
    normals_out: Floats,
) -> None:
    for ti in range(len(triangles)):
        nx, ny, nz = areas[ti, 0] * inv_lengths[ti], areas[ti, 1] * inv_lengths[ti], areas[ti, 2] * inv_lengths[ti]
        for k in range(3):
            sx, sy, sz = 0.0, 0.0, 0.0
            for i in range(starts[triangles[ti, k]], starts[triangles[ti, k] + 1]):
                si = around[i]
                px, py, pz = areas[si, 0], areas[si, 1], areas[si, 2]
                if (px * nx + py * ny + pz * nz) * inv_lengths[si] > crease_cosines[ti]:
                    sx, sy, sz = sx + px, sy + py, sz + pz
            length = math.sqrt(sx * sx + sy * sy + sz * sz)
            scale = 1.0 / length if length > 0.0 else 0.0
            normals_out[ti, k, 0], normals_out[ti, k, 1], normals_out[ti, k, 2] = sx * scale, sy * scale, sz * scale


def compute_corner_normals(x: Floats, triangles: Ints, crease_cosines: Floats) -> Floats:
    """Unit normals at the three corners of every triangle.

    The normal of triangle t at vertex v is the sum of the area vectors of those triangles around v whose normal is
    turned from t's by less than the crease angle: n_tv = sum_s A_s n_s over { s at v : n_s . n_t > cos(crease) }.

    Parameters
    ----------
    x : (n, 3) float64
    triangles : (m, 3) int32
    crease_cosines : (m,) float64, the cosine of each triangle's crease angle; -2 smooths over every edge

    Returns
    -------
    normals : (m, 3, 3) float64, [triangle, corner]; zero where all area vectors cancel
    """
    m = len(triangles)
    areas, inv_lengths, normals = np.empty((m, 3)), np.empty(m), np.empty((m, 3, 3))
    around = group_rows(triangles.ravel(), np.repeat(np.arange(m, dtype=np.int32), 3), len(x))
    _update_areas(x, triangles, areas, inv_lengths)
    _update_corner_normals(triangles, crease_cosines, *around, areas, inv_lengths, normals)
    return normals
