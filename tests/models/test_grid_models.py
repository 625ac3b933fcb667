"""What models on a grid share: shear and bending store the energy of the fabric."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import build_grid
from weft.models.elastic_surface import ElasticSurface
from weft.models.fabrics import load_fabric
from weft.models.particle_network import ParticleNetwork

COTTON = load_fabric("cotton")
LOOSE = COTTON.model_copy(update={"stretch_warp": 1e-9, "stretch_weft": 1e-9, "shear": 0.0})

pytestmark = pytest.mark.parametrize("model", [ElasticSurface, ParticleNetwork])


@pytest.mark.parametrize("vertices", [(11, 9), (26, 21)])
def test_shear_stores_the_energy_of_the_fabric(model, vertices):
    mesh = build_grid((0.5, 0.4), vertices)
    angle = 1e-3
    turned = mesh.positions.copy()
    turned[:, 0] += np.sin(angle) * mesh.positions[:, 1]
    turned[:, 1] *= np.cos(angle)
    wanted = 0.5 * COTTON.shear * np.sin(angle) ** 2 * 0.2
    assert model(mesh, COTTON).energy(turned) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_cylinder_stores_the_bending_energy_of_a_plate(model, axis):
    mesh = build_grid((0.5, 0.4), (41, 33))
    curvature, s = 4.0, mesh.positions[:, axis]
    x = mesh.positions.copy()
    x[:, axis], x[:, 2] = np.sin(curvature * s) / curvature, (1.0 - np.cos(curvature * s)) / curvature
    rigid = (COTTON.bending_weft, COTTON.bending_warp)[axis]
    inner = (39 / 40, 31 / 32)[axis]  # second differences live on inner vertices
    assert model(mesh, LOOSE).energy(x) == pytest.approx(0.5 * rigid * curvature**2 * 0.2 * inner, rel=2e-3)
