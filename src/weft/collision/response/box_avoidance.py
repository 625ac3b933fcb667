"""Self-collision avoidance by boxes: the boxes of triangles may not meet.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), section 4. Where the moving boxes of two triangles collide (`moving_boxes`), the vertices of the one triangle
must end below the collision plane, those of the other above (eqs. 8, 9). Limits and conflicts: see `avoidance`.

The paper's S3 searches a tree of boxes for pairs that may collide, and S2, which has no hierarchy, computes when they
collide for every pair: `hierarchy`. Both find the same pairs.

What we changed, and why.

- Eqs. 8 and 9 ask on which side of k a vertex is at time t. Two boxes that move the same way touch at a k that both
  are on one side of at time t. It is the order of the boxes that counts: the lower one stays below.
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
from scipy.sparse import csr_array

from weft.arrays import Floats, Ints
from weft.collision.broad.pair_buffer import PairBuffer
from weft.collision.broad.triangle_phase import apart_rows
from weft.collision.narrow.proximity import closest_edge_edge, closest_vertex_triangle
from weft.collision.response import Surroundings
from weft.collision.response.avoidance import Avoidance, AvoidanceParameters, Limits, build_limits
from weft.collision.response.lasting_pairs import LastingPairs
from weft.collision.response.moving_boxes import (
    LOWER,
    LOWER_T1,
    ROUNDING,
    collision_plane,
    compare_every_pair,
    select_colliding,
    update_corners,
)
from weft.geometry.topology import Csr, Topology
from weft.geometry.vectors import Vector
from weft.jit import kernel
from weft.parameters import quantity

NEGLIGIBLE = 1e-6
ROWS = 18  # limits that a pair can set: three coordinates of six vertices
CENTRES, NORMAL_A, NORMAL_B, CLOSEST = 0, 1, 2, 3  # directions along which triangles may be apart


@kernel
def _is_near(near: Csr, ta: int, tb: int) -> bool:
    """Whether `tb` is in the row of `ta`, by halves."""
    first, last = near.starts[ta], near.starts[ta + 1]
    while first < last:
        middle = (first + last) // 2
        if near.items[middle] < tb:
            first = middle + 1
        else:
            last = middle
    return bool(first < near.starts[ta + 1] and near.items[first] == tb)


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
def _normal_direction(x: Floats, triangles: Ints, ti: int, towards: Vector) -> Vector:
    """The normal of a triangle, on the side that `towards` points to."""
    i, j, k = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
    ax, ay, az = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
    bx, by, bz = x[k, 0] - x[i, 0], x[k, 1] - x[i, 1], x[k, 2] - x[i, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    sign = 1.0 if nx * towards[0] + ny * towards[1] + nz * towards[2] >= 0.0 else -1.0
    return _unit(sign * nx, sign * ny, sign * nz)


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
    centres = _centre_direction(x_t0, triangles, ta, tb)
    for kind in range(4):  # the cheap ones first: most neighbours are apart along the first
        if kind == CENTRES:
            n = centres
        elif kind == CLOSEST:
            n = _closest_direction(x_t0, triangles, ta, tb)
        else:
            n = _normal_direction(x_t0, triangles, ta if kind == NORMAL_A else tb, centres)
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
    boxes: Floats,
    triangles: Ints,
    near: Csr,
    pairs: Ints,
    gap: float,
    limits_out: Limits,
) -> int:
    """Write the limits that `pairs` of colliding boxes set; return how many rows. There is room for ROWS of each."""
    at = 0
    for row in range(len(pairs)):
        ta, tb = pairs[row, 0], pairs[row, 1]
        first = at
        axis, a_is_lower, top, k, apart = collision_plane(boxes, ta, tb, gap)
        if axis < 0 or _is_near(near, ta, tb):
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


def near_triangles(topology: Topology, rings: int) -> Csr:
    """For each triangle those with a vertex at most `rings` edges away from one of its own, itself included."""
    n, m, edges = topology.n_vertices, len(topology.triangles), topology.edges
    joined = csr_array((np.ones(2 * len(edges), np.bool_), np.concatenate([edges, edges[:, ::-1]]).T), shape=(n, n))
    owner = np.repeat(np.arange(m), 3)
    corners = csr_array((np.ones(3 * m, np.bool_), (owner, topology.triangles.ravel())), shape=(m, n))
    reached = corners
    for _ in range(rings):
        reached = reached + reached @ joined
    near = reached @ corners.T
    near.sort_indices()
    return Csr(near.indptr.astype(np.int32), near.indices.astype(np.int32))


class BoxAvoidanceParameters(AvoidanceParameters):
    """How far boxes stay apart, and when runs stop."""

    gap: float = quantity("distance that boxes keep", default=1e-4, unit="m", gt=0, le=0.1)
    rings: int = quantity("edges between triangles whose boxes say nothing; 0: none do", default=2, ge=0, le=4)
    hierarchy: bool = quantity("search the broad phase's boxes; else all pairs of boxes are compared", default=True)


class BoxAvoidance(Avoidance):
    """Intervals for coordinates, so that boxes of triangles do not meet (Liu, Ko and Chang 1998); see the module."""

    Parameters = BoxAvoidanceParameters

    def __init__(self, surroundings: Surroundings, parameters: BoxAvoidanceParameters | None = None) -> None:
        super().__init__(surroundings, parameters)
        mesh = self._mesh
        self._triangles = mesh.topology.triangles
        self._near = near_triangles(mesh.topology, self.parameters.rings)
        self._boxes = np.zeros((len(self._triangles), 4, 3))
        self._rows = np.empty((0, 2), np.int32)
        self._found = build_limits(0)
        self._lasting: LastingPairs | None = None
        if self.parameters.hierarchy:
            self._lasting = LastingPairs(mesh, surroundings.broad(mesh), float(self.parameters.gap))
        self._every = PairBuffer(len(self._triangles))

    def _colliding(self, x_t1: Floats) -> Ints:
        x, boxes, gap = self._start.x, self._boxes, float(self.parameters.gap)
        if self._runs == 0:  # later runs of a step start from the same place
            update_corners(x, self._triangles, LOWER, boxes)
        update_corners(x_t1, self._triangles, LOWER_T1, boxes)
        if self._lasting is None:
            self.counts.box_tests += len(boxes) * (len(boxes) - 1) // 2
            pairs = self._every.fill(lambda starts, rows, counts: compare_every_pair(boxes, gap, starts, rows, counts))
            return apart_rows(self._triangles, pairs)
        before = self._lasting.phase.counters.boxes_tested
        pairs = self._lasting.between(x, x_t1)
        self.counts.box_tests += self._lasting.phase.counters.boxes_tested - before + len(pairs)
        if len(pairs) > len(self._rows):
            self._rows = np.empty_like(pairs)
        return self._rows[: select_colliding(boxes, pairs, gap, self._rows)]

    def _limits_of(self, pairs: Ints, x_t1: Floats) -> Limits:
        if ROWS * len(pairs) > len(self._found.pairs):
            self._found = build_limits(ROWS * len(pairs))
        gap = float(self.parameters.gap)
        n = find_limits(self._start.x, x_t1, self._boxes, self._triangles, self._near, pairs, gap, self._found)
        return self._found.select(slice(n))
