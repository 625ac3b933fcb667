"""Every strain limit: springs within bounds, pins at rest, velocities that agree with positions."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import Mesh, build_grid
from weft.strain import STRAIN_LIMITS, Springs, build_springs, share_over, spring_lengths

LIMITS = [name for name in STRAIN_LIMITS if name != "none"]
DT = 0.01


def sheet(kind="grid"):
    grid = build_grid((0.4, 0.3), (9, 7))
    return grid if kind == "grid" else Mesh(grid.positions, grid.triangles)


def masses(mesh):
    corners = mesh.positions[mesh.triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return np.bincount(mesh.triangles.ravel(), np.repeat(0.2 * area / 3.0, 3), minlength=mesh.n_vertices)


def build(name, springs, **values):
    member = STRAIN_LIMITS.load(name)
    return member(springs, member.Parameters(**values))


def pulled(mesh, rng):
    """Positions with a stretch that grows along u, and velocities that have nothing to do with it."""
    x = mesh.positions + rng.normal(scale=2e-3, size=mesh.positions.shape)
    x[:, 0] += 0.8 * np.maximum(mesh.positions[:, 0], 0.0) ** 2 / 0.2
    return x, rng.normal(size=x.shape)


@pytest.mark.parametrize("kind", ["grid", "mesh"])
@pytest.mark.parametrize("limit", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("name", LIMITS)
def test_no_spring_is_left_beyond_the_limit(name, limit, kind, rng):
    mesh = sheet(kind)
    springs = build_springs(mesh, diagonals=True)
    x, v = pulled(mesh, rng)
    part = build(name, springs, limit=limit, max_sweeps=5000, compression=False)
    report = part.apply(masses(mesh), np.zeros(0, np.int32), DT, x, v)
    strain = spring_lengths(x, springs.pairs) / springs.lengths - 1.0
    assert report.over_before > 0.1
    assert report.over_after == 0.0
    assert strain.max() <= limit + 1.1e-4
    assert 0 < report.sweeps < 5000


@pytest.mark.parametrize("name", STRAIN_LIMITS)
def test_velocities_move_with_positions(name, rng):
    mesh = sheet()
    x, v = pulled(mesh, rng)
    x_before, v_before = x.copy(), v.copy()
    build(name, build_springs(mesh, False)).apply(masses(mesh), np.zeros(0, np.int32), DT, x, v)
    np.testing.assert_allclose(v - v_before, (x - x_before) / DT, atol=1e-10)
    assert (np.abs(x - x_before).max() > 0.0) == (name != "none")


@pytest.mark.parametrize("name", STRAIN_LIMITS)
def test_a_sheet_within_the_limit_is_left_alone(name, rng):
    mesh = sheet()
    x = mesh.positions * 1.05
    before = x.copy()
    report = build(name, build_springs(mesh, True)).apply(masses(mesh), np.zeros(0, np.int32), DT, x, np.zeros_like(x))
    np.testing.assert_array_equal(x, before)
    assert report == (0.0, 0.0, 0)


@pytest.mark.parametrize("name", LIMITS)
def test_pins_stay(name, rng):
    mesh = sheet()
    x, v = pulled(mesh, rng)
    pinned = np.array([0, 3, 60], np.int32)
    before, v_before = x[pinned].copy(), v[pinned].copy()
    build(name, build_springs(mesh, False)).apply(masses(mesh), pinned, DT, x, v)
    np.testing.assert_array_equal(x[pinned], before)
    np.testing.assert_array_equal(v[pinned], v_before)


@pytest.mark.parametrize("name", LIMITS)
def test_a_spring_between_two_pins_may_stay_long(name):
    springs = Springs(np.array([[0, 1], [1, 2]], np.int32), np.ones(2))
    x, v = np.array([[0.0, 0, 0], [2.0, 0, 0], [3.05, 0, 0]]), np.zeros((3, 3))
    report = build(name, springs).apply(np.ones(3), np.array([0, 1], np.int32), DT, x, v)
    assert report.over_before == report.over_after == 0.5
    np.testing.assert_array_equal(x, [[0.0, 0, 0], [2.0, 0, 0], [3.05, 0, 0]])


def test_grid_springs_are_the_edges_and_on_demand_both_diagonals():
    mesh = sheet()
    assert len(build_springs(mesh, False).pairs) == 8 * 7 + 9 * 6
    assert len(build_springs(mesh, True).pairs) == 8 * 7 + 9 * 6 + 2 * 8 * 6
    assert len(build_springs(sheet("mesh"), False).pairs) == 8 * 7 + 9 * 6 + 8 * 6


def test_share_counts_compression_only_on_demand():
    springs = Springs(np.array([[0, 1], [1, 2]], np.int32), np.ones(2))
    x = np.array([[0.0, 0, 0], [0.5, 0, 0], [2.0, 0, 0]])
    assert share_over(x, springs, 0.1, compression=False) == 0.5
    assert share_over(x, springs, 0.1, compression=True) == 1.0
