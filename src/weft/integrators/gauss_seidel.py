"""Implicit Euler solved by constrained Gauss-Seidel relaxation.

J.-D. Liu, M.-T. Ko, R.-C. Chang, "A simple self-collision avoidance for cloth animation", Computers & Graphics 22
(1998), eqs. 2 to 5 and 11: A r = g for the positions r at the end of the step, in which each coordinate of each
vertex may have a lower and an upper limit. We relax the same system in the change of velocity dv, to which
r = x + dt (v + dv) is tied coordinate by coordinate, so that the limits carry over.

It is the integrator for responses that speak in intervals. Without intervals conjugate gradients (`implicit_euler`)
reach the same solution in fewer operations: the sweeps needed grow with stiffness, and stopping early leaves cloth
softer than it is, though never unstable, since every relaxation lowers the energy of the step.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.integrators import Start, System
from weft.linear.blocks import block_products
from weft.linear.constraints import Constraints
from weft.linear.filtered import FilteredSystem
from weft.linear.gauss_seidel import relax_constrained
from weft.parameters import Parameters, quantity


class GaussSeidelParameters(Parameters):
    """When relaxation stops."""

    tolerance: float = quantity("largest change of a velocity in the last sweep", default=1e-4, unit="m/s", gt=0, le=1)
    max_sweeps: int = quantity("sweeps at most", default=500, ge=1, le=1000000)


class GaussSeidel:
    """Backward Euler by constrained relaxation (Liu, Ko and Chang 1998): keeps intervals for every coordinate.

    Attributes
    ----------
    iterations : sweeps in the current step
    change : largest change of a velocity in the last sweep [m/s]
    """

    Parameters = GaussSeidelParameters
    solves_springs = False
    needs_jacobians = True
    takes_limits = True

    def __init__(self, pairs: Ints, n_vertices: int, parameters: GaussSeidelParameters | None = None) -> None:
        self.parameters = parameters or GaussSeidelParameters()
        self._system = FilteredSystem(pairs, n_vertices)
        self._unlimited = np.full((n_vertices, 3), np.inf)
        self.iterations = 0
        self.change = 0.0

    def begin(self, system: System, start: Start, dt: float) -> None:
        d = system.dynamics(start.x, start.v, dt)
        self._system.assemble(start.x, d.masses, d.extra_damping, d.stiffness, d.damping, d.even, dt)
        self._right = dt * (d.forces - dt * self._system.stiffness_product(d.stiffness, d.even, start.v))
        self._start, self._dt = start, dt
        self._dv = np.zeros_like(start.v)
        self.iterations = 0

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        p, c = self.parameters, constraints
        right = self._right + c.impulses
        self._system.add_drag(c.drag)
        dv = c.change + block_products(c.filters, self._dv)
        low = -self._unlimited if c.lower is None else self._as_change(c.lower)
        high = self._unlimited if c.upper is None else self._as_change(c.upper)
        sweeps, self.change = relax_constrained(
            self._system.matrix, right, c.filters, low, high, p.tolerance, p.max_sweeps, dv
        )
        self.iterations += sweeps
        self._dv = dv
        return dv, self._system.impulses(c, dv, right, np.ones(len(dv), bool))

    def _as_change(self, limits: Floats) -> Floats:
        """The change of velocity that takes each coordinate to its limit."""
        return np.ascontiguousarray((limits - self._start.x) / self._dt - self._start.v)

    def end(self) -> tuple[Floats, Floats]:
        return self._start.v + self._dv, np.zeros((0, *self._dv.shape))
