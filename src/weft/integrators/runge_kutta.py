"""Runge-Kutta: the classical scheme of fourth order, and an embedded pair that chooses its own steps.

M. W. Kutta, 1901, as in B. Bigliani, J. W. Eischen, "Collision detection in cloth modeling", section 3; J. R. Dormand,
P. J. Prince, "A family of embedded Runge-Kutta formulae", J. Comp. Appl. Math. 6 (1980), the pair 5(4).

Both act on x' = v, v' = S M^-1 f(x, v), where S are the filters of the constraints: in the other directions a vertex
moves at the prescribed velocity throughout the step. Friction, which may be stiff, is found at the end of the step,
implicitly, and acts evenly throughout it: the mean velocity takes half of it. In full, a cloth that sticks on a slope
would creep uphill by half of what gravity moves it.

`rk4` is stable while |z| dt < 2.61 for every eigenvalue z in the left half plane (the nearest point of the boundary
of its stability region, at 122 degrees from the positive real axis; on the imaginary axis it is 2.83): longer steps
are refused. `dormand_prince` keeps the estimated error of each inner step, of positions and of velocities times dt,
below `tolerance`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.errors import WeftError
from weft.integrators import Start, System
from weft.integrators.stability import refuse_long_step, spectral_bounds
from weft.linear.blocks import block_products
from weft.linear.constraints import Constraints
from weft.parameters import Parameters, quantity

RADIUS = 2.61  # of the half disc of stable z dt of rk4


class Tableau(NamedTuple):
    """The coefficients of an explicit Runge-Kutta scheme."""

    a: list[list[float]]
    """row s: how stage s is made from the stages before"""
    b: Floats
    """weights of the stages in the step"""
    c: Floats
    """times of the stages"""
    error: Floats | None
    """weights of the stages in the estimated error"""


RK4 = Tableau([[], [1 / 2], [0, 1 / 2], [0, 0, 1]], np.array([1, 2, 2, 1]) / 6.0, np.array([0.0, 0.5, 0.5, 1.0]), None)
_FIFTH = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
DORMAND_PRINCE = Tableau(
    [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        _FIFTH,
    ],
    np.array([*_FIFTH, 0]),
    np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]),
    np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]),
)


class RungeKuttaParameters(Parameters):
    """Which scheme, and how exact."""

    scheme: Literal["rk4", "dormand_prince"] = quantity("fixed steps, or a pair that adapts them", default="rk4")
    safety: float = quantity("rk4: largest step as a share of the stability limit", default=0.9, gt=0, le=1)
    tolerance: float = quantity("dormand_prince: error of one inner step", default=1e-6, unit="m", gt=0, le=1)
    max_substeps: int = quantity("dormand_prince: inner steps in one step at most", default=10000, ge=1, le=100000000)


class RungeKutta:
    """Explicit Runge-Kutta of order 4, or Dormand and Prince's pair of order 5 with inner steps of its own.

    Attributes
    ----------
    iterations : evaluations of the forces in the current step
    substeps : inner steps of the last solve
    """

    Parameters = RungeKuttaParameters
    solves_springs = False
    needs_jacobians = True  # for the stability limit
    takes_limits = False

    def __init__(self, pairs: Ints, n_vertices: int, parameters: RungeKuttaParameters | None = None) -> None:
        self.parameters = parameters or RungeKuttaParameters()
        self.iterations = 0
        self.substeps = 0

    def begin(self, system: System, start: Start, dt: float) -> None:
        w_sq, rate = spectral_bounds(system.dynamics(start.x, start.v, 0.0))
        fastest = 0.5 * (rate + np.sqrt(rate**2 + 4.0 * w_sq))  # |z| of z^2 + rate z + w^2 = 0 is at most this
        limit = RADIUS / fastest if fastest > 0.0 else np.inf
        if self.parameters.scheme == "rk4":
            refuse_long_step("runge_kutta", dt, self.parameters.safety * limit)
        self._system, self._start, self._dt = system, start, dt
        self._first_substep = min(dt, limit)
        self.iterations = 0

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        c, dt, (x, v, _) = constraints, self._dt, self._start
        masses = self._system.masses[:, None]
        if self.parameters.scheme == "rk4":
            x_end, v_end, momentum, _ = self._advance(RK4, x, v + c.change, 0.0, dt, c.filters)
            self.substeps = 1
        else:
            x_end, v_end, momentum = self._advance_adaptively(c)
        given = masses * (v_end - v) + c.impulses
        matrix = masses[:, :, None] * np.eye(3) + c.drag
        rubbed = np.linalg.solve(matrix, given[:, :, None])[:, :, 0] - (v_end - v)
        friction = block_products(c.filters, rubbed)
        self._v_end = v_end + friction
        dv = (x_end - x) / dt - v + 0.5 * friction
        return dv, block_products(matrix, self._v_end - v) - momentum - c.impulses

    def end(self) -> tuple[Floats, Floats]:
        return self._v_end, np.zeros((0, *self._v_end.shape))

    def _advance(
        self, tableau: Tableau, x: Floats, v: Floats, elapsed: float, h: float, filters: Floats
    ) -> tuple[Floats, Floats, Floats, float]:
        """Positions, velocities, momentum (n, 3) [N s] from all forces, and error [m] after one step of length h."""
        inv_masses = 1.0 / self._system.masses[:, None]
        stages = np.empty((3, len(tableau.b), *x.shape))  # velocities, accelerations, forces
        for s, row in enumerate(tableau.a):
            x_s, v_s = (y + h * np.tensordot(row, stages[k, :s], 1) if s else y for k, y in enumerate((x, v)))
            forces = self._system.forces(x_s, v_s, elapsed + tableau.c[s] * h)
            stages[:, s] = v_s, block_products(filters, forces * inv_masses), forces
        self.iterations += len(tableau.b)
        moved, gained, momentum = h * np.tensordot(stages, tableau.b, ((1,), (0,)))
        error = 0.0
        if tableau.error is not None:
            off_x, off_v, _ = np.abs(h * np.tensordot(stages, tableau.error, ((1,), (0,))))
            error = max(float(off_x.max()), self._dt * float(off_v.max()))
        return x + moved, v + gained, momentum, error

    def _advance_adaptively(self, c: Constraints) -> tuple[Floats, Floats, Floats]:
        p, dt = self.parameters, self._dt
        x, v = self._start.x, self._start.v + c.change
        momentum = np.zeros_like(x)
        elapsed, h = 0.0, self._first_substep
        self.substeps = tried = 0
        while elapsed < dt:
            h = min(h, dt - elapsed)
            last = elapsed + h >= dt
            with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long is tried again
                x_new, v_new, given, error = self._advance(DORMAND_PRINCE, x, v, elapsed, h, c.filters)
            tried += 1
            if error <= p.tolerance:
                x, v, momentum = x_new, v_new, momentum + given
                elapsed = dt if last else elapsed + h
                self.substeps += 1
            elif tried >= p.max_substeps:
                raise WeftError(
                    f"runge_kutta: {p.max_substeps} inner steps do not reach the end of one of {1e3 * dt:.3g} ms, the "
                    f"last was {1e3 * h:.2g} ms; raise max_substeps or tolerance, or use implicit_euler"
                )
            ratio = p.tolerance / error if error > 0.0 else np.inf
            h *= float(np.clip(0.9 * ratio**0.2, 0.2, 5.0)) if np.isfinite(error) else 0.2
        return x, v, momentum
