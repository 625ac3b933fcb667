"""Which way out of a tangle: from crossings and touching features to motions that would undo them.

Nothing here knows how the cloth came to be tangled; what it looks like must do.

Crossings. Surfaces cross along contours. A contour that cuts a surface in two leaves a smaller part on the wrong side,
and that part has to go back through the other surface: the global intersection analysis of Baraff, Witkin and Kass,
"Untangling cloth" (SIGGRAPH 2003), with the rule of Ye, Nyberg and Xiong, "Fast discrete intersection detection for
cloth penetration resolution" (2015), that the smaller region is the wrong one. Where a contour cuts both surfaces in
two, the one that has less to move does. Where it cuts neither, because it ends at a border of each, it is drawn
together from its ends, as in the contour minimisation of Volino and Magnenat-Thalmann (SIGGRAPH 2006). What is left,
folds that cross next to a vertex that both sides share, is ironed: its vertices go to the middle of their neighbours.

Touching. Features at distance 0 have no side, so one is chosen, the same for all that touch together. A feature that
stands on a surface stays on the side where the cloth around it is. Layers that lie on one another are sorted. Of two
pieces, the one with the higher number, that of the later cloth, comes to lie in front of the other, where its triangles
are anticlockwise. Of one piece folded onto itself, the parts that are further away from where it first touches go
behind the others: the order of a fold, of a pleat, and of the front and back of a garment laid flat. Pieces that touch
along their borders, the panels of a garment that were not sewn together, are layers like any others: they part, since
vertices keep the numbers they have in the file, and are as many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from weft.arrays import Bools, Floats, Ints, Longs
from weft.collision.narrow import Contacts
from weft.collision.narrow.contours import find_piercings
from weft.geometry.mesh import Mesh

SHORTEST = 1e-12  # [m] of an edge, where lengths are weights
ZERO = 1e-9  # [m] features closer than this have no side
LYING = 0.7  # cosine of the angle between surfaces, from which on they lie on one another
BEYOND = 0.5  # of its length: so far a contour is taken on to a border
NUDGE = 0.25  # of the gap to be made: as far as vertices go that pass right through something
FLAT = 1e-3  # of the mean edge: what is not higher above a plane lies in it


class Wishes(NamedTuple):
    """k motions that are asked for: the sum of weights times vertices should go by `ways` along `normals`."""

    rows: Ints
    """(k, 4) vertices"""
    weights: Floats
    """(k, 4) signed; 0 where fewer than four vertices take part"""
    normals: Floats
    """(k, 3)"""
    ways: Floats
    """(k,) [m]"""


def join_wishes(parts: list[Wishes]) -> Wishes:
    """All wishes of `parts`, one part after the other."""
    none = Wishes(np.empty((0, 4), np.int32), np.empty((0, 4)), np.empty((0, 3)), np.empty(0))
    return Wishes(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


def single_wishes(vertices: Ints, ways: Floats) -> Wishes:
    """Each of the `vertices` (k,) should go its way (k, 3) [m]."""
    size = np.linalg.norm(ways, axis=1)
    vertices, ways, size = vertices[size > 0.0], ways[size > 0.0], size[size > 0.0]
    rows = np.repeat(vertices[:, None], 4, axis=1).astype(np.int32)
    return Wishes(rows, np.tile([1.0, 0.0, 0.0, 0.0], (len(rows), 1)), ways / size[:, None], size)


class Surface:
    """All cloths as one mesh, with what does not change while they are untangled."""

    def __init__(self, cloth: Mesh) -> None:
        self.mesh, self.topology = cloth, cloth.topology
        edges, n = self.topology.edges, cloth.n_vertices
        self.n = n
        ends = cloth.positions[edges]
        self.edge_lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        self.mean_edge = float(self.edge_lengths.mean())
        self.is_border = self.topology.edge_triangles[:, 1] < 0
        self._edge_keys = edges[:, 0].astype(np.int64) * n + edges[:, 1]
        corners = cloth.positions[cloth.triangles]
        area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 6.0
        self.areas = np.bincount(cloth.triangles.ravel(), np.repeat(area, 3), minlength=n)
        self.pieces = connected_components(_graph(edges, np.ones(len(edges)), n), directed=False)[1]
        self.lengths = _graph(edges, np.maximum(self.edge_lengths, SHORTEST), n).tocsr()
        border = np.unique(edges[self.is_border])
        if len(border):
            self._to_border, self._next, _ = dijkstra(
                self.lengths, directed=False, indices=border, return_predecessors=True, min_only=True
            )
        starts = self.topology.vertex_triangles.starts[:-1]
        self.a_triangle: Ints = self.topology.vertex_triangles.items[starts]

    def edge_of(self, ends: Ints) -> Longs:
        """(k,): the edges between the vertices `ends` (k, 2), the smaller first."""
        found: Longs = np.searchsorted(self._edge_keys, ends[:, 0].astype(np.int64) * self.n + ends[:, 1])
        return found

    def connected(self, vertices: Ints) -> list[Ints]:
        """The parts of `vertices` (k,) that edges between them hold together."""
        chosen = np.zeros(self.n, bool)
        chosen[vertices] = True
        edges = self.topology.edges[chosen[self.topology.edges].all(axis=1)]
        part = connected_components(_graph(edges, np.ones(len(edges)), self.n), directed=False)[1][vertices]
        return [vertices[part == label] for label in np.unique(part)]

    def way_to_border(self, ti: int) -> tuple[list[int], float]:
        """The vertices from triangle `ti` to the nearest border, along edges, and how far [m] it is."""
        corners = self.mesh.triangles[ti]
        vi = int(corners[np.argmin(self._to_border[corners])])
        way, far = [vi], float(self._to_border[vi])
        while self._next[way[-1]] >= 0:
            way.append(int(self._next[way[-1]]))
        return way, far

    def are_neighbours(self, first: Ints, second: Ints) -> Bools:
        """(k,): whether an edge joins one of the vertices `first` (k, a) to one of `second` (k, b)."""
        joined = np.zeros(len(first), bool)
        for a in first.T:
            for b in second.T:
                key = np.minimum(a, b).astype(np.int64) * self.n + np.maximum(a, b)
                joined |= np.isin(key, self._edge_keys)
        return joined

    def normals(self, x: Floats) -> Floats:
        """(m, 3): unit normals of the triangles, 0 where one has no area."""
        corners = x[self.mesh.triangles]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        size = np.linalg.norm(normals, axis=1, keepdims=True)
        unit: Floats = np.divide(normals, size, out=np.zeros_like(normals), where=size > 0.0)
        return unit


    def vertex_normals(self, x: Floats) -> Floats:
        """(n, 3): mean normals of the triangles around each vertex."""
        normals, total = self.normals(x), np.zeros((self.n, 3))
        for corner in self.mesh.triangles.T:
            np.add.at(total, corner, normals)
        size = np.linalg.norm(total, axis=1, keepdims=True)
        unit: Floats = np.divide(total, size, out=np.zeros_like(total), where=size > 0.0)
        return unit


def _graph(pairs: Ints | Longs, weights: Floats, n: int) -> coo_array:
    return coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n, n))


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


def undo_crossings(surface: Surface, x: Floats, pairs: Ints, gap: float) -> tuple[Wishes, float]:
    """What would undo the crossings of triangles `pairs` (k, 2), and the size [m] of the largest part to move."""
    p, unclear = _find(surface, x, pairs)
    wishes, size = [], 0.0
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
        elif (there & surface.is_border[p.edges]).any():
            wishes.append(_draw_together(surface, p, there, length + gap))
            size = max(size, length)
        else:
            unclear = np.union1d(unclear, surface.mesh.triangles[p.faces[there]])
    return join_wishes([*wishes, _iron(surface, x, unclear)]), size


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
    # A crossing is two nodes: k with the first triangle of the pair as its own side, k + len(pairs) with the second.
    own = row + k * (pairs[row, 0] == faces)
    order = np.lexsort((faces, edges))
    same = (edges[order][1:] == edges[order][:-1]) & (faces[order][1:] == faces[order][:-1])
    a, b = own[order][:-1][same], own[order][1:][same]
    links = np.concatenate([np.stack([a, b], 1), (np.stack([a, b], 1) + k) % max(2 * k, 1)])
    _, contour_of = connected_components(_graph(links, np.ones(len(links)), 2 * k), directed=False)
    mirrors = np.zeros(contour_of.max(initial=-1) + 1, np.int64)
    mirrors[contour_of] = contour_of[(np.arange(2 * k) + k) % max(2 * k, 1)]
    shares, weights = _places(x, ends, triangles[faces])
    points = x[ends[:, 0]] + shares[:, None] * (x[ends[:, 1]] - x[ends[:, 0]])
    partners = points.reshape(-1, 2, 3)[:, ::-1].reshape(-1, 3)
    return _Piercings(edges, faces, shares, weights, points, partners, contour_of[own].astype(np.int64), mirrors), unclear


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
    part: Bools
    """(n,) vertices of the part on the wrong side"""
    area: float


def _smaller_part(surface: Surface, p: _Piercings, contour: int, length: float) -> _Cut | None:
    """The smaller of the parts into which a contour of some length [m] cuts its own surface; None if it does not.

    The surface is cut at every edge that pierces an odd number of times; its parts must get two colours so that every
    such edge has both. A contour that ends near a border is taken on to it, where that is the shorter way to undo it.
    """
    chosen, counts = np.unique(p.edges[p.contours == contour], return_counts=True)
    chosen = chosen[counts % 2 == 1]
    edges, n = surface.topology.edges, surface.n
    ends_inside = p.faces[(p.contours == p.mirrors[contour]) & surface.is_border[p.edges]]
    ways = [surface.way_to_border(ti) for ti in ends_inside]
    beyond = np.unique(np.concatenate([way for way, _ in ways] or [np.zeros(0, np.int64)]))
    chosen = chosen[~np.isin(edges[chosen], beyond).any(axis=1)]
    if len(chosen) == 0 or sum(far for _, far in ways) > BEYOND * length:
        return None
    keep = ~np.isin(edges, beyond).any(axis=1)
    keep[chosen] = False
    _, part = connected_components(_graph(edges[keep], np.ones(int(keep.sum())), n), directed=False)
    ends = part[edges[chosen]]
    # The parts twice, once in each colour: a cut edge joins a part in one colour to its neighbour in the other.
    m = int(part.max()) + 1
    joined = np.concatenate([ends + [0, m], ends + [m, 0]])
    _, colour = connected_components(_graph(joined, np.ones(len(joined)), 2 * m), directed=False)
    touched = np.unique(ends)
    if (colour[touched] == colour[touched + m]).any():
        return None
    sides = [colour[part] == colour[end] for end in ends[0]]
    areas = [float(surface.areas[side].sum()) for side in sides]
    smaller = int(areas[1] <= areas[0])
    return None if len(beyond) and areas[smaller] > length**2 else _Cut(sides[smaller], areas[smaller])


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


def _draw_together(surface: Surface, p: _Piercings, there: Bools, way: float) -> Wishes:
    """The borders at which a contour ends, of the piercings `there`, go along it, all the `way` to its other end."""
    own = np.flatnonzero(there & surface.is_border[p.edges])
    ways = p.partners[own] - p.points[own]
    size = np.linalg.norm(ways, axis=1)
    own, ways, size = own[size > 0.0], ways[size > 0.0], size[size > 0.0]
    # Two of the four places are for the edge; of the triangle, the two corners that weigh most stand for it.
    corners = surface.mesh.triangles[p.faces[own]]
    heavy = np.argsort(-p.weights[own], axis=1, kind="stable")[:, :2]
    weights = np.take_along_axis(p.weights[own], heavy, axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    rows = np.column_stack([surface.topology.edges[p.edges[own]], np.take_along_axis(corners, heavy, axis=1)])
    s = p.shares[own, None]
    return Wishes(
        rows.astype(np.int32),
        np.hstack([1.0 - s, s, -weights]),
        ways / size[:, None],
        np.full(len(own), way),
    )


def _iron(surface: Surface, x: Floats, vertices: Ints) -> Wishes:
    """The vertices go half of the way to the middle of their neighbours."""
    around = surface.topology.vertex_neighbours
    ways = np.array([0.5 * (x[around.row(i)].mean(axis=0) - x[i]) for i in vertices]).reshape(-1, 3)
    return single_wishes(vertices, ways)


def part_near(surface: Surface, x: Floats, contacts: tuple[Contacts, Contacts], gap: float) -> Wishes:
    """What would part touching pairs of a vertex and a triangle, and of two edges.

    Features that pass right through each other at a vertex or an edge have no side: each of their vertices goes its own
    way a little, so that they cross clearly.
    """
    normals = surface.normals(x)
    first, second = _triangles_beside(surface, contacts)
    c = Contacts(*(np.concatenate(columns) for columns in zip(*contacts, strict=True)))
    is_edges = np.arange(len(c.vertices)) >= len(contacts[0].vertices)
    lying = np.abs((normals[first] * normals[second]).sum(axis=1)) > LYING
    has_side = c.distances > ZERO
    ways, signs = c.normals.copy(), np.where(has_side, 1.0, 0.0)
    for q in np.flatnonzero(~has_side & ~lying):
        signs[q] = _standing_side(surface, x, c, q, bool(is_edges[q]))
    layers = np.flatnonzero(~has_side & lying)
    if len(layers):
        ways[layers] = normals[second[layers]]
        signs[layers] = _layer_sides(surface, normals, c, layers, first, second)
    apart = Wishes(c.vertices, c.weights, ways * signs[:, None], gap - c.distances)
    unclear = np.unique(c.vertices[signs == 0.0])
    return join_wishes([Wishes(*(column[signs != 0.0] for column in apart)), _scatter(unclear, NUDGE * gap)])


def _scatter(vertices: Ints, way: float) -> Wishes:
    """Each vertex goes a direction of its own."""
    height, turn = 2.0 * (0.618034 * vertices % 1.0) - 1.0, 2.0 * np.pi * (0.754878 * vertices % 1.0)
    wide = np.sqrt(1.0 - height**2)
    return single_wishes(
        vertices, way * np.stack([wide * np.cos(turn), wide * np.sin(turn), height], axis=1)
    )


def _triangles_beside(surface: Surface, contacts: tuple[Contacts, Contacts]) -> tuple[Ints, Ints]:
    """One triangle of the first and one of the second side of every pair."""
    corners, pairs = contacts[0].vertices, contacts[1].vertices
    keys = np.sort(surface.mesh.triangles, axis=1).astype(np.int64)
    keys = (keys[:, 0] * surface.n + keys[:, 1]) * surface.n + keys[:, 2]
    order = np.argsort(keys)
    wanted = np.sort(corners[:, 1:], axis=1).astype(np.int64)
    face = order[np.searchsorted(keys[order], (wanted[:, 0] * surface.n + wanted[:, 1]) * surface.n + wanted[:, 2])]
    sides = [
        surface.topology.edge_triangles[surface.edge_of(np.sort(pairs[:, k : k + 2], axis=1)), 0] for k in (0, 2)
    ]
    return np.concatenate([surface.a_triangle[corners[:, 0]], sides[0]]), np.concatenate([face, sides[1]])


def _standing_side(surface: Surface, x: Floats, c: Contacts, q: int, is_edges: bool) -> float:
    """1 or -1 for the side on which the cloth around the first side of pair q is; 0 where it is on both."""
    low, high = np.inf, -np.inf
    flat = FLAT * surface.mean_edge
    sides = ((c.vertices[q, :2], 1.0), (c.vertices[q, 2:], -1.0)) if is_edges else ((c.vertices[q, :1], 1.0),)
    for vertices, sign in sides:
        origin = x[vertices[0]]
        if is_edges:
            around = surface.topology.edge_opposite[surface.edge_of(np.sort(vertices)[None])][0]
            around = around[around >= 0]
        else:
            around = surface.topology.vertex_neighbours.row(int(vertices[0]))
        heights = sign * ((x[around] - origin) @ c.normals[q])
        low, high = min(low, float(heights.min())), max(high, float(heights.max()))
    if low < -flat and high > flat:
        return 0.0
    return 1.0 if high >= -low else -1.0


def _layer_sides(
    surface: Surface, normals: Floats, c: Contacts, layers: Longs, first: Ints, second: Ints
) -> Floats:
    """1 or -1 for each pair of layers: whether the first side goes where the normal of the second points, or behind.

    Where the pairs are, the triangles get one direction that all layers agree on, "up", and every vertex a place in the
    order of layers, which is the number of its piece minus its distance along the cloth from the first that touches.
    """
    t, m = surface.topology, len(normals)
    inner = ~surface.is_border
    links = np.concatenate([t.edge_triangles[inner], np.stack([first[layers], second[layers]], axis=1)])
    involved = np.zeros(m, bool)
    involved[first[layers]] = involved[second[layers]] = True
    links = links[involved[links].all(axis=1)]
    graph = _graph(links, np.ones(len(links)), m).tocsr()
    up = np.zeros(m)
    for seed in np.flatnonzero(involved):
        if up[seed] != 0.0:
            continue
        up[seed] = 1.0
        order, before = breadth_first_order(graph, seed, directed=False)
        for ti in order[1:]:
            up[ti] = up[before[ti]] * (1.0 if normals[ti] @ normals[before[ti]] >= 0.0 else -1.0)
    of_layers = c.vertices[layers]
    seeds = np.unique(surface.pieces[of_layers[:, 0]], return_index=True)[1]
    far = dijkstra(surface.lengths, directed=False, indices=of_layers[seeds, 0], min_only=True)
    piece = surface.pieces[of_layers[:, 0]] - surface.pieces[of_layers[:, 3]]
    height = -(c.weights[layers] * np.where(np.isfinite(far), far, 0.0)[of_layers]).sum(axis=1)
    above = np.where(piece != 0, piece, height) >= 0.0
    sides: Floats = np.where(above, 1.0, -1.0) * up[second[layers]]
    return sides
