"""Binary box tree of paper 000: even halves in material coordinates, searched box by box.

Liu, Ko, Chang, "A simple self-collision avoidance for cloth animation", 1998, section 3. The cloth is cut in two
along its longer side, again and again, until each node holds one triangle: n triangles make 2 n - 1 boxes. The boxes
are updated from the leaves to the root in O(n). To find what a box B meets, the tree is searched from the root:
children are looked at only where B meets their parent. Triangles that share a vertex are found too; the paper leaves
them out, which is the filter `adjacency`.

A mesh without material coordinates is cut in its rest positions.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.collision.broad.box_tree import TreePhase
from weft.collision.broad.layout import centres, pattern_coordinates, split_evenly
from weft.parameters import Parameters


def halve(points: Floats, leaf_size: int = 1) -> Longs:
    """Paths of the tree that cuts `points` in even halves down to `leaf_size`."""
    group = np.zeros(len(points), np.int64)
    columns = []
    largest = len(points)
    while largest > leaf_size:
        side = split_evenly(points, group)
        columns.append(side)
        group = 2 * group + side
        largest = -(-largest // 2)
    return np.stack(columns, axis=1) if columns else np.zeros((len(points), 0), np.int64)


class BinaryTreeParameters(Parameters):
    """None."""


class BinaryTree(TreePhase):
    """Binary tree split evenly in material coordinates; see the module."""

    Parameters = BinaryTreeParameters

    def _paths(self) -> Longs:
        return halve(centres(pattern_coordinates(self.mesh), self.mesh.triangles))

    def _search_self(self) -> Ints:
        return self.search_box_by_box(self)

    def _search(self, other: Self) -> Ints:
        return self.search_box_by_box(other)
