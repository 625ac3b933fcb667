"""Every culling filter, on every state: what is called sound removes nothing that crosses."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collision.broad import states
from tests.oracles.triangle_crossings import crossing_pairs

from weft.collision.broad import BROAD_PHASES
from weft.collision.culling import CULLING_FILTERS
from weft.errors import WeftError
from weft.geometry.mesh import build_grid

VARIANTS = [
    ("adjacency", {}),
    ("adjacency", {"shared": 2}),
    ("normal_cone", {"variant": "published"}),
    ("normal_cone", {"variant": "sound"}),
    ("centroid_distance", {}),
    ("centroid_distance", {"threshold": 0.7}),
    ("ipsilateral", {"variant": "published"}),
    ("ipsilateral", {"variant": "ends"}),
    ("ipsilateral", {"variant": "sound"}),
]
EVERY = [pytest.param(n, o, id="-".join([n, *map(str, o.values())])) for n, o in VARIANTS]


def make(name, options, mesh):
    member = CULLING_FILTERS.load(name)
    return member(mesh, member.Parameters(**options))


def rows_for(filter_, state, moving):
    phase = BROAD_PHASES.load("quad_tree")(state.mesh)
    phase.refit(state.x_t0, state.x_t1 if moving else None, state.margin)
    if filter_.acts_on == "triangle_pairs":
        return phase.self_pairs()
    return phase.candidates().vertex_triangle


def test_every_member_is_tested():
    assert {name for name, _ in VARIANTS} == set(CULLING_FILTERS)


@pytest.mark.parametrize("state_name", states.ALL)
@pytest.mark.parametrize(("name", "options"), EVERY)
def test_keeps_what_crosses_and_counts_the_rest(name, options, state_name):
    state = states.ALL[state_name]()
    filter_ = make(name, options, state.mesh)
    for moving in (False, True):
        filter_.refit(state.x_t0, state.x_t1 if moving else None)
        rows = rows_for(filter_, state, moving)
        filter_.counters.clear()
        kept = filter_.apply(rows)
        counters = filter_.counters
        assert counters.pairs_removed == len(rows) - len(kept)
        assert counters.pairs_found == len(kept)
        np.testing.assert_array_equal(kept, rows[filter_.keep(rows)])
        if not filter_.sound or filter_.acts_on != "triangle_pairs":
            continue
        removed = rows[~filter_.keep(rows)]
        for x in (state.x_t0, state.x_t1, 0.5 * (state.x_t0 + state.x_t1)) if moving else (state.x_t0,):
            assert crossing_pairs(x, state.mesh.triangles, removed) == []


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_between_two_meshes(name, options):
    mesh = build_grid((1.0, 1.0), (5, 5))
    other_mesh = build_grid((1.0, 1.0), (4, 4))
    filter_, other = make(name, options, mesh), make(name, options, other_mesh)
    x, y = mesh.positions, other_mesh.positions + np.array([0.0, 0.0, 0.5])
    filter_.refit(x, x + np.array([0, 0, 1.0]))
    other.refit(y, y)
    n_rows = len(mesh.triangles) if filter_.acts_on == "triangle_pairs" else mesh.n_vertices
    rows = np.stack(np.meshgrid(np.arange(n_rows), np.arange(len(other_mesh.triangles))), -1).reshape(-1, 2)
    rows = rows.astype(np.int32)
    keep = filter_.keep(rows, other)
    if name in ("adjacency", "normal_cone", "ipsilateral"):
        assert keep.all()  # nothing is adjacent across meshes; every vertex passes every plane
    else:
        assert 0 < keep.sum() < len(keep)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_no_rows(name, options):
    mesh = build_grid((1.0, 1.0), (3, 3))
    filter_ = make(name, options, mesh)
    filter_.refit(mesh.positions)
    assert filter_.apply(np.empty((0, 2), np.int32)).shape == (0, 2)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_bad_positions_are_refused(name, options):
    mesh = build_grid((1.0, 1.0), (3, 3))
    filter_ = make(name, options, mesh)
    with pytest.raises(WeftError, match="expected 9 vertices, got 8"):
        filter_.refit(mesh.positions[:8])
    with pytest.raises(WeftError, match="vertex 2 is NaN"):
        filter_.refit(mesh.positions, np.where(np.arange(9)[:, None] == 2, np.nan, mesh.positions))
