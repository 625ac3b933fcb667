"""Pairs of triangles whose centroids are far apart, left out.

He, Cheng, 2009, section IV (paper 002): a pair is removed where the distance of its centroids exceeds a threshold,
given in units of the longest edge L. Two right isosceles triangles that just touch corner to corner are at most
2/3 sqrt(5) legs = 1.054 L apart; the formula before Fig. 7 is this, in legs. For any two triangles with no edge above
L the bound is 4/3 L, since a centroid lies within 2/3 of the longest median, and a median is shorter than L. From
there on the filter is sound; below, it trades missed pairs for speed, as the paper does. Over a step the smallest
distance counts (both centroids move in a straight line), with the longest edge at either end (the length of an edge
under linear motion is convex, so it is largest at an end).

Table VI of the paper lists filtering and missing rates that grow with the threshold, from 19.92 % and 3.10 % at 0.5 L
to 81.10 % and 49.21 % at 1.5 L. A larger threshold removes fewer pairs, so the rows stand in reverse order: 81.10 %
and 49.21 % belong to 0.5 L.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.collision.culling.row_filter import RowFilter, all_kept, as_rows
from weft.geometry.mesh import Mesh
from weft.jit import kernel
from weft.parameters import Parameters, quantity

SOUND_THRESHOLD = 4.0 / 3.0


@kernel
def mark_near(
    a_t0: Floats, a_t1: Floats, b_t0: Floats, b_t1: Floats, pairs: Ints, limit: float, keep_out: Bools
) -> None:
    """Overwrite `keep_out`: True where two centroids come within `limit` during the step."""
    for row in range(pairs.shape[0]):
        ta, tb = pairs[row, 0], pairs[row, 1]
        # smallest distance of the origin from the segment between the relative positions at both ends
        x, y, z = a_t0[ta, 0] - b_t0[tb, 0], a_t0[ta, 1] - b_t0[tb, 1], a_t0[ta, 2] - b_t0[tb, 2]
        dx = a_t1[ta, 0] - b_t1[tb, 0] - x
        dy = a_t1[ta, 1] - b_t1[tb, 1] - y
        dz = a_t1[ta, 2] - b_t1[tb, 2] - z
        way_sq = dx * dx + dy * dy + dz * dz
        t = min(max(-(x * dx + y * dy + z * dz) / way_sq, 0.0), 1.0) if way_sq > 0.0 else 0.0
        x, y, z = x + t * dx, y + t * dy, z + t * dz
        keep_out[row] = x * x + y * y + z * z <= limit * limit


class CentroidDistanceParameters(Parameters):
    """The threshold."""

    threshold: float = quantity(
        "distance above which pairs are removed; sound from 4/3 on", default=SOUND_THRESHOLD, unit="longest edge", gt=0
    )


class CentroidDistance(RowFilter):
    """Removes pairs of triangles with distant centroids; see the module."""

    Parameters = CentroidDistanceParameters

    def __init__(self, mesh: Mesh, parameters: CentroidDistanceParameters | None = None) -> None:
        super().__init__(mesh, parameters)
        self.sound = self.parameters.threshold >= SOUND_THRESHOLD
        self._update()

    def _update(self) -> None:
        edges = self.mesh.topology.edges
        self._centroids_t0 = np.ascontiguousarray(self.x_t0[self.triangles].mean(axis=1))
        self._centroids_t1 = np.ascontiguousarray(self.x_t1[self.triangles].mean(axis=1))
        self.longest_edge = max(
            float(np.linalg.norm(x[edges[:, 0]] - x[edges[:, 1]], axis=1).max(initial=0.0))
            for x in (self.x_t0, self.x_t1)
        )

    def keep(self, rows: Ints, other: Self | None = None) -> Bools:
        second = other or self
        keep = all_kept(rows)
        # a hair above the threshold, so that rounding cannot cut what just touches
        limit = self.parameters.threshold * max(self.longest_edge, second.longest_edge) * (1.0 + 1e-9)
        a, b = (self._centroids_t0, self._centroids_t1), (second._centroids_t0, second._centroids_t1)
        mark_near(a[0], a[1], b[0], b[1], as_rows(rows), limit, keep)
        return keep
