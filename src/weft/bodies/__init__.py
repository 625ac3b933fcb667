"""Bodies that cloth collides with: a shape, where it is, how it moves and how rough it is.

`find_contacts` follows each vertex along its path in the frame of the body, where it goes straight from its first to
its last place: a body may turn by less than half a turn in a step. All shapes are convex, so the distance is a convex
function along a straight path. Its tangent lies below it, and Newton's method comes up to the first touch without ever
stepping over it: no body is too thin and no motion too fast to be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.bodies.motion import Motion, Pose, pose_at
from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Shape, Sphere
from weft.geometry.contacts import PlaneContacts, join_contacts

SHAPES = {"plane": Plane, "box": Box, "sphere": Sphere, "capsule": Capsule, "cylinder": Cylinder}
TRACE_STEPS = 64  # of Newton's method, which takes about 4; a vertex still under way then counts as touching
TOUCH = 1e-9  # [m] closer than this to the contact distance is touching


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

    def is_still(self, t0: float, t1: float) -> bool:
        """Whether it is in the same place at both times."""
        if self.motion is None:
            return True
        a, b = self.pose(t0), self.pose(t1)
        return np.array_equal(a.position, b.position) and np.array_equal(a.rotation, b.rotation)

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
        positions, triangles = self.shape.triangulate()
        return self.pose(time).to_world(positions), triangles


def find_contacts(
    bodies: list[Body],
    x_t0: Floats,
    x_t1: Floats,
    clearance: Floats,
    friction: Floats,
    t0: float,
    t1: float,
) -> PlaneContacts:
    """Every vertex that comes closer than its `clearance` (n,) [m] to a body on its way from x_t0 to x_t1.

    `friction` (n,) is the fabric's coefficient at each vertex, used where a body has none of its own.
    """
    return join_contacts(
        [_contacts_with(k, body, x_t0, x_t1, clearance, friction, t0, t1) for k, body in enumerate(bodies)]
    )


def _contacts_with(
    index: int,
    body: Body,
    x_t0: Floats,
    x_t1: Floats,
    clearance: Floats,
    friction: Floats,
    t0: float,
    t1: float,
) -> PlaneContacts:
    pose_t0, pose_t1 = body.pose(t0), body.pose(t1)
    p0, p1 = pose_t0.to_local(x_t0), pose_t1.to_local(x_t1)
    way = p1 - p0
    # No point of a path is further from its middle than half its length, and distances change no faster than places.
    middle, _ = body.shape.distances(p0 + 0.5 * way)
    near = np.flatnonzero(middle <= clearance + 0.5 * np.sqrt(np.einsum("ij,ij->i", way, way)) + TOUCH)
    p0, p1 = p0[near], p1[near]
    touching, s = trace(body.shape, p0, p1, clearance[near])
    p0, p1, s = p0[touching], p1[touching], s[touching]
    vi = near[touching].astype(np.int32)
    hit = p0 + s[:, None] * (p1 - p0)
    d, normals = body.shape.distances(hit)
    point, normals = pose_t1.to_world(hit), normals @ pose_t1.rotation.T
    return PlaneContacts(
        vertices=vi,
        bodies=np.full(len(vi), index, np.int32),
        normals=normals,
        gaps=d - clearance[vi] + ((x_t0[vi] - point) * normals).sum(axis=1),
        velocities=(point - pose_t0.to_world(hit)) / (t1 - t0),
        friction=friction[vi] if body.friction is None else np.full(len(vi), body.friction),
    )


def trace(shape: Shape, p0: Floats, p1: Floats, clearance: Floats) -> tuple[Bools, Floats]:
    """Walk from p0 to p1 (both (n, 3), in the frame of the shape) until closer than `clearance`.

    Returns whether each point gets that close, and the share of its way where it does.
    """
    way = p1 - p0
    s = np.zeros(len(p0))
    touching = np.zeros(len(p0), bool)
    gap = shape.distances(p0)[0] - clearance
    active = np.flatnonzero(gap <= np.linalg.norm(way, axis=1) + TOUCH)  # the others cannot reach the body
    for _ in range(TRACE_STEPS):
        gap, normals = shape.distances(p0[active] + s[active, None] * way[active])
        gap -= clearance[active]
        touching[active[gap <= TOUCH]] = True
        rate = (normals * way[active]).sum(axis=1)
        going = (gap > TOUCH) & (gap + (1.0 - s[active]) * rate < TOUCH)  # the others touch, or never will
        active = active[going]
        if len(active) == 0:
            return touching, s
        s[active] -= gap[going] / rate[going]
    touching[active] = True
    return touching, s
