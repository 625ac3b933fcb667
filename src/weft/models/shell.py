"""A thin orthotropic shell on any triangle mesh: measured stiffness in, the same cloth at any resolution out.

Membrane: linear triangles. With the deformation gradient F = (F_u, F_v) along weft and warp, Green's strain is
E_uu = (F_u . F_u - 1) / 2, E_vv likewise, and the shear 2 E_uv = F_u . F_v; the energy per area is

    1/2 (C_uu E_uu^2 + 2 C_uv E_uu E_vv + C_vv E_vv^2 + G (2 E_uv)^2)      (St. Venant-Kirchhoff, orthotropic)

with C_uu = Y_u / (1 - p^2), C_vv = Y_v / (1 - p^2), C_uv = p sqrt(Y_u Y_v) / (1 - p^2), p the fabric's Poisson ratio:
a strip pulled alone shows exactly Y. The second derivative is B^T C B plus the stress times the identity. The first
part is never negative, and the second is kept from it by dropping the negative principal stresses, found in closed
form: under tension the matrix is exact.

Compression: cloth that is pushed buckles, and into folds that the mesh cannot show. A triangle whose stress along the
weft reaches -s_u puts the further strain w_u >= 0 into them, at the price s_u w_u, and along the warp likewise: its
energy is the least over w of that price and of the energy above with E + w in place of E, a convex function of E. The
load s = `buckling` pi^2 B / (2 A), A the area, is Euler's for half-waves of two edges by default (Choi and Ko, "Stable
but responsive cloth", 2002, have such a response between vertices); 2 % of the stiffness stays, so that no triangle
collapses. Fine meshes show folds themselves, and the load goes up with 1 / h^2. The matrix keeps the full stiffness: it
bounds the slope from above, so that a step cannot open a fold too far.

Bending: hinges, weighted triangle by triangle (`weft.models.hinge`), with a matrix that never changes
(`weft.models.curvature`).

Damping: in the plane, stiffness-proportional: strain + tau * strain rate in place of strain. Bending has none: a force
-tau Q v would also brake a bent cloth that turns as a whole.

Limits: flat triangles in no order cannot follow a curvature k without strains of (k h)^2 / 24 that differ from one to
the next. Where edges h are longer than the bending length (B / w)^(1/3), folds that cross the mesh at random are too
stiff; compression is soft, but the strains of the other sign remain.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange
from weft.models.curvature import Curvature
from weft.models.fabrics import Fabric
from weft.models.hinge import Frames, build_frames, build_hinges, rest_angles
from weft.parameters import Parameters, quantity

FLAT = 1e-3  # [rad] a mesh whose angles are all below counts as flat: six digits of a file leave 1e-4
STIFFENING = 0.02  # of the stiffness stays with a triangle that buckles: with none, triangles collapsed


class ShellParameters(Parameters):
    """What the cloth's shape at rest is."""

    rest: Literal["mesh", "flat"] = quantity(
        "angles at rest: those of the mesh, or zero, as for cloth cut from a bolt", default="mesh"
    )
    buckling: float = quantity(
        "load at which a triangle buckles, as a share of Euler's for a strip of its size; large: never",
        default=0.25,
        ge=0,
        le=1e6,
    )


class Membrane(NamedTuple):
    """The triangles of one cloth at rest."""

    triangles: Ints
    """(m, 3)"""
    gradients: Floats
    """(m, 3, 2) derivative of each corner's share by u and v [1/m]"""
    areas: Floats
    """(m,) [m2]"""
    moduli: Floats
    """(4,) C_uu, C_uv, C_vv, G [N/m]"""
    loads: Floats
    """(m, 2) at which the cloth buckles within a triangle, along u and v [N/m]"""
    damping: float
    """[s]"""


class Work(NamedTuple):
    """What follows from positions and velocities, triangle by triangle."""

    deformation: Floats
    """(m, 6) F_u, then F_v"""
    pull: Floats
    """(m, 6) area times F S, S the stress with damping: what F_u and F_v are pulled back by [N m]"""
    tension: Floats
    """(m, 3) S_uu, S_uv, S_vv without damping and without compression [N/m]"""


class Couplings(NamedTuple):
    """What adds up to the block of each pair of vertices, with factors that follow from the shape at rest."""

    starts: Ints
    """(p + 1,) triangles of each pair"""
    triangles: Ints
    """(k,)"""
    factors: Floats
    """(k, 7) of F_u F_u^T, F_u F_v^T, F_v F_u^T, F_v F_v^T [N/m], then of the tensions uu, uv, vv"""
    bending: Floats
    """(p,) block of the quadratic bending energy, times the identity [N/m]"""


class Shell:
    """Orthotropic membrane and hinge bending on any triangle mesh, in measured units.

    The default for cloth: the fabric's figures mean the same on a grid, on its refinement and on an unstructured mesh.
    """

    Parameters = ShellParameters

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: ShellParameters | None = None) -> None:
        p = parameters or ShellParameters()
        frames, hinges = build_frames(mesh), build_hinges(mesh)
        angles = rest_angles(mesh, hinges)
        is_flat = p.rest == "flat" or not (np.abs(angles) > FLAT).any()
        self._bending = Curvature(mesh, frames, hinges, fabric, None if is_flat else angles)
        self._membrane = _build_membrane(mesh, fabric, frames, p.buckling)
        self.pairs, self.even, self._couplings = _build_couplings(self._membrane, self._bending)
        m = len(mesh.triangles)
        self._corners = group_rows(mesh.triangles.ravel(), np.arange(3 * m, dtype=np.int32), mesh.n_vertices)
        self._work = Work(np.zeros((m, 6)), np.zeros((m, 6)), np.zeros((m, 3)))
        self._last = np.full((2, *mesh.positions.shape), np.nan)

    def energy(self, x: Floats) -> float:
        return float(membrane_energies(x, self._membrane).sum()) + self._bending.energy(x)

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        self._update(x, v)
        add_membrane_forces(self._membrane.gradients, self._work.pull, *self._corners, forces_out)
        self._bending.add_forces(x, forces_out)

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        self._update(x, v)
        update_blocks(self._work, self._couplings, self._membrane.damping, stiffness_out, damping_out)

    def _update(self, x: Floats, v: Floats) -> None:
        """Bring the elements up to date, unless the last call, for forces or derivatives, was at the same state."""
        if not (np.array_equal(x, self._last[0]) and np.array_equal(v, self._last[1])):
            update_triangles(x, v, self._membrane, self._work)
            self._last[0], self._last[1] = x, v


def _build_membrane(mesh: Mesh, fabric: Fabric, frames: Frames, buckling: float) -> Membrane:
    corners = mesh.positions[mesh.triangles]
    edges = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=1)
    flat = np.stack([(edges * frames.weft[:, None]).sum(axis=2), (edges * frames.warp[:, None]).sum(axis=2)], axis=2)
    inverse = np.swapaxes(np.linalg.inv(flat), 1, 2)  # row k: the gradient of the share of corner k + 1
    gradients = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
    poisson = fabric.poisson
    y_u, y_v = fabric.stretch_weft / (1.0 - poisson**2), fabric.stretch_warp / (1.0 - poisson**2)
    return Membrane(
        triangles=np.ascontiguousarray(mesh.triangles),
        gradients=np.ascontiguousarray(gradients),
        areas=0.5 * np.linalg.det(flat),
        moduli=np.array([y_u, poisson * np.sqrt(y_u * y_v), y_v, fabric.shear]),
        loads=np.outer(buckling * np.pi**2 / np.linalg.det(flat), [fabric.bending_weft, fabric.bending_warp]),
        damping=float(fabric.damping),
    )


def _build_couplings(membrane: Membrane, bending: Curvature) -> tuple[Ints, Floats, Couplings]:
    """The pairs of vertices that triangles or hinges couple, even blocks, and what adds up to the others."""
    a, b = membrane.triangles, np.roll(membrane.triangles, -1, axis=1)
    swap = (a > b).ravel()
    edges = np.stack([np.minimum(a, b).ravel(), np.maximum(a, b).ravel()], axis=1)
    pairs = np.unique(edges, axis=0).astype(np.int32)

    g, area = membrane.gradients, np.repeat(membrane.areas, 3)
    first, second = g.reshape(-1, 2), np.roll(g, -1, axis=1).reshape(-1, 2)
    i, j = np.where(swap[:, None], second, first), np.where(swap[:, None], first, second)
    (iu, iv), (ju, jv) = i.T, j.T
    c_uu, c_uv, c_vv, shear = membrane.moduli
    factors = [
        c_uu * iu * ju + shear * iv * jv,
        c_uv * iu * jv + shear * iv * ju,
        c_uv * iv * ju + shear * iu * jv,
        c_vv * iv * jv + shear * iu * ju,
        iu * ju,
        iu * jv + iv * ju,
        iv * jv,
    ]
    by_pair = group_rows(_find_pairs(edges, pairs), np.arange(len(edges), dtype=np.int32), len(pairs))
    constant = np.zeros(len(pairs))
    found = _find_pairs(bending.pairs, pairs)
    is_apart = found < 0
    constant[found[~is_apart]] = bending.stiffness[~is_apart]
    all_pairs = np.ascontiguousarray(np.concatenate([pairs, bending.pairs[is_apart]]))
    return (
        all_pairs,
        bending.stiffness[is_apart],
        Couplings(
            by_pair.starts,
            by_pair.items // np.int32(3),
            np.ascontiguousarray((area * np.stack(factors)).T[by_pair.items]),
            constant,
        ),
    )


def _find_pairs(wanted: Ints, pairs: Ints) -> Ints:
    """The row of `pairs`, which are sorted, that holds each of `wanted`; -1 for none."""
    n = np.int64(max(pairs.max(initial=0), wanted.max(initial=0))) + 1
    keys, key = pairs[:, 0] * n + pairs[:, 1], wanted[:, 0] * n + wanted[:, 1]
    found = np.searchsorted(keys, key).clip(max=max(len(keys) - 1, 0))
    return np.where(keys[found] == key, found, -1).astype(np.int32)


@kernel
def buckled_strains(over_u: float, over_v: float, c_uu: float, c_uv: float, c_vv: float) -> tuple[float, float]:
    """Strains along u and v that go into folds, where the stresses exceed the loads of buckling by `over`.

    The w >= 0 that make the energy least; where w > 0, the stress is -(load + STIFFENING c w).
    """
    if over_u >= 0.0 and over_v >= 0.0:
        return 0.0, 0.0
    k_u, k_v = (1.0 + STIFFENING) * c_uu, (1.0 + STIFFENING) * c_vv
    w_u, w_v = -over_u / k_u, -over_v / k_v
    if w_u > 0.0 and over_v + c_uv * w_u >= 0.0:
        return w_u, 0.0
    if w_v > 0.0 and over_u + c_uv * w_v >= 0.0:
        return 0.0, w_v
    det = k_u * k_v - c_uv * c_uv
    return (c_uv * over_v - k_v * over_u) / det, (c_uv * over_u - k_u * over_v) / det


@kernel(parallel=True)
def update_triangles(x: Floats, v: Floats, membrane: Membrane, work: Work) -> None:
    """Overwrite all of `work`."""
    triangles, gradients, areas, moduli, loads, tau = membrane
    deformation, pull, tension = work
    c_uu, c_uv, c_vv, shear = moduli[0], moduli[1], moduli[2], moduli[3]
    for t in prange(len(triangles)):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        bu, bv, cu, cv = gradients[t, 1, 0], gradients[t, 1, 1], gradients[t, 2, 0], gradients[t, 2, 1]
        uu = uv = vv = rate_uu = rate_uv = rate_vv = 0.0
        for r in range(3):
            x1, x2 = x[b, r] - x[a, r], x[c, r] - x[a, r]
            v1, v2 = v[b, r] - v[a, r], v[c, r] - v[a, r]
            fu, fv = x1 * bu + x2 * cu, x1 * bv + x2 * cv
            du, dv = v1 * bu + v2 * cu, v1 * bv + v2 * cv
            deformation[t, r] = fu
            deformation[t, 3 + r] = fv
            uu += fu * fu
            uv += fu * fv
            vv += fv * fv
            rate_uu += fu * du
            rate_uv += fu * dv + fv * du
            rate_vv += fv * dv
        e_uu, e_vv = 0.5 * (uu - 1.0), 0.5 * (vv - 1.0)
        s_uu, s_uv, s_vv = c_uu * e_uu + c_uv * e_vv, shear * uv, c_uv * e_uu + c_vv * e_vv
        w_u, w_v = buckled_strains(s_uu + loads[t, 0], s_vv + loads[t, 1], c_uu, c_uv, c_vv)
        s_uu += c_uu * w_u + c_uv * w_v
        s_vv += c_uv * w_u + c_vv * w_v
        area = areas[t]
        d_uu = area * (s_uu + tau * (c_uu * rate_uu + c_uv * rate_vv))
        d_uv = area * (s_uv + tau * shear * rate_uv)
        d_vv = area * (s_vv + tau * (c_uv * rate_uu + c_vv * rate_vv))
        for r in range(3):
            fu, fv = deformation[t, r], deformation[t, 3 + r]
            pull[t, r] = d_uu * fu + d_uv * fv
            pull[t, 3 + r] = d_uv * fu + d_vv * fv

        mean, half = 0.5 * (s_uu + s_vv), 0.5 * (s_uu - s_vv)
        radius = np.sqrt(half * half + s_uv * s_uv)
        if mean + radius <= 0.0:
            s_uu = s_uv = s_vv = 0.0
        elif mean < radius:  # one principal stress is compressive: keep the other, (mean + radius) q q^T
            share = 0.5 * (mean + radius) / radius
            s_uu, s_uv, s_vv = share * (radius + half), share * s_uv, share * (radius - half)
        tension[t, 0], tension[t, 1], tension[t, 2] = s_uu, s_uv, s_vv


@kernel(parallel=True)
def membrane_energies(x: Floats, membrane: Membrane) -> Floats:
    """(m,) [J] of each triangle."""
    triangles, gradients, areas, moduli, loads, _tau = membrane
    c_uu, c_uv, c_vv, shear = moduli[0], moduli[1], moduli[2], moduli[3]
    energies = np.empty(len(triangles))
    for t in prange(len(triangles)):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        bu, bv, cu, cv = gradients[t, 1, 0], gradients[t, 1, 1], gradients[t, 2, 0], gradients[t, 2, 1]
        uu = uv = vv = 0.0
        for r in range(3):
            x1, x2 = x[b, r] - x[a, r], x[c, r] - x[a, r]
            fu, fv = x1 * bu + x2 * cu, x1 * bv + x2 * cv
            uu += fu * fu
            uv += fu * fv
            vv += fv * fv
        e_uu, e_vv = 0.5 * (uu - 1.0), 0.5 * (vv - 1.0)
        load_u, load_v = loads[t, 0], loads[t, 1]
        w_u, w_v = buckled_strains(
            c_uu * e_uu + c_uv * e_vv + load_u, c_uv * e_uu + c_vv * e_vv + load_v, c_uu, c_uv, c_vv
        )
        e_uu, e_vv = e_uu + w_u, e_vv + w_v
        stored = c_uu * (e_uu * e_uu + STIFFENING * w_u * w_u) + c_vv * (e_vv * e_vv + STIFFENING * w_v * w_v)
        density = 0.5 * (stored + shear * uv * uv) + c_uv * e_uu * e_vv + load_u * w_u + load_v * w_v
        energies[t] = areas[t] * density
    return energies


@kernel(parallel=True)
def add_membrane_forces(
    gradients: Floats, pull: Floats, corner_starts: Ints, corners: Ints, forces_out: Floats
) -> None:
    """Add the forces of triangles, gathered vertex by vertex; a corner is 3 times its triangle plus its place there."""
    for vi in prange(len(forces_out)):
        f0 = f1 = f2 = 0.0
        for k in range(corner_starts[vi], corner_starts[vi + 1]):
            t = corners[k] // 3
            i = corners[k] - 3 * t
            gu, gv = gradients[t, i, 0], gradients[t, i, 1]
            f0 -= gu * pull[t, 0] + gv * pull[t, 3]
            f1 -= gu * pull[t, 1] + gv * pull[t, 4]
            f2 -= gu * pull[t, 2] + gv * pull[t, 5]
        forces_out[vi, 0] += f0
        forces_out[vi, 1] += f1
        forces_out[vi, 2] += f2


@kernel(parallel=True)
def update_blocks(work: Work, couplings: Couplings, damping: float, stiffness_out: Floats, damping_out: Floats) -> None:
    """Overwrite the block of each pair with the sum over its triangles, and the constant one of bending."""
    f, s, factors = work.deformation, work.tension, couplings.factors
    for p in prange(len(stiffness_out)):
        b00 = b01 = b02 = b10 = b11 = b12 = b20 = b21 = b22 = 0.0
        even = couplings.bending[p]
        for k in range(couplings.starts[p], couplings.starts[p + 1]):
            t = couplings.triangles[k]
            u0, u1, u2, v0, v1, v2 = f[t, 0], f[t, 1], f[t, 2], f[t, 3], f[t, 4], f[t, 5]
            uu, uv, vu, vv = factors[k, 0], factors[k, 1], factors[k, 2], factors[k, 3]
            p0, p1, p2 = uu * u0 + uv * v0, uu * u1 + uv * v1, uu * u2 + uv * v2
            q0, q1, q2 = vu * u0 + vv * v0, vu * u1 + vv * v1, vu * u2 + vv * v2
            b00 += u0 * p0 + v0 * q0
            b01 += u0 * p1 + v0 * q1
            b02 += u0 * p2 + v0 * q2
            b10 += u1 * p0 + v1 * q0
            b11 += u1 * p1 + v1 * q1
            b12 += u1 * p2 + v1 * q2
            b20 += u2 * p0 + v2 * q0
            b21 += u2 * p1 + v2 * q1
            b22 += u2 * p2 + v2 * q2
            even += factors[k, 4] * s[t, 0] + factors[k, 5] * s[t, 1] + factors[k, 6] * s[t, 2]
        stiffness, rate = stiffness_out[p], damping_out[p]
        stiffness[0, 0], stiffness[0, 1], stiffness[0, 2] = b00 + even, b01, b02
        stiffness[1, 0], stiffness[1, 1], stiffness[1, 2] = b10, b11 + even, b12
        stiffness[2, 0], stiffness[2, 1], stiffness[2, 2] = b20, b21, b22 + even
        rate[0, 0], rate[0, 1], rate[0, 2] = damping * b00, damping * b01, damping * b02
        rate[1, 0], rate[1, 1], rate[1, 2] = damping * b10, damping * b11, damping * b12
        rate[2, 0], rate[2, 1], rate[2, 2] = damping * b20, damping * b21, damping * b22
