"""Strain limits: no spring of the cloth ends a step longer than it may be.

A limit moves the ends of springs after the step is solved. What it adds to a position, divided by the step, it adds
to the velocity: state and motion stay one. A method that moves positions alone (as Provot's is usually read) leaves
velocities that stretch the cloth again at the next step, and whatever computes impulses from them explodes.

Springs are the edges of the mesh; on a grid those along u and v and, where asked for, both diagonals of each quad.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh
from weft.parameters import Parameters, quantity
from weft.registry import Family

TOLERANCE = 1e-4  # of strain: with a limit of 10 %, a spring at 10.01 % is at its limit, not beyond it


class StrainReport(NamedTuple):
    """What a limit found and left."""

    over_before: float
    """share of springs beyond the limit, as the integrator left them"""
    over_after: float
    """share of springs beyond the limit still"""
    sweeps: int
    """passes over all springs"""


class Springs(NamedTuple):
    """The springs of all cloths together."""

    pairs: Ints
    """(s, 2)"""
    lengths: Floats
    """(s,) at rest [m]"""


class StrainLimitParameters(Parameters):
    """What every limit can be told."""

    limit: float = quantity("largest strain of a spring", default=0.1, ge=0, le=10)
    diagonals: bool = quantity("count the diagonals of a grid's quads as springs, too", default=False)


class StrainLimit(Protocol):
    """One way to keep springs within their limit."""

    Parameters: ClassVar[type[Parameters]]

    def __init__(self, springs: Springs, parameters: Any = None) -> None: ...

    def apply(
        self,
        masses: Floats,
        pinned: Ints,
        dt: float,
        x_inout: Floats,
        v_inout: Floats,
        x_t0: Floats | None = None,
    ) -> StrainReport:
        """Correct positions (n, 3) and velocities (n, 3) at the end of a step; `pinned` vertices stay.

        `x_t0` (n, 3) are the positions at its start, for limits of the rate of strain.
        """


STRAIN_LIMITS = Family(
    "strain limit",
    __name__,
    {"none": "NoLimit", "position_limit": "PositionLimit", "velocity_limit": "VelocityLimit"},
)


def build_springs(mesh: Mesh, diagonals: bool) -> Springs:
    """The springs of one mesh, in a fixed order."""
    pairs = mesh.topology.edges
    if mesh.grid_shape is not None:
        index = np.arange(mesh.n_vertices, dtype=np.int32).reshape(mesh.grid_shape)
        joined = [(index[:-1], index[1:]), (index[:, :-1], index[:, 1:])]
        if diagonals:
            joined += [(index[:-1, :-1], index[1:, 1:]), (index[1:, :-1], index[:-1, 1:])]
        pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in joined])
    return Springs(np.ascontiguousarray(pairs, np.int32), spring_lengths(mesh.positions, pairs))


def spring_lengths(x: Floats, pairs: Ints) -> Floats:
    """Lengths (s,) [m]."""
    ends = x[pairs]
    lengths: Floats = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    return lengths


def share_over(x: Floats, springs: Springs, limit: float, compression: bool) -> float:
    """The share of springs whose strain is beyond `limit`, in compression too where asked for."""
    strain = spring_lengths(x, springs.pairs) / springs.lengths - 1.0
    over = np.abs(strain) if compression else strain
    return float((over > limit + TOLERANCE).mean()) if len(over) else 0.0
