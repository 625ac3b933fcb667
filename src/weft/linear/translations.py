"""Uniform shifts of whole pieces: what an inexact solve must still get exactly right.

Internal forces have no net sum, so a piece of cloth that nothing holds keeps its momentum. The residual that an
iterative solver leaves has a net sum, though, and that is a force from nowhere: at a tolerance of 1e-2 a cloth in
free flight lost 6 % of its horizontal velocity in half a second. Here the solution is corrected by the shift of each
piece, as far as its vertices are free, that takes this sum away: with Z the filtered shifts, x -= Z (Z^T A Z)^-1 Z^T r.
It is the best correction by shifts in the energy norm, so it never makes a solution worse.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weft.arrays import Floats, Ints
from weft.linear.blocks import BlockMatrix
from weft.linear.constraints import Constraints
from weft.linear.pcg import update_residual
from weft.linear.springs import Springs


class Translations:
    """The shifts of the pieces that `pairs` join; pieces that contacts join are shifted together."""

    def __init__(self, pairs: Ints, n_vertices: int) -> None:
        self._n_pieces, self._piece = _components(pairs[:, 0], pairs[:, 1], n_vertices)

    def correct(self, matrix: BlockMatrix, constraints: Constraints, x_inout: Floats, residual_inout: Floats) -> None:
        """Shift pieces in `x_inout` until the free part of `residual_inout` = A x - b, updated too, has no net sum."""
        springs = constraints.springs
        n_groups, group = self._groups(springs)
        shifts = np.ascontiguousarray(constraints.filters.transpose(2, 0, 1))
        products = np.empty_like(shifts)
        zero = np.zeros_like(x_inout)
        for shift, product in zip(shifts, products, strict=True):
            update_residual(matrix, springs, shift, zero, product)
        terms = np.einsum("inc,jnc->ijn", shifts, np.concatenate([products, residual_inout[None]]))
        sums = [np.bincount(group, row, minlength=n_groups) for row in terms.reshape(12, -1)]
        net = np.stack(sums).reshape(3, 4, n_groups).transpose(2, 0, 1)
        if not np.isfinite(net).all():
            return  # an explosion, for the simulation to name
        inverse = np.linalg.pinv(net[:, :, :3], rcond=1e-12, hermitian=True)  # 0 where nothing is free
        size = np.einsum("kij,kj->ki", inverse, net[:, :, 3])[group]
        x_inout -= np.einsum("ni,inc->nc", size, shifts)
        residual_inout -= np.einsum("ni,inc->nc", size, products)

    def _groups(self, springs: Springs) -> tuple[int, Ints]:
        """How many groups of pieces there are, and the group of each vertex."""
        if self._n_pieces == 1 or len(springs.vertices) == 0:
            return self._n_pieces, self._piece
        a, b = np.triu_indices(4, 1)  # all pairs of places
        joined = (springs.weights[:, a] != 0.0) & (springs.weights[:, b] != 0.0)
        piece = self._piece[springs.vertices]
        n_groups, group = _components(piece[:, a][joined], piece[:, b][joined], self._n_pieces)
        return n_groups, group[self._piece]


def _components(first: Ints, second: Ints, n: int) -> tuple[int, Ints]:
    """How many components the graph with edges from `first` to `second` has, and the component of each node."""
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    n_components, component = connected_components(graph, directed=False)
    return int(n_components), component
