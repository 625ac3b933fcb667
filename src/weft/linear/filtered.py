"""The linear system of an implicit step and its solution under filtered constraints."""

from __future__ import annotations

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.errors import UnstableError
from weft.geometry.rows import is_finite
from weft.jit import kernel, prange
from weft.linear.blocks import (
    BlockMatrix,
    block_products,
    build_matrix,
    update_implicit_matrix,
    update_stiffness_product,
)
from weft.linear.constraints import Constraints, held_vertices
from weft.linear.patches import LOST, build_patches
from weft.linear.pcg import PcgWork, build_work, solve_filtered, update_impulses
from weft.linear.rows import Rows
from weft.linear.springs import Springs, resist


class FilteredSystem:
    """(M + h D + h^2 K) dv = b, assembled once and solved as often as constraints change.

    Attributes
    ----------
    iterations : conjugate-gradient iterations since `assemble`
    """

    def __init__(self, pairs: Ints, n_vertices: int, dtype: type[np.floating] = np.float64) -> None:
        """`dtype` is the precision of blocks and iterations (see `weft.linear.pcg.precision`)."""
        self._pairs, self._n, self._dtype = pairs, n_vertices, dtype
        self._is_laid_out = False
        self.iterations = 0

    def _lay_out(self, n_even: int) -> None:
        """Make room for the pairs, the last `n_even` of which are multiples of the identity."""
        self.matrix = build_matrix(self._pairs, self._n, n_even, self._dtype)
        self._patches = build_patches(self.matrix)
        self._piece = self._patches.pieces[self._patches.large[self._patches.rows]]
        self._n_pieces = len(self._patches.piece_blocks)
        self._work: tuple[Rows, PcgWork] | None = None
        self._drag = np.zeros((self._n, 3, 3))
        self._is_laid_out = True

    def assemble(
        self,
        x: Floats,
        masses: Floats,
        extra_damping: Floats,
        stiffness: Floats,
        damping: Floats,
        even: Floats,
        h: float,
    ) -> None:
        """Set up the matrix about `x` (n, 3).

        `stiffness` and `damping` (p, 3, 3) are the blocks of the first pairs, and `even` (q,) the stiffness of the
        others, times the identity. How many these are must not change: the first call lays out the matrix.
        """
        if not self._is_laid_out:
            self._lay_out(len(even))
        self._positions, self._masses, self._extra = x, masses, h * extra_damping
        update_implicit_matrix(masses, extra_damping, stiffness, damping, even, h, self.matrix)
        self._drag[:] = 0.0
        self._mass = float(masses.sum())
        self.iterations = 0

    def stiffness_product(self, stiffness: Floats, even: Floats, v: Floats) -> Floats:
        """K v (n, 3), for the blocks of `assemble`."""
        out = np.empty_like(v)
        update_stiffness_product(self.matrix, stiffness, even, v, out)
        return out

    def add_drag(self, drag: Floats) -> None:
        """Put `drag` (n, 3, 3) on the diagonal, in place of what was there before."""
        replace_drag(drag, self.matrix, self._drag)

    def solve(
        self,
        right: Floats,
        constraints: Constraints,
        guess: Floats,
        tolerance: float,
        error: float,
        max_iterations: int,
        anew: bool = True,
    ) -> tuple[Floats, Floats]:
        """Solve A dv = `right` for the free part of dv; the prescribed part is `constraints.change`.

        It goes on until the residual is below `tolerance`, relative to `right`, and the velocity that is still missing
        below `error` [m/s], weighted by mass. Unless `anew`, only springs and drag became weaker since the last solve,
        and what it prepared serves once more.

        Returns dv and the impulses of the constraints.
        """
        c = constraints
        dv = c.change + block_products(c.filters, guess)
        if self._work is None:
            self._work = build_work(self.matrix, self._patches)
        iterations, residual = solve_filtered(
            self.matrix,
            c.springs,
            self._patches,
            self._positions,
            right,
            c.filters,
            tolerance,
            self._mass * error**2,
            max_iterations,
            anew,
            *self._work,
            dv,
        )
        self.iterations += iterations
        # conjugate gradients stop at once where a number is not one
        if not (is_finite(dv) and is_finite(right) and np.isfinite(self._patches.piece_blocks).all()):
            raise UnstableError("implicit step: unstable at this step, forces are not finite; use more steps_per_frame")
        if iterations == max_iterations and residual > 1.0:
            raise UnstableError(f"implicit step: no solution in {iterations} iterations; use more steps_per_frame")
        held = held_vertices(c)
        if self._n_pieces == 1 or len(c.springs.vertices) == 0:  # else they could meet each other
            self._shift_pieces(c, right, held, dv)
        return dv, self.impulses(c, dv, right, held)

    def _shift_pieces(self, c: Constraints, right: Floats, held: Bools, dv_inout: Floats) -> None:
        """Shift each piece until its residual has no net sum: that would be a force from nowhere.

        The sum of A dv over a piece needs no product: in it all that ties its vertices to each other cancels.
        """
        totals = np.zeros((self._n_pieces, 3))
        if held.any():
            impulses = self.impulses(c, dv_inout, right, held)
            add_rows(self._piece, impulses - block_products(c.filters, impulses), totals)
        add_left_over(self._piece, self._masses, self._extra, self._drag, right, dv_inout, totals)
        add_spring_pulls(self._piece, c.springs, dv_inout, totals)
        stiffness, ways = np.linalg.eigh(self._patches.piece_blocks)
        weak = stiffness <= LOST * stiffness[:, -1:]  # a piece that is held
        along = np.einsum("pji,pj->pi", ways, totals) / np.where(weak, np.inf, stiffness)
        shift_pieces(self._piece, c.filters, np.einsum("pij,pj->pi", ways, along), dv_inout)

    def impulses(self, constraints: Constraints, dv: Floats, right: Floats, held: Bools) -> Floats:
        """A dv - `right` where a vertex is `held` (n,): what the constraints contributed."""
        out = np.empty_like(dv)
        update_impulses(self.matrix, constraints.springs, dv, right, held, out)
        return out


@kernel(parallel=True)
def replace_drag(drag: Floats, matrix: BlockMatrix, before_inout: Floats) -> None:
    """Add `drag` (n, 3, 3) to the diagonal of `matrix` in place of that `before`, which becomes it."""
    own, diagonal = matrix.own, matrix.diagonal
    for i in prange(len(drag)):
        for r in range(3):
            for c in range(3):
                change = drag[i, r, c] - before_inout[i, r, c]
                if change != 0.0:
                    own[i, r, c] += change
                    diagonal[i, r, c] += change
                    before_inout[i, r, c] = drag[i, r, c]


@kernel
def add_rows(piece: Ints, x: Floats, totals_inout: Floats) -> None:
    """Add each row of `x` (n, 3) to the total of its piece."""
    for i in range(len(x)):
        for r in range(3):
            totals_inout[piece[i], r] += x[i, r]


@kernel
def add_left_over(
    piece: Ints, masses: Floats, damping: Floats, drag: Floats, right: Floats, dv: Floats, totals_inout: Floats
) -> None:
    """Add what masses, `damping` and `drag` (n, 3, 3) leave of `right` to the total of each piece."""
    for i in range(len(dv)):
        for r in range(3):
            taken = masses[i] * dv[i, r]
            for c in range(3):
                taken += (damping[i, r, c] + drag[i, r, c]) * dv[i, c]
            totals_inout[piece[i], r] += right[i, r] - taken


@kernel
def add_spring_pulls(piece: Ints, springs: Springs, dv: Floats, totals_inout: Floats) -> None:
    """Add what springs pull each piece by as a whole: none that ties it to itself, whose weights add up to nothing."""
    vertices, weights, normals, along, across, _starts, _items = springs
    for s in range(len(vertices)):
        total = weights[s, 0] + weights[s, 1] + weights[s, 2] + weights[s, 3]
        if abs(total) <= LOST:
            continue
        s0 = s1 = s2 = 0.0
        at = 0
        for place in range(4):
            i, w = vertices[s, place], weights[s, place]
            s0, s1, s2 = s0 + w * dv[i, 0], s1 + w * dv[i, 1], s2 + w * dv[i, 2]
            if w != 0.0:
                at = piece[i]
        t0, t1, t2 = resist(normals, along, across, s, total * s0, total * s1, total * s2)
        totals_inout[at, 0] -= t0
        totals_inout[at, 1] -= t1
        totals_inout[at, 2] -= t2


@kernel(parallel=True)
def shift_pieces(piece: Ints, filters: Floats, shifts: Floats, dv_inout: Floats) -> None:
    """Shift each vertex by that of its piece, where it is free."""
    for i in prange(len(dv_inout)):
        p = piece[i]
        for r in range(3):
            dv_inout[i, r] += filters[i, r, 0] * shifts[p, 0] + filters[i, r, 1] * shifts[p, 1]
            dv_inout[i, r] += filters[i, r, 2] * shifts[p, 2]
