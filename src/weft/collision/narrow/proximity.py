"""Proximity: the distance of candidates, with the closest features, their weights and the normal.

Paper: da Silva, "Cloth animation with collision detection", sections 6.1, 6.2 and 7.1. Its point-triangle test accepts
a point only where its projection falls inside the triangle; ours measures the distance in every region, so a point
beyond a side or a corner is found as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints
from weft.collision.narrow import QUERY_KINDS, ContactKind, Contacts, join_contacts
from weft.errors import WeftError, nearest
from weft.geometry.distances import closest_on_edges, closest_on_triangle
from weft.geometry.vectors import Vector
from weft.jit import kernel, prange

NODE_NODE, NODE_EDGE = int(ContactKind.NODE_NODE), int(ContactKind.NODE_EDGE)
NODE_TRIANGLE, EDGE_EDGE = int(ContactKind.NODE_TRIANGLE), int(ContactKind.EDGE_EDGE)

Closest = tuple[float, float, float, float, float, float, float, int]


@kernel
def unit_normal(x: float, y: float, z: float, nx: float, ny: float, nz: float) -> tuple[float, float, float, float]:
    """The direction and length of (x, y, z); where it is zero, the direction of n, or z, and length 0."""
    length = math.sqrt(x * x + y * y + z * z)
    if length > 0.0:
        return x / length, y / length, z / length, length
    size = math.sqrt(nx * nx + ny * ny + nz * nz)
    if size > 0.0:
        return nx / size, ny / size, nz / size, 0.0
    return 0.0, 0.0, 1.0, 0.0


@kernel
def closest_vertex_triangle(x: Floats, i: int, a: int, b: int, c: int) -> Closest:
    """Weights of a, b, c; r from the triangle to vertex i, its unused fourth weight 0 and the kind of contact."""
    wa, wb, wc, rx, ry, rz = closest_on_triangle(
        x[i, 0] - x[a, 0],
        x[i, 1] - x[a, 1],
        x[i, 2] - x[a, 2],
        x[i, 0] - x[b, 0],
        x[i, 1] - x[b, 1],
        x[i, 2] - x[b, 2],
        x[i, 0] - x[c, 0],
        x[i, 1] - x[c, 1],
        x[i, 2] - x[c, 2],
    )
    corners = int(wa > 0.0) + int(wb > 0.0) + int(wc > 0.0)
    kind = NODE_TRIANGLE if corners == 3 else (NODE_EDGE if corners == 2 else NODE_NODE)
    return 1.0, -wa, -wb, -wc, rx, ry, rz, kind


@kernel
def closest_edge_edge(x: Floats, a0: int, a1: int, b0: int, b1: int) -> Closest:
    """The four signed weights of two edges, r from the second edge to the first and the kind of contact."""
    s, t, rx, ry, rz = closest_on_edges(
        x[a0, 0] - x[b0, 0],
        x[a0, 1] - x[b0, 1],
        x[a0, 2] - x[b0, 2],
        x[a1, 0] - x[a0, 0],
        x[a1, 1] - x[a0, 1],
        x[a1, 2] - x[a0, 2],
        x[b1, 0] - x[b0, 0],
        x[b1, 1] - x[b0, 1],
        x[b1, 2] - x[b0, 2],
    )
    inner = int(0.0 < s < 1.0) + int(0.0 < t < 1.0)
    kind = EDGE_EDGE if inner == 2 else (NODE_EDGE if inner == 1 else NODE_NODE)
    return 1.0 - s, s, t - 1.0, -t, rx, ry, rz, kind


@kernel
def spanned_normal(x: Floats, i: int, j: int, k: int, m: int, edges: bool) -> Vector:
    """Normal, of any length, of triangle (j, k, m), or of edges (i, j) and (k, m)."""
    p, q, r, s = (i, j, k, m) if edges else (j, k, j, m)
    e1x, e1y, e1z = x[q, 0] - x[p, 0], x[q, 1] - x[p, 1], x[q, 2] - x[p, 2]
    e2x, e2y, e2z = x[s, 0] - x[r, 0], x[s, 1] - x[r, 1], x[s, 2] - x[r, 2]
    return e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x


@kernel(parallel=True)
def compute_closest(
    x: Floats,
    vertices: Ints,
    edges: bool,
    weights_out: Floats,
    normals_out: Floats,
    distances_out: Floats,
    kinds_out: npt.NDArray[np.int8],
) -> None:
    """Overwrites the rows of all `*_out` with the closest points of the four vertices in each row of `vertices`."""
    for q in prange(len(vertices)):
        i, j, k, m = vertices[q, 0], vertices[q, 1], vertices[q, 2], vertices[q, 3]
        if edges:
            w0, w1, w2, w3, rx, ry, rz, kind = closest_edge_edge(x, i, j, k, m)
        else:
            w0, w1, w2, w3, rx, ry, rz, kind = closest_vertex_triangle(x, i, j, k, m)
        fx, fy, fz = spanned_normal(x, i, j, k, m, edges)
        nx, ny, nz, distance = unit_normal(rx, ry, rz, fx, fy, fz)
        weights_out[q, 0], weights_out[q, 1], weights_out[q, 2], weights_out[q, 3] = w0, w1, w2, w3
        normals_out[q, 0], normals_out[q, 1], normals_out[q, 2] = nx, ny, nz
        distances_out[q] = distance
        kinds_out[q] = kind


def closest_features(x: Floats, vertices: Ints, edges: bool) -> Contacts:
    """The closest points of all candidates, near or far; times are 0."""
    n = len(vertices)
    found = Contacts(vertices, np.empty((n, 4)), np.empty((n, 3)), np.empty(n), np.zeros(n), np.empty(n, np.int8))
    compute_closest(x, vertices, edges, found.weights, found.normals, found.distances, found.kinds)
    return found


@dataclass(frozen=True)
class Proximity:
    """Candidates that are closer than the thickness at the start of the step.

    | parameter | unit | default | range |
    |---|---|---|---|
    | thickness | m | 0.001 | >= 0 |

    Positions at the end of the step are not looked at: a pair that meets on the way is `continuous`' business.
    """

    thickness: float = 1e-3

    def find_contacts(self, x_t0: Floats, x_t1: Floats, vertex_triangles: Ints, edge_edges: Ints) -> Contacts:
        parts = []
        for candidates, edges in ((vertex_triangles, False), (edge_edges, True)):
            found = closest_features(x_t0, candidates, edges)
            parts.append(found.selected(found.distances <= self.thickness))
        return join_contacts(parts)


def as_queries(values: npt.ArrayLike, name: str) -> Floats:
    """Cast to contiguous `(n, 4, 3) float64` and refuse anything that is not finite."""
    try:
        x = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise WeftError(f"{name}: expected an (n, 4, 3) array of numbers") from None
    if x.ndim != 3 or x.shape[1:] != (4, 3):
        raise WeftError(f"{name}: expected shape (n, 4, 3), got {x.shape}")
    bad = ~np.isfinite(x).all(axis=(1, 2))
    if bad.any():
        raise WeftError(f"{name}: query {int(np.argmax(bad))} is NaN or infinite")
    return x


def is_edge_edge(kind: str) -> bool:
    """Does the public word `kind` mean two edges?"""
    if kind not in QUERY_KINDS:
        raise WeftError(f"unknown kind {kind!r}{nearest(kind, QUERY_KINDS)}")
    return kind == "edge-edge"


def distances(x: npt.ArrayLike, kind: str = "vertex-triangle") -> Floats:
    """Distances of n vertex-triangle or edge-edge pairs.

    Parameters
    ----------
    x : (n, 4, 3) float64: the vertex, then the triangle; or the two ends of each edge
    kind : "vertex-triangle" or "edge-edge"

    Returns
    -------
    (n,) float64, in the unit of x: right to a few roundings of the largest coordinate difference, for any finite
    numbers, slivers, parallel edges and points in place of edges or triangles included

    Examples
    --------
    >>> distances([[[0, 0, 2], [0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    array([2.])
    """
    points = as_queries(x, "x")
    edges = is_edge_edge(kind)
    # powers of two change no digit: differences are brought near 1, so that no product overflows or vanishes
    first = np.frexp(np.abs(points).max(axis=(1, 2), initial=0.0))[1]
    points = np.ldexp(points, -first[:, None, None])
    points = points - points[:, :1]
    second = np.frexp(np.abs(points).max(axis=(1, 2), initial=0.0))[1]
    points = np.ldexp(points, -second[:, None, None])
    n = len(points)
    found = closest_features(points.reshape(-1, 3), np.arange(4 * n, dtype=np.int32).reshape(n, 4), edges)
    with np.errstate(over="ignore"):  # the distance of the largest doubles is infinite
        scaled: Floats = np.ldexp(found.distances, first + second)
    return scaled
