"""Contact by springs, and motion that no pair can turn into a crossing: the engine's response.

Contact. A vertex and a triangle, or two edges, whose gap at the end of the step would be below the contact distance h
push each other apart by a spring 1/2 k (h - gap)^2, taken implicitly, with friction as a drag against their slip
(see `contact_filter`, which handles vertices on bodies and pins).

Safety. The solve gives end positions x*. The move from x to x* is made safe by dividing planes, the collision plane of
Liu, Ko and Chang (1998) freed from the axes. For each candidate pair take the direction n between its closest points
at x. Along n all vertices of the one side lie above all vertices of the other; let `sep` be that free space. It is
shared between the sides in proportion to how far each would intrude, and a vertex may go only so far along its path
that it stays in its own share. The sides then stay in disjoint half spaces, at the end and, motion being linear, all
the way: nothing can cross, without any root finding. A vertex's share of its path is the least over its pairs; what
was held back is tried again from the new positions, which have new planes.

Why rounding does no harm: `sep` is computed from the vertices themselves, so the argument needs no exact closest
points and no exact normal, and a part of it (`RESERVE`, and at least `CLOSEST`) is never given away. That part is four
orders above the rounding of a double, and above that of float32, in which frames are recorded, at the size of a room.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints
from weft.collision.narrow import Contacts
from weft.collision.narrow.proximity import closest_edge_edge, closest_features, closest_vertex_triangle, unit_normal
from weft.collision.response import StepStart, Surroundings
from weft.collision.response.contact_filter import ContactFilter, ContactFilterParameters
from weft.geometry.contacts import PlaneContacts
from weft.jit import kernel, prange
from weft.linear.constraints import Constraints
from weft.linear.springs import build_springs
from weft.parameters import quantity

RESERVE = 0.1  # of the free space between two sides is never given away
CLOSEST = 4e-6  # [m] nor is this much of it
DONE = 0.999  # of its path: a vertex that got this far is not tried again


class DividingPlanesParameters(ContactFilterParameters):
    """Contact stiffness, and how hard held-back vertices are tried again."""

    stiffness: float = quantity(
        "stiffness of a contact between cloth and cloth or an edge", default=200.0, unit="N/m", gt=0, le=1e7
    )
    rounds: int = quantity("safe moves in one step, at most", default=4, ge=1, le=100)


class DividingPlanes:
    """Contact springs with friction, and end positions that cannot cross (after Liu, Ko and Chang 1998)."""

    Parameters = DividingPlanesParameters
    uses_springs = True

    def __init__(self, surroundings: Surroundings, parameters: DividingPlanesParameters | None = None) -> None:
        self.parameters = parameters or DividingPlanesParameters()
        self._filter = ContactFilter(surroundings, self.parameters)
        self._clearance, self._friction = surroundings.clearance, surroundings.friction
        self._pairs = PairFinder(surroundings)
        self._reach = float(surroundings.clearance.max())
        self.held_back = 0

    def begin(self, start: StepStart) -> None:
        self._filter.begin(start)
        self._start = start
        x = np.concatenate([start.x, start.bodies_t0])
        free = np.concatenate([start.x_free, start.bodies_t1])
        vertex_triangle, edge_edge, skip = self._pairs.find(x, free, self._reach)
        near = [closest_features(x, vertex_triangle[skip:], False), closest_features(x, edge_edge, True)]
        groups = [self._springs_of(contacts, x, free) for contacts in near]
        rows, weights, blocks, pushes = (np.concatenate(parts) for parts in zip(*groups, strict=True))
        n = len(start.x)
        self._springs = build_springs(rows, weights, blocks, n)
        self._push = np.zeros((n, 3))
        for k in range(4):
            np.add.at(self._push, rows[:, k], weights[:, k, None] * pushes)

    def _springs_of(self, contacts: Contacts, x: Floats, free: Floats) -> tuple[Ints, Floats, Floats, Floats]:
        """Rows, weights, blocks and impulses of the contacts whose gap would fall below the contact distance."""
        start, p = self._start, self.parameters
        n, dt = len(start.x), start.dt
        moved = np.einsum("mk,mkc->mc", contacts.weights, (free - x)[contacts.vertices])
        distance = self._clearance[np.minimum(contacts.vertices, n - 1)].max(axis=1)
        is_cloth = contacts.vertices < n
        gap_end = contacts.distances + (moved * contacts.normals).sum(axis=1)
        close = (np.minimum(contacts.distances, gap_end) < distance) & (contacts.distances > 0.0)
        rows, normals, weights = contacts.vertices[close], contacts.normals[close], contacts.weights[close]
        gaps, distance, is_cloth = contacts.distances[close], distance[close], is_cloth[close]
        v = np.concatenate([start.v, (start.bodies_t1 - start.bodies_t0) / dt])
        slip = np.einsum("mk,mkc->mc", weights, v[rows])
        nn = normals[:, :, None] * normals[:, None, :]
        approach = (slip * normals).sum(axis=1)
        normal = dt * p.stiffness * (distance - gaps - dt * approach)  # impulse if the velocity stayed as it is
        tangential = slip - approach[:, None] * normals
        speed = np.linalg.norm(tangential, axis=1)
        friction = self._friction[np.minimum(rows[:, 0], n - 1)]
        pressing = dt * p.stiffness * np.maximum(distance - gaps, 0.0)
        drag = friction * pressing / np.maximum(speed, p.creep)
        blocks = dt * dt * p.stiffness * nn + drag[:, None, None] * (np.eye(3) - nn)
        pushes = normal[:, None] * normals - drag[:, None] * tangential
        return np.where(is_cloth, rows, 0).astype(np.int32), np.where(is_cloth, weights, 0.0), blocks, pushes

    def constraints(self) -> Constraints:
        held = self._filter.constraints()
        return held._replace(springs=self._springs, impulses=held.impulses + self._push)

    def update(self, contacts: PlaneContacts, dv: Floats, impulses: Floats) -> bool:
        return self._filter.update(contacts, dv, impulses)

    def n_contacts(self) -> int:
        return self._filter.n_contacts() + len(self._springs.vertices)

    def finish(self, x_t1: Floats) -> Floats:
        """Move from the start of the step towards `x_t1` as far as dividing planes let every vertex go."""
        n = len(x_t1)
        still = self._start.bodies_t1
        at_rest = bool(np.array_equal(self._start.bodies_t0, still))  # a moving body is left to the contact filter
        x = np.concatenate([self._start.x, still])
        goal = np.concatenate([x_t1, still])
        self.held_back = 0
        for _ in range(self.parameters.rounds):
            vertex_triangle, edge_edge, _ = self._pairs.find(x, goal, 2.0 * CLOSEST, at_rest)
            share = np.ones(len(x))
            limit_motion(x, goal, vertex_triangle, False, share)
            limit_motion(x, goal, edge_edge, True, share)
            x = np.where(share[:, None] == 1.0, goal, x + share[:, None] * (goal - x))
            late = share[:n] < DONE
            self.held_back = int(late.sum())
            if self.held_back == 0:
                break
        return np.ascontiguousarray(x[:n])


class PairFinder:
    """Candidates of the cloth with itself and with bodies, as rows of four vertices.

    Vertices of bodies follow those of the cloth.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        cloth, bodies = surroundings.cloth, surroundings.bodies
        self._n = cloth.n_vertices
        self._cloth_phase = surroundings.broad(cloth)
        self._body_phase = None if bodies is None else surroundings.broad(bodies)
        self._triangles, self._edges = cloth.triangles, cloth.topology.edges
        if bodies is not None:
            self._body_triangles = bodies.triangles + np.int32(self._n)
            self._body_edges = bodies.topology.edges + np.int32(self._n)

    def find(self, x_t0: Floats, x_t1: Floats, margin: float, with_bodies: bool = True) -> tuple[Ints, Ints, int]:
        """Vertex-triangle rows, edge-edge rows, and the number of the first rows that are a cloth vertex on a body."""
        n = self._n
        self._cloth_phase.refit(x_t0[:n], x_t1[:n], margin)
        own = self._cloth_phase.candidates()
        vertex_triangle = [_rows(own.vertex_triangle, None, self._triangles)]
        edge_edge = [_rows(own.edge_edge, self._edges, self._edges)]
        skip = 0
        if self._body_phase is not None and with_bodies:
            self._body_phase.refit(x_t0[n:], x_t1[n:], margin)
            cross = self._cloth_phase.candidates_with(self._body_phase)
            on_body = _rows(cross.vertex_triangle, None, self._body_triangles)
            skip = len(on_body)
            through = cross.triangle_vertex[:, ::-1] + np.array([n, 0], np.int32)
            vertex_triangle = [on_body, *vertex_triangle, _rows(through, None, self._triangles)]
            edge_edge.append(_rows(cross.edge_edge, self._edges, self._body_edges))
        return np.concatenate(vertex_triangle), np.concatenate(edge_edge), skip


def _rows(pairs: Ints, first: Ints | None, second: Ints) -> Ints:
    """(k, 4): the vertices of both sides of each pair; `first` None where the first side is a vertex itself."""
    a = pairs[:, :1] if first is None else first[pairs[:, 0]]
    return np.ascontiguousarray(np.concatenate([a, second[pairs[:, 1]]], axis=1), np.int32)


@kernel
def _pair_shares(
    x: Floats, goal: Floats, i: int, j: int, k: int, m: int, edges: bool
) -> tuple[float, float, float, float]:
    """How much of its path each of the four vertices of a pair may go."""
    if edges:
        _, _, _, _, rx, ry, rz, _ = closest_edge_edge(x, i, j, k, m)
    else:
        _, _, _, _, rx, ry, rz, _ = closest_vertex_triangle(x, i, j, k, m)
    nx, ny, nz, length = unit_normal(rx, ry, rz, 0.0, 0.0, 0.0)
    if length == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    at = (
        x[i, 0] * nx + x[i, 1] * ny + x[i, 2] * nz,
        x[j, 0] * nx + x[j, 1] * ny + x[j, 2] * nz,
        x[k, 0] * nx + x[k, 1] * ny + x[k, 2] * nz,
        x[m, 0] * nx + x[m, 1] * ny + x[m, 2] * nz,
    )
    to = (
        goal[i, 0] * nx + goal[i, 1] * ny + goal[i, 2] * nz,
        goal[j, 0] * nx + goal[j, 1] * ny + goal[j, 2] * nz,
        goal[k, 0] * nx + goal[k, 1] * ny + goal[k, 2] * nz,
        goal[m, 0] * nx + goal[m, 1] * ny + goal[m, 2] * nz,
    )
    low, low_end = at[0], to[0]
    high, high_end = max(at[2], at[3]), max(to[2], to[3])
    if edges:  # the second vertex belongs to the upper side, else to the lower one
        low, low_end = min(low, at[1]), min(low_end, to[1])
    else:
        high, high_end = max(high, at[1]), max(high_end, to[1])
    sep = low - high
    spare = max(0.0, min((1.0 - RESERVE) * sep, sep - CLOSEST))
    down, up = max(0.0, low - low_end), max(0.0, high_end - high)  # how far each side would intrude
    if down + up <= spare:
        return 1.0, 1.0, 1.0, 1.0
    floor = low - spare * (down / (down + up))
    ceiling = high + spare * (up / (down + up))
    a = max(0.0, (at[0] - floor) / (at[0] - to[0])) if to[0] < floor else 1.0
    d = max(0.0, (ceiling - at[3]) / (to[3] - at[3])) if to[3] > ceiling else 1.0
    c = max(0.0, (ceiling - at[2]) / (to[2] - at[2])) if to[2] > ceiling else 1.0
    b = 1.0
    if edges and to[1] < floor:
        b = max(0.0, (at[1] - floor) / (at[1] - to[1]))
    elif not edges and to[1] > ceiling:
        b = max(0.0, (ceiling - at[1]) / (to[1] - at[1]))
    return a, b, c, d


@kernel(parallel=True)
def _update_pair_shares(x: Floats, goal: Floats, rows: Ints, edges: bool, shares_out: npt.NDArray[np.float64]) -> None:
    for q in prange(len(rows)):
        a, b, c, d = _pair_shares(x, goal, rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3], edges)
        shares_out[q, 0], shares_out[q, 1], shares_out[q, 2], shares_out[q, 3] = a, b, c, d


@kernel
def _take_least(rows: Ints, shares: Floats, least_inout: Floats) -> None:
    """Lower each vertex to its least share; a minimum does not depend on the order."""
    for q in range(len(rows)):
        for s in range(4):
            least_inout[rows[q, s]] = min(least_inout[rows[q, s]], shares[q, s])


def limit_motion(x: Floats, goal: Floats, rows: Ints, edges: bool, share_inout: Floats) -> None:
    """Lower `share_inout` (n,), how much of its path from `x` to `goal` each vertex may go, for all pairs in `rows`."""
    shares = np.empty((len(rows), 4))
    _update_pair_shares(x, goal, rows, edges, shares)
    _take_least(rows, shares, share_inout)
