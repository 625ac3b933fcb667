"""The linear system of an implicit step and its solution under filtered constraints."""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.errors import WeftError
from weft.linear.blocks import build_matrix, update_implicit_matrix
from weft.linear.constraints import Constraints
from weft.linear.levels import build_levels, correct_pieces
from weft.linear.pcg import PcgWork, build_work, solve_filtered, update_residual
from weft.linear.springs import no_springs


class FilteredSystem:
    """(M + h D + h^2 K) dv = b, assembled once and solved as often as constraints change.

    Attributes
    ----------
    iterations : conjugate-gradient iterations since `assemble`
    """

    def __init__(self, pairs: Ints, n_vertices: int) -> None:
        self.matrix = build_matrix(pairs, n_vertices)
        self._levels = build_levels(self.matrix)
        self._is_one_piece = len(np.unique(self._levels.roots)) <= 1
        self._work: PcgWork | None = None
        self._stiffness_times_v = np.zeros((n_vertices, 3))
        self.iterations = 0

    def assemble(
        self, v: Floats, masses: Floats, extra_damping: Floats, stiffness: Floats, damping: Floats, h: float
    ) -> Floats:
        """Set up the matrix; `stiffness` and `damping` (p, 3, 3) are the blocks of the pairs. Returns K v (n, 3)."""
        update_implicit_matrix(v, masses, extra_damping, stiffness, damping, h, self.matrix, self._stiffness_times_v)
        self._diagonal = self.matrix.diagonal.copy()
        self._mass = float(masses.sum())
        self.iterations = 0
        return self._stiffness_times_v

    def add_drag(self, drag: Floats) -> None:
        """Put `drag` (n, 3, 3) on the diagonal, in place of what was there before."""
        np.add(self._diagonal, drag, out=self.matrix.diagonal)

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

        Returns dv and A dv - `right`, what the constraints contributed.
        """
        c = constraints
        dv: Floats = c.change + np.einsum("nij,nj->ni", c.filters, guess)
        if self._work is None:
            self._work = build_work(self.matrix, tolerance, error)
        iterations, _ = solve_filtered(
            self.matrix,
            c.springs,
            self._levels,
            right,
            c.filters,
            tolerance,
            self._mass * error**2,
            max_iterations,
            self._work,
            dv,
        )
        self.iterations += iterations
        residual = self.residual(c, dv, right)
        if self._is_one_piece or len(c.springs.vertices) == 0:  # else pieces would be shifted into each other
            correct_pieces(self._levels, np.einsum("nij,nj->ni", c.filters, -residual), c.filters, dv)
            residual = self.residual(c, dv, right)
        if not np.isfinite(residual).all():  # conjugate gradients stop at once where a number is not one
            raise WeftError("implicit step: unstable at this step, forces are not finite; use more steps_per_frame")
        return dv, residual

    def product(self, x: Floats) -> Floats:
        """A x, without drag and springs."""
        out = np.empty_like(x)
        update_residual(self.matrix, no_springs(len(x)), x, np.zeros_like(x), out)
        return out

    def residual(self, constraints: Constraints, dv: Floats, right: Floats) -> Floats:
        """A dv - `right`: what the constraints contributed."""
        out = np.empty_like(dv)
        update_residual(self.matrix, constraints.springs, dv, right, out)
        return out
