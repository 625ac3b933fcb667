"""Impulses, and impact zones where they do not suffice: the whole pipeline of Bridson et al., which lets nothing cross.

R. Bridson, R. Fedkiw, J. Anderson, "Robust treatment of collisions, contact and friction for cloth animation", SIGGRAPH
2002, sections 7.4 and 7.5, which da Silva left as future work; D. Harmon, E. Vouga, R. Tamstorf, E. Grinspun, "Robust
treatment of simultaneous collisions", SIGGRAPH 2008. The two stages are those of `impulses`, with friction, many sweeps
and the conservative continuous test. Pairs that still meet after `passes` make impact zones:

- Inelastic (Harmon et al.). Vertices of pairs that meet, directly or through others, are a zone. Of all displacements
  y of a zone the nearest to those wanted, in the norm of its masses, that lets none of its pairs approach:

      min |y - y*|_M  such that  sum_k w_k n . y_k >= 0  for every pair.

  Cloth may slide in it, and part: Harmon et al. ask for equality, which glues; the least-distance programme of Lawson
  and Hanson ("Solving least squares problems", 1974, chapter 23) with non-negative least squares does not. Pairs that
  meet on the new way join in. Impulses are still along normals, so momentum is conserved.
- Rigid (Bridson et al.; Provot 1997), where that has not ended after ROUNDS, or is asked for. A zone moves as one rigid
  body with the momentum and angular momentum of its vertices; what then meets makes zones grow and merge. A zone that
  a body or a pin belongs to has infinite mass, and moves along with it.

Why it always ends without crossings. A step ends only where the conservative test has found every pair of its path
apart, and every vertex outside of every body. Rigid zones get there: two vertices of one zone cannot meet, since a
motion that goes straight from x to R x, for turns below half a turn, is x to ((1 - t) I + t R) x, which is invertible
for all t. So every pair that meets has vertices of two zones or of none, and joins them; there are only so many
vertices. The one exception is a zone between bodies, or pins, that move differently: there no rigid motion exists,
`finish` says so, and the simulation takes a shorter step.

Pairs keep CLOSEST, which float32 frames can hold, or most of what gap they have.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weft.arrays import Bools, Floats, Ints
from weft.collision.response import Surroundings
from weft.collision.response.impulses import Exchanges, Impulses, ImpulsesParameters, join_exchanges
from weft.parameters import quantity

ROUNDS = 10  # of inelastic zones before they become rigid
LARGEST_PROGRAMME = 400  # contacts of an inelastic zone
SAME_MOTION = 1e-9  # [m] in which bodies of a zone must agree
LARGEST_TURN = 1.0  # [rad] of a zone in one step


class ImpactZonesParameters(ImpulsesParameters):
    """What the stages do, and what zones are like."""

    friction: bool = quantity("Coulomb friction in both stages", default=True)
    sweeps: int = quantity("sweeps over the contacts at most, each time that some are found", default=30, ge=1, le=1000)
    passes: int = quantity("detections in the geometric stage at most; 0: no such stage", default=20, ge=0, le=1000)
    detection: Literal["conservative"] = quantity("continuous test of the geometric stage", default="conservative")
    zones: Literal["inelastic", "rigid"] = quantity(
        "zones that slide where they can, or rigid ones", default="inelastic"
    )


class ImpactZones(Impulses):
    """Impulses with friction, then impact zones: nothing crosses (Bridson 2002, Harmon 2008); see the module."""

    Parameters = ImpactZonesParameters

    def __init__(self, surroundings: Surroundings, parameters: ImpactZonesParameters | None = None) -> None:
        super().__init__(surroundings, parameters)
        self._body_of = surroundings.body_of

    def _settle(self, goal_inout: Floats) -> bool:
        """Impact zones, where pairs still meet; False where the step is too long for them."""
        met = self._detect(goal_inout)
        if len(met.rows) == 0:
            return True
        self.counts.zone_steps += 1
        wanted = goal_inout.copy()
        if self.parameters.zones == "inelastic":
            known = met
            for _ in range(ROUNDS):
                if not self._project(known, wanted, goal_inout):
                    break
                met = self._detect(goal_inout)
                if len(met.rows) == 0:
                    self.counts.zone_vertices += self._n_free(known)
                    return True
                known = join_exchanges([known, met])
            goal_inout[:] = wanted
            met = self._detect(goal_inout)
        self.counts.rigid_steps += 1
        return self._move_rigidly(met, wanted, goal_inout)

    def _n_free(self, e: Exchanges) -> int:
        vertices = np.unique(e.rows)
        return int((self._inv_masses[vertices] > 0.0).sum())

    def _project(self, e: Exchanges, wanted: Floats, goal_out: Floats) -> bool:
        """Overwrite `goal_out` with the nearest to `wanted` that lets no contact of `e` approach; False for none."""
        goal_out[:] = wanted
        used = (e.weights != 0.0) & (self._inv_masses[e.rows] > 0.0)
        label = _zones_of(e.rows, used, len(wanted))
        zone = label[np.where(used.any(axis=1), e.rows[np.arange(len(e.rows)), used.argmax(axis=1)], 0)]
        for k in np.unique(zone):
            which = zone == k
            if which.sum() > LARGEST_PROGRAMME or not self._project_zone(e.select(which), used[which], goal_out):
                return False
        return True

    def _project_zone(self, e: Exchanges, used: Bools, goal_inout: Floats) -> bool:
        vertices, place = np.unique(e.rows[used], return_inverse=True)
        if len(vertices) == 0:
            return False
        root = np.sqrt(self._inv_masses[vertices])
        contact = np.nonzero(used)[0]
        gradient = np.zeros((len(e.rows), len(vertices), 3))
        np.add.at(gradient, (contact, place), (e.weights[used] * root[place])[:, None] * e.normals[contact])
        moved = (goal_inout - self._x)[e.rows]
        along = (np.einsum("qk,qkc->qc", e.weights, moved) - e.offsets) * e.normals
        change = nearest_change(gradient.reshape(len(e.rows), -1), e.targets - along.sum(axis=1))
        if change is None:
            return False
        goal_inout[vertices] += root[:, None] * change.reshape(-1, 3)
        return True

    def _move_rigidly(self, met: Exchanges, wanted: Floats, goal_inout: Floats) -> bool:
        """Rigid zones that grow until nothing meets; False where a zone is held by what moves differently."""
        n, n_nodes = self._n, self._n + len(self._start.body_moves)
        links: list[Ints] = []
        n_zones = n_nodes + 1
        while len(met.rows):
            nodes = np.where(met.rows < n, met.rows, 0)
            if len(self._body_of):
                of_body = n + self._body_of[np.maximum(met.rows - n, 0)]
                nodes = np.where(met.rows < n, met.rows, of_body).astype(np.int32)
            at_bodies = np.arange(len(met.rows)) >= len(met.rows) - len(self._bodies_met)
            nodes[at_bodies, 3] = n + self._bodies_met
            links.append(nodes)
            rows = np.concatenate(links)
            label = _zones_of(rows, np.ones(rows.shape, np.bool_), n_nodes)
            count = len(np.unique(label))
            if count == n_zones:  # all that meet are in one zone already, up to rounding
                return False
            n_zones = count
            goal_inout[:] = wanted
            for k in np.unique(label[rows]):
                if not self._move_zone(np.flatnonzero(label == k).astype(np.int32), goal_inout):
                    return False
            met = self._detect(goal_inout)
        self.counts.zone_vertices += len(np.unique(np.concatenate(links)[np.concatenate(links) < n]))
        return True

    def _move_zone(self, nodes: Ints, goal_inout: Floats) -> bool:
        """Move the vertices of a zone as one."""
        n, x = self._n, self._x
        vertices, bodies = nodes[nodes < n], nodes[nodes >= n] - n
        free = vertices[self._inv_masses[vertices] > 0.0]
        pinned = vertices[self._inv_masses[vertices] == 0.0]
        if len(bodies) or len(pinned):
            if len(bodies):
                motion = self._start.body_moves[bodies[0]]
            else:
                motion = np.column_stack([np.eye(3), (goal_inout - x)[pinned[0]]])
            for other in self._start.body_moves[bodies]:
                if np.abs(_moved(x[free], other) - _moved(x[free], motion)).max(initial=0.0) > SAME_MOTION:
                    return False
            if np.abs(goal_inout[pinned] - _moved(x[pinned], motion)).max(initial=0.0) > SAME_MOTION:
                return False
            goal_inout[free] = _moved(x[free], motion)
        else:
            goal_inout[free] = rigid_motion(self._masses[free], x[free], goal_inout[free])
        return True


def _zones_of(rows: Ints, used: Bools, n: int) -> Ints:
    """(n,) the zone of each vertex: those that rows join, directly or through others, have the same."""
    which = used.any(axis=1)
    first = rows[np.arange(len(rows)), used.argmax(axis=1)]
    a = np.repeat(first[which, None], rows.shape[1], axis=1)[used[which]]
    graph = coo_array((np.ones(len(a), np.int8), (a, rows[which][used[which]])), shape=(n, n))
    label: Ints = connected_components(graph, directed=False)[1]
    return label


def nearest_change(gradient: Floats, missing: Floats) -> Floats | None:
    """The shortest y with gradient @ y >= missing; None where there is none (Lawson and Hanson, chapter 23, LDP)."""
    scale = float(np.abs(missing).max(initial=0.0))
    if scale == 0.0:
        return np.zeros(gradient.shape[1])
    matrix = np.vstack([gradient.T, missing[None] / scale])
    target = np.zeros(len(matrix))
    target[-1] = 1.0
    try:
        weights, _ = nnls(matrix, target)
    except RuntimeError:  # it did not converge
        return None
    rest = matrix @ weights - target
    if rest[-1] > -1e-12:
        return None
    change: Floats = -scale * rest[:-1] / rest[-1]
    return change


def rigid_motion(masses: Floats, x_t0: Floats, x_t1: Floats) -> Floats:
    """Where vertices (k, 3) end that go from `x_t0` as one rigid body, with the momenta of their ways to `x_t1`."""
    total = masses.sum()
    center, move = masses @ x_t0 / total, masses @ (x_t1 - x_t0) / total
    r, d = x_t0 - center, x_t1 - x_t0 - move
    spin = (masses[:, None] * np.cross(r, d)).sum(axis=0)
    inertia = (
        masses[:, None, None] * ((r * r).sum(axis=1)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None])
    ).sum(0)
    turn = np.linalg.lstsq(inertia, spin, rcond=1e-9)[0]
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return np.asarray(x_t0 + move)
    axis, angle = turn / angle, min(angle, LARGEST_TURN)
    along = (r @ axis)[:, None] * axis
    turned = along + np.cos(angle) * (r - along) + np.sin(angle) * np.cross(axis, r)
    moved: Floats = center + move + turned
    return moved


def _moved(x: Floats, motion: Floats) -> Floats:
    moved: Floats = x @ motion[:, :3].T + motion[:, 3]
    return moved
