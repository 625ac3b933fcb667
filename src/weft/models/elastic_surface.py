"""Terzopoulos' elastic surface: energy in the metric and the curvature of a grid, by finite differences.

D. Terzopoulos, J. Platt, A. Barr, K. Fleischer, "Elastically deformable models", SIGGRAPH 1987, as used by J.-D. Liu,
M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22 (1998),
section 2. With r(u, v) the surface and G_ij = r_i . r_j its metric, 1 and 2 standing for u and v:

    E = 1/2 integral of Y_1 ((G_11 - 1) / 2)^2 + Y_2 ((G_22 - 1) / 2)^2 + S G_12^2
                      + B_1 |r_11|^2 + B_2 |r_22|^2 + 2 B_12 |r_12|^2,    B_12 = sqrt(B_1 B_2).

In the words of the paper, eta_11 = Y_1 / 8, eta_12 = S / 4, xi_ij = B_ij / 2: its weights come from the fabric. G_11
lives on the edges along u, G_22 on those along v, G_12 and the twist r_12 on quads, r_11 and r_22 on vertices; at the
border a strip is half as wide.

What we changed. (1) The paper's curvature force is d_ij (beta_ij d_ij r) with beta_ij = xi_ij (B_ij - B0_ij) and
B_ij = n . r_ij, so that it vanishes with the square of the curvature: a flat sheet would not resist bending at all.
The variation of xi B^2 is linear in B. Where lengths are kept, r_ij has no component along the surface, so
|r_ij| = |B_ij|, and we take the energy above, whose force is linear and whose matrix is constant. (2) The damping
gamma dr/dt acts against space itself; here air drag does that, and the fabric's own damping acts on the rates of the
metric, so that it slows neither falling nor turning.

`matrix` decides the derivative that an implicit integrator gets, and with it the linear system A r = g of eq. 2:

* `tangent` (default): the second derivative of E, without what is indefinite. It couples x, y and z.
* `per_coordinate`: the paper's. Forces are written as -K(r) r with the numbers alpha_ij = eta_ij (G_ij - G0_ij) in K,
  and K(r_t) r_{t+dt} is taken: one n x n matrix serves x, y and z alike (eqs. 3 to 5). But at rest alpha is 0 and the
  matrix knows no stretch: it needs steps about as short as explicit ones, and is meant for soft cloth and for
  comparison. Compressed parts, whose alpha is negative, stay on the right-hand side.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from weft.arrays import NO_FLOATS, Floats, Ints
from weft.geometry.mesh import Mesh
from weft.models.connections import Connections, axial_blocks
from weft.models.fabrics import Fabric
from weft.models.lattice import build_lattice, stacked
from weft.parameters import Parameters, quantity

QUAD_PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
# Corners (i, j), (i+1, j), (i+1, j+1), (i, j+1): mean difference along u and along v, and their mixed difference.
ALONG_U = np.array([-0.5, 0.5, 0.5, -0.5])
ALONG_V = np.array([-0.5, -0.5, 0.5, 0.5])
MIXED = np.array([1.0, -1.0, 1.0, -1.0])


class ElasticSurfaceParameters(Parameters):
    """Factors on what the fabric gives, and the matrix of implicit steps."""

    stretch: float = quantity("factor on the stiffness against stretch", default=1.0, gt=0, le=1000)
    shear: float = quantity("factor on the stiffness against shear", default=1.0, ge=0, le=1000)
    bending: float = quantity("factor on the stiffness against bending", default=1.0, ge=0, le=1000)
    matrix: Literal["tangent", "per_coordinate"] = quantity("second derivative, or the paper's K(r)", default="tangent")


class ElasticSurface:
    """Metric and curvature energy on a regular grid (Terzopoulos et al. 1987); refuses any other mesh."""

    Parameters = ElasticSurfaceParameters
    even = NO_FLOATS
    has_jacobians = True
    needs_grid = True

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: ElasticSurfaceParameters | None = None) -> None:
        p = parameters or ElasticSurfaceParameters()
        index, (a, b), half, edges = build_lattice(mesh, "elastic_surface")
        m, n = index.shape
        self._per_coordinate = p.matrix == "per_coordinate"
        self._tau, self._n_vertices = fabric.damping, m * n
        self._edges = Connections(np.concatenate(edges), m * n)
        counts = len(edges[0]), len(edges[1])
        self._rest_sq = np.repeat([a**2, b**2], counts)
        widths = np.tile(half[0], m - 1), np.repeat(half[1], n - 1)  # shares of a full strip
        self._n_quads_of_edge = 2.0 * np.concatenate(widths)
        stiffness = p.stretch * np.repeat([fabric.stretch_weft, fabric.stretch_warp], counts)
        self._stretch = stiffness * np.concatenate(widths) * a * b / self._rest_sq  # [N/m] as of a spring

        self._quads: Ints = stacked(index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:])
        self._quad_edges = _edges_of_quads(m, n)
        self._inv_area = 1.0 / (a * b)
        self._shear = p.shear * fabric.shear * a * b

        bend_pairs, self._bend = _bending_matrix(index, (a, b), half, fabric, p.bending, self._quads)
        quad_pairs = np.concatenate([self._quads[:, list(pair)] for pair in QUAD_PAIRS])
        self.pairs: Ints = np.concatenate([self._edges.pairs, quad_pairs, bend_pairs]).astype(np.int32)
        self._bending = Connections(bend_pairs, m * n)

    def _shears(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """G_12 (q,) and the mean differences (q, 3) of each quad along u and v [m]."""
        corners = x[self._quads]
        p, q = np.einsum("k,qkc->qc", ALONG_U, corners), np.einsum("k,qkc->qc", ALONG_V, corners)
        return (p * q).sum(axis=1) * self._inv_area, p, q

    def _shear_gradients(self, p: Floats, q: Floats) -> Floats:
        """Derivative (q, 4, 3) of G_12 by the corners [1/m]."""
        gradients: Floats = self._inv_area * (
            ALONG_U[None, :, None] * q[:, None, :] + ALONG_V[None, :, None] * p[:, None, :]
        )
        return gradients

    def energy(self, x: Floats) -> float:
        lengths = self._edges.stretch(x).lengths
        strain = 0.5 * (lengths**2 / self._rest_sq - 1.0)
        stretch = 0.5 * (self._stretch * self._rest_sq * strain**2).sum()
        shear = 0.5 * self._shear * (self._shears(x)[0] ** 2).sum()
        apart = x[self._bending.pairs[:, 1]] - x[self._bending.pairs[:, 0]]
        return float(stretch + shear - 0.5 * (self._bend * (apart**2).sum(axis=1)).sum())

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        lengths, directions = self._edges.stretch(x)
        growth = lengths * self._edges.rates(v, directions)
        strain = 0.5 * (lengths**2 / self._rest_sq - 1.0)
        self._edges.add_tensions(
            self._stretch * lengths * (strain + self._tau * growth / self._rest_sq), directions, forces_out
        )
        g, p, q = self._shears(x)
        gradients = self._shear_gradients(p, q)
        rate = np.einsum("qkc,qkc->q", gradients, v[self._quads])
        push = -self._shear * (g + self._tau * rate)[:, None, None] * gradients
        for c in range(3):
            forces_out[:, c] += np.bincount(self._quads.ravel(), push[:, :, c].ravel(), self._n_vertices)
        apart = x[self._bending.pairs[:, 1]] - x[self._bending.pairs[:, 0]]
        self._bending.add_tensions(-self._bend, apart, forces_out)

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        n_edges = len(self._edges.pairs)
        n_shears = n_edges + 6 * len(self._quads)
        lengths, directions = self._edges.stretch(x)
        alpha = 0.5 * self._stretch * (lengths**2 / self._rest_sq - 1.0)
        steep = self._stretch * lengths**2 / self._rest_sq
        pulling = np.maximum(alpha, 0.0)
        along = pulling if self._per_coordinate else np.maximum(alpha + steep, 0.0)
        stiffness_out[:n_edges] = axial_blocks(directions, along, pulling)
        damping_out[:n_edges] = axial_blocks(directions, self._tau * steep)
        g, p, q = self._shears(x)
        gradients = self._shear_gradients(p, q)
        tau_g = self._shear * g * self._inv_area  # energy gains tau_g dp . dq, which is indefinite
        spare = (pulling / self._n_quads_of_edge)[self._quad_edges].min(axis=1)
        # 2 tau_g dp . dq = tau_g / 2 (|dp + dq|^2 - |dp - dq|^2), whose negative part is at most |tau_g| / 2 on each
        # edge: it is kept as far as the tension of the edges outweighs it.
        kept = np.clip(2.0 * spare / np.maximum(np.abs(tau_g), 1e-300), 0.0, 1.0)
        same = 0.5 * tau_g * np.where(tau_g > 0.0, 1.0, kept)
        opposite = -0.5 * tau_g * np.where(tau_g > 0.0, kept, 1.0)
        identity = np.eye(3)
        for k, (i, j) in enumerate(QUAD_PAIRS):
            rows = slice(n_edges + k * len(g), n_edges + (k + 1) * len(g))
            plus = (ALONG_U + ALONG_V)[i] * (ALONG_U + ALONG_V)[j]
            minus = (ALONG_U - ALONG_V)[i] * (ALONG_U - ALONG_V)[j]
            rank_1 = self._shear * gradients[:, i, :, None] * gradients[:, j, None, :]
            coupling = same * plus + opposite * minus
            stiffness_out[rows] = coupling[:, None, None] * identity + (0.0 if self._per_coordinate else rank_1)
            damping_out[rows] = self._tau * rank_1
        stiffness_out[n_shears:] = self._bend[:, None, None] * identity
        damping_out[n_shears:] = 0.0


def _edges_of_quads(m: int, n: int) -> Ints:
    """The four edges (q, 4) of each quad, as rows of the list of edges along u, then along v."""
    u = np.arange((m - 1) * n, dtype=np.int32).reshape(m - 1, n)
    v = np.int32((m - 1) * n) + np.arange(m * (n - 1), dtype=np.int32).reshape(m, n - 1)
    return stacked(u[:, :-1], u[:, 1:], v[:-1], v[1:])


def _bending_matrix(
    index: Ints,
    spacing: tuple[float, float],
    half: tuple[Floats, Floats],
    fabric: Fabric,
    factor: float,
    quads: Ints,
) -> tuple[Ints, Floats]:
    """The constant matrix of the curvature energy: its pairs (p, 2) and entries off the diagonal (p,) [N/m]."""
    a, b = spacing
    weft, warp = factor * fabric.bending_weft, factor * fabric.bending_warp
    second = np.array([1.0, -2.0, 1.0])
    stencils = [
        (stacked(index[:-2], index[1:-1], index[2:]), second,
         np.tile(weft * half[0], len(index) - 2) * b / a**3),
        (stacked(index[:, :-2], index[:, 1:-1], index[:, 2:]), second,
         np.repeat(warp * half[1], index.shape[1] - 2) * a / b**3),
        (quads, MIXED, np.full(len(quads), 2.0 * np.sqrt(weft * warp) / (a * b))),
    ]  # fmt: skip
    pairs, entries = [], []
    for vertices, weights, strength in stencils:
        for i in range(len(weights)):
            for j in range(i):
                pairs.append(np.sort(vertices[:, [i, j]], axis=1))
                entries.append(strength * weights[i] * weights[j])
    every, same = np.unique(np.concatenate(pairs), axis=0, return_inverse=True)
    summed = np.bincount(same.ravel(), np.concatenate(entries), len(every))
    return every.astype(np.int32), summed.astype(np.float64)
