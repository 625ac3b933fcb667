"""Implicit Euler, linearised once a step.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, eq. 6. With K = -df/dx and D = -df/dv:

    (M + dt D + dt^2 K) dv = dt (f - dt K v),    v' = v + dv,    x' = x + dt v'.

Unconditionally stable for positive semi-definite K and D; it damps motion faster than about dt.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.integrators import Dynamics
from weft.linear.blocks import build_matrix, update_implicit_matrix
from weft.linear.constraints import Constraints
from weft.linear.pcg import build_work, solve_filtered, update_residual
from weft.linear.translations import Translations
from weft.parameters import Parameters, quantity


class ImplicitEulerParameters(Parameters):
    """How exactly the linear system is solved."""

    tolerance: float = quantity("residual relative to the right-hand side", default=1e-2, gt=0, lt=1)
    max_iterations: int = quantity("conjugate-gradient iterations at most", default=400, ge=1, le=100000)


class ImplicitEuler:
    """Backward Euler with one linear solve a step (Baraff and Witkin 1998), by filtered conjugate gradients."""

    Parameters = ImplicitEulerParameters
    solves_springs = True
    needs_jacobians = True

    def __init__(self, pairs: Ints, n_vertices: int, parameters: ImplicitEulerParameters | None = None) -> None:
        self.parameters = parameters or ImplicitEulerParameters()
        self._matrix = build_matrix(pairs, n_vertices)
        self._work = build_work(n_vertices)
        self._translations = Translations(pairs, n_vertices)
        self._stiffness_times_v = np.zeros((n_vertices, 3))
        self._right = np.zeros((n_vertices, 3))
        self.iterations = 0

    def begin(self, dynamics: Dynamics, v: Floats, dt: float) -> None:
        d = dynamics
        update_implicit_matrix(
            v, d.masses, d.extra_damping, d.stiffness, d.damping, dt, self._matrix, self._stiffness_times_v
        )
        self._right = dt * (d.forces - dt * self._stiffness_times_v)
        self._diagonal = self._matrix.diagonal.copy()
        self._guess = np.zeros_like(v)
        self.iterations = 0

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        free = np.einsum("nij,nj->ni", constraints.filters, self._guess)
        dv = constraints.change + free
        right = self._right + constraints.impulses
        np.add(self._diagonal, constraints.drag, out=self._matrix.diagonal)
        p = self.parameters
        iterations, _ = solve_filtered(
            self._matrix, constraints.springs, right, constraints.filters, p.tolerance, p.max_iterations, self._work, dv
        )
        self.iterations += iterations
        impulse = np.empty_like(dv)
        update_residual(self._matrix, constraints.springs, dv, right, impulse)
        self._translations.correct(self._matrix, constraints, dv, impulse)
        self._guess = dv.copy()
        return dv, impulse
