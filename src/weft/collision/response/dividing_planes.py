"""Contact by springs, and motion that no pair can turn into a crossing: the engine's response.

Contact. Two features of the cloth, or one of the cloth and one of a body, whose gap g is or would be below the contact
distance h push each other apart by the impulse

    j = dt k (h - g - T u),    k = K m / dt^2 min(10, max(1, h / g)),

u being how far they part in this step (negative: approach), m the mass of a vertex. T is 1 where they start apart and
grows to 1 + `softness` where g is 0.9 h or less: what was pressed together comes apart over a few steps and does not
bounce. Friction
is a drag against slip (see `contact_filter`) under the load k (h - g). Of all pairs that are near, those bear whose
closest points lie inside the triangle, or inside both edges; the others repeat these, and bear only where pressed hard.

Safety. The solve gives end positions x*. The move from x to x* is made safe by dividing planes, the collision plane of
Liu, Ko and Chang (1998) freed from the axes. For each candidate pair take the direction n between its closest points
at x. Along n all vertices of the one side lie above all vertices of the other; let `sep` be that free space. Motion is
linear, so a pair that still has free space along n at the end had it all the way. Where it has not, the space is
shared between the sides in proportion to how far each would intrude, and a vertex may go only so far along its path
that it stays in its own share. A vertex goes the least share of its path over its pairs. Pairs that counted on a vertex
that was then held back are looked at again, with where it really ends, until all agree. What was held back is tried
again from the new positions, which have new planes.

Pairs are found once for both: a box around each vertex's path and a margin. A vertex may not leave its box, so that
pairs whose boxes are apart need no test. The vertices of bodies go where they are told. Where the cloth cannot make
way for them in this step, `finish` says so, and the simulation takes a shorter step.

Why rounding does no harm: `sep` is computed from the vertices themselves, so the argument needs no exact closest
points and no exact normal, and a part of it (`RESERVE`, and at least `CLOSEST`) is never given away. That part is four
orders above the rounding of a double, and above that of float32, in which frames are recorded, at the size of a room.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints
from weft.collision.narrow.proximity import (
    EDGE_EDGE,
    NODE_TRIANGLE,
    closest_edge_edge,
    closest_vertex_triangle,
    unit_normal,
)
from weft.collision.response import StepStart, Surroundings
from weft.collision.response.contact_filter import tangential
from weft.geometry.contacts import PlaneContacts
from weft.jit import kernel, prange
from weft.linear.constraints import Constraints, build_constraints
from weft.linear.springs import Springs, build_springs
from weft.parameters import Parameters, quantity

RESERVE = 0.1  # of the free space between two sides is never given away
CLOSEST = 4e-6  # [m] nor is this much of it
DONE = 0.999  # of its path: a vertex that got this far is not tried again
DEEP = 0.1  # of the contact distance: what is pressed together by more comes apart slowly
PRESSED = 0.25  # of the contact distance: below it all pairs bear, so that none is left without a push
STIFFEST = 10.0  # times the stiffness of a contact, however small its gap
MARGIN = 0.75  # of the contact distance around the path of a vertex


class DividingPlanesParameters(Parameters):
    """How contacts push, how friction behaves near rest, and how hard held-back vertices are tried again."""

    stiffness: float = quantity(
        "stiffness of a contact, in inertias of a vertex in one step", default=70.0, unit="1", gt=0, le=1e6
    )
    softness: float = quantity("steps in which what was pressed together comes apart", default=5.0, ge=0, le=1000)
    creep: float = quantity("slip speed below which friction is viscous", default=5e-4, unit="m/s", gt=0, le=1)
    rounds: int = quantity("safe moves in one step, at most", default=3, ge=1, le=100)


class Pairs(NamedTuple):
    """Candidates: a vertex and a triangle, or two edges. Vertices of bodies follow those of the cloth."""

    rows: Ints
    """(k, 4) their vertices"""
    edges: bool
    normals: Floats
    """(k, 3) from the closest point of the second side to that of the first"""
    gaps: Floats
    """(k,) distance of the closest points"""
    weights: Floats
    """(k, 4) signed weights of the closest points"""
    bears: Bools
    """(k,) it pushes if it is too near: its closest points lie inside both features, or it is pressed hard"""


class DividingPlanes:
    """Contact springs with friction, and end positions that cannot cross (after Liu, Ko and Chang 1998)."""

    Parameters = DividingPlanesParameters
    uses_springs = True
    meets_bodies = True

    def __init__(self, surroundings: Surroundings, parameters: DividingPlanesParameters | None = None) -> None:
        self.parameters = parameters or DividingPlanesParameters()
        self._clearance, self._friction = surroundings.clearance, surroundings.friction
        self._body_friction, self._masses = surroundings.body_friction, surroundings.masses
        self._finder = PairFinder(surroundings)
        self._margin = MARGIN * float(surroundings.clearance.max())
        self.held_back = 0

    def begin(self, start: StepStart) -> None:
        self._start = start
        n = len(start.x)
        self._x = np.concatenate([start.x, start.bodies_t0])
        self._expected = np.concatenate([start.x_free, start.bodies_t1])
        self._is_pinned = np.zeros(n, bool)
        self._is_pinned[start.pinned] = True
        self._pairs, beside = self._finder.find(self._x, self._expected, self._margin)
        self._held = build_constraints(n)
        self._held.filters[start.pinned] = 0.0
        self._held.change[start.pinned] = start.pin_velocities - start.v[start.pinned]
        self._add_planes(start.contacts.select(~self._is_pinned[start.contacts.vertices]))
        self._springs = self._add_springs(beside)

    def _add_springs(self, beside: int) -> Springs:
        """Springs of all pairs that bear, but the first `beside`: a vertex on a body meets the body's own surface."""
        start, p = self._start, self.parameters
        n = len(start.x)
        ahead = np.concatenate([start.ahead, start.bodies_t1]) - self._x
        body = (start.bodies_t1 - start.bodies_t0) / start.dt
        velocities = np.stack([np.concatenate([start.v, body]), np.concatenate([start.u, body])])
        size = sum(int(pairs.bears.sum()) for pairs in self._pairs)
        vertices, weights = np.zeros((size, 4), np.int32), np.zeros((size, 4))
        blocks = np.empty((size, 3, 3))
        count = 0
        for pairs, first in zip(self._pairs, (beside, 0), strict=True):
            count = push_apart(
                pairs.rows[first:],
                pairs.normals[first:],
                pairs.gaps[first:],
                pairs.weights[first:],
                pairs.bears[first:],
                self._expected - self._x,
                ahead,
                velocities,
                self._clearance,
                self._friction,
                self._body_friction,
                self._masses,
                (start.dt, p.stiffness, p.softness, p.creep),
                n,
                count,
                vertices,
                weights,
                blocks,
                self._held.impulses,
            )
        return build_springs(vertices[:count], weights[:count], blocks[:count], n)

    def _add_planes(self, c: PlaneContacts) -> None:
        """The same law for vertices on bodies: they meet the tangent plane of the surface."""
        start, p = self._start, self.parameters
        i, dt = c.vertices, start.dt
        body = dt * (c.velocities * c.normals).sum(axis=1)
        depth = -c.gaps - body  # h - g where they start
        expected = ((start.x_free - start.x)[i] * c.normals).sum(axis=1) - body
        ahead = ((start.ahead - start.x)[i] * c.normals).sum(axis=1) - body
        h = self._clearance[i]
        pace = 1.0 + p.softness * np.clip(depth / (DEEP * h), 0.0, 1.0)
        active = depth > pace * expected
        gap = np.clip(h - depth, h / STIFFEST, h)
        k = p.stiffness * self._masses[i] / dt**2 * (h / gap) * active
        slip, slip_start = (tangential(w[i] - c.velocities, c.normals) for w in (start.u, start.v))
        load = dt * k * np.maximum(depth, 0.0)
        drag = c.friction * load / np.maximum(np.linalg.norm(slip, axis=1), p.creep)
        nn = c.normals[:, :, None] * c.normals[:, None, :]
        push = (dt * k * (depth - pace * ahead))[:, None] * c.normals - drag[:, None] * slip_start
        np.add.at(self._held.drag, i, (dt**2 * k * pace)[:, None, None] * nn + drag[:, None, None] * (np.eye(3) - nn))
        np.add.at(self._held.impulses, i, push)
        self._n_planes = int(active.sum())

    def constraints(self) -> Constraints:
        return self._held._replace(springs=self._springs)

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        return False

    def n_contacts(self) -> int:
        return self._n_planes + len(self._springs.vertices)

    def finish(self, x_t1: Floats, contacts: PlaneContacts) -> Floats | None:
        n = len(x_t1)
        c = contacts.select(~self._is_pinned[contacts.vertices])
        start = c.gaps + self._clearance[c.vertices] + self._start.dt * (c.velocities * c.normals).sum(axis=1)
        least = start - spare_of(start)  # of the free space before each plane, to be left at the end
        goal = x_t1.copy()
        short = least - self._left(c, goal)
        goal[c.vertices] += np.maximum(short, 0.0)[:, None] * c.normals
        goal = np.concatenate([goal, self._start.bodies_t1])
        share = np.ones(len(goal))
        bound_boxes(self._x, self._expected, goal, self._margin, n, share)
        moves = self._left(c, goal[:n]) < least
        k = c.vertices[moves]
        share[k] = 0.0  # between two bodies: it stays, or the step is too long
        x, pairs = self._x, self._pairs
        for attempt in range(self.parameters.rounds):
            if not self._limit(x, goal, pairs, share):
                return None
            x = np.where(share[:, None] == 1.0, goal, x + share[:, None] * (goal - x))
            self.held_back = int((share[:n] < DONE).sum())
            if self.held_back == 0 or attempt + 1 == self.parameters.rounds:
                break
            pairs, _ = self._finder.find(x, goal, 2.0 * CLOSEST)
            share = np.ones(len(goal))
            share[k] = 0.0
        moved = np.ascontiguousarray(x[:n])
        if bool((self._left(c, moved) < np.minimum(least, 0.5 * start)).any()):
            return None
        return moved

    def _left(self, c: PlaneContacts, x: Floats) -> Floats:
        """Free space (k,) [m] between vertices at `x` and the planes that they meet, at the end of the step."""
        along: Floats = ((x - self._start.x)[c.vertices] * c.normals).sum(axis=1)
        return c.gaps + self._clearance[c.vertices] + along

    def _limit(self, x: Floats, goal: Floats, pairs: tuple[Pairs, Pairs], share_inout: Floats) -> bool:
        """Lower shares until all pairs agree; False where the cloth cannot make way for a body."""
        unsafe = []
        for part in pairs:
            flags = np.empty(len(part.rows), np.bool_)
            mark_unsafe(x, goal, part.rows, part.edges, part.normals, part.gaps, flags)
            unsafe.append(flags)
        n = len(self._start.x)
        is_new, blocked = True, 0
        settled = [np.zeros(len(part.rows), np.bool_) for part in pairs]
        while is_new:
            is_new = False
            for part, flags, done in zip(pairs, unsafe, settled, strict=True):
                changed, stuck = hold_back(
                    x, goal, part.rows, part.edges, part.normals, part.gaps, n, flags, done, share_inout
                )
                is_new |= changed
                blocked += stuck
        return blocked == 0


class PairFinder:
    """Candidates of the cloth with itself and with bodies, and their closest points."""

    def __init__(self, surroundings: Surroundings) -> None:
        cloth, bodies = surroundings.cloth, surroundings.bodies
        self._n = cloth.n_vertices
        self.pressed = PRESSED * float(surroundings.clearance.max())
        self._cloth_phase = surroundings.broad(cloth)
        self._body_phase = None if bodies is None else surroundings.broad(bodies)
        self._triangles, self._edges = cloth.triangles, cloth.topology.edges
        if bodies is not None:
            self._body_triangles = bodies.triangles + np.int32(self._n)
            self._body_edges = bodies.topology.edges + np.int32(self._n)

    def find(self, x_t0: Floats, x_t1: Floats, margin: float) -> tuple[tuple[Pairs, Pairs], int]:
        """Vertex-triangle and edge-edge pairs; the first of the former, so many, are a cloth vertex on a body."""
        n = self._n
        self._cloth_phase.refit(x_t0[:n], x_t1[:n], margin)
        own = self._cloth_phase.candidates()
        vertex_triangle = [_rows(own.vertex_triangle, None, self._triangles)]
        edge_edge = [_rows(own.edge_edge, self._edges, self._edges)]
        beside = 0
        if self._body_phase is not None:
            self._body_phase.refit(x_t0[n:], x_t1[n:], margin)
            cross = self._cloth_phase.candidates_with(self._body_phase)
            on_body = _rows(cross.vertex_triangle, None, self._body_triangles)
            beside = len(on_body)
            through = cross.triangle_vertex[:, ::-1] + np.array([n, 0], np.int32)
            vertex_triangle = [on_body, *vertex_triangle, _rows(through, None, self._triangles)]
            edge_edge.append(_rows(cross.edge_edge, self._edges, self._body_edges))
        pairs = (
            measured(x_t0, np.concatenate(vertex_triangle), False, self.pressed),
            measured(x_t0, np.concatenate(edge_edge), True, self.pressed),
        )
        return pairs, beside


def _rows(pairs: Ints, first: Ints | None, second: Ints) -> Ints:
    """(k, 4): the vertices of both sides of each pair; `first` None where the first side is a vertex itself."""
    rows = np.empty((len(pairs), 4), np.int32)
    if first is None:
        fill_vertex_triangle(pairs, second, rows)
    else:
        fill_edge_edge(pairs, first, second, rows)
    return rows


@kernel
def fill_vertex_triangle(pairs: Ints, triangles: Ints, rows_out: Ints) -> None:
    for q in range(len(pairs)):
        rows_out[q, 0] = pairs[q, 0]
        for c in range(3):
            rows_out[q, 1 + c] = triangles[pairs[q, 1], c]


@kernel
def fill_edge_edge(pairs: Ints, first: Ints, second: Ints, rows_out: Ints) -> None:
    for q in range(len(pairs)):
        for c in range(2):
            rows_out[q, c] = first[pairs[q, 0], c]
            rows_out[q, 2 + c] = second[pairs[q, 1], c]


def measured(x: Floats, rows: Ints, edges: bool, pressed: float) -> Pairs:
    """The pairs of `rows` (k, 4) with their closest points at `x`; all that are nearer than `pressed` [m] bear."""
    k = len(rows)
    pairs = Pairs(rows, edges, np.empty((k, 3)), np.empty(k), np.empty((k, 4)), np.empty(k, np.bool_))
    update_closest(x, rows, edges, pressed, pairs.normals, pairs.gaps, pairs.weights, pairs.bears)
    return pairs


@kernel(parallel=True)
def update_closest(
    x: Floats,
    rows: Ints,
    edges: bool,
    pressed: float,
    normals_out: Floats,
    gaps_out: Floats,
    weights_out: Floats,
    bears_out: Bools,
) -> None:
    """Overwrite what `Pairs` says of each row of `rows`."""
    for q in prange(len(rows)):
        i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        if edges:
            w0, w1, w2, w3, rx, ry, rz, kind = closest_edge_edge(x, i, j, k, m)
        else:
            w0, w1, w2, w3, rx, ry, rz, kind = closest_vertex_triangle(x, i, j, k, m)
        nx, ny, nz, distance = unit_normal(rx, ry, rz, 0.0, 0.0, 0.0)
        normals_out[q, 0], normals_out[q, 1], normals_out[q, 2] = nx, ny, nz
        weights_out[q, 0], weights_out[q, 1], weights_out[q, 2], weights_out[q, 3] = w0, w1, w2, w3
        gaps_out[q] = distance
        inside = kind == (EDGE_EDGE if edges else NODE_TRIANGLE)
        bears_out[q] = distance > 0.0 and (inside or distance < pressed)


@kernel
def push_apart(
    rows: Ints,
    normals: Floats,
    gaps: Floats,
    weights: Floats,
    bears: Bools,
    expected: Floats,
    ahead: Floats,
    velocities: Floats,
    clearance: Floats,
    friction: Floats,
    body_friction: Floats,
    masses: Floats,
    law: tuple[float, float, float, float],
    n: int,
    count: int,
    vertices_out: Ints,
    weights_out: Floats,
    blocks_out: Floats,
    impulses_inout: Floats,
) -> int:
    """Write a spring for every pair that bears and is, or will be, too near, from place `count` on; return the next.

    `expected` and `ahead` (n + b, 3) are how far each vertex is thought to move, and would move if its velocity stayed;
    `velocities` (2, n + b, 3) are those at the start of the step and, as far as they are known, in it.
    """
    dt, stiffness, softness, creep = law
    v, u, e, a = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for q in range(len(rows)):
        if not bears[q]:
            continue
        h = mass = 0.0
        for place in range(4):
            i = rows[q, place]
            if i < n:
                h, mass = max(h, clearance[i]), max(mass, masses[i])
        for c in range(3):
            v[c] = u[c] = e[c] = a[c] = 0.0
            for place in range(4):
                i, w = rows[q, place], weights[q, place]
                v[c] += w * velocities[0, i, c]
                u[c] += w * velocities[1, i, c]
                e[c] += w * expected[i, c]
                a[c] += w * ahead[i, c]
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        depth = h - gaps[q]
        pace = 1.0 + softness * min(1.0, max(0.0, depth) / (DEEP * h))
        if depth <= pace * (e[0] * nx + e[1] * ny + e[2] * nz):
            continue
        # two edges of a cloth have the friction of the cloth; on a body, the body's where it has its own
        mu = friction[rows[q, 0]] if rows[q, 0] < n else body_friction[rows[q, 0] - n]
        if rows[q, 3] >= n:
            mu = body_friction[rows[q, 3] - n]
        if mu < 0.0:
            mu = friction[rows[q, 0] if rows[q, 0] < n else rows[q, 3]]
        k = stiffness * mass / (dt * dt) * min(STIFFEST, max(1.0, h / gaps[q]))
        across = u[0] * nx + u[1] * ny + u[2] * nz
        speed = math.sqrt(max(0.0, u[0] * u[0] + u[1] * u[1] + u[2] * u[2] - across * across))
        drag = mu * dt * k * max(depth, 0.0) / max(speed, creep)
        across = v[0] * nx + v[1] * ny + v[2] * nz
        push = dt * k * (depth - pace * (a[0] * nx + a[1] * ny + a[2] * nz)) + drag * across
        for c in range(3):
            u[c] = push * normals[q, c] - drag * v[c]
            for d in range(3):
                block = (dt * dt * k * pace - drag) * normals[q, c] * normals[q, d]
                blocks_out[count, c, d] = block + drag if c == d else block
        for place in range(4):
            i, w = rows[q, place], weights[q, place]
            if i < n:
                vertices_out[count, place] = i
                weights_out[count, place] = w
                for c in range(3):
                    impulses_inout[i, c] += w * u[c]
        count += 1
    return count


@kernel
def spare_space(sep: float) -> float:
    """How much of the free space between two sides may be used up."""
    return max(0.0, min((1.0 - RESERVE) * sep, sep - CLOSEST))


def spare_of(sep: Floats) -> Floats:
    spare: Floats = np.maximum(0.0, np.minimum((1.0 - RESERVE) * sep, sep - CLOSEST))
    return spare


@kernel
def _along(x: Floats, i: int, nx: float, ny: float, nz: float) -> float:
    return float(x[i, 0] * nx + x[i, 1] * ny + x[i, 2] * nz)


@kernel
def _bounds(a: float, b: float, c: float, d: float, edges: bool) -> tuple[float, float]:
    """The lowest of the first side and the highest of the second, from the four places along the normal."""
    if edges:
        return min(a, b), max(c, d)
    return a, max(b, max(c, d))


@kernel(parallel=True)
def mark_unsafe(
    x: Floats, goal: Floats, rows: Ints, edges: bool, normals: Floats, gaps: Floats, unsafe_out: Bools
) -> None:
    """Overwrite whether each pair would have used up its free space, were all its vertices to go all the way."""
    for q in prange(len(rows)):
        i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        low, high = _bounds(
            _along(x, i, nx, ny, nz),
            _along(x, j, nx, ny, nz),
            _along(x, k, nx, ny, nz),
            _along(x, m, nx, ny, nz),
            edges,
        )
        low_end, high_end = _bounds(
            _along(goal, i, nx, ny, nz),
            _along(goal, j, nx, ny, nz),
            _along(goal, k, nx, ny, nz),
            _along(goal, m, nx, ny, nz),
            edges,
        )
        sep = low - high
        unsafe_out[q] = gaps[q] <= 0.0 or low_end - high_end < sep - spare_space(sep)


@kernel
def hold_back(
    x: Floats,
    goal: Floats,
    rows: Ints,
    edges: bool,
    normals: Floats,
    gaps: Floats,
    n: int,
    unsafe: Bools,
    settled_inout: Bools,
    share_inout: Floats,
) -> tuple[bool, int]:
    """Lower the shares of the vertices of unsafe pairs; return whether any changed, and how many no share can save.

    A pair is `settled` once each of its vertices stays on its own side of a plane that does not move: whatever else
    holds them back, it is safe. A pair in which a body moves into cloth that stays has no such plane.
    """
    at, go = np.empty(4), np.empty(4)
    changed, stuck = False, 0
    for q in range(len(rows)):
        if settled_inout[q]:
            continue
        i, j, k, m = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        if not unsafe[q] and share_inout[i] == share_inout[j] == share_inout[k] == share_inout[m] == 1.0:
            continue
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        for place in range(4):
            at[place] = _along(x, rows[q, place], nx, ny, nz)
            go[place] = _along(goal, rows[q, place], nx, ny, nz)
        low, high = _bounds(at[0], at[1], at[2], at[3], edges)
        sep = low - high
        spare = spare_space(sep) if gaps[q] > 0.0 else 0.0
        low_end, high_end = _bounds(
            at[0] + share_inout[i] * (go[0] - at[0]),
            at[1] + share_inout[j] * (go[1] - at[1]),
            at[2] + share_inout[k] * (go[2] - at[2]),
            at[3] + share_inout[m] * (go[3] - at[3]),
            edges,
        )
        if gaps[q] > 0.0 and low_end - high_end >= sep - spare:
            continue
        low_goal, high_goal = _bounds(go[0], go[1], go[2], go[3], edges)
        down, up = max(0.0, low - low_goal), max(0.0, high_goal - high)
        if i >= n:  # a body takes what it needs, and the cloth the rest
            floor, ceiling = low - down, high + max(0.0, spare - down)
            stuck += int(down > spare and down > 1e-12)
        elif m >= n:
            floor, ceiling = low - max(0.0, spare - up), high + up
            stuck += int(up > spare and up > 1e-12)
        else:
            part = down / (down + up) if down + up > 0.0 else 0.5
            floor, ceiling = low - spare * part, high + spare * (1.0 - part)
        settled_inout[q] = True
        for place in range(4):
            v = rows[q, place]
            if v >= n:
                continue
            share = 1.0
            if place == 0 or (edges and place == 1):
                if go[place] < floor:
                    share = max(0.0, (at[place] - floor) / (at[place] - go[place]))
            elif go[place] > ceiling:
                share = max(0.0, (ceiling - at[place]) / (go[place] - at[place]))
            if share < share_inout[v]:
                share_inout[v] = share
                changed = True
    return changed, stuck


@kernel
def bound_boxes(
    x: Floats, expected: Floats, goal: Floats, margin: float, n: int, share_inout: npt.NDArray[np.float64]
) -> None:
    """Lower the shares of the first `n` vertices that would leave the box in which their pairs were looked for."""
    for i in range(n):
        for c in range(3):
            low = min(x[i, c], expected[i, c]) - margin
            high = max(x[i, c], expected[i, c]) + margin
            if goal[i, c] < low:
                share_inout[i] = min(share_inout[i], DONE * (low - x[i, c]) / (goal[i, c] - x[i, c]))
            elif goal[i, c] > high:
                share_inout[i] = min(share_inout[i], DONE * (high - x[i, c]) / (goal[i, c] - x[i, c]))
