"""Choi and Ko's responsive cloth: it resists stretch like a spring and compression like a beam that has buckled.

K.-J. Choi, H.-S. Ko, "Stable but responsive cloth", SIGGRAPH 2002.

Type 1 connections join neighbours along u, v and the diagonals. They only pull: T = k (l - L) for l > L, else 0.
Cloth that is pushed buckles before it shortens, so nothing here resists compression.

Type 2 connections join every other vertex, along u, v and the diagonals. They only push: a strip of length L, whose
ends are at a distance d < L, is a circular arc of curvature c with d = L sinc(c L / 2), and stores
E = 1/2 k L c^2, k being its bending stiffness [N m^2]. With q = (c L / 2)^2 as the unknown, both sinc and what follows
are power series in q:

    sinc = sum (-q)^j / (2 j + 1)!,    P(q) = 2 d sinc / dq,    P(0) = -1/3
    E = 2 k q / L,    T = dE/dd = 4 k / (L^2 P),    dT/dd = -8 k P' / (L^3 P^3).

T is negative (a push) and jumps to the buckling load of the arc, -12 k / L^2, as soon as d < L. The jump becomes a
ramp T = c (d - L) up to where the two meet (eq. 10). dT/dd is positive everywhere: a buckled strip gets stiffer, and
n n^T dT/dd is positive semi-definite. The paper tabulates T and fits a polynomial of fifth degree; we solve
d / L = sinc by two Newton steps from a fit of q, to the last bits.

Why attempts at this model shrink and explode, and what is done here. The first two were measured on a 0.5 m sheet of
21 x 21 vertices, hung by its upper edge, with steps of 1/60 s:

(1) A slack type 1 connection has no stiffness, so a step linearised once lets it open by dt times its speed, far
    beyond L: it then stores 10^4 times the energy that it moved with. Strains reach 14 % where the weight accounts for
    0.02 %, and energy grows. The matrix must know what the connection will meet: its k n n^T stays in the matrix while
    it is slack, and only the force is cut off. Since k bounds the slope from above, a step is stable; the price is that
    opening and closing of slack connections is resisted within a step, as by a damper dt k.
(2) The paper sets the slope c of the ramp to that of type 1. The load then builds up within a thousandth of a per
    cent of shortening; steps jump over it in either direction and shake the cloth. Here it builds up over `ramp` of
    the length, which costs bending stiffness only at folds below about 2 sqrt(6 ramp), 0.15 rad.
(3) Sign: T is negative. Taken as a size, or given to the other end, type 2 connections pull. Nothing else resists
    compression, so the cloth draws together wherever its weight does not hold it out: a hung cloth shrinks at its
    free lower edge.
(4) The full derivative has a transverse part T / d (I - n n^T), negative here. With it the matrix of a step longer
    than sqrt(m d / |T|) is indefinite and conjugate gradients break down. The force keeps it, so that the
    cloth buckles; the matrix does not.

Stiffness from the fabric, so that grids of any spacing are the same cloth: type 1 as in `mass_spring`. Type 2: two
overlapping connections cover each point of a line, so k = B w / 2 for a strip of width w. Diagonals of both signs take
a share of the bending of the softer direction (with a half, an isotropic cloth twists as a plate without
Poisson's ratio does); what is left goes to u and v. On a mesh without a grid, edges are type 1, and the opposite
vertices of each inner edge are joined by type 2 with 8/9 of the plate's stiffness on its area, since three directions
of hinges at 60 degrees share the bending (sum of cos^4 = 9/8, each on a third of the area).
"""

from __future__ import annotations

from math import factorial

import numpy as np

from weft.arrays import NO_FLOATS, Floats, Ints
from weft.geometry.mesh import Mesh
from weft.models.connections import Connections, axial_blocks
from weft.models.fabrics import Fabric
from weft.models.mass_spring import MassSpring, MassSpringParameters
from weft.parameters import Parameters, quantity

TERMS = 16  # of the series: the next is below 1e-20 at q = pi^2, the full circle
_J = np.arange(1, TERMS + 1)
# 1 - sinc = q R(q), highest power first for np.polyval; 2 d sinc / dq = P(q) and dP / dq.
R = np.array([-((-1.0) ** j) / factorial(2 * j + 1) for j in _J])[::-1]
P = np.array([(-1.0) ** j * 2 * j / factorial(2 * j + 1) for j in _J])[::-1]
DP = np.polyder(P)


def _fit_inverse() -> Floats:
    """Coefficients of q / (6 s) as a polynomial in s = 1 - d / L, within 4e-4 of q.

    q(s) is smooth up to the first extremum of sinc, which lies beyond s = 1; points crowd at both ends.
    """
    q = (np.pi * np.sin(np.linspace(1e-3, 0.5 * np.pi, 400))) ** 2
    s = q * np.polyval(R, q)
    return np.polyfit(s, q / (6.0 * s), 7)


FIT = _fit_inverse()


class ResponsiveParameters(Parameters):
    """Factors on what the fabric gives."""

    stretch: float = quantity("factor on the stiffness of type 1 along u and v", default=1.0, gt=0, le=1000)
    shear: float = quantity("factor on the stiffness of type 1 diagonals", default=1.0, ge=0, le=1000)
    bending: float = quantity("factor on the stiffness of type 2", default=1.0, ge=0, le=1000)
    ramp: float = quantity("shortening over which the load of buckling builds up", default=1e-3, gt=0, le=0.1)
    diagonal_share: float = quantity("share of bending that type 2 diagonals take", default=0.5, ge=0, le=1)


class Responsive:
    """Type 1 connections that only pull and type 2 connections that buckle (Choi and Ko 2002).

    Damping is the fabric's: along the line, in proportion to the slope of the force there.
    """

    Parameters = ResponsiveParameters
    even = NO_FLOATS
    has_jacobians = True

    def __init__(self, mesh: Mesh, fabric: Fabric, parameters: ResponsiveParameters | None = None) -> None:
        p = parameters or ResponsiveParameters()
        pairs_1, stiffness = _type_1(mesh, fabric, p)
        pairs_2, bending = _grid_type_2(mesh, fabric, p) if mesh.grid_shape else _mesh_type_2(mesh, fabric, p)
        self._n_type_1 = len(pairs_1)
        self._connections = Connections(np.concatenate([pairs_1, pairs_2]), mesh.n_vertices)
        self.pairs: Ints = self._connections.pairs
        self._lengths = self._connections.stretch(mesh.positions).lengths
        self._stiffness, self._bending, self._tau = stiffness, bending, fabric.damping
        rest = self._lengths[self._n_type_1 :]
        self._ramp = np.minimum(12.0 * bending / (p.ramp * rest**3), float(np.median(stiffness)))
        self._ramp[bending == 0.0] = 0.0
        self._ramp_shortening, self._ramp_energy = self._meet_ramp()

    def _meet_ramp(self) -> tuple[Floats, Floats]:
        """How far type 2 shortens until the ramp meets the arc [m], and what the arc's energy lacks from there on."""
        k, c, length = self._bending, self._ramp, self._lengths[self._n_type_1 :]
        shortening = np.zeros(len(k))
        for _ in range(30):  # a contraction: the arc's slope is a small share of the ramp's
            load = -_arc(shortening / length, k, length)[1]
            shortening = np.minimum(load / np.where(c > 0.0, c, 1.0), length)
        return shortening, 0.5 * c * shortening**2 - _arc(shortening / length, k, length)[0]

    def _laws(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Energies (p,) [J], tensions (p,) [N], slopes (p,) [N/m] and directions (p, 3)."""
        n_1, k = self._n_type_1, self._stiffness
        lengths, directions = self._connections.stretch(x)
        longer = np.maximum(lengths[:n_1] - self._lengths[:n_1], 0.0)
        rest = self._lengths[n_1:]
        shorter = np.clip(rest - lengths[n_1:], 0.0, rest)
        energy, tension, slope = _arc(shorter / rest, self._bending, rest)
        steep = shorter < self._ramp_shortening
        energy = np.where(steep, 0.5 * self._ramp * shorter**2, energy + self._ramp_energy)
        tension = np.where(steep, -self._ramp * shorter, tension)
        slope = np.where(shorter > 0.0, np.where(steep, self._ramp, slope), 0.0)
        return (
            np.concatenate([0.5 * k * longer**2, energy]),
            np.concatenate([k * longer, tension]),
            np.concatenate([np.where(longer > 0.0, k, 0.0), slope]),
            directions,
        )

    def energy(self, x: Floats) -> float:
        return float(self._laws(x)[0].sum())

    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None:
        _, tensions, slopes, directions = self._laws(x)
        rates = self._connections.rates(v, directions)
        self._connections.add_tensions(tensions + self._tau * slopes * rates, directions, forces_out)

    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None:
        _, tensions, slopes, directions = self._laws(x)
        lengths = self._connections.stretch(x).lengths
        across = np.maximum(tensions, 0.0) / np.where(lengths > 0.0, lengths, 1.0)
        damping_out[:] = axial_blocks(directions, self._tau * slopes)
        slopes[: self._n_type_1] = self._stiffness  # slack ones, too: see the module, (1)
        stiffness_out[:] = axial_blocks(directions, slopes, across)


def solve_arc(shortening: Floats) -> Floats:
    """q = (c L / 2)^2 of the arc whose chord is 1 - `shortening` of its length; 0 to pi^2 for 0 to 1."""
    q = 6.0 * shortening * np.polyval(FIT, shortening)
    for _ in range(2):
        q = q + 2.0 * (q * np.polyval(R, q) - shortening) / np.polyval(P, q)
    return q


def _arc(shortening: Floats, k: Floats, length: Floats) -> tuple[Floats, Floats, Floats]:
    """Energy [J], tension [N] and its slope [N/m] of buckled strips of stiffness `k` and `length`."""
    q = solve_arc(shortening)
    p = np.polyval(P, q)
    return 2.0 * k * q / length, 4.0 * k / (length**2 * p), -8.0 * k * np.polyval(DP, q) / (length**3 * p**3)


def _type_1(mesh: Mesh, fabric: Fabric, p: ResponsiveParameters) -> tuple[Ints, Floats]:
    springs = MassSpring(mesh, fabric, MassSpringParameters(structural=p.stretch, shear=p.shear, flexion=0.0))
    return springs.pairs, springs.stiffness


def _grid_type_2(mesh: Mesh, fabric: Fabric, p: ResponsiveParameters) -> tuple[Ints, Floats]:
    assert mesh.grid_shape is not None
    assert mesh.material is not None
    m, n = mesh.grid_shape
    index = np.arange(m * n, dtype=np.int32).reshape(m, n)
    a, b = (mesh.material[-1] - mesh.material[0]) / (m - 1, n - 1)
    cos_sq, sin_sq = a**2 / (a**2 + b**2), b**2 / (a**2 + b**2)
    diagonal = 0.5 * p.diagonal_share * min(fabric.bending_weft / cos_sq**2, fabric.bending_warp / sin_sq**2)
    along_u = fabric.bending_weft - 2.0 * diagonal * cos_sq**2
    along_v = fabric.bending_warp - 2.0 * diagonal * sin_sq**2
    width_u = np.where(np.isin(np.arange(n), (0, n - 1)), 0.5, 1.0) * b
    width_v = np.where(np.isin(np.arange(m), (0, m - 1)), 0.5, 1.0) * a
    reach = np.hypot(a, b)
    groups = [
        (index[:-2], index[2:], 0.5 * along_u * width_u[None, :]),
        (index[:, :-2], index[:, 2:], 0.5 * along_v * width_v[:, None]),
        (index[:-2, :-2], index[2:, 2:], 0.5 * diagonal * a * b / reach),
        (index[2:, :-2], index[:-2, 2:], 0.5 * diagonal * a * b / reach),
    ]
    pairs = np.concatenate([np.stack([i.ravel(), j.ravel()], axis=1) for i, j, _ in groups])
    bending = np.concatenate([np.broadcast_to(k, i.shape).ravel() for i, _, k in groups])
    return pairs, p.bending * bending


def _mesh_type_2(mesh: Mesh, fabric: Fabric, p: ResponsiveParameters) -> tuple[Ints, Floats]:
    topology = mesh.topology
    corners = mesh.positions[mesh.triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    inner = topology.edge_triangles[:, 1] >= 0
    across = topology.edge_opposite[inner]
    reach = np.linalg.norm(mesh.positions[across[:, 1]] - mesh.positions[across[:, 0]], axis=1)
    bending = 0.5 * (fabric.bending_warp + fabric.bending_weft)
    return across, p.bending * (8.0 / 9.0) * bending * area[topology.edge_triangles[inner]].sum(axis=1) / reach
