"""Impulses in two stages: those that are near repel each other, and those that would collide are stopped.

M. G. da Silva, "Cloth animation with collision detection", section 7, after R. Bridson, R. Fedkiw, J. Anderson, "Robust
treatment of collisions, contact and friction for cloth animation", SIGGRAPH 2002. The solve gives candidate positions;
everything is done to the mean velocity of the step, u = (x* - x) / dt, here to the displacement dt u.

1. Proximity. Pairs that are closer than the contact distance h at the start of the step, gap g along the normal n:
   an inelastic impulse stops those that approach, and an impulse in proportion to the overlap h - g parts them. Both in
   one: the pair must end up parting by

       n . sum_k w_k dt u_k >= (h - g) min(0.1, dt / `recovery`).

   0.1 is Bridson's: no more than a tenth of the overlap in one step. The spring constant of the paper, which gives
   none, is written as a time, so that it means the same for every mesh and step.
2. Geometry. Pairs that meet on their way get an inelastic impulse along the normal at the time when they do.

An impulse j n at a pair moves vertex k by dt j w_k / m_k: weights sum to zero, so momentum is conserved, and closest
points lie along n, so angular momentum is. Pins and bodies have infinite mass. With `friction` the slip s of a pair is
met by an impulse against it, of at most mu times the normal one (Coulomb); Bridson's eq. 3 is the same law.

Pairs are taken in turn (Gauss-Seidel) in `sweeps`; sums of impulses are kept, so that a later sweep may take back what
turned out to be too much, never more than was given. As published: one sweep, one pass, no friction, and the cubic.
What is left after that crosses: "my implementation of the collision algorithm is not failsafe" (section 10);
`impact_zones` is the rest of the method.

Bodies. The paper tests cloth against the triangles of objects. Here a vertex meets the shape of a body itself, along
its path, in stage one; edges, and the corners of bodies, meet triangles.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.collision.narrow import Contacts
from weft.collision.narrow.conservative import first_contact
from weft.collision.narrow.continuous import contacts_at, first_contact_times
from weft.collision.response import StepStart, Surroundings
from weft.collision.response.pairs import PairFinder, Pairs, measured
from weft.geometry.contacts import PlaneContacts
from weft.jit import kernel, prange
from weft.linear.constraints import Constraints, build_constraints
from weft.parameters import Parameters, quantity

PRESSED = 0.25  # of the contact distance: below it pairs whose closest points lie on a corner push, too
PARTED = 0.1  # of an overlap is pushed apart in one step, at most
CLOSEST = (
    4e-6  # [m] no pair may come closer than this, and what is closer, hardly closer: above the rounding of float32
)
KEPT = 0.9  # of its gap, where that is smaller: what is told apart from contact
SETTLED = 1e-4  # [m/s] sweeps stop when no impulse changes a velocity by more
ROUNDING = 1e-12  # [m] of a distance
REACH = 0.5  # contact distances that a vertex may go before pairs are looked for anew


class ImpulsesParameters(Parameters):
    """What the two stages do."""

    recovery: float = quantity("time in which an overlap is pushed apart", unit="s", default=0.01, gt=0, le=10)
    friction: bool = quantity("Coulomb friction in both stages", default=False)
    repulsion: bool = quantity("whether the proximity stage is on", default=True)
    self_collision: bool = quantity("whether cloth meets cloth", default=True)
    sweeps: int = quantity("sweeps over the contacts at most, each time that some are found", default=1, ge=1, le=1000)
    passes: int = quantity("detections in the geometric stage at most; 0: no such stage", default=1, ge=0, le=1000)
    detection: Literal["cubic", "conservative"] = quantity("continuous test of the geometric stage", default="cubic")


@dataclass
class ImpulseCounts:
    """What a simulation has needed so far."""

    steps: int = 0
    near: int = 0
    """contacts that stage one pushed apart"""
    met: int = 0
    """pairs that still met when stage two looked first"""
    passes: int = 0
    """detections in stage two that found pairs"""
    steps_met: int = 0
    """steps with such pairs"""
    zone_steps: int = 0
    """steps that needed impact zones"""
    rigid_steps: int = 0
    """of these, steps whose zones had to be rigid"""
    zone_vertices: int = 0
    """vertices in zones, over all these steps"""
    refused: int = 0
    """steps that were given up for two of half the length"""
    seconds: float = 0.0
    """in detection"""


class Exchanges(NamedTuple):
    """Contacts that exchange impulses."""

    rows: Ints
    """(k, 4) vertices; those of bodies follow those of the cloth"""
    weights: Floats
    """(k, 4) signed; 0 for what is not there"""
    normals: Floats
    """(k, 3)"""
    offsets: Floats
    """(k, 3) how far the body of a single vertex moves [m]"""
    targets: Floats
    """(k,) how far they must part along the normal in the step [m]"""
    friction: Floats
    """(k,)"""
    pushes: Floats
    """(k,) sum of what was done along the normal, as a relative displacement [m]"""
    drags: Floats
    """(k, 3) and across it"""

    def select(self, which: Bools) -> Exchanges:
        """Some of the rows."""
        return Exchanges(*cast("Any", [part[which] for part in self]))


def build_exchanges(
    rows: Ints, weights: Floats, normals: Floats, offsets: Floats, targets: Floats, friction: Floats
) -> Exchanges:
    """Contacts that have exchanged nothing yet."""
    return Exchanges(rows, weights, normals, offsets, targets, friction, np.zeros(len(rows)), np.zeros((len(rows), 3)))


def no_exchanges() -> Exchanges:
    none = np.zeros((0, 3))
    return build_exchanges(np.zeros((0, 4), np.int32), np.zeros((0, 4)), none, none, np.zeros(0), np.zeros(0))


def join_exchanges(parts: list[Exchanges]) -> Exchanges:
    """All of `parts`, in order."""
    return Exchanges(*(np.concatenate(columns) for columns in zip(no_exchanges(), *parts, strict=True)))


@kernel(allocates=True)
def exchange_impulses(
    x: Floats,
    inv_masses: Floats,
    rows: Ints,
    weights: Floats,
    normals: Floats,
    offsets: Floats,
    targets: Floats,
    friction: Floats,
    sweeps: int,
    settled: float,
    pushes_inout: Floats,
    drags_inout: Floats,
    goal_inout: Floats,
) -> int:
    """Move the end positions `goal` (n + b, 3) until every contact parts as it must; return the sweeps it took.

    `inv_masses` (n + b,) [1/kg], 0 for pins and bodies.
    """
    s, d = np.empty(3), np.empty(3)
    for sweep in range(sweeps):
        largest = 0.0
        for q in range(len(rows)):
            mobility = 0.0
            for c in range(3):
                s[c] = -offsets[q, c]
            for place in range(4):
                w, i = weights[q, place], rows[q, place]
                mobility += w * w * inv_masses[i]
                for c in range(3):
                    s[c] += w * (goal_inout[i, c] - x[i, c])
            if mobility == 0.0:
                continue
            across = s[0] * normals[q, 0] + s[1] * normals[q, 1] + s[2] * normals[q, 2]
            push = max(0.0, pushes_inout[q] + targets[q] - across)
            change = push - pushes_inout[q]
            pushes_inout[q] = push
            size = 0.0
            for c in range(3):
                d[c] = drags_inout[q, c] - (s[c] - across * normals[q, c])
                size += d[c] * d[c]
            size = np.sqrt(size)
            share = 1.0 if size <= friction[q] * push else friction[q] * push / size
            moved = change * change
            for c in range(3):
                drag = share * d[c]
                d[c] = change * normals[q, c] + drag - drags_inout[q, c]
                moved += (drag - drags_inout[q, c]) ** 2
                drags_inout[q, c] = drag
            largest = max(largest, moved)
            for place in range(4):
                i = rows[q, place]
                f = weights[q, place] * inv_masses[i] / mobility
                if f != 0.0:
                    for c in range(3):
                        goal_inout[i, c] += f * d[c]
        if largest <= settled * settled:
            return sweep + 1
    return sweeps


@kernel
def may_meet(x: Floats, goal: Floats, rows: Ints, q: int, edges: bool, room: float) -> bool:
    """Whether the two sides of a pair move against each other by `room` [m] or more."""
    split = 2 if edges else 1
    for a in range(split):
        i = rows[q, a]
        for b in range(split, 4):
            j = rows[q, b]
            sq = 0.0
            for c in range(3):
                sq += ((goal[i, c] - x[i, c]) - (goal[j, c] - x[j, c])) ** 2
            if not sq < room * room:
                return True
    return False


@kernel(parallel=True)
def update_impacts(
    x: Floats, goal: Floats, rows: Ints, edges: bool, gaps: Floats, closest: float, times_out: Floats
) -> None:
    """Overwrite when each pair comes as near as `closest` [m], or as KEPT of its gap where that is less; never late."""
    for q in prange(len(rows)):
        least = min(closest, KEPT * gaps[q])
        times_out[q] = np.inf
        room = gaps[q] - least - ROUNDING
        if room <= 0.0 or may_meet(x, goal, rows, q, edges, room):
            times_out[q] = first_contact(x, goal, rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3], edges, least)


class PairList(NamedTuple):
    """Pairs that may matter as long as every vertex stays near where it was when they were listed.

    Sorted by vertices: which of them matter in a step, and in which order, does not depend on when they were listed.
    """

    x: Floats
    """(n + b, 3) where the vertices were [m]"""
    reach: float
    """how far each may go from there [m]"""
    vertex_triangle: Ints
    """(k, 4)"""
    edge_edge: Ints
    """(k, 4)"""

    def holds(self, x_t0: Floats, x_t1: Floats) -> bool:
        """Whether no vertex leaves its reach on a straight way."""
        if self.reach < 0.0:
            return False
        far = max(float(((x - self.x) ** 2).sum(axis=1).max(initial=0.0)) for x in (x_t0, x_t1))
        return far <= self.reach**2


class Impulses:
    """Repulsion of what is near, and inelastic collisions (da Silva; Bridson et al. 2002); see the module.

    Attributes
    ----------
    counts : since the start
    """

    Parameters: ClassVar[type[Any]] = ImpulsesParameters
    uses_springs = False
    meets_bodies = True
    needs_gaps = False

    def __init__(self, surroundings: Surroundings, parameters: Any = None) -> None:
        self.parameters = parameters or self.Parameters()
        self._n, n_bodies = len(surroundings.masses), len(surroundings.body_friction)
        self._masses = surroundings.masses
        self._clearance = np.concatenate([surroundings.clearance, np.zeros(n_bodies)])
        self._friction = np.concatenate([surroundings.friction, surroundings.body_friction])
        self._finder = PairFinder(surroundings, PRESSED)
        self._margin = float(surroundings.clearance.max()) + 2.0 * CLOSEST
        self.counts = ImpulseCounts()
        self._held = no_exchanges()
        none = np.zeros((0, 4), np.int32)
        self._listed = PairList(np.zeros((0, 3)), -1.0, none, none)

    def begin(self, start: StepStart) -> None:
        self._start = start
        self._x = np.concatenate([start.x, start.bodies_t0])
        self._inv_masses = np.zeros(len(self._x))
        self._inv_masses[: self._n] = 1.0 / self._masses
        self._inv_masses[start.pinned] = 0.0

    def constraints(self) -> Constraints:
        start = self._start
        out = build_constraints(self._n)
        out.filters[start.pinned] = 0.0
        out.change[start.pinned] = start.pin_velocities - start.v[start.pinned]
        return out

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        return False

    def n_contacts(self) -> int:
        return int((self._held.pushes > 0.0).sum())

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats | None:
        goal = np.concatenate([x_t1, self._start.bodies_t1])
        self.counts.steps += 1
        self._find(goal)
        self._held = self._near(goal) if self.parameters.repulsion else no_exchanges()
        self._exchange(self._held, goal)
        self.counts.near += self.n_contacts()
        if not self._collide(goal) and not self._settle(goal):
            self.counts.refused += 1
            return None
        return np.ascontiguousarray(goal[: self._n])

    def _collide(self, goal_inout: Floats) -> bool:
        """Stage two; True where nothing meets any more, as far as it knows."""
        p = self.parameters
        for k in range(p.passes):
            met = self._detect(goal_inout)
            if k == 0:
                self.counts.met += len(met.rows)
                self.counts.steps_met += int(len(met.rows) > 0)
            if len(met.rows) == 0:
                return True
            self.counts.passes += 1
            # With one sweep all have had their turn; with more, what is stopped must not set off what was settled.
            self._held = met if p.sweeps == 1 else join_exchanges([self._held, met])
            self._exchange(self._held, goal_inout)
        return False

    def _settle(self, goal_inout: Floats) -> bool:
        """What is done where stage two has not ended; False where the step is too long."""
        return True

    def _exchange(self, e: Exchanges, goal_inout: Floats) -> None:
        p = self.parameters
        exchange_impulses(
            self._x,
            self._inv_masses,
            e.rows,
            e.weights,
            e.normals,
            e.offsets,
            e.targets,
            e.friction if p.friction else np.zeros_like(e.friction),
            p.sweeps,
            SETTLED * self._start.dt,
            e.pushes,
            e.drags,
            goal_inout,
        )

    def _find(self, goal: Floats) -> None:
        """Measure the pairs that matter on the way to `goal`, and look for them anew where the list does not hold."""
        start = time.perf_counter()
        if not self._listed.holds(self._x, goal):
            self._listed = self._list(goal)
        self._pairs = [
            measured(self._x, self._x, rows, edges, self._finder.reach, self._finder.pressed)
            for rows, edges in ((self._listed.vertex_triangle, False), (self._listed.edge_edge, True))
        ]
        self.counts.seconds += time.perf_counter() - start

    def _list(self, goal: Floats) -> PairList:
        """All pairs that come within the contact distance while no vertex goes further than the reach of the list."""
        way = np.sqrt(((goal - self._x) ** 2).sum(axis=1).max(initial=0.0))
        reach = max(REACH * self._margin, 1.5 * way)
        self._finder.search(self._x, self._x, self._margin + 2.0 * reach)
        found, _ = self._finder.near(self._x, self._x, self._x, self._margin + 2.0 * reach)
        rows = []
        for pairs in found:
            kept = pairs.gaps <= self._margin + 2.0 * reach
            if not self.parameters.self_collision:
                kept &= (pairs.rows >= self._n).any(axis=1)
            near = pairs.rows[kept]
            rows.append(np.ascontiguousarray(near[np.lexsort(near.T[::-1])]))
        return PairList(self._x, reach, *rows)

    def _near(self, goal: Floats) -> Exchanges:
        """Stage one: pairs that are too near, and vertices that come too near a body."""
        dt, parts = self._start.dt, []
        rate = min(PARTED, dt / self.parameters.recovery)
        for pairs in self._pairs:
            near = pairs.bears & (pairs.gaps < self._margin)
            if not pairs.edges:  # a vertex on a body meets the body's own surface
                near &= (pairs.rows[:, 0] >= self._n) | (pairs.rows[:, 1] < self._n)
            overlap = self._clearance[pairs.rows[near]].max(axis=1) - pairs.gaps[near]
            near[near] = overlap > 0.0
            rows, overlap = pairs.rows[near], overlap[overlap > 0.0]
            none = np.zeros((len(rows), 3))
            parts.append(
                build_exchanges(
                    rows, pairs.weights[near], pairs.normals[near], none, rate * overlap, self._friction_of(rows)
                )
            )
        c = self._start.touching(goal[: self._n], self._clearance[: self._n])
        before = c.gaps + dt * (c.velocities * c.normals).sum(axis=1)
        parts.append(self._at_bodies(c, np.where(before < 0.0, -rate * before, -before)))
        return join_exchanges(parts)

    def _at_bodies(self, c: PlaneContacts, targets: Floats) -> Exchanges:
        rows = np.repeat(c.vertices[:, None], 4, axis=1)
        weights = np.tile([1.0, 0.0, 0.0, 0.0], (len(rows), 1))
        return build_exchanges(rows, weights, c.normals, self._start.dt * c.velocities, targets, c.friction)

    def _friction_of(self, rows: Ints) -> Floats:
        """The fabric's coefficient, or the body's where it has its own."""
        first, second = self._friction[rows[:, 0]], self._friction[rows[:, 3]]
        on_body = (rows[:, 0] >= self._n) | (rows[:, 3] >= self._n)
        fabric = np.where(rows[:, 0] < self._n, first, second)
        body = np.where(rows[:, 0] < self._n, second, first)
        return np.where(on_body & (body >= 0.0), body, fabric)

    def _detect(self, goal: Floats) -> Exchanges:
        """What meets on the way to `goal`, each with the impulse target that stops it."""
        if not self._listed.holds(self._x, goal):
            self._find(goal)
        start = time.perf_counter()
        parts = []
        for pairs in self._pairs:
            times = self._times(pairs, goal)
            met = np.isfinite(times)
            met[met] = (self._inv_masses[pairs.rows[met]] > 0.0).any(axis=1)  # pins and bodies go where they are told
            found = contacts_at(self._x, goal, pairs.rows[met], pairs.edges, times[met])
            parts.append(self._stopping(found))
        c = self._start.touching(goal[: self._n], np.full(self._n, CLOSEST))
        moved = (goal - self._x)[c.vertices]
        gap = c.gaps + CLOSEST + self._start.dt * (c.velocities * c.normals).sum(axis=1)
        least = np.minimum(CLOSEST, np.maximum(gap, 0.0))
        crossing = c.gaps + CLOSEST + (moved * c.normals).sum(axis=1) < KEPT * least - ROUNDING
        crossing &= self._inv_masses[c.vertices] > 0.0
        parts.append(self._at_bodies(c.select(crossing), (least - gap)[crossing]))
        self._bodies_met = c.bodies[crossing]  # of the last rows
        self.counts.seconds += time.perf_counter() - start
        return join_exchanges(parts)

    def _times(self, pairs: Pairs, goal: Floats) -> Floats:
        times = np.empty(len(pairs.rows))
        if self.parameters.detection == "cubic":
            return first_contact_times(self._x, goal, pairs.rows, pairs.edges, 0.0, "cubic")
        update_impacts(self._x, goal, pairs.rows, pairs.edges, pairs.gaps, CLOSEST, times)
        return times

    def _stopping(self, found: Contacts) -> Exchanges:
        n = len(found.vertices)
        friction = self._friction_of(found.vertices)
        return build_exchanges(found.vertices, found.weights, found.normals, np.zeros((n, 3)), np.zeros(n), friction)
