"""A thin orthotropic shell on any triangle mesh: measured stiffness in, the same cloth at any resolution out.

Membrane: linear triangles. With the deformation gradient F = (F_u, F_v) along weft and warp, Green's strain is
E_uu = (F_u . F_u - 1) / 2, E_vv likewise, and the shear 2 E_uv = F_u . F_v; the energy per area is

    1/2 (C_uu E_uu^2 + 2 C_uv E_uu E_vv + C_vv E_vv^2 + G (2 E_uv)^2)      (St. Venant-Kirchhoff, orthotropic)

with C_uu = Y_u / (1 - p^2), C_vv = Y_v / (1 - p^2), C_uv = p sqrt(Y_u Y_v) / (1 - p^2), p the fabric's Poisson ratio:
a strip pulled alone shows exactly Y. The second derivative is B^T C B plus the stress times the identity. The first
part is never negative, and the second is kept from it by dropping the negative principal stresses, found in closed
form: under tension the matrix is exact.

Bending: hinges, weighted triangle by triangle (`weft.models.hinge`), about the angles at rest. Its matrix is that of
Gauss and Newton, J^T W J, which is positive semi-definite and exact where the cloth is at its rest angles.

Damping: stiffness-proportional, both in the plane and in bending: strain + tau * strain rate in place of strain.

Limits: an angle beyond 180 degrees wraps around, since the fold has passed through itself. Where a triangle is squeezed
below a tenth of its area, its hinges fade out. On unstructured meshes, flat triangles cannot follow a curvature k
without stretching by (k h)^2 / 24, so that for edges h the cloth is stiffer by about Y k^2 h^4 / (600 B) of its
bending: refine where folds are sharp.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from weft.arrays import Bools, Floats, Ints
from weft.geometry.mesh import Mesh
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange
from weft.models.fabrics import Fabric
from weft.models.hinge import Frames, Hinges, build_frames, build_hinges, build_weights
from weft.parameters import Parameters, quantity

FADE = 0.01  # square of the share of its area below which a triangle's hinges fade out


class ShellParameters(Parameters):
    """What the cloth's shape at rest is."""

    rest: Literal["mesh", "flat"] = quantity(
        "angles at rest: those of the mesh, or zero, as for cloth cut from a bolt", default="mesh"
    )


class Sheet(NamedTuple):
    """One cloth at rest."""

    triangles: Ints
    """(m, 3)"""
    gradients: Floats
    """(m, 3, 2) derivative of each corner's share by u and v [1/m]"""
    areas: Floats
    """(m,) [m2]"""
    moduli: Floats
    """(4,) C_uu, C_uv, C_vv, G [N/m]"""
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
    """What follows from positions and velocities, element by element."""

    deformation: Floats
    """(m, 2, 3) F_u, F_v"""
    stress: Floats
    """(m, 3) S_uu, S_uv, S_vv, damping included [N/m]"""
    tension: Floats
    """(m, 3) the same without damping and without compression"""
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
    corner_starts: Ints
    """(p + 1,) triangles of each pair"""
    corners: Ints
    """9 times the triangle plus 3 times the place of the pair's first vertex in it, plus that of its second"""


class Shell:
    """Orthotropic membrane and hinge bending on any triangle mesh, in measured units.

    The default for cloth: the fabric's figures mean the same on a grid, on its refinement and on an unstructured mesh.
    """

    Parameters = ShellParameters

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: ShellParameters | None = None) -> None:
        p = parameters or ShellParameters()
        frames = build_frames(mesh)
        self.sheet = _build_sheet(mesh, fabric, frames)
        m, h = len(self.sheet.triangles), len(self.sheet.hinges)
        self._work = Work(
            np.zeros((m, 2, 3)),
            np.zeros((m, 3)),
            np.zeros((m, 3)),
            np.zeros((m, 3)),
            np.zeros(h),
            np.zeros((4 * h + 9 * m, 3)),
        )
        self._still = np.zeros_like(mesh.positions)
        self._last = np.full((2, *mesh.positions.shape), np.nan)
        corner = np.arange(3 * m, dtype=np.int32)
        self._corners = group_rows(self.sheet.triangles.ravel(), corner, mesh.n_vertices)
        self._ends = group_rows(self.sheet.hinges.ravel(), np.arange(4 * h, dtype=np.int32), mesh.n_vertices)
        self._weights = _gather_weights(self.sheet)
        self.pairs, self._terms = _build_terms(self.sheet)
        if p.rest == "mesh":
            self._update(mesh.positions, self._still)
            self.sheet.angles[:] = self._work.bends
            self._last[:] = np.nan

    def energy(self, x: Floats) -> float:
        self._update(x, self._still)
        s, w = self.sheet, self._work
        along, across = w.deformation[:, 0], w.deformation[:, 1]
        strain = np.stack([(along**2).sum(1) - 1.0, 2.0 * (along * across).sum(1), (across**2).sum(1) - 1.0], axis=1)
        stretching = 0.25 * s.areas @ (w.stress * strain).sum(axis=1)
        return float(stretching + 0.5 * w.bends @ (self._weights @ w.bends))

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        self._update(x, v)
        s, w = self.sheet, self._work
        moments = self._weights @ w.bends
        add_element_forces(
            s.gradients, s.areas, w.deformation, w.stress, w.rows, moments, *self._corners, *self._ends, forces_out
        )

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        self._update(x, v)
        update_blocks(self.sheet, self._work, self._terms, stiffness_out, damping_out)

    def _update(self, x: Floats, v: Floats) -> None:
        """Bring the elements up to date, unless the last call, for forces or derivatives, was at the same state."""
        if not (np.array_equal(x, self._last[0]) and np.array_equal(v, self._last[1])):
            update_elements(x, v, self.sheet, self._work)
            self._last[0], self._last[1] = x, v


def _build_sheet(mesh: Mesh, fabric: Fabric, frames: Frames) -> Sheet:
    corners = mesh.positions[mesh.triangles]
    edges = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=1)
    flat = np.stack([(edges * frames.weft[:, None]).sum(axis=2), (edges * frames.warp[:, None]).sum(axis=2)], axis=2)
    inverse = np.swapaxes(np.linalg.inv(flat), 1, 2)  # row k: the gradient of the share of corner k + 1
    gradients = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
    poisson = fabric.poisson
    y_u, y_v = fabric.stretch_weft / (1.0 - poisson**2), fabric.stretch_warp / (1.0 - poisson**2)
    hinges = build_hinges(mesh)
    return Sheet(
        triangles=np.ascontiguousarray(mesh.triangles),
        gradients=np.ascontiguousarray(gradients),
        areas=0.5 * np.linalg.det(flat),
        moduli=np.array([y_u, poisson * np.sqrt(y_u * y_v), y_v, fabric.shear]),
        hinges=hinges.vertices,
        sides=hinges.sides,
        signs=hinges.signs,
        triangle_hinges=np.ascontiguousarray(hinges.of_triangle),
        weights=build_weights(mesh, frames, hinges, fabric.bending_weft, fabric.bending_warp),
        corner_rows=_corner_rows(mesh, hinges),
        angles=np.zeros(len(hinges.vertices)),
        damping=float(fabric.damping),
    )


def _gather_weights(sheet: Sheet) -> csr_array:
    """The weights of all triangles together, (h, h): moments from bends."""
    row, column = np.broadcast_arrays(sheet.triangle_hinges[:, :, None], sheet.triangle_hinges[:, None, :])
    used = (row >= 0) & (column >= 0)
    h = len(sheet.hinges)
    return csr_array((sheet.weights[used], (row[used], column[used])), shape=(h, h))


def _corner_rows(mesh: Mesh, hinges: Hinges) -> Ints:
    hinge = hinges.of_triangle
    if not len(hinges.vertices):
        return np.full((len(hinge), 3, 3), -1, np.int32)
    same = hinges.vertices[hinge][:, :, None, :] == mesh.triangles[:, None, :, None]
    rows = 4 * hinge[:, :, None] + same.argmax(axis=3)
    return np.where(hinge[:, :, None] >= 0, rows, -1).astype(np.int32)


def _build_terms(sheet: Sheet) -> tuple[Ints, Terms]:
    """The pairs of vertices that elements couple, and what adds up to their blocks.

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

    corners = 9 * np.arange(m)[:, None] + np.array([1, 5, 6])
    a, b = sheet.triangles, np.roll(sheet.triangles, -1, axis=1)
    corners = np.where(a < b, corners, 9 * np.arange(m)[:, None] + np.array([3, 7, 2]))
    n = int(sheet.triangles.max()) + 1
    keys = np.concatenate([first, np.minimum(a, b).ravel()]).astype(np.int64) * n
    keys += np.concatenate([second, np.maximum(a, b).ravel()])
    unique, pair = np.unique(keys, return_inverse=True)
    pairs = np.ascontiguousarray(np.stack([unique // n, unique % n], axis=1), np.int32)
    own: Ints = pair.astype(np.int32)
    by_pair = group_rows(own[: len(first)], np.arange(len(first), dtype=np.int32), len(pairs))
    order = by_pair.items
    return pairs, Terms(
        by_pair.starts,
        np.ascontiguousarray(left[order], np.int32),
        np.ascontiguousarray(right[order], np.int32),
        np.ascontiguousarray(factors[order], np.float64),
        *group_rows(own[len(first) :], corners.ravel().astype(np.int32), len(pairs)),
    )


@kernel
def _update_triangle(x: Floats, v: Floats, sheet: Sheet, t: int, work: Work) -> None:
    """Deformation, stress and normal of triangle t."""
    a, b, c = sheet.triangles[t, 0], sheet.triangles[t, 1], sheet.triangles[t, 2]
    g = sheet.gradients
    bu, bv, cu, cv = g[t, 1, 0], g[t, 1, 1], g[t, 2, 0], g[t, 2, 1]
    uu = uv = vv = rate_uu = rate_uv = rate_vv = 0.0
    for r in range(3):
        x1, x2 = x[b, r] - x[a, r], x[c, r] - x[a, r]
        v1, v2 = v[b, r] - v[a, r], v[c, r] - v[a, r]
        fu, fv = x1 * bu + x2 * cu, x1 * bv + x2 * cv
        du, dv = v1 * bu + v2 * cu, v1 * bv + v2 * cv
        work.deformation[t, 0, r] = fu
        work.deformation[t, 1, r] = fv
        uu += fu * fu
        uv += fu * fv
        vv += fv * fv
        rate_uu += fu * du
        rate_uv += fu * dv + fv * du
        rate_vv += fv * dv
    c_uu, c_uv, c_vv, shear = sheet.moduli[0], sheet.moduli[1], sheet.moduli[2], sheet.moduli[3]
    e_uu, e_vv = 0.5 * (uu - 1.0), 0.5 * (vv - 1.0)
    s_uu, s_uv, s_vv = c_uu * e_uu + c_uv * e_vv, shear * uv, c_uv * e_uu + c_vv * e_vv
    tau = sheet.damping
    work.stress[t, 0] = s_uu + tau * (c_uu * rate_uu + c_uv * rate_vv)
    work.stress[t, 1] = s_uv + tau * shear * rate_uv
    work.stress[t, 2] = s_vv + tau * (c_uv * rate_uu + c_vv * rate_vv)

    mean, half = 0.5 * (s_uu + s_vv), 0.5 * (s_uu - s_vv)
    radius = np.sqrt(half * half + s_uv * s_uv)
    if mean + radius <= 0.0:
        s_uu = s_uv = s_vv = 0.0
    elif mean < radius:  # one principal stress is compressive: keep the other, (mean + radius) q q^T
        share = 0.5 * (mean + radius) / radius
        s_uu, s_uv, s_vv = share * (radius + half), share * s_uv, share * (radius - half)
    work.tension[t, 0], work.tension[t, 1], work.tension[t, 2] = s_uu, s_uv, s_vv

    p0, p1, p2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    q0, q1, q2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
    work.normals[t, 0] = p1 * q2 - p2 * q1
    work.normals[t, 1] = p2 * q0 - p0 * q2
    work.normals[t, 2] = p0 * q1 - p1 * q0


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
def update_elements(x: Floats, v: Floats, sheet: Sheet, work: Work) -> None:
    """Overwrite all of `work` but the derivatives of moments."""
    for t in prange(len(sheet.triangles)):
        _update_triangle(x, v, sheet, t, work)
    for h in prange(len(sheet.hinges)):
        _update_hinge(x, v, sheet, h, work)


@kernel(parallel=True)
def add_element_forces(
    gradients: Floats,
    areas: Floats,
    deformation: Floats,
    stress: Floats,
    rows: Floats,
    moments: Floats,
    corner_starts: Ints,
    corners: Ints,
    end_starts: Ints,
    ends: Ints,
    forces_out: Floats,
) -> None:
    """Add the forces of triangles and hinges, gathered vertex by vertex.

    A corner is 3 times its triangle plus its place there, an end 4 times its hinge plus its place: its row.
    """
    for vi in prange(len(forces_out)):
        f0 = f1 = f2 = 0.0
        for k in range(corner_starts[vi], corner_starts[vi + 1]):
            t, i = corners[k] // 3, corners[k] % 3
            gu, gv = gradients[t, i, 0], gradients[t, i, 1]
            s_uu, s_uv, s_vv = stress[t, 0], stress[t, 1], stress[t, 2]
            along, across = areas[t] * (s_uu * gu + s_uv * gv), areas[t] * (s_uv * gu + s_vv * gv)
            f0 -= along * deformation[t, 0, 0] + across * deformation[t, 1, 0]
            f1 -= along * deformation[t, 0, 1] + across * deformation[t, 1, 1]
            f2 -= along * deformation[t, 0, 2] + across * deformation[t, 1, 2]
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


@kernel
def _add_membrane(sheet: Sheet, work: Work, t: int, i: int, j: int, block: Floats) -> float:
    """Add triangle t's part of B^T C B for corners i, j to `block` (3, 3); return that of the tension."""
    area = sheet.areas[t]
    iu, iv = sheet.gradients[t, i, 0], sheet.gradients[t, i, 1]
    ju, jv = sheet.gradients[t, j, 0], sheet.gradients[t, j, 1]
    c_uu, c_uv, c_vv, shear = sheet.moduli[0], sheet.moduli[1], sheet.moduli[2], sheet.moduli[3]
    uu = area * (c_uu * iu * ju + shear * iv * jv)
    uv = area * (c_uv * iu * jv + shear * iv * ju)
    vu = area * (c_uv * iv * ju + shear * iu * jv)
    vv = area * (c_vv * iv * jv + shear * iu * ju)
    f = work.deformation
    for c in range(3):
        by_u, by_v = uu * f[t, 0, c] + uv * f[t, 1, c], vu * f[t, 0, c] + vv * f[t, 1, c]
        for r in range(3):
            block[r, c] += f[t, 0, r] * by_u + f[t, 1, r] * by_v
    s_uu, s_uv, s_vv = work.tension[t, 0], work.tension[t, 1], work.tension[t, 2]
    return float(area * (s_uu * iu * ju + s_uv * (iu * jv + iv * ju) + s_vv * iv * jv))


@kernel(parallel=True)
def update_blocks(sheet: Sheet, work: Work, terms: Terms, stiffness_out: Floats, damping_out: Floats) -> None:
    """Overwrite the block of each pair with the sum of its terms."""
    for t in prange(len(sheet.triangles)):
        _update_moment_slopes(sheet, t, work)
    for p in prange(len(stiffness_out)):
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
        block = stiffness_out[p]
        block[0, 0], block[0, 1], block[0, 2] = b00, b01, b02
        block[1, 0], block[1, 1], block[1, 2] = b10, b11, b12
        block[2, 0], block[2, 1], block[2, 2] = b20, b21, b22
        tension = 0.0
        for k in range(terms.corner_starts[p], terms.corner_starts[p + 1]):
            corner = terms.corners[k]
            tension += _add_membrane(sheet, work, corner // 9, corner // 3 % 3, corner % 3, block)
        for r in range(3):
            for c in range(3):
                damping_out[p, r, c] = sheet.damping * block[r, c]
            block[r, r] += tension
