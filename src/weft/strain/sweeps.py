"""Passes over springs that move both ends until each spring is within its bounds; shared by the limits."""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.jit import kernel
from weft.parameters import quantity
from weft.strain import TOLERANCE, Springs, StrainLimitParameters, StrainReport, share_over


class SweptLimitParameters(StrainLimitParameters):
    """How long springs may be, and how hard to try."""

    compression: bool = quantity("limit shortening likewise", default=False)
    max_sweeps: int = quantity("passes over all springs at most", default=20, ge=1, le=1000000)


class SweptLimit:
    """Sweeps over springs at the end of a step. A limit of this kind says how readily each vertex moves."""

    def __init__(self, springs: Springs, parameters: SweptLimitParameters) -> None:
        self.springs = springs
        self._limits = p = parameters
        self._longest = springs.lengths * (1.0 + p.limit)
        self._shortest = springs.lengths * max(0.0, 1.0 - p.limit) if p.compression else np.zeros(len(springs.lengths))

    def apply(
        self,
        masses: Floats,
        pinned: Ints,
        dt: float,
        x_inout: Floats,
        v_inout: Floats,
        x_t0: Floats | None = None,
    ) -> StrainReport:
        limit, compression = self._limits.limit, self._limits.compression
        before = share_over(x_inout, self.springs, limit, compression)
        mobility = self._mobility(masses)
        mobility[pinned] = 0.0
        x = x_inout.copy()
        sweeps = self._sweep(mobility, *self._bounds(x_t0), x)
        v_inout += (x - x_inout) / dt
        x_inout[:] = x
        return StrainReport(before, share_over(x, self.springs, limit, compression), sweeps)

    def _mobility(self, masses: Floats) -> Floats:
        """How far a vertex moves (n,) for a unit of push."""
        raise NotImplementedError

    def _bounds(self, x_t0: Floats | None) -> tuple[Floats, Floats]:
        """The least and the largest length (s,) [m] of each spring at the end of a step from `x_t0`."""
        return self._shortest, self._longest

    def _sweep(self, mobility: Floats, shortest: Floats, longest: Floats, x_inout: Floats) -> int:
        """Sweep until all springs are within bounds or there were too many; returns how many."""
        return sweep_in_order(self.springs.pairs, shortest, longest, mobility, self._limits.max_sweeps, x_inout)


@kernel
def sweep_in_order(
    pairs: Ints, shortest: Floats, longest: Floats, mobility: Floats, max_sweeps: int, x_inout: Floats
) -> int:
    """Bring each spring in turn to its bound, moving its ends in proportion to `mobility` (n,). Returns the sweeps.

    Every other sweep runs backwards, so that corrections travel both ways. Serial: the order is part of the result.
    """
    for sweep in range(max_sweeps):
        moved = False
        for k in range(len(pairs)):
            s = k if sweep % 2 == 0 else len(pairs) - 1 - k
            vi, vj = pairs[s, 0], pairs[s, 1]
            both = mobility[vi] + mobility[vj]
            if both == 0.0:
                continue
            dx, dy, dz = (
                x_inout[vj, 0] - x_inout[vi, 0],
                x_inout[vj, 1] - x_inout[vi, 1],
                x_inout[vj, 2] - x_inout[vi, 2],
            )
            length = np.sqrt(dx * dx + dy * dy + dz * dz)
            excess = length - min(max(length, shortest[s]), longest[s])
            if length == 0.0 or abs(excess) <= 0.5 * TOLERANCE * longest[s]:
                continue
            moved = True
            toward = excess / (length * both)
            wi, wj = toward * mobility[vi], toward * mobility[vj]
            x_inout[vi, 0] += wi * dx
            x_inout[vi, 1] += wi * dy
            x_inout[vi, 2] += wi * dz
            x_inout[vj, 0] -= wj * dx
            x_inout[vj, 1] -= wj * dy
            x_inout[vj, 2] -= wj * dz
        if not moved:
            return sweep
    return max_sweeps
