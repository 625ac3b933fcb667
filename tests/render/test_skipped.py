"""The boxes that a search of cloth against bodies did not look at, in a picture of a recording."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.cli import main
from weft.errors import WeftError
from weft.render.skipped import SkippedBoxes
from weft.simulation.recording import Recording

SCENE = """
name = "corner"
duration = 0.05
fps = 20
[[cloth]]
grid = { size = [1, 1], vertices = [9, 9], center = [0, 0, 0.42] }
"""
CORNER = "[[collider]]\nbox = { size = [0.4, 0.4, 0.4], center = [0.4, 0.4, 0.2] }\n"


def record(folder, text):
    (folder / "scene.toml").write_text(text)
    return Recording(weft.run(folder / "scene.toml", folder / "recording").path)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record(tmp_path_factory.mktemp("corner"), SCENE + CORNER)


def test_boxes_far_from_the_body_are_drawn_and_those_on_it_are_not(recording):
    surface = SkippedBoxes(recording, "aabb_tree").surface(1)
    boxes = np.asarray(surface.positions).reshape(-1, 96, 3)
    lower, upper = boxes.min(axis=1), boxes.max(axis=1)
    assert len(boxes) > 2
    assert (lower[:, :2] < 0.2).any(axis=1).all()  # each reaches beyond the body
    assert (upper[:, :2] < 0.2).all(axis=1).any()  # and some hold the far corner of the cloth


def test_the_baseline_looks_at_every_box(recording):
    assert SkippedBoxes(recording, "all_pairs").surface(1) is None


def test_a_scene_without_bodies_is_refused(tmp_path):
    with pytest.raises(WeftError, match="no collider"):
        SkippedBoxes(record(tmp_path, SCENE), "aabb_tree")


def test_the_command_draws_green_lines(recording, tmp_path, monkeypatch):
    from PIL import Image

    pictures = {}
    for name, options in {"plain": [], "boxes": ["--boxes", "binary_tree"]}.items():
        path = tmp_path / f"{name}.png"
        arguments = ["weft", "render", str(recording.path), "-o", str(path), "--size", "160x120", *options]
        monkeypatch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 0
        image = np.asarray(Image.open(path)).astype(int)
        pictures[name] = (image[:, :, 1] > image[:, :, 0] + 40).sum()
    assert pictures["plain"] == 0
    assert pictures["boxes"] > 50
