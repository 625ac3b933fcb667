"""Bridson's strain limit: impulses along springs that would end the step too long or too short.

R. Bridson, R. Fedkiw, J. Anderson, "Robust treatment of collisions, contact and friction for cloth animation",
SIGGRAPH 2002, section 4.1. The velocities are corrected, and positions follow: an impulse along a spring, equal and
opposite at its ends, makes its length at the end of the step the allowed one. Each end moves in inverse proportion to
its mass, so the momentum of free cloth is conserved, and to first order its angular momentum. A pinned vertex counts
as infinitely heavy.

Two ways to sweep: `gauss_seidel` takes springs in turn and sees each correction at once; `jacobi` computes all
impulses from the same positions, as the paper proposes. Summed as they are, Jacobi's impulses overshoot where several
springs meet and the cloth blows up. Each is therefore divided by the larger number of such springs that meet at one
of its ends, the same for both ends, which keeps the sum of impulses zero.

The rate of strain, too, may be limited, as the paper has it: with `rate` = 0.1 no spring changes its length by more
than a tenth within a step. Where the two limits disagree, for a spring far beyond its length, the rate counts: it comes
back as fast as it may.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from weft.arrays import Floats
from weft.parameters import quantity
from weft.strain import TOLERANCE, Springs, spring_lengths
from weft.strain.sweeps import SweptLimit, SweptLimitParameters


class VelocityLimitParameters(SweptLimitParameters):
    """How long springs may be, and how hard to try."""

    compression: bool = quantity("limit shortening likewise", default=True)
    rate: float | None = quantity(
        "largest change of a spring's length in one step, as a share of it; none where absent",
        default=None,
        gt=0,
        le=10,
    )
    sweep: Literal["gauss_seidel", "jacobi"] = quantity("springs one by one, or all at once", default="gauss_seidel")


class VelocityLimit(SweptLimit):
    """Momentum-conserving impulses against overlong springs (Bridson 2002); positions follow the velocities."""

    Parameters = VelocityLimitParameters

    def __init__(self, springs: Springs, parameters: VelocityLimitParameters | None = None) -> None:
        self.parameters = parameters or VelocityLimitParameters()
        super().__init__(springs, self.parameters)

    def _mobility(self, masses: Floats) -> Floats:
        return 1.0 / masses

    def _bounds(self, x_t0: Floats | None) -> tuple[Floats, Floats]:
        rate = self.parameters.rate
        if rate is None or x_t0 is None:
            return self._shortest, self._longest
        now = spring_lengths(x_t0, self.springs.pairs)
        least, most = max(0.0, 1.0 - rate) * now, (1.0 + rate) * now
        return np.clip(self._shortest, least, most), np.clip(self._longest, least, most)

    def _sweep(self, mobility: Floats, shortest: Floats, longest: Floats, x_inout: Floats) -> int:
        if self.parameters.sweep == "jacobi":
            return self._sweep_at_once(mobility, shortest, longest, x_inout)
        return super()._sweep(mobility, shortest, longest, x_inout)

    def _sweep_at_once(self, mobility: Floats, shortest: Floats, longest: Floats, x_inout: Floats) -> int:
        """Jacobi sweeps; returns how many."""
        pairs, n = self.springs.pairs, len(x_inout)
        both = mobility[pairs].sum(axis=1)
        for sweep in range(self.parameters.max_sweeps):
            length = spring_lengths(x_inout, pairs)
            excess = length - np.clip(length, shortest, longest)
            wrong = (np.abs(excess) > 0.5 * TOLERANCE * longest) & (both > 0.0) & (length > 0.0)
            if not wrong.any():
                return sweep
            ends = pairs[wrong]
            crowd = np.bincount(ends.ravel(), minlength=n)[ends].max(axis=1)
            size = excess[wrong] / (length[wrong] * both[wrong] * crowd)
            impulses = size[:, None] * (x_inout[ends[:, 1]] - x_inout[ends[:, 0]])
            for c in range(3):
                given = np.bincount(ends[:, 0], impulses[:, c], n) - np.bincount(ends[:, 1], impulses[:, c], n)
                x_inout[:, c] += mobility * given
        return self.parameters.max_sweeps
