"""Small meshes in the states that broad phases and filters must cope with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats
from weft.collision.broad import join_meshes
from weft.geometry.mesh import Mesh, build_grid


class State(NamedTuple):
    mesh: Mesh
    x_t0: Floats
    x_t1: Floats
    margin: float


def fold(x, rng, n_folds=12):
    """Mirror what lies beyond random planes, with rounded creases: a crumpled sheet of the same size."""
    for distance in np.linspace(0.45, 0.12, n_folds):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        beyond = x @ normal - distance
        x = x - (beyond + np.sqrt(beyond**2 + 1e-4))[:, None] * normal
        x = x - x.mean(axis=0)
    return np.ascontiguousarray(x)


def flat():
    mesh = build_grid((1.0, 0.7), (8, 6))
    return State(mesh, mesh.positions, mesh.positions + np.array([0.0, 0.0, -0.01]), 0.002)


def folded():
    mesh = build_grid((1.0, 1.0), (9, 9))
    x = mesh.positions.copy()
    x[:, 2] = np.where(x[:, 0] > 0, 0.004, 0.0)
    x[:, 0] = -np.abs(x[:, 0])
    return State(mesh, x, x + np.array([0.0, 0.0, 0.002]), 0.003)


def crumpled(vertices=(13, 11)):
    mesh = build_grid((1.0, 1.0), vertices)
    rng = np.random.default_rng(5)
    x = fold(mesh.positions, rng)
    return State(mesh, x, x + 0.02 * rng.normal(size=x.shape), 0.01)


def soup():
    """Triangles that share nothing, of very different sizes."""
    rng = np.random.default_rng(11)
    x = (rng.random((120, 3)) + 0.15 * rng.normal(size=(40, 1, 3)).repeat(3, 1).reshape(120, 3)).copy()
    x[:3] *= 20.0
    mesh = Mesh(x, np.arange(120, dtype=np.int32).reshape(40, 3))
    return State(mesh, x, x + 0.1 * rng.normal(size=x.shape), 0.05)


def collapsed():
    """All vertices in one point: every pair meets."""
    mesh = build_grid((1.0, 1.0), (7, 7))
    x = np.zeros_like(mesh.positions)
    return State(mesh, x, x, 0.0)


def line():
    """All vertices on a line, far from the origin, some of them equal."""
    mesh = build_grid((1.0, 1.0), (6, 6))
    x = np.zeros_like(mesh.positions)
    x[:, 1] = 100.0 + np.round(np.linspace(0, 3, len(x)))
    return State(mesh, x, x + np.array([0.0, 1e-7, 0.0]), 0.0)


def fast():
    """Every vertex crosses the whole scene in one step."""
    mesh = build_grid((1.0, 1.0), (8, 8))
    rng = np.random.default_rng(3)
    return State(mesh, mesh.positions, mesh.positions + 3.0 * rng.normal(size=mesh.positions.shape), 0.0)


def exploded():
    """One vertex far away, as in a simulation that blows up."""
    mesh = build_grid((1.0, 1.0), (7, 7))
    x = mesh.positions.copy()
    x[10] = [1e6, -3e5, 2e6]
    return State(mesh, x, x + np.array([0.0, 0.0, 0.01]), 0.001)


def unstructured():
    """A closed body without material coordinates or a grid."""
    n, m = 9, 12
    theta = np.linspace(0.3, np.pi - 0.3, n)[:, None]
    phi = np.linspace(0, 2 * np.pi, m, endpoint=False)[None]
    x = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta) + 0 * phi], axis=-1)
    x = x.reshape(-1, 3)
    i, j = np.meshgrid(np.arange(n - 1), np.arange(m), indexing="ij")
    a, b = (i * m + j).ravel(), (i * m + (j + 1) % m).ravel()
    triangles = np.concatenate([np.stack([a, a + m, b], 1), np.stack([b, a + m, b + m], 1)]).astype(np.int32)
    mesh = Mesh(np.ascontiguousarray(x), triangles)
    squashed = x * [1.0, 1.0, 0.05]
    return State(mesh, squashed, squashed + np.array([0.02, 0.0, 0.0]), 0.02)


def several():
    """Three cloths at once, one inside another's bounds."""
    parts = [build_grid((1.0, 1.0), (6, 5)), build_grid((0.5, 0.5), (5, 5)), build_grid((1.0, 0.2), (9, 3))]
    mesh = join_meshes(parts)
    rng = np.random.default_rng(8)
    x = mesh.positions + np.array([0.0, 0.0, 0.02]) * rng.random((mesh.n_vertices, 1))
    return State(mesh, x, x + 0.01 * rng.normal(size=x.shape), 0.02)


def single():
    mesh = Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]], np.int32))
    return State(mesh, mesh.positions, mesh.positions, 0.1)


ALL = {
    state.__name__: state
    for state in (
        flat,
        folded,
        crumpled,
        soup,
        collapsed,
        line,
        fast,
        exploded,
        unstructured,
        several,
        single,
    )
}
