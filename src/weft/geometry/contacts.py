"""Contacts of vertices with planes: what a body tells a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from weft.arrays import Bools, Floats, Ints


class PlaneContacts(NamedTuple):
    """Vertices that touch bodies within a step, each against the tangent plane where it first does."""

    vertices: Ints
    """(k,)"""
    bodies: Ints
    """(k,) which body"""
    normals: Floats
    """(k, 3) outward normal of the body at the end of the step"""
    gaps: Floats
    """(k,) signed distance [m] of the vertex's start from the plane that it must not cross, as it stands at the
    end of the step"""
    velocities: Floats
    """(k, 3) velocity [m/s] of the body at the point"""
    friction: Floats
    """(k,)"""

    def select(self, which: Bools) -> PlaneContacts:
        """The contacts for which `which` (k,) is True."""
        return PlaneContacts(*cast("tuple[Ints, Ints, Floats, Floats, Floats, Floats]", [part[which] for part in self]))


def join_contacts(groups: Sequence[PlaneContacts]) -> PlaneContacts:
    """All contacts of `groups`, in order."""
    if not groups:
        none, empty = np.zeros(0, np.int32), np.zeros((0, 3))
        return PlaneContacts(none, none, empty, np.zeros(0), empty, np.zeros(0))
    parts = [np.concatenate([group[k] for group in groups]) for k in range(len(PlaneContacts._fields))]
    return PlaneContacts(*cast("tuple[Ints, Ints, Floats, Floats, Floats, Floats]", parts))
