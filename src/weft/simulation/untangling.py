"""An untangled start: cloth that crosses itself or bodies, or touches them, is parted before the first step.

A response that keeps apart what starts apart needs a start that is: nothing crosses, and everything has a small gap. A
start that is so already stays as it is, bit for bit. Else, in rounds, what crosses or touches says where it should go
(`weft.collision.untangling`), vertices in bodies too, and all vertices take the smoothest small motion u that obeys,

    minimise  e sum_i |u_i|^2 + sum_edges |u_i - u_j|^2 + k sum_wishes (n . sum_j w_j u_j - c)^2,

where what is near and not to part comes no nearer, and wishes that would hold others back are left out. Neighbours move
together, so that triangles keep their shape, and e is such that cloth comes along as far around as a few times the size
of the part that has to move. Pinned vertices stay; those that are in the way after a while are let go. The exact
certificate has the last word.

Out of a body leads the shortest way, where the cloth lies along its surface. Cloth that passes through it leaves as a
whole: to its front or back, or, where it ends inside, back where it came from.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.arrays import NO_FLOATS, Bools, Floats, Ints
from weft.bodies import Body
from weft.bodies.shapes import Plane
from weft.collision.certificate import intersections, self_intersections
from weft.collision.narrow import ContactKind, Contacts
from weft.collision.narrow.proximity import closest_features
from weft.collision.response import Surroundings
from weft.collision.untangling import Wishes, join_wishes, single_wishes
from weft.collision.untangling.crossings import undo_crossings
from weft.collision.untangling.surface import Surface
from weft.collision.untangling.touching import ZERO, part_near
from weft.errors import WeftError
from weft.jit import threads_for
from weft.linear.constraints import build_constraints
from weft.linear.filtered import FilteredSystem
from weft.linear.pcg import precision
from weft.linear.springs import build_springs
from weft.scene.build import World

TOUCHING = 1e-5  # [m] a gap below this is none: twice what a response never gives away, and a little
GAP_SHARE = 0.1  # of the contact distance: the gap that is made,
SMALLEST_GAP = 3.0 * TOUCHING  # but at least this
MAX_ROUNDS = 200
STUCK = 4  # rounds without progress before another way out of bodies is tried
PATIENCE = 8  # rounds without progress before pins that are in the way yield
GIVE_UP = 40  # rounds without progress
STIFFNESS = 1e3  # k, of a wish
LONGEST = 2.0  # mean edges: as far as a wish goes in one round
REACH = 4.0  # times the size of what has to move: how far around it cloth comes along
CHOICES = 6  # solves of one round, while wishes that hold back are left out
TOLERANCE = 1e-3  # of the motion, to which it is solved
LARGEST_ERROR = 1e-4  # [m] and no finer than this, in single precision, as the engine solves its steps
MAX_ITERATIONS = 1000
SLACK = 0.05  # of its way: a wish that is exceeded by more would hold back
EXIT_STEPS = 64  # of following a line out of a body
FACING = 0.5  # mean cosine of cloth in a body and its surface: below it, the cloth passes through
NEAR = 0.5  # mean edges: as far around features others are kept apart from them
SAMPLES = 8  # along each side of a triangle that crosses a body


class Tangle(NamedTuple):
    """What is wrong with a state."""

    crossings: Ints
    """(k, 2) triangles of cloth that cross"""
    touching: tuple[Contacts, Contacts]
    """vertices and triangles, and edges and edges, closer than TOUCHING"""
    inside: list[Ints]
    """vertices in or on each body"""
    through: list[Ints]
    """triangles that cross or touch each body"""

    def counts(self) -> tuple[int, int, int]:
        """Crossings of cloth, touching pairs of it, and vertices and triangles in bodies."""
        in_bodies = sum(map(len, self.inside)) + sum(map(len, self.through))
        return len(self.crossings), sum(len(c.distances) for c in self.touching), in_bodies

    def vertices(self, triangles: Ints) -> Ints:
        """All that take part, those of crossings first."""
        near = [c.vertices.ravel() for c in self.touching]
        return np.concatenate(
            [triangles[self.crossings].ravel(), *near, *self.inside, *(triangles[ti].ravel() for ti in self.through)]
        )


class Untangled(NamedTuple):
    """What was done about the start of a scene."""

    crossings: int
    """pairs of triangles that crossed"""
    touching: int
    """pairs of features that touched"""
    in_bodies: int
    """vertices in bodies and triangles across their surfaces"""
    left: int
    """of all these, at the end"""
    moved: float
    """the longest way of a vertex [m]"""
    pins: int
    """pinned vertices that moved"""


def untangle_start(
    world: World, surroundings: Surroundings, pinned: Bools, is_partial_enough: bool
) -> tuple[Floats, Untangled | None]:
    """The positions (n, 3) from which to start, and what was done; `pinned` (n,) says which vertices are held.

    Raises
    ------
    WeftError
        naming a place, where something still crosses or touches, unless `is_partial_enough`
    """
    with threads_for(len(world.positions)):
        x, done, tangle = Untangler(surroundings, world.bodies, pinned).untangle(world.positions)
    if done.left and not is_partial_enough:
        raise WeftError(_describe(world, x, tangle))
    return x, done if done[:3] != (0, 0, 0) else None


def _describe(world: World, x: Floats, tangle: Tangle) -> str:
    vi = int(tangle.vertices(world.triangles)[0])
    k = max(i for i, piece in enumerate(world.pieces) if piece.first <= vi)
    place = ", ".join(f"{c:.3g}" for c in x[vi])
    words = ("pairs of triangles cross", "pairs of features touch", "vertices and triangles are in bodies")
    left = " and ".join(f"{n} {word}" for n, word in zip(tangle.counts(), words, strict=True) if n)
    return (
        f"cloth.{k}: cannot be untangled at the start: {left}, first at vertex {vi - world.pieces[k].first} "
        f'near [{place}]; move it there, or go on with untangle = "partly"'
    )


def refuse_cloth_inside_bodies(world: World, pinned: Bools) -> None:
    """Name the vertex that is deepest in a body, if there is one that is not `pinned` (n,)."""
    for body in world.bodies:
        d, _ = body.distances(world.positions, 0.0)
        inside = (d < 0.0) & ~pinned
        if inside.any():
            vi = int(np.argmin(np.where(inside, d, np.inf)))
            k = max(i for i, piece in enumerate(world.pieces) if piece.first <= vi)
            vertex = vi - world.pieces[k].first
            raise WeftError(
                f"cloth.{k}: vertex {vertex} starts {-1e3 * d[vi]:.3g} mm inside {body.name}; move one of them"
            )


class Untangler:
    """Looks for what is wrong with a start, and moves vertices until nothing is."""

    def __init__(self, surroundings: Surroundings, bodies: list[Body], pinned: Bools) -> None:
        self._surface = Surface(surroundings.cloth)
        self._bodies = bodies
        self._is_pinned = pinned
        self._gaps = np.maximum(GAP_SHARE * surroundings.clearance, SMALLEST_GAP)
        self._gap = float(self._gaps.min())
        self._phase = surroundings.broad(surroundings.cloth)
        self._meshes = [None if isinstance(body.shape, Plane) else body.triangulate(0.0) for body in bodies]

    @cached_property
    def _system(self) -> FilteredSystem:
        return FilteredSystem(self._surface.topology.edges, self._surface.n, precision(TOLERANCE, LARGEST_ERROR))

    def look(self, x: Floats) -> Tangle:
        """What is wrong with the positions `x` (n, 3)."""
        triangles = self._surface.topology.triangles
        inside, through = [], []
        for body, mesh in zip(self._bodies, self._meshes, strict=True):
            d, _ = body.distances(x, 0.0)
            inside.append(np.flatnonzero((d < TOUCHING) & ~self._is_pinned).astype(np.int32))
            pairs = np.zeros((0, 2), np.int32) if mesh is None else intersections(x, triangles, *mesh)
            through.append(np.unique(pairs[:, 0]))
        return Tangle(self_intersections(x, triangles), self._near(x, TOUCHING), inside, through)

    def _near(self, x: Floats, distance: float) -> tuple[Contacts, Contacts]:
        """Vertices and triangles, and edges and edges, closer than `distance` [m].

        Neighbours in the mesh are near by nature: they count only at distance 0. Of edges, those count that are closest
        between their ends.
        """
        t = self._surface.topology
        self._phase.refit(x, margin=distance)
        found = self._phase.candidates()
        rows = np.column_stack([found.vertex_triangle[:, 0], t.triangles[found.vertex_triangle[:, 1]]])
        points = closest_features(x, np.ascontiguousarray(rows), False)
        edges = closest_features(x, np.ascontiguousarray(t.edges[found.edge_edge].reshape(-1, 4)), True)
        edges = edges.selected(edges.kinds == ContactKind.EDGE_EDGE)
        parts = []
        for c, split in ((points, 1), (edges, 2)):
            near = c.distances < distance
            rows = np.flatnonzero(near & (c.distances > ZERO))
            near[rows] = ~self._surface.are_neighbours(c.vertices[rows, :split], c.vertices[rows, split:])
            parts.append(c.selected(near))
        return parts[0], parts[1]

    def untangle(self, x_start: Floats) -> tuple[Floats, Untangled, Tangle]:
        """Positions (n, 3) near `x_start` at which nothing is wrong, what was done, and what is wrong all the same.

        Where it does not end well, they are the best that were found.
        """
        x, tangle = x_start, self.look(x_start)
        first = tangle.counts()
        best, held = (x, tangle), self._is_pinned.copy()
        waited = rounds = 0
        while sum(tangle.counts()) and rounds < MAX_ROUNDS and waited < GIVE_UP:
            wishes, size = self._wishes(x, tangle, waited >= STUCK)
            x = x + self._smooth_motion(x, wishes, size, held)
            tangle = self.look(x)
            rounds += 1
            waited += 1
            if sum(tangle.counts()) < sum(best[1].counts()):
                best, waited = (x, tangle), 0
            if waited > 0 and waited % PATIENCE == 0:
                is_asked = (wishes.weights != 0.0) & (wishes.ways > 0.0)[:, None]
                held[wishes.rows[is_asked]] = False
        x, tangle = best
        ways = np.linalg.norm(x - x_start, axis=1)
        pins = int((ways[self._is_pinned] > 0.0).sum())
        return x, Untangled(*first, sum(tangle.counts()), float(ways.max(initial=0.0)), pins), tangle

    def _wishes(self, x: Floats, tangle: Tangle, is_stuck: bool) -> tuple[Wishes, float]:
        """Which way everything should go, and the size [m] of the largest part that has to move.

        What has no side gets one first. Then crossings are undone, and only then is parted what is too near.
        """
        by_body = zip(self._bodies, tangle.inside, tangle.through, strict=True)
        parts = [self._leave(x, *each, is_stuck) for each in by_body]
        size = max((float(part.ways.max(initial=0.0)) for part in parts), default=0.0)
        touching = tangle.touching
        zero = [c.selected(c.distances <= ZERO) for c in touching]
        exempt = np.zeros(len(x), bool)
        if any(len(c.distances) for c in zero):
            parts.append(part_near(self._surface, x, (zero[0], zero[1]), self._gap))
        elif len(tangle.crossings):
            back, extent, exempt = undo_crossings(self._surface, x, tangle.crossings, self._gap)
            parts.append(back)
            size = max(size, extent)
        else:
            parts.append(part_near(self._surface, x, touching, self._gap))
        parts += [self._keep(c, exempt) for c in self._near(x, NEAR * self._surface.mean_edge)]
        return join_wishes(parts), max(size, self._gap)

    def _keep(self, c: Contacts, exempt: Bools) -> Wishes:
        """What is near, but for the vertices `exempt` (n,), may come no nearer than the gap, or than it is."""
        c = c.selected((c.distances > TOUCHING) & ~exempt[c.vertices].any(axis=1))
        return Wishes(c.vertices, c.weights, c.normals, np.minimum(self._gap - c.distances, 0.0))

    def _leave(self, x: Floats, body: Body, inside: Ints, through: Ints, is_stuck: bool) -> Wishes:
        """The ways out of a body, of the vertices in it and of the triangles that cross it between their vertices."""
        d, normals = body.distances(x, 0.0)
        ways = (self._gaps - d)[:, None] * normals
        facing = np.abs((normals * self._surface.vertex_normals(x)).sum(axis=1))
        for part in self._surface.connected(inside):
            if facing[part].mean() < FACING:
                ways[part] = self._one_way_out(x, body, part, normals)
        triangles = self._surface.topology.triangles[through]
        triangles = triangles[~np.isin(triangles, inside).any(axis=1)]
        return join_wishes([single_wishes(inside, ways[inside]), self._lift(x, body, triangles, is_stuck)])

    def _one_way_out(self, x: Floats, body: Body, part: Ints, normals: Floats) -> Floats:
        """The ways (k, 3) of all vertices of a part that passes through a body, in the direction that is shortest.

        A part that ends in the body may go back where it came from; one that does not must leave to the front or back.
        """
        t, surface = self._surface.topology, self._surface
        front = surface.vertex_normals(x)[part].mean(axis=0)
        across, along = [front, -front], []
        if np.isin(part, t.edges[surface.is_border]).any():
            around = np.unique(np.concatenate([t.vertex_neighbours.row(int(i)) for i in part]))
            outside = np.setdiff1d(around, part)
            along = [normals[part].mean(axis=0), x[outside].sum(axis=0) - len(outside) * x[part].mean(axis=0)]
        best, shortest = np.zeros((len(part), 3)), np.inf
        for k, direction in enumerate(across + along):
            unit = direction / max(float(np.linalg.norm(direction)), ZERO)
            far = _exits(body, x[part], unit, self._gaps[part])
            if far.max() < shortest:
                shortest = float(far.max())
                best = np.outer(far if k < len(across) else np.full(len(part), shortest), unit)
        return best

    def _lift(self, x: Floats, body: Body, triangles: Ints, is_stuck: bool) -> Wishes:
        """The deepest point of each of `triangles` (k, 3) leaves the body.

        Where that leads nowhere, a triangle that the body pierces leaves to its front or back.
        """
        i, j = np.divmod(np.arange((SAMPLES + 1) ** 2), SAMPLES + 1)
        i, j = i[i + j <= SAMPLES], j[i + j <= SAMPLES]
        places = np.stack([i, j, SAMPLES - i - j], axis=1) / SAMPLES
        points = np.einsum("sc,kcd->ksd", places, x[triangles]).reshape(-1, 3)
        d, normals = body.distances(points, 0.0)
        deepest = d.reshape(len(triangles), len(places)).argmin(axis=1)
        at = np.arange(len(triangles)) * len(places) + deepest
        d, normals, points = d[at], normals[at], points[at]
        corners = x[triangles]
        front = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        front /= np.maximum(np.linalg.norm(front, axis=1, keepdims=True), ZERO)
        gaps = np.full(len(d), self._gap)
        ways = np.maximum(gaps - d, gaps)
        to_front, to_back = (_exits(body, points, sign * front, gaps) for sign in (1.0, -1.0))
        pierced = np.abs((normals * front).sum(axis=1)) < FACING if is_stuck else np.zeros(len(d), bool)
        normals = np.where(pierced[:, None], np.where(to_front <= to_back, 1.0, -1.0)[:, None] * front, normals)
        ways = np.where(pierced, np.maximum(np.minimum(to_front, to_back), gaps), ways)
        weights = np.column_stack([places[deepest], np.zeros(len(triangles))])
        return Wishes(np.column_stack([triangles, triangles[:, :1]]).astype(np.int32), weights, normals, ways)

    def _smooth_motion(self, x: Floats, wishes: Wishes, size: float, held: Bools) -> Floats:
        """The motion (n, 3) that obeys the wishes, but for those that would hold back."""
        n, edges = self._surface.n, self._surface.topology.edges
        mean_edge = self._surface.mean_edge
        ways = np.minimum(wishes.ways, LONGEST * mean_edge)
        anchor = np.clip((mean_edge / (REACH * max(size, mean_edge))) ** 2, 1e-6, 1.0)
        blocks = np.tile(-np.eye(3), (len(edges), 1, 1))
        self._system.assemble(x, np.full(n, anchor), np.zeros((n, 3, 3)), blocks, np.zeros_like(blocks), NO_FLOATS, 1.0)
        constraints = build_constraints(n)
        constraints.filters[held] = 0.0
        slack = SLACK * np.maximum(np.abs(ways), self._gap)
        motion, active = np.zeros((n, 3)), ways > 0.0
        for _ in range(CHOICES):
            rows, weights, normals = wishes.rows[active], wishes.weights[active], wishes.normals[active]
            right = np.zeros((n, 3))
            for place in range(4):
                pull = STIFFNESS * weights[:, place, None] * ways[active, None] * normals
                np.add.at(right, rows[:, place], pull)
            stiff, loose = np.full(len(rows), STIFFNESS), np.zeros(len(rows))
            asked = constraints._replace(springs=build_springs(rows, weights, normals, stiff, loose, n))
            motion, _ = self._system.solve(right, asked, motion, TOLERANCE, LARGEST_ERROR, MAX_ITERATIONS)
            gone = np.einsum("kp,kpc,kc->k", wishes.weights, motion[wishes.rows], wishes.normals)
            wanted = gone < np.where(active, ways + slack, ways - slack)
            if (wanted == active).all():
                break
            active = wanted
        return motion


def _exits(body: Body, points: Floats, direction: Floats, gaps: Floats) -> Floats:
    """How far (k,) [m] points (k, 3) have to go in a direction to be out of a convex body, by a gap (k,) [m]."""
    far = np.zeros(len(points))
    for _ in range(EXIT_STEPS):
        d, _ = body.distances(points + far[:, None] * direction, 0.0)
        far += np.maximum(gaps - d, 0.0)
    return far
