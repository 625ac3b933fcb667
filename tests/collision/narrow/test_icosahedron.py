"""The paper's own test: which tests keep a bouncing node inside an icosahedron, and which let it out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collision.narrow.bouncing_node import (
    ANGLE_SUM,
    AXIS_CROSSING,
    CONSERVATIVE,
    CUBIC,
    CUBIC_MONOTONE,
    TRIANGLE_SPACE,
    bounce,
    icosahedron,
)

from weft.collision.narrow.segment_plane import TOLERANCE

STRIDES = (0.01, 0.1, 0.5, 3.0)  # of the radius, in a step
STEPS, MANY_STEPS = 20_000, 1_000_000


def steps_until_escape(test: int, tolerance: float, stride: float, landing: bool, steps: int, seed: int = 1) -> int:
    """-1 for never."""
    x, faces = icosahedron()
    escaped, bounces = bounce(x, faces, test, tolerance, stride, landing, steps, np.random.default_rng(seed))
    assert bounces > 0.008 * steps or escaped >= 0
    return escaped


@pytest.mark.parametrize("landing", [False, True])
@pytest.mark.parametrize("stride", STRIDES)
def test_nothing_escapes_the_paper_s_tolerance_or_ours(stride: float, landing: bool) -> None:
    assert steps_until_escape(ANGLE_SUM, TOLERANCE, stride, landing, STEPS) == -1
    assert steps_until_escape(CONSERVATIVE, 0.0, stride, landing, STEPS) == -1
    assert steps_until_escape(CONSERVATIVE, 1e-3, stride, landing, STEPS) == -1


@pytest.mark.parametrize("stride", STRIDES)
def test_without_tolerance_angles_let_it_out(stride: float) -> None:
    assert steps_until_escape(ANGLE_SUM, 0.0, stride, False, STEPS) >= 0
    assert steps_until_escape(ANGLE_SUM, 1e-8, stride, True, STEPS) >= 0


@pytest.mark.parametrize("stride", STRIDES)
def test_cardano_lets_it_out(stride: float) -> None:
    assert steps_until_escape(CUBIC, 0.0, stride, False, STEPS) >= 0


@pytest.mark.parametrize("test", [AXIS_CROSSING, CUBIC_MONOTONE, TRIANGLE_SPACE])
def test_the_others_hold_until_it_lands_on_a_wall(test: int) -> None:
    assert steps_until_escape(test, 0.0, 0.5, False, STEPS) == -1
    assert steps_until_escape(test, 0.0, 0.5, True, STEPS) >= 0


@pytest.mark.slow
@pytest.mark.parametrize("landing", [False, True])
@pytest.mark.parametrize("stride", STRIDES)
def test_a_million_steps(stride: float, landing: bool) -> None:
    assert steps_until_escape(ANGLE_SUM, TOLERANCE, stride, landing, MANY_STEPS) == -1
    assert steps_until_escape(CONSERVATIVE, 0.0, stride, landing, MANY_STEPS) == -1
    assert steps_until_escape(CONSERVATIVE, 1e-3, stride, landing, MANY_STEPS) == -1
