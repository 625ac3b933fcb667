"""Geometric avoidance: the vertices of triangles that would pass through each other stay where they are.

S1 of J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), after their "Collision avoidance of cloth animation", Visual Computer 12 (1996): "once self-collisions are
detected the vertices of the colliding cloth triangles are fixed by setting constraints on the current simulation time
step". Detection is geometric and has no hierarchy; use it with `broad = "all_pairs"`.

Which test the authors ran is not said. Ours asks, exactly, whether two triangles without a common vertex intersect at
the end of the step; boxes are compared first. A triangle that passes another whole within a step is not seen. Cloth
that touches is fixed as long as it presses, so that it freezes rather than folds: that is why the authors went on to
boxes.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.collision.response import Surroundings
from weft.collision.response.avoidance import Avoidance, AvoidanceParameters, Limits
from weft.geometry.intersections import update_crossings


class VertexFixing(Avoidance):
    """Vertices of colliding triangles fixed for the step (Liu, Ko and Chang 1996); see the module."""

    Parameters = AvoidanceParameters

    def __init__(self, surroundings: Surroundings, parameters: AvoidanceParameters | None = None) -> None:
        super().__init__(surroundings, parameters)
        self._phase = surroundings.broad(self._mesh)

    def _colliding(self, x_t1: Floats) -> Ints:
        before = self._phase.counters.boxes_tested
        self._phase.refit(x_t1)
        pairs: Ints = self._phase.apart_pairs()
        self.counts.box_tests += self._phase.counters.boxes_tested - before
        t = self._mesh.topology.triangles
        crossing = np.zeros(len(pairs), np.bool_)
        update_crossings(x_t1, t, x_t1, t, True, pairs, crossing)
        return pairs[crossing]

    def _limits_of(self, pairs: Ints, x_t1: Floats) -> Limits:
        keys = np.repeat((pairs[:, 0].astype(np.int64) << 32) + pairs[:, 1], 36)
        vertices = np.repeat(self._mesh.topology.triangles[pairs].ravel(), 6)  # six vertices, three axes, two sides
        axes = np.tile(np.repeat(np.arange(3, dtype=np.int32), 2), 6 * len(pairs))
        uppers = np.tile([True, False], 18 * len(pairs))
        fixed = self._start.x[vertices, axes]
        return Limits(keys, vertices, axes, uppers, fixed, fixed)
