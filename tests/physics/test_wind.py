"""Air: terminal velocity, a sheet hung in the wind, and the force of a plate across the flow."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import build_grid
from weft.jit import threads_for
from weft.models.air import add_air_forces
from weft.models.fabrics import load_fabric
from weft.models.wind import Wind
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

G, AIR = 9.81, 1.2
COTTON = load_fabric("cotton")


@pytest.fixture(autouse=True)
def _one_thread():
    with threads_for(1):
        yield


def air_on(mesh, x, v, wind, half_density_drag=0.5 * AIR * 1.2):
    forces, damping = np.zeros_like(x), np.zeros((len(x), 3, 3))
    t = mesh.topology
    coefficients = np.full(len(x), half_density_drag)
    sway = v - v.mean(axis=0)
    add_air_forces(
        x, v, sway, np.array(wind, np.float64), t.triangles, *t.vertex_triangles, coefficients, forces, damping
    )
    return forces, damping


@pytest.fixture
def sheet():
    return build_grid((0.5, 0.4), (6, 5))


@pytest.mark.parametrize("degrees", [0.0, 30.0, 60.0, 90.0])
def test_force_of_a_plate_across_the_flow(sheet, degrees):
    """1/2 r c A (w . n)^2 along the normal, downwind; none along the sheet."""
    a = np.deg2rad(degrees)
    forces, _ = air_on(sheet, sheet.positions, np.zeros_like(sheet.positions), [7 * np.sin(a), 0, -7 * np.cos(a)])
    wanted = [0.0, 0.0, -0.5 * AIR * 1.2 * 0.2 * 49.0 * np.cos(a) ** 2]
    np.testing.assert_allclose(forces.sum(axis=0), wanted, atol=1e-12)


def test_each_corner_takes_a_third_of_its_triangles(sheet):
    forces, _ = air_on(sheet, sheet.positions, np.zeros_like(sheet.positions), [0, 0, 2.0])
    share = np.zeros(30)
    for corners in sheet.triangles:
        share[corners] += 0.2 / len(sheet.triangles) / 3
    np.testing.assert_allclose(forces[:, 2], 0.5 * AIR * 1.2 * 4.0 * share, rtol=1e-12)


def test_no_force_on_cloth_that_moves_with_the_wind(sheet, rng):
    x = sheet.positions + rng.normal(scale=0.02, size=sheet.positions.shape)
    forces, damping = air_on(sheet, x, np.tile([3.0, 1.0, -2.0], (30, 1)), [3.0, 1.0, -2.0])
    np.testing.assert_allclose(forces, 0.0, atol=1e-14)
    np.testing.assert_allclose(damping, 0.0, atol=1e-14)


def test_stirred_air_brakes_what_sways_and_not_what_falls(sheet):
    """Two halves of a sheet go opposite ways across it, slowly: 1/2 r c A s0 w against each, beside steady drag."""
    x = sheet.positions
    speed = 0.01
    side = np.where(x[:, 0] < np.median(x[:, 0]), -1.0, 1.0)
    v = np.zeros_like(x)
    v[:, 2] = speed * side
    forces, _ = air_on(sheet, x, v, [0.0, 0.0, 0.0])
    assert (forces[:, 2] * v[:, 2]).sum() < 0.0
    fast, _ = air_on(sheet, x, 2.0 * v, [0.0, 0.0, 0.0])
    ratio = (fast[:, 2] * side).sum() / (forces[:, 2] * side).sum()
    assert 2.0 < ratio < 2.1, "linear in the speed where it is slow"


def test_damping_is_the_derivative_for_motion_of_the_whole_sheet(sheet, rng):
    x = sheet.positions + rng.normal(scale=0.02, size=sheet.positions.shape)
    v = rng.normal(size=x.shape)
    _, damping = air_on(sheet, x, v, [2.0, 0.5, -4.0])
    h = 1e-6
    for direction in np.eye(3):
        up, down = (air_on(sheet, x, v + sign * h * direction, [2.0, 0.5, -4.0])[0] for sign in (1, -1))
        np.testing.assert_allclose(damping @ direction, -(up - down) / (2 * h), atol=1e-8)


def test_air_takes_energy_from_cloth_that_moves_in_it(sheet, rng):
    v = rng.normal(size=sheet.positions.shape)
    forces, damping = air_on(sheet, sheet.positions, v, [0.0, 0.0, 0.0])
    assert (forces * v).sum() < 0.0
    assert np.linalg.eigvalsh(damping).min() >= -1e-15


def test_force_does_not_depend_on_which_side_is_the_front(sheet):
    turned = sheet.triangles[:, ::-1]
    v = np.zeros_like(sheet.positions)
    front, _ = air_on(sheet, sheet.positions, v, [1.0, 0.0, 3.0])
    back, _ = air_on(type(sheet)(sheet.positions, np.ascontiguousarray(turned)), sheet.positions, v, [1.0, 0.0, 3.0])
    np.testing.assert_allclose(back, front, rtol=1e-12, atol=1e-15)


def test_wind_blows_with_gusts_about_its_mean():
    wind = Wind(velocity=(3.0, 0.0, -1.0), gust=0.5)
    times = np.linspace(0.0, 200.0, 20_001)
    blown = np.stack([wind.at(t) for t in times])
    np.testing.assert_allclose(blown.mean(axis=0), wind.velocity, rtol=0.02, atol=1e-12)
    np.testing.assert_allclose(np.cross(blown, wind.velocity), 0.0, atol=1e-12)
    strength = blown[:, 0] / 3.0
    assert 0.5 <= strength.min() < 0.65
    assert 1.35 < strength.max() <= 1.5
    np.testing.assert_array_equal(Wind(velocity=(3.0, 0.0, -1.0)).at(1.234), [3.0, 0.0, -1.0])


def falling_sheet(method, steps=2):
    grid = {"size": [0.5, 0.4], "vertices": [5, 4], "center": [0, 0, 9]}
    fabric = {**COTTON.model_dump(), "damping": 0.0}
    scene = {"name": "fall", "method": method, "steps_per_frame": steps, "cloth": [{"grid": grid, "fabric": fabric}]}
    return Simulation(Scene.model_validate({**scene, "wind": {"density": AIR}}))


TERMINAL = np.sqrt(2 * COTTON.density * G / (AIR * COTTON.drag))


def test_terminal_velocity_of_a_flat_sheet():
    """sqrt(2 g density / (r c)): 1.43 m/s for cotton, the same for every vertex."""
    simulation = falling_sheet({"integrator": {"name": "implicit_euler", "tolerance": 1e-10}})
    for _ in range(round(1.5 / simulation.dt)):
        simulation.step()
    np.testing.assert_allclose(simulation.state.velocities[:, 2], -TERMINAL, rtol=1e-6)
    np.testing.assert_allclose(simulation.state.velocities[:, :2], 0.0, atol=1e-9)


@pytest.mark.parametrize(("method", "steps", "tolerance"), [("engine", 2, 0.02), ("provot1995", 40, 1e-3)])
def test_a_falling_sheet_gets_to_its_terminal_velocity_in_time(method, steps, tolerance):
    """v = v_t tanh(g t / v_t), to the order of the step."""
    simulation = falling_sheet(method, steps)
    for _ in range(round(0.15 / simulation.dt)):
        simulation.step()
    wanted = TERMINAL * np.tanh(G * simulation.time / TERMINAL)
    np.testing.assert_allclose(-simulation.state.velocities[:, 2], wanted, rtol=tolerance)


@pytest.mark.parametrize("speed", [0.7, 1.2])
def test_a_sheet_hung_in_a_steady_wind_stands_at_the_angle_of_balance(speed):
    """Weight and wind are both even over the sheet: it stays flat, at tan(a) / cos(a) = r c w^2 / (2 density g).

    From about 2 m/s on it flutters.
    """
    grid = {"size": [0.3, 0.3], "vertices": [5, 5], "plane": "xz", "center": [0, 0, -0.15]}
    fabric = {**COTTON.model_dump(), "damping": 0.02}
    scene = {"name": "hung", "fps": 60, "cloth": [{"grid": grid, "fabric": fabric, "pins": [{"where": "top"}]}]}
    simulation = Simulation(Scene.model_validate({**scene, "wind": {"density": AIR, "velocity": [0.0, speed, 0.0]}}))
    for _ in range(round(3.0 / simulation.dt)):
        simulation.step()
    rows = simulation.state.positions.reshape(5, 5, 3)
    edge = rows[:, 0] - rows[:, -1]
    angle = np.arctan2(edge[:, 1], -edge[:, 2])
    wanted = AIR * COTTON.drag * speed**2 / (2 * COTTON.density * G)
    np.testing.assert_allclose(np.tan(angle) / np.cos(angle), wanted, rtol=0.01)
    assert np.abs(simulation.state.velocities).max() < 0.01
