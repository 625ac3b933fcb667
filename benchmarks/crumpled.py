"""Crumpled states of a square cloth: of the scene `ground`, of any recording, and folded without a simulator.

`make_state` folds a sheet by soft reflections: every point beyond a plane is mirrored back across it. A mirror
changes no length, so the cloth keeps its size, as real cloth nearly does; rounding the crease turns a reflection into
a fold with a radius. A few dozen planes with random normals, at shrinking distances from the centre, leave many layers
in a small ball. The layers pass through one another in places, as tangled input does: harder for a broad phase than
what a simulation leaves, and it shows what a filter misses.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.arrays import Floats
from weft.collision.broad import join_meshes
from weft.errors import WeftError
from weft.geometry.mesh import Mesh, build_grid
from weft.scene.build import build_world
from weft.scene.files import load_scene
from weft.simulation.recording import Recording
from weft.simulation.run import run

SIZE = 1.0  # m
FOLDS = 40
CREASE_RADIUS = 0.004  # m
SPEED = 1.0  # m/s, a typical vertex of a falling pile
TIME_STEP = 1.0 / 240.0  # s
GROUND_FRAME = 48  # 0.8 s: the sheet lies in layers on the floor, its top still falling


class State(NamedTuple):
    """Positions at the two ends of a step."""

    name: str
    mesh: Mesh
    x_t0: Floats
    x_t1: Floats


def crumple(x: Floats, rng: np.random.Generator, folds: int = FOLDS, crease: float = CREASE_RADIUS) -> Floats:
    """Fold `x` across `folds` random planes."""
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
    velocity = np.tile([0.0, 0.0, -SPEED], (len(x), 1))
    for _ in range(4):
        k = rng.normal(size=3) * 10.0
        velocity += 0.3 * SPEED * np.sin(x @ k + rng.uniform(0, 2 * np.pi))[:, None] * rng.normal(size=3)
    return State(f"folded-{vertices}", mesh, x, np.ascontiguousarray(x + TIME_STEP * velocity))


def read_state(folder: Path, frame: int = -1) -> State:
    """The motion of a recording from the frame before `frame` to it."""
    recording = Recording(folder)
    positions = recording.positions
    last = frame % len(positions) if len(positions) else 0
    if last < 1:
        raise WeftError(f"{folder}: needs two frames, has {len(positions)}")
    mesh = join_meshes([piece.mesh for piece in build_world(recording.scene).pieces])
    return State(
        f"{folder.name}[{last}]", mesh, positions[last - 1].astype(np.float64), positions[last].astype(np.float64)
    )


def ground_state(vertices: int) -> State:
    """The scene `ground` with `vertices` x `vertices`, as it crumples; run once and kept in out/."""
    folder = Path("out") / f"ground-{vertices}"
    if not folder.exists():
        print(f"running `ground` with {vertices} x {vertices} vertices into {folder}: once")
        overrides = [f"cloth.0.grid.vertices=[{vertices}, {vertices}]", f"duration={GROUND_FRAME / 60}"]
        run(load_scene("ground", overrides), folder)
    return read_state(folder, GROUND_FRAME)
