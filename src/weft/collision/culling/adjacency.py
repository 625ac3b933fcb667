"""Pairs of triangles that share a vertex, left out.

Liu, Ko, Chang, 1998, sections 3 and 4.2 (paper 000): the boxes of adjacent triangles always meet, so they say nothing;
both kinds of neighbours are left out, those with a common edge and those with a common vertex. Their collision is
prevented through the triangles around them: to pass through B, its neighbour A would have to carry a vertex into B's
box, and the triangles at that vertex which do not touch B are still tested.

Sound for triangles that do not share a vertex: none of those is removed. `shared` = 2 removes only pairs with a
common edge.
"""

from __future__ import annotations

from typing import Self

from weft.arrays import Bools, Ints
from weft.collision.broad.triangle_phase import mark_distant
from weft.collision.culling.row_filter import RowFilter, all_kept, as_rows
from weft.parameters import Parameters, quantity


class AdjacencyParameters(Parameters):
    """How close neighbours must be."""

    shared: int = quantity("vertices in common that make triangles adjacent", default=1, ge=1, le=2)


class Adjacency(RowFilter):
    """Removes pairs of triangles that share a vertex; see the module."""

    Parameters = AdjacencyParameters

    def keep(self, rows: Ints, other: Self | None = None) -> Bools:
        keep = all_kept(rows)
        if other is None:
            mark_distant(self.triangles, as_rows(rows), self.parameters.shared, keep)
        return keep
