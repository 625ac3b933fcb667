"""What vertices may not do in a step: the words in which responses speak to integrators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats
from weft.linear.springs import Springs, no_springs


class Constraints(NamedTuple):
    """Directions in which vertices are not free, and what they must do there.

    A change of velocity is that of the mean velocity in the step against the velocity at its start: it decides where
    a vertex ends.
    """

    filters: Floats
    """(n, 3, 3) projector on the free directions; identity for a free vertex"""
    change: Floats
    """(n, 3) prescribed change of velocity in the other directions [m/s]"""
    drag: Floats
    """(n, 3, 3) friction: the impulse is -drag times the change of velocity, plus `impulses` [kg]"""
    impulses: Floats
    """(n, 3) impulses given from outside [N s]"""
    springs: Springs
    """contacts that couple several vertices; their impulse is -(w w^T) (x) B times the change of velocity"""
    lower: Floats | None = None
    """(n, 3) lower limits of the coordinates at the end of the step [m], -inf where there is none; None: none at all"""
    upper: Floats | None = None
    """(n, 3) upper limits likewise, +inf where there is none"""


def build_constraints(n: int) -> Constraints:
    """No constraint on any of `n` vertices."""
    filters = np.zeros((n, 3, 3))
    filters.reshape(n, 9)[:, ::4] = 1.0
    return Constraints(filters, np.zeros((n, 3)), np.zeros((n, 3, 3)), np.zeros((n, 3)), no_springs(n))


def held_vertices(c: Constraints) -> Bools:
    """Which vertices (n,) are not free in all directions."""
    f = c.filters
    return np.asarray(f[:, 0, 0] + f[:, 1, 1] + f[:, 2, 2] != 3.0)
