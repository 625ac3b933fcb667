"""Parts of the cloth too flat to meet themselves, left out: normal cones on the quad tree.

He, Cheng, 2009, section III (paper 002), after Provot 1997 and Volino, Magnenat-Thalmann 1994. A surface does not meet
itself if (1) some direction V has a positive product with all its normals, and (2) its contour, projected along V, does
not cross itself. Each node of the quad tree has a cone that holds the normals of all triangles below; where its angle
alpha is less than pi / 2 the axis of the cone is such a V, and no pair of triangles within the node is tested.

`published`. Cones are merged two by two, with beta the angle between their axes, around the bisector of the axes:

    alpha = beta / 2 + max(alpha_1, alpha_2)                  (1)

By the triangle inequality on the sphere the new cone holds both old ones, if alpha is the angle between the axis and
the side: the half angle. The paper calls alpha the apex angle; read so, eq. 1 is wrong by a factor of two (two single
normals 120 degrees apart span an apex angle of 120, eq. 1 gives 60), and only the half angle fits the condition
alpha < pi / 2. We take the half angle. Then (1) holds, though not tightly, and the paper's fault is another one: it
drops (2). A strip wound up like a spiral staircase has all normals in one cone and passes through itself, and its
pairs are lost. Over a step only the end counts, so what happens on the way is not seen either.

`sound`. The smallest cone around two cones, with half angle (alpha_1 + beta + alpha_2) / 2 unless one holds the other,
and the contour. Why no pair is lost: let the triangles of a node be wound consistently, their border be one closed
polygon, every normal have a positive product with V, and the projected border be a simple polygon. The number of times
that the projected triangles cover a point equals the winding number of the border around it, as all are covered with
the same sign; around a simple polygon it is 0 or 1. So no point is covered twice, and since two parts of the surface
that meet would both cover the surroundings of the place where they meet, they do not. This needs no assumption on the
shape of the part.

Over a step V is fixed and both conditions must hold at all times. A normal is quadratic in time and a positive
combination of the three coefficients n0, n1, n2 (see `ipsilateral`), which the cone of the triangle has to hold. Two
edges of the border that share no vertex are apart at all times if a line in the plane of projection separates their
ends at both times; two that share a vertex meet nowhere else if, walking along them, both advance in some common
direction at both times. The separating line and the common direction are searched among a few; where none is found the
node is left open, which costs time and no pairs.

Sound means crossings. Two places of a narrow wrinkle can be within a margin of each other without touching, and that
pair is removed: do not filter pairs for proximity with this.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weft.arrays import Bools, Floats, Ints
from weft.collision.broad.box_tree import BoxTree, build_box_tree
from weft.collision.broad.quad_tree import quad_paths
from weft.collision.culling.contour import is_contour_simple
from weft.collision.culling.row_filter import RowFilter, all_kept
from weft.geometry.mesh import Mesh
from weft.geometry.topology import Csr, group_rows
from weft.geometry.vectors import Vector
from weft.jit import kernel
from weft.parameters import Parameters, quantity

HALF_PI = 0.5 * np.pi
ROUNDING = 1e-6  # rad, added to every sound cone: arccos near 0 loses half the digits

Cone = tuple[float, float, float, float]


@kernel
def cross_of(x: Floats, y: Floats, a: int, b: int, c: int) -> Vector:
    """(x_b - x_a) x (y_c - y_a)"""
    ux, uy, uz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    vx, vy, vz = y[c, 0] - y[a, 0], y[c, 1] - y[a, 1], y[c, 2] - y[a, 2]
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@kernel
def longest_side(x: Floats, a: int, b: int, c: int) -> float:
    """The largest component of two sides."""
    size = 0.0
    for d in range(3):
        size = max(size, abs(x[b, d] - x[a, d]), abs(x[c, d] - x[a, d]))
    return size


@kernel
def normalized(x: float, y: float, z: float, smallest: float) -> Vector:
    """The unit vector along (x, y, z), or zero where that is not longer than `smallest`."""
    length = np.sqrt(x * x + y * y + z * z)
    if not length > smallest:
        return 0.0, 0.0, 0.0
    return x / length, y / length, z / length


@kernel
def angle_between(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> float:
    return float(np.arccos(min(max(ax * bx + ay * by + az * bz, -1.0), 1.0)))


@kernel
def triangle_cone(x_t0: Floats, x_t1: Floats, a: int, b: int, c: int, is_sound: bool) -> Cone:
    """Axis and half angle of the normals of one triangle: at the end of the step, or at all times of it.

    A triangle without area has no normal; its half angle is pi, so that nothing around it is left out.
    """
    nx, ny, nz = cross_of(x_t1, x_t1, a, b, c)
    if not is_sound:
        ux, uy, uz = normalized(nx, ny, nz, 0.0)
        return ux, uy, uz, 0.0 if ux != 0.0 or uy != 0.0 or uz != 0.0 else np.pi
    size = max(longest_side(x_t0, a, b, c), longest_side(x_t1, a, b, c))
    smallest = 1e-8 * size * size  # below, rounding turns the normal by more than the allowance
    px, py, pz = cross_of(x_t0, x_t0, a, b, c)
    gx, gy, gz = cross_of(x_t0, x_t1, a, b, c)
    hx, hy, hz = cross_of(x_t1, x_t0, a, b, c)
    ax, ay, az = normalized(px, py, pz, smallest)
    bx, by, bz = normalized(0.5 * (gx + hx), 0.5 * (gy + hy), 0.5 * (gz + hz), smallest)
    cx, cy, cz = normalized(nx, ny, nz, smallest)
    if ax == ay == az == 0.0 or bx == by == bz == 0.0 or cx == cy == cz == 0.0:
        return 0.0, 0.0, 0.0, np.pi
    ux, uy, uz = normalized(ax + bx + cx, ay + by + cy, az + bz + cz, 1e-3)
    angle = max(
        angle_between(ux, uy, uz, ax, ay, az),
        angle_between(ux, uy, uz, bx, by, bz),
        angle_between(ux, uy, uz, cx, cy, cz),
    )
    return ux, uy, uz, min(angle + ROUNDING, np.pi)


@kernel
def merge_cones(a: Cone, b: Cone, is_sound: bool) -> Cone:
    """A cone around two cones: eq. 1, or the smallest one. Half angle pi stands for "any direction"."""
    ax, ay, az, alpha_a = a
    bx, by, bz, alpha_b = b
    beta = angle_between(ax, ay, az, bx, by, bz)
    if not is_sound:
        ux, uy, uz = normalized(ax + bx, ay + by, az + bz, 1e-12)
        alpha = min(0.5 * beta + max(alpha_a, alpha_b), np.pi)
        return ux, uy, uz, alpha if ux != 0.0 or uy != 0.0 or uz != 0.0 else np.pi
    beta += ROUNDING
    if beta + alpha_b <= alpha_a:
        return a
    if beta + alpha_a <= alpha_b:
        return b
    alpha = 0.5 * (alpha_a + beta + alpha_b)
    if alpha >= HALF_PI:
        return ax, ay, az, np.pi
    turn = (alpha - alpha_a) / beta
    # between the axes, by share of the angle: exact enough for the allowance, and safe where beta is tiny
    sine = np.sin(beta)
    share_a, share_b = np.sin((1.0 - turn) * beta) / sine, np.sin(turn * beta) / sine
    ux, uy, uz = normalized(share_a * ax + share_b * bx, share_a * ay + share_b * by, share_a * az + share_b * bz, 1e-3)
    return ux, uy, uz, alpha + ROUNDING


@kernel
def update_cones(x_t0: Floats, x_t1: Floats, triangles: Ints, tree: BoxTree, is_sound: bool, cones_out: Floats) -> None:
    """Overwrite the cones (n, 4) of all nodes, axis and half angle, from the leaves up; children two by two."""
    for node in range(tree.skip.shape[0] - 1, -1, -1):
        total = (0.0, 0.0, 0.0, np.pi)
        held = total
        n = 0
        is_leaf = tree.skip[node] == node + 1
        part = tree.starts[node] if is_leaf else node + 1
        end = tree.ends[node] if is_leaf else tree.skip[node]
        while part < end:
            if is_leaf:
                ti = tree.items[part]
                cone = triangle_cone(x_t0, x_t1, triangles[ti, 0], triangles[ti, 1], triangles[ti, 2], is_sound)
                part += 1
            else:
                cone = (cones_out[part, 0], cones_out[part, 1], cones_out[part, 2], cones_out[part, 3])
                part = tree.skip[part]
            if n % 2 == 0:
                held = cone
            else:
                pair = merge_cones(held, cone, is_sound)
                total = pair if n == 1 else merge_cones(total, pair, is_sound)
            n += 1
        if n % 2 == 1:
            total = held if n == 1 else merge_cones(total, held, is_sound)
        cones_out[node, 0], cones_out[node, 1], cones_out[node, 2], cones_out[node, 3] = total


@kernel
def close_nodes(
    x_t0: Floats,
    x_t1: Floats,
    tree: BoxTree,
    cones: Floats,
    borders: Csr,
    edges: Ints,
    is_ring: Bools,
    is_sound: bool,
    closed_out: Bools,
    part_out: Ints,
) -> None:
    """Overwrite which nodes need no search within, the topmost only, and the closed node of every triangle or -1."""
    node = 0
    while node < tree.skip.shape[0]:
        closed_out[node] = cones[node, 3] < HALF_PI
        if is_sound and closed_out[node]:
            closed_out[node] = is_ring[node] and is_contour_simple(
                x_t0, x_t1, edges, borders.items, borders.starts[node], borders.starts[node + 1], cones, node
            )
        if closed_out[node]:
            for i in range(tree.starts[node], tree.ends[node]):
                part_out[tree.items[i]] = node
            for below in range(node + 1, tree.skip[node]):
                closed_out[below] = False
            node = tree.skip[node]
        else:
            if tree.skip[node] == node + 1:
                for i in range(tree.starts[node], tree.ends[node]):
                    part_out[tree.items[i]] = -1
            node += 1


def build_borders(tree: BoxTree, mesh: Mesh) -> Csr:
    """Edges on the border of every node: those of which exactly one triangle lies below it."""
    sides = mesh.topology.edge_triangles
    place = np.empty(len(tree.items), np.int64)
    place[tree.items] = np.arange(len(tree.items))
    leaves = np.flatnonzero(tree.skip == np.arange(tree.n_boxes) + 1)
    nodes, edges = [], []
    for side in range(2):
        edge = np.flatnonzero(sides[:, side] >= 0)
        other = sides[edge, 1 - side]
        other_place = np.where(other >= 0, place[other], -1)
        node = leaves[np.searchsorted(tree.starts[leaves], place[sides[edge, side]], side="right") - 1]
        while len(edge):
            is_outside = (other_place < tree.starts[node]) | (other_place >= tree.ends[node])
            edge, other_place, node = edge[is_outside], other_place[is_outside], node[is_outside]
            nodes.append(node)
            edges.append(edge)
            has_parent = tree.parents[node] >= 0
            edge, other_place, node = edge[has_parent], other_place[has_parent], tree.parents[node[has_parent]]
    return group_rows(np.concatenate(nodes).astype(np.int32), np.concatenate(edges).astype(np.int32), tree.n_boxes)


def find_rings(tree: BoxTree, borders: Csr, mesh: Mesh) -> Bools:
    """Which nodes have one closed polygon as border and triangles wound the same way."""
    topology = mesh.topology
    node = np.repeat(np.arange(tree.n_boxes), np.diff(borders.starts))
    ends = topology.edges[borders.items].astype(np.int64) + (node * mesh.n_vertices)[:, None]
    corner, index, count = np.unique(ends, return_inverse=True, return_counts=True)
    a, b = index.reshape(-1, 2).T
    n = len(corner)
    _, loop = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n)), directed=False)
    corner_node = corner // mesh.n_vertices
    is_ring = np.zeros(tree.n_boxes, np.bool_)
    is_ring[corner_node] = True
    is_ring[corner_node[count != 2]] = False
    first_loop = np.zeros(tree.n_boxes, np.int64)
    first_loop[corner_node] = loop
    is_ring[corner_node[loop != first_loop[corner_node]]] = False
    for ti in _badly_wound(mesh):
        place = int(np.flatnonzero(tree.items == ti)[0])
        is_ring[(tree.starts <= place) & (place < tree.ends)] = False
    return is_ring


def _badly_wound(mesh: Mesh) -> Ints:
    """Triangles at an edge that two triangles run along in the same direction, or that has more than two."""
    triangles = mesh.topology.triangles
    start, end = triangles, np.roll(triangles, -1, axis=1)
    directed = start.astype(np.int64) * mesh.n_vertices + end
    _, index, count = np.unique(directed, return_inverse=True, return_counts=True)
    is_bad = (count[index] > 1).reshape(triangles.shape).any(axis=1)
    return np.flatnonzero(is_bad).astype(np.int32)


class NormalConeParameters(Parameters):
    """Which conditions."""

    variant: Literal["published", "sound"] = quantity(
        "published: normals only; sound: the projected contour too, at all times of the step", default="sound"
    )


class NormalCone(RowFilter):
    """Removes pairs within parts of the cloth that cannot meet themselves; see the module."""

    Parameters = NormalConeParameters

    def __init__(self, mesh: Mesh, parameters: NormalConeParameters | None = None) -> None:
        super().__init__(mesh, parameters)
        self.sound = self.parameters.variant == "sound"
        self.tree = build_box_tree(quad_paths(mesh))
        self.cones = np.zeros((self.tree.n_boxes, 4))
        self.closed = np.zeros(self.tree.n_boxes, np.bool_)
        self._part = np.full(len(self.triangles), -1, np.int32)
        if self.sound:
            self._borders = build_borders(self.tree, mesh)
            self._is_ring = find_rings(self.tree, self._borders, mesh)
        else:
            self._borders = Csr(np.zeros(self.tree.n_boxes + 1, np.int32), np.zeros(0, np.int32))
            self._is_ring = np.zeros(self.tree.n_boxes, np.bool_)

    def _update(self) -> None:
        update_cones(self.x_t0, self.x_t1, self.triangles, self.tree, self.sound, self.cones)
        close_nodes(
            self.x_t0,
            self.x_t1,
            self.tree,
            self.cones,
            self._borders,
            self.mesh.topology.edges,
            self._is_ring,
            self.sound,
            self.closed,
            self._part,
        )

    def keep(self, rows: Ints, other: Self | None = None) -> Bools:
        if other is not None:
            return all_kept(rows)
        part_a, part_b = self._part[rows[:, 0]], self._part[rows[:, 1]]
        kept: Bools = (part_a != part_b) | (part_a < 0)
        return kept
