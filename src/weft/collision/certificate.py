"""The certificate: which triangles intersect, decided exactly.

Nothing here shares code with the collision detection that it checks, and nothing depends on a tolerance: the answer is
right for the doubles given, whatever their size. Single precision converts to double without rounding, so recorded
frames can be certified as they are.

Triangles are closed sets; one without area is a segment or a point. Two triangles intersect where they have a common
point beyond the vertices they share by index (never by position):

- no shared vertex: any common point, so that touching and overlap in one plane count;
- one shared vertex: any common point other than that vertex;
- two shared vertices: any common point outside the edge between them, so that only triangles folded exactly onto one
  another count;
- the same three vertices: always.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, Ints, as_indices, as_positions
from weft.geometry.box_tree import build_box_tree, find_pairs, find_self_pairs
from weft.geometry.intersections import update_crossings


def self_intersections(positions: npt.ArrayLike, triangles: npt.ArrayLike) -> Ints:
    """Every two triangles of one mesh that intersect.

    Parameters
    ----------
    positions : (n, 3) float [m]
    triangles : (m, 3) int

    Returns
    -------
    (k, 2) int32
        pairs i < j, in lexicographic order; the same for any number of threads. No rows: the mesh is free of
        self-intersections.
    """
    x = as_positions(positions)
    faces = as_indices(triangles, len(x))
    if len(faces) == 0:
        return np.empty((0, 2), np.int32)
    candidates = find_self_pairs(build_box_tree(x, faces))
    return _crossing_pairs(x, faces, x, faces, True, candidates)


def intersections(
    positions: npt.ArrayLike,
    triangles: npt.ArrayLike,
    other_positions: npt.ArrayLike,
    other_triangles: npt.ArrayLike,
) -> Ints:
    """Every triangle of a mesh that intersects a triangle of another one, say cloth and body. They share no vertex.

    Parameters
    ----------
    positions, other_positions : (n, 3) float [m]
    triangles, other_triangles : (m, 3) int

    Returns
    -------
    (k, 2) int32
        pairs (triangle, other triangle), in lexicographic order; the same for any number of threads
    """
    x_a, x_b = as_positions(positions), as_positions(other_positions, "other_positions")
    faces_a = as_indices(triangles, len(x_a))
    faces_b = as_indices(other_triangles, len(x_b), name="other_triangles")
    if len(faces_a) == 0 or len(faces_b) == 0:
        return np.empty((0, 2), np.int32)
    candidates = find_pairs(build_box_tree(x_a, faces_a), build_box_tree(x_b, faces_b))
    return _crossing_pairs(x_a, faces_a, x_b, faces_b, False, candidates)


def _crossing_pairs(x_a: Floats, faces_a: Ints, x_b: Floats, faces_b: Ints, same_mesh: bool, candidates: Ints) -> Ints:
    crossing = np.empty(len(candidates), np.bool_)
    update_crossings(x_a, faces_a, x_b, faces_b, same_mesh, candidates, crossing)
    pairs = candidates[crossing]
    if same_mesh:
        pairs.sort(axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
