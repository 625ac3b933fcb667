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
from weft.collision.culling.row_filter import RowFilter, all_kept, as_rows
from weft.jit import kernel
from weft.parameters import Parameters, quantity


@kernel
def mark_distant(triangles: Ints, pairs: Ints, shared: int, keep_out: Bools) -> None:
    """Overwrite `keep_out`: True where two triangles have fewer than `shared` vertices in common."""
    for row in range(pairs.shape[0]):
        n = 0
        for i in range(3):
            for j in range(3):
                n += int(triangles[pairs[row, 0], i] == triangles[pairs[row, 1], j])
        keep_out[row] = n < shared


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
