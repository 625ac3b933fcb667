import numpy as np
import pytest
from tests.collision.broad import states

from weft.collision.broad.linear_tree import FRONT, LinearTree
from weft.geometry.mesh import build_grid


def make(state, moving=True):
    phase = LinearTree(state.mesh)
    phase.refit(state.x_t0, state.x_t1 if moving else None, state.margin)
    return phase


@pytest.mark.parametrize("state", [states.crumpled((40, 37)), states.several(), states.single()])
def test_blocks_hold_their_children(state):
    phase = make(state)
    for tree in (phase.vertices, phase.edges, phase.triangles):
        n_levels = len(tree.levels) - 1
        assert tree.levels[-1] - tree.levels[-2] == 1
        for level in range(n_levels - 1):
            below = tree.blocks[tree.levels[level] : tree.levels[level + 1]]
            above = tree.blocks[tree.levels[level + 1] : tree.levels[level + 2]]
            bounds = above.transpose(0, 2, 1).reshape(-1, 6)
            np.testing.assert_array_equal(bounds[: len(below)], below.min(axis=2))
            assert np.isposinf(bounds[len(below) :]).all()


def test_every_primitive_is_in_one_lane():
    state = states.crumpled((40, 37))
    phase = make(state)
    sizes = (state.mesh.n_vertices, len(state.mesh.topology.edges), len(state.mesh.triangles))
    for tree, n in zip((phase.vertices, phase.edges, phase.triangles), sizes, strict=True):
        items = tree.items.ravel()
        np.testing.assert_array_equal(np.sort(items[items >= 0]), np.arange(n))
        np.testing.assert_array_equal(np.sort(tree.order), np.arange(len(tree.order)))
        np.testing.assert_array_equal(tree.rank[tree.order], np.arange(len(tree.order)))


def test_clusters_are_sorted_along_the_curve():
    """The first clusters lie in the lowest octant of the cube, the last ones in the highest."""
    rng = np.random.default_rng(0)
    mesh = build_grid((1.0, 1.0), (40, 40))
    x = rng.random((mesh.n_vertices, 3))
    x[0], x[-1] = 0.0, 1.0
    phase = LinearTree(mesh)
    phase.refit(x)
    tree = phase.vertices
    first = x[tree.items[tree.order, 0]]
    octant = (first > 0.5) @ [1, 2, 4]
    assert (np.diff(octant) >= 0).all()


def test_a_large_mesh_is_shared_out():
    state = states.crumpled((90, 90))
    phase = make(state)
    pairs = phase.self_pairs()
    assert len(pairs) > 10 * FRONT
    # against the one large tree there is a small one: unequal heights
    small = states.crumpled((5, 4))
    other = make(small)
    found = {tuple(row) for row in phase.pairs(other).tolist()}
    back = {(b, a) for a, b in other.pairs(phase).tolist()}
    assert found == back
    boxes = [
        tree.blocks[: tree.levels[1]].transpose(0, 2, 1).reshape(-1, 6) for tree in (phase.triangles, other.triangles)
    ]
    meets = (boxes[0][:, None, :3] <= -boxes[1][None, :, 3:]).all(2) & (
        boxes[1][None, :, :3] <= -boxes[0][:, None, 3:]
    ).all(2)
    assert meets.sum() == len(found)


def test_the_first_search_that_overflows_loses_nothing():
    """Everything in one place: far more pairs than the buffers start with."""
    mesh = build_grid((1.0, 1.0), (16, 16))
    phase = LinearTree(mesh)
    phase.refit(np.zeros_like(mesh.positions))
    n = len(mesh.triangles)
    assert len(phase.self_pairs()) == n * (n - 1) // 2
    vertex_triangle, _ = phase.candidates()
    assert len(vertex_triangle) == mesh.n_vertices * n - 3 * n


def test_memory_is_linear():
    sizes = [LinearTree(build_grid((1.0, 1.0), (n, n))).memory() / (2 * (n - 1) ** 2) for n in (65, 129)]
    assert sizes[1] < 1.1 * sizes[0]
