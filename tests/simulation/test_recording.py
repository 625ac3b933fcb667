"""Recordings: readable with numpy, crash-safe, resumed to the same bits."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.errors import WeftError

SCENE = """
name = "small"
duration = 0.25
fps = 40
steps_per_frame = 2
[[cloth]]
grid = { size = [0.5, 0.5], vertices = [9, 9], center = [0, 0, 0.2] }
velocity = [0.5, 0, -1]
[[collider]]
sphere = { radius = 0.1, center = [0, 0, 0.08] }
motion.keyframes = [{ time = 0 }, { time = 0.25, move = [0.05, 0, 0] }]
[[collider]]
plane = {}
"""


@pytest.fixture(scope="module")
def scene_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("scene") / "small.toml"
    path.write_text(SCENE)
    return path


@pytest.fixture(scope="module")
def whole(scene_file, tmp_path_factory) -> Path:
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "r"
    weft.run(scene_file, path)
    return path


def numbers(path: Path) -> tuple[bytes, bytes, list[dict]]:
    """All that must be the same for the same scene: everything but the times spent."""
    rows = [json.loads(line) for line in (path / "certificate.jsonl").read_text().splitlines()]
    for row in rows:
        del row["seconds"]
    last = sorted(path.glob("checkpoint-*.npz"))[-1]
    with np.load(last) as data:
        state = b"".join(data[key].tobytes() for key in sorted(data.files))
    return (path / "positions.f32").read_bytes(), state, rows


def test_numpy_reads_it_without_weft(whole):
    meta = json.loads((whole / "meta.json").read_text())
    x = np.fromfile(whole / "positions.f32", np.float32).reshape(-1, meta["n_vertices"], 3)
    triangles = np.load(whole / "triangles.npy")
    assert x.shape == (11, 81, 3)
    assert triangles.shape == (128, 3)
    assert np.isfinite(x).all()
    recording = weft.Recording(whole)
    np.testing.assert_array_equal(recording.positions, x)
    assert len(recording) == 11 == len(recording.certificates)
    np.testing.assert_allclose(x[0].mean(axis=0), [0, 0, 0.2], atol=1e-6)


def test_certificate_speaks_of_the_recorded_numbers(whole):
    recording = weft.Recording(whole)
    for row, x in zip(recording.certificates, recording.positions, strict=True):
        pairs = weft.collision.self_intersections(x.astype(np.float64), recording.triangles)
        assert row["intersections"] == len(pairs)
        assert row["inside"] == 0
        assert set(row["seconds"]) >= {"certify"}


def test_velocities_are_recorded_where_asked(scene_file, tmp_path):
    recording = weft.run(weft.load_scene(scene_file, ['record=["velocities"]', "duration=0.05"]), tmp_path / "r")
    assert recording.velocities.shape == recording.positions.shape
    np.testing.assert_allclose(recording.velocities[0, 0], [0.5, 0, -1])
    with pytest.raises(WeftError, match="no velocities"):
        _ = weft.run(weft.load_scene(scene_file, ["duration=0.05"]), tmp_path / "s").velocities


def test_second_run_is_refused(scene_file, whole):
    before = numbers(whole)
    with pytest.raises(WeftError, match=r"--resume.*--overwrite"):
        weft.run(scene_file, whole)
    assert numbers(whole) == before


def test_overwrite_gives_the_same_numbers(scene_file, whole, tmp_path):
    weft.run(weft.load_scene(scene_file, ["cloth.0.fabric=denim"]), tmp_path / "r")
    assert numbers(tmp_path / "r") != numbers(whole)
    weft.run(scene_file, tmp_path / "r", overwrite=True)
    assert numbers(tmp_path / "r") == numbers(whole)


def test_a_folder_of_something_else_is_not_touched(scene_file, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for options in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(WeftError, match="not a recording"):
            weft.run(scene_file, tmp_path, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_resume_with_another_scene_is_refused(scene_file, whole):
    with pytest.raises(WeftError, match="another cloth"):
        weft.run(weft.load_scene(scene_file, ["cloth.0.fabric=denim"]), whole, resume=True)


def test_resume_of_a_finished_run_changes_nothing(scene_file, whole):
    before = numbers(whole)
    weft.run(scene_file, whole, resume=True)
    assert numbers(whole) == before


def test_resume_may_last_longer(scene_file, whole, tmp_path):
    weft.run(weft.load_scene(scene_file, ["duration=0.125"]), tmp_path / "r")
    weft.run(scene_file, tmp_path / "r", resume=True)
    assert numbers(tmp_path / "r") == numbers(whole)


def test_a_running_recording_is_locked(scene_file, tmp_path):
    from weft.simulation.recording import open_recorder
    from weft.simulation.simulation import Simulation

    recorder = open_recorder(tmp_path / "r", Simulation(weft.load_scene(scene_file)))
    try:
        with pytest.raises(WeftError, match="another run"):
            weft.run(scene_file, tmp_path / "r", overwrite=True)
    finally:
        recorder.close()


@pytest.mark.parametrize("cut", [1, 100, 972, 972 * 3 + 5])
def test_damaged_tails_are_replaced(scene_file, whole, tmp_path, cut):
    """Whatever a crash leaves at the ends of the files, the outcome is that of the whole run."""
    path = tmp_path / "r"
    weft.run(weft.load_scene(scene_file, ["duration=0.125"]), path)
    with (path / "positions.f32").open("r+b") as file:
        file.truncate(max(0, file.seek(0, os.SEEK_END) - cut))
    with (path / "certificate.jsonl").open("ab") as file:
        file.write(b'{"frame": 99, "tim')
    (path / "checkpoint-00000042.npz").write_bytes(b"PK not a checkpoint")
    weft.run(scene_file, path, resume=True)
    assert numbers(path) == numbers(whole)


def test_a_longer_run_says_so_in_its_recording(scene_file, tmp_path):
    weft.run(weft.load_scene(scene_file, ["duration=0.125"]), tmp_path / "r")
    longer = weft.run(scene_file, tmp_path / "r", resume=True)
    assert longer.n_due == len(longer) == weft.load_scene(scene_file).n_frames + 1
    assert longer.scene.duration == weft.load_scene(scene_file).duration


def start(scene_file: Path, path: Path, threads: int, *options: str) -> subprocess.Popen[bytes]:
    code = "import sys; from weft.cli import main; main()"
    command = [sys.executable, "-c", code, "run", str(scene_file), "-o", str(path), "--threads", str(threads), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


LONG = ("--set", "fps=20", "--set", "duration=3", "--set", "steps_per_frame=4")  # three checkpoints


def n_lines(path: Path) -> int:
    return (path / "certificate.jsonl").read_bytes().count(b"\n") if (path / "certificate.jsonl").exists() else 0


def kill_and_resume(scene_file: Path, path: Path, threads: int, moment: random.Random) -> int:
    """Kill the run at a random moment, then finish it. Returns the frames it had."""
    process = start(scene_file, path, threads, *LONG)
    wanted = moment.randrange(0, 60)
    while process.poll() is None and n_lines(path) < wanted:
        time.sleep(0.001)
    time.sleep(moment.random() * 0.03)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    frames = n_lines(path)
    finish = start(scene_file, path, threads, *LONG, "--resume")
    _, errors = finish.communicate()
    assert finish.returncode == 0, errors
    return frames


def check_kills(scene_file: Path, folder: Path, count: int) -> None:
    reference = folder / "whole"
    process = start(scene_file, reference, 1, *LONG)
    process.communicate()
    assert process.returncode == 0
    moment = random.Random(5)
    stopped_at = []
    for k in range(count):
        path = folder / f"killed-{k}"
        stopped_at.append(kill_and_resume(scene_file, path, 1 + k % 2, moment))
        assert numbers(path) == numbers(reference)
    assert len(set(stopped_at)) > 1, "all kills hit the same moment"
    assert any(frames > 20 for frames in stopped_at), "no kill came after a checkpoint"


def test_kill_and_resume_ends_with_the_same_bits(scene_file, tmp_path):
    check_kills(scene_file, tmp_path, 2)


@pytest.mark.slow
def test_twenty_kills_end_with_the_same_bits(scene_file, tmp_path):
    check_kills(scene_file, tmp_path, 20)


def test_a_full_disk_keeps_what_was_recorded(scene_file, whole, tmp_path):
    """A limit on file size stands for the full disk: the write fails in the middle of a frame."""
    path = tmp_path / "r"
    limit = 972 * 4 + 300

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    code = "import weft, sys; from weft.cli import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, "run", str(scene_file), "-o", str(path)],
        preexec_fn=small_disk,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert process.stderr.strip().splitlines()[-1].startswith(f"weft: {path}: cannot write frame 4")
    assert "frames 0 to 3 are kept" in process.stderr
    assert "Traceback" not in process.stderr
    recording = weft.Recording(path)
    assert len(recording) == 4
    np.testing.assert_array_equal(recording.positions, weft.Recording(whole).positions[:4])
    weft.run(scene_file, path, resume=True)
    assert numbers(path) == numbers(whole)
