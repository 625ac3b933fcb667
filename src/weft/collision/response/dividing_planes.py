"""Contact by springs, and motion that no pair can turn into a crossing: the engine's response.

Contact. Two features of the cloth, or one of the cloth and one of a body, whose gap g is or would be below the contact
distance h push each other apart by the impulse

    j = dt k (max(h - g, T e) - T u),    k = K m / (1/120 s)^2 min(30, max(1, h / g)),

u being how far they part in this step (negative: approach), m the mass of a vertex. T is 1 where they start apart and
grows to 1 + `softness` (1/120 s) / dt where g is 0.9 h or less: what was pressed together comes apart over a while,
however short the steps, and does not bounce. (In a number of steps instead, ten stacked sheets burst.) e is how far
they are expected to part by inertia and by the part of gravity that the cloth does not bear: a pair that does so is not
held back, nor pushed, but elastic forces shall not press it together. (With all of gravity, cloth that holds itself up
a little above a table was drawn down to it.) Where two layers lie on each other, one may be held up and the other not,
so a pair that is within a tenth of h of contact counts on the worse: expected to fall together, the upper of two sheets
on a floor lost its contacts every few steps, dropped on the lower one, and never lay still. Friction is a drag against
slip (see `contact_filter`) under the load k (h - g), at the speed of slip when the step starts. What stuck and is torn
loose would let go in a dozen steps, and cloth that was pulled over a ball stretched by 40 %: where a step goes wrong,
such contacts get Coulomb's force instead and it is solved once more (`slide`). Of all pairs that are near, those bear
whose closest points lie inside the triangle, or inside both edges; the others repeat these, and bear only where pressed
hard.

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

Pairs are found once for both, in a box around the path that each vertex is likely to take and a margin: by inertia, and
by gravity as far as nothing holds it up; what lay on something in the last step will lie there in this one. (Taken to
fall, all that lies and with it all that hangs from it was elsewhere in every step, on fine meshes.) Boxes of cloth that
falls are long, so its own pairs are looked for in a frame that falls with it. Neighbours move together: most pairs
whose boxes touch have free space at the start and at the likely end, and are left out. Those of a vertex that ends
elsewhere are looked at again. Only for a vertex that leaves its box, or is held back, pairs are
looked for anew, along the paths to x* and in the world. The vertices of bodies go where they are told. Where the cloth
cannot make way for them in this step, `finish` says so, and the simulation takes a shorter step.

Why rounding does no harm: `sep` is computed from the vertices themselves, so the argument needs no exact closest
points and no exact normal, and a part of it (`RESERVE`, and at least `CLOSEST`) is never given away. That part is four
orders above the rounding of a double, and above that of float32, in which frames are recorded, at the size of a room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Bytes, Floats, Ints, Longs
from weft.collision.response import MAY_TOUCH, TOUCHES, StepStart, Surroundings
from weft.collision.response.pairs import NO_DRIFT, PairFinder, Pairs
from weft.collision.response.safe_motion import (
    CLOSEST,
    Watched,
    hold_back,
    join_watched,
    leaves_boxes,
    mark_unsafe,
    spare_of,
    watch,
)
from weft.geometry.contacts import PlaneContacts
from weft.geometry.rows import mean_row
from weft.jit import kernel, prange
from weft.linear.constraints import Constraints, build_constraints
from weft.linear.springs import Springs, build_springs
from weft.parameters import Parameters, quantity

ROUNDING = 1e-12  # [m] is more than arithmetic at the size of a room loses
DONE = 0.999  # of its path: a vertex that got this far is not tried again
DEEP = 0.1  # of the contact distance: what is pressed together by more comes apart slowly
PRESSED = 0.5  # of the contact distance: below it all pairs bear, so that none is left without a push
STIFFEST = 30.0  # times the stiffness of a contact, however small its gap: with 1000, ten stacked sheets burst
USUAL_STEP = 1.0 / 120.0  # [s] a shorter step must not push harder
NO_VERTICES = np.zeros(0, np.int32)
MARGIN = 0.5  # of the contact distance around the path of a vertex


class Slips(NamedTuple):
    """What friction does at each of m contacts."""

    normals: Floats
    """(m, 3)"""
    carried: Floats
    """(m, 3) the part of bodies in the velocity of one side against the other [m/s]"""
    drags: Floats
    """(m,) impulse against each m/s of slip [kg]"""
    limits: Floats
    """(m,) and the largest that friction allows [N s]"""


class DividingPlanesParameters(Parameters):
    """How contacts push, how friction behaves near rest, and how hard held-back vertices are tried again."""

    stiffness: float = quantity(
        "stiffness of a contact, in inertias of a vertex in a step of 1/120 s", default=500.0, unit="1", gt=0, le=1e6
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
        self.held_back = 0

    def begin(self, start: StepStart) -> None:
        self._start = start
        n = len(start.x)
        self._x = np.concatenate([start.x, start.bodies_t0])
        self._expected = np.concatenate([start.x_free, start.bodies_t1])
        self._likely = np.concatenate([start.x_likely, start.bodies_t1])
        self._box_ends = np.clip(self._expected, self._likely - self._margin, self._likely + self._margin)
        self._is_pinned = np.zeros(n, bool)
        self._is_pinned[start.pinned] = True
        self._drift = mean_row(start.x_likely) - mean_row(start.x)
        if np.abs(self._drift).max() < self._margin:
            self._drift = NO_DRIFT
        self.touches = np.zeros(n, np.uint8)
        self._finder.search(self._x, self._box_ends, 2.0 * self._margin, self._drift)
        self._pairs, beside = self._finder.near(self._x, self._likely, self._expected, 2.0 * self._margin)
        self._held = build_constraints(n)
        self._held.filters[start.pinned] = 0.0
        self._held.change[start.pinned] = start.pin_velocities - start.v[start.pinned]
        self._add_planes(self._of_free_vertices(start.contacts))
        self._springs = self._add_springs(beside)

    def _add_springs(self, beside: int) -> Springs:
        """Springs of all pairs that bear, but the first `beside`: a vertex on a body meets the body's own surface."""
        start, p = self._start, self.parameters
        n = len(start.x)
        ahead = np.concatenate([start.ahead, start.bodies_t1]) - self._x
        body = (start.bodies_t1 - start.bodies_t0) / start.dt
        velocities = np.concatenate([start.v, body])
        likely, drops = self._likely - self._x, self._expected - self._likely
        parts = []
        for pairs, first in zip(self._pairs, (beside, 0), strict=True):
            push = mark_pushing(
                pairs.rows, pairs.normals, pairs.gaps, pairs.weights, pairs.bears, likely, drops, self._clearance, n
            )
            push[:first] = False
            parts.append((pairs, np.flatnonzero(push)))
        m, count = sum(len(which) for _, which in parts), 0
        vertices, weights, blocks = np.zeros((m, 4), np.int32), np.zeros((m, 4)), np.empty((m, 3, 3))
        pushes, touches = np.empty((m, 3)), np.empty(m, np.uint8)
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
                (start.dt, p.stiffness / USUAL_STEP**2, p.softness * USUAL_STEP / start.dt, p.creep),
                n,
                count,
                vertices,
                weights,
                blocks,
                pushes,
                touches,
                slips,
            )
            count += len(which)
        springs = build_springs(vertices, weights, blocks, n)
        add_pushes(weights, springs.starts, springs.items, pushes, touches, self._held.impulses, self.touches)
        return springs

    def _add_planes(self, c: PlaneContacts) -> None:
        """The same law for vertices on bodies: they meet the tangent plane of the surface."""
        start, p = self._start, self.parameters
        self._touched = c
        slips = self._plane_slips = Slips(c.normals, -c.velocities, *np.zeros((2, len(c.vertices))))
        self._n_planes = push_off(
            c.vertices,
            c.normals,
            c.gaps,
            c.velocities,
            c.friction,
            (start.x, start.x_free, start.ahead, start.v),
            self._clearance,
            self._masses,
            (start.dt, p.stiffness / USUAL_STEP**2, p.softness * USUAL_STEP / start.dt, p.creep),
            self._held.drag,
            self._held.impulses,
            self.touches,
            slips.drags,
            slips.limits,
        )

    def slide(self, v: Floats) -> None:
        """Let go of contacts that drag at cloth of the velocity `v` (n, 3) by more than friction allows.

        Drag is as strong as friction at the speed that a contact slips with when the step starts. One that stuck drags
        far harder once it is torn loose: its friction now becomes a force, that of Coulomb, against where it goes.
        """
        pushes = let_slide(
            self._springs.vertices, self._springs.weights, self._slips, self._start.v, v, self._springs.blocks
        )
        impulses, none = self._held.impulses, np.zeros(len(pushes), np.uint8)
        add_pushes(
            self._springs.weights, self._springs.starts, self._springs.items, pushes, none, impulses, self.touches
        )
        vertices = self._touched.vertices
        ends = np.stack([vertices] * 4, axis=1)
        weights = np.tile([1.0, 0.0, 0.0, 0.0], (len(vertices), 1))
        changes = np.zeros((len(vertices), 3, 3))
        pushes = let_slide(ends, weights, self._plane_slips, self._start.v, v, changes)
        np.add.at(impulses, vertices, pushes)
        np.add.at(self._held.drag, vertices, changes)

    def _of_free_vertices(self, contacts: PlaneContacts) -> PlaneContacts:
        if len(self._start.pinned) == 0:
            return contacts
        return contacts.select(~self._is_pinned[contacts.vertices])

    def constraints(self) -> Constraints:
        return self._held._replace(springs=self._springs)

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        return False

    def n_contacts(self) -> int:
        return self._n_planes + len(self._springs.vertices)

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats | None:
        n = len(x_t1)
        c = self._of_free_vertices(contacts)
        start = c.gaps + self._clearance[c.vertices] + self._start.dt * (c.velocities * c.normals).sum(axis=1)
        least = start - spare_of(start)  # of the free space before each plane, to be left at the end
        self._planes = c, least
        goal = np.concatenate([self._before_planes(x_t1), self._start.bodies_t1])
        squeezed = c.vertices[self._left(c, goal[:n]) < least]  # between two bodies: they stay, or the step is too long
        x = self._move(goal, squeezed)
        if x is None:
            return None
        self._ends = x
        moved = np.ascontiguousarray(x[:n])
        if bool((self._left(c, moved) < np.minimum(least, 0.5 * start)).any()):
            return None
        return moved

    def _before_planes(self, x: Floats) -> Floats:
        """`x` (n, 3), or where that leaves too little space before a plane that a vertex meets, so much before it."""
        c, least = self._planes
        out = x.copy()
        short = least - self._left(c, x)
        out[c.vertices] += np.where(short > 0.0, short + ROUNDING, 0.0)[:, None] * c.normals
        return out

    def _left(self, c: PlaneContacts, x: Floats) -> Floats:
        """Free space (k,) [m] between vertices at `x` and the planes that they meet, at the end of the step."""
        along: Floats = ((x - self._start.x)[c.vertices] * c.normals).sum(axis=1)
        return c.gaps + self._clearance[c.vertices] + along

    def _move(self, goal: Floats, squeezed: Ints) -> Floats | None:
        """As far towards `goal` as is safe; None where the cloth cannot make way for a body.

        Vertices that end elsewhere than expected have other pairs; those that leave their boxes, others than found.
        """
        elsewhere, left = np.zeros((2, len(goal)), np.uint8)
        leaves_boxes(
            self._x,
            self._likely,
            self._box_ends,
            goal,
            self._drift,
            self._margin,
            len(self._start.x),
            elsewhere,
            left,
        )
        self._finder.set_paths(self._x, goal, 2.0 * CLOSEST)
        pairs = list(self._pairs)
        if elsewhere.any():
            pairs += self._finder.near_marked(self._x, goal, elsewhere)
        if left.any():
            pairs += self._finder.along_paths(self._x, goal, left, may_stop=False)
        watched = self._unsafe(self._x, goal, pairs)
        return self._go(self._x, goal, watched, np.zeros(len(goal), np.uint8), squeezed)

    def follow(self, goal: Floats) -> Floats:
        """From where `finish` ended as far towards `goal` (n, 3) as is safe; `held_back` does not become less."""
        n, x, held_back = len(goal), self._ends, self.held_back
        goal = np.concatenate([self._before_planes(goal), x[n:]])
        self._finder.set_paths(x, goal, 2.0 * CLOSEST)
        marks = (x != goal).any(axis=1).astype(np.uint8)
        pairs = self._finder.along_paths(x, goal, marks, may_stop=True)
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
            if not self._limit(x, goal, watched, marks, share):
                return None
            held = share < 1.0
            before, x = x, goal.copy()
            x[held] = before[held] + share[held, None] * (goal[held] - before[held])
            self.held_back = int((share[:n] < DONE).sum())
            if self.held_back == 0 or left == 0:
                break
            marks, share = held.astype(np.uint8), np.ones(len(goal))
            watched = watch(self._finder.along_paths(x, goal, marks, may_stop=True))
            marks[held] = 2
        return x

    def _unsafe(self, x: Floats, goal: Floats, pairs: Sequence[Pairs]) -> Watched:
        """Those of `pairs` that would use up their free space, were all vertices to go all the way."""
        parts = []
        for part in pairs:
            flags = np.empty(len(part.rows), np.bool_)
            mark_unsafe(x, goal, part.rows, part.edges, part.normals, part.gaps, flags)
            parts.append(part.select(flags))
        return watch(parts)

    def _limit(self, x: Floats, goal: Floats, watched: Watched, marks: Bytes, share_inout: Floats) -> bool:
        """Lower shares until all pairs agree; False where the cloth cannot make way for a body.

        A vertex that is held back meets others than those `watched`, which go all the way: they are looked for as well,
        but for those that have the mark 2.
        """
        n, settled, blocked = len(self._start.x), np.zeros(len(watched.rows), np.bool_), 0
        while True:
            blocked += hold_back(x, goal, *watched, n, settled, share_inout)
            held = (share_inout < 1.0) & (marks == 0)
            if not held.any():
                return blocked == 0
            marks = marks.copy()
            marks[held] = 1
            more = watch(self._finder.along_paths(x, goal, marks, may_stop=True))
            marks[held] = 2
            watched = join_watched([watched, more])
            settled = np.concatenate([settled, np.zeros(len(more.rows), np.bool_)])


@kernel
def push_off(
    vertices: Ints,
    normals: Floats,
    gaps: Floats,
    velocities: Floats,
    friction: Floats,
    motion: tuple[Floats, Floats, Floats, Floats],
    clearance: Floats,
    masses: Floats,
    law: tuple[float, float, float, float],
    drag_inout: Floats,
    impulses_inout: Floats,
    touches_inout: Bytes,
    drags_out: Floats,
    limits_out: Floats,
) -> int:
    """Add drag and impulse of every vertex that is, or will be, too near the plane that it meets; return how many.

    `motion` are where each vertex starts, is thought to end, and would end if its velocity stayed, and that velocity.
    `drags_out` and `limits_out` are as in `Slips`, 0 at first.
    """
    dt, stiffness, softness, creep = law
    x, x_free, ahead, v = motion
    slip = np.empty(3)
    count = 0
    for q in range(len(vertices)):
        i = vertices[q]
        depth, expected, going = -gaps[q], 0.0, 0.0
        across = 0.0
        for c in range(3):
            n, body = normals[q, c], dt * velocities[q, c]
            depth -= body * n  # h - g where they start
            expected += (x_free[i, c] - x[i, c] - body) * n
            going += (ahead[i, c] - x[i, c] - body) * n
            slip[c] = v[i, c] - velocities[q, c]
            across += slip[c] * n
        h = clearance[i]
        if depth <= expected:
            continue
        touches_inout[i] = max(touches_inout[i], TOUCHES if depth > 0.0 else MAY_TOUCH)
        pace = 1.0 + softness * min(1.0, max(0.0, depth) / (DEEP * h))
        k = stiffness * masses[i] * min(STIFFEST, max(1.0, h / max(h - depth, h / STIFFEST)))
        speed = 0.0
        for c in range(3):
            slip[c] -= across * normals[q, c]
            speed += slip[c] * slip[c]
        limits_out[q] = friction[q] * dt * k * max(depth, 0.0)
        drag = drags_out[q] = limits_out[q] / max(math.sqrt(speed), creep)
        push = dt * k * (max(depth, pace * expected) - pace * going)
        for c in range(3):
            impulses_inout[i, c] += push * normals[q, c] - drag * slip[c]
            for d in range(3):
                block = (dt * dt * k * pace - drag) * normals[q, c] * normals[q, d]
                drag_inout[i, c, d] += block + drag if c == d else block
        count += 1
    return count


@kernel(inline=True)
def _reach(rows: Ints, q: int, n: int, clearance: Floats) -> float:
    """The contact distance of a pair: the largest of its vertices."""
    h = 0.0
    for place in range(4):
        if rows[q, place] < n:
            h = max(h, clearance[rows[q, place]])
    return h


@kernel(inline=True)
def _along(rows: Ints, weights: Floats, normals: Floats, q: int, ways: Floats) -> tuple[float, float]:
    """How far the sides of a pair go along its normal: the first, and the second with the opposite sign."""
    first = second = 0.0
    for place in range(4):
        i, w = rows[q, place], weights[q, place]
        way = w * (ways[i, 0] * normals[q, 0] + ways[i, 1] * normals[q, 1] + ways[i, 2] * normals[q, 2])
        if w < 0.0:
            second += way
        else:
            first += way
    return first, second


@kernel(inline=True)
def _parting(rows: Ints, weights: Floats, normals: Floats, q: int, likely: Floats, drops: Floats, h: float) -> float:
    """How far a pair is expected to part.

    Of two sides that lie on something either may be held up by something else: where they nearly touch, they are
    expected to part by the least that leaves.
    """
    go = _along(rows, weights, normals, q, likely)
    fall = _along(rows, weights, normals, q, drops)
    least = max(min(0.0, fall[0]) + min(0.0, fall[1]), -DEEP * h)
    return go[0] + go[1] + min(fall[0] + fall[1], least)


@kernel(parallel=True)
def mark_pushing(
    rows: Ints,
    normals: Floats,
    gaps: Floats,
    weights: Floats,
    bears: Bools,
    likely: Floats,
    drops: Floats,
    clearance: Floats,
    n: int,
) -> Bools:
    """(k,) the pairs that bear and are, or will be, too near.

    `likely` and `drops` (n + b, 3) are how far each vertex is thought to move, and how much further it would fall if
    nothing held it up.
    """
    out = np.empty(len(rows), np.bool_)
    for q in prange(len(rows)):
        out[q] = bears[q]
        if out[q]:
            h = _reach(rows, q, n, clearance)
            out[q] = h - gaps[q] > _parting(rows, weights, normals, q, likely, drops, h)
    return out


@kernel(parallel=True)
def push_apart(
    which: Longs,
    rows: Ints,
    normals: Floats,
    gaps: Floats,
    weights: Floats,
    likely: Floats,
    drops: Floats,
    ahead: Floats,
    velocities: Floats,
    clearance: Floats,
    friction: Floats,
    body_friction: Floats,
    masses: Floats,
    law: tuple[float, float, float, float],
    n: int,
    first: int,
    vertices_out: Ints,
    weights_out: Floats,
    blocks_out: Floats,
    pushes_out: Floats,
    touches_out: Bytes,
    slips_out: Slips,
) -> None:
    """Write a spring for every pair of `which`, from place `first` on, the impulse with which it pushes, and whether it
    touches. `ahead` (n + b, 3) is how far each vertex would move if its velocity stayed."""
    dt, stiffness, softness, creep = law
    normals_out, carried_out, drags_out, limits_out = slips_out
    for s in prange(len(which)):
        q, at = which[s], first + s
        h, mass = _reach(rows, q, n, clearance), 0.0
        v0 = v1 = v2 = 0.0
        for c in range(3):
            normals_out[at, c], carried_out[at, c] = normals[q, c], 0.0
        for place in range(4):
            i, w = rows[q, place], weights[q, place]
            v0, v1, v2 = v0 + w * velocities[i, 0], v1 + w * velocities[i, 1], v2 + w * velocities[i, 2]
            if i >= n:
                for c in range(3):
                    carried_out[at, c] += w * velocities[i, c]
            else:
                mass = max(mass, masses[i])
                vertices_out[at, place], weights_out[at, place] = i, w
        n0, n1, n2 = normals[q, 0], normals[q, 1], normals[q, 2]
        depth = h - gaps[q]
        parting = _parting(rows, weights, normals, q, likely, drops, h)
        going = _along(rows, weights, normals, q, ahead)
        pace = 1.0 + softness * min(1.0, max(0.0, depth) / (DEEP * h))
        # two edges of a cloth have the friction of the cloth; on a body, the body's where it has its own
        mu = friction[rows[q, 0]] if rows[q, 0] < n else body_friction[rows[q, 0] - n]
        if rows[q, 3] >= n:
            mu = body_friction[rows[q, 3] - n]
        if mu < 0.0:
            mu = friction[rows[q, 0] if rows[q, 0] < n else rows[q, 3]]
        k = stiffness * mass * min(STIFFEST, max(1.0, h / gaps[q]))
        across = v0 * n0 + v1 * n1 + v2 * n2
        speed = math.sqrt(max(0.0, v0 * v0 + v1 * v1 + v2 * v2 - across * across))
        limits_out[at] = mu * dt * k * max(depth, 0.0)
        drag = drags_out[at] = limits_out[at] / max(speed, creep)
        push = dt * k * (max(depth, pace * parting) - pace * (going[0] + going[1])) + drag * across
        pushes_out[at, 0] = push * n0 - drag * v0
        pushes_out[at, 1] = push * n1 - drag * v1
        pushes_out[at, 2] = push * n2 - drag * v2
        touches_out[at] = TOUCHES if depth > 0.0 else MAY_TOUCH
        for c in range(3):
            for d in range(3):
                block = (dt * dt * k * pace - drag) * normals[q, c] * normals[q, d]
                blocks_out[at, c, d] = block + drag if c == d else block


@kernel(inline=True)
def _slip(
    vertices: Ints, weights: Floats, c: int, normals: Floats, carried: Floats, v: Floats
) -> tuple[float, float, float]:
    """The velocity with which the sides of contact c slip."""
    v0, v1, v2 = carried[c, 0], carried[c, 1], carried[c, 2]
    for place in range(4):
        i, w = vertices[c, place], weights[c, place]
        v0, v1, v2 = v0 + w * v[i, 0], v1 + w * v[i, 1], v2 + w * v[i, 2]
    across = v0 * normals[c, 0] + v1 * normals[c, 1] + v2 * normals[c, 2]
    return v0 - across * normals[c, 0], v1 - across * normals[c, 1], v2 - across * normals[c, 2]


@kernel(parallel=True)
def let_slide(
    vertices: Ints, weights: Floats, slips: Slips, v_t0: Floats, v_t1: Floats, blocks_inout: Floats
) -> Floats:
    """Take the drag of contacts that drag by more than their limits out of their blocks (m, 3, 3).

    Returns the impulses (m, 3) that take its place.
    """
    normals, carried, drags, limits = slips
    out = np.zeros((len(vertices), 3))
    for c in prange(len(vertices)):
        u0, u1, u2 = _slip(vertices, weights, c, normals, carried, v_t1)
        speed = math.sqrt(u0 * u0 + u1 * u1 + u2 * u2)
        drag = drags[c]
        if drag * speed <= limits[c] or speed == 0.0:
            continue
        drags[c], force = 0.0, limits[c] / speed
        s0, s1, s2 = _slip(vertices, weights, c, normals, carried, v_t0)
        out[c, 0], out[c, 1], out[c, 2] = drag * s0 - force * u0, drag * s1 - force * u1, drag * s2 - force * u2
        for r in range(3):
            for d in range(3):
                blocks_inout[c, r, d] += drag * normals[c, r] * normals[c, d]
            blocks_inout[c, r, r] -= drag
    return out


@kernel(parallel=True)
def add_pushes(
    weights: Floats,
    starts: Ints,
    items: Ints,
    pushes: Floats,
    touches: Bytes,
    impulses_inout: Floats,
    touches_inout: Bytes,
) -> None:
    """Add the `pushes` (m, 3) of springs to the impulses of their vertices, and mark what these touch."""
    for i in prange(len(impulses_inout)):
        for k in range(starts[i], starts[i + 1]):
            spring, w = items[k] >> 2, weights[items[k] >> 2, items[k] & 3]
            touches_inout[i] = max(touches_inout[i], touches[spring])
            for c in range(3):
                impulses_inout[i, c] += w * pushes[spring, c]
