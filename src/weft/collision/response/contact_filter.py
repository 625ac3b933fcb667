"""Contacts and pins as filtered constraints, with Coulomb friction.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, section 6: a vertex in contact loses the degree
of freedom along the normal, and must end the step on the outer side of the plane that it touches,
n . v' >= -gap / dt. The impulse that this takes decides what happens next, within the step and not at the next one
as in the paper: a contact that would pull lets go, and a vertex whose new path crosses a body is held.

Friction. Switching each vertex between sticking and sliding, as the paper does, does not settle when hundreds of
vertices switch at once. Instead friction is a drag against the slip s, smooth near rest:

    j = -mu j_n s / max(|s|, creep),

linearised with |s| and the normal impulse j_n of the solve before (the step before, at first). It holds a
resting cloth up to a creep of less than `creep`, and costs no extra unknowns.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.collision.response import StepStart, Surroundings
from weft.geometry.contacts import PlaneContacts, join_contacts
from weft.linear.constraints import Constraints, build_constraints
from weft.parameters import Parameters, quantity

INDEPENDENT = 0.05  # sine of the smallest angle between two contact planes that count as two


class ContactFilterParameters(Parameters):
    """How friction behaves near rest."""

    creep: float = quantity("slip speed below which friction is viscous", default=5e-4, unit="m/s", gt=0, le=1)


class ContactFilter:
    """Constraints for pins and for contacts with bodies, corrected until contact, friction and motion agree."""

    Parameters = ContactFilterParameters
    uses_springs = False
    meets_bodies = False
    needs_gaps = False

    def __init__(self, surroundings: Surroundings, parameters: ContactFilterParameters | None = None) -> None:
        self.parameters = parameters or ContactFilterParameters()

    def begin(self, start: StepStart) -> None:
        self._v, self._dt = start.v, start.dt
        self._pinned, self._pin_velocities = start.pinned, start.pin_velocities
        self._is_pinned = np.zeros(len(start.v), bool)
        self._is_pinned[start.pinned] = True
        self._contacts = start.contacts.select(~self._is_pinned[start.contacts.vertices])
        self._holds = np.ones(len(self._contacts.vertices), bool)
        self._solves = 0
        self._arrange()
        self._learn_friction(start.v, start.impulses)

    def n_contacts(self) -> int:
        return int(self._holds.sum())

    def held(self) -> tuple[Ints, Floats]:
        """Vertices (k,) that bodies hold, with the outward normals (k, 3); one in a corner occurs several times."""
        return self._contacts.vertices[self._bearing], self._contacts.normals[self._bearing]

    def constraints(self) -> Constraints:
        c, v = self._contacts, self._v
        out = build_constraints(len(v))._replace(filters=self._filters.copy())
        for k, m in self._rounds:
            vi, n = c.vertices[k], c.normals[k]
            missing = -c.gaps[k] / self._dt - ((v[vi] + out.change[vi]) * n).sum(axis=1)
            out.change[vi] += m * (missing / (n * m).sum(axis=1))[:, None]
        held = self._bearing
        tangent = np.eye(3) - c.normals[held, :, None] * c.normals[held, None, :]
        drag = self._drag[held, None, None] * tangent
        np.add.at(out.drag, c.vertices[held], drag)
        slip = v[c.vertices[held]] - c.velocities[held]
        np.add.at(out.impulses, c.vertices[held], -np.einsum("kij,kj->ki", drag, slip))
        out.filters[self._pinned] = 0.0
        out.change[self._pinned] = self._pin_velocities - v[self._pinned]
        return out

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        self._solves += 1
        normal = self._normal_impulses(impulses)
        changed = self._hold(contacts, dv)
        if self._solves == 1:  # later, letting go and holding again could go on for ever
            pulling = np.flatnonzero(normal < 0.0)
            self._holds[pulling] = False
            changed |= len(pulling) > 0
        if changed:
            self._arrange()
            self._learn_friction(self._v + dv, impulses)
        return changed

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats:
        return x_t1

    def _arrange(self) -> None:
        """Find the contacts that bear: of those that hold, up to three independent planes a vertex, the nearest first.

        Of planes that are parallel, or nearly, one bears: of a floor and a plate above it, the plate.
        """
        c = self._contacts
        self._filters = np.tile(np.eye(3), (len(self._v), 1, 1))
        self._rounds: list[tuple[Longs, Floats]] = []
        held = np.flatnonzero(self._holds)
        held = held[np.argsort(c.gaps[held], kind="stable")]
        for k in _by_rank(c.vertices[held], held):
            free = np.einsum("kij,kj->ki", self._filters[c.vertices[k]], c.normals[k])
            length = np.linalg.norm(free, axis=1)
            new = length > INDEPENDENT
            k, m = k[new], free[new] / length[new, None]
            self._filters[c.vertices[k]] -= m[:, :, None] * m[:, None, :]
            self._rounds.append((k, m))
        self._bearing = np.concatenate([np.zeros(0, np.int64), *(k for k, _ in self._rounds)])
        planes = np.bincount(c.vertices[self._bearing], minlength=len(self._v))
        self._filters[planes == 3] = 0.0  # what rounding leaves there would be a way out of the corner

    def _normal_impulses(self, impulses: Floats) -> Floats:
        """What each contact bears (k,) [N s]: the impulse of a vertex is the sum of its normals times these."""
        c, k = self._contacts, self._bearing
        vertices, row = np.unique(c.vertices[k], return_inverse=True)
        normals, place = np.zeros((len(vertices), 3, 3)), np.zeros(len(k), np.int64)
        for rank, items in enumerate(_by_rank(row, np.arange(len(k)))):
            place[items] = rank
        normals[row, place] = c.normals[k]
        gram = normals @ normals.transpose(0, 2, 1)
        gram += np.eye(3) * (np.einsum("nii->ni", gram) == 0.0)[:, None, :]  # places without a contact bear nothing
        shares = np.linalg.solve(gram, normals @ impulses[vertices][:, :, None])[:, :, 0]
        out = np.zeros(len(c.vertices))
        out[k] = shares[row, place]
        return out

    def _learn_friction(self, v: Floats, impulses: Floats) -> None:
        """Overwrite the drag coefficient [N s / (m/s)] of each contact from velocities and impulses of a solve."""
        c = self._contacts
        slip = tangential(v[c.vertices] - c.velocities, c.normals)
        normal = np.maximum(self._normal_impulses(impulses), 0.0)
        self._drag = c.friction * normal / np.maximum(np.linalg.norm(slip, axis=1), self.parameters.creep)

    def _hold(self, contacts: PlaneContacts, dv: Floats) -> bool:
        """Take up contacts that the new path meets and that are not held yet."""
        c = self._contacts
        end_gap = c.gaps + self._dt * ((self._v + dv)[c.vertices] * c.normals).sum(axis=1)
        back = ~self._holds & (end_gap < -1e-9)
        self._holds |= back
        key = c.vertices.astype(np.int64) << 20 | c.bodies
        other = contacts.vertices.astype(np.int64) << 20 | contacts.bodies
        new = contacts.select(~np.isin(other, key) & ~self._is_pinned[contacts.vertices])
        if len(new.vertices):
            self._contacts = join_contacts([c, new])
            self._holds = np.concatenate([self._holds, np.ones(len(new.vertices), bool)])
        return bool(back.any()) or len(new.vertices) > 0


def tangential(vectors: Floats, normals: Floats) -> Floats:
    """What is left of `vectors` (k, 3) across unit `normals`."""
    along: Floats = (vectors * normals).sum(axis=1)[:, None] * normals
    return vectors - along


def _by_rank(vertices: Ints | Longs, items: Longs) -> list[Longs]:
    """Split `items` into rounds, in each of which every vertex occurs once."""
    order = np.argsort(vertices, kind="stable")
    ordered = vertices[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, bool)
    position = np.arange(len(ordered))
    rank = position - np.maximum.accumulate(np.where(first, position, 0)) if len(ordered) else position
    return [items[order[rank == r]] for r in range(int(rank.max()) + 1 if len(rank) else 0)]
