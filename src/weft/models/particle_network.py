"""The particle network of Bigliani and Eischen: stretch, shear and bending of square elements, in warp and weft.

B. Bigliani, J. W. Eischen, "Collision detection in cloth modeling", section 3: "a system of square elements where each
vertex is a particle", with in-plane stretch and compression, in-plane shear and out-of-plane bending; elastic
modulus, thickness and weight per area are inputs, the first different in warp and weft; forces and displacements can
be specified at nodes. The paper gives no formulas. Ours, for edges e of length l (L at rest) and direction n:

* stretch and compression along each edge: 1/2 k (l - L)^2, k = Y w / L for a strip of width w;
* shear at each corner of an element, between the edges that meet there: 1/2 S (a b / 4) (n_1 . n_2)^2, the dot product
  being the sine of the shear angle;
* bending between the two edges that follow each other along u or v: k (1 - n_1 . n_2), k = B w / L, which is
  1/2 k t^2 for a small fold t, and 1/2 B c^2 on its area for the curvature c = t / L.

Y, S and B are the fabric's; where `modulus_warp` or `modulus_weft` is given, Y = E h and B = E h^3 / 12 in that
direction, with the fabric's thickness h. The weight is the fabric's density. Specified displacements are the pins
of a scene, with their motion; specified forces are `loads`.

The derivative of bending is that of the fold's vector n_2 - n_1 alone (Gauss-Newton); what it leaves out is smaller by
the square of the fold and need not be positive. For shear the rest is indefinite, and kept as far as the tension of the
edges outweighs it, so that the derivative is exact in stretched cloth. Compressed edges lose what is across them.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import NO_FLOATS, Floats, Ints
from weft.errors import WeftError
from weft.geometry.mesh import Mesh
from weft.models.connections import Connections, axial_blocks
from weft.models.fabrics import Fabric
from weft.models.lattice import build_lattice, stacked
from weft.parameters import Parameters, Vector, quantity

TRIPLE_PAIRS = [(0, 1), (1, 2), (0, 2)]


class Load(Parameters):
    """A force at some vertices of each cloth."""

    vertices: list[int] = quantity("vertices by index", min_length=1)
    force: Vector = quantity("force at each of them", unit="N")


class ParticleNetworkParameters(Parameters):
    """Moduli in place of the fabric's stiffness, and specified forces."""

    modulus_warp: float | None = quantity("elastic modulus along the warp", unit="Pa", default=None, gt=0, le=1e12)
    modulus_weft: float | None = quantity("elastic modulus along the weft", unit="Pa", default=None, gt=0, le=1e12)
    loads: list[Load] = quantity("specified forces", default=[])


class ParticleNetwork:
    """Particles of a regular grid with stretch, shear and bending (Bigliani and Eischen); refuses any other mesh."""

    Parameters = ParticleNetworkParameters
    even = NO_FLOATS
    has_jacobians = True
    needs_grid = True

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: ParticleNetworkParameters | None = None) -> None:
        p = parameters or ParticleNetworkParameters()
        index, (a, b), shares, edges = build_lattice(mesh, "particle_network")
        m, n = index.shape
        width_u, width_v = shares[0] * b, shares[1] * a
        weft = _stiffness(fabric.stretch_weft, fabric.bending_weft, p.modulus_weft, fabric.thickness)
        warp = _stiffness(fabric.stretch_warp, fabric.bending_warp, p.modulus_warp, fabric.thickness)
        self._tau, self._n_vertices = fabric.damping, m * n
        self._edges = Connections(np.concatenate(edges), m * n)
        self._lengths = np.repeat([a, b], [len(edges[0]), len(edges[1])])
        self._stretch = np.concatenate([np.tile(weft[0] * width_u / a, m - 1), np.repeat(warp[0] * width_v / b, n - 1)])

        # Triples (first, middle, last): e_1 and e_2 join the middle to both ends at a corner, and follow each other
        # through the middle in a fold.
        self._corners, self._corner_edges, crowd = _corners(index)
        self._crowd = crowd  # corners that lean on each edge
        self._shear = fabric.shear * a * b / 4.0
        folds = [stacked(index[:-2], index[1:-1], index[2:]), stacked(index[:, :-2], index[:, 1:-1], index[:, 2:])]
        self._folds: Ints = np.concatenate(folds)
        self._bend = np.concatenate([np.tile(weft[1] * width_u / a, m - 2), np.repeat(warp[1] * width_v / b, n - 2)])
        triples = [t[:, list(pair)] for t in (self._corners, self._folds) for pair in TRIPLE_PAIRS]
        self.pairs: Ints = np.concatenate([self._edges.pairs, *triples]).astype(np.int32)
        self._loads = _gather_loads(p.loads, m * n)

    def energy(self, x: Floats) -> float:
        stretch = 0.5 * (self._stretch * (self._edges.stretch(x).lengths - self._lengths) ** 2).sum()
        shear = 0.5 * self._shear * (_dots(_corner_vectors(x, self._corners)) ** 2).sum()
        bend = (self._bend * (1.0 - _dots(_fold_vectors(x, self._folds)))).sum()
        return float(stretch + shear + bend - (self._loads * x).sum())

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        lengths, directions = self._edges.stretch(x)
        rates = self._edges.rates(v, directions)
        tension = self._stretch * (lengths - self._lengths + self._tau * rates)
        self._edges.add_tensions(tension, directions, forces_out)
        first, last = _corner_vectors(x, self._corners)
        by_first, by_last = _dot_gradients(first, last)
        sine = _dots((first, last))
        v_first, v_last = _corner_vectors(v, self._corners)
        rate = (by_first * v_first + by_last * v_last).sum(axis=1)
        pull = -self._shear * (sine + self._tau * rate)[:, None]
        self._add_triples(self._corners, pull * by_first, -pull * (by_first + by_last), pull * by_last, forces_out)
        by_first, by_last = _dot_gradients(*_fold_vectors(x, self._folds))
        pull = self._bend[:, None]
        self._add_triples(self._folds, -pull * by_first, pull * (by_first - by_last), pull * by_last, forces_out)
        forces_out += self._loads

    def _add_triples(self, triples: Ints, first: Floats, middle: Floats, last: Floats, forces_out: Floats) -> None:
        each = np.stack([first, middle, last], axis=1)
        for c in range(3):
            forces_out[:, c] += np.bincount(triples.ravel(), each[:, :, c].ravel(), self._n_vertices)

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        n_edges, n_corners, n_folds = len(self._edges.pairs), len(self._corners), len(self._folds)
        lengths, directions = self._edges.stretch(x)
        pulling = self._stretch * np.maximum(0.0, 1.0 - self._lengths / np.where(lengths > 0.0, lengths, 1.0))
        stiffness_out[:n_edges] = axial_blocks(directions, self._stretch, pulling)
        damping_out[:n_edges] = axial_blocks(directions, self._tau * self._stretch)

        first, last = _corner_vectors(x, self._corners)
        by_first, by_last = _dot_gradients(first, last)
        spare = (pulling / self._crowd)[self._corner_edges].min(axis=1)
        sine = _dots((first, last))
        shortest_sq = np.minimum((first**2).sum(axis=1), (last**2).sum(axis=1))
        needed = 3.0 * self._shear * np.abs(sine) / np.where(shortest_sq > 0.0, shortest_sq, 1.0)
        kept = np.clip(spare / np.maximum(needed, 1e-300), 0.0, 1.0)
        rank_1 = [self._shear * g[:, :, None] * h[:, None, :] for g, h in
                  ((by_first, by_first), (by_first, by_last), (by_last, by_last))]  # fmt: skip
        bent = _dot_hessian(first, last)
        full = [r + (kept * self._shear * sine)[:, None, None] * h for r, h in zip(rank_1, bent, strict=True)]
        _write_corner_blocks(full, stiffness_out[n_edges : n_edges + 3 * n_corners])
        _write_corner_blocks([self._tau * r for r in rank_1], damping_out[n_edges : n_edges + 3 * n_corners])

        inner = n_edges + 3 * n_corners
        turn_1, turn_2 = (_turning(e) for e in _fold_vectors(x, self._folds))
        k = self._bend[:, None, None]
        # n_2 - n_1 changes by turn_1 at the first vertex, -(turn_1 + turn_2) in the middle, turn_2 at the last.
        across = turn_1 + turn_2
        for i, block in enumerate((-turn_1 @ across, -across @ turn_2, turn_1 @ turn_2)):
            stiffness_out[inner + i * n_folds : inner + (i + 1) * n_folds] = k * block
        damping_out[inner:] = 0.0


def _stiffness(stretch: float, bending: float, modulus: float | None, thickness: float) -> tuple[float, float]:
    if modulus is None:
        return stretch, bending
    return modulus * thickness, modulus * thickness**3 / 12.0


def _corners(index: Ints) -> tuple[Ints, Ints, Floats]:
    """Triples (c, 3) of the corners of all elements, the edges (c, 2) along u and v there, and corners per edge."""
    m, n = index.shape
    u = np.arange((m - 1) * n, dtype=np.int32).reshape(m - 1, n)
    v = ((m - 1) * n + np.arange(m * (n - 1), dtype=np.int32)).reshape(m, n - 1)
    low, high = slice(None, -1), slice(1, None)
    triples, edges = [], []
    for i, other_i in ((low, high), (high, low)):
        for j, other_j in ((low, high), (high, low)):
            triples.append(stacked(index[other_i, j], index[i, j], index[i, other_j]))
            edges.append(stacked(u[:, j], v[i, :]))
    leaning = np.bincount(np.concatenate(edges).ravel(), minlength=(m - 1) * n + m * (n - 1))
    return np.concatenate(triples), np.concatenate(edges), np.maximum(leaning, 1).astype(np.float64)


def _gather_loads(loads: list[Load], n_vertices: int) -> Floats:
    total = np.zeros((n_vertices, 3))
    for k, load in enumerate(loads):
        for vertex in load.vertices:
            if not 0 <= vertex < n_vertices:
                raise WeftError(
                    f"particle_network: loads.{k}: {vertex} is not a vertex; the cloth has 0 to {n_vertices - 1}"
                )
            total[vertex] += load.force
    return total


def _corner_vectors(x: Floats, triples: Ints) -> tuple[Floats, Floats]:
    return x[triples[:, 0]] - x[triples[:, 1]], x[triples[:, 2]] - x[triples[:, 1]]


def _fold_vectors(x: Floats, triples: Ints) -> tuple[Floats, Floats]:
    return x[triples[:, 1]] - x[triples[:, 0]], x[triples[:, 2]] - x[triples[:, 1]]


def _unit(e: Floats) -> tuple[Floats, Floats]:
    """Directions (k, 3) and inverse lengths (k, 1); 0 and 1 for an edge without length."""
    lengths = np.sqrt((e**2).sum(axis=1, keepdims=True))
    inv_lengths = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    return e * inv_lengths, inv_lengths


def _dots(vectors: tuple[Floats, Floats]) -> Floats:
    """n_1 . n_2 (k,)"""
    dots: Floats = (_unit(vectors[0])[0] * _unit(vectors[1])[0]).sum(axis=1)
    return dots


def _dot_gradients(e_1: Floats, e_2: Floats) -> tuple[Floats, Floats]:
    """Derivatives (k, 3) of n_1 . n_2 by e_1 and e_2."""
    (n_1, inv_1), (n_2, inv_2) = _unit(e_1), _unit(e_2)
    dot = (n_1 * n_2).sum(axis=1, keepdims=True)
    return (n_2 - dot * n_1) * inv_1, (n_1 - dot * n_2) * inv_2


def _dot_hessian(e_1: Floats, e_2: Floats) -> tuple[Floats, Floats, Floats]:
    """Second derivatives (k, 3, 3) of n_1 . n_2: by e_1 twice, by e_1 and e_2, by e_2 twice."""
    (n_1, inv_1), (n_2, inv_2) = _unit(e_1), _unit(e_2)
    g_1, g_2 = _dot_gradients(e_1, e_2)
    dot = (n_1 * n_2).sum(axis=1)[:, None, None]
    p_1, p_2 = (np.eye(3) - n[:, :, None] * n[:, None, :] for n in (n_1, n_2))

    def twice(n: Floats, g: Floats, inv: Floats, p: Floats) -> Floats:
        mixed = n[:, :, None] * g[:, None, :]
        second: Floats = -inv[:, :, None] * (mixed + mixed.transpose(0, 2, 1) + dot * inv[:, :, None] * p)
        return second

    return twice(n_1, g_1, inv_1, p_1), (inv_1 * inv_2)[:, :, None] * (p_1 @ p_2), twice(n_2, g_2, inv_2, p_2)


def _turning(e: Floats) -> Floats:
    """Derivative (k, 3, 3) of a direction by its edge."""
    n, inv = _unit(e)
    turning: Floats = inv[:, :, None] * (np.eye(3) - n[:, :, None] * n[:, None, :])
    return turning


def _write_corner_blocks(second: list[Floats], out: Floats) -> None:
    """Overwrite `out` (3 c, 3, 3), the blocks of TRIPLE_PAIRS, from derivatives by both edges from the middle."""
    both, mixed, last = second
    k = len(both)
    out[:k] = -(both + mixed)  # first and middle: the middle moves both edges backwards
    out[k : 2 * k] = -(mixed + last)
    out[2 * k :] = mixed
