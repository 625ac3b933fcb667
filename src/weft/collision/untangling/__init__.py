"""Which way out of a tangle: from crossings and touching features to motions that would undo them.

Nothing here knows how the cloth came to be tangled; what it looks like must do. `crossings` says where surfaces that
pass through one another should go, `touching` where features at no distance should. Both answer with wishes, which
`weft.simulation.untangling` grants.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints


class Wishes(NamedTuple):
    """k motions that are asked for: the sum of weights times vertices should go by `ways` along `normals`."""

    rows: Ints
    """(k, 4) vertices"""
    weights: Floats
    """(k, 4) signed; 0 where fewer than four vertices take part"""
    normals: Floats
    """(k, 3)"""
    ways: Floats
    """(k,) [m]"""


def join_wishes(parts: list[Wishes]) -> Wishes:
    """All wishes of `parts`, one part after the other."""
    none = Wishes(np.empty((0, 4), np.int32), np.empty((0, 4)), np.empty((0, 3)), np.empty(0))
    return Wishes(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


def single_wishes(vertices: Ints, ways: Floats) -> Wishes:
    """Each of the `vertices` (k,) should go its way (k, 3) [m]."""
    size = np.linalg.norm(ways, axis=1)
    vertices, ways, size = vertices[size > 0.0], ways[size > 0.0], size[size > 0.0]
    rows = np.repeat(vertices[:, None], 4, axis=1).astype(np.int32)
    return Wishes(rows, np.tile([1.0, 0.0, 0.0, 0.0], (len(rows), 1)), ways / size[:, None], size)
