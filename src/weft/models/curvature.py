"""Bending: an energy about vectors of curvature, whose matrix never changes.

M. Bergou, M. Wardetzky, D. Harmon, D. Zorin, E. Grinspun, "A quadratic bending model for inextensible surfaces", SGP
2006. Each hinge combines its four vertices with weights that the shape at rest gives,

    c = s_a x_a + s_b x_b + s_c x_c + s_d x_d,    s_c = -1 / h1, s_d = -1 / h2,

s_a and s_b such that any flat, evenly strained hinge has c = 0. A hinge folded by t without stretching has a c of
length 2 sin(t / 2) along the mean n of its two normals. In place of the angles, the vectors d = c - 2 sin(t0 / 2) n, t0
the angle at rest, go into the weights of `weft.models.hinge`: E = 1/2 sum of W_kl d_k . d_l. Small folds cost what they
cost by their angles, and a flat hinge folded by 90 degrees a fifth less.

Where all is flat at rest, the energy is 1/2 x^T Q x: positive semi-definite by construction, linear forces -Q x, exact
derivative, and no special case where triangles collapse. Where it has angles, such as a garment that was modelled in
three dimensions, n turns with the cloth. Forces follow it, and the matrix stays Q: it leaves out that n turns, so it is
too stiff against a fold that turns as a whole, by the share 4 sin^2(t0 / 2). A step that is linear about where inertia
leads feels that only where the turning changes within the step, and Newton's method finds the same end with it.

Limits: n is lost where a fold closes (beyond 169 degrees) and where a triangle is squeezed below a tenth of its area;
what holds the angle at rest fades out there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, triu

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange
from weft.models.fabrics import Fabric
from weft.models.hinge import Frames, Hinges, build_weights, gather_weights

SMALLEST = 1e-12  # entries of Q below this share of the largest are round-off
SQUEEZED = 0.1  # share of its area at rest below which a triangle's normal fades
CLOSED = 0.2  # length of the sum of two normals below which their mean fades: a fold by 169 degrees


class Creases(NamedTuple):
    """The hinges of a cloth with angles at rest."""

    hinges: Ints
    """(h, 4)"""
    shares: Floats
    """(h, 4) s_a to s_d [1/m]"""
    sides: Ints
    """(h, 2)"""
    signs: Floats
    """(h,)"""
    lengths: Floats
    """(h,) 2 sin(t0 / 2)"""
    triangles: Ints
    """(m, 3)"""
    triangle_hinges: Ints
    """(m, 3)"""
    least: Floats
    """(m,) length of N = (x_b - x_a) x (x_c - x_a) below which a normal fades [m2]"""


class Work(NamedTuple):
    """What follows from positions."""

    normals: Floats
    """(m, 3) N over its length or `least`"""
    lengths: Floats
    """(m,) that length [m2]"""
    means: Floats
    """(h, 3) n, shorter than 1 where the fold closes"""
    inverses: Floats
    """(h,) 1 over the length of the sum of both normals"""
    bends: Floats
    """(h, 3) d"""
    moments: Floats
    """(h, 3) W d [N m]"""
    pulls: Floats
    """(m, 3) the energy's derivative by N, with a minus [N/m]; forces alone need it"""


class Curvature:
    """Bending of one cloth about the angles (h,) of its hinges at rest; None for a flat one.

    Attributes
    ----------
    pairs : (p, 2) the vertices that it couples, the smaller first
    stiffness : (p,) the block of each pair, times the identity [N/m]
    """

    def __init__(self, mesh: Mesh, frames: Frames, hinges: Hinges, fabric: Fabric, angles: Floats | None) -> None:
        weights = build_weights(mesh, frames, hinges, fabric.bending_weft, fabric.bending_warp)
        shares = _build_shares(mesh, hinges)
        between, stencils = gather_weights(hinges, weights), _build_stencils(mesh, hinges, shares)
        self._weights, self._stencils = _parts(between), _parts(stencils)
        q = triu(stencils.T @ (between @ stencils), k=1).tocoo()
        kept = np.abs(q.data) > SMALLEST * np.abs(q.data).max(initial=0.0)
        i, j, self.stiffness = q.row[kept], q.col[kept], np.ascontiguousarray(q.data[kept])
        self.pairs: Ints = np.ascontiguousarray(np.stack([i, j], axis=1), np.int32)
        # The diagonal makes row sums vanish, as a solver completes it.
        ends, k = np.concatenate([i, j]), np.tile(self.stiffness, 2)
        diagonal = np.bincount(ends, -k, minlength=mesh.n_vertices)
        everyone = np.arange(mesh.n_vertices)
        row, column = np.concatenate([i, j, everyone]), np.concatenate([j, i, everyone])
        self._matrix = _parts(csr_array((np.concatenate([k, diagonal]), (row, column)), shape=(mesh.n_vertices,) * 2))
        self._creases = None
        if angles is not None:
            m, h = len(mesh.triangles), len(hinges.vertices)
            self._creases = _build_creases(mesh, hinges, shares, angles)
            self._work = Work(
                normals=np.zeros((m, 3)),
                lengths=np.zeros(m),
                means=np.zeros((h, 3)),
                inverses=np.zeros(h),
                bends=np.zeros((h, 3)),
                moments=np.zeros((h, 3)),
                pulls=np.zeros((m, 3)),
            )
            self._ends = group_rows(hinges.vertices.ravel(), np.arange(4 * h, dtype=np.int32), mesh.n_vertices)
            self._corners = group_rows(mesh.triangles.ravel(), np.arange(3 * m, dtype=np.int32), mesh.n_vertices)

    def energy(self, x: Floats) -> float:
        if self._creases is None:
            bends = sparse_product(*self._stencils, x)
            return 0.5 * float((bends * sparse_product(*self._weights, bends)).sum())
        bend_creases(x, self._creases, *self._weights, self._work)
        return 0.5 * float((self._work.bends * self._work.moments).sum())

    def add_forces(self, x: Floats, forces_out: Floats) -> None:
        if self._creases is None:
            forces_out -= sparse_product(*self._matrix, x)
        else:
            bend_creases(x, self._creases, *self._weights, self._work)
            pull_creases(self._creases, self._work)
            add_crease_forces(x, self._creases, self._work, *self._ends, *self._corners, forces_out)


def _build_shares(mesh: Mesh, hinges: Hinges) -> Floats:
    """The weights (h, 4) of the vertices of each hinge [1/m], on both its triangles unfolded into one plane."""
    a, b, c, d = (mesh.positions[hinges.vertices[:, k]] for k in range(4))
    edge = b - a
    length_sq = (edge**2).sum(axis=1)
    at_c, at_d = (((p - a) * edge).sum(axis=1) / length_sq for p in (c, d))
    inv_c, inv_d = (1.0 / np.linalg.norm(p - a - at[:, None] * edge, axis=1) for p, at in ((c, at_c), (d, at_d)))
    shares = [(1.0 - at_c) * inv_c + (1.0 - at_d) * inv_d, at_c * inv_c + at_d * inv_d, -inv_c, -inv_d]
    return np.stack(shares, axis=1)


def _build_stencils(mesh: Mesh, hinges: Hinges, shares: Floats) -> csr_array:
    """The shares as a matrix (h, n)."""
    rows = np.repeat(np.arange(len(shares)), 4)
    return csr_array((shares.ravel(), (rows, hinges.vertices.ravel())), shape=(len(shares), mesh.n_vertices))


def _build_creases(mesh: Mesh, hinges: Hinges, shares: Floats, angles: Floats) -> Creases:
    corners = mesh.positions[mesh.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return Creases(
        hinges=hinges.vertices,
        shares=shares,
        sides=hinges.sides,
        signs=hinges.signs,
        lengths=2.0 * np.sin(0.5 * angles),
        triangles=np.ascontiguousarray(mesh.triangles),
        triangle_hinges=np.ascontiguousarray(hinges.of_triangle),
        least=SQUEEZED * np.linalg.norm(normals, axis=1),
    )


def _parts(matrix: csr_array) -> tuple[Ints, Ints, Floats]:
    return matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), np.ascontiguousarray(matrix.data)


@kernel(parallel=True)
def sparse_product(starts: Ints, columns: Ints, values: Floats, x: Floats) -> Floats:
    """The product (m, 3) of a matrix in rows with `x` (n, 3); SciPy's runs on one thread."""
    m = len(starts) - 1
    out = np.empty((m, 3))
    for i in prange(m):
        y0 = y1 = y2 = 0.0
        for k in range(starts[i], starts[i + 1]):
            j, value = columns[k], values[k]
            y0 += value * x[j, 0]
            y1 += value * x[j, 1]
            y2 += value * x[j, 2]
        out[i, 0], out[i, 1], out[i, 2] = y0, y1, y2
    return out


@kernel(parallel=True)
def bend_creases(
    x: Floats, creases: Creases, weight_starts: Ints, weight_columns: Ints, weights: Floats, work: Work
) -> None:
    """Overwrite all of `work` but the pulls."""
    triangles = creases.triangles
    normals, lengths, means, inverses, bends, moments, _pulls = work
    m, n_hinges = len(triangles), len(creases.hinges)
    for t in prange(m):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        p0, p1, p2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        q0, q1, q2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
        n0, n1, n2 = p1 * q2 - p2 * q1, p2 * q0 - p0 * q2, p0 * q1 - p1 * q0
        lengths[t] = max(np.sqrt(n0 * n0 + n1 * n1 + n2 * n2), creases.least[t])
        normals[t, 0], normals[t, 1], normals[t, 2] = n0 / lengths[t], n1 / lengths[t], n2 / lengths[t]
    for h in prange(n_hinges):
        a, b, c, d = creases.hinges[h, 0], creases.hinges[h, 1], creases.hinges[h, 2], creases.hinges[h, 3]
        at_a, at_b, at_c, at_d = creases.shares[h, 0], creases.shares[h, 1], creases.shares[h, 2], creases.shares[h, 3]
        t1, t2, sign, length = creases.sides[h, 0], creases.sides[h, 1], creases.signs[h], creases.lengths[h]
        square = 0.0
        for r in range(3):
            bends[h, r] = at_a * x[a, r] + at_b * x[b, r] + at_c * x[c, r] + at_d * x[d, r]
            means[h, r] = normals[t1, r] + sign * normals[t2, r]
            square += means[h, r] * means[h, r]
        inverses[h] = 1.0 / max(np.sqrt(square), CLOSED)
        for r in range(3):
            means[h, r] *= inverses[h]
            bends[h, r] -= length * means[h, r]
    moments[:] = sparse_product(weight_starts, weight_columns, weights, bends)


@kernel(parallel=True)
def pull_creases(creases: Creases, work: Work) -> None:
    """Overwrite the pulls of `work`."""
    normals, lengths, means, inverses, _bends, moments, pulls = work
    m, n_hinges = len(normals), len(means)
    slopes = np.empty((n_hinges, 3))  # of the energy by the sum of both normals, with a minus
    for h in prange(n_hinges):
        m0, m1, m2 = moments[h, 0], moments[h, 1], moments[h, 2]
        n0, n1, n2 = means[h, 0], means[h, 1], means[h, 2]
        along = m0 * n0 + m1 * n1 + m2 * n2 if inverses[h] * CLOSED < 1.0 else 0.0
        slope = creases.lengths[h] * inverses[h]
        slopes[h, 0], slopes[h, 1], slopes[h, 2] = (
            slope * (m0 - along * n0),
            slope * (m1 - along * n1),
            slope * (m2 - along * n2),
        )
    for t in prange(m):
        g0 = g1 = g2 = 0.0
        for k in range(3):
            h = creases.triangle_hinges[t, k]
            if h >= 0:
                sign = 1.0 if creases.sides[h, 0] == t else creases.signs[h]
                g0 += sign * slopes[h, 0]
                g1 += sign * slopes[h, 1]
                g2 += sign * slopes[h, 2]
        n0, n1, n2 = normals[t, 0], normals[t, 1], normals[t, 2]
        along = g0 * n0 + g1 * n1 + g2 * n2 if lengths[t] > creases.least[t] else 0.0
        pulls[t, 0] = (g0 - along * n0) / lengths[t]
        pulls[t, 1] = (g1 - along * n1) / lengths[t]
        pulls[t, 2] = (g2 - along * n2) / lengths[t]


@kernel(parallel=True)
def add_crease_forces(
    x: Floats,
    creases: Creases,
    work: Work,
    end_starts: Ints,
    ends: Ints,
    corner_starts: Ints,
    corners: Ints,
    forces_out: Floats,
) -> None:
    """Add the forces, gathered vertex by vertex: an end is 4 times its hinge plus its place, a corner 3 times its
    triangle plus its place."""
    triangles = creases.triangles
    for vi in prange(len(forces_out)):
        f0 = f1 = f2 = 0.0
        for k in range(end_starts[vi], end_starts[vi + 1]):
            h = ends[k] // 4
            share = creases.shares[h, ends[k] - 4 * h]
            f0 -= share * work.moments[h, 0]
            f1 -= share * work.moments[h, 1]
            f2 -= share * work.moments[h, 2]
        for k in range(corner_starts[vi], corner_starts[vi + 1]):  # N changes by dx x (next corner - the one after)
            t = corners[k] // 3
            place = corners[k] - 3 * t
            j, i = triangles[t, (place + 1) % 3], triangles[t, (place + 2) % 3]
            e0, e1, e2 = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            u0, u1, u2 = work.pulls[t, 0], work.pulls[t, 1], work.pulls[t, 2]
            f0 += e1 * u2 - e2 * u1
            f1 += e2 * u0 - e0 * u2
            f2 += e0 * u1 - e1 * u0
        forces_out[vi, 0] += f0
        forces_out[vi, 1] += f1
        forces_out[vi, 2] += f2
