"""Pieces of cloth for experiments: strips, sheets and rings, on grids and on unstructured meshes."""

from __future__ import annotations

import numpy as np
from scipy.spatial import Delaunay

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh, build_grid

RELAXATIONS = 40  # of the inner vertices of an unstructured mesh


def build_unstructured(size: tuple[float, float], spacing: float, seed: int = 0, pedestal: float | None = None) -> Mesh:
    """A flat rectangle, centred on the origin, of well-shaped triangles in no order.

    The border and the row next to each end of u lie on a grid, and so do the border of a square `pedestal` and the rows
    on both sides of it: there the cloth can be clamped as on a grid. Without the row outside, three quarters of the
    strain energy of a draped cloth lay within one edge of the clamp, which holds flat triangles from giving way.
    Elsewhere, random points are moved to the centres of their neighbourhoods.
    """
    m, n = (max(2, round(side / spacing) + 1) for side in size)
    grid = build_grid(size, (m, n)).positions[:, :2]
    i, j = np.divmod(np.arange(m * n), n)
    kept = (i <= 1) | (i >= m - 2) | (j == 0) | (j == n - 1)
    a, b = size[0] / (m - 1), size[1] / (n - 1)
    if pedestal is not None:
        inside = 0.5 * pedestal - np.abs(grid).max(axis=1)
        kept |= np.abs(inside) < max(a, b) + 1e-9
    reach = np.array([0.5 * size[0] - 1.4 * a, 0.5 * size[1] - 0.4 * b])
    inner = np.random.default_rng(seed).uniform(-reach, reach, (int(1.1 * (~kept).sum()), 2))
    return _flat_mesh(*_relax(grid[kept], inner))


def build_polar(inner: float, outer: float, rings: int, sectors: int) -> Mesh:
    """A flat ring of `rings` x `sectors` quads, each cut in two, and one more row of them inside, to hold it by.

    Diagonals alternate, so that no way round is preferred. Vertices go round, ring by ring, the rim last.
    """
    step = (outer - inner) / rings
    radii = inner + step * np.arange(-1, rings + 1)
    angles = 2.0 * np.pi * np.arange(sectors) / sectors
    points = np.stack([np.outer(radii, np.cos(angles)).ravel(), np.outer(radii, np.sin(angles)).ravel()], axis=1)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(rings + 1), np.arange(sectors), indexing="ij"))
    a, b = i * sectors + j, (i + 1) * sectors + j
    c, d = (i + 1) * sectors + (j + 1) % sectors, i * sectors + (j + 1) % sectors
    odd = (i + j) % 2 == 1
    first = np.where(odd[:, None], np.stack([a, b, d], axis=1), np.stack([a, b, c], axis=1))
    second = np.where(odd[:, None], np.stack([b, c, d], axis=1), np.stack([a, c, d], axis=1))
    return _flat_mesh(points, np.concatenate([first, second]).astype(np.int32))


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
