"""Integrators: from forces to the velocities at the end of a step.

A step is one linear system A dv = b in the change of velocity. `begin` sets it up, `solve` answers it under
constraints, as often as contacts need, and reports the impulse that the constraints exerted.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

from weft.arrays import Floats, Ints
from weft.linear.constraints import Constraints
from weft.parameters import Parameters
from weft.registry import Family


class Dynamics(NamedTuple):
    """Forces and their derivatives at the start of a step, of all cloths together."""

    masses: Floats
    """(n,) [kg]"""
    forces: Floats
    """(n, 3) [N]"""
    pairs: Ints
    """(p, 2) vertices that each block couples"""
    stiffness: Floats
    """(p, 3, 3) -df_i/dx_j [N/m]"""
    damping: Floats
    """(p, 3, 3) -df_i/dv_j [N s/m]"""
    extra_damping: Floats
    """(n, 3, 3) damping on the diagonal, from the air [N s/m]"""


class Integrator(Protocol):
    """One way to advance velocities."""

    Parameters: ClassVar[type[Parameters]]
    needs_jacobians: ClassVar[bool]
    """False where `stiffness` and `damping` of the dynamics are not read"""

    solves_springs: ClassVar[bool]
    """True where contacts that couple several vertices are part of the system"""

    def __init__(self, pairs: Ints, n_vertices: int, parameters: Any = None) -> None: ...

    def begin(self, dynamics: Dynamics, v: Floats, dt: float) -> None:
        """Set up the system of one step."""

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        """Return the change of velocity (n, 3) [m/s] and the impulse (n, 3) [N s] exerted by the constraints."""


INTEGRATORS = Family(
    "integrator",
    __name__,
    {"implicit_euler": "ImplicitEuler", "symplectic_euler": "SymplecticEuler"},
)
