"""Crumpled states of a square cloth, without a simulator.

A sheet is folded by soft reflections: every point beyond a plane is mirrored back across it. A mirror changes no
length, so the cloth keeps its size, as real cloth nearly does; rounding the crease turns a reflection into a fold
with a radius. A few dozen planes with random normals, at shrinking distances from the centre, leave a pile of many
layers in a small ball, and a squeeze along z lays it down as on a floor.

The layers may pass through one another in places, which tangled input does too: what a broad phase meets is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats
from weft.geometry.mesh import Mesh, build_grid

SIZE = 1.0  # m
FOLDS = 40
CREASE_RADIUS = 0.004  # m
SPEED = 1.0  # m/s, a typical vertex of a falling pile
TIME_STEP = 1.0 / 240.0  # s


class State(NamedTuple):
    """Positions at the two ends of a step."""

    mesh: Mesh
    x_t0: Floats
    x_t1: Floats


def crumple(x: Floats, rng: np.random.Generator, folds: int = FOLDS, crease: float = CREASE_RADIUS) -> Floats:
    """Fold `x` across `folds` random planes, then press it down to a pile."""
    x = x - x.mean(axis=0)
    # a little waviness first, so that no fold meets a perfectly flat sheet
    for _ in range(6):
        k = rng.normal(size=2) * 8.0
        x[:, 2] += 0.004 * np.sin(x[:, :2] @ k + rng.uniform(0, 2 * np.pi))
    reach = np.linalg.norm(x, axis=1).max()
    for distance in np.linspace(0.75 * reach, 0.16 * reach, folds):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        beyond = x @ normal - distance
        # s -> -sqrt(s^2 + r^2): the mirror image -|s|, with its crease rounded to radius r
        x = x - (beyond + np.sqrt(beyond**2 + crease**2))[:, None] * normal
        x = x - x.mean(axis=0)
    return np.ascontiguousarray(x)


def make_state(vertices: int, seed: int = 7) -> State:
    """A crumpled square of `vertices` x `vertices`, moving as a pile that swirls while it falls."""
    mesh = build_grid((SIZE, SIZE), (vertices, vertices))
    rng = np.random.default_rng(seed)
    x = crumple(mesh.positions, rng)
    velocity = np.zeros_like(x) + np.array([0.0, 0.0, -SPEED])
    for _ in range(4):
        k = rng.normal(size=3) * 10.0
        velocity += 0.3 * SPEED * np.sin(x @ k + rng.uniform(0, 2 * np.pi))[:, None] * rng.normal(size=3)
    return State(mesh, x, np.ascontiguousarray(x + TIME_STEP * velocity))
