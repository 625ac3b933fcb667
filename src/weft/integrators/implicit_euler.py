"""Implicit Euler, linearised once a step or solved by Newton's method.

D. Baraff, A. Witkin, "Large steps in cloth simulation", SIGGRAPH 1998, eq. 6. With K = -df/dx and D = -df/dv:

    (M + dt D + dt^2 K) dv = dt (f - dt K v),    v' = v + dv,    x' = x + dt v'.

Unconditionally stable for positive semi-definite K and D; it damps motion faster than about dt. With
`solver = "ahead"`, the default, it is linearised about x + dt v instead (see `implicit`); with
`solver = "newton"` the whole step is solved, M dv = dt f(x + dt (v + dv), v + dv), to a stated tolerance.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.integrators import Start, System
from weft.integrators.implicit import ImplicitParameters, ImplicitStep, Scheme


class ImplicitEulerParameters(ImplicitParameters):
    """How exactly the step is solved."""


class ImplicitEuler(ImplicitStep):
    """Backward Euler: one linear solve a step (after Baraff and Witkin 1998), or Newton with a line search."""

    Parameters = ImplicitEulerParameters
    solves_springs = True
    needs_jacobians = True
    takes_limits = False

    def __init__(self, pairs: Ints, n_vertices: int, parameters: ImplicitEulerParameters | None = None) -> None:
        super().__init__(pairs, n_vertices, parameters or ImplicitEulerParameters())

    def begin(self, system: System, start: Start, dt: float) -> None:
        self._begin(system, start, dt, Scheme(1.0, 1.0, start.v, 0.0))

    def end(self) -> tuple[Floats, Floats]:
        return self._start.v + self._dv, np.zeros((0, *self._dv.shape))
