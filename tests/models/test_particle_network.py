"""The particle network: stiffness from fabric or modulus, loads, and steps that Runge-Kutta may take."""

from __future__ import annotations

import numpy as np
import pytest

from weft.errors import WeftError
from weft.geometry.mesh import build_grid
from weft.models.fabrics import load_fabric
from weft.models.particle_network import ParticleNetwork, ParticleNetworkParameters
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

COTTON = load_fabric("cotton")


@pytest.mark.parametrize("vertices", [(11, 9), (21, 41)])
def test_stretch_stores_the_energy_of_the_fabric(vertices):
    mesh = build_grid((0.5, 0.4), vertices)
    model = ParticleNetwork(mesh, COTTON)
    e = 1e-3
    for axis, stiffness in ((0, COTTON.stretch_weft), (1, COTTON.stretch_warp)):
        for strain in (e, -e):
            scale = np.ones(3)
            scale[axis] += strain
            assert model.energy(mesh.positions * scale) == pytest.approx(0.5 * stiffness * e**2 * 0.2, rel=1e-9)


def test_a_modulus_and_the_thickness_replace_the_fabrics_stiffness():
    """Y = E h and B = E h^3 / 12, per direction."""
    mesh = build_grid((0.5, 0.4), (6, 5))
    h = COTTON.thickness
    given = ParticleNetwork(mesh, COTTON, ParticleNetworkParameters(modulus_warp=5e6))
    same = {"stretch_warp": 5e6 * h, "bending_warp": 5e6 * h**3 / 12.0}
    wanted = ParticleNetwork(mesh, COTTON.model_copy(update=same))
    x = mesh.positions + np.random.default_rng(1).normal(scale=5e-3, size=mesh.positions.shape)
    assert given.energy(x) == pytest.approx(wanted.energy(x), rel=1e-12)


def test_loads_pull_and_bad_ones_are_refused():
    mesh = build_grid((0.5, 0.4), (6, 5))
    load = {"vertices": [29, 3], "force": (0.0, 0.1, -0.2)}
    model = ParticleNetwork(mesh, COTTON, ParticleNetworkParameters(loads=[load]))
    forces = np.zeros_like(mesh.positions)
    model.add_forces(mesh.positions, np.zeros_like(forces), forces)
    np.testing.assert_allclose(forces[[29, 3]], np.tile([0.0, 0.1, -0.2], (2, 1)), atol=1e-12)
    np.testing.assert_allclose(forces.sum(axis=0), [0.0, 0.2, -0.4], atol=1e-12)
    with pytest.raises(WeftError, match=r"loads\.0: 30 is not a vertex; the cloth has 0 to 29"):
        ParticleNetwork(mesh, COTTON, ParticleNetworkParameters(loads=[{**load, "vertices": [30]}]))


def scene(scheme, steps_per_frame, **values):
    fabric = COTTON.model_copy(update={"stretch_warp": 100.0, "stretch_weft": 60.0, "shear": 10.0})
    grid = {"size": [0.3, 0.3], "vertices": [7, 7], "center": [0, 0, 1]}
    integrator = {"name": "runge_kutta", "scheme": scheme}
    return Scene(
        name="hang", fps=20, steps_per_frame=steps_per_frame,
        method={"model": "particle_network", "response": "contact_filter", "integrator": integrator},
        cloth=[{"grid": grid, "fabric": fabric, "pins": [{"where": "left"}]}], **values,
    )  # fmt: skip


def test_runge_kutta_swings_a_sheet_and_keeps_its_energy_without_damping():
    energies = []
    values = scene("rk4", 50, duration=0.25, wind={"density": 0.0}).model_copy()
    cloth = values.cloth[0]
    fabric = cloth.fabric.model_copy(update={"damping": 0.0})
    free = values.model_copy(update={"cloth": [cloth.model_copy(update={"fabric": fabric})]})
    for frame in Simulation(free):
        energies.append(frame.certificate.energy)
        last = frame
    assert last.positions[:, 2].min() < 0.8, "it must have moved"
    swung = 0.5 * 0.15 * 0.3**2 * 9.81 * 0.3  # of the order of the energy that turns into motion
    np.testing.assert_allclose(energies, energies[0], atol=1e-3 * swung)


def test_both_schemes_agree():
    ends = []
    for scheme, steps in (("rk4", 160), ("dormand_prince", 2)):
        for frame in Simulation(scene(scheme, steps, duration=0.1)):
            last = frame
        ends.append(last.positions)
    np.testing.assert_allclose(ends[0], ends[1], atol=2e-4)


def test_a_step_that_is_too_long_is_refused_with_the_longest_one():
    with pytest.raises(WeftError, match=r"runge_kutta: a step of 50 ms .* ms; multiply steps_per_frame by \d+"):
        next(frame for frame in Simulation(scene("rk4", 1, duration=0.2)) if frame.index)
