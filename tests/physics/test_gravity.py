"""Free fall in a vacuum, and the stretch and period of cloth on its own spring."""

from __future__ import annotations

import numpy as np
import pytest

from weft.jit import threads_for
from weft.models.fabrics import load_fabric
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

G = 9.81
METHODS = {
    "implicit": ({"model": "mass_spring"}, 2),
    "explicit": ({"model": "mass_spring", "integrator": "symplectic_euler", "response": "contact_filter"}, 40),
}
EXACT = {"name": "implicit_euler", "tolerance": 1e-12}


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


def build(cloth, method="implicit", **more):
    parts, steps = METHODS[method] if isinstance(method, str) else (method, 2)
    scene = {"name": "fall", "method": parts, "steps_per_frame": steps, "cloth": [cloth], "wind": {"density": 0.0}}
    return Simulation(Scene.model_validate({**scene, **more}))


def center(simulation, rows):
    masses = simulation.world.masses
    return masses @ rows / masses.sum()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ripples", [[], [{"amplitude": 0.03, "waves": [1.5, 0.5]}]], ids=["flat", "rippled"])
def test_free_fall_is_exact(method, ripples):
    """The scheme's own sum, x = x0 + n dt v0 + n (n + 1) / 2 dt^2 g, for the centre of mass.

    The vertices of a flat cloth follow it as exactly as the linear system is solved: within 1 mm at first.
    """
    grid = {"size": [0.5, 0.4], "vertices": [5, 4], "center": [0, 0, 3], "ripples": ripples}
    v0 = np.array([1.0, -0.5, 2.0])
    fabric = {**load_fabric("cotton").model_dump(), "damping": 0.0}
    simulation = build({"grid": grid, "velocity": list(v0), "fabric": fabric}, method)
    start = simulation.state.positions.copy()
    n, dt = 60, simulation.dt
    for _ in range(n):
        simulation.step()
    gravity = np.array([0.0, 0.0, -G])
    way = n * dt * v0 + 0.5 * n * (n + 1) * dt**2 * gravity
    np.testing.assert_allclose(center(simulation, simulation.state.positions - start), way, atol=1e-12)
    np.testing.assert_allclose(center(simulation, simulation.state.velocities), v0 + n * dt * gravity, atol=1e-12)
    if not ripples:
        np.testing.assert_allclose(simulation.state.positions, start + way, atol=1e-3)


def test_free_fall_of_every_vertex_is_exact_where_the_system_is_solved_exactly():
    grid = {"size": [0.5, 0.4], "vertices": [8, 7], "center": [0, 0, 3]}
    simulation = build({"grid": grid}, method={"integrator": EXACT})
    for _ in range(60):
        simulation.step()
    drop = 3.0 - simulation.state.positions[:, 2]
    np.testing.assert_allclose(drop, 0.5 * 60 * 61 * simulation.dt**2 * G, rtol=1e-11)


def test_two_cloths_fall_alike():
    """Silk and denim, of 0.06 and 0.32 kg/m2."""
    cloth = [
        {"grid": {"size": [0.3, 0.3], "vertices": [5, 5], "center": [x, 0, 3]}, "fabric": fabric}
        for x, fabric in ((0.0, "silk"), (1.0, "denim"))
    ]
    scene = {"name": "fall", "method": {"integrator": EXACT}, "cloth": cloth, "wind": {"density": 0.0}}
    simulation = Simulation(Scene.model_validate(scene))
    for _ in range(30):
        simulation.step()
    drop = 3.0 - simulation.state.positions[:, 2]
    np.testing.assert_allclose(drop, 0.5 * 30 * 31 * simulation.dt**2 * G, rtol=1e-6)


HEIGHT, WARP, DENSITY = 0.5, 50.0, 0.15
STRETCH = DENSITY * G * HEIGHT**2 / (2 * WARP)  # weight of half the cloth over the stiffness of its warp
PERIOD = 2 * np.pi * HEIGHT * np.sqrt(DENSITY / (2 * WARP))


def hanging(method, damping):
    """One row of quads, hung by its top: under each inner hook, half the mass of a strip on that strip's spring."""
    fabric = {"density": DENSITY, "stretch_warp": WARP, "stretch_weft": 1e-6, "shear": 0.0, "thickness": 0.0004}
    fabric |= {"bending_warp": 0.0, "bending_weft": 0.0, "damping": damping}
    grid = {"size": [0.6, HEIGHT], "vertices": [5, 2], "plane": "xz"}
    return build({"grid": grid, "fabric": fabric, "pins": [{"where": "top"}]}, method)


def sag(simulation):
    return float((simulation.world.positions - simulation.state.positions)[4, 2])


def test_hanging_spring_has_its_period_and_amplitude():
    """Let go unstretched, it swings as STRETCH (1 - cos(2 pi t / PERIOD)) with no loss, for six periods."""
    simulation = hanging("explicit", 0.0)
    times, sags = [], []
    for _ in range(round(6 * PERIOD / simulation.dt)):
        simulation.step()
        times.append(simulation.time)
        sags.append(sag(simulation))
    times, sags = np.array(times), np.array(sags)
    down = sags > STRETCH
    passing = times[1:][down[1:] & ~down[:-1]]
    assert np.diff(passing).mean() == pytest.approx(PERIOD, rel=2e-3)
    wanted = STRETCH * (1 - np.cos(2 * np.pi * times / PERIOD))
    np.testing.assert_allclose(sags, wanted, atol=0.02 * STRETCH)


@pytest.mark.parametrize("method", METHODS)
def test_hanging_spring_comes_to_rest_at_its_stretch(method):
    simulation = hanging(method, 0.02)
    for _ in range(round(0.8 / simulation.dt)):
        simulation.step()
    assert sag(simulation) == pytest.approx(STRETCH, rel=1e-3)
    assert np.abs(simulation.state.velocities).max() < 1e-3
