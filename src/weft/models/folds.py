"""Bending of cloth that has angles at rest, such as a garment that was modelled in three dimensions.

The energy is 1/2 t^T W t over the angles t of the hinges, less those at rest, with the weights of `weft.models.hinge`.
Its matrix is that of Gauss and Newton, J^T W J, which is positive semi-definite and exact where the cloth is at rest.
Damping is stiffness-proportional: t + tau dt/dt in place of t.

Limits: an angle beyond 180 degrees wraps around, since the fold has passed through itself. Where a triangle is squeezed
below a tenth of its area, its hinges fade out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.geometry.mesh import Mesh
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange
from weft.models.fabrics import Fabric
from weft.models.hinge import Frames, Hinges, build_weights, gather_weights, rest_angles

FADE = 0.01  # square of the share of its area below which a triangle's hinges fade out


class Sheet(NamedTuple):
    """The hinges of one cloth at rest."""

    triangles: Ints
    """(m, 3)"""
    areas: Floats
    """(m,) [m2]"""
    hinges: Ints
    """(h, 4)"""
    sides: Ints
    """(h, 2)"""
    signs: Floats
    """(h,)"""
    triangle_hinges: Ints
    """(m, 3)"""
    weights: Floats
    """(m, 3, 3) [N m]"""
    corner_rows: Ints
    """(m, 3, 3) the row of `Work.rows` that holds the derivative of hinge k by corner i, or -1"""
    angles: Floats
    """(h,) at rest"""
    damping: float
    """[s]"""


class Work(NamedTuple):
    """What follows from positions and velocities, hinge by hinge."""

    normals: Floats
    """(m, 3) of length twice the area"""
    bends: Floats
    """(h,) angle minus angle at rest, plus damping"""
    rows: Floats
    """(4 h + 9 m, 3) first the derivative of each angle by its four vertices [1/m], then that of the moment on hinge k
    of each triangle by its corner i, as far as this triangle gives it [N]"""


class Terms(NamedTuple):
    """What adds up to the block of each pair of vertices."""

    starts: Ints
    """(p + 1,) products of each pair"""
    left: Ints
    """(k,) the row of `Work.rows` of the pair's first vertex"""
    right: Ints
    """(k,) that of its second"""
    factors: Floats
    """(k,)"""


class Folds:
    """Bending about angles at rest.

    Attributes
    ----------
    pairs : (p, 2) the vertices that it couples, the smaller first
    stiffness : (p,) zeros: all of its blocks change
    """

    is_even = False

    def __init__(self, mesh: Mesh, frames: Frames, hinges: Hinges, fabric: Fabric) -> None:
        self._sheet = s = _build_sheet(mesh, frames, hinges, fabric)
        m, h = len(s.triangles), len(s.hinges)
        self._work = Work(np.zeros((m, 3)), np.zeros(h), np.zeros((4 * h + 9 * m, 3)))
        self._ends = group_rows(s.hinges.ravel(), np.arange(4 * h, dtype=np.int32), mesh.n_vertices)
        self._weights = gather_weights(hinges, s.weights)
        self.pairs, self._terms = _build_terms(s)
        self.stiffness: Floats = np.zeros(len(self.pairs))

    def update(self, x: Floats, v: Floats) -> None:
        update_hinges(x, v, self._sheet, self._work)

    def energy(self, x: Floats) -> float:
        return 0.5 * float(np.einsum("h,h->", self._work.bends, self._weights @ self._work.bends))

    def add_forces(self, x: Floats, forces_out: Floats) -> None:
        add_hinge_forces(self._work.rows, self._weights @ self._work.bends, *self._ends, forces_out)

    def add_blocks(self, rows: Ints, stiffness_out: Floats, damping_out: Floats) -> None:
        add_hinge_blocks(self._sheet, self._work, self._terms, rows, stiffness_out, damping_out)


def _build_sheet(mesh: Mesh, frames: Frames, hinges: Hinges, fabric: Fabric) -> Sheet:
    corners = mesh.positions[mesh.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    hinge = hinges.of_triangle
    turned = (hinge >= 0) & (hinges.signs[hinge] < 0) & (hinges.sides[hinge, 1] == np.arange(len(hinge))[:, None])
    sign = np.where(turned, -1.0, 1.0)  # such a triangle sees the angle from the other side
    weights = build_weights(mesh, frames, hinges, fabric.bending_weft, fabric.bending_warp)
    return Sheet(
        triangles=np.ascontiguousarray(mesh.triangles),
        areas=0.5 * np.linalg.norm(normals, axis=1),
        hinges=hinges.vertices,
        sides=hinges.sides,
        signs=hinges.signs,
        triangle_hinges=np.ascontiguousarray(hinge),
        weights=np.ascontiguousarray(weights * sign[:, :, None] * sign[:, None, :]),
        corner_rows=_corner_rows(mesh, hinges),
        angles=rest_angles(mesh, hinges),
        damping=float(fabric.damping),
    )


def _corner_rows(mesh: Mesh, hinges: Hinges) -> Ints:
    hinge = hinges.of_triangle
    if not len(hinges.vertices):
        return np.full((len(hinge), 3, 3), -1, np.int32)
    same = hinges.vertices[hinge][:, :, None, :] == mesh.triangles[:, None, :, None]
    rows = 4 * hinge[:, :, None] + same.argmax(axis=3)
    return np.where(hinge[:, :, None] >= 0, rows, -1).astype(np.int32)


def _build_terms(sheet: Sheet) -> tuple[Ints, Terms]:
    """The pairs of vertices that hinges couple, and what adds up to their blocks.

    A triangle couples six vertices: its corners 0 to 2 and, beyond hinge k, the vertex 3 + k. With g_k the derivative
    of angle k and P_k = sum_l W_kl g_l, its matrix is the sum of g_k P_k^T. A vertex beyond hinge k moves that angle
    only, so that its blocks are P_k(corner) g_k(beyond)^T, and W_kl g_k g_l^T between two such.
    """
    hinge = sheet.triangle_hinges
    m, h = len(hinge), len(sheet.hinges)
    place = np.where(sheet.sides[hinge, 0] == np.arange(m)[:, None], 3, 2) if h else np.zeros((m, 3), np.int64)
    beyond = np.where(hinge >= 0, sheet.hinges[hinge, place], -1) if h else np.full((m, 3), -1)
    beyond_row = 4 * hinge + place
    moment_row = 4 * h + 9 * np.arange(m)[:, None, None] + 3 * np.arange(3)[:, None] + np.arange(3)
    products: list[tuple[Ints, ...]] = []

    def add(i: Ints, j: Ints, left: Ints, right: Ints, factor: Floats | float, used: Bools) -> None:
        t = np.flatnonzero(used & (i != j))
        swap = i[t] > j[t]
        left, right = left[t], right[t]
        pair = np.where(swap, j[t], i[t]), np.where(swap, i[t], j[t])
        rows = np.where(swap, right, left), np.where(swap, left, right)
        products.append((*pair, *rows, np.broadcast_to(factor, (m,))[t]))

    for k in range(3):
        there = hinge[:, k] >= 0
        for i in range(3):
            corner, j = sheet.triangles[:, i], (i + 1) % 3
            add(corner, sheet.triangles[:, j], sheet.corner_rows[:, k, i], moment_row[:, k, j], 1.0, there)
            add(corner, beyond[:, k], moment_row[:, k, i], beyond_row[:, k], 1.0, there)
        other = (k + 1) % 3
        w = sheet.weights[:, k, other]
        coupled = np.abs(w) > 1e-12 * (sheet.weights[:, k, k] + sheet.weights[:, other, other])
        add(beyond[:, k], beyond[:, other], beyond_row[:, k], beyond_row[:, other], w, coupled)
    first, second, left, right, factors = (np.concatenate(part) for part in zip(*products, strict=True))

    n = np.int64(sheet.triangles.max()) + 1
    keys, pair = np.unique(first * n + second, return_inverse=True)
    pairs = np.ascontiguousarray(np.stack([keys // n, keys % n], axis=1), np.int32)
    by_pair = group_rows(pair.astype(np.int32), np.arange(len(first), dtype=np.int32), len(pairs))
    order = by_pair.items
    return pairs, Terms(
        by_pair.starts,
        np.ascontiguousarray(left[order], np.int32),
        np.ascontiguousarray(right[order], np.int32),
        np.ascontiguousarray(factors[order], np.float64),
    )


@kernel
def _update_hinge(x: Floats, v: Floats, sheet: Sheet, h: int, work: Work) -> None:
    """Angle of hinge h and its derivative; normals must be up to date."""
    a, b, c, d = sheet.hinges[h, 0], sheet.hinges[h, 1], sheet.hinges[h, 2], sheet.hinges[h, 3]
    t1, t2 = sheet.sides[h, 0], sheet.sides[h, 1]
    n = work.normals
    sign = sheet.signs[h]
    m0, m1, m2 = n[t1, 0], n[t1, 1], n[t1, 2]
    n0, n1, n2 = sign * n[t2, 0], sign * n[t2, 1], sign * n[t2, 2]
    e0, e1, e2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    length_sq = e0 * e0 + e1 * e1 + e2 * e2
    m_sq, n_sq = m0 * m0 + m1 * m1 + m2 * m2, n0 * n0 + n1 * n1 + n2 * n2
    if length_sq == 0.0 or m_sq == 0.0 or n_sq == 0.0:
        work.rows[4 * h : 4 * h + 4] = 0.0
        work.bends[h] = 0.0
        return
    length = np.sqrt(length_sq)
    sine = (e0 * (m1 * n2 - m2 * n1) + e1 * (m2 * n0 - m0 * n2) + e2 * (m0 * n1 - m1 * n0)) / length
    bend = np.arctan2(sine, m0 * n0 + m1 * n1 + m2 * n2) - sheet.angles[h]
    if bend > np.pi:
        bend -= 2.0 * np.pi
    elif bend < -np.pi:
        bend += 2.0 * np.pi
    # both sides fade by the same factor, so that no torque is left
    fade = min(1.0, m_sq / (4.0 * FADE * sheet.areas[t1] ** 2), n_sq / (4.0 * FADE * sheet.areas[t2] ** 2))
    of_c, of_d = fade * length / m_sq, fade * length / n_sq
    at_c = at_d = 0.0  # where the feet of c and d stand, from a (0) to b (1)
    for r in range(3):
        e_r = x[b, r] - x[a, r]
        at_c += (x[c, r] - x[a, r]) * e_r
        at_d += (x[d, r] - x[a, r]) * e_r
    at_c /= length_sq
    at_d /= length_sq
    rate = 0.0
    for r in range(3):
        up_c = of_c * n[t1, r]
        up_d = of_d * sign * n[t2, r]
        slope_a, slope_b = (1.0 - at_c) * up_c + (1.0 - at_d) * up_d, at_c * up_c + at_d * up_d
        work.rows[4 * h, r] = slope_a
        work.rows[4 * h + 1, r] = slope_b
        work.rows[4 * h + 2, r] = -up_c
        work.rows[4 * h + 3, r] = -up_d
        rate += slope_a * v[a, r] + slope_b * v[b, r] - up_c * v[c, r] - up_d * v[d, r]
    work.bends[h] = bend + sheet.damping * rate


@kernel(parallel=True)
def update_hinges(x: Floats, v: Floats, sheet: Sheet, work: Work) -> None:
    """Overwrite all of `work` but the derivatives of moments."""
    triangles, normals = sheet.triangles, work.normals
    for t in prange(len(triangles)):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        p0, p1, p2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        q0, q1, q2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
        normals[t, 0] = p1 * q2 - p2 * q1
        normals[t, 1] = p2 * q0 - p0 * q2
        normals[t, 2] = p0 * q1 - p1 * q0
    for h in prange(len(sheet.hinges)):
        _update_hinge(x, v, sheet, h, work)


@kernel(parallel=True)
def add_hinge_forces(rows: Floats, moments: Floats, end_starts: Ints, ends: Ints, forces_out: Floats) -> None:
    """Add the forces of hinges, gathered vertex by vertex; an end is 4 times its hinge plus its place: its row."""
    for vi in prange(len(forces_out)):
        f0 = f1 = f2 = 0.0
        for k in range(end_starts[vi], end_starts[vi + 1]):
            moment = moments[ends[k] // 4]
            f0 -= moment * rows[ends[k], 0]
            f1 -= moment * rows[ends[k], 1]
            f2 -= moment * rows[ends[k], 2]
        forces_out[vi, 0] += f0
        forces_out[vi, 1] += f1
        forces_out[vi, 2] += f2


@kernel
def _update_moment_slopes(sheet: Sheet, t: int, work: Work) -> None:
    """Derivative of the moments on the hinges of triangle t by its corners."""
    first = 4 * len(sheet.hinges) + 9 * t
    for k in range(3):
        for i in range(3):
            d0 = d1 = d2 = 0.0
            for other in range(3):
                row = sheet.corner_rows[t, other, i]
                if row >= 0:
                    w = sheet.weights[t, k, other]
                    d0 += w * work.rows[row, 0]
                    d1 += w * work.rows[row, 1]
                    d2 += w * work.rows[row, 2]
            work.rows[first + 3 * k + i, 0] = d0
            work.rows[first + 3 * k + i, 1] = d1
            work.rows[first + 3 * k + i, 2] = d2


@kernel(parallel=True)
def add_hinge_blocks(
    sheet: Sheet, work: Work, terms: Terms, pair_rows: Ints, stiffness_out: Floats, damping_out: Floats
) -> None:
    """Add the block of each pair, the sum of its terms, to the row that `pair_rows` names."""
    for t in prange(len(sheet.triangles)):
        _update_moment_slopes(sheet, t, work)
    for p in prange(len(pair_rows)):
        b00 = b01 = b02 = b10 = b11 = b12 = b20 = b21 = b22 = 0.0
        for k in range(terms.starts[p], terms.starts[p + 1]):
            left, right, factor = terms.left[k], terms.right[k], terms.factors[k]
            l0, l1, l2 = factor * work.rows[left, 0], factor * work.rows[left, 1], factor * work.rows[left, 2]
            r0, r1, r2 = work.rows[right, 0], work.rows[right, 1], work.rows[right, 2]
            b00 += l0 * r0
            b01 += l0 * r1
            b02 += l0 * r2
            b10 += l1 * r0
            b11 += l1 * r1
            b12 += l1 * r2
            b20 += l2 * r0
            b21 += l2 * r1
            b22 += l2 * r2
        block = ((b00, b01, b02), (b10, b11, b12), (b20, b21, b22))
        for r in range(3):
            for c in range(3):
                stiffness_out[pair_rows[p], r, c] += block[r][c]
                damping_out[pair_rows[p], r, c] += sheet.damping * block[r][c]
