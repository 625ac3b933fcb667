"""Responses: what is done about contacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from weft.arrays import Bytes, Floats, Ints
from weft.geometry.contacts import PlaneContacts, join_contacts
from weft.geometry.mesh import Mesh
from weft.parameters import Parameters
from weft.registry import Family

if TYPE_CHECKING:  # it holds kernels, and naming the members of a family must not load numba
    from weft.linear.constraints import Constraints


MAY_TOUCH, TOUCHES, LIES = 1, 2, 3  # of a vertex: a contact was expected, was there, or was there with a body


class Surroundings(NamedTuple):
    """What never changes: the cloths and the bodies, as meshes."""

    cloth: Mesh
    """all cloths, at rest"""
    bodies: Mesh | None
    """all bodies but planes, at time 0; None where there are none"""
    clearance: Floats
    """(n,) the distance that cloth keeps [m]"""
    friction: Floats
    """(n,) Coulomb coefficient of the fabric"""
    body_friction: Floats
    """(b,) of the body at each vertex of `bodies`; -1 where the fabric's counts"""
    masses: Floats
    """(n,) [kg]"""
    broad: Any
    """makes the broad phase of a mesh"""
    body_of: Ints = np.zeros(0, np.int32)
    """(b,) which body each vertex of `bodies` belongs to; planes are bodies, too, but have no vertices"""


def _touch_nothing(*_: Floats | Ints) -> PlaneContacts:
    return join_contacts([])


class StepStart(NamedTuple):
    """What a response knows when a step begins."""

    x: Floats
    """(n, 3) positions at the start of the step [m]"""
    v: Floats
    """(n, 3) velocities at the start of the step [m/s]"""
    ahead: Floats
    """(n, 3) where the cloth would end if its velocity stayed as it was at the start of the step [m]"""
    x_free: Floats
    """(n, 3) where the cloth would end without contacts: by its velocity and the part of gravity that it does not bear
    [m]"""
    touches: Bytes
    """(n,) what contacts each vertex had in the step before: 0 for none, `MAY_TOUCH`, `TOUCHES` or `LIES`"""
    impulses: Floats
    """(n, 3) that constraints exerted in the step before [N s]"""
    contacts: PlaneContacts
    """vertices that would touch bodies on the way to `x_free`"""
    pinned: Ints
    """(p,) vertices that are held"""
    pin_velocities: Floats
    """(p, 3) velocities that take them where they belong [m/s]"""
    bodies_t0: Floats
    """(b, 3) vertices of the bodies at the start [m]"""
    bodies_t1: Floats
    """(b, 3) and at the end [m]"""
    dt: float
    touching: Callable[[Floats, Floats], PlaneContacts] = _touch_nothing
    """the contacts with bodies on the way to given positions (n, 3), at a given distance (n,) [m]"""
    touching_end: Callable[[Ints, Floats, Floats], PlaneContacts] = _touch_nothing
    """those of some vertices (k,) on the way from given positions (n, 3) to others, as bodies stand at the end"""
    body_moves: Floats = np.zeros((0, 3, 4))
    """(bodies, 3, 4) rigid motion of each body in the step: x becomes [:, :3] @ x + [:, 3]"""
    is_last: bool = False
    """True where no shorter step will do better: cloth makes way for bodies at any price"""


class Response(Protocol):
    """Turns contacts and pins into constraints, corrects them after each solve, and has the last word on motion."""

    Parameters: ClassVar[type[Parameters]]
    uses_springs: ClassVar[bool]
    """True where its constraints couple vertices: the integrator must solve for all of them at once. Its `touches` (n,)
    then says of each vertex what contacts it has (see `StepStart`), and `held_back` how many vertices the last `finish`
    kept from where the solve led; `follow(goal)` goes on from there as far towards other positions (n, 3) as is safe,
    and returns where that is. Of its `n_contacts` contacts `n_loose` may be let go: `release(dv)` does so where they
    would pull if velocities change by (n, 3), and takes back what would push; `slide(dv)` lets slide what drags by more
    than friction allows. Both return whether that is worth going on with the solve. `revise(contacts, v)` takes up what
    a solve showed that led to the velocities `v` (n, 3), before it is solved again: `contacts` with bodies on the way
    there, and friction that is no more than Coulomb's; `missed_bodies` says that the last `finish` stopped many
    vertices close before bodies out of whose reach they had started: contacts did not foresee it.
    `crushed` is a vertex for which it found no room, and the body that takes it; None where it found some"""
    meets_bodies: ClassVar[bool]
    """True where `finish` deals with bodies itself; else a solve that meets them is solved again, and vertices are
    pushed out of them before it"""
    needs_gaps: ClassVar[bool]
    """True where it keeps apart what starts apart, and nothing else: the start is untangled for it"""

    def __init__(self, surroundings: Surroundings, parameters: Any = None) -> None: ...

    def begin(self, start: StepStart) -> None:
        """Take up the contacts and pins of a new step."""

    def constraints(self) -> Constraints:
        """The constraints as they stand."""

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        """Learn from a solve and from the contacts along the path it gave; True where it must be solved again."""

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats | None:
        """The positions (n, 3) at which the step may end, given those that the solve asks for.

        `contacts` are those along the way there. None where the step is too long to end safely.
        """

    def n_contacts(self) -> int:
        """How many contacts hold."""


RESPONSES = Family(
    "response",
    __name__,
    {
        "dividing_planes": "DividingPlanes",
        "contact_filter": "ContactFilter",
        "box_avoidance": "BoxAvoidance",
        "vertex_fixing": "VertexFixing",
        "impulses": "Impulses",
        "impact_zones": "ImpactZones",
    },
)
