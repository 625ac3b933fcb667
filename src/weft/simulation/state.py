"""What a step starts from, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import Bytes, Floats


@dataclass
class State:
    """What moves, and all that a step depends on: a checkpoint holds exactly this."""

    positions: Floats
    """(n, 3) float64 [m]"""
    velocities: Floats
    """(n, 3) float64 [m/s]"""
    impulses: Floats
    """(n, 3) float64 [N s] that contacts exerted in the last step: friction starts from them"""
    memory: Floats
    """(k, n, 3) float64 [m/s] what the integrator remembers of the last step; k = 0 where it needs nothing"""
    falling: Floats
    """(n,) share of gravity, 0 to 1, that each vertex is expected to follow: the cloth itself bears the rest"""
    touches: Bytes
    """(n,) uint8, what contacts each vertex had in the last step (see `weft.collision.response`)"""
    lost: float = 0.0
    """[J] that the last steps lost: as much a step may gain (see `LOSS_KEPT`)"""
    pressed: float = 0.0
    """[J] that contacts took up of late (see `MEMORY`): as much they may give back"""
    step: int = 0
    """steps done since time 0"""
    is_wary: bool = False
    """whether steps are halved from the start (see `FAR`)"""

    @classmethod
    def start(cls, positions: Floats, velocities: Floats) -> State:
        """The state at time 0: nothing has happened yet, and all falls."""
        n = len(positions)
        return cls(positions, velocities, np.zeros((n, 3)), np.zeros((0, n, 3)), np.ones(n), np.zeros(n, np.uint8))
