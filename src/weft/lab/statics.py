"""Cloth at rest under its weight: Newton's method on the potential energy, with the model's own derivative.

The model's matrix K is positive semi-definite, so K + s M, M the masses, always gives a direction downhill. The shift s
shrinks where a step gains what it promises and grows where it does not (Levenberg, Marquardt, in the form of Nielsen
1999): far from rest this is implicit Euler with a step of 1 / sqrt(s), near it Newton's method.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import splu

from weft import jit
from weft.arrays import Bools, Floats, Ints, Longs
from weft.errors import WeftError

GRAVITY = 9.81


class Elastic(Protocol):
    """What is asked of a cloth model here."""

    pairs: Ints
    even: Floats

    def energy(self, x: Floats) -> float: ...
    def add_forces(self, x: Floats, v: Floats, forces_out: Floats) -> None: ...
    def update_jacobians(self, x: Floats, v: Floats, stiffness_out: Floats, damping_out: Floats) -> None: ...


class Rest(NamedTuple):
    """Where the cloth came to rest."""

    positions: Floats
    residual: float
    """largest force left on a free vertex, relative to the mean load of one"""
    iterations: int


def find_rest(
    model: Elastic,
    x: Floats,
    masses: Floats,
    free: Bools,
    *,
    loads: Floats | None = None,
    force_scale: float | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 600,
) -> Rest:
    """Minimise the potential energy of `model` from `x` over the coordinates that are `free`.

    Parameters
    ----------
    masses : (n,) [kg]
    free : (n,) or (n, 3)
    loads : (n, 3) [N] forces that do not change; the weight by default
    force_scale : [N] what `tolerance` is relative to; the mean load of a vertex by default
    tolerance : of the largest force left on a vertex
    """
    with jit.threads_for(len(x)):
        return _find_rest(model, x.copy(), masses, free, loads, force_scale, tolerance, max_iterations)


def _find_rest(
    model: Elastic,
    x: Floats,
    masses: Floats,
    free: Bools,
    loads: Floats | None,
    force_scale: float | None,
    tolerance: float,
    max_iterations: int,
) -> Rest:
    given = masses[:, None] * np.array([0.0, 0.0, -GRAVITY]) if loads is None else loads
    which = np.broadcast_to(free[:, None] if free.ndim == 1 else free, x.shape).ravel()
    scale = force_scale or float(np.abs(given).sum() / len(x))
    inertia = np.repeat(masses, 3)[which]
    still = np.zeros_like(x)
    shift, growth = 1e4, 2.0
    energy = model.energy(x) - float((given * x).sum())
    for iteration in range(max_iterations):
        force = given.copy()
        model.add_forces(x, still, force)
        left = force.ravel()[which]
        residual = float(np.abs(left).max()) / scale
        if residual < tolerance:
            return Rest(x, residual, iteration)
        matrix = _assemble(model, all_blocks(model, x, still)[0], len(x))[which][:, which]
        while True:
            shifted = csc_array(matrix + _diagonal(shift * inertia))
            part = splu(shifted, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(left)
            step = np.zeros(x.size)
            step[which] = part
            y = x + step.reshape(x.shape)
            lower = model.energy(y) - float((given * y).sum())
            gain = (energy - lower) / (0.5 * float(part @ (left + shift * inertia * part)))
            if gain > 1e-4 or abs(energy - lower) < 1e-13 * abs(energy):
                break
            shift = max(growth * shift, 1e-3)
            growth *= 2.0
            if shift > 1e14:
                return Rest(x, residual, iteration)  # round-off: no step lowers the energy any more
        x, energy, growth = y, lower, 2.0
        shift *= max(0.2, 1.0 - (2.0 * gain - 1.0) ** 3)
    raise WeftError(f"no rest after {max_iterations} iterations: {residual:.2g} of the mean load is left")


def all_blocks(model: Elastic, x: Floats, v: Floats) -> Floats:
    """(2, p, 3, 3) stiffness and damping of every pair of a model, even ones as blocks like the others."""
    size = len(model.pairs) - len(model.even)
    blocks = np.zeros((2, len(model.pairs), 3, 3))
    model.update_jacobians(x, v, blocks[0, :size], blocks[1, :size])
    blocks[0, size:] = model.even[:, None, None] * np.eye(3)
    return blocks


def _assemble(model: Elastic, blocks: Floats, n: int) -> csc_array:
    """The whole matrix from the blocks of pairs, by the rule of zero row sums."""
    i, j = model.pairs[:, 0].astype(np.int64), model.pairs[:, 1].astype(np.int64)
    axis = np.arange(3)

    def rows(v: Longs) -> Longs:
        return np.broadcast_to(3 * v[:, None, None] + axis[:, None], blocks.shape).ravel()

    def columns(v: Longs) -> Longs:
        return np.broadcast_to(3 * v[:, None, None] + axis, blocks.shape).ravel()

    turned = np.swapaxes(blocks, 1, 2)
    values = np.concatenate([blocks.ravel(), turned.ravel(), -blocks.ravel(), -turned.ravel()])
    row = np.concatenate([rows(i), rows(j), rows(i), rows(j)])
    column = np.concatenate([columns(j), columns(i), columns(i), columns(j)])
    return coo_array((values, (row, column)), shape=(3 * n, 3 * n)).tocsc()


def _diagonal(values: Floats) -> csc_array:
    index = np.arange(len(values))
    return csc_array((values, (index, index)), shape=(len(values), len(values)))
