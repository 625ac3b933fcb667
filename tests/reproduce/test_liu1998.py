"""The paper's runs, cut short; and, slow, what it promises of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weft.collision.certificate import self_intersections
from weft.jit import threads_for
from weft.reproduce import liu1998
from weft.reproduce.liu1998 import EXTENTS, GRIDS, PAPER, SYSTEMS, Case, Liu1998, build_scene, count_crossings, measure
from weft.simulation.recording import Recording
from weft.simulation.simulation import Simulation


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


def test_every_case_of_the_paper_is_there():
    for quick in (False, True):
        sizes, _ = EXTENTS[quick]
        assert {(place, size) for place in GRIDS for size in sizes} <= set(PAPER)
    assert EXTENTS[False] == ((21, 51), 1000)
    assert all(set(columns) == set(SYSTEMS) for columns in PAPER.values())
    assert PAPER["table", 51]["S2"].detection / PAPER["table", 51]["S3"].detection == pytest.approx(174.5, abs=0.1)


@pytest.mark.parametrize("place", GRIDS)
def test_a_run_has_the_steps_asked_for(place):
    scene = build_scene(Case(place, 21, "S3"), 1000)
    simulation = Simulation(scene)
    assert scene.n_frames * simulation.steps_per_frame == 1000
    assert simulation.dt == pytest.approx(0.002)


def test_a_short_reproduction(tmp_path, monkeypatch):
    monkeypatch.setattr(liu1998, "EXTENTS", {True: ((21,), 20)})
    monkeypatch.setattr(liu1998, "PICTURE", (48, 36))
    done = []
    report = Liu1998(tmp_path, quick=True).run(done.append)
    assert done[-1] == Liu1998.n_parts(True) == 12
    assert done == sorted(done)
    text = report.as_text()
    assert "Table 1: cloth falling on the table" in text
    assert "Table 2: cloth falling to the ground" in text
    assert {path.name for path in tmp_path.glob("*.png")} >= {"table-21-S3.png", "ground-21-S1.png"}
    assert (tmp_path / "report.html").exists()
    kept = json.loads((tmp_path / "ground-21-S3" / "measured.json").read_text())
    assert kept["steps"] == 20
    assert kept["frames"] == 3
    assert kept["crossings"] == kept["adjacent_crossings"] == 0
    assert kept["average_runs"] >= 1.0

    def refuse(*arguments):
        raise AssertionError("measured before")

    monkeypatch.setattr(liu1998, "measure", refuse)
    assert Liu1998(tmp_path, quick=True).run(done.append).as_text() == text
    with pytest.raises(AssertionError, match="measured before"):
        Liu1998(tmp_path, quick=True, overwrite=True).run(done.append)


def test_the_hierarchy_changes_no_position():
    ends = []
    for system in ("S2", "S3"):
        simulation = Simulation(build_scene(Case("ground", 15, system), 150))
        simulation.state.velocities[:, 2] -= 4.0  # folds at once
        for _ in range(80):
            simulation.step()
        ends.append(simulation.state.positions)
        assert simulation.response.counts.pairs > 0
    np.testing.assert_array_equal(*ends)


def test_a_step_whose_runs_do_not_end_is_halved():
    simulation = Simulation(build_scene(Case("ground", 15, "S3"), 150))
    simulation.response.max_solves = 1
    simulation.state.velocities[:, 2] -= 4.0
    for _ in range(60):
        simulation.step()
    assert simulation.response.counts.halved > 0
    assert simulation.time == pytest.approx(0.12)
    assert len(self_intersections(simulation.state.positions, simulation.world.triangles)) == 0


def test_crossings_are_counted_by_kind(tmp_path):
    """The corner of a quad through a triangle behind it, and two neighbours folded through each other."""
    scene = build_scene(Case("table", 5, "S3"), 10)
    folder = tmp_path / "r"
    measure(scene, folder, lambda frame: None)
    recording = Recording(folder)
    positions = np.array(recording.positions)
    positions[1, 0] = positions[1, 24] + [0.05, 0.05, 0.01]  # a corner, pulled across the whole cloth
    positions[1, 24] -= [0, 0, 0.1]
    (folder / "positions.f32").write_bytes(positions.tobytes())
    apart, adjacent = count_crossings(Recording(folder))
    assert apart[0] == adjacent[0] == 0
    assert apart[1] + adjacent[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("place", GRIDS)
def test_no_triangles_cross_and_the_cloth_comes_to_rest(tmp_path, place):
    found = measure(build_scene(Case(place, 21, "S3"), 1000), tmp_path / place, lambda frame: None)
    assert found.crossings == found.adjacent_crossings == found.body_crossings == 0
    assert 1.0 <= found.average_runs <= 8.0
    assert found.unfinished == 0
    assert found.energies[-1] <= 1.01 * found.energies[80]
    if place == "ground":
        assert found.end_height < 0.2
        assert found.end_speed < 0.1
