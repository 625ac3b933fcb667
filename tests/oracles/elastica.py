"""The heavy elastica by shooting: independent of the boundary-value solver in the laboratory."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq


def tip(load: float) -> tuple[float, float]:
    """Distance and sink of the tip of a strip of unit length with w L^3 / B = `load`.

    Shot from the free end, where the curvature vanishes, for the angle there that makes the strip level at the clamp.
    """

    def shoot(angle):
        def slope(s, y):  # s from the tip: angle, curvature, distance, sink
            return [-y[1], load * s * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])]

        return solve_ivp(slope, (0.0, 1.0), [angle, 0.0, 0.0, 0.0], rtol=1e-10, atol=1e-12).y[:, -1]

    angle = brentq(lambda a: shoot(a)[0], 0.0, 0.5 * np.pi - 1e-12, xtol=1e-14)
    return tuple(shoot(angle)[2:])
