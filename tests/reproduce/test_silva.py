"""The paper's animations, cut short; and what its two ideas of section 9.1 must not change."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weft.collision.broad import BROAD_PHASES
from weft.collision.culling.adjacency import Adjacency
from weft.geometry.mesh import build_grid
from weft.jit import threads_for
from weft.reproduce import silva
from weft.reproduce.silva import FALLS, LIMITERS, Silva, build_cases, build_scene, feature_rows
from weft.simulation.simulation import Simulation


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


@pytest.mark.parametrize("quick", [False, True])
def test_every_animation_of_the_paper_is_there(quick):
    names = {case.name for case in build_cases(quick)}
    assert names >= {f"{scene}-{label}" for scene in FALLS for label in ("published", "completed")}
    assert names >= {f"hanging-{label}" for label in LIMITERS}
    assert names >= {"wind-completed", "passing-off", "longer-published", "longer-completed"}
    if not quick:
        assert all(case.vertices == 51 for case in build_cases(False) if case.name.split("-")[0] in FALLS)


@pytest.mark.parametrize("case", build_cases(False), ids=lambda case: case.name)
def test_every_animation_starts(case):
    """With the mesh and the step of the whole run."""
    simulation = Simulation(build_scene(case))
    simulation.step()
    assert np.isfinite(simulation.state.positions).all()


def test_a_short_reproduction(tmp_path, monkeypatch):
    full = build_cases(True)
    short = [case._replace(vertices=7, duration=0.1) for case in full]
    monkeypatch.setattr(silva, "build_cases", lambda quick: short)
    monkeypatch.setattr(silva, "PICTURE", (48, 36))
    done = []
    report = Silva(tmp_path, quick=True).run(done.append)
    assert done[-1] == Silva.n_parts(True) == 6 * len(short)
    kept = json.loads((tmp_path / "longer-completed" / "measured.json").read_text())
    assert kept["steps"] == 12
    assert done == sorted(done)
    text = report.as_text()
    for heading in ("Certified", "Figure 4: unlimited and limited strain", "Figure 5: boxes not tested"):
        assert heading in text
    assert {path.name for path in tmp_path.glob("*.png")} >= {"boxes.png", "passing-off.png", "wind-completed.png"}
    assert (tmp_path / "report.html").exists()
    kept = json.loads((tmp_path / "tablecloth-completed" / "measured.json").read_text())
    assert kept["frames"] == 7
    assert kept["steps"] == 60
    assert kept["crossings"] == kept["zone_steps"] == 0

    def refuse(*arguments):
        raise AssertionError("measured before")

    monkeypatch.setattr(silva, "measure", refuse)
    again = Silva(tmp_path, quick=True)
    again.run(done.append)
    assert again.results["tablecloth-completed"].steps == 60
    with pytest.raises(AssertionError, match="measured before"):
        Silva(tmp_path, quick=True, overwrite=True).run(done.append)


def test_neighbours_and_shared_boxes_lose_no_pair_of_features(rng):
    """A search with shared boxes tests all that one without them does."""
    mesh = build_grid((0.3, 0.3), (7, 7))
    x = mesh.positions + rng.normal(scale=0.02, size=mesh.positions.shape)
    member = BROAD_PHASES.load("aabb_tree")
    rows = []
    for share in (False, True):
        phase = member(mesh, member.Parameters(share_quad_box=share))
        phase.refit(x, margin=0.01)
        pairs = Adjacency(mesh).apply(phase.self_pairs())
        both = feature_rows(mesh, pairs)
        rows.append([{tuple(sorted(row)) for row in part.tolist()} for part in both])
    assert rows[0][0] <= rows[1][0]
    assert rows[0][1] <= rows[1][1]
    assert len(rows[0][0]) > 0


def test_features_of_a_pair_are_six_and_nine():
    mesh = build_grid((0.3, 0.3), (4, 4))
    vertex, edge = feature_rows(mesh, np.array([[0, 17]], np.int32))
    assert (len(vertex), len(edge)) == (6, 9)
    shared = [len(set(mesh.triangles[0]) & set(t)) for t in mesh.triangles]
    vertex, edge = feature_rows(mesh, np.array([[0, shared.index(2)]], np.int32))  # one corner against the other each
    assert (len(vertex), len(edge)) == (2, 2)
