"""Central differences: half a step of velocity, a step of positions, half a step of velocity; damping is implicit.

R. Bridson, R. Fedkiw, J. Anderson, "Robust treatment of collisions, contact and friction for cloth animation", SIGGRAPH
2002, section 7.6 (what da Silva's section 9 calls the correct final velocity). With h = dt / 2:

    u  = v + h M^-1 f(x, u),    x' = x + dt u,    v' = u + h M^-1 f(x', v').

u is the mean velocity of the step, which contacts change; only then is the final velocity v' found, from where the
cloth really ends. Elastic forces enter explicitly, so that steps must stay below 2 / w for the highest frequency w.
Damping and air enter implicitly, through two symmetric systems (M + h D) dv = h f, solved by conjugate gradients: they
may be as strong as they like. Without damping it is velocity Verlet, of second order; in damping it is of first order,
both halves being implicit.

Friction by `drag` acts in both halves, half of it in each, against the change since the start of the step.
"""

from __future__ import annotations

import math

import numpy as np

from weft.arrays import Floats, Ints
from weft.integrators import Dynamics, Start, System
from weft.integrators.stability import refuse_long_step, spectral_bounds
from weft.jit import kernel
from weft.linear.blocks import block_products
from weft.linear.constraints import Constraints
from weft.parameters import Parameters, quantity


class CentralParameters(Parameters):
    """How close to the limit of stability a step may come, and how exactly damping is solved."""

    safety: float = quantity("largest step as a share of the stability limit", default=0.9, gt=0, le=1)
    tolerance: float = quantity("residual relative to the right-hand side", default=1e-3, gt=0, lt=1)
    error: float = quantity("velocity error at which to stop, root mean square", default=1e-5, unit="m/s", gt=0, le=1)
    max_iterations: int = quantity("conjugate-gradient iterations at most", default=100, ge=1, le=100000)


class Central:
    """Explicit elasticity, implicit damping, and a final velocity that follows from where the step ends.

    Attributes
    ----------
    iterations : conjugate-gradient iterations in the current step
    """

    Parameters = CentralParameters
    solves_springs = False
    needs_jacobians = True
    takes_limits = False

    def __init__(self, pairs: Ints, n_vertices: int, parameters: CentralParameters | None = None) -> None:
        self.parameters = parameters or CentralParameters()
        self._pairs = pairs
        self.iterations = 0

    def begin(self, system: System, start: Start, dt: float) -> None:
        self._system, self._start, self._dt = system, start, dt
        self.iterations = 0
        d = system.dynamics(start.x, start.v, 0.0)
        w_sq, _ = spectral_bounds(d)
        limit = 2.0 / np.sqrt(w_sq) if w_sq > 0.0 else np.inf
        refuse_long_step("central", dt, self.parameters.safety * limit)
        self._first = (d.forces, d.damping.copy(), d.extra_damping)

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        c, (x, v, _) = constraints, self._start
        self._constraints = c._replace(change=np.zeros_like(c.change), drag=0.5 * c.drag, impulses=0.5 * c.impulses)
        dv, exerted = self._kick(*self._first, self._constraints._replace(change=c.change))
        self._v_end, later = self._final(x + self._dt * (v + dv), v + dv)
        return dv, exerted + later

    def final_velocity(self, x_t1: Floats) -> Floats:
        """The velocity (n, 3) [m/s] at the end of a step that took the cloth to `x_t1` (n, 3) after all."""
        return self._final(x_t1, (x_t1 - self._start.x) / self._dt)[0]

    def end(self) -> tuple[Floats, Floats]:
        return self._v_end, np.zeros((0, *self._v_end.shape))

    def _final(self, x_t1: Floats, u: Floats) -> tuple[Floats, Floats]:
        """The final velocity from the mean one, and the impulse of constraints in the second half."""
        c = self._constraints
        held = block_products(c.drag, u - self._start.v)
        d: Dynamics = self._system.dynamics(x_t1, u, self._dt)
        dv, exerted = self._kick(d.forces, d.damping, d.extra_damping, c._replace(impulses=c.impulses - held))
        return u + dv, exerted

    def _kick(self, forces: Floats, damping: Floats, extra: Floats, c: Constraints) -> tuple[Floats, Floats]:
        """Half a step of velocity: its change, and the impulse of the constraints."""
        p, h, masses = self.parameters, 0.5 * self._dt, self._system.masses
        right = h * forces + c.impulses
        dv, exerted = np.empty_like(right), np.empty_like(right)
        self.iterations += solve_damped(
            masses,
            self._pairs[: len(damping)],
            h * damping,
            h * extra + c.drag,
            c.filters,
            c.change,
            right,
            (p.tolerance, p.error, p.max_iterations),
            dv,
            exerted,
        )
        return dv, exerted


@kernel
def _apply(masses: Floats, pairs: Ints, damping: Floats, diagonal: Floats, x: Floats, product_out: Floats) -> None:
    """Overwrite `product_out` with (M + D) x; D has blocks `damping` between vertices, and `diagonal` besides."""
    for i in range(len(masses)):
        for r in range(3):
            total = masses[i] * x[i, r]
            for c in range(3):
                total += diagonal[i, r, c] * x[i, c]
            product_out[i, r] = total
    for k in range(len(pairs)):
        i, j = pairs[k, 0], pairs[k, 1]
        for r in range(3):
            pull = 0.0
            for c in range(3):
                pull += damping[k, r, c] * (x[j, c] - x[i, c])
            product_out[i, r] += pull
            product_out[j, r] -= pull


@kernel
def _project(filters: Floats, x_inout: Floats) -> None:
    """Keep what is free of each row."""
    for i in range(len(x_inout)):
        a, b, c = x_inout[i, 0], x_inout[i, 1], x_inout[i, 2]
        for r in range(3):
            x_inout[i, r] = filters[i, r, 0] * a + filters[i, r, 1] * b + filters[i, r, 2] * c


@kernel(allocates=True)
def solve_damped(
    masses: Floats,
    pairs: Ints,
    damping: Floats,
    diagonal: Floats,
    filters: Floats,
    change: Floats,
    right: Floats,
    until: tuple[float, float, int],
    dv_out: Floats,
    exerted_out: Floats,
) -> int:
    """Overwrite `dv_out` (n, 3) with the solution of (M + D) dv = right in the free directions; return the iterations.

    `exerted_out` is what the constraints contribute, (M + D) dv - right. Masses outweigh damping in a short step, so
    they are the preconditioner, with drag where there is some; from the start on, and in every direction, momentum is
    that of `right`.
    """
    tolerance, error, most = until
    n = len(masses)
    weight = np.empty(n)
    for i in range(n):
        weight[i] = masses[i] + (diagonal[i, 0, 0] + diagonal[i, 1, 1] + diagonal[i, 2, 2]) / 3.0
        for c in range(3):
            dv_out[i, c] = right[i, c] / masses[i] if weight[i] < 2.0 * masses[i] else right[i, c] / weight[i]
    _project(filters, dv_out)
    dv_out += change
    product, step, z = np.empty_like(right), np.zeros_like(right), np.empty_like(right)
    _apply(masses, pairs, damping, diagonal, dv_out, product)
    residual = right - product
    _project(filters, residual)
    size = 0.0
    for i in range(n):
        for c in range(3):
            size += right[i, c] ** 2 / weight[i]
    before, iterations = 0.0, 0
    while iterations < most:
        now = 0.0
        for i in range(n):
            for c in range(3):
                z[i, c] = residual[i, c] / weight[i]
                now += z[i, c] * residual[i, c]
        if now <= tolerance * tolerance * size and now <= error * error * masses.sum():
            break
        if not math.isfinite(now):
            break
        for i in range(n):
            for c in range(3):
                step[i, c] = z[i, c] + (now / before * step[i, c] if iterations > 0 else 0.0)
        _apply(masses, pairs, damping, diagonal, step, product)
        _project(filters, product)
        curved = 0.0
        for i in range(n):
            for c in range(3):
                curved += step[i, c] * product[i, c]
        if not curved > 0.0:
            break
        for i in range(n):
            for c in range(3):
                dv_out[i, c] += now / curved * step[i, c]
                residual[i, c] -= now / curved * product[i, c]
        before = now
        iterations += 1
    _apply(masses, pairs, damping, diagonal, dv_out, exerted_out)
    exerted_out -= right
    return iterations
