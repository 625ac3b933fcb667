"""The step of an implicit scheme, and the ways to solve it: one linear solve, about either of two states, or Newton's
method.

With u = v + dv the mean velocity in the step, an implicit scheme of one or several steps reads

    s M dv + past = dt f(x + dt u, w + g dv),

where the numbers s and g, the velocity w and the momentum `past` make the scheme: s = g = 1, w = v and past = 0 for
implicit Euler. With K = -df/dx and D = -df/dv at (x, w) its linearisation is, h being dt g / s and g^2 = s,

    s (M + h D + h^2 K) dv = dt (f - dt K v) - past,

the step of Baraff and Witkin. Where cloth turns by an angle a in a step, its edges seem to keep their length in it and
are longer by a^2 / 2 in truth, which the next step takes back out of the turning: wrinkles are damped, a sheet that
collapses on the floor falls at 2/3 of its speed (1/120 s), and edges that turn fast are left overstretched. So
`ahead` linearises about x + dt v, where inertia alone would lead, with forces and derivatives of that place:

    s (M + h D + h^2 K) dv = dt f(x + dt v, w) - past.

Newton's method goes on until the residual r, divided by the diagonal of the matrix, is below `newton_tolerance`: the
change of velocity that the worst vertex still misses. Models drop what is indefinite in K, so a full step p may go too
far. Damping and air have no potential, so the line search uses forces alone: along p the slope of the energy of the
step is p . r, the trapezoid of its values at both ends stands for the decrease (it is exact where the energy is
quadratic), and the step is halved until that is a tenth of what the first slope promises.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.geometry.rows import drift, scaled_rows, weighted_square
from weft.integrators import Dynamics, Start, System
from weft.linear.blocks import block_products
from weft.linear.constraints import Constraints
from weft.linear.filtered import FilteredSystem
from weft.linear.pcg import precision
from weft.linear.springs import Springs, spring_impulses
from weft.parameters import Parameters, quantity

SLOW = 0.1  # share of the root mean square speed that may be missing; with 0.15, draped cloth sways for seconds longer
LEAST = 0.2  # of `error`: to solve for less took a third more iterations, and cloth lay no stiller
ROUGH = 4.0  # times the error is good enough to see which springs would pull
PROMISED = 0.1  # share of the decrease that the first slope promises
HALVINGS = 8


class ImplicitParameters(Parameters):
    """How exactly the step is solved."""

    solver: Literal["linear", "ahead", "newton"] = quantity(
        "one linear solve about where the step starts or about where inertia leads, or Newton's method", default="ahead"
    )
    tolerance: float = quantity("linear: residual relative to the right-hand side", default=0.3, gt=0, lt=1)
    error: float = quantity(
        "linear: velocity error at which to stop, root mean square", default=2e-2, unit="m/s", gt=0, le=1
    )
    max_iterations: int = quantity("conjugate-gradient iterations at most", default=400, ge=1, le=100000)
    newton_tolerance: float = quantity("residual at which Newton stops", default=1e-4, unit="m/s", gt=0, le=1)
    max_newton: int = quantity("Newton iterations at most", default=30, ge=1, le=1000)


class Scheme(NamedTuple):
    """What tells implicit schemes apart; see the module."""

    scale: float
    """s"""
    slope: float
    """g, the root of s"""
    reference: Floats
    """(n, 3) w [m/s]"""
    past: Floats | float
    """(n, 3) [N s]"""


class ImplicitStep:
    """One implicit step under constraints.

    Attributes
    ----------
    iterations : conjugate-gradient iterations in the current step
    about : where the vertices stand (n, 3) about which the last solve is linear
    newton_iterations : Newton iterations of the last solve
    residual : what Newton left of the step's equation [m/s]; above `newton_tolerance` where it did not converge
    """

    def __init__(self, pairs: Ints, n_vertices: int, parameters: ImplicitParameters) -> None:
        self._p = parameters
        self._matrix = FilteredSystem(pairs, n_vertices, precision(parameters.tolerance, LEAST * parameters.error))
        self.iterations = self.newton_iterations = 0
        self.residual = 0.0

    def _begin(self, system: System, start: Start, dt: float, scheme: Scheme) -> None:
        self._system, self._start, self._dt, self._scheme = system, start, dt, scheme
        self._dv = np.zeros_like(start.v)
        self.iterations = 0
        if self._p.solver == "ahead":
            self._right = self._linearise(self._dv)
        elif self._p.solver == "linear":
            d = system.dynamics(start.x, scheme.reference, dt)
            self._assemble(start.x, d)
            k_times_v = self._matrix.stiffness_product(d.stiffness, d.even, start.v)
            self._right = (dt * d.forces - dt**2 * k_times_v - scheme.past) / scheme.scale

    def _linearise(self, dv: Floats) -> Floats:
        """Set up the matrix about `dv` [m/s]; return the right-hand side of the change that is missing there."""
        (x, v, _), dt, s = self._start, self._dt, self._scheme
        x_end = drift(x, v, dv, dt)
        d = self._system.dynamics(x_end, s.reference + s.slope * dv, dt)
        self._assemble(x_end, d)
        return -self._residual(dv, d.forces) / s.scale

    def _assemble(self, x: Floats, d: Dynamics) -> None:
        h = self._dt * self._scheme.slope / self._scheme.scale
        self.about = x
        self._matrix.assemble(x, d.masses, d.extra_damping, d.stiffness, d.damping, d.even, h)

    def try_out(self, constraints: Constraints) -> tuple[Floats, Floats]:
        """A rough solve: good enough to see which springs would pull."""
        return self._solve(constraints, ROUGH, anew=True)

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        return self._solve(constraints, 1.0, anew=True)

    def solve_on(self, constraints: Constraints) -> tuple[Floats, Floats]:
        """Go on from the last solve, after which contacts may have been let go, and nothing else changed."""
        return self._solve(constraints, 1.0, anew=False)

    def _solve(self, constraints: Constraints, slack: float, anew: bool) -> tuple[Floats, Floats]:
        if self._p.solver == "newton":
            self._dv, impulses = self._solve_newton(constraints)
        else:
            self._dv, impulses = self._solve_linear(constraints, slack, anew)
        self._filters = constraints.filters
        # A scheme of several steps weighs a change of velocity by s; a contact takes the momentum of a vertex once.
        more = self._scheme.scale - 1.0
        return self._dv, impulses - more * scaled_rows(self._system.masses, constraints.change)

    def refine(self, constraints: Constraints, dv: Floats) -> tuple[Floats, Floats]:
        """Solve once more, about where `dv` leads: for a step in which the cloth turned far."""
        p, scale = self._p, self._scheme.scale
        right = -self._momentum_error(constraints, dv) / scale
        self._matrix.add_drag(self._over_scale(constraints.drag))
        more, impulses = self._matrix.solve(
            right, self._homogeneous(constraints), np.zeros_like(right), p.tolerance, self._error(), p.max_iterations
        )
        self._dv = dv + more
        self.iterations = self._matrix.iterations
        return self._dv, scale * impulses

    def _homogeneous(self, c: Constraints) -> Constraints:
        """What holds of a change to come, once the prescribed one is made."""
        return c._replace(change=np.zeros_like(c.change), springs=self._scaled(c.springs))

    def _scaled(self, springs: Springs) -> Springs:
        return springs._replace(along=self._over_scale(springs.along), across=self._over_scale(springs.across))

    def _over_scale(self, part: Floats) -> Floats:
        """`part` / s, without a copy where s is 1."""
        return part if self._scheme.scale == 1.0 else part / self._scheme.scale

    def _momentum_error(self, c: Constraints, dv: Floats) -> Floats:
        """What the step's equation lacks at `dv` (n, 3) [N s], about which the matrix is set up."""
        return -self._scheme.scale * self._linearise(dv) + self._friction(c, dv)

    def _solve_linear(self, c: Constraints, slack: float, anew: bool) -> tuple[Floats, Floats]:
        p, scale = self._p, self._scheme.scale
        right = self._right + self._over_scale(c.impulses)
        scaled = c._replace(springs=self._scaled(c.springs))
        self._matrix.add_drag(self._over_scale(c.drag))
        tolerance, error = slack * p.tolerance, slack * self._error()
        dv, residual = self._matrix.solve(right, scaled, self._dv, tolerance, error, p.max_iterations, anew)
        self.iterations = self._matrix.iterations
        return dv, scale * residual

    def _error(self) -> float:
        """The velocity [m/s] that may be missing: less where the cloth is slow, or errors would keep it awake."""
        v, masses = self._start.v, self._system.masses
        speed = np.sqrt(weighted_square(masses, v) / masses.sum())
        return float(np.clip(SLOW * speed, LEAST * self._p.error, self._p.error))

    def _solve_newton(self, c: Constraints) -> tuple[Floats, Floats]:
        p, scale, homogeneous = self._p, self._scheme.scale, self._homogeneous(c)
        dv = c.change + block_products(c.filters, self._dv)
        for iteration in range(p.max_newton + 1):
            r = self._momentum_error(c, dv)
            free = block_products(c.filters, r)
            self.newton_iterations, self.residual = iteration, self._velocity_error(free)
            if self.residual <= p.newton_tolerance or iteration == p.max_newton:
                break
            self._matrix.add_drag(self._over_scale(c.drag))
            guess = np.zeros_like(dv)
            direction, _ = self._matrix.solve(-r / scale, homogeneous, guess, p.tolerance, p.error, p.max_iterations)
            self.iterations += self._matrix.iterations
            dv = dv + self._step_length(c, dv, direction, float((free * direction).sum())) * direction
        return dv, r

    def _velocity_error(self, residual: Floats) -> float:
        """The change of velocity [m/s] that the worst vertex still misses, by the diagonal of the matrix."""
        diagonal = np.einsum("nii->ni", self._matrix.matrix.diagonal)
        return float((np.abs(residual) / diagonal).max()) / self._scheme.scale

    def _residual(self, dv: Floats, forces: Floats) -> Floats:
        """s M dv + past - dt f (n, 3) [N s]."""
        s = self._scheme
        residual: Floats = s.scale * scaled_rows(self._system.masses, dv) + s.past - self._dt * forces
        return residual

    def _friction(self, c: Constraints, dv: Floats) -> Floats:
        friction: Floats = block_products(c.drag, dv) - c.impulses
        return friction + spring_impulses(c.springs, dv)

    def _step_length(self, c: Constraints, dv: Floats, direction: Floats, slope: float) -> float:
        (x, v, _), dt, s = self._start, self._dt, self._scheme
        length = 1.0
        for _ in range(HALVINGS):
            tried = dv + length * direction
            forces = self._system.forces(drift(x, v, tried, dt), s.reference + s.slope * tried, dt)
            r = self._residual(tried, forces) + self._friction(c, tried)
            if 0.5 * (slope + float((r * direction).sum())) <= PROMISED * slope:
                break
            length *= 0.5
        return length
