"""No strain limit: springs stretch as the forces want; the share beyond `limit` is only reported."""

from __future__ import annotations

from weft.arrays import Floats, Ints
from weft.strain import Springs, StrainLimitParameters, StrainReport, share_over


class NoLimitParameters(StrainLimitParameters):
    """What counts as too long in the report."""


class NoLimit:
    """Reports springs beyond the limit and leaves them."""

    Parameters = NoLimitParameters

    def __init__(self, springs: Springs, parameters: NoLimitParameters | None = None) -> None:
        self.parameters = parameters or NoLimitParameters()
        self.springs = springs

    def apply(
        self,
        masses: Floats,
        pinned: Ints,
        dt: float,
        x_inout: Floats,
        v_inout: Floats,
        x_t0: Floats | None = None,
    ) -> StrainReport:
        over = share_over(x_inout, self.springs, self.parameters.limit, compression=False)
        return StrainReport(over, over, 0)
