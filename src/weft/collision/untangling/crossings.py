"""Surfaces that cross: which part is on the wrong side, and how it gets back.

Surfaces cross along contours. A contour that cuts a surface in two leaves a smaller part on the wrong side, and that
part has to go back through the other surface: the global intersection analysis of Baraff, Witkin and Kass, "Untangling
cloth" (SIGGRAPH 2003), with the rule of Ye, Nyberg and Xiong, "Fast discrete intersection detection for cloth
penetration resolution" (2015), that the smaller region is the wrong one. Where a contour cuts both surfaces in two, the
one that has less to move does. Where it cuts neither, because it ends at a border of each, one slides along it to the
border of the other, which draws the contour together as the minimisation of Volino and Magnenat-Thalmann does
(SIGGRAPH 2006). What is left, such as folds that cross next to a vertex that both sides share, is ironed: its vertices
go towards the middle of their neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from weft.arrays import Bools, Floats, Ints, Longs
from weft.collision.narrow.contours import find_piercings
from weft.collision.untangling import Wishes, join_wishes, single_wishes
from weft.collision.untangling.surface import SHORTEST, Surface, graph

BEYOND = 0.5  # of its length: so far a contour is taken on to a border
IRONED = 2.0  # gaps: the longest way of a vertex that is ironed


class _Piercings(NamedTuple):
    """Places where an edge of one triangle pierces another, two for each crossing pair of triangles."""

    edges: Longs
    """(p,)"""
    faces: Ints
    """(p,)"""
    shares: Floats
    """(p,) of the way along the edge"""
    weights: Floats
    """(p, 3) in the face"""
    points: Floats
    """(p, 3)"""
    partners: Floats
    """(p, 3) the other end of the crossing"""
    contours: Longs
    """(p,) the contour, seen from the surface of the edge; seen from the other surface it is `mirrors` of it"""
    mirrors: Longs
    """(contours,)"""


def undo_crossings(surface: Surface, x: Floats, pairs: Ints, gap: float) -> tuple[Wishes, float, Bools]:
    """What would undo the crossings of triangles `pairs` (k, 2), the size [m] of the largest part to move, and which
    vertices (n,) are on the wrong side of something."""
    p, unclear = _find(surface, x, pairs)
    wishes, size = [], 0.0
    is_wrong = np.zeros(surface.n, bool)
    is_wrong[surface.mesh.triangles[pairs]] = True
    for contour in range(len(p.mirrors)):
        mirror = int(p.mirrors[contour])
        if mirror < contour:
            continue
        there = np.isin(p.contours, [contour, mirror])
        length = 0.5 * float(np.linalg.norm(p.partners[there] - p.points[there], axis=1).sum())
        cuts = [(cut, side) for side in (mirror, contour) if (cut := _smaller_part(surface, p, side, length))]
        if cuts:
            cut, side = min(cuts, key=lambda item: item[0].area)
            wishes.append(_go_back(surface, x, p, side, cut.part, gap))
            size = max(size, float(np.sqrt(cut.area)))
            is_wrong |= cut.part
        elif (there & surface.is_border[p.edges]).any():
            wishes.append(_draw_together(surface, p, there, length, gap))
            size = max(size, length)
        else:
            unclear = np.union1d(unclear, surface.mesh.triangles[p.faces[there]])
    return join_wishes([*wishes, _iron(surface, x, unclear, IRONED * gap)]), size, is_wrong


def _find(surface: Surface, x: Floats, pairs: Ints) -> tuple[_Piercings, Ints]:
    """The piercings of crossing `pairs`, and the vertices of the pairs that have none that are clear."""
    triangles, k = surface.mesh.triangles, len(pairs)
    ends = np.empty((k, 6), np.int32)
    find_piercings(x, triangles, pairs, ends)
    is_clear = (ends[:, 0] >= 0) & (ends[:, 5] >= 0)
    unclear = np.unique(triangles[pairs[~is_clear]])
    pairs, ends = pairs[is_clear], ends[is_clear].reshape(-1, 3)
    k = len(pairs)
    row = np.repeat(np.arange(k), 2)
    edges, faces = surface.edge_of(ends[:, :2]), ends[:, 2]
    # A crossing is two nodes, one for each of its triangles as its own side: its row, and that plus k.
    own = row + k * (pairs[row, 0] == faces)
    order = np.lexsort((faces, edges))
    same = (edges[order][1:] == edges[order][:-1]) & (faces[order][1:] == faces[order][:-1])
    a, b = own[order][:-1][same], own[order][1:][same]
    links = np.concatenate([np.stack([a, b], 1), (np.stack([a, b], 1) + k) % max(2 * k, 1)])
    _, contour_of = connected_components(graph(links, 2 * k), directed=False)
    mirrors = np.zeros(contour_of.max(initial=-1) + 1, np.int64)
    mirrors[contour_of] = contour_of[(np.arange(2 * k) + k) % max(2 * k, 1)]
    shares, weights = _places(x, ends, triangles[faces])
    points = x[ends[:, 0]] + shares[:, None] * (x[ends[:, 1]] - x[ends[:, 0]])
    partners = points.reshape(-1, 2, 3)[:, ::-1].reshape(-1, 3)
    contours = contour_of[own].astype(np.int64)
    return _Piercings(edges, faces, shares, weights, points, partners, contours, mirrors), unclear


def _places(x: Floats, ends: Ints, corners: Ints) -> tuple[Floats, Floats]:
    """How far along the edge, and with which weights of the corners, each edge pierces its triangle."""
    a, b, c = (x[corners[:, k]] for k in range(3))
    p, q = x[ends[:, 0]], x[ends[:, 1]]
    n = np.cross(b - a, c - a)
    at_p, at_q = ((n * (p - a)).sum(axis=1), (n * (q - a)).sum(axis=1))
    span = at_p - at_q
    s = np.clip(np.divide(at_p, span, out=np.full(len(p), 0.5), where=span != 0.0), 0.0, 1.0)
    d = p + s[:, None] * (q - p) - a
    nn = np.maximum((n * n).sum(axis=1), 1e-300)
    v, w = (n * np.cross(d, c - a)).sum(axis=1) / nn, (n * np.cross(b - a, d)).sum(axis=1) / nn
    weights = np.clip(np.stack([1.0 - v - w, v, w], axis=1), 0.0, 1.0)
    return s, weights / weights.sum(axis=1, keepdims=True)


class _Cut(NamedTuple):
    """Half of a surface that was cut."""

    part: Bools
    """(n,) vertices of the part on the wrong side"""
    area: float


def _smaller_part(surface: Surface, p: _Piercings, contour: int, length: float) -> _Cut | None:
    """The smaller of the parts into which a contour of some length [m] cuts its own surface; None if it does not.

    The surface is cut at every edge that pierces an odd number of times; its parts must get two colours so that every
    such edge has both. A contour that ends near a border is taken on to it, where that is the shorter way to undo it.
    """
    cut = _cut_edges(p, contour)
    edges, n = surface.topology.edges, surface.n
    ends_inside = p.faces[(p.contours == p.mirrors[contour]) & surface.is_border[p.edges]]
    ways = [surface.way_to_border(ti) for ti in ends_inside]
    beyond = np.array(sorted({vi for way, _ in ways for vi in way}), np.int64)
    chosen = cut[~np.isin(edges[cut], beyond).any(axis=1)]
    if len(chosen) == 0 or sum(far for _, far in ways) > BEYOND * length:
        return None
    is_kept = np.ones(len(edges), bool)
    is_kept[chosen] = False
    is_kept[np.isin(edges, beyond).any(axis=1)] = False
    _, part = connected_components(graph(edges[is_kept], n), directed=False)
    ends = part[edges[chosen]]
    # The parts twice, once in each colour: a cut edge joins a part in one colour to its neighbour in the other.
    m = int(part.max()) + 1
    joined = np.concatenate([ends + np.array([0, m]), ends + np.array([m, 0])])
    _, colour = connected_components(graph(joined, 2 * m), directed=False)
    if (colour[ends] == colour[ends + m]).any():
        return None
    sides = [colour[part] == colour[end] for end in ends[0]]
    areas = [float(surface.areas[side].sum()) for side in sides]
    smaller = int(areas[1] <= areas[0])
    if len(beyond) and areas[smaller] > length**2:
        return None
    wrong, right = sides[smaller], sides[1 - smaller]
    across = edges[cut][right[edges[cut]].any(axis=1)]
    wrong[across[np.isin(across, beyond)]] = True
    return _Cut(wrong, areas[smaller])


def _cut_edges(p: _Piercings, contour: int) -> Longs:
    """The edges that pierce an odd number of triangles along a contour."""
    own = p.contours == contour
    pierced = np.unique(np.stack([p.edges[own], p.faces[own]]), axis=1)[0]  # both sides of an edge tell of it
    edges, counts = np.unique(pierced, return_counts=True)
    odd: Longs = edges[counts % 2 == 1]
    return odd


def _go_back(surface: Surface, x: Floats, p: _Piercings, contour: int, part: Bools, gap: float) -> Wishes:
    """The vertices of `part` at the cut edges of a contour go back through the triangles that these pierce."""
    own = np.flatnonzero(p.contours == contour)
    ends = surface.topology.edges[p.edges[own]]
    is_cut = part[ends[:, 0]] != part[ends[:, 1]]
    own, ends = own[is_cut], ends[is_cut]
    wrong = np.where(part[ends[:, 0]], ends[:, 0], ends[:, 1])
    right = np.where(part[ends[:, 0]], ends[:, 1], ends[:, 0])
    normals = surface.normals(x)[p.faces[own]]
    normals = normals * np.sign(((x[right] - x[wrong]) * normals).sum(axis=1))[:, None]
    depth = ((p.points[own] - x[wrong]) * normals).sum(axis=1)
    rows = np.column_stack([wrong, surface.mesh.triangles[p.faces[own]]]).astype(np.int32)
    return Wishes(rows, np.column_stack([np.ones(len(own)), -p.weights[own]]), normals, depth + gap)


def _draw_together(surface: Surface, p: _Piercings, there: Bools, length: float, gap: float) -> Wishes:
    """The surfaces at a contour, the piercings `there`, part along it.

    One that goes from a border of the one to a border of the other is left by sliding the one to the end of the other.
    Else the borders at which it ends go along it, all of its length.
    """
    ends = np.flatnonzero(there & surface.is_border[p.edges])
    if len(ends) == 2 and p.contours[ends[0]] != p.contours[ends[1]]:
        own = np.flatnonzero(there)
        way = p.points[ends[1]] - p.points[ends[0]]
        length = float(np.linalg.norm(way))
        is_first = p.contours[own] == p.contours[ends[0]]
        normals = np.where(is_first[:, None], way, -way) / max(length, SHORTEST)
    else:
        own = ends
        normals = p.partners[own] - p.points[own]
        size = np.linalg.norm(normals, axis=1)
        own, normals = own[size > 0.0], normals[size > 0.0] / size[size > 0.0, None]
    # Two of the four places are for the edge; of the triangle, the two corners that weigh most stand for it.
    corners = surface.mesh.triangles[p.faces[own]]
    heavy = np.argsort(-p.weights[own], axis=1, kind="stable")[:, :2]
    weights = np.take_along_axis(p.weights[own], heavy, axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    rows = np.column_stack([surface.topology.edges[p.edges[own]], np.take_along_axis(corners, heavy, axis=1)])
    s = p.shares[own, None]
    return Wishes(rows.astype(np.int32), np.hstack([1.0 - s, s, -weights]), normals, np.full(len(own), length + gap))


def _iron(surface: Surface, x: Floats, vertices: Ints, longest: float) -> Wishes:
    """The vertices go half of the way to the middle of their neighbours, or a way of the `longest` length [m]."""
    around = surface.topology.vertex_neighbours
    ways = np.array([0.5 * (x[around.row(i)].mean(axis=0) - x[i]) for i in vertices]).reshape(-1, 3)
    size = np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), SHORTEST)
    return single_wishes(vertices, ways * np.minimum(1.0, longest / size))
