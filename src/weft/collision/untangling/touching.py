"""Features at no distance: which side each belongs on.

What touches has no side, so one is chosen, the same for all that touch together. A feature that stands on a surface
stays on the side where the cloth around it is. Layers that lie on one another are sorted. Of two pieces, the one with
the higher number, that of the later cloth, comes to lie in front of the other, where its triangles are anticlockwise.
Of one piece folded onto itself, each layer goes behind the one from which a fold leads to it: the order of a fold, of a
pleat, and of the front and back of a garment laid flat.

Pieces that touch along their borders, such as the panels of a garment that were not sewn together, are layers like any
others: they part. Making one vertex of two would be another choice, but vertices keep the numbers that they have in the
file, so that what is recorded fits it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components, depth_first_order

from weft.arrays import Bools, Floats, Ints, Longs
from weft.collision.narrow import Contacts, join_contacts
from weft.collision.untangling import Wishes, join_wishes, single_wishes
from weft.collision.untangling.surface import SHORTEST, Surface, graph

ZERO = 1e-9  # [m] features closer than this have no side
LYING = 0.7  # cosine of the angle between surfaces, from which on they lie on one another
FLAT = 1e-3  # of the mean edge: what is not higher above a plane lies in it
NUDGE = 0.25  # of the gap to be made: as far as vertices go that pass right through something
CREASE = 15.0  # gaps: as far as a crease goes around another, so that its layers leave room for the others
HIGHEST = 2**62  # level of a layer


def part_near(surface: Surface, x: Floats, contacts: tuple[Contacts, Contacts], gap: float) -> Wishes:
    """What would part touching pairs of a vertex and a triangle, and of two edges.

    Features that pass right through each other at a vertex or an edge have no side: each of their vertices goes its own
    way a little, so that they cross clearly.
    """
    normals = surface.normals(x)
    first, second = _triangles_beside(surface, contacts)
    c = join_contacts(list(contacts))
    n_first = np.where(np.arange(len(c.vertices)) < len(contacts[0].vertices), 1, 2)
    lying = np.abs((normals[first] * normals[second]).sum(axis=1)) > LYING
    has_side = c.distances > ZERO
    ways, signs = c.normals.copy(), has_side.astype(np.float64)
    standing = np.flatnonzero(~has_side & ~lying)
    for q in standing:
        signs[q] = _standing_side(surface, x, c, int(q), int(n_first[q]))
    layers = np.flatnonzero(~has_side & lying)
    if len(layers):
        of_layers = c.vertices[layers], n_first[layers], first[layers], second[layers]
        ways[layers] = _layer_ways(surface, x, normals, *of_layers)
        signs[layers] = ways[layers].any(axis=1)
    sizes = np.linalg.norm(ways, axis=1)
    normals = ways * (signs / np.maximum(sizes, SHORTEST))[:, None]
    apart = Wishes(c.vertices, c.weights, normals, sizes * gap - c.distances)
    unclear = np.unique(c.vertices[standing[signs[standing] == 0.0]])
    return join_wishes([Wishes(*(column[signs != 0.0] for column in apart)), _scatter(unclear, NUDGE * gap)])


def _scatter(vertices: Ints, way: float) -> Wishes:
    """Each vertex goes a direction of its own."""
    height, turn = 2.0 * (0.618034 * vertices % 1.0) - 1.0, 2.0 * np.pi * (0.754878 * vertices % 1.0)
    wide = np.sqrt(1.0 - height**2)
    return single_wishes(vertices, way * np.stack([wide * np.cos(turn), wide * np.sin(turn), height], axis=1))


def _triangles_beside(surface: Surface, contacts: tuple[Contacts, Contacts]) -> tuple[Ints, Ints]:
    """One triangle of the first and one of the second side of every pair."""
    corners, pairs = contacts[0].vertices, contacts[1].vertices
    keys = np.sort(surface.mesh.triangles, axis=1).astype(np.int64)
    keys = (keys[:, 0] * surface.n + keys[:, 1]) * surface.n + keys[:, 2]
    order = np.argsort(keys)
    wanted = np.sort(corners[:, 1:], axis=1).astype(np.int64)
    face = order[np.searchsorted(keys[order], (wanted[:, 0] * surface.n + wanted[:, 1]) * surface.n + wanted[:, 2])]
    sides = [surface.topology.edge_triangles[surface.edge_of(np.sort(pairs[:, k : k + 2], axis=1)), 0] for k in (0, 2)]
    around = surface.topology.vertex_triangles
    first = np.concatenate([around.items[around.starts[corners[:, 0]]], sides[0]])
    return first, np.concatenate([face, sides[1]])


def _standing_side(surface: Surface, x: Floats, c: Contacts, q: int, n_first: int) -> float:
    """1 or -1 for the side on which the cloth around the first side of pair q is; 0 where it is on both."""
    low, high = np.inf, -np.inf
    flat = FLAT * surface.mean_edge
    sides = ((c.vertices[q, :1], 1.0),) if n_first == 1 else ((c.vertices[q, :2], 1.0), (c.vertices[q, 2:], -1.0))
    for vertices, sign in sides:
        if n_first == 1:
            around = surface.topology.vertex_neighbours.row(int(vertices[0]))
        else:
            around = surface.topology.edge_opposite[surface.edge_of(np.sort(vertices)[None])][0]
            around = around[around >= 0]
        heights = sign * ((x[around] - x[vertices[0]]) @ c.normals[q])
        low, high = min(low, float(heights.min())), max(high, float(heights.max()))
    if low < -flat and high > flat:
        return 0.0
    return 1.0 if high >= -low else -1.0


def _layer_ways(
    surface: Surface, x: Floats, normals: Floats, rows: Ints, n_first: Longs, first: Ints, second: Ints
) -> Floats:
    """(k, 3) where the first side of each pair goes: above or below the other, or around it; 0 where it cannot be told.

    `first` and `second` (k,) are a triangle each beside the two sides, the first `n_first` and the other vertices of
    `rows`.
    """
    t = surface.topology
    involved = np.zeros(len(normals), bool)
    involved[first] = involved[second] = True
    joined = t.edge_triangles[~surface.is_border]
    joined = joined[involved[joined].all(axis=1)]
    up = _agree_on_up(np.concatenate([joined, np.stack([first, second], axis=1)]), normals, involved)
    levels = _number_layers(joined, up, surface.pieces[t.triangles[:, 0]])
    low, high = np.full(surface.n, HIGHEST), np.full(surface.n, -HIGHEST)
    for corner in t.triangles[involved].T:
        np.minimum.at(low, corner, levels[involved])
        np.maximum.at(high, corner, levels[involved])
    # A feature lies in the layers that all its vertices lie in.
    is_first = np.arange(4) < n_first[:, None]
    low_a, high_a = np.where(is_first, low[rows], -HIGHEST).max(1), np.where(is_first, high[rows], HIGHEST).min(1)
    low_b, high_b = np.where(is_first, -HIGHEST, low[rows]).max(1), np.where(is_first, HIGHEST, high[rows]).min(1)
    ways: Floats = ((low_a > high_b) * up[second] - (high_a < low_b) * up[second])[:, None] * normals[second]
    outer, inner = (low_a < low_b) & (high_a > high_b), (low_b < low_a) & (high_b > high_a)
    for q in np.flatnonzero(outer | inner):  # a crease around another one: it goes outward, away from its neighbours
        vi = int(rows[q, 0] if outer[q] else rows[q, 3])
        outward = x[vi] - x[t.vertex_neighbours.row(vi)].mean(axis=0)
        ways[q] = outward / max(float(np.linalg.norm(outward)), SHORTEST) * (CREASE if outer[q] else -CREASE)
    return ways


def _agree_on_up(links: Ints, normals: Floats, involved: Bools) -> Floats:
    """(m,) 1 or -1: whether a triangle's normal points up, where all that `links` (k, 2) join agree what that is."""
    linked = graph(links, len(normals))
    up = np.zeros(len(normals))
    for seed in np.flatnonzero(involved):
        if up[seed] == 0.0:
            up[seed] = 1.0
            order, before = breadth_first_order(linked, int(seed), directed=False)
            for ti in order[1:]:
                up[ti] = up[before[ti]] * (1.0 if normals[ti] @ normals[before[ti]] >= 0.0 else -1.0)
    return up


def _number_layers(joined: Ints, up: Floats, pieces: Ints) -> Longs:
    """(m,) the level of each triangle: higher is further up.

    A layer is what neighbours `joined` (k, 2) with the same side up form. One is walked to from the next over the folds
    between them, as deep as it goes: a sheet that is folded and then folded again has its layers in this order.
    """
    m = len(up)
    is_fold = up[joined[:, 0]] != up[joined[:, 1]]
    same, folds = joined[~is_fold], joined[is_fold]
    n_layers, layer = connected_components(graph(same, m), directed=False)
    folded = graph(layer[folds], n_layers)
    place = np.full(n_layers, -1)
    count = 0
    for seed in range(n_layers):
        if place[seed] < 0:
            order = depth_first_order(folded, seed, directed=False, return_predecessors=False)
            place[order] = count + np.arange(len(order))
            count += len(order)
    levels: Longs = pieces.astype(np.int64) * (n_layers + 1) - place[layer]
    return levels
