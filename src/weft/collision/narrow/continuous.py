"""Continuous tests: when do candidates meet on their way through a step?

All vertices move on straight lines from their positions at the start to those at the end. Four methods, of which the
first is Weft's own and the only one that is never wrong in the dangerous direction:

| method | what it is | never misses |
|---|---|---|
| `conservative` | separating directions certified over intervals of time (`conservative.py`) | yes, rounding included |
| `cubic` | da Silva's coplanarity cubic by Cardano's formula, then proximity (`cubic.py`) | no |
| `cubic-monotone` | the same with a root finder that loses no sign change | no |
| `triangle-space` | da Silva's section 9.1.2, vertex against triangle only (`triangle_space.py`) | no |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints
from weft.collision.narrow import Contacts, join_contacts
from weft.collision.narrow.conservative import compute_first_contacts
from weft.collision.narrow.cubic import compute_cubic_contacts
from weft.collision.narrow.proximity import as_queries, closest_features, is_edge_edge
from weft.collision.narrow.triangle_space import compute_triangle_space_contacts
from weft.errors import WeftError, nearest

METHODS = ("conservative", "cubic", "cubic-monotone", "triangle-space")
TOUCHING = 1e-9  # a gap below this share of the motion has no direction of its own


def _check(separation: float, method: str) -> None:
    if method not in METHODS:
        raise WeftError(f"unknown method {method!r}{nearest(method, METHODS)}")
    if not (math.isfinite(separation) and separation >= 0.0):
        raise WeftError(f"separation: expected a finite number of at least 0, got {separation}")


def first_contact_times(
    x_t0: Floats, x_t1: Floats, vertices: Ints, edges: bool, separation: float = 0.0, method: str = "conservative"
) -> Floats:
    """The time of impact of each row of `vertices`, for arrays that have been checked.

    Parameters
    ----------
    x_t0, x_t1 : (n, 3) float64 [m]
    vertices : (m, 4) int32, a vertex and a triangle, or two edges
    edges : True for two edges
    separation, method : as in `time_of_impact`
    """
    times = np.full(len(vertices), np.inf)
    if len(vertices) == 0:
        return times
    if method == "conservative":
        compute_first_contacts(x_t0, x_t1, vertices, edges, separation, times)
    elif method != "triangle-space":
        compute_cubic_contacts(x_t0, x_t1, vertices, edges, separation, method == "cubic-monotone", times)
    elif not edges:
        compute_triangle_space_contacts(x_t0, x_t1, vertices, separation, times)
    return times


def time_of_impact(
    x_t0: npt.ArrayLike,
    x_t1: npt.ArrayLike,
    kind: str = "vertex-triangle",
    separation: float = 0.0,
    method: str = "conservative",
) -> Floats:
    """When n vertex-triangle or edge-edge pairs first come as close as `separation` while they move.

    Parameters
    ----------
    x_t0, x_t1 : (n, 4, 3) float64: positions at the start and the end; the vertex, then the triangle, or the two ends
        of each edge
    kind : "vertex-triangle" or "edge-edge"
    separation : at least 0, in the unit of x: a distance of at most this counts as contact
    method : "conservative" never misses a contact and is never late, whatever the numbers; "cubic", "cubic-monotone"
        and (for vertex-triangle) "triangle-space" are the papers' tests, which do and are

    Returns
    -------
    (n,) float64 in [0, 1], infinity where there is no contact

    Examples
    --------
    >>> x_t0 = [[[0.2, 0.2, 1.0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]]
    >>> x_t1 = [[[0.2, 0.2, -1.0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]]
    >>> time_of_impact(x_t0, x_t1).round(6)
    array([0.5])
    """
    start, end = as_queries(x_t0, "x_t0"), as_queries(x_t1, "x_t1")
    if start.shape != end.shape:
        raise WeftError(f"x_t1: expected shape {start.shape} as x_t0 has, got {end.shape}")
    edges = is_edge_edge(kind)
    _check(separation, method)
    if edges and method == "triangle-space":
        raise WeftError("method 'triangle-space' tests a vertex against a triangle only; use 'conservative' for edges")
    n = len(start)
    vertices = np.arange(4 * n, dtype=np.int32).reshape(n, 4)
    return first_contact_times(start.reshape(-1, 3), end.reshape(-1, 3), vertices, edges, separation, method)


@dataclass(frozen=True)
class Continuous:
    """Candidates that meet on their way through the step, with weights and normal at the time of impact.

    | parameter | unit | default | range |
    |---|---|---|---|
    | separation | m | 0 | >= 0 |
    | method | | "conservative" | "conservative", "cubic", "cubic-monotone", "triangle-space" |

    "triangle-space" sees no edge-edge contacts.
    """

    separation: float = 0.0
    method: str = "conservative"

    def __post_init__(self) -> None:
        _check(self.separation, self.method)

    def find_contacts(self, x_t0: Floats, x_t1: Floats, vertex_triangles: Ints, edge_edges: Ints) -> Contacts:
        parts = []
        for candidates, edges in ((vertex_triangles, False), (edge_edges, True)):
            times = first_contact_times(x_t0, x_t1, candidates, edges, self.separation, self.method)
            met = np.isfinite(times)
            parts.append(contacts_at(x_t0, x_t1, candidates[met], edges, times[met]))
        return join_contacts(parts)


def contacts_at(x_t0: Floats, x_t1: Floats, vertices: Ints, edges: bool, times: Floats) -> Contacts:
    """The closest features of each row at its own time."""
    motion = x_t1[vertices] - x_t0[vertices]
    x = x_t0[vertices] + times[:, None, None] * motion
    rows = np.arange(4 * len(vertices), dtype=np.int32).reshape(-1, 4)
    found = closest_features(np.ascontiguousarray(x.reshape(-1, 3)), rows, edges)
    # a gap that is all rounding may point through the surface: there the two approach against the normal
    approach = np.einsum("qk,qki,qi->q", found.weights, motion, found.normals)
    speed = np.abs(motion - motion[:, :1]).max(axis=(1, 2), initial=0.0)
    flipped = (found.distances <= TOUCHING * speed) & (approach > 0.0)
    normals = np.where(flipped[:, None], -found.normals, found.normals)
    gaps = np.where(flipped, -found.distances, found.distances)
    return found._replace(vertices=vertices, normals=normals, distances=gaps, times=times)
