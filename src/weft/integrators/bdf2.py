"""Second-order backward differences (BDF2), linearised once a step.

K.-J. Choi, H.-S. Ko, "Stable but responsive cloth", SIGGRAPH 2002, section 5. With x_p, v_p one step back:

    (3 x' - 4 x + x_p) / (2 dt) = v',    M (3 v' - 4 v + v_p) / (2 dt) = f(x', v').

We solve for the mean velocity u = (x' - x) / dt, and remember u_p = (x - x_p) / dt and v_p. Then
v' = (3 u - u_p) / 2, and with u = v + dv, K = -df/dx, D = -df/dv and forces linearised about (x, (3 v - u_p) / 2):

    (M + h D + h^2 K) dv = 4/9 (dt f - dt^2 K v - M (v / 4 - 3/4 u_p + v_p / 2)),    h = 2/3 dt.

Second order, A-stable and L-stable, and it damps slow motion far less than implicit Euler does. The first step is
one of implicit Euler. Linearised, it is of first order in what models leave out of their derivatives (compressed
springs, dampers that turn with the cloth); `solver = "newton"` is of second order in all.

What a contact or a pin does is not smooth, and extrapolating across it would make cloth bounce off the table: in
constrained directions v' = u, and the history is the one of a steady motion.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from weft.arrays import Floats, Ints
from weft.integrators import Start, System
from weft.integrators.implicit import ImplicitParameters, ImplicitStep, Scheme
from weft.linear.blocks import block_products
from weft.parameters import quantity


class Bdf2Parameters(ImplicitParameters):
    """How exactly the step is solved."""

    # What linearising about x damps is what keeps the wrinkles of responsive cloth from swinging on.
    solver: Literal["linear", "ahead", "newton"] = quantity(
        "one linear solve about where the step starts or about where inertia leads, or Newton's method",
        default="linear",
    )


class Bdf2(ImplicitStep):
    """Backward differences of second order (Choi and Ko 2002)."""

    Parameters = Bdf2Parameters
    solves_springs = True
    needs_jacobians = True
    takes_limits = False

    def __init__(self, pairs: Ints, n_vertices: int, parameters: Bdf2Parameters | None = None) -> None:
        super().__init__(pairs, n_vertices, parameters or Bdf2Parameters())

    def begin(self, system: System, start: Start, dt: float) -> None:
        v, self._first = start.v, len(start.memory) == 0
        if self._first:
            self._begin(system, start, dt, Scheme(1.0, 1.0, v, 0.0))
            return
        self._u_before, v_before = start.memory
        past = system.masses[:, None] * (0.25 * v - 0.75 * self._u_before + 0.5 * v_before)
        self._begin(system, start, dt, Scheme(2.25, 1.5, 1.5 * v - 0.5 * self._u_before, past))

    def end(self) -> tuple[Floats, Floats]:
        v = self._start.v
        u = v + self._dv
        v_end = u if self._first else u + block_products(self._filters, 0.5 * (u - self._u_before))
        return v_end, np.stack([u, v_end + block_products(self._filters, v - v_end)])
