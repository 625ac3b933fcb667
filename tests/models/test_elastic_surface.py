"""The elastic surface: measured stiffness in, measured stiffness out, and the paper's system A r = g."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dense_system import dense_from_pairs

from weft.geometry.mesh import build_grid
from weft.integrators import Start
from weft.integrators.gauss_seidel import GaussSeidel
from weft.linear.constraints import build_constraints
from weft.models.elastic_surface import ElasticSurface, ElasticSurfaceParameters
from weft.models.fabrics import load_fabric

COTTON = load_fabric("cotton").model_copy(update={"damping": 0.0})
PAPER = ElasticSurfaceParameters(matrix="per_coordinate")


@pytest.mark.parametrize("vertices", [(11, 9), (21, 41)])
def test_stretch_stores_the_energy_of_the_fabric(vertices):
    mesh = build_grid((0.5, 0.4), vertices)
    model = ElasticSurface(mesh, COTTON)
    e = 1e-3
    green = e + 0.5 * e**2
    for axis, stiffness in ((0, COTTON.stretch_weft), (1, COTTON.stretch_warp)):
        scale = np.ones(3)
        scale[axis] += e
        assert model.energy(mesh.positions * scale) == pytest.approx(0.5 * stiffness * green**2 * 0.2, rel=1e-9)


def test_the_papers_matrix_serves_each_coordinate_alike_and_gives_the_force(rng):
    """Eqs. 3 to 5: K(r) has no coupling between coordinates, is the same for each, and the force is -K(r) r."""
    mesh = build_grid((0.3, 0.2), (5, 4))
    model = ElasticSurface(mesh, COTTON, PAPER)
    x = 1.3 * mesh.positions + rng.normal(scale=2e-3, size=mesh.positions.shape)  # under tension: no alpha is cut off
    blocks = np.zeros((2, len(model.pairs), 3, 3))
    model.update_jacobians(x, np.zeros_like(x), blocks[0], blocks[1])
    k = dense_from_pairs(model.pairs, blocks[0], len(x)).reshape(len(x), 3, len(x), 3)
    for c in range(3):
        np.testing.assert_array_equal(k[:, c, :, c], k[:, 0, :, 0])
        np.testing.assert_array_equal(k[:, c, :, c - 1], 0.0)
    forces = np.zeros_like(x)
    model.add_forces(x, np.zeros_like(x), forces)
    np.testing.assert_allclose(forces, -k[:, 0, :, 0] @ x, atol=1e-10 * np.abs(forces).max())


class OneSheet:
    """A model with its masses, as an integrator wants it."""

    def __init__(self, model, masses):
        self.model, self.masses, self.pairs = model, masses, model.pairs
        self._blocks = np.zeros((2, len(model.pairs), 3, 3))

    def forces(self, x, v, elapsed):
        f = np.zeros_like(x)
        self.model.add_forces(x, v, f)
        return f

    def dynamics(self, x, v, elapsed):
        from weft.integrators import Dynamics

        self.model.update_jacobians(x, v, self._blocks[0], self._blocks[1])
        extra = np.zeros((len(x), 3, 3))
        return Dynamics(self.masses, self.forces(x, v, elapsed), self.pairs, *self._blocks, extra)


def test_a_step_of_the_papers_system(rng):
    """A r' = g with A = M / dt^2 + K(r) and g = M (r / dt^2 + v / dt), solved densely, is what relaxation finds."""
    mesh = build_grid((0.3, 0.2), (5, 4))
    model = ElasticSurface(mesh, COTTON, PAPER)
    n, dt = mesh.n_vertices, 1e-3
    masses = np.full(n, 1e-3)
    x = 1.3 * mesh.positions + rng.normal(scale=2e-3, size=mesh.positions.shape)
    v = rng.normal(size=x.shape)
    blocks = np.zeros((2, len(model.pairs), 3, 3))
    model.update_jacobians(x, v, blocks[0], blocks[1])
    a = np.diag(masses) / dt**2 + dense_from_pairs(model.pairs, blocks[0], n)[::3, ::3]
    wanted = np.linalg.solve(a, masses[:, None] * (x / dt**2 + v / dt))
    integrator = GaussSeidel(model.pairs, n, GaussSeidel.Parameters(tolerance=1e-12, max_sweeps=5000))
    integrator.begin(OneSheet(model, masses), Start(x, v, np.zeros((0, n, 3))), dt)
    dv, _ = integrator.solve(build_constraints(n))
    np.testing.assert_allclose(x + dt * (v + dv), wanted, atol=1e-10)
