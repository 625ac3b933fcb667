"""Provot's strain limit: both ends of a spring that is too long move together.

X. Provot, "Deformation constraints in a mass-spring model to describe rigid cloth behavior", Graphics Interface 1995,
section 5. Springs are taken in turn. Of one that is longer than (1 + limit) times its length at rest, both ends move
half the excess towards each other; where one is pinned the other takes all of it; where both are, none. Provot makes
one pass; more passes carry corrections further.

Ends share alike whatever their masses, so momentum is not conserved at the border of a cloth, whose vertices are
lighter (`velocity_limit` conserves it).
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats
from weft.strain import Springs
from weft.strain.sweeps import SweptLimit, SweptLimitParameters


class PositionLimitParameters(SweptLimitParameters):
    """How long springs may be, and how hard to try."""


class PositionLimit(SweptLimit):
    """Moves both ends of overlong springs (Provot 1995), and their velocities with them."""

    Parameters = PositionLimitParameters

    def __init__(self, springs: Springs, parameters: PositionLimitParameters | None = None) -> None:
        super().__init__(springs, parameters or PositionLimitParameters())

    def _mobility(self, masses: Floats) -> Floats:
        return np.ones(len(masses))
