import numpy as np
import pytest
from tests.collision.broad import states

from weft.collision.broad.linear_tree import FRONT, LinearTree
from weft.collision.response.pairs import measured
from weft.errors import WeftError
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
    # against the large tree a small one, with all eight places of its one upper block taken: unequal heights
    small = states.crumpled((7, 6))
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


def rows_of(mesh, candidates):
    """The four vertices of each candidate: a vertex and a triangle, or two edges."""
    vertex_triangle, edge_edge = candidates
    edges = mesh.topology.edges
    first = np.concatenate([vertex_triangle[:, :1], mesh.triangles[vertex_triangle[:, 1]]], axis=1)
    return {False: first, True: np.concatenate([edges[edge_edge[:, 0]], edges[edge_edge[:, 1]]], axis=1)}


@pytest.mark.parametrize("state", [states.crumpled(), states.soup(), states.fast(), states.folded(), states.several()])
def test_moving_boxes_miss_nothing_that_comes_near_on_an_even_way(state):
    """Between all candidates of boxes around paths, distances are taken at many times of the step."""
    state = state._replace(margin=max(state.margin, 0.02))
    phase, moving = make(state), LinearTree(state.mesh)
    moving.refit(state.x_t0, state.x_t1, state.margin, even=True)
    swept, found = rows_of(state.mesh, phase.candidates()), rows_of(state.mesh, moving.candidates())
    n_near = 0
    for is_edges in (False, True):
        rows = {tuple(row) for row in found[is_edges].tolist()}
        assert rows <= {tuple(row) for row in swept[is_edges].tolist()}
        for t in np.linspace(0.0, 1.0, 17):
            x = (1.0 - t) * state.x_t0 + t * state.x_t1
            gaps = measured(x, x, np.ascontiguousarray(swept[is_edges], np.int32), is_edges, np.inf, 0.0).gaps
            near = swept[is_edges][gaps <= state.margin]
            n_near += len(near)
            assert {tuple(row) for row in near.tolist()} <= rows
    assert n_near > 0


def test_cloth_that_flies_as_one_has_no_more_candidates_than_cloth_at_rest():
    state = states.crumpled((40, 37))
    still, flying, swept = (LinearTree(state.mesh) for _ in range(3))
    still.refit(state.x_t0, None, state.margin)
    way = np.array([0.31, -0.2, 0.1])
    flying.refit(state.x_t0, state.x_t0 + way, state.margin, even=True)
    swept.refit(state.x_t0, state.x_t0 + way, state.margin)
    counts = [sum(len(part) for part in phase.candidates()) for phase in (still, flying, swept)]
    assert abs(counts[1] - counts[0]) <= 2e-3 * counts[0]  # the bounds are rounded anew
    assert counts[2] > 2 * counts[0]


def test_trees_of_different_steps_are_refused():
    state = states.crumpled()
    phase, other = make(state), make(state)
    other.refit(state.x_t0, state.x_t1, state.margin, even=True)
    with pytest.raises(WeftError, match="refit both"):
        phase.candidates_with(other)


def all_rows(mesh):
    """The four vertices of every vertex and triangle, and of every two edges, that share none."""
    n, edges = mesh.n_vertices, mesh.topology.edges
    first = np.concatenate([np.repeat(np.arange(n), len(mesh.triangles))[:, None], np.tile(mesh.triangles, (n, 1))], 1)
    a, b = np.triu_indices(len(edges), 1)
    second = np.concatenate([edges[a], edges[b]], axis=1)
    apart = [
        (first[:, :1] != first[:, 1:]).all(axis=1),
        (second[:, :2, None] != second[:, None, 2:]).all(axis=(1, 2)),
    ]
    return {False: first[apart[0]], True: second[apart[1]]}


@pytest.mark.parametrize("even", [False, True])
def test_widened_boxes_miss_nothing_that_marked_vertices_meet_anywhere_on_their_way(rng, even):
    """Others go where they were to; the marked ones go elsewhere, and may wait at any place on their way."""
    state = states.crumpled((9, 8))
    state = state._replace(x_t1=state.x_t0 + 0.2 * rng.normal(size=state.x_t0.shape))
    n, margin = state.mesh.n_vertices, 0.02
    marks = np.zeros(n, np.bool_)
    marks[rng.choice(n, 4, replace=False)] = True
    goal = state.x_t1.copy()
    goal[marks] += 0.3 * rng.normal(size=(4, 3))
    phase = LinearTree(state.mesh)
    phase.refit(state.x_t0, state.x_t1, margin, even)
    narrow = rows_of(state.mesh, phase.candidates(marks))
    phase.widen(marks, state.x_t0, goal, margin)
    found, n_more = rows_of(state.mesh, phase.candidates(marks)), 0
    for is_edges, rows in all_rows(state.mesh).items():
        rows = np.ascontiguousarray(rows[marks[rows].any(axis=1)], np.int32)
        known, before = ({tuple(row) for row in each[is_edges].tolist()} for each in (found, narrow))
        for t in np.linspace(0.0, 1.0, 6):
            for waits in np.linspace(0.0, 1.0, 6):
                x = (1.0 - t) * state.x_t0 + t * state.x_t1
                x[marks] = ((1.0 - waits) * state.x_t0 + waits * goal)[marks]
                near = rows[measured(x, x, rows, is_edges, np.inf, 0.0).gaps <= margin]
                assert {tuple(row) for row in near.tolist()} <= known
                n_more += len({tuple(row) for row in near.tolist()} - before)
    assert n_more > 0


def test_a_widened_box_refuses_what_is_no_place():
    state = states.crumpled()
    phase, marks = make(state), np.zeros(state.mesh.n_vertices, np.bool_)
    marks[3] = True
    goal = state.x_t1.copy()
    goal[3, 1] = np.nan
    with pytest.raises(WeftError, match="vertex 3 is NaN"):
        phase.widen(marks, state.x_t0, goal, 0.0)
