"""Axis-aligned box tree of paper 001: built bottom-up for a grid, top-down for a mesh without structure.

da Silva, "Cloth animation with collision detection", section 5. For a grid, the two triangles of a quad are paired
first, then neighbouring boxes in the horizontal direction, then in the vertical one, in turns until one is left; where
a row has an odd number of boxes the last one waits for the next turn. For a mesh, G. van den Bergen, "Efficient
collision detection of complex deformable models using AABB trees", 1997: a node is cut at the middle of the longest
axis of the box around its triangles' centres, each triangle falling to the side of its own centre; if all fall to one
side, the node is cut in even halves. Both trees are searched together.

Section 9.1.1 wishes that the two triangles of a quad shared one box, since their own boxes always meet:
`share_quad_box` does that. Leaves then hold two triangles, all pairs between two leaves whose boxes meet are
returned without a look at the triangles' own boxes, and there are half as many boxes.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Longs
from weft.collision.broad.box_tree import TreePhase
from weft.collision.broad.layout import centres, grid_places, pattern_coordinates, split_evenly
from weft.parameters import Parameters, quantity


def pairing_paths(grid_shape: tuple[int, int], share_quad_box: bool) -> Longs:
    """Paths of the bottom-up tree of a grid, read from the root down."""
    row, column, half = grid_places(grid_shape)
    n_rows, n_columns = grid_shape[0] - 1, grid_shape[1] - 1
    steps = [] if share_quad_box else [half]
    is_horizontal = True
    while n_rows > 1 or n_columns > 1:
        if (is_horizontal and n_columns > 1) or n_rows == 1:
            steps.append(column % 2)
            column, n_columns = column // 2, -(-n_columns // 2)
        else:
            steps.append(row % 2)
            row, n_rows = row // 2, -(-n_rows // 2)
        is_horizontal = not is_horizontal
    return np.stack(steps[::-1], axis=1) if steps else np.zeros((len(row), 0), np.int64)


def middle_paths(points: Floats, leaf_size: int) -> Longs:
    """Paths of the tree that cuts `points` at the middle of the longest axis, down to `leaf_size`."""
    group = np.zeros(len(points), np.int64)
    steps = []
    while len(points) and np.bincount(group).max() > leaf_size:
        size = np.bincount(group)
        lower = np.full((len(size), points.shape[1]), np.inf)
        upper = np.full((len(size), points.shape[1]), -np.inf)
        np.minimum.at(lower, group, points)
        np.maximum.at(upper, group, points)
        axis = np.argmax(upper - lower, axis=1)
        middle = 0.5 * (lower + upper)[np.arange(len(size)), axis]
        side = (points[np.arange(len(points)), axis[group]] > middle[group]).astype(np.int64)
        on_right = np.bincount(group, weights=side, minlength=len(size))
        is_one_sided = (on_right == 0) | (on_right == size)
        side = np.where(is_one_sided[group], split_evenly(points, group), side)
        side[size[group] <= leaf_size] = 0
        steps.append(side)
        _, group = np.unique(2 * group + side, return_inverse=True)
    return np.stack(steps, axis=1) if steps else np.zeros((len(points), 0), np.int64)


class AabbTreeParameters(Parameters):
    """Shape of the leaves."""

    share_quad_box: bool = quantity(
        "whether the two triangles of a quad (of a mesh without a grid: any two neighbours) share one box",
        default=False,
    )


class AabbTree(TreePhase):
    """Binary tree, bottom-up over a grid or top-down over a mesh; see the module."""

    Parameters = AabbTreeParameters

    def _paths(self) -> Longs:
        share = self.parameters.share_quad_box
        if self.mesh.grid_shape is not None:
            return pairing_paths(self.mesh.grid_shape, share)
        points = centres(pattern_coordinates(self.mesh), self.mesh.triangles)
        return middle_paths(points, 2 if share else 1)
