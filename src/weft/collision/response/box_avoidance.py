"""Self-collision avoidance by boxes: the boxes of triangles may not meet.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), section 4. The box of a triangle moves from where it is at time t to where the run would have it at t + dt, its
faces linearly: that holds the true box, since the largest of linear functions is convex. For every axis d two boxes
overlap in a time interval T_d; where T = T_x & T_y & T_z is not empty the boxes collide, at its first time t'. The
collision plane d = k is where they touch on the axis whose interval starts at t' (eq. 7), and the vertices of the one
triangle must end below it, those of the other above (eqs. 8, 9). Limits and conflicts: see `avoidance`.

What we changed, and why.

- Eqs. 8 and 9 ask on which side of k a vertex is at time t. Two boxes that move the same way touch at a k that both
  are on one side of at time t. It is the order of the boxes that counts: the lower one stays below.
- Strict inequalities need a number: boxes that do not touch keep `gap` between them, or what they have at time t where
  that is less.
- Where two axes start at the same t', the axis with the larger separation at time t is taken; only an axis on which the
  boxes are apart at time t has a plane.
- Boxes that overlap at time t have no collision plane. Nor do boxes say anything about triangles that are joined by an
  edge of the mesh: in a flat sheet they touch, and planes between them would lock its shear. For both kinds the plane
  is oblique: it is perpendicular to a direction along which the triangles themselves are apart at time t, moves along
  with their mean motion, and is shared between the two sides. A half space is not an interval; each vertex gets the
  corner of one that lies in it: with n the direction and s the room, each coordinate may go s / (|n_x| + |n_y| + |n_z|)
  further.
- Adjacent triangles, those with a common vertex, are left out as in section 4.2.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array, eye_array

from weft.arrays import Floats, Ints
from weft.collision.narrow.proximity import closest_edge_edge, closest_vertex_triangle
from weft.collision.response import Surroundings
from weft.collision.response.avoidance import Avoidance, AvoidanceParameters, Limits
from weft.geometry.topology import Csr, Topology
from weft.geometry.vectors import Vector
from weft.jit import kernel
from weft.parameters import quantity

ROUNDING = 1e-11  # m by which a limit may be missed
NEGLIGIBLE = 1e-6
ROWS = 18  # limits that a pair can set: three coordinates of six vertices
CLEAR, BOXES, OBLIQUE = 0, 1, 2


@kernel
def _overlap_time(v_t0: float, v_t1: float, least: float) -> tuple[float, float]:
    """When, in [0, 1], a separation that goes from v_t0 to v_t1 is below `least`, or 0: (1, 0) for never."""
    if v_t0 > 0.0:  # then it is not below `least` either
        if v_t1 >= least - ROUNDING:
            return 1.0, 0.0
        return (v_t0 - least) / (v_t0 - v_t1), 1.0
    return 0.0, (1.0 if v_t1 <= 0.0 else v_t0 / (v_t0 - v_t1))


@kernel
def _span(x: Floats, triangles: Ints, ti: int, d: int) -> tuple[float, float]:
    a, b, c = x[triangles[ti, 0], d], x[triangles[ti, 1], d], x[triangles[ti, 2], d]
    return min(a, b, c), max(a, b, c)


@kernel
def collision_plane(
    x_t0: Floats, x_t1: Floats, triangles: Ints, ta: int, tb: int, gap: float
) -> tuple[int, int, bool, float, float, float]:
    """How the boxes of two triangles meet.

    Returns CLEAR, BOXES or OBLIQUE (they overlap at time t), the axis, whether the box of `ta` is the lower one, the
    top of the lower one at time t and when they meet, k, and how far the upper one must stay from there.
    """
    first, last = 0.0, 1.0
    axis, best_time, best_apart = -1, -1.0, 0.0
    for d in range(3):
        a_low, a_high = _span(x_t0, triangles, ta, d)
        b_low, b_high = _span(x_t0, triangles, tb, d)
        a_low_t1, a_high_t1 = _span(x_t1, triangles, ta, d)
        b_low_t1, b_high_t1 = _span(x_t1, triangles, tb, d)
        above, below = b_low - a_high, a_low - b_high  # of which at most one is positive
        apart = max(above, below)
        least = min(gap, apart)
        enter_a, leave_a = _overlap_time(above, b_low_t1 - a_high_t1, least)
        enter_b, leave_b = _overlap_time(below, a_low_t1 - b_high_t1, least)
        enter, leave = max(enter_a, enter_b), min(leave_a, leave_b)
        first, last = max(first, enter), min(last, leave)
        if first > last:
            return CLEAR, 0, False, 0.0, 0.0, 0.0
        if apart > 0.0 and (enter > best_time or (enter == best_time and apart > best_apart)):
            axis, best_time, best_apart = d, enter, apart
    if axis < 0:
        return OBLIQUE, 0, False, 0.0, 0.0, 0.0
    a_low, a_high = _span(x_t0, triangles, ta, axis)
    b_low, b_high = _span(x_t0, triangles, tb, axis)
    a_is_lower = b_low > a_high
    top = a_high if a_is_lower else b_high
    top_t1 = _span(x_t1, triangles, ta if a_is_lower else tb, axis)[1]
    k = top + best_time * (top_t1 - top)
    return BOXES, axis, a_is_lower, top, k, min(gap, best_apart)


@kernel
def _are_near(triangles: Ints, near: Csr, ta: int, tb: int) -> bool:
    """Whether a vertex of one triangle is near one of the other in the mesh."""
    for i in range(3):
        vi = triangles[ta, i]
        for k in range(near.starts[vi], near.starts[vi + 1]):
            vj = near.items[k]
            if vj == triangles[tb, 0] or vj == triangles[tb, 1] or vj == triangles[tb, 2]:
                return True
    return False


@kernel
def _shadow(x: Floats, triangles: Ints, ti: int, n: Vector) -> tuple[float, float]:
    """The least and the largest n . x of a triangle."""
    a, b, c = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
    p = n[0] * x[a, 0] + n[1] * x[a, 1] + n[2] * x[a, 2]
    q = n[0] * x[b, 0] + n[1] * x[b, 1] + n[2] * x[b, 2]
    r = n[0] * x[c, 0] + n[1] * x[c, 1] + n[2] * x[c, 2]
    return min(p, q, r), max(p, q, r)


@kernel
def _apart_along(x: Floats, triangles: Ints, ta: int, tb: int, n: Vector) -> float:
    """How far tb is beyond ta along n."""
    return _shadow(x, triangles, tb, n)[0] - _shadow(x, triangles, ta, n)[1]


@kernel
def _unit(x: float, y: float, z: float) -> Vector:
    """The unit vector along (x, y, z), without components that hardly count; zero stays zero."""
    size = NEGLIGIBLE * max(abs(x), abs(y), abs(z))
    x, y, z = x if abs(x) > size else 0.0, y if abs(y) > size else 0.0, z if abs(z) > size else 0.0
    length = math.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else (0.0, 0.0, 0.0)


@kernel
def _centre_direction(x: Floats, triangles: Ints, ta: int, tb: int) -> Vector:
    """From the centre of ta to that of tb."""
    x_sum, y_sum, z_sum = 0.0, 0.0, 0.0
    for i in range(3):
        vi, vj = triangles[ta, i], triangles[tb, i]
        x_sum += x[vj, 0] - x[vi, 0]
        y_sum += x[vj, 1] - x[vi, 1]
        z_sum += x[vj, 2] - x[vi, 2]
    return _unit(x_sum, y_sum, z_sum)


@kernel
def _closest_direction(x: Floats, triangles: Ints, ta: int, tb: int) -> Vector:
    """From the point of ta that is closest to tb, to the point of tb; the widest separation of the two."""
    a, b = triangles[ta], triangles[tb]
    best, nx, ny, nz = math.inf, 0.0, 0.0, 0.0
    for i in range(3):
        _, _, _, _, rx, ry, rz, _ = closest_vertex_triangle(x, b[i], a[0], a[1], a[2])
        sq = rx * rx + ry * ry + rz * rz
        if sq < best:
            best, nx, ny, nz = sq, rx, ry, rz
        _, _, _, _, rx, ry, rz, _ = closest_vertex_triangle(x, a[i], b[0], b[1], b[2])
        sq = rx * rx + ry * ry + rz * rz
        if sq < best:
            best, nx, ny, nz = sq, -rx, -ry, -rz
        for j in range(3):
            _, _, _, _, rx, ry, rz, _ = closest_edge_edge(x, b[i], b[(i + 1) % 3], a[j], a[(j + 1) % 3])
            sq = rx * rx + ry * ry + rz * rz
            if sq < best:
                best, nx, ny, nz = sq, rx, ry, rz
    return _unit(nx, ny, nz)


@kernel
def oblique_plane(
    x_t0: Floats, x_t1: Floats, triangles: Ints, ta: int, tb: int, gap: float
) -> tuple[bool, Vector, float]:
    """Whether no direction is known along which two triangles stay apart, and the direction and room at time t."""
    n = _centre_direction(x_t0, triangles, ta, tb)
    for attempt in range(2):
        if attempt == 1:
            n = _closest_direction(x_t0, triangles, ta, tb)
        apart = _apart_along(x_t0, triangles, ta, tb, n)
        # along a fixed direction a separation at both ends of the step is one all the way
        if apart > 0.0 and _apart_along(x_t1, triangles, ta, tb, n) >= min(gap, apart) - ROUNDING:
            return False, n, apart
    return apart > 0.0, n, apart  # triangles that cross at time t already are left alone


@kernel
def _write(limits_out: Limits, at: int, vi: int, axis: int, is_upper: bool, value: float, start: float) -> int:
    """Write one limit; return the next row."""
    limits_out.vertices[at], limits_out.axes[at], limits_out.uppers[at] = vi, axis, is_upper
    limits_out.values[at], limits_out.starts[at] = value, start
    return at + 1


@kernel
def _write_oblique(
    x_t0: Floats,
    x_t1: Floats,
    triangles: Ints,
    pair: tuple[int, int],
    n: Vector,
    room: float,
    at: int,
    limits_out: Limits,
) -> int:
    """Write the limits that an oblique plane sets; return the next row."""
    inv_size = 1.0 / (abs(n[0]) + abs(n[1]) + abs(n[2]))
    for d in range(3):
        if n[d] == 0.0:
            continue
        mean = 0.0
        for t in pair:
            for i in range(3):
                mean += (x_t1[triangles[t, i], d] - x_t0[triangles[t, i], d]) / 6.0
        for side in range(2):
            t = pair[side]
            edge = _shadow(x_t0, triangles, t, n)[1 - side]
            for i in range(3):
                vi = triangles[t, i]
                along = n[0] * x_t0[vi, 0] + n[1] * x_t0[vi, 1] + n[2] * x_t0[vi, 2]
                reach = (abs(edge - along) + 0.5 * room) * inv_size
                is_upper = (n[d] > 0.0) == (side == 0)
                start = x_t0[vi, d] + (reach if is_upper else -reach)
                at = _write(limits_out, at, vi, d, is_upper, start + mean, start)
    return at


@kernel
def find_limits(
    x_t0: Floats,
    x_t1: Floats,
    triangles: Ints,
    near: Csr,
    pairs: Ints,
    gap: float,
    limits_out: Limits,
) -> int:
    """Write the limits of all `pairs` that collide; return how many rows. There is room for ROWS of each pair."""
    at = 0
    for row in range(len(pairs)):
        ta, tb = pairs[row, 0], pairs[row, 1]
        first = at
        state, axis, a_is_lower, top, k, apart = collision_plane(x_t0, x_t1, triangles, ta, tb, gap)
        if state == CLEAR:
            continue
        if state == OBLIQUE or _are_near(triangles, near, ta, tb):
            collides, n, apart = oblique_plane(x_t0, x_t1, triangles, ta, tb, gap)
            if collides:
                room = apart - min(gap, apart)
                at = _write_oblique(x_t0, x_t1, triangles, (ta, tb), n, room, at, limits_out)
        else:
            for side in range(2):
                is_lower = (side == 0) == a_is_lower
                for i in range(3):
                    start, end = (top, k) if is_lower else (top + apart, k + apart)
                    at = _write(limits_out, at, triangles[tb if side else ta, i], axis, is_lower, end, start)
        limits_out.pairs[first:at] = (np.int64(ta) << 32) + tb
    return at


def within_rings(topology: Topology, rings: int) -> Csr:
    """The vertices at most `rings` edges away from each vertex, itself included."""
    n, edges = topology.n_vertices, topology.edges
    step = csr_array((np.ones(2 * len(edges), np.bool_), np.concatenate([edges, edges[:, ::-1]]).T), shape=(n, n))
    reached = eye_array(n, dtype=np.bool_, format="csr")
    for _ in range(rings):
        reached = reached + reached @ step
    reached.sort_indices()
    return Csr(reached.indptr.astype(np.int32), reached.indices.astype(np.int32))


class BoxAvoidanceParameters(AvoidanceParameters):
    """How far boxes stay apart, and when runs stop."""

    gap: float = quantity("distance that boxes keep", default=1e-4, unit="m", gt=0, le=0.1)
    rings: int = quantity("edges between triangles whose boxes say nothing; 0: none do", default=2, ge=0, le=4)


class BoxAvoidance(Avoidance):
    """Intervals for coordinates, so that boxes of triangles do not meet (Liu, Ko and Chang 1998); see the module."""

    Parameters = BoxAvoidanceParameters

    def __init__(self, surroundings: Surroundings, parameters: BoxAvoidanceParameters | None = None) -> None:
        super().__init__(surroundings, parameters)
        self._triangles = self._mesh.topology.triangles
        self._near = within_rings(self._mesh.topology, self.parameters.rings)

    def _margin(self) -> float:
        return float(self.parameters.gap)

    def _limits_of(self, pairs: Ints, x_t1: Floats) -> Limits:
        n, gap = ROWS * len(pairs), float(self.parameters.gap)
        vertices, axes = np.empty((2, n), np.int32)
        values, starts = np.empty((2, n))
        found = Limits(np.empty(n, np.int64), vertices, axes, np.empty(n, np.bool_), values, starts)
        used = slice(find_limits(self._start.x, x_t1, self._triangles, self._near, pairs, gap, found))
        return found.select(used)
