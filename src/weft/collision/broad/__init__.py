"""Broad phases: which triangles, vertices and edges may touch, found without looking at every pair.

Every member is built once for a mesh and refitted to new positions in O(n):

    phase = BROAD_PHASES.load("linear_tree")(mesh)
    phase.refit(x_t0, x_t1, margin=0.002)      # swept over a step; leave out x_t1 for one instant
    vertex_triangle, edge_edge = phase.candidates()

Meaning of a pair, the same for all members: the box of a primitive holds its vertices at both ends of the step (the
motion between them is linear, so the box holds all of it) and is inflated by half the margin on every side. Two
primitives are a pair where their boxes touch or overlap. Two primitives that come within `margin` of each other at
any time of the step are therefore always a pair. Boxes are stored in float32, rounded outward.

Pairs have no further filter: triangles that share a vertex are a pair (`apart_pairs` leaves these out, and the family
`culling` more). Of the candidates, a vertex is left out with a triangle it belongs to, and an edge with an edge it
shares a vertex with, since those always touch.

The order of the rows is the member's own, and depends on the positions alone: not on the number of threads, not on
earlier calls. Several cloths at once are one mesh: concatenate vertices and triangles (`join_meshes`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints
from weft.geometry.mesh import Mesh
from weft.parameters import Parameters
from weft.registry import Family

__all__ = [
    "BROAD_PHASES",
    "BroadPhase",
    "Candidates",
    "Counters",
    "CrossCandidates",
    "TestedBoxes",
    "join_meshes",
]


class Candidates(NamedTuple):
    """What may touch within one mesh, each candidate once."""

    vertex_triangle: Ints
    """(k, 2): vertex, triangle"""
    edge_edge: Ints
    """(k, 2): edges of the topology, the smaller first"""


class CrossCandidates(NamedTuple):
    """What may touch between two meshes, each candidate once. Own indices stand first."""

    vertex_triangle: Ints
    """(k, 2): own vertex, triangle of the other"""
    triangle_vertex: Ints
    """(k, 2): own triangle, vertex of the other"""
    edge_edge: Ints
    """(k, 2): own edge, edge of the other"""


class TestedBoxes(NamedTuple):
    """The boxes of a structure as last refitted, and which of them the last search looked at."""

    lower: Floats
    """(b, 3) [m]"""
    upper: Floats
    """(b, 3) [m]"""
    depth: Ints
    """(b,): 0 is the box around everything"""
    tested: Bools
    """(b,)"""


@dataclass
class Counters:
    """What a part has done since it was made or cleared. Cheap enough to stay on.

    Attributes
    ----------
    boxes_tested : overlap tests between two boxes
    boxes_skipped : boxes of the structure that a search never looked at, summed over searches
    pairs_found : rows returned
    pairs_removed : rows that a filter took out
    seconds : wall time inside the part [s]
    """

    boxes_tested: int = 0
    boxes_skipped: int = 0
    pairs_found: int = 0
    pairs_removed: int = 0
    seconds: float = 0.0

    def clear(self) -> None:
        self.boxes_tested = self.boxes_skipped = self.pairs_found = self.pairs_removed = 0
        self.seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time spent inside the `with` block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


class BroadPhase(Protocol):
    """What every member offers. `other` is always a member of the same class, refitted to the same step."""

    Parameters: ClassVar[type[Parameters]]
    complete: bool
    """finds every pair whose boxes touch; False only where a published method misses some"""
    can_widen: bool
    """has `widen(marks, x_t0, x_t1, margin)`: from then on marked vertices (n,) may be anywhere on their way"""
    counters: Counters

    def __init__(self, mesh: Mesh, parameters: Any = None) -> None: ...

    def refit(
        self, x_t0: npt.ArrayLike, x_t1: npt.ArrayLike | None = None, margin: float = 0.0, even: bool = False
    ) -> None:
        """Move the boxes to positions `x_t0` (n, 3) [m], swept to `x_t1` if given, inflated by `margin` / 2 [m].

        Where all vertices go there at an `even` pace, a member may leave out pairs that never come nearer than
        `margin`, although their boxes touch: what moves together need not be looked at, however fast it is.
        """

    def self_pairs(self) -> Ints:
        """(k, 2) pairs of triangles of this mesh, the smaller first."""

    def apart_pairs(self) -> Ints:
        """(k, 2) those of `self_pairs` that have no vertex in common."""

    def pairs(self, other: Any) -> Ints:
        """(k, 2): own triangle, triangle of `other`."""

    def candidates(self, marks: Bools | None = None) -> Candidates:
        """Vertex-triangle and edge-edge candidates within this mesh; only those of a marked vertex, if `marks` (n,)."""

    def candidates_with(self, other: Any, marks: Bools | None = None) -> CrossCandidates:
        """Vertex-triangle, triangle-vertex and edge-edge candidates between this mesh and `other`.

        Only those of a marked vertex of this mesh, if `marks` (n,) are given.
        """

    def tested_boxes(self) -> TestedBoxes:
        """The boxes of the structure, and which of them the last search for pairs looked at."""

    def memory(self) -> int:
        """Bytes held by the structure."""


BROAD_PHASES = Family(
    "broad phase",
    "weft.collision.broad",
    {
        "all_pairs": "AllPairs",
        "binary_tree": "BinaryTree",
        "aabb_tree": "AabbTree",
        "quad_tree": "QuadTree",
        "spatial_hash": "SpatialHash",
        "linear_tree": "LinearTree",
    },
)


def join_meshes(meshes: Sequence[Mesh]) -> Mesh:
    """Several meshes as one: vertices and triangles concatenated in order.

    Material coordinates are kept where all parts have them; they may overlap, since every structure takes connected
    parts apart before it looks at coordinates.
    """
    starts = np.cumsum([0] + [mesh.n_vertices for mesh in meshes])
    flat = [mesh.material for mesh in meshes if mesh.material is not None]
    return Mesh(
        positions=np.ascontiguousarray(np.concatenate([mesh.positions for mesh in meshes])),
        triangles=np.ascontiguousarray(
            np.concatenate([mesh.triangles + start for mesh, start in zip(meshes, starts, strict=False)]), np.int32
        ),
        material=np.ascontiguousarray(np.concatenate(flat)) if len(flat) == len(meshes) else None,
        grid_shape=meshes[0].grid_shape if len(meshes) == 1 else None,
    )
