"""The responsive model: its arc, its bending stiffness, and cloth that buckles and keeps its size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk

from weft.geometry.mesh import build_grid
from weft.models.fabrics import load_fabric
from weft.models.responsive import Responsive, ResponsiveParameters, solve_arc
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

COTTON = load_fabric("cotton")


def test_arc_solves_the_chord_relation():
    s = np.concatenate([[0.0], np.logspace(-14, 0, 300)])
    half_angle = np.sqrt(solve_arc(s))
    np.testing.assert_allclose(np.sinc(half_angle / np.pi), 1.0 - s, atol=2e-15)
    assert half_angle[-1] == pytest.approx(np.pi, rel=1e-14), "a full circle has no chord"
    series = np.sqrt(6.0 * s[1:20])  # 1 - sinc y = y^2 / 6 for small y
    np.testing.assert_allclose(half_angle[1:20], series, rtol=1e-8)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("vertices", [(21, 21), (41, 31)])
def test_a_cylinder_stores_the_bending_energy_of_a_plate(vertices, axis):
    """E = 1/2 B c^2 for each area that is bent, along warp and weft alike, on any grid."""
    size = (0.4, 0.3)
    mesh = build_grid(size, vertices)
    model = Responsive(mesh, COTTON, ResponsiveParameters(ramp=1e-9))
    curvature = 8.0
    rigid = (COTTON.bending_weft, COTTON.bending_warp)[axis]
    x = mesh.positions.copy()
    s = mesh.positions[:, axis]
    x[:, axis], x[:, 2] = np.sin(curvature * s) / curvature, (1.0 - np.cos(curvature * s)) / curvature
    step = size[axis] / (vertices[axis] - 1)
    bent = (size[axis] - step) * size[1 - axis]  # the outer half of the outer strips carries no connection
    assert model.energy(x) == pytest.approx(0.5 * rigid * curvature**2 * bent, rel=0.03)


def test_type_1_only_pulls_and_type_2_only_pushes():
    mesh = build_grid((0.3, 0.3), (7, 7))
    no_bending = Responsive(mesh, COTTON, ResponsiveParameters(bending=0.0))
    assert no_bending.energy(0.8 * mesh.positions) == 0.0
    assert no_bending.energy(1.1 * mesh.positions) > 0.0
    with_bending = Responsive(mesh, COTTON)
    assert with_bending.energy(0.8 * mesh.positions) > 0.0
    assert with_bending.energy(1.1 * mesh.positions) == pytest.approx(no_bending.energy(1.1 * mesh.positions))


def scene(cloth, integrator="bdf2", **values):
    method = {"model": "responsive", "integrator": integrator}
    return Scene(name="test", method=method, cloth=[cloth], **values)


def elastica_rise(shortening):
    """Height over length of a strip with hinged ends: d / L = 2 E(m) / K(m) - 1, h / L = sqrt(m) / K(m)."""
    m = brentq(lambda m: 2.0 * ellipe(m) / ellipk(m) - 2.0 + shortening, 1e-9, 0.99)
    return np.sqrt(m) / ellipk(m)


def test_a_sheet_compressed_by_a_fifth_buckles_into_the_elastica():
    m, n, length = 21, 5, 0.5
    push = {"ease": True, "keyframes": [{"time": 0.0}, {"time": 0.5, "move": [0.2 * length, 0.0, 0.0]}]}
    grid = {"size": [length, 0.1], "vertices": [m, n], "ripples": [{"amplitude": 0.002, "waves": [0.5, 0.0]}]}
    cloth = {"grid": grid, "pins": [{"where": "left", "motion": push}, {"where": "right"}]}
    energies = []
    solved = {"name": "bdf2", "tolerance": 1e-2, "error": 5e-4}
    still = {"duration": 8.0, "fps": 10, "steps_per_frame": 6, "gravity": (0, 0, 0)}
    for frame in Simulation(scene(cloth, integrator=solved, **still)):
        energies.append(frame.certificate.energy)
        x = frame.positions.reshape(m, n, 3)
    assert frame.certificate.max_stretch < 0.002
    assert np.all(np.diff(energies[7:]) < 0.0), "energy grows though nothing moves the sheet"
    height = x[:, n // 2, 2]
    height = height * np.sign(height[m // 2])
    assert height.max() == pytest.approx(elastica_rise(0.2) * length, rel=0.03), "it still sways a little"
    slopes = np.diff(height)
    assert np.all(np.diff(np.sign(slopes[slopes != 0.0])) <= 0), "one crest, no wrinkles"
    assert np.abs(np.diff(height, 2)).max() < 0.3 * length / m, "smooth"
    assert np.ptp(x[:, :, 2], axis=1).max() < 0.02 * length, "the same across"


@pytest.mark.slow
def test_the_arc_does_not_depend_on_a_loose_solve():
    """Solved exactly, little is damped: pushed within half a second, the sheet still swings after four, and is no arc.
    Pushed slowly, it ends in the same one."""
    m, n, length = 21, 5, 0.5
    push = {"ease": True, "keyframes": [{"time": 0.0}, {"time": 4.0, "move": [0.2 * length, 0.0, 0.0]}]}
    grid = {"size": [length, 0.1], "vertices": [m, n], "ripples": [{"amplitude": 0.002, "waves": [0.5, 0.0]}]}
    cloth = {"grid": grid, "pins": [{"where": "left", "motion": push}, {"where": "right"}]}
    exact = {"name": "bdf2", "tolerance": 1e-4, "error": 1e-4}
    still = {"duration": 8.0, "fps": 10, "steps_per_frame": 6, "gravity": (0, 0, 0)}
    for frame in Simulation(scene(cloth, integrator=exact, **still)):
        height = frame.positions.reshape(m, n, 3)[:, n // 2, 2]
    assert np.abs(height).max() == pytest.approx(elastica_rise(0.2) * length, rel=0.03)


def test_a_hung_sheet_keeps_its_size_without_added_damping():
    fabric = COTTON.model_copy(update={"damping": 0.0})
    grid = {
        "size": [0.5, 0.5],
        "vertices": [13, 13],
        "plane": "xz",
        "ripples": [{"amplitude": 0.004, "waves": [1.5, 1]}],
    }
    cloth = {"grid": grid, "fabric": fabric, "pins": [{"where": "top"}]}
    for frame in Simulation(scene(cloth, duration=2.0, fps=10, steps_per_frame=6)):
        x = frame.positions.reshape(13, 13, 3)
        assert frame.certificate.max_stretch < 0.005
        assert np.ptp(x[:, 0, 0]) > 0.99 * 0.5, "the free lower edge shrinks"
        assert x[:, -1, 2].mean() - x[:, 0, 2].mean() == pytest.approx(0.5, rel=0.005)
    assert np.abs(frame.velocities).max() < 0.1
