"""Quad box tree of paper 002: four-way cuts in material coordinates, two triangles under each last quad.

He, Cheng, "A quad tree based self-collision detection method for cloth simulation", 2009, section II. A grid of
2^k + 1 vertices a side gives Table I's counts: 53, 213 and 853 boxes for 5 x 5, 9 x 9 and 17 x 17, where a binary tree
has 63, 255 and 1023. Both trees are searched together, a node against itself and its children among one another.

For grids of other sizes each side is cut in halves that differ by at most one row, and a side of one row is not cut.
A mesh without a grid is cut in even halves along the longer side of each part, twice a step.

The paper gives the depth of the quad tree as log2(u - 1) for u x u particles; that counts the steps to the last quads,
the triangles hang one step below.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Bools, Longs
from weft.collision.broad.binary_tree import halve
from weft.collision.broad.box_tree import TreePhase
from weft.collision.broad.layout import centres, grid_places, halve_range, pattern_coordinates
from weft.geometry.mesh import Mesh
from weft.parameters import Parameters


def quad_paths(mesh: Mesh) -> Longs:
    """Paths of the quad tree from the root to every triangle of `mesh`."""
    if mesh.grid_shape is None:
        return _pair_up(halve(centres(pattern_coordinates(mesh), mesh.triangles)))
    row, column, half = grid_places(mesh.grid_shape)
    steps = []
    rows = np.zeros_like(row), np.full_like(row, mesh.grid_shape[0] - 1)
    columns = np.zeros_like(column), np.full_like(column, mesh.grid_shape[1] - 1)
    while (rows[1] - rows[0]).max() > 1 or (columns[1] - columns[0]).max() > 1:
        lower, rows = halve_range(row, *rows)
        right, columns = halve_range(column, *columns)
        steps.append(2 * lower + right)
    return np.stack([*steps, half], axis=1)


def _pair_up(halves: Longs) -> Longs:
    """Two cuts a step, counted from the leaves: the last cut parts the two triangles of a last quad."""
    n_cuts = halves.shape[1]
    if n_cuts == 0:
        return halves
    upper = [2 * halves[:, k] + halves[:, k + 1] for k in range((n_cuts - 1) % 2, n_cuts - 1, 2)]
    odd = [halves[:, 0]] if (n_cuts - 1) % 2 else []
    return np.stack([*odd, *upper, halves[:, -1]], axis=1)


class QuadTreeParameters(Parameters):
    """None."""


class QuadTree(TreePhase):
    """Four-way tree in material coordinates; see the module."""

    Parameters = QuadTreeParameters

    def _paths(self) -> Longs:
        return quad_paths(self.mesh)

    def close(self, nodes: Bools) -> None:
        """Leave out the inside of `nodes` (n_boxes,) in `self_pairs` until called again: the normal cone's cut.

        `culling.normal_cone` numbers the nodes of the same mesh in the same way.
        """
        self.tree.closed[:] = nodes
