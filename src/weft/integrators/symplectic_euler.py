"""Symplectic (semi-implicit) Euler: v' = v + dt M^-1 f(x, v), x' = x + dt v'.

First order, explicit, keeps the energy of an undamped oscillator bounded as long as dt < 2 / w for the highest
frequency w of the cloth. Beyond that it explodes, so a step that is too long is refused by name, with the longest
one that is safe.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats, Ints
from weft.errors import WeftError
from weft.integrators import Dynamics
from weft.linear.constraints import Constraints
from weft.parameters import Parameters, quantity


class SymplecticEulerParameters(Parameters):
    """How close to the limit of stability a step may come."""

    safety: float = quantity("largest step as a share of the stability limit", default=0.9, gt=0, le=1)


class SymplecticEuler:
    """Explicit Euler with the new velocity in the position update; needs small steps."""

    Parameters = SymplecticEulerParameters
    solves_springs = False
    needs_jacobians = True  # for the stability limit

    def __init__(self, pairs: Ints, n_vertices: int, parameters: SymplecticEulerParameters | None = None) -> None:
        self.parameters = parameters or SymplecticEulerParameters()
        self.iterations = 0

    def begin(self, dynamics: Dynamics, v: Floats, dt: float) -> None:
        limit = self.parameters.safety * stable_step(dynamics)
        if dt > limit:
            shown = 1e3 * 0.995 * limit  # three digits of it, rounded, are not beyond the limit themselves
            raise WeftError(
                f"symplectic_euler: a step of {1e3 * dt:.3g} ms is beyond the largest safe step of this cloth, "
                f"{shown:.3g} ms; multiply steps_per_frame by {int(np.ceil(dt / limit))} or use implicit_euler"
            )
        self._masses = dynamics.masses[:, None]
        self._impulse = dt * dynamics.forces

    def solve(self, constraints: Constraints) -> tuple[Floats, Floats]:
        given = self._impulse + constraints.impulses
        matrix = self._masses[:, :, None] * np.eye(3) + constraints.drag
        s, z = constraints.filters, constraints.change[:, :, None]
        reduced = s @ matrix @ s + (np.eye(3) - s)  # the matrix in the free directions, 1 in the others
        dv = (s @ np.linalg.solve(reduced, s @ (given[:, :, None] - matrix @ z)) + z)[:, :, 0]
        return dv, np.einsum("nij,nj->ni", matrix, dv) - given


def stable_step(dynamics: Dynamics) -> float:
    """A lower bound of the stability limit [s].

    Gershgorin: the largest eigenvalue of M^-1 K is at most max_i 2 sum_j |K_ij| / m_i, of M^-1 D likewise; the
    scheme is stable for dt^2 w^2 + 2 dt d < 4 with w^2 and d those bounds.
    """
    d = dynamics
    n = len(d.masses)

    def row_bound(blocks: Floats) -> float:
        norms = np.sqrt((blocks**2).sum(axis=(1, 2)))
        rows = np.bincount(d.pairs.T.ravel(), np.tile(norms, 2), minlength=n)
        return float((2.0 * rows / d.masses).max())

    w_sq = row_bound(d.stiffness)
    air = np.sqrt((d.extra_damping**2).sum(axis=(1, 2)))
    rate = row_bound(d.damping) + float((air / d.masses).max())
    if w_sq == 0.0:
        return np.inf if rate == 0.0 else 2.0 / rate
    return float((np.sqrt(rate**2 + 4.0 * w_sq) - rate) / w_sq)
