"""Responses: what is done about contacts."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from weft.arrays import Floats, Ints
from weft.geometry.contacts import PlaneContacts
from weft.linear.constraints import Constraints
from weft.parameters import Parameters
from weft.registry import Family


class Response(Protocol):
    """Turns contacts and pins into constraints, and corrects them after each solve of a step."""

    Parameters: ClassVar[type[Parameters]]

    def __init__(self, parameters: Any = None) -> None: ...

    def begin(
        self,
        contacts: PlaneContacts,
        pinned: Ints,
        pin_velocities: Floats,
        v: Floats,
        impulses: Floats,
        dt: float,
    ) -> None:
        """Take up the contacts and pins of a new step; `impulses` (n, 3) [N s] are those of the step before."""

    def constraints(self) -> Constraints:
        """The constraints as they stand."""

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        """Learn from a solve and from the contacts along the path it gave; True where it must be solved again."""

    def n_contacts(self) -> int:
        """How many contacts hold."""


RESPONSES = Family("response", __name__, {"contact_filter": "ContactFilter"})
