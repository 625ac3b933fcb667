"""Contact by springs, and motion that no pair can turn into a crossing: the engine's response.

Contact. Two features of the cloth, or one of the cloth and one of a body, that are or would be nearer than the contact
distance push each other apart by springs with friction (`contact_law`).

Safety. The solve gives end positions x*. The move from x to x* is made safe by dividing planes, the collision plane of
Liu, Ko and Chang (1998) freed from the axes. For each candidate pair take the direction n between its closest points at
x. Along n all vertices of the one side lie above all vertices of the other; let `sep` be that free space. Motion is
linear, so a pair that still has free space along n at the end had it all the way. Most of the others turn as they pass
each other, and the continuous test, which is never late, says that they do not meet (see `narrow.conservative`). It
pays: a held-back vertex holds back those beside it, up to 5,000 on cloth of 201 x 201 vertices where pairs had to keep
free space along one of three directions instead. Where they may meet, the space along n is shared between the sides in
proportion to how far each would intrude, and a vertex may go only so far along its path that it stays in its own share.
A vertex goes the least share of its path over its pairs. Pairs that counted on a vertex that was then held back are
looked at again, with where it really ends, until all agree. What was held back is tried again from the new positions,
which have new planes.

Pairs are found once for both, for vertices that end where they are likely to, give or take a margin: by inertia, and
by gravity as far as nothing holds it up; what lay on something in the last step will lie there in this one. (Taken to
fall, all that lies and with it all that hangs from it was elsewhere in every step, on fine meshes.) Boxes move with
what is in them, so that cloth that falls or swings has no more candidates than cloth at rest: boxes around paths have
up to seven times as many, at 201 x 201 vertices. Neighbours move together: most pairs whose boxes touch have free space
at the start and at the likely end, and are left out. For a vertex that ends elsewhere, or is held back, pairs are
looked for anew, along the paths to x*. The vertices of bodies go where they are told. Where the cloth cannot make way
for them in this step, `finish` says so, and the simulation takes a shorter step.

Why rounding does no harm: `sep` is computed from the vertices themselves, so the argument needs no exact closest
points and no exact normal, and a part of it (`RESERVE`, and at least `CLOSEST`) is never given away. That part is four
orders above the rounding of a double, and above that of float32, in which frames are recorded, at the size of a room.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Bytes, Floats, Ints
from weft.collision.response import TOUCHES, StepStart, Surroundings
from weft.collision.response.contact_law import (
    Law,
    Slips,
    add_pushes,
    drop_repeats,
    excess_drags,
    let_slide,
    mark_pushing,
    normal_impulses,
    push_apart,
    push_off,
)
from weft.collision.response.pairs import PairFinder
from weft.collision.response.safe_motion import (
    CLOSEST,
    Watched,
    hold_back,
    join_watched,
    make_way,
    mark_unsafe,
    spare_of,
    stop_before,
    watch,
)
from weft.geometry.contacts import PlaneContacts
from weft.geometry.rows import chosen_rows, differing, further_apart, row_products, ways_along
from weft.linear.constraints import Constraints, build_constraints
from weft.linear.springs import Springs, build_springs
from weft.parameters import Parameters, quantity

DONE = 0.999  # of its path: a vertex that got this far is not tried again
PRESSED = 0.5  # of the contact distance: below it all pairs bear, so that none is left without a push
MISSED = 0.2  # of the contacts with bodies: so many vertices more that come as near as `PRESSED` were not foreseen,
FEW = 1e-3  # of all vertices at least
USUAL_STEP = 1.0 / 120.0  # [s] a shorter step must not push harder
NO_VERTICES = np.zeros(0, np.int32)
ATTEMPTS = 10  # to make way for bodies, at most
WRONG = 0.05  # of all that contacts push: no more that loose ones pull, or lack, is not worth another solve
TORN = 0.02  # of all that friction allows: no more that contacts drag beyond it is not worth another solve
MARGIN = 0.5  # of the contact distance around the path of a vertex


class DividingPlanesParameters(Parameters):
    """How contacts push, how friction behaves near rest, and how hard held-back vertices are tried again."""

    stiffness: float = quantity(
        "stiffness of a contact, in inertias of a vertex in a step of 1/120 s", default=200.0, unit="1", gt=0, le=1e6
    )
    softness: float = quantity(
        "steps of 1/120 s in which what was pressed together comes apart", default=10.0, ge=0, le=1000
    )
    creep: float = quantity("slip speed below which friction is viscous", default=5e-4, unit="m/s", gt=0, le=1)
    rounds: int = quantity("safe moves in one step, at most", default=3, ge=1, le=100)


class DividingPlanes:
    """Contact springs with friction, and end positions that cannot cross (after Liu, Ko and Chang 1998)."""

    Parameters = DividingPlanesParameters
    uses_springs = True
    meets_bodies = True
    needs_gaps = True

    def __init__(self, surroundings: Surroundings, parameters: DividingPlanesParameters | None = None) -> None:
        self.parameters = parameters or DividingPlanesParameters()
        self._clearance, self._friction = surroundings.clearance, surroundings.friction
        self._body_friction, self._masses = surroundings.body_friction, surroundings.masses
        self._finder = PairFinder(surroundings, PRESSED)
        self._margin = MARGIN * float(surroundings.clearance.max())
        self._body_of = surroundings.body_of
        self.held_back, self.missed_bodies = 0, False
        self.crushed: tuple[int, int] | None = None

    def begin(self, start: StepStart) -> None:
        self._start = start
        n = len(start.x)
        self._x = np.concatenate([start.x, start.bodies_t0])
        self._expected = np.concatenate([start.x_free, start.bodies_t1])
        likely = chosen_rows(start.touches > 0, start.ahead, start.x_free)
        self._likely = np.concatenate([likely, start.bodies_t1])
        self._is_pinned = np.zeros(n, bool)
        self._is_pinned[start.pinned] = True
        self._finder.search(self._x, self._likely, 2.0 * self._margin)
        self._pairs, beside = self._finder.near(self._x, self._likely, self._expected, 2.0 * self._margin)
        self._pin_velocities = self._yielded(start)
        self._hold_pins(self._pin_velocities)
        # What lies on cloth is not expected to fall through it: drawn to the floor, layers that are nearer to it than
        # they would fall in a step pressed on what is below them with a hundred times their weight.
        falls = chosen_rows(start.touches == TOUCHES, start.ahead, start.x_free)
        self._planes = self._add_planes(start.contacts, falls)
        self._springs = self._add_springs(beside)
        self._holds = [np.ones(len(law.vertices), np.bool_) for law in (self._law, self._plane_law)]

    def _yielded(self, start: StepStart) -> Floats:
        """The velocities (p, 3) of pins, those that would enter bodies stopped before them, or pushed along."""
        if len(start.pinned) == 0:
            return start.pin_velocities.copy()
        goal = start.x.copy()
        goal[start.pinned] += start.dt * start.pin_velocities
        self._look_ahead(start.touching(goal, self._clearance), start.x)
        moved = self._before_planes(goal)[start.pinned]
        yields = differing(moved, goal[start.pinned])
        return np.where(yields[:, None], (moved - start.x[start.pinned]) / start.dt, start.pin_velocities)

    def _hold_pins(self, velocities: Floats) -> None:
        """Constraints anew, of pins alone, which go on at `velocities` (p, 3)."""
        start, n = self._start, len(self._start.x)
        self._held, self.touches = build_constraints(n), np.zeros(n, np.uint8)
        self._held.filters[start.pinned] = 0.0
        self._held.change[start.pinned] = velocities - start.v[start.pinned]

    def _add_springs(self, beside: int) -> Springs:
        """Springs of all pairs that bear, but the first `beside`: a vertex on a body meets the body's own surface."""
        start, p = self._start, self.parameters
        n = len(start.x)
        ahead = np.concatenate([start.ahead, start.bodies_t1]) - self._x
        body = (start.bodies_t1 - start.bodies_t0) / start.dt
        velocities = np.concatenate([start.v, body])
        likely, drops = self._likely - self._x, self._expected - self._likely
        at_vertices, at_edges = (
            mark_pushing(
                pairs.rows, pairs.normals, pairs.gaps, pairs.weights, pairs.bears, likely, drops, self._clearance, n
            )
            for pairs in self._pairs
        )
        at_vertices[:beside] = False
        drop_repeats(self._pairs[0], at_vertices, self._pairs[1], self._clearance, at_edges)
        parts = list(zip(self._pairs, (np.flatnonzero(at_vertices), np.flatnonzero(at_edges)), strict=True))
        m, count = sum(len(which) for _, which in parts), 0
        vertices, weights, along = np.zeros((m, 4), np.int32), np.zeros((m, 4)), np.empty(m)
        pushes, touches, is_loose = np.empty((m, 3)), np.empty(m, np.uint8), np.empty(m, np.bool_)
        slips = self._slips = Slips(np.empty((m, 3)), np.empty((m, 3)), np.empty(m), np.empty(m))
        for pairs, which in parts:
            push_apart(
                which,
                pairs.rows,
                pairs.normals,
                pairs.gaps,
                pairs.weights,
                likely,
                drops,
                ahead,
                velocities,
                self._clearance,
                self._friction,
                self._body_friction,
                self._masses,
                start.impulses,
                (start.dt, p.stiffness / USUAL_STEP**2, p.softness * USUAL_STEP / start.dt, p.creep),
                n,
                count,
                vertices,
                weights,
                along,
                pushes,
                touches,
                is_loose,
                slips,
            )
            count += len(which)
        self._spare_levers(vertices, weights, along, pushes)
        springs = build_springs(vertices, weights, slips.normals, along, slips.drags, n)
        self._pushes, self._are_touching = pushes, touches
        self._law = Law(
            vertices, weights, slips.normals, along.copy(), slips.drags.copy(), slips.limits.copy(), pushes, is_loose
        )
        add_pushes(weights, springs.starts, springs.items, pushes, touches, self._held.impulses, self.touches)
        return springs

    def _spare_levers(self, vertices: Ints, weights: Floats, along_inout: Floats, pushes_inout: Floats) -> None:
        """Weaken springs of which pins take the most: what is free would have to go the way of the contact many times.

        An edge that touches a ball near its pinned end turned about it at 20 m/s.
        """
        if len(self._start.pinned) == 0:
            return
        held = self._is_pinned[vertices]
        some = np.flatnonzero((held & (weights != 0.0)).any(axis=1))
        squares = weights[some] ** 2
        free = np.where(held[some], 0.0, squares).sum(axis=1) / squares.sum(axis=1)
        for part in (along_inout, pushes_inout, self._slips.drags, self._slips.limits):
            part[some] *= free if part.ndim == 1 else free[:, None]

    def _add_planes(self, contacts: PlaneContacts, goal: Floats) -> tuple[PlaneContacts, Slips]:
        """The same law for vertices on the tangent planes of bodies, those that are met on the way to `goal` (n, 3).

        Returns these, and their friction.
        """
        start, p, c = self._start, self.parameters, self._of_free_vertices(contacts)
        k = len(c.vertices)
        along, drags, limits = np.zeros((3, k))
        pushes, is_loose = np.zeros((k, 3)), np.zeros(k, np.bool_)
        are_met = push_off(
            c.vertices,
            c.normals,
            c.gaps,
            c.velocities,
            c.friction,
            (start.x, goal, start.ahead, start.v),
            self._clearance,
            self._masses,
            start.impulses,
            (start.dt, p.stiffness / USUAL_STEP**2, p.softness * USUAL_STEP / start.dt, p.creep),
            self._held.drag,
            self._held.impulses,
            self.touches,
            along,
            pushes,
            is_loose,
            drags,
            limits,
        )
        c, drags, limits = c.select(are_met), drags[are_met], limits[are_met]
        self._plane_law = Law(
            *as_springs(c),
            c.normals,
            along[are_met],
            drags.copy(),
            limits.copy(),
            pushes[are_met],
            is_loose[are_met],
        )
        return c, Slips(c.normals, -c.velocities, drags, limits)

    def release(self, dv: Floats) -> bool:
        """Let go of loose contacts that pull, and take back those that would push, where velocities change by `dv`.

        False where there are none, or so weak that they are not worth another solve.
        """
        laws = self._law, self._plane_law
        borne = [normal_impulses(law, dv) for law in laws]
        holds = [~law.is_loose | (b > 0.0) for law, b in zip(laws, borne, strict=True)]
        wrong = sum(np.abs(b[old != new]).sum() for b, old, new in zip(borne, self._holds, holds, strict=True))
        if wrong <= WRONG * sum(np.maximum(b, 0.0).sum() for b in borne):
            return False
        more, more_planes = (new.astype(float) - old for old, new in zip(self._holds, holds, strict=True))
        self._holds = holds
        s, (law, planes), (held, held_planes) = self._springs, laws, holds
        none = np.zeros(len(held), np.uint8)
        add_pushes(s.weights, s.starts, s.items, more[:, None] * law.pushes, none, self._held.impulses, self.touches)
        self._pushes = held[:, None] * law.pushes
        s.along[:], self._slips.drags[:], self._slips.limits[:] = held * law.along, held * law.drags, held * law.limits
        c, slips = self._planes
        outer = c.normals[:, :, None] * c.normals[:, None, :]
        blocks = planes.along[:, None, None] * outer + planes.drags[:, None, None] * (np.eye(3) - outer)
        np.add.at(self._held.impulses, c.vertices, more_planes[:, None] * planes.pushes)
        np.add.at(self._held.drag, c.vertices, more_planes[:, None, None] * blocks)
        slips.drags[:], slips.limits[:] = held_planes * planes.drags, held_planes * planes.limits
        return True

    def revise(self, contacts: PlaneContacts, v: Floats) -> None:
        """Take up what the last solve showed, which led to the velocities `v` (n, 3), before it is solved again.

        `contacts` are those along the way there. They take the place of those with bodies that were foreseen: what
        pulled is let go, and what is met is met. Cloth that was drawn to a body by its threads had no contact with it
        and was stopped close before it. Pressed so far together, it bore a hundred times its weight in the next step,
        and stuck: dragged over a ball, it stretched by 15 %. Pins that were stopped go on as far as they got.

        Drag is as strong as friction at the speed that a contact slips with when the step starts. One that stuck drags
        far harder once it is torn loose: where it drags by more than friction allows, it becomes a force, that of
        Coulomb, against where it goes.
        """
        s, start = self._springs, self._start
        self._hold_pins(self._pin_velocities)
        self._planes = self._add_planes(contacts, start.x + start.dt * v)
        add_pushes(s.weights, s.starts, s.items, self._pushes, self._are_touching, self._held.impulses, self.touches)
        self._let_slide(v)

    def slide(self, dv: Floats) -> bool:
        """Let slide what drags by more than friction allows, where velocities change by `dv` (n, 3), as `revise` does.

        False where that is not worth another solve.
        """
        v = self._start.v + dv
        excess = sum(excess_drags(law.vertices, law.weights, slips, v).sum() for law, slips in self._frictions())
        if excess <= TORN * sum(slips.limits.sum() for _, slips in self._frictions()):
            return False
        self._let_slide(v)
        return True

    def _frictions(self) -> tuple[tuple[Law, Slips], tuple[Law, Slips]]:
        return (self._law, self._slips), (self._plane_law, self._planes[1])

    def _let_slide(self, v: Floats) -> None:
        """Put Coulomb's force in the place of drags that are more than it, where the last solve led to `v` (n, 3)."""
        s, held, v_t0 = self._springs, self._held, self._start.v
        (law, slips), (plane_law, plane_slips) = self._frictions()
        forces, none = let_slide(law.vertices, law.weights, slips, v_t0, v), np.zeros(len(law.vertices), np.uint8)
        self._pushes = self._pushes + forces
        add_pushes(s.weights, s.starts, s.items, forces, none, held.impulses, self.touches)
        before, which = plane_slips.drags.copy(), plane_law.vertices[:, 0]
        np.add.at(held.impulses, which, let_slide(plane_law.vertices, plane_law.weights, plane_slips, v_t0, v))
        across = np.eye(3) - plane_slips.normals[:, :, None] * plane_slips.normals[:, None, :]
        np.add.at(held.drag, which, (plane_slips.drags - before)[:, None, None] * across)

    def _of_free_vertices(self, contacts: PlaneContacts) -> PlaneContacts:
        if len(self._start.pinned) == 0:
            return contacts
        return contacts.select(~self._is_pinned[contacts.vertices])

    def constraints(self) -> Constraints:
        return self._held._replace(springs=self._springs)

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        return False

    @property
    def n_springs(self) -> int:
        return len(self._springs.vertices)

    @property
    def n_loose(self) -> int:
        return int(np.count_nonzero(self._law.is_loose) + np.count_nonzero(self._plane_law.is_loose))

    def n_contacts(self) -> int:
        return len(self._planes[0].vertices) + self.n_springs

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats | None:
        n = len(x_t1)
        c, start, least = self._look_ahead(contacts, self._start.x)
        h = self._clearance[c.vertices]
        surprised = int(((start > h) & (self._left(c, x_t1) < PRESSED * h)).sum())
        self.missed_bodies = surprised > max(FEW * n, MISSED * len(self._planes[0].vertices))
        goal = np.concatenate([self._before_planes(x_t1), self._start.bodies_t1])
        squeezed = c.vertices[self._left(c, goal[:n]) < least]  # between two bodies: they stay, or the step is too long
        x = self._move(goal, squeezed)
        if x is None or len(self._late(x[:n])) > 0:
            x = self._made_way(goal) if self._start.is_last else None
        if x is None:
            return None
        self._ends = x
        pinned, dt = self._start.pinned, self._start.dt
        ways = x[pinned] - self._start.x[pinned]
        stopped = further_apart(ways, dt * self._pin_velocities, CLOSEST)
        self._pin_velocities[stopped] = ways[stopped] / dt
        return np.ascontiguousarray(x[:n])

    def _look_ahead(self, contacts: PlaneContacts, x: Floats) -> tuple[PlaneContacts, Floats, Floats]:
        """Take up the planes that vertices meet on the way from `x` (n, 3) to an end.

        Also the free space before each at the start, and what of it is to be left at the end. A pin that starts in a
        body is fixed to it, or was put there; one outside stays outside.
        """
        c = contacts
        start = c.gaps + self._clearance[c.vertices] + self._start.dt * row_products(c.velocities, c.normals)
        if len(self._start.pinned) > 0:
            counts = ~self._is_pinned[c.vertices] | (start > CLOSEST)
            c, start = c.select(counts), start[counts]
        self._ahead, self._ahead_from = (c, start, start - spare_of(start)), x
        return self._ahead

    def _late(self, x: Floats) -> Ints:
        """Vertices that at `x` (n, 3) are too near to a plane, or beyond it."""
        c, start, least = self._ahead
        return c.vertices[self._left(c, x) < np.minimum(least, 0.5 * start)]

    def _before_planes(self, x: Floats) -> Floats:
        """`x` (n, 3), or where that leaves too little space before a plane that a vertex meets, so much before it."""
        c, _, least = self._ahead
        out = x.copy()
        stop_before(c.vertices, c.normals, c.gaps + self._clearance[c.vertices], least, self._ahead_from, out)
        return out

    def _left(self, c: PlaneContacts, x: Floats) -> Floats:
        """Free space (k,) [m] between vertices at `x` and the planes that they meet, at the end of the step."""
        return c.gaps + self._clearance[c.vertices] + ways_along(c.vertices, self._ahead_from, x, c.normals)

    def _move(self, goal: Floats, squeezed: Ints) -> Floats | None:
        """As far towards `goal` as is safe; None where the cloth cannot make way for a body."""
        return self._go(self._x, goal, self._unsafe(goal), np.zeros(len(goal), np.uint8), squeezed)

    def _made_way(self, goal: Floats) -> Floats | None:
        """Near `goal`, but so that bodies find room; None where there is none.

        What is in their way goes with them, and what is in its way with it, as far as they need, whatever pushes hold
        it. Springs alone cannot do that in time: a ball at 20 m/s takes up a contact distance in 0.2 ms.
        """
        x, n, wanted = self._x, len(self._start.x), goal[: len(self._start.x)]
        for _ in range(ATTEMPTS):
            share = np.ones(len(goal))
            watched, blocked = self._limit(x, goal, self._unsafe(goal), np.zeros(len(goal), np.uint8), share)
            ends: Floats = x + share[:, None] * (goal - x)
            ahead = self._start.touching(np.ascontiguousarray(ends[:n]), self._clearance)
            self._look_ahead(ahead, self._start.x)
            late = self._late(ends[:n])
            if not blocked and len(late) == 0:
                self.held_back = int(np.count_nonzero(differing(ends[:n], wanted)))
                return ends
            is_driven = np.arange(len(goal)) >= n
            is_driven[late] = True
            ends[late] = goal[late]
            ends[:n] = self._before_planes(ends[:n])
            make_way(x, *watched, n, is_driven, ends)
            goal = np.concatenate([self._before_planes(ends[:n]), ends[n:]])
        self.crushed = self._nearest_crushed(watched, late)
        return None

    def _nearest_crushed(self, watched: Watched, late: Ints) -> tuple[int, int] | None:
        """A vertex that finds no room, and the body that takes it: of `late` ones, or nearest to a body's surface."""
        c, n = self._ahead[0], len(self._start.x)
        if len(late) > 0:
            return int(late[0]), int(c.bodies[c.vertices == late[0]][0])
        gaps = np.where((watched.rows >= n).any(axis=1), watched.gaps, np.inf)
        if not np.isfinite(gaps).any():
            return None
        row = watched.rows[np.argmin(gaps)]
        return int(row[row < n][0]), int(self._body_of[row[row >= n][0] - n])

    def follow(self, goal: Floats) -> Floats:
        """From where `finish` ended as far towards `goal` (n, 3) as is safe; `held_back` does not become less."""
        n, x, held_back = len(goal), self._ends, self.held_back
        here = np.ascontiguousarray(x[:n])
        self._look_ahead(
            self._start.touching_end(np.flatnonzero(differing(here, goal)).astype(np.int32), here, goal), here
        )
        goal = np.concatenate([self._before_planes(goal), x[n:]])
        self._finder.set_paths(x, goal, 2.0 * CLOSEST)
        marks = differing(x, goal).astype(np.uint8)
        pairs = self._finder.along_paths(x, goal, marks)
        moved = self._go(x, goal, watch(pairs), 2 * marks, NO_VERTICES)
        self.held_back = max(self.held_back, held_back)
        if moved is not None:
            self._ends = moved
        return np.ascontiguousarray(self._ends[:n])

    def _go(self, x: Floats, goal: Floats, watched: Watched, marks: Bytes, squeezed: Ints) -> Floats | None:
        """From `x` as far towards `goal` as is safe, in rounds; None where the cloth cannot make way for a body.

        `watched` are pairs that are not safe if all go all the way, and all pairs of vertices with the mark 2.
        """
        n = len(self._start.x)
        self.held_back = 0
        if len(watched.rows) == 0 and len(squeezed) == 0:
            return goal
        share = np.ones(len(goal))
        share[squeezed] = 0.0
        for left in reversed(range(self.parameters.rounds)):
            if self._limit(x, goal, watched, marks, share)[1]:
                return None
            held = np.flatnonzero(share < 1.0)
            before, x = x, goal.copy()
            x[held] = before[held] + share[held, None] * (goal[held] - before[held])
            free = held[held < n]
            free = free[~self._is_pinned[free]]  # a pin that gives way is no surprise
            self.held_back = int(np.count_nonzero(share[free] < DONE))
            if self.held_back == 0 or left == 0:
                break
            marks, share = np.zeros(len(goal), np.uint8), np.ones(len(goal))
            marks[held] = 1
            watched = watch(self._finder.along_paths(x, goal, marks))
            marks[held] = 2
        return x

    def _unsafe(self, goal: Floats) -> Watched:
        """Pairs that would use up their free space, were all vertices to go all the way to `goal`.

        Vertices that end elsewhere than was likely have other pairs than those that were found.
        """
        elsewhere = further_apart(goal, self._likely, self._margin).astype(np.uint8)
        others = self._finder.near_marked(self._x, goal, 2.0 * CLOSEST, elsewhere)
        parts = []
        for part in [*self._pairs, *others]:
            flags = np.empty(len(part.rows), np.bool_)
            mark_unsafe(self._x, goal, part.rows, part.edges, part.normals, part.gaps, flags)
            parts.append(part.select(flags))
        return watch(parts)

    def _limit(
        self, x: Floats, goal: Floats, watched: Watched, marks: Bytes, share_inout: Floats
    ) -> tuple[Watched, int]:
        """Lower shares until all pairs agree; return these, and for how many the cloth cannot make way for a body.

        A vertex that is held back meets others than those `watched`, which go all the way: they are looked for as well.
        Those that have the mark 2 were.
        """
        n, blocked = len(self._start.x), 0
        lowered, looked_at = np.zeros(len(goal), np.int32), np.zeros(len(watched.rows), np.int32)
        while True:
            blocked += hold_back(x, goal, *watched, n, lowered, looked_at, share_inout)
            held = np.flatnonzero((share_inout < 1.0) & (marks == 0))
            if len(held) == 0:
                return watched, blocked
            marks = marks.copy()
            marks[held] = 1
            more = watch(self._finder.along_paths(x, goal, marks))
            marks[held] = 2
            watched = join_watched([watched, more])
            looked_at = np.concatenate([looked_at, np.zeros(len(more.rows), np.int32)])


def as_springs(c: PlaneContacts) -> tuple[Ints, Floats]:
    """Vertices and weights (k, 4) of contacts with planes, as those of springs."""
    return np.stack([c.vertices] * 4, axis=1), np.tile([1.0, 0.0, 0.0, 0.0], (len(c.vertices), 1))
