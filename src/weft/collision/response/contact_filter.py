"""Contacts and pins as filtered constraints, with Coulomb friction.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, section 6: a vertex in contact loses one
degree of freedom (it slides) or all three (it sticks); the impulse that the constraint exerts decides what happens
next. We decide within the step and solve again, instead of at the next step as the paper does:

* a contact that would pull lets go;
* a sticking contact whose tangential impulse exceeds friction times the normal one slides, and friction becomes an
  impulse against the motion;
* a sliding contact that friction would turn round sticks;
* a vertex whose path crosses a body it was not yet in contact with is held.

The vertex must end the step on the outer side of the plane that it touches: n . v' >= -gap / dt.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Bools, Floats, Ints, Longs
from weft.geometry.contacts import PlaneContacts, join_contacts
from weft.linear.constraints import Constraints, build_constraints
from weft.parameters import Parameters, quantity

INDEPENDENT = 0.05  # sine of the smallest angle between two contact planes that count as two


class ContactFilterParameters(Parameters):
    """When a contact starts the step at rest."""

    stick_speed: float = quantity(
        "tangential speed below which a contact starts sticking", default=0.02, unit="m/s", ge=0
    )


class ContactFilter:
    """Constraints for pins and for contacts with bodies, corrected until contact, friction and motion agree."""

    Parameters = ContactFilterParameters

    def __init__(self, parameters: ContactFilterParameters | None = None) -> None:
        self.parameters = parameters or ContactFilterParameters()

    def begin(self, contacts: PlaneContacts, pinned: Ints, pin_velocities: Floats, v: Floats, dt: float) -> None:
        self._v, self._dt = v, dt
        self._pinned, self._pin_velocities = pinned, pin_velocities
        self._is_pinned = np.zeros(len(v), bool)
        self._is_pinned[pinned] = True
        self._contacts = contacts.select(~self._is_pinned[contacts.vertices])
        self._holds = np.ones(len(self._contacts.vertices), bool)
        self._released = np.zeros(len(self._holds), bool)
        self._friction_impulse = np.zeros((len(self._holds), 3))
        self._sticks = self._slow(v)

    def _slow(self, v: Floats) -> Bools:
        c = self._contacts
        slip = _tangential(v[c.vertices] - c.velocities, c.normals)
        result: Bools = (np.linalg.norm(slip, axis=1) <= self.parameters.stick_speed) & (c.friction > 0.0)
        return result

    def n_contacts(self) -> int:
        return int(self._holds.sum())

    def constraints(self) -> Constraints:
        c, v = self._contacts, self._v
        out = build_constraints(len(v))
        held = np.flatnonzero(self._holds)
        for k in _by_rank(c.vertices[held], held):
            vi, n = c.vertices[k], c.normals[k]
            free = np.einsum("kij,kj->ki", out.filters[vi], n)
            length = np.linalg.norm(free, axis=1)
            new = length > INDEPENDENT
            vi, n, m = vi[new], n[new], free[new] / length[new, None]
            missing = -c.gaps[k][new] / self._dt - ((v[vi] + out.change[vi]) * n).sum(axis=1)
            out.change[vi] += m * (missing / (n * m).sum(axis=1))[:, None]
            out.filters[vi] -= m[:, :, None] * m[:, None, :]
        stuck = np.flatnonzero(self._holds & self._sticks)
        vi = c.vertices[stuck]
        slip = c.velocities[stuck] - v[vi] - out.change[vi]
        out.change[vi] += np.einsum("kij,kj->ki", out.filters[vi], slip)
        out.filters[vi] = 0.0
        sliding = np.flatnonzero(self._holds & ~self._sticks)
        np.add.at(out.impulses, c.vertices[sliding], self._friction_impulse[sliding])
        out.filters[self._pinned] = 0.0
        out.change[self._pinned] = self._pin_velocities - v[self._pinned]
        out.impulses[self._pinned] = 0.0
        return out

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        changed = self._release(impulses)
        changed |= self._rub(self._v + dv, impulses)
        return self._hold(contacts, dv) or changed

    def _release(self, impulses: Floats) -> bool:
        c = self._contacts
        pulling = self._holds & ((impulses[c.vertices] * c.normals).sum(axis=1) < 0.0)
        self._holds[pulling] = False
        self._released |= pulling
        return bool(pulling.any())

    def _rub(self, v_new: Floats, impulses: Floats) -> bool:
        """Compare friction with what sticking would take, and turn sticking into sliding and back."""
        c = self._contacts
        vi = c.vertices
        normal = np.maximum((impulses[vi] * c.normals).sum(axis=1), 0.0)
        tangential = _tangential(impulses[vi], c.normals)
        size = np.linalg.norm(tangential, axis=1)
        slip = _tangential(v_new[vi] - c.velocities, c.normals)
        speed = np.linalg.norm(slip, axis=1)
        most = c.friction * normal

        slips = self._holds & self._sticks & (size > most)
        slides = self._holds & ~self._sticks
        along = (slip * self._friction_impulse).sum(axis=1)
        turned = slides & (along > 0.0)  # friction pushed the vertex over: it should have stopped
        self._sticks[turned] = True
        keeps = slides & ~turned & (speed > 0.0)
        wanted = np.zeros_like(slip)
        wanted[keeps] = -(most[keeps] / speed[keeps])[:, None] * slip[keeps]
        wanted[slips] = (most[slips] / size[slips])[:, None] * tangential[slips]
        moved = np.linalg.norm(wanted - self._friction_impulse, axis=1)[keeps] > 0.05 * most[keeps]
        update = keeps | slips
        self._friction_impulse[update] = wanted[update]
        self._sticks[slips] = False
        return bool(slips.any() or turned.any() or moved.any())

    def _hold(self, contacts: PlaneContacts, dv: Floats) -> bool:
        """Take up contacts that the new path meets and that are not held yet."""
        c = self._contacts
        crossing = (self._v + dv)[c.vertices] * c.normals
        back = self._released & ~self._holds & (crossing.sum(axis=1) * self._dt < -c.gaps - 1e-9)
        self._holds |= back
        known = set(zip(c.vertices.tolist(), c.bodies.tolist(), strict=True))
        fresh = [
            not self._is_pinned[vi] and (vi, body) not in known
            for vi, body in zip(contacts.vertices.tolist(), contacts.bodies.tolist(), strict=True)
        ]
        new = contacts.select(np.array(fresh, bool))
        if len(new.vertices):
            count = len(self._holds)
            self._contacts = join_contacts([c, new])
            self._holds = np.concatenate([self._holds, np.ones(len(new.vertices), bool)])
            self._released = np.concatenate([self._released, np.zeros(len(new.vertices), bool)])
            self._friction_impulse = np.concatenate([self._friction_impulse, np.zeros((len(new.vertices), 3))])
            self._sticks = np.concatenate([self._sticks, self._slow(self._v + dv)[count:]])
        return bool(back.any()) or len(new.vertices) > 0


def _tangential(vectors: Floats, normals: Floats) -> Floats:
    along: Floats = (vectors * normals).sum(axis=1)[:, None] * normals
    return vectors - along


def _by_rank(vertices: Ints, items: Longs) -> list[Longs]:
    """Split `items` into rounds, in each of which every vertex occurs once."""
    order = np.argsort(vertices, kind="stable")
    ordered = vertices[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, bool)
    position = np.arange(len(ordered))
    rank = position - np.maximum.accumulate(np.where(first, position, 0)) if len(ordered) else position
    return [items[order[rank == r]] for r in range(int(rank.max()) + 1 if len(rank) else 0)]
