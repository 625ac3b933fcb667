"""Cloth that moves by its weight, one step of implicit Euler after another, without contacts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft import jit
from weft.arrays import Bools, Floats
from weft.errors import WeftError
from weft.geometry.mesh import Mesh
from weft.integrators import Start
from weft.integrators.implicit_euler import ImplicitEuler, ImplicitEulerParameters
from weft.lab.samples import vertex_masses
from weft.lab.statics import GRAVITY
from weft.linear.constraints import build_constraints
from weft.models import Model
from weft.models.fabrics import Fabric
from weft.models.wind import Wind
from weft.simulation.system import ClothSystem

STILL = 1e-3  # [m/s]


def fall(
    model: Model,
    mesh: Mesh,
    fabric: Fabric,
    x: Floats,
    held: Bools,
    dt: float,
    *,
    air: float = 0.0,
    lowering: float = 0.0,
    tolerance: float = 1e-2,
) -> Iterator[tuple[Floats, Floats]]:
    """Positions and velocities at the start and after each step of a cloth whose `held` vertices (n,) do not move.

    Parameters
    ----------
    air : density of still air [kg/m3]
    lowering : [s] for which a support takes off the weight, less and less
    tolerance : of the linear solve
    """
    n = mesh.n_vertices
    stepper = ImplicitEuler(model.pairs, n, ImplicitEulerParameters(tolerance=tolerance, max_iterations=2000))
    system = ClothSystem(
        [model],
        [slice(0, n)],
        vertex_masses(mesh, fabric.density),
        np.zeros(3),
        mesh.topology,
        Wind(density=air),
        np.full(n, 0.5 * air * fabric.drag),
    )
    limits = build_constraints(n)
    limits.filters[held] = 0.0
    v, k = np.zeros_like(x), 0
    while True:
        yield x, v
        k += 1
        share = min(1.0, k * dt / lowering) if lowering > 0.0 else 1.0
        system.gravity = np.array([0.0, 0.0, -share * GRAVITY])
        with jit.threads_for(n):
            stepper.begin(system, Start(x, v, np.zeros((0, *x.shape))), dt)
            v = v + stepper.solve(limits)[0]
        x = x + dt * v


def settle(
    model: Model, mesh: Mesh, fabric: Fabric, x: Floats, held: Bools, *, dt: float = 0.01, lowering: float = 1.5
) -> Floats:
    """Where a cloth comes to rest whose support is lowered: nothing moves faster than `STILL`."""
    longest = lowering + 10.0
    for k, (now, v) in enumerate(fall(model, mesh, fabric, x, held, dt, air=1.2, lowering=lowering)):
        speed = float(np.abs(v).max())
        if k * dt > lowering + 0.5 and speed < STILL:
            return now
        if k * dt > longest:
            break
    raise WeftError(f"no rest after {longest:g} s: {1e3 * speed:.2g} mm/s are left")
