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
from weft.linear.pcg import update_residual


class Translations:
    """The shifts of the pieces that `pairs` join."""

    def __init__(self, pairs: Ints, n_vertices: int) -> None:
        graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_vertices, n_vertices))
        self._n_pieces, self._piece = connected_components(graph, directed=False)

    def correct(self, matrix: BlockMatrix, filters: Floats, x_inout: Floats, residual_inout: Floats) -> None:
        """Shift pieces in `x_inout` until the free part of `residual_inout` = A x - b, updated too, has no net sum."""
        shifts = np.ascontiguousarray(filters.transpose(2, 0, 1))
        products = np.empty_like(shifts)
        zero = np.zeros_like(x_inout)
        for shift, product in zip(shifts, products, strict=True):
            update_residual(matrix, shift, zero, product)
        gram = np.stack([[self._sums(shift * product) for product in products] for shift in shifts])
        sums = np.stack([self._sums(shift * residual_inout) for shift in shifts])
        inverse = np.linalg.pinv(gram.transpose(2, 0, 1), rcond=1e-12, hermitian=True)  # 0 where nothing is free
        size = np.einsum("kij,jk->ki", inverse, sums)[self._piece]
        x_inout -= np.einsum("ni,inc->nc", size, shifts)
        residual_inout -= np.einsum("ni,inc->nc", size, products)

    def _sums(self, rows: Floats) -> Floats:
        """The sum over each piece of `rows` (n, 3)."""
        return np.bincount(self._piece, rows.sum(axis=1), minlength=self._n_pieces)
