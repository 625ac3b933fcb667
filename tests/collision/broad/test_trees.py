"""The shapes of the trees: who is in which node, and how many boxes there are."""

import numpy as np
import pytest
from tests.collision.broad import states

from weft.collision.broad.aabb_tree import AabbTree, middle_paths
from weft.collision.broad.binary_tree import BinaryTree
from weft.collision.broad.box_tree import build_box_tree
from weft.collision.broad.quad_tree import QuadTree
from weft.geometry.mesh import Mesh, build_grid

TREES = [BinaryTree, QuadTree, AabbTree]
GRIDS = [(2, 2), (5, 5), (6, 4), (2, 9), (11, 7)]


@pytest.mark.parametrize(("n", "binary", "quad"), [(5, 63, 53), (9, 255, 213), (17, 1023, 853)])
def test_box_counts_of_table_1(n, binary, quad):
    mesh = build_grid((1.0, 1.0), (n, n))
    assert BinaryTree(mesh).tree.n_boxes == binary
    assert QuadTree(mesh).tree.n_boxes == quad


def meshes():
    for shape in GRIDS:
        mesh = build_grid((1.0, 0.8), shape)
        yield mesh
        yield Mesh(mesh.positions, mesh.triangles)
    yield states.soup().mesh
    yield states.collapsed().mesh
    yield states.several().mesh


@pytest.mark.parametrize("member", TREES)
def test_a_tree_parts_all_triangles(member):
    for mesh in meshes():
        tree = member(mesh).tree
        n = len(mesh.triangles)
        np.testing.assert_array_equal(np.sort(tree.items), np.arange(n))
        nodes = np.arange(tree.n_boxes)
        is_leaf = tree.skip == nodes + 1
        assert is_leaf.sum() == n
        np.testing.assert_array_equal(tree.ends[is_leaf] - tree.starts[is_leaf], 1)
        assert tree.parents[0] == -1
        for node in nodes[1:]:
            parent = tree.parents[node]
            assert parent < node < tree.skip[node] <= tree.skip[parent]
            assert tree.starts[parent] <= tree.starts[node]
            assert tree.ends[node] <= tree.ends[parent]
            assert tree.depth[node] == tree.depth[parent] + 1
        # the children of a node share out what it holds
        held = np.bincount(tree.parents[1:], weights=(tree.ends - tree.starts)[1:], minlength=tree.n_boxes)
        np.testing.assert_array_equal(held[~is_leaf], (tree.ends - tree.starts)[~is_leaf])


@pytest.mark.parametrize("member", TREES)
def test_refitted_boxes_are_the_smallest(member):
    mesh, x_t0, x_t1, _ = states.crumpled()
    phase = member(mesh)
    phase.refit(x_t0, x_t1, 0.0)
    tree = phase.tree
    boxes = phase.primitives.triangle_boxes
    for node in range(tree.n_boxes):
        inside = tree.items[tree.starts[node] : tree.ends[node]]
        np.testing.assert_array_equal(tree.boxes[node, :6], boxes[inside, :6].min(axis=0))


def children(tree, node):
    return np.flatnonzero(tree.parents == node)


def test_binary_tree_halves_are_even():
    grid = build_grid((1.0, 0.6), (12, 7))
    for mesh, most in ((grid, 12), (Mesh(grid.positions, grid.triangles), 1)):  # one row of quads, or one triangle
        tree = BinaryTree(mesh).tree
        size = tree.ends - tree.starts
        for node in range(tree.n_boxes):
            below = children(tree, node)
            assert len(below) in (0, 2)
            if len(below):
                assert abs(size[below[0]] - size[below[1]]) <= min(most, size[node] // 3)
        assert tree.n_boxes == 2 * len(mesh.triangles) - 1
        # the first cut goes across the longer side
        x = mesh.positions[mesh.triangles].mean(axis=1)
        left, right = (tree.items[tree.starts[c] : tree.ends[c]] for c in children(tree, 0))
        assert x[left, 0].max() <= x[right, 0].min() + 1e-12


def test_binary_search_begins_where_no_vertex_is_common():
    """Every pair of triangles is adjacent, or below exactly one pair of nodes without a common vertex."""
    for mesh in meshes():
        phase = BinaryTree(mesh)
        tree, triangles = phase.tree, mesh.triangles
        n = len(triangles)
        times = np.zeros((n, n), int)
        for a, b in phase._joined:
            assert a < b
            assert set(triangles[a]) & set(triangles[b])
            times[a, b] += 1
        for a, b in phase._apart:
            below_a, below_b = (tree.items[tree.starts[c] : tree.ends[c]] for c in (a, b))
            assert not np.isin(triangles[below_a], triangles[below_b]).any()
            times[np.ix_(below_a, below_b)] += 1
        np.testing.assert_array_equal(times + times.T, 1 - np.eye(n, dtype=int))


def test_neighbours_cost_the_binary_search_few_tests():
    """Searched from the root with each box, a flat sheet would take some 80 tests a triangle."""
    mesh = build_grid((1.0, 1.0), (21, 21))
    phase = BinaryTree(mesh)
    phase.refit(mesh.positions)
    phase.self_pairs()
    assert phase.counters.boxes_tested < 6 * len(mesh.triangles)


@pytest.mark.parametrize("shape", [*GRIDS, (17, 17)])
def test_last_quads_hold_their_two_triangles(shape):
    mesh = build_grid((1.0, 1.0), shape)
    n_quads = len(mesh.triangles) // 2
    for member in (BinaryTree, QuadTree, AabbTree):
        tree = member(mesh).tree
        last = np.flatnonzero(tree.ends - tree.starts == 2)
        pairs = [sorted(tree.items[tree.starts[node] : tree.ends[node]]) for node in last]
        assert sorted(pairs) == [[q, q + n_quads] for q in range(n_quads)]


def test_quad_tree_has_at_most_four_children_and_even_sides():
    tree = QuadTree(build_grid((1.0, 1.0), (12, 7))).tree
    counts = np.bincount(tree.parents[1:], minlength=tree.n_boxes)
    assert counts.max() == 4
    assert counts[0] == 4
    sizes = (tree.ends - tree.starts)[children(tree, 0)]
    np.testing.assert_array_equal(sorted(sizes), [2 * 5 * 3, 2 * 5 * 3, 2 * 6 * 3, 2 * 6 * 3])


def test_pairing_goes_horizontally_then_vertically():
    mesh = build_grid((1.0, 1.0), (5, 5))
    tree = AabbTree(mesh).tree
    fours = np.flatnonzero(tree.ends - tree.starts == 4)
    for node in fours:
        quads = {int(t) % 16 for t in tree.items[tree.starts[node] : tree.ends[node]]}
        rows, columns = {q // 4 for q in quads}, {q % 4 for q in quads}
        assert len(rows) == 1
        assert len(columns) == 2
    eights = np.flatnonzero(tree.ends - tree.starts == 8)
    for node in eights:
        quads = {int(t) % 16 for t in tree.items[tree.starts[node] : tree.ends[node]]}
        assert len({q // 4 for q in quads}) == len({q % 4 for q in quads}) == 2


def test_top_down_cuts_at_the_middle_not_at_the_median():
    """Seven triangles close together and one far away: the first cut parts seven from one (van den Bergen 1997)."""
    points = np.concatenate([np.linspace(0.0, 0.1, 7), [5.0]])[:, None] * [1.0, 0.0]
    paths = middle_paths(points, 1)
    np.testing.assert_array_equal(paths[:, 0], [0] * 7 + [1])
    tree = build_box_tree(paths)
    assert tree.n_boxes == 15
    # all in one place: even halves
    np.testing.assert_array_equal(middle_paths(np.zeros((4, 2)), 1), [[0, 0], [0, 1], [1, 0], [1, 1]])


def test_shared_boxes_halve_the_tree():
    for mesh in (
        build_grid((1.0, 1.0), (9, 9)),
        Mesh(states.crumpled().mesh.positions, states.crumpled().mesh.triangles),
    ):
        shared = AabbTree(mesh, AabbTree.Parameters(share_quad_box=True)).tree
        single = AabbTree(mesh).tree
        assert (shared.ends - shared.starts)[shared.skip == np.arange(shared.n_boxes) + 1].max() == 2
        assert shared.n_boxes < 0.7 * single.n_boxes


def test_closed_nodes_are_not_searched_within():
    mesh, x_t0, _, margin = states.crumpled()
    phase = QuadTree(mesh)
    phase.refit(x_t0, None, margin)
    everything = {tuple(row) for row in phase.self_pairs().tolist()}
    closed = np.zeros(phase.tree.n_boxes, bool)
    node = int(children(phase.tree, 0)[1])
    closed[node] = True
    phase.close(closed)
    inside = set(phase.tree.items[phase.tree.starts[node] : phase.tree.ends[node]].tolist())
    expected = {(a, b) for a, b in everything if not (a in inside and b in inside)}
    assert expected < everything
    assert {tuple(row) for row in phase.self_pairs().tolist()} == expected


def test_candidates_of_filtered_pairs():
    mesh, x_t0, _, margin = states.crumpled()
    phase = BinaryTree(mesh)
    phase.refit(x_t0, None, margin)
    pairs = phase.self_pairs()
    for of, own in zip(phase.candidates_of(pairs), phase.candidates(), strict=True):
        assert {tuple(r) for r in of.tolist()} == {tuple(r) for r in own.tolist()}
    some = pairs[::3]
    vertex_triangle, _ = phase.candidates_of(some)
    around = {(int(v), int(b)) for a, b in some for v in mesh.triangles[a]} | {
        (int(v), int(a)) for a, b in some for v in mesh.triangles[b]
    }
    every = {tuple(r) for r in phase.candidates().vertex_triangle.tolist()}
    assert {tuple(r) for r in vertex_triangle.tolist()} == every & around
