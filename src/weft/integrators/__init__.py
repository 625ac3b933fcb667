"""Integrators: from forces to the velocities and positions at the end of a step.

A step is solved for the mean velocity in it, written as a change dv against the velocity at its start: positions move
by dt (v + dv), and pins and contacts constrain just that. `begin` takes up a step, `solve` answers it under
constraints, as often as contacts need, and `end` tells the velocity at the end of the step, which a scheme of higher
order tells apart from the mean one. An integrator keeps nothing from one step to the next but the memory that it
hands out and gets back: a checkpoint of it resumes bit by bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from weft.arrays import NO_FLOATS, Floats, Ints
from weft.errors import WeftError
from weft.parameters import Parameters
from weft.registry import Family

if TYPE_CHECKING:  # it holds kernels, and naming the members of a family must not load numba
    from weft.linear.constraints import Constraints


class Dynamics(NamedTuple):
    """Forces and their derivatives in one state, of all cloths together."""

    masses: Floats
    """(n,) [kg]"""
    forces: Floats
    """(n, 3) [N]"""
    pairs: Ints
    """(p + q, 2) vertices that each block couples"""
    stiffness: Floats
    """(p, 3, 3) -df_i/dx_j [N/m]"""
    damping: Floats
    """(p, 3, 3) -df_i/dv_j [N s/m]"""
    extra_damping: Floats
    """(n, 3, 3) damping on the diagonal, from the air [N s/m]"""
    even: Floats = NO_FLOATS
    """(q,) -df_i/dx_j of the last pairs [N/m], times the identity; they have no damping"""


class System(Protocol):
    """Whatever moves: gives forces in any state. `elapsed` [s] counts from the start of the step."""

    masses: Floats

    def forces(self, x: Floats, v: Floats, elapsed: float) -> Floats:
        """All forces (n, 3) [N]."""

    def dynamics(self, x: Floats, v: Floats, elapsed: float) -> Dynamics:
        """Forces and derivatives; the derivative arrays are overwritten by the next call."""


class Start(NamedTuple):
    """The state at the start of a step."""

    x: Floats
    """(n, 3) positions [m]"""
    v: Floats
    """(n, 3) velocities [m/s]"""
    memory: Floats
    """(k, n, 3) what the integrator handed out at the end of the step before; k = 0 at the first step"""


class Integrator(Protocol):
    """One way to advance velocities and positions."""

    Parameters: ClassVar[type[Parameters]]
    needs_jacobians: ClassVar[bool]
    """True where it reads the derivatives of a model, to solve with them or to know its longest safe step"""
    takes_limits: ClassVar[bool]
    """True where `lower` and `upper` of the constraints are kept"""

    solves_springs: ClassVar[bool]
    """True where contacts that couple several vertices are part of the system. It then has three more ways to solve,
    which return what `solve` returns: `try_out(constraints)`, roughly; `solve_on(constraints)` from the last solve on,
    after springs were let go; `refine(constraints, dv)` once more, about where `dv` leads. And `about` (n, 3), the
    positions about which the last solve was linear"""

    def __init__(self, pairs: Ints, n_vertices: int, parameters: Any = None) -> None: ...

    def begin(self, system: System, start: Start, dt: float) -> None:
        """Take up one step."""

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        """Return the change dv (n, 3) [m/s] and the impulse (n, 3) [N s] exerted by the constraints."""

    def end(self) -> tuple[Floats, Floats]:
        """Return the velocity (n, 3) [m/s] at the end of the step last solved, and the memory (k, n, 3) of it."""


INTEGRATORS = Family(
    "integrator",
    __name__,
    {
        "implicit_euler": "ImplicitEuler",
        "symplectic_euler": "SymplecticEuler",
        "bdf2": "Bdf2",
        "gauss_seidel": "GaussSeidel",
        "runge_kutta": "RungeKutta",
        "central": "Central",
    },
)


def check_fit(name: str, integrator: Any, model_name: str, model: Any, response_name: str, response: Any) -> None:
    """Refuse an integrator (a class, called `name`) that lacks what it needs from a model or for a response."""
    if integrator.needs_jacobians and not getattr(model, "has_jacobians", True):
        raise WeftError(f"method.integrator: {name} needs derivatives of the forces, which {model_name} does not give")
    if response.uses_springs and not integrator.solves_springs:
        able = ", ".join(other for other in INTEGRATORS if INTEGRATORS.load(other).solves_springs)
        raise WeftError(f"method.integrator: {name} cannot solve for the contacts of {response_name}; use {able}")
    if getattr(response, "needs_limits", False) and not integrator.takes_limits:
        able = ", ".join(other for other in INTEGRATORS if INTEGRATORS.load(other).takes_limits)
        raise WeftError(
            f"method.integrator: {name} cannot keep the constraint intervals of {response_name}; use {able}"
        )
