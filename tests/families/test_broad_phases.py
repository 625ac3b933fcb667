"""Every broad phase, on every state: complete, without duplicates, and the same for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.collision.broad import states
from tests.oracles import box_pairs

from weft import jit
from weft.collision.broad import BROAD_PHASES, join_meshes
from weft.errors import WeftError
from weft.geometry.mesh import Mesh, build_grid
from weft.jit import set_threads, threads

VARIANTS = [(name, {}) for name in BROAD_PHASES] + [("aabb_tree", {"share_quad_box": True})]
COMPLETE = [pytest.param(name, options, id="-".join([name, *options])) for name, options in VARIANTS]
WITH_NODES = [*COMPLETE, pytest.param("spatial_hash", {"fill": "nodes"}, id="spatial_hash-nodes")]
STATES = list(states.ALL)


def make(name, options, mesh):
    member = BROAD_PHASES.load(name)
    return member(mesh, member.Parameters(**options))


def as_set(rows):
    result = {(int(a), int(b)) for a, b in rows}
    assert len(result) == len(rows), "duplicates"
    return result


def assert_pairs(found, expected, exact, is_wide):
    """`found` holds all of `expected`, and besides at most what float32 boxes add."""
    assert expected <= found, f"missed {sorted(expected - found)[:5]}"
    if not is_wide:
        assert found == exact


@pytest.mark.parametrize("moving", [False, True], ids=["static", "swept"])
@pytest.mark.parametrize("state_name", STATES)
@pytest.mark.parametrize(("name", "options"), COMPLETE)
def test_finds_every_pair(name, options, state_name, moving):
    mesh, x_t0, x_t1, margin = states.ALL[state_name]()
    end = x_t1 if moving else None
    phase = make(name, options, mesh)
    baseline = make("all_pairs", {}, mesh)
    for each in (phase, baseline):
        each.refit(x_t0, end, margin)
    last = x_t1 if moving else x_t0
    pairs = as_set(phase.self_pairs())
    assert all(a < b for a, b in pairs)
    assert_pairs(
        pairs,
        box_pairs.triangle_pairs(x_t0, last, mesh.triangles, margin),
        as_set(baseline.self_pairs()),
        is_wide="share_quad_box" in options,
    )
    corners = mesh.triangles
    apart = {(a, b) for a, b in pairs if not np.isin(corners[a], corners[b]).any()}
    assert as_set(phase.apart_pairs()) == apart
    found, exact = phase.candidates(), baseline.candidates()
    expected = (
        box_pairs.vertex_triangle(x_t0, last, mesh.triangles, margin),
        box_pairs.edge_edge(x_t0, last, mesh.topology.edges, margin),
    )
    for rows, wanted, same in zip(found, expected, exact, strict=True):
        assert_pairs(as_set(rows), wanted, as_set(same), is_wide=False)


def two_meshes():
    cloth = states.crumpled()
    rng = np.random.default_rng(2)
    other = states.unstructured()
    y = 0.3 * other.x_t0
    return cloth, (other.mesh, y, y + 0.02 * rng.normal(size=y.shape))


@pytest.mark.parametrize("moving", [False, True], ids=["static", "swept"])
@pytest.mark.parametrize(("name", "options"), COMPLETE)
def test_finds_every_pair_between_two_meshes(name, options, moving):
    (mesh_a, a_t0, a_t1, margin), (mesh_b, b_t0, b_t1) = two_meshes()
    ends_a, ends_b = (a_t0, a_t1 if moving else a_t0), (b_t0, b_t1 if moving else b_t0)
    a, b = make(name, options, mesh_a), make(name, options, mesh_b)
    a.refit(*ends_a, margin)
    b.refit(*ends_b, margin)
    vertices = [np.arange(mesh.n_vertices)[:, None] for mesh in (mesh_a, mesh_b)]

    def expected(first, second):
        return box_pairs.cross_pairs(ends_a, first, ends_b, second, margin)

    pairs = as_set(a.pairs(b))
    wanted = expected(mesh_a.triangles, mesh_b.triangles)
    assert wanted
    assert wanted <= pairs
    if "share_quad_box" not in options:
        assert len(pairs) <= 1.01 * len(wanted)
    found = a.candidates_with(b)
    kinds = (
        (found.vertex_triangle, expected(vertices[0], mesh_b.triangles)),
        (found.triangle_vertex, expected(mesh_a.triangles, vertices[1])),
        (found.edge_edge, expected(mesh_a.topology.edges, mesh_b.topology.edges)),
    )
    for rows, wanted in kinds:
        assert wanted
        assert wanted <= as_set(rows)
        assert len(rows) <= 1.01 * len(wanted) + 1


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize(("name", "options"), COMPLETE)
def test_marks_choose_the_candidates_of_their_vertices(name, options, share, rng):
    (mesh_a, a_t0, a_t1, margin), (mesh_b, b_t0, b_t1) = two_meshes()
    a, b = make(name, options, mesh_a), make(name, options, mesh_b)
    a.refit(a_t0, a_t1, margin)
    b.refit(b_t0, b_t1, margin)
    marks = rng.uniform(size=mesh_a.n_vertices) < share
    edges, triangles = (marks[part].any(axis=1) for part in (mesh_a.topology.edges, mesh_a.triangles))
    (vt, ee), cross = a.candidates(), a.candidates_with(b)
    chosen = (vt[marks[vt[:, 0]] | triangles[vt[:, 1]]], ee[edges[ee].any(axis=1)])
    chosen += tuple(rows[of[rows[:, 0]]] for rows, of in zip(cross, (marks, triangles, edges), strict=True))
    found = (*a.candidates(marks), *a.candidates_with(b, marks))
    for rows, wanted in zip(found, chosen, strict=True):
        assert as_set(rows) == as_set(wanted)
        assert len(rows) == len(wanted)
    assert as_set(a.candidates().edge_edge) == as_set(ee)  # marks are of one search


@pytest.mark.parametrize(("name", "options"), WITH_NODES)
def test_same_rows_for_any_number_of_threads(name, options, monkeypatch):
    monkeypatch.setattr(jit, "ROWS_PER_THREAD", 1)  # a small mesh would run on one thread anyway
    mesh, x_t0, x_t1, margin = states.crumpled((23, 19))
    other_mesh, y_t0, y_t1 = two_meshes()[1]
    before = threads()
    results = []
    try:
        for n in (1, None):
            set_threads(n)
            a, b = make(name, options, mesh), make(name, options, other_mesh)
            a.refit(x_t0, x_t1, margin)
            b.refit(y_t0, y_t1, margin)
            results.append([a.self_pairs(), a.apart_pairs(), a.pairs(b), *a.candidates(), *a.candidates_with(b)])
    finally:
        set_threads(before)
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize(("name", "options"), WITH_NODES)
def test_rows_do_not_depend_on_what_came_before(name, options):
    mesh, x_t0, x_t1, margin = states.crumpled()
    used, fresh = make(name, options, mesh), make(name, options, mesh)
    used.refit(mesh.positions, None, 0.5)
    used.self_pairs()
    used.candidates()
    for phase in (used, fresh):
        phase.refit(x_t0, x_t1, margin)
    for a, b in zip((used.self_pairs(), *used.candidates()), (fresh.self_pairs(), *fresh.candidates()), strict=True):
        np.testing.assert_array_equal(a, b)


GRID = build_grid((1.0, 1.0), (4, 5))
COORDINATE = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-30, 1e-8, 0.1, 1e6, -1e6]),
    st.floats(-2.0, 2.0, allow_nan=False, width=32),
)
POSITIONS = hnp.arrays(np.float64, (GRID.n_vertices, 3), elements=COORDINATE)


@settings(max_examples=40, deadline=None)
@given(x_t0=POSITIONS, x_t1=st.one_of(st.none(), POSITIONS), margin=st.sampled_from([0.0, 1e-9, 0.01, 1.0]))
@pytest.mark.parametrize(("name", "options"), COMPLETE)
def test_finds_every_pair_of_degenerate_states(name, options, x_t0, x_t1, margin):
    phase = make(name, options, GRID)
    phase.refit(x_t0, x_t1, margin)
    last = x_t0 if x_t1 is None else x_t1
    assert box_pairs.triangle_pairs(x_t0, last, GRID.triangles, margin) <= as_set(phase.self_pairs())
    vertex_triangle, edge_edge = phase.candidates()
    assert box_pairs.vertex_triangle(x_t0, last, GRID.triangles, margin) <= as_set(vertex_triangle)
    assert box_pairs.edge_edge(x_t0, last, GRID.topology.edges, margin) <= as_set(edge_edge)


@pytest.mark.parametrize(("name", "options"), COMPLETE)
def test_one_mesh_and_its_parts_find_the_same(name, options):
    parts = [build_grid((1.0, 1.0), (5, 5)), build_grid((1.0, 1.0), (4, 6))]
    mesh = join_meshes(parts)
    x = mesh.positions + np.array([0.0, 0.0, 0.01]) * np.arange(mesh.n_vertices)[:, None] % 0.05
    phase, a, b = (make(name, options, each) for each in (mesh, *parts))
    phase.refit(x, None, 0.02)
    a.refit(x[:25], None, 0.02)
    b.refit(x[25:], None, 0.02)
    n_a = len(parts[0].triangles)
    if "share_quad_box" not in options:
        together = as_set(phase.self_pairs())
        assert {(i, j) for i, j in together if j < n_a} == as_set(a.self_pairs())
        assert {(i - n_a, j - n_a) for i, j in together if i >= n_a} == as_set(b.self_pairs())
        assert {(i, j - n_a) for i, j in together if i < n_a <= j} == as_set(a.pairs(b))
    vertex_triangle = as_set(phase.candidates().vertex_triangle)
    cross = a.candidates_with(b)
    assert {(v, t - n_a) for v, t in vertex_triangle if v < 25 and t >= n_a} == as_set(cross.vertex_triangle)
    assert {(t, v - 25) for v, t in vertex_triangle if v >= 25 and t < n_a} == as_set(cross.triangle_vertex)


@pytest.mark.parametrize(("name", "options"), WITH_NODES)
def test_counters_count(name, options):
    mesh, x_t0, x_t1, margin = states.crumpled()
    phase = make(name, options, mesh)
    phase.refit(x_t0, x_t1, margin)
    rows = phase.self_pairs()
    counters = phase.counters
    assert counters.pairs_found == len(rows)
    assert 4 * counters.boxes_tested >= len(rows)  # a pair of shared boxes gives four pairs of triangles
    assert counters.seconds > 0.0
    assert phase.memory() > 100 * len(mesh.triangles)
    boxes = phase.tested_boxes()
    assert counters.boxes_skipped == (~boxes.tested).sum()
    assert (boxes.lower <= boxes.upper).all()
    counters.clear()
    assert counters == type(counters)()


@pytest.mark.parametrize(("name", "options"), WITH_NODES)
def test_bad_input_is_refused(name, options):
    mesh = build_grid((1.0, 1.0), (4, 4))
    phase = make(name, options, mesh)
    x = mesh.positions.copy()
    with pytest.raises(WeftError, match=r"x_t0: expected shape \(16, 3\)"):
        phase.refit(x[:-1])
    with pytest.raises(WeftError, match="margin"):
        phase.refit(x, None, -1.0)
    x[7, 1] = np.nan
    with pytest.raises(WeftError, match="vertex 7"):
        phase.refit(mesh.positions, x)
    x[7, 1] = 1e38
    with pytest.raises(WeftError, match="vertex 7"):
        phase.refit(x)
    with pytest.raises(WeftError, match="expected another"):
        phase.pairs(object())


@pytest.mark.parametrize(("name", "options"), WITH_NODES)
def test_unused_vertices_take_no_part(name, options):
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.2, 0], [0.3, 0.2, 0], [0.2, 0.3, 0], [0.25, 0.25, 0]])
    mesh = Mesh(x, np.array([[0, 1, 2], [3, 4, 5]], np.int32))
    phase = make(name, options, mesh)
    phase.refit(x, None, 0.1)
    assert 6 not in phase.candidates().vertex_triangle[:, 0]
