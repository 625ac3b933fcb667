"""What all filters share: positions of the step, counters, and the removal of rows."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints, as_positions
from weft.collision.broad import Counters
from weft.errors import WeftError
from weft.geometry.mesh import Mesh
from weft.parameters import Parameters


class RowFilter:
    """Base of the filters. A member adds `keep`, and `_update` where it looks at positions."""

    Parameters: ClassVar[type[Parameters]]
    acts_on: Literal["triangle_pairs", "vertex_triangle"] = "triangle_pairs"
    sound = True

    def __init__(self, mesh: Mesh, parameters: Any = None) -> None:
        self.parameters: Any = parameters if parameters is not None else self.Parameters()
        self.mesh = mesh
        self.triangles = mesh.topology.triangles
        self.counters = Counters()
        self.x_t0: Floats = mesh.positions
        self.x_t1: Floats = mesh.positions

    def refit(self, x_t0: npt.ArrayLike, x_t1: npt.ArrayLike | None = None) -> None:
        with self.counters.timed():
            self.x_t0 = self._positions(x_t0, "x_t0")
            self.x_t1 = self.x_t0 if x_t1 is None else self._positions(x_t1, "x_t1")
            self._update()

    def keep(self, rows: Ints, other: Self | None = None) -> Bools:
        raise NotImplementedError

    def apply(self, rows: Ints, other: Self | None = None) -> Ints:
        with self.counters.timed():
            kept: Ints = rows[self.keep(rows, other)]
        self.counters.pairs_found += len(kept)
        self.counters.pairs_removed += len(rows) - len(kept)
        return kept

    def _update(self) -> None:
        """Compute what depends on the positions alone."""

    def _positions(self, x: npt.ArrayLike, name: str) -> Floats:
        positions = as_positions(x, name)
        if len(positions) != self.mesh.n_vertices:
            raise WeftError(f"{name}: expected {self.mesh.n_vertices} vertices, got {len(positions)}")
        return positions


def as_rows(rows: npt.ArrayLike) -> Ints:
    """Contiguous int32, as the kernels want it: a slice would be compiled for once more."""
    return np.ascontiguousarray(rows, np.int32)


def all_kept(rows: Ints) -> Bools:
    return np.ones(len(rows), np.bool_)
