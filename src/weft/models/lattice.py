"""The rectangular grid under a cloth, for models that live on one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints
from weft.errors import WeftError
from weft.geometry.mesh import Mesh


class Lattice(NamedTuple):
    """A grid of m x n vertices, i along u and j along v."""

    vertices: Ints
    """(m, n) the one at i, j"""
    spacing: tuple[float, float]
    """along u and v [m]"""
    shares: tuple[Floats, Floats]
    """(n,) and (m,): how much of a full strip the line along u at j stands for, and the one along v at i: half at the
    border"""
    edges: tuple[Ints, Ints]
    """(e, 2) along u, then along v"""


def build_lattice(mesh: Mesh, model: str) -> Lattice:
    """The grid of `mesh`; refuses any other mesh in the name of `model`."""
    if mesh.grid_shape is None or mesh.material is None:
        raise WeftError(f"{model}: needs a rectangular grid; use shell, mass_spring or responsive for a mesh")
    m, n = mesh.grid_shape
    a, b = (mesh.material[-1] - mesh.material[0]) / (m - 1, n - 1)
    index = np.arange(m * n, dtype=np.int32).reshape(m, n)
    of_u, of_v = (np.where(np.isin(np.arange(k), (0, k - 1)), 0.5, 1.0) for k in (n, m))
    edges = stacked(index[:-1], index[1:]), stacked(index[:, :-1], index[:, 1:])
    return Lattice(index, (float(a), float(b)), (of_u, of_v), edges)


def stacked(*columns: Ints) -> Ints:
    """Vertices (k, c) side by side, from c arrays of equal shape."""
    return np.stack([c.ravel() for c in columns], axis=1)
