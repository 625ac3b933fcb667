"""Culling filters: pairs of the broad phase that need no exact test.

A filter is built once for a mesh, refitted to the step, and applied to rows of one kind:

    adjacency = CULLING_FILTERS.load("adjacency")(mesh)
    pairs = adjacency.apply(phase.self_pairs())

Filters that look at positions are told them by `refit(x_t0, x_t1)`; leave out `x_t1` for one instant. Pairs between
two meshes are filtered by the filter of the first, given the filter of the second as `other`.

Filters on pairs of triangles come before candidates. Candidates made from filtered pairs are
`broad.triangle_phase.TrianglePhase.candidates_of(pairs)`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

import numpy.typing as npt

from weft.arrays import Bools, Ints
from weft.collision.broad import Counters
from weft.geometry.mesh import Mesh
from weft.parameters import Parameters
from weft.registry import Family

__all__ = ["CULLING_FILTERS", "CullingFilter"]


class CullingFilter(Protocol):
    """What every member offers."""

    Parameters: ClassVar[type[Parameters]]
    acts_on: Literal["triangle_pairs", "vertex_triangle"]
    """what a row is: two triangles, or a vertex and a triangle"""
    sound: bool
    """never removes a pair that touches (for triangles that do not share a vertex)"""
    counters: Counters

    def __init__(self, mesh: Mesh, parameters: Any = None) -> None: ...

    def refit(self, x_t0: npt.ArrayLike, x_t1: npt.ArrayLike | None = None) -> None:
        """Take the positions (n, 3) [m] at one instant, or at both ends of a step."""

    def keep(self, rows: Ints, other: Any = None) -> Bools:
        """(k,): False where a row needs no further test."""

    def apply(self, rows: Ints, other: Any = None) -> Ints:
        """The rows to keep, in their order; counts those removed."""


CULLING_FILTERS = Family(
    "culling filter",
    "weft.collision.culling",
    {
        "adjacency": "Adjacency",
        "normal_cone": "NormalCone",
        "centroid_distance": "CentroidDistance",
        "ipsilateral": "Ipsilateral",
    },
)
