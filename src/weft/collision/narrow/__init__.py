"""Narrow phases: which of the candidate pairs are in contact, where, when and along which normal.

A narrow phase gets positions at the two ends of a step and candidates, and returns `Contacts`. Bodies and several
cloths share one array of positions: their vertices follow one another. Candidates are of two kinds: a vertex and a
triangle, rows (vertex, a, b, c); and two edges, rows (a0, a1, b0, b1).

| member | looks at | finds |
|---|---|---|
| `proximity` | positions at the start | pairs closer than a thickness |
| `continuous` | the motion | pairs that meet on the way; conservative by default, the papers' tests by name |
| `segment_plane` | a node's path, or an edge, against a triangle at the start | crossings, by their kind |
| `ray_triangle` | positions at the end | vertices behind the nearest triangle of their candidates, and how deep |

`weft.collision.narrow.continuous.time_of_impact` and `weft.collision.narrow.proximity.distances` answer the same
questions for plain arrays of four points, and `weft.collision.narrow.contours` finds where surfaces cross already.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from weft.arrays import Bools, Floats, Ints
from weft.registry import Family

NARROW_PHASES = Family(
    "narrow phase",
    "weft.collision.narrow",
    {
        "proximity": "Proximity",
        "continuous": "Continuous",
        "segment_plane": "SegmentPlane",
        "ray_triangle": "RayTriangle",
    },
)

QUERY_KINDS = ("vertex-triangle", "edge-edge")


class ContactKind(IntEnum):
    """Which features touch (Bigliani and Eischen, section 3.1)."""

    NODE_NODE = 0
    NODE_EDGE = 1
    NODE_TRIANGLE = 2
    EDGE_EDGE = 3


class Contacts(NamedTuple):
    """m contacts. The first side is the vertex or first edge, the second side the triangle or second edge."""

    vertices: Ints
    """(m, 4): vertex and triangle, or first and second edge"""
    weights: Floats
    """(m, 4): of the vertices in the gap, sum over k of weights[:, k] x[vertices[:, k]]: they sum to 1 over the first
    side and to -1 over the second"""
    normals: Floats
    """(m, 3): unit vectors from the second side to the first"""
    distances: Floats
    """(m,) [m]: the gap along the normal at `times`; negative where the first side is behind the second"""
    times: Floats
    """(m,): when in the step, from 0 to 1"""
    kinds: npt.NDArray[np.int8]
    """(m,): a `ContactKind` each"""

    def selected(self, rows: Bools) -> Contacts:
        """The contacts of `rows`, a boolean for each."""
        return Contacts(
            self.vertices[rows],
            self.weights[rows],
            self.normals[rows],
            self.distances[rows],
            self.times[rows],
            self.kinds[rows],
        )


class NarrowPhase(Protocol):
    """What every member does."""

    def find_contacts(self, x_t0: Floats, x_t1: Floats, vertex_triangles: Ints, edge_edges: Ints) -> Contacts:
        """The contacts among the candidates, vertex-triangle ones first, each group in the order of its candidates.

        Parameters
        ----------
        x_t0, x_t1 : (n, 3) float64 [m], positions at the start and the end of the step
        vertex_triangles : (p, 4) int32, a vertex and the three of a triangle
        edge_edges : (q, 4) int32, two vertices of each of two edges
        """
        ...


def empty_contacts() -> Contacts:
    """No contacts."""
    return Contacts(
        np.empty((0, 4), np.int32),
        np.empty((0, 4)),
        np.empty((0, 3)),
        np.empty(0),
        np.empty(0),
        np.empty(0, np.int8),
    )


def join_contacts(parts: list[Contacts]) -> Contacts:
    """All contacts of `parts`, one part after the other."""
    return Contacts(*(np.concatenate(columns) for columns in zip(empty_contacts(), *parts, strict=True)))
