"""Pieces of cloth for experiments: strips, sheets and discs, on grids and on unstructured meshes."""

from __future__ import annotations

import numpy as np
from scipy.spatial import Delaunay

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh, build_grid

RELAXATIONS = 40  # of the inner vertices of an unstructured mesh


def build_unstructured(size: tuple[float, float], spacing: float, seed: int = 0) -> Mesh:
    """A flat rectangle, centred on the origin, of well-shaped triangles in no order.

    The border and the row next to each end of u lie on a grid, so that an end can be clamped as on a grid; inside,
    random points are moved to the centres of their neighbourhoods.
    """
    m, n = (max(2, round(side / spacing) + 1) for side in size)
    grid = build_grid(size, (m, n)).positions[:, :2]
    i, j = np.divmod(np.arange(m * n), n)
    kept = (i <= 1) | (i >= m - 2) | (j == 0) | (j == n - 1)
    a, b = size[0] / (m - 1), size[1] / (n - 1)
    reach = np.array([0.5 * size[0] - 1.4 * a, 0.5 * size[1] - 0.4 * b])
    inner = np.random.default_rng(seed).uniform(-reach, reach, (int(1.1 * (~kept).sum()), 2))
    return _flat_mesh(*_relax(grid[kept], inner))


def build_disc(radius: float, spacing: float, inner_radius: float = 0.0, seed: int = 0) -> Mesh:
    """A flat disc, centred on the origin; vertices lie on the rim and, where given, on an inner circle."""
    rings = [_circle(radius, spacing)]
    if inner_radius > 0.0:
        rings.append(_circle(inner_radius, spacing))
    fixed = np.concatenate(rings)
    count = int(1.15 * np.pi * radius**2 / spacing**2) - len(fixed)
    rng = np.random.default_rng(seed)
    r = np.sqrt(rng.uniform(0.0, 1.0, count)) * (radius - 0.6 * spacing)
    r = np.where(np.abs(r - inner_radius) < 0.4 * spacing, inner_radius - 0.6 * spacing, r)
    angle = rng.uniform(0.0, 2.0 * np.pi, count)
    inner = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
    return _flat_mesh(*_relax(fixed, inner))


def turned_material(mesh: Mesh, degrees: float) -> Mesh:
    """The same mesh, cut from the cloth at an angle: its x axis lies `degrees` from the weft towards the warp."""
    angle = np.deg2rad(degrees)
    c, s = np.cos(angle), np.sin(angle)
    x, y = mesh.positions[:, 0], mesh.positions[:, 1]
    return Mesh(mesh.positions, mesh.triangles, np.ascontiguousarray(np.stack([c * x - s * y, s * x + c * y], axis=1)))


def vertex_masses(mesh: Mesh, density: float) -> Floats:
    """A third of each triangle's mass at each of its corners [kg]."""
    corners = mesh.positions[mesh.triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    share = np.repeat(density * area / 3.0, 3)
    return np.bincount(mesh.triangles.ravel(), share, minlength=mesh.n_vertices).astype(np.float64)


def _circle(radius: float, spacing: float) -> Floats:
    count = round(2.0 * np.pi * radius / spacing)
    angle = 2.0 * np.pi * np.arange(count) / count
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _relax(fixed: Floats, inner: Floats) -> tuple[Floats, Ints]:
    """Move `inner` to the centres of their triangles, again and again; return all points and their triangles."""
    for _ in range(RELAXATIONS):
        points = np.concatenate([fixed, inner])
        triangles = Delaunay(points).simplices
        corners = points[triangles]
        ab, ac = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        area = np.abs(ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0])
        ring, weight = np.zeros((len(points), 2)), np.zeros(len(points))
        for k in range(3):
            np.add.at(ring, triangles[:, k], area[:, None] * corners.mean(axis=1))
            np.add.at(weight, triangles[:, k], area)
        inner = (ring / weight[:, None])[len(fixed) :]
    relaxed: Floats = np.concatenate([fixed, inner])
    return relaxed, Delaunay(relaxed).simplices


def _flat_mesh(points: Floats, triangles: Ints) -> Mesh:
    corners = points[triangles]
    ab, ac = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    doubled = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    kept: Ints = np.where((doubled < 0.0)[:, None], triangles[:, ::-1], triangles).astype(np.int32)
    kept = np.ascontiguousarray(kept[np.abs(doubled) > 1e-3 * np.abs(doubled).mean()])
    positions = np.concatenate([points, np.zeros((len(points), 1))], axis=1)
    return Mesh(np.ascontiguousarray(positions), kept, np.ascontiguousarray(points))
