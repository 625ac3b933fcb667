"""Bodies that cloth collides with: a shape, where it is, how it moves and how rough it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.arrays import Floats, Ints
from weft.bodies.motion import Motion, Pose, pose_at
from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere

SHAPES = {"plane": Plane, "box": Box, "sphere": Sphere, "capsule": Capsule, "cylinder": Cylinder}


@dataclass(frozen=True)
class Body:
    """A collider.

    Attributes
    ----------
    name : as in the scene file, e.g. "collider.0 (box)"
    shape : its geometry, centred on its own origin
    start : pose at time 0
    motion : keyframes relative to `start`; None for a body at rest
    friction : Coulomb coefficient; None to use the fabric's
    """

    name: str
    shape: Shape
    start: Pose
    motion: Motion | None = None
    friction: float | None = None

    def pose(self, time: float) -> Pose:
        return pose_at(self.motion, time, self.start)

    def moved(self, t0: float, t1: float) -> Floats:
        """(3, 4): its rigid motion from t0 to t1, x becoming [:, :3] @ x + [:, 3]."""
        a, b = self.pose(t0), self.pose(t1)
        turn = b.rotation @ a.rotation.T
        return np.column_stack([turn, b.position - turn @ a.position])

    def distances(self, points: Floats, time: float) -> tuple[Floats, Floats]:
        """Signed distances (n,) [m], negative inside, and outward normals (n, 3), in the world at `time`."""
        pose = self.pose(time)
        d, normals = self.shape.distances(pose.to_local(points))
        return d, normals @ pose.rotation.T

    def triangulate(self, time: float) -> tuple[Floats, Ints]:
        """The surface in the world at `time`."""
        positions, triangles = self._surface
        return self.pose(time).to_world(positions), triangles

    @cached_property
    def _surface(self) -> tuple[Floats, Ints]:
        return self.shape.triangulate()
