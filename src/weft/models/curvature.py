"""Bending of cloth that is flat at rest: an energy quadratic in the positions, whose matrix never changes.

M. Bergou, M. Wardetzky, D. Harmon, D. Zorin, E. Grinspun, "A quadratic bending model for inextensible surfaces", SGP
2006. Each hinge combines its four vertices with weights that the flat shape gives,

    c = s_a x_a + s_b x_b + s_c x_c + s_d x_d,    s_c = -1 / h1, s_d = -1 / h2,

s_a and s_b such that any flat, evenly strained hinge has c = 0. A hinge folded by t without stretching has a c of
length 2 sin(t / 2) along the mean of its two normals. In place of the angles, the vectors c go into the weights of
`weft.models.hinge`: E = 1/2 sum of W_kl c_k . c_l = 1/2 x^T Q x. Small folds cost what they cost by their angles, and a
hinge folded by 90 degrees a fifth less.

Positive semi-definite by construction, linear forces -Q x, exact derivative, and no special case where triangles
collapse.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, triu

from weft.arrays import Floats, Ints
from weft.geometry.mesh import Mesh
from weft.jit import kernel, prange
from weft.models.fabrics import Fabric
from weft.models.hinge import Frames, Hinges, build_weights, gather_weights

SMALLEST = 1e-12  # entries of Q below this share of the largest are round-off


class Curvature:
    """Quadratic bending of one cloth.

    Attributes
    ----------
    pairs : (p, 2) the vertices that it couples, the smaller first
    stiffness : (p,) the block of each pair, times the identity [N/m]
    """

    is_even = True

    def __init__(self, mesh: Mesh, frames: Frames, hinges: Hinges, fabric: Fabric) -> None:
        weights = build_weights(mesh, frames, hinges, fabric.bending_weft, fabric.bending_warp)
        between, stencils = gather_weights(hinges, weights), _build_stencils(mesh, hinges)
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

    def update(self, x: Floats, v: Floats) -> None:
        """Nothing to prepare."""

    def energy(self, x: Floats) -> float:
        c = sparse_product(*self._stencils, x)
        return 0.5 * float((c * sparse_product(*self._weights, c)).sum())

    def add_forces(self, x: Floats, forces_out: Floats) -> None:
        forces_out -= sparse_product(*self._matrix, x)

    def add_blocks(self, rows: Ints, stiffness_out: Floats, damping_out: Floats) -> None:
        """Nothing beyond `stiffness`."""


def _build_stencils(mesh: Mesh, hinges: Hinges) -> csr_array:
    """The combination of vertices of each hinge, (h, n) [1/m], on both its triangles unfolded into one plane."""
    a, b, c, d = (mesh.positions[hinges.vertices[:, k]] for k in range(4))
    edge = b - a
    length_sq = (edge**2).sum(axis=1)
    at_c, at_d = (((p - a) * edge).sum(axis=1) / length_sq for p in (c, d))
    inv_c, inv_d = (1.0 / np.linalg.norm(p - a - at[:, None] * edge, axis=1) for p, at in ((c, at_c), (d, at_d)))
    shares = [(1.0 - at_c) * inv_c + (1.0 - at_d) * inv_d, at_c * inv_c + at_d * inv_d, -inv_c, -inv_d]
    rows = np.repeat(np.arange(len(edge)), 4)
    return csr_array(
        (np.stack(shares, axis=1).ravel(), (rows, hinges.vertices.ravel())), shape=(len(edge), mesh.n_vertices)
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
