"""Provot's mass-spring cloth: structural, shear and flexion springs, with stiffness from the fabric.

X. Provot, "Deformation constraints in a mass-spring model to describe rigid cloth behavior", Graphics Interface 1995.

The paper leaves spring constants to taste. Here they follow from the measured membrane and bending stiffness, so
that a grid and its refinement are the same cloth. On a grid with spacings `a` (along u) and `b` (along v):

* Shear: both diagonals of a quad, length d, change by +-g a b / d under a shear g. Their energy equals the
  membrane's 1/2 G g^2 a b for k = G d^2 / (2 a b).
* Structural: a spring along u carries a strip of width b: k = Y_u b / a. The diagonals already resist that stretch
  with G a^2 / b^2 per width; it is taken off, down to a tenth of Y_u at least. At the border a strip is b / 2 wide.
* Flexion: a spring over two edges shortens by a t^2 / 4 when the cloth folds by t there: its energy is quartic in t,
  while a plate's is 1/2 B (t / a)^2 a b. The two agree at one fold, t = 1 rad: k = 16 B b / a^3.

On a mesh without a grid, edges are structural, k = Y A / l^2 with A the area of their triangles (van Gelder 1998),
and each inner edge has a flexion spring between its two opposite vertices.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import NO_FLOATS, Floats, Ints
from weft.geometry.mesh import Mesh
from weft.geometry.topology import group_rows
from weft.jit import kernel, prange
from weft.models.fabrics import Fabric
from weft.models.lattice import build_lattice, stacked
from weft.parameters import Parameters, quantity

REFERENCE_FOLD = 1.0  # [rad] the fold at which flexion springs store a plate's bending energy


class MassSpringParameters(Parameters):
    """Factors on what the fabric gives."""

    structural: float = quantity("factor on structural stiffness", default=1.0, gt=0, le=1000)
    shear: float = quantity("factor on shear stiffness", default=1.0, ge=0, le=1000)
    flexion: float = quantity("factor on flexion stiffness", default=1.0, ge=0, le=1000)
    damping: float = quantity("factor on the fabric's damping", default=1.0, ge=0, le=1000)


class MassSpring:
    """Masses joined by structural, shear and flexion springs (Provot 1995).

    Energy 1/2 k (l - L)^2 for each spring, damping along the spring: f = -k tau (dl/dt). In the derivative, the
    part across a compressed spring is left out, since it would make the matrix indefinite.
    """

    Parameters = MassSpringParameters
    even = NO_FLOATS

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: MassSpringParameters | None = None) -> None:
        p = parameters or MassSpringParameters()
        springs = _grid_springs(mesh, fabric, p) if mesh.grid_shape else _mesh_springs(mesh, fabric, p)
        pairs, stiffness = (np.concatenate(part) for part in zip(*springs, strict=True))
        kept = stiffness > 0
        self.pairs: Ints = np.ascontiguousarray(pairs[kept], np.int32)
        self.stiffness: Floats = np.ascontiguousarray(stiffness[kept])
        self.damping: Floats = self.stiffness * (p.damping * fabric.damping)
        ends = mesh.positions[self.pairs]
        self.lengths: Floats = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        index = np.arange(len(self.pairs), dtype=np.int32)
        self._springs = group_rows(self.pairs.T.ravel(), np.tile(index, 2), mesh.n_vertices)

    def energy(self, x: Floats) -> float:
        ends = x[self.pairs]
        stretch = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) - self.lengths
        return float(0.5 * (self.stiffness * stretch**2).sum())

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        add_spring_forces(x, v, *self._springs, self.pairs, self.stiffness, self.damping, self.lengths, forces_out)

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        update_spring_jacobians(x, self.pairs, self.stiffness, self.damping, self.lengths, stiffness_out, damping_out)


def _grid_springs(mesh: Mesh, fabric: Fabric, p: MassSpringParameters) -> list[tuple[Ints, Floats]]:
    index, (a, b), shares, edges = build_lattice(mesh, "mass_spring")
    shear = p.shear * fabric.shear
    y_u = max(fabric.stretch_weft - shear * a**2 / b**2, 0.1 * fabric.stretch_weft)
    y_v = max(fabric.stretch_warp - shear * b**2 / a**2, 0.1 * fabric.stretch_warp)
    width_u, width_v = shares[0] * b, shares[1] * a  # of the strip that a spring along u or v stands for

    def joined(pairs: Ints, stiffness: Floats | float, shape: tuple[int, ...]) -> tuple[Ints, Floats]:
        return pairs, np.broadcast_to(stiffness, shape).ravel().astype(np.float64)

    m, n = index.shape
    flexion = 16.0 * p.flexion / REFERENCE_FOLD**2
    diagonal = shear * (a**2 + b**2) / (2.0 * a * b)
    bend_u, bend_v = flexion * fabric.bending_weft / a**3, flexion * fabric.bending_warp / b**3
    return [
        joined(edges[0], p.structural * y_u * width_u / a, (m - 1, n)),
        joined(edges[1], p.structural * y_v * width_v[:, None] / b, (m, n - 1)),
        joined(stacked(index[:-1, :-1], index[1:, 1:]), diagonal, (m - 1, n - 1)),
        joined(stacked(index[1:, :-1], index[:-1, 1:]), diagonal, (m - 1, n - 1)),
        joined(stacked(index[:-2], index[2:]), bend_u * width_u, (m - 2, n)),
        joined(stacked(index[:, :-2], index[:, 2:]), bend_v * width_v[:, None], (m, n - 2)),
    ]


def _mesh_springs(mesh: Mesh, fabric: Fabric, p: MassSpringParameters) -> list[tuple[Ints, Floats]]:
    topology = mesh.topology
    corners = mesh.positions[mesh.triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    ends = mesh.positions[topology.edges]
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    inner = topology.edge_triangles[:, 1] >= 0
    edge_area = area[topology.edge_triangles[:, 0]] + np.where(inner, area[topology.edge_triangles[:, 1]], 0.0)
    stretch = 0.5 * (fabric.stretch_warp + fabric.stretch_weft)
    bending = 0.5 * (fabric.bending_warp + fabric.bending_weft)
    across = topology.edge_opposite[inner]
    reach = np.linalg.norm(mesh.positions[across[:, 1]] - mesh.positions[across[:, 0]], axis=1)
    flexion = 16.0 * p.flexion / REFERENCE_FOLD**2 * bending * length[inner] / (0.5 * reach) ** 3
    return [(topology.edges, p.structural * stretch * edge_area / length**2), (across, flexion)]


@kernel(parallel=True)
def add_spring_forces(
    x: Floats,
    v: Floats,
    starts: Ints,
    springs: Ints,
    pairs: Ints,
    stiffness: Floats,
    damping: Floats,
    lengths: Floats,
    forces_out: Floats,
) -> None:
    """Add spring and damper forces, gathered vertex by vertex: each iteration writes its own row only."""
    for vi in prange(len(x)):
        fx = fy = fz = 0.0
        for k in range(starts[vi], starts[vi + 1]):
            s = springs[k]
            vj = pairs[s, 1] if pairs[s, 0] == vi else pairs[s, 0]
            dx, dy, dz = x[vj, 0] - x[vi, 0], x[vj, 1] - x[vi, 1], x[vj, 2] - x[vi, 2]
            length = np.sqrt(dx * dx + dy * dy + dz * dz)
            if length == 0.0:
                continue
            dx, dy, dz = dx / length, dy / length, dz / length
            rate = (v[vj, 0] - v[vi, 0]) * dx + (v[vj, 1] - v[vi, 1]) * dy + (v[vj, 2] - v[vi, 2]) * dz
            tension = stiffness[s] * (length - lengths[s]) + damping[s] * rate
            fx += tension * dx
            fy += tension * dy
            fz += tension * dz
        forces_out[vi, 0] += fx
        forces_out[vi, 1] += fy
        forces_out[vi, 2] += fz


@kernel(parallel=True)
def update_spring_jacobians(
    x: Floats,
    pairs: Ints,
    stiffness: Floats,
    damping: Floats,
    lengths: Floats,
    stiffness_out: Floats,
    damping_out: Floats,
) -> None:
    """Overwrite the block of each spring: -k (n n^T + max(0, 1 - L / l) (I - n n^T)) and -d n n^T."""
    for s in prange(len(pairs)):
        vi, vj = pairs[s, 0], pairs[s, 1]
        dx, dy, dz = x[vj, 0] - x[vi, 0], x[vj, 1] - x[vi, 1], x[vj, 2] - x[vi, 2]
        length = np.sqrt(dx * dx + dy * dy + dz * dz)
        across = 0.0
        if length > 0.0:
            dx, dy, dz = dx / length, dy / length, dz / length
            across = max(0.0, 1.0 - lengths[s] / length)
        n = (dx, dy, dz)
        for r in range(3):
            for c in range(3):
                nn = n[r] * n[c]
                identity = 1.0 if r == c else 0.0
                stiffness_out[s, r, c] = -stiffness[s] * (nn + across * (identity - nn))
                damping_out[s, r, c] = -damping[s] * nn
