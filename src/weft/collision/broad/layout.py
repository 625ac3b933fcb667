"""Where the primitives of a mesh lie relative to one another, before anything moves.

Cloth keeps its lengths: what is close in the flat pattern stays close, however it crumples. Structures are therefore
split in material coordinates, once, and only their boxes follow the motion.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weft.arrays import Floats, Ints, Longs
from weft.geometry.mesh import Mesh

NORMAL_REACH = 4.0  # edge lengths by which opposite sides of a thin body are moved apart


def pattern_coordinates(mesh: Mesh) -> Floats:
    """(n_vertices, 2 or 6) coordinates [m] in which vertices that move together are close, and others are not.

    Material coordinates where the mesh has them. Otherwise rest positions and, scaled to a few edge lengths, normals:
    without them the front and the back panel of a garment at rest would be taken for one piece. Parts that no edge
    connects are moved apart along the first axis.
    """
    topology = mesh.topology
    if mesh.material is not None:
        coordinates = mesh.material.copy()
    else:
        edge = mesh.positions[topology.edges[:, 0]] - mesh.positions[topology.edges[:, 1]]
        reach = NORMAL_REACH * float(np.linalg.norm(edge, axis=1).mean()) if len(edge) else 0.0
        coordinates = np.concatenate([mesh.positions, reach * _vertex_normals(mesh)], axis=1)
    n = mesh.n_vertices
    ones = np.ones(len(topology.edges), np.int8)
    graph = coo_array((ones, (topology.edges[:, 0], topology.edges[:, 1])), shape=(n, n))
    n_parts, part = connected_components(graph, directed=False)
    if n_parts > 1:
        width = float(np.ptp(coordinates, axis=0).max())
        # the gap of a whole width makes the parts separate before any of them is cut
        coordinates[:, 0] += 2.0 * (width or 1.0) * part
    return np.ascontiguousarray(coordinates)


def _vertex_normals(mesh: Mesh) -> Floats:
    a, b, c = (mesh.positions[mesh.triangles[:, k]] for k in range(3))
    normals = np.zeros((mesh.n_vertices, 3))
    for k in range(3):
        np.add.at(normals, mesh.triangles[:, k], np.cross(b - a, c - a))
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return normals / np.where(length > 0.0, length, 1.0)


def centres(coordinates: Floats, primitives: Ints) -> Floats:
    """(m, d) mean of each primitive's vertices."""
    return np.ascontiguousarray(coordinates[primitives].mean(axis=1))


def grid_places(grid_shape: tuple[int, int]) -> tuple[Longs, Longs, Longs]:
    """Row, column and half (0 or 1) of every triangle of a grid as `geometry.mesh.build_grid` numbers them."""
    rows, columns = grid_shape[0] - 1, grid_shape[1] - 1
    quad = np.tile(np.arange(rows * columns), 2)
    half = np.repeat(np.arange(2), rows * columns)
    return quad // columns, quad % columns, half


def halve_range(place: Longs, first: Longs, end: Longs) -> tuple[Longs, tuple[Longs, Longs]]:
    """In which half of first..end each place lies, and that half. A range of one is left whole."""
    middle = first + (end - first + 1) // 2
    side = (place >= middle).astype(np.int64)
    return side, (np.where(side == 1, middle, first), np.where(side == 1, end, middle))


def split_evenly(points: Floats, group: Longs, unit: int = 1) -> Longs:
    """Cut every group of points in two along its longest axis; return 0 or 1 for each point.

    The first half takes the smaller coordinates and, of `ceil(size / unit)` units, the larger half: with `unit` 1
    both halves are equal or differ by one. A group of at most `unit` points is left whole (all 0). Equal coordinates
    are told apart by index, so the cut is the same on every machine.
    """
    by_group = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[by_group], prepend=-1))
    size = np.diff(np.append(first, len(group)))
    label = np.repeat(np.arange(len(first)), size)
    sorted_points = points[by_group]
    extent = np.maximum.reduceat(sorted_points, first) - np.minimum.reduceat(sorted_points, first)
    axis = np.argmax(extent, axis=1)
    along = sorted_points[np.arange(len(group)), axis[label]]
    order = np.lexsort((along, label))
    units = -(-size // unit)
    left = -(-units // 2) * unit
    side = np.empty(len(group), np.int64)
    side[by_group[order]] = np.arange(len(group)) - first[label] >= left[label]
    return side


def compact_order(points: Floats, unit: int) -> Ints:
    """An order in which every `unit` points in a row are close together: halves of halves, down to one unit."""
    group = np.zeros(len(points), np.int64)
    n_groups = 1
    while n_groups * unit < len(points):
        group = 2 * group + split_evenly(points, group, unit)
        n_groups = 2 * n_groups
    return np.argsort(group, kind="stable").astype(np.int32)
