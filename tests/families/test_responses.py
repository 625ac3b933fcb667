"""Every response: cloth lands on a body, pins hold, and what falls on itself stays finite."""

from __future__ import annotations

import numpy as np
import pytest

from weft.collision.response import RESPONSES
from weft.jit import threads_for
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


def build(name, **cloth):
    """A small sheet above a plate, with an integrator that takes what the response gives."""
    needs_limits = getattr(RESPONSES.load(name), "needs_limits", False)
    method = {"response": name, "steps_per_frame": 5}
    method |= {"model": "mass_spring", "integrator": "gauss_seidel" if needs_limits else "implicit_euler"}
    grid = {"size": [0.2, 0.2], "vertices": [5, 5], "center": [0, 0, 0.08]}
    values = {"name": "landing", "fps": 50, "duration": 0.2, "method": method, "cloth": [{"grid": grid, **cloth}]}
    return Simulation(Scene.model_validate({**values, "collider": [{"box": {"size": [1.0, 1.0, 0.1]}}]}))


@pytest.mark.parametrize("name", list(RESPONSES))
def test_a_sheet_lands_on_a_body(name):
    simulation = build(name)
    frames = list(simulation)
    last = frames[-1]
    assert last.certificate.intersections == last.certificate.body_intersections == last.certificate.inside == 0
    assert last.positions[:, 2].max() < 0.07
    assert last.certificate.contacts > 0
    assert np.abs(last.velocities).max() < 0.2


@pytest.mark.parametrize("name", list(RESPONSES))
def test_pins_hold(name):
    simulation = build(name, pins=[{"where": "left"}])
    held = simulation.pinned
    start = simulation.state.positions[held].copy()
    for _ in range(10):
        simulation.step()
    np.testing.assert_allclose(simulation.state.positions[held], start, atol=1e-9)
    assert simulation.state.positions[:, 2].min() < 0.079
