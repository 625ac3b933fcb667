"""Wind, as a scene describes it; `air.py` turns it into forces."""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats
from weft.parameters import Parameters, Vector, quantity


class Wind(Parameters):
    """Wind, the same everywhere, with gusts in time.

    [wind]
    velocity = [3, 0, 0]
    gust = 0.4
    """

    velocity: Vector = quantity("mean velocity of the air", unit="m/s", default=(0.0, 0.0, 0.0))
    gust: float = quantity("strength of gusts, relative to the mean", default=0.0, ge=0, le=2)
    density: float = quantity("density of the air", unit="kg/m3", default=1.2, ge=0, le=100)

    def at(self, time: float) -> Floats:
        """Velocity (3,) [m/s] at `time`: three sines of unrelated periods make the gusts, with no random numbers."""
        waves = np.sin(2.1 * time) + np.sin(5.3 * time + 1.0) + np.sin(11.7 * time + 2.0)
        return np.array(self.velocity, np.float64) * float(1.0 + self.gust * waves / 3.0)
