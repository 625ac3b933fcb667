"""The constants of the springs: measured stiffness in, measured stiffness out."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import build_grid
from weft.models.fabrics import fabric_names, load_fabric
from weft.models.mass_spring import MassSpring

COTTON = load_fabric("cotton")


@pytest.mark.parametrize("vertices", [(11, 11), (21, 41)])
def test_stretch_stiffness_of_the_sheet_is_the_fabrics(vertices):
    """Energy of a small uniform strain along u: 1/2 Y e^2 area, on any grid."""
    mesh = build_grid((0.5, 0.5), vertices)
    model = MassSpring(mesh, COTTON.model_copy(update={"bending_warp": 0.0, "bending_weft": 0.0}))
    strain = 1e-4
    x = mesh.positions * np.array([1.0 + strain, 1.0, 1.0])
    a, b = 0.5 / (vertices[0] - 1), 0.5 / (vertices[1] - 1)
    wanted = max(COTTON.stretch_weft, 0.1 * COTTON.stretch_weft + COTTON.shear * a**2 / b**2)
    assert model.energy(x) == pytest.approx(0.5 * wanted * strain**2 * 0.25, rel=1e-3)


def test_shear_stiffness_of_the_sheet_is_the_fabrics():
    mesh = build_grid((0.5, 0.4), (21, 17))
    model = MassSpring(mesh, COTTON.model_copy(update={"bending_warp": 0.0, "bending_weft": 0.0}))
    shear = 1e-4
    x = mesh.positions.copy()
    x[:, 0] += shear * mesh.positions[:, 1]
    assert model.energy(x) == pytest.approx(0.5 * COTTON.shear * shear**2 * 0.2, rel=1e-2)


def test_flexion_matches_a_plate_at_the_reference_fold():
    """A cylinder with a fold of 1 rad at every vertex stores a plate's bending energy."""
    h, m = 0.02, 31
    mesh = build_grid(((m - 1) * h, 4 * h), (m, 5))
    soft = COTTON.model_copy(update={"stretch_warp": 1e-9, "stretch_weft": 1e-9, "shear": 0.0, "bending_warp": 0.0})
    model = MassSpring(mesh, soft)
    angle = np.arange(m) - 0.5 * (m - 1)  # 1 rad a vertex
    edges = np.stack([np.cos(angle[:-1] + 0.5), np.sin(angle[:-1] + 0.5)], axis=1) * h
    profile = np.concatenate([[[0.0, 0.0]], np.cumsum(edges, axis=0)])
    x = mesh.positions.copy().reshape(m, 5, 3)
    x[:, :, 0], x[:, :, 2] = profile[:, :1], profile[:, 1:]
    curvature_sq = (1.0 / h) ** 2
    plate = 0.5 * soft.bending_weft * curvature_sq * 4 * h * (m - 2) * h
    assert model.energy(x.reshape(-1, 3)) == pytest.approx(plate, rel=0.1)


def test_presets_are_valid_and_sourced():
    for name in fabric_names():
        fabric = load_fabric(name)
        assert "Kawabata" in fabric.source or "http" in fabric.source or len(fabric.source) > 10
