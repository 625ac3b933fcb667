"""How fast a cloth can vibrate: bounds from which explicit integrators know their longest safe step."""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats
from weft.errors import WeftError
from weft.integrators import Dynamics


def spectral_bounds(dynamics: Dynamics) -> tuple[float, float]:
    """Upper bounds of the largest eigenvalues of M^-1 K [1/s^2] and of M^-1 D [1/s].

    Gershgorin: the largest eigenvalue of M^-1 K is at most max_i 2 sum_j |K_ij| / m_i, of M^-1 D likewise.
    """
    d = dynamics
    n = len(d.masses)

    def row_bound(blocks: Floats, even: Floats) -> float:
        norms = np.concatenate([np.sqrt((blocks**2).sum(axis=(1, 2))), np.abs(even)])
        rows = np.bincount(d.pairs.T.ravel(), np.tile(norms, 2), minlength=n)
        return float((2.0 * rows / d.masses).max())

    air = np.sqrt((d.extra_damping**2).sum(axis=(1, 2)))
    return row_bound(d.stiffness, d.even), row_bound(d.damping, 0.0 * d.even) + float((air / d.masses).max())


def refuse_long_step(name: str, dt: float, limit: float) -> None:
    """Raise a WeftError with the longest safe step where `dt` is beyond it."""
    if dt > limit:
        shown = 1e3 * 0.995 * limit  # three digits of it, rounded, are not beyond the limit themselves
        raise WeftError(
            f"{name}: a step of {1e3 * dt:.3g} ms is beyond the largest safe step of this cloth, "
            f"{shown:.3g} ms; multiply steps_per_frame by {int(np.ceil(dt / limit))} or use implicit_euler"
        )
