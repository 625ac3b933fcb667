"""Contacts of the vertices of cloth with bodies along their paths.

`find_contacts` follows each vertex along its path in the frame of the body, where it goes straight from its first to
its last place: a body may turn by less than half a turn in a step. All shapes are convex, so the distance is a convex
function along a straight path. Its tangent lies below it, and Newton's method comes up to the first touch without ever
stepping over it: no body is too thin and no motion too fast to be seen.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats
from weft.bodies import Body
from weft.bodies.distances import fill_contacts, update_shares
from weft.geometry.contacts import PlaneContacts, join_contacts


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

    `friction` (n,) is the fabric's coefficient at each vertex, used where a body has none of its own. Where t0 is t1,
    the bodies stand still.
    """
    found = []
    dt = t1 - t0 if t1 != t0 else 1.0
    for index, body in enumerate(bodies):
        kind, size = body.shape.solid()
        poses = (*body.pose(t0), *body.pose(t1))
        shares = np.empty(len(x_t0))
        update_shares(kind, size, poses, x_t0, x_t1, clearance, shares)
        k = int(np.count_nonzero(shares >= 0.0))
        if k == 0:
            continue
        c = PlaneContacts(
            np.empty(k, np.int32),
            np.full(k, index, np.int32),
            np.empty((k, 3)),
            np.empty(k),
            np.empty((k, 3)),
            np.empty(k),
        )
        fill_contacts(kind, size, poses, x_t0, x_t1, clearance, shares, dt, c.vertices, c.normals, c.gaps, c.velocities)
        c.friction[:] = friction[c.vertices] if body.friction is None else body.friction
        found.append(c)
    return join_contacts(found)
