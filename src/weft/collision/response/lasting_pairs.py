"""Pairs of triangles that hold for many searches: a broad phase is asked again only when a vertex leaves its room.

The room of a vertex is the box around its way in the step of the search, larger on every side by that way and a little
more. As long as all vertices stay in their rooms, the boxes of triangles stay in those that were searched with, and
boxes that meet met then. Within the runs of one step, and in cloth that comes to rest, most searches are saved.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.collision.broad import BroadPhase
from weft.geometry.mesh import Mesh
from weft.jit import kernel

ROOM = 0.006  # of the mean edge: what a vertex at rest has. More lasts longer, and finds more pairs that are far apart


@kernel
def stays_inside(x_t0: Floats, x_t1: Floats, lower: Floats, upper: Floats) -> bool:
    """Whether every vertex is in its box at both ends of a step; a vertex that is NaN is not."""
    for vi in range(x_t0.shape[0]):
        is_inside = True
        for d in range(3):
            low, high, a, b = lower[vi, d], upper[vi, d], x_t0[vi, d], x_t1[vi, d]
            is_inside &= (low <= a) & (a <= high) & (low <= b) & (b <= high)
        if not is_inside:
            return False
    return True


class LastingPairs:
    """Pairs of triangles of `mesh` without a common vertex that may come within `margin` [m]; see the module."""

    def __init__(self, mesh: Mesh, phase: BroadPhase, margin: float) -> None:
        edges = mesh.topology.edges
        length = np.linalg.norm(mesh.positions[edges[:, 0]] - mesh.positions[edges[:, 1]], axis=1)
        self.phase, self.margin = phase, margin
        self.room = ROOM * float(length.mean()) if len(edges) else 0.0
        self._lower = np.full((mesh.n_vertices, 3), np.inf)
        self._upper = np.full((mesh.n_vertices, 3), -np.inf)
        self._pairs = np.zeros((0, 2), np.int32)

    def between(self, x_t0: Floats, x_t1: Floats) -> Ints:
        """(k, 2): all pairs whose boxes come within the margin in a step, and some whose do not."""
        if not stays_inside(x_t0, x_t1, self._lower, self._upper):
            room = self.room + abs(x_t1 - x_t0)
            self._lower, self._upper = np.minimum(x_t0, x_t1) - room, np.maximum(x_t0, x_t1) + room
            self.phase.refit(self._lower, self._upper, self.margin)
            self._pairs = self.phase.apart_pairs()
        return self._pairs
