"""A run that is taken up from a checkpoint goes on bit by bit, with an integrator that remembers."""

from __future__ import annotations

import numpy as np

import weft
from weft.scene.schema import Scene


def scene(duration):
    grid = {"size": [0.4, 0.4], "vertices": [6, 6], "center": [0, 0, 0.3]}
    strain = {"name": "velocity_limit", "limit": 0.01}
    return Scene(
        name="resumed",
        duration=duration,
        fps=5,
        steps_per_frame=6,
        cloth=[{"grid": grid, "pins": [{"vertices": [0]}]}],
        method={"model": "responsive", "integrator": "bdf2", "strain": strain},
        collider=[{"sphere": {"radius": 0.1, "center": [0.05, 0, 0.1]}}],
    )  # fmt: skip


def test_resume_with_bdf2_is_bit_identical(tmp_path):
    whole = weft.run(scene(2.0), tmp_path / "whole")
    weft.run(scene(1.0), tmp_path / "parts")
    parts = weft.run(scene(2.0), tmp_path / "parts", resume=True)
    assert len(parts) == len(whole) == 11
    np.testing.assert_array_equal(parts.positions, whole.positions)
    assert "over_limit" in whole.certificates[-1]
