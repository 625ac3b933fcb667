"""What tells the two limits apart, and cloth that hangs from two corners with and without them."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import build_grid
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation
from weft.strain import Springs, build_springs
from weft.strain.position_limit import PositionLimit
from weft.strain.velocity_limit import VelocityLimit, VelocityLimitParameters

NONE = np.zeros(0, np.int32)


def test_provot_moves_both_ends_alike_and_all_of_it_beside_a_pin():
    springs = Springs(np.array([[0, 1]], np.int32), np.ones(1))
    for pinned, ends in ((NONE, (0.2, 1.3)), (np.array([0], np.int32), (0.0, 1.1))):
        x, v = np.array([[0.0, 0, 0], [1.5, 0, 0]]), np.zeros((2, 3))
        PositionLimit(springs).apply(np.array([1.0, 3.0]), pinned, 0.1, x, v)
        np.testing.assert_allclose(x[:, 0], ends, atol=1e-12)


@pytest.mark.parametrize("sweep", ["gauss_seidel", "jacobi"])
def test_bridson_conserves_momentum(sweep, rng):
    mesh = build_grid((0.4, 0.3), (9, 7))
    masses = rng.uniform(0.5, 2.0, mesh.n_vertices)
    x = mesh.positions * [1.4, 0.7, 1.0] + rng.normal(scale=5e-3, size=mesh.positions.shape)
    v = rng.normal(size=x.shape)
    momentum, center = masses @ v, masses @ x
    parameters = VelocityLimitParameters(sweep=sweep, max_sweeps=3000)
    report = VelocityLimit(build_springs(mesh, False), parameters).apply(masses, NONE, 0.01, x, v)
    assert report.over_before > 0.9
    assert report.over_after == 0.0, "compression is limited as well"
    np.testing.assert_allclose(masses @ v, momentum, atol=1e-9)
    np.testing.assert_allclose(masses @ x, center, atol=1e-11)


def test_provot_does_not_conserve_momentum_of_unequal_masses():
    springs = Springs(np.array([[0, 1]], np.int32), np.ones(1))
    x, v = np.array([[0.0, 0, 0], [1.5, 0, 0]]), np.zeros((2, 3))
    PositionLimit(springs).apply(np.array([1.0, 3.0]), NONE, 0.1, x, v)
    assert abs(np.array([1.0, 3.0]) @ v[:, 0]) > 1.0


@pytest.mark.parametrize("sweep", ["gauss_seidel", "jacobi"])
def test_the_rate_of_strain_is_limited_per_step(sweep):
    """Springs of 1 m, at most 10 % and 5 % a step: one that wants to grow, to shrink, and one far beyond its limit."""
    springs = Springs(np.array([[0, 1], [2, 3], [4, 5]], np.int32), np.ones(3))
    parameters = VelocityLimitParameters(rate=0.05, sweep=sweep, max_sweeps=100)
    start, wanted = np.zeros((6, 3)), np.zeros((6, 3))
    start[1::2, 0], wanted[1::2, 0] = [1.0, 1.08, 1.5], [1.2, 0.5, 1.1]
    x, v = wanted.copy(), np.zeros((6, 3))
    VelocityLimit(springs, parameters).apply(np.ones(6), NONE, 0.1, x, v, start)
    np.testing.assert_allclose(np.diff(x[:, 0])[::2], [1.05, 1.08 * 0.95, 1.5 * 0.95], rtol=2e-4)
    np.testing.assert_allclose(v, (x - wanted) / 0.1, atol=1e-12)
    without = wanted.copy()
    VelocityLimit(springs, VelocityLimitParameters(sweep=sweep)).apply(np.ones(6), NONE, 0.1, without, v, start)
    np.testing.assert_allclose(np.diff(without[:, 0])[::2], [1.1, 0.9, 1.1], rtol=2e-4)


def hang(strain, integrator="implicit_euler"):
    """A soft cloth held at two corners; returns the shares of springs beyond 10 % and the last frame."""
    fabric = {"density": 0.3, "stretch_warp": 10.0, "stretch_weft": 10.0, "shear": 1.0, "bending_warp": 1e-6,
              "bending_weft": 1e-6, "thickness": 0.0005}  # fmt: skip
    grid = {"size": [0.5, 0.5], "vertices": [11, 11], "plane": "xz", "center": [0, 0, 1]}
    scene = Scene(
        name="hang", duration=1.0, fps=10, steps_per_frame=12,
        method={"model": "mass_spring", "integrator": integrator, "strain": strain},
        cloth=[{"grid": grid, "fabric": fabric, "pins": [{"vertices": [10, 120]}]}],
        collider=[{"plane": {"normal": [0, 0, 1]}}],
    )  # fmt: skip
    shares = []
    for frame in Simulation(scene):
        shares.append(frame.certificate.over_limit)
    return shares, frame


def test_limited_cloth_keeps_its_size_and_unlimited_does_not():
    shares, unlimited = hang("none")
    assert shares[-1] > 0.1, "the scene must need a limit"
    for strain in (
        {"name": "position_limit", "max_sweeps": 1000},
        {"name": "velocity_limit", "max_sweeps": 1000},
        {"name": "velocity_limit", "sweep": "jacobi", "max_sweeps": 4000},
    ):
        shares, limited = hang(strain)
        assert max(shares) < 0.05, strain
        assert limited.certificate.max_stretch < 0.6 * unlimited.certificate.max_stretch
        assert np.abs(limited.velocities).max() < 0.5, "positions and velocities disagree: the cloth shakes"
        assert limited.positions[:, 2].min() > unlimited.positions[:, 2].min() + 0.02


def test_limits_work_with_the_memory_of_bdf2():
    shares, frame = hang({"name": "velocity_limit", "max_sweeps": 1000}, "bdf2")
    assert max(shares) < 0.05
    assert np.abs(frame.velocities).max() < 0.5
