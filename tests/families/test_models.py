"""Every cloth model: energies against finite differences, invariances, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.oracles.dense_system import dense_from_pairs

from weft.errors import WeftError
from weft.geometry.mesh import Mesh, build_grid
from weft.lab.statics import all_blocks
from weft.models import MODELS
from weft.models.fabrics import Fabric, load_fabric

UNDAMPED = load_fabric("cotton").model_copy(update={"damping": 0.0})


def meshes() -> dict[str, Mesh]:
    grid = build_grid((0.3, 0.2), (5, 4))
    return {"grid": grid, "mesh": Mesh(grid.positions, grid.triangles)}


def build(name: str, mesh: Mesh, fabric: Fabric = UNDAMPED):
    model_class = MODELS.load(name)
    return model_class(mesh, fabric, model_class.Parameters())


def needs_grid(name: str) -> bool:
    return getattr(MODELS.load(name), "needs_grid", False)


CASES = [(name, kind) for name in MODELS for kind in ("grid", "mesh") if kind == "grid" or not needs_grid(name)]


@pytest.fixture(params=CASES, ids=lambda p: f"{p[0]}-{p[1]}")
def case(request):
    name, kind = request.param
    mesh = meshes()[kind]
    return build(name, mesh), mesh, name


def forces(model, x, v=None):
    out = np.zeros_like(x)
    model.add_forces(x, np.zeros_like(x) if v is None else v, out)
    return out


def stretched(mesh, rng):
    """A state in which every element is under tension, where derivatives are exact."""
    return 1.2 * mesh.positions + rng.normal(scale=2e-3, size=mesh.positions.shape)


@pytest.mark.parametrize("name", [name for name in MODELS if needs_grid(name)])
def test_models_for_grids_refuse_other_meshes_by_name(name):
    with pytest.raises(WeftError, match=f"^{name}: needs a rectangular grid"):
        build(name, meshes()["mesh"])


def test_zero_at_rest(case):
    model, mesh, _ = case
    assert model.energy(mesh.positions) == pytest.approx(0.0, abs=1e-18)
    np.testing.assert_allclose(forces(model, mesh.positions), 0.0, atol=1e-10)


def test_rigid_motion_costs_nothing(case, rng):
    model, mesh, _ = case
    moved = mesh.positions @ Rotation.random(rng=rng).as_matrix().T + rng.normal(size=3)
    assert model.energy(moved) == pytest.approx(0.0, abs=1e-18)
    np.testing.assert_allclose(forces(model, moved), 0.0, atol=1e-8)


def test_forces_are_minus_the_gradient_of_the_energy(case, rng):
    model, mesh, _ = case
    x = mesh.positions + rng.normal(scale=5e-3, size=mesh.positions.shape)
    h = 1e-7
    numeric = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        numeric[i] = -(model.energy(up) - model.energy(down)) / (2 * h)
    np.testing.assert_allclose(forces(model, x), numeric, rtol=1e-5, atol=1e-5 * np.abs(numeric).max())


def test_no_net_force_or_torque(case, rng):
    _, mesh, name = case
    damped = build(name, mesh, load_fabric("denim"))
    x = mesh.positions + rng.normal(scale=5e-3, size=mesh.positions.shape)
    v = rng.normal(size=x.shape)
    f = forces(damped, x, v)
    scale = np.abs(f).sum()
    np.testing.assert_allclose(f.sum(axis=0), 0.0, atol=1e-12 * scale)
    np.testing.assert_allclose(np.cross(x, f).sum(axis=0), 0.0, atol=1e-12 * scale)


def jacobians(model, x, v):
    stiffness, damping = (dense_from_pairs(model.pairs, part, len(x)) for part in all_blocks(model, x, v))
    return stiffness, damping


def test_stiffness_matches_finite_differences_under_tension(case, rng):
    model, mesh, _ = case
    x = stretched(mesh, rng)
    stiffness, _ = jacobians(model, x, np.zeros_like(x))
    h = 1e-7
    columns = []
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        columns.append(-(forces(model, up) - forces(model, down)).ravel() / (2 * h))
    numeric = np.stack(columns, axis=1)
    np.testing.assert_allclose(stiffness, numeric, atol=2e-6 * np.abs(numeric).max())


def test_damping_matches_finite_differences(case, rng):
    _, mesh, name = case
    model = build(name, mesh, load_fabric("cotton"))
    x, v = stretched(mesh, rng), rng.normal(size=mesh.positions.shape)
    _, damping = jacobians(model, x, v)
    direction = rng.normal(size=v.shape)
    numeric = -(forces(model, x, v + 0.5 * direction) - forces(model, x, v - 0.5 * direction)).ravel()
    np.testing.assert_allclose(damping @ direction.ravel(), numeric, atol=1e-9 * np.abs(numeric).max())


def test_matrices_are_positive_semi_definite_even_when_crumpled(case, rng):
    model, mesh, _ = case
    x = 0.6 * mesh.positions + rng.normal(scale=2e-2, size=mesh.positions.shape)
    for matrix in jacobians(model, x, np.zeros_like(x)):
        values = np.linalg.eigvalsh(matrix)
        assert values.min() >= -1e-9 * max(values.max(), 1e-30)


def test_dissipates(case, rng):
    _, mesh, name = case
    model = build(name, mesh, load_fabric("cotton"))
    x = mesh.positions + rng.normal(scale=5e-3, size=mesh.positions.shape)
    v = rng.normal(size=x.shape)
    power = ((forces(model, x, v) - forces(model, x)) * v).sum()
    assert power < 0.0
