"""The linear system of an implicit step and its solution under filtered constraints."""

from __future__ import annotations

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.errors import WeftError
from weft.linear.blocks import build_matrix, update_implicit_matrix, update_stiffness_product
from weft.linear.constraints import Constraints, held_vertices
from weft.linear.patches import build_patches
from weft.linear.pcg import PcgWork, build_work, solve_filtered, update_impulses
from weft.linear.springs import spring_impulses


class FilteredSystem:
    """(M + h D + h^2 K) dv = b, assembled once and solved as often as constraints change.

    Attributes
    ----------
    iterations : conjugate-gradient iterations since `assemble`
    """

    def __init__(self, pairs: Ints, n_vertices: int) -> None:
        self.matrix = build_matrix(pairs, n_vertices)
        self._patches = build_patches(self.matrix)
        self._piece = self._patches.pieces[self._patches.large[self._patches.rows]]
        self._work: PcgWork | None = None
        self.iterations = 0

    def assemble(
        self, x: Floats, masses: Floats, extra_damping: Floats, stiffness: Floats, damping: Floats, h: float
    ) -> None:
        """Set up the matrix about `x` (n, 3); `stiffness` and `damping` (p, 3, 3) are the blocks of the pairs."""
        self._positions = x
        update_implicit_matrix(masses, extra_damping, stiffness, damping, h, self.matrix)
        self._sums = h * extra_damping + masses[:, None, None] * np.eye(3)
        self._diagonal = self.matrix.diagonal.copy()
        self._mass = float(masses.sum())
        self.iterations = 0

    def stiffness_product(self, stiffness: Floats, v: Floats) -> Floats:
        """K v (n, 3), `stiffness` (p, 3, 3) being the blocks of the pairs."""
        out = np.empty_like(v)
        update_stiffness_product(self.matrix, stiffness, v, out)
        return out

    def add_drag(self, drag: Floats) -> None:
        """Put `drag` (n, 3, 3) on the diagonal, in place of what was there before."""
        np.add(self._diagonal, drag, out=self.matrix.diagonal)
        self._drag = drag

    def solve(
        self,
        right: Floats,
        constraints: Constraints,
        guess: Floats,
        tolerance: float,
        error: float,
        max_iterations: int,
    ) -> tuple[Floats, Floats]:
        """Solve A dv = `right` for the free part of dv; the prescribed part is `constraints.change`.

        It goes on until the residual is below `tolerance`, relative to `right`, and the velocity that is still missing
        below `error` [m/s], weighted by mass.

        Returns dv and the impulses of the constraints.
        """
        c = constraints
        dv: Floats = c.change + np.einsum("nij,nj->ni", c.filters, guess)
        if self._work is None:
            self._work = build_work(self.matrix, tolerance, error)
        iterations, _ = solve_filtered(
            self.matrix,
            c.springs,
            self._patches,
            self._positions,
            right,
            c.filters,
            tolerance,
            self._mass * error**2,
            max_iterations,
            self._work,
            dv,
        )
        self.iterations += iterations
        if len(self._patches.piece_blocks) == 1 or len(c.springs.vertices) == 0:  # else they could meet each other
            self._shift_pieces(c, right, dv)
        if not np.isfinite(dv).all():
            raise WeftError("implicit step: unstable at this step, forces are not finite; use more steps_per_frame")
        return dv, self.impulses(c, dv, right, held_vertices(c))

    def _shift_pieces(self, c: Constraints, right: Floats, dv_inout: Floats) -> None:
        """Shift each piece until its residual has no net sum: that would be a force from nowhere.

        The sum of A dv over a piece needs no product: in it all that ties its vertices to each other cancels.
        """
        p = self._patches
        left = right - np.einsum("nij,nj->ni", self._sums + self._drag, dv_inout)
        held = held_vertices(c)
        if held.any():
            impulses = self.impulses(c, dv_inout, right, held)[held]
            left[held] += impulses - np.einsum("nij,nj->ni", c.filters[held], impulses)
        totals = np.zeros((len(p.piece_blocks), 3))
        np.add.at(totals, self._piece, left)
        if len(c.springs.vertices):
            totals[0] -= spring_impulses(c.springs, dv_inout).sum(axis=0)
        shift = np.einsum("pij,pj->pi", np.linalg.pinv(p.piece_blocks, rcond=1e-9, hermitian=True), totals)
        dv_inout += np.einsum("nij,nj->ni", c.filters, shift[self._piece])

    def impulses(self, constraints: Constraints, dv: Floats, right: Floats, held: Bools) -> Floats:
        """A dv - `right` where a vertex is `held` (n,): what the constraints contributed."""
        out = np.empty_like(dv)
        update_impulses(self.matrix, constraints.springs, dv, right, held, out)
        return out
