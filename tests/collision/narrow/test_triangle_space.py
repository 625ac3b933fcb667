"""The test in the triangle's own space: exact for a rigid translation, blind to what turns."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.contact_queries import build

from weft.collision.narrow.continuous import time_of_impact
from weft.collision.narrow.triangle_space import local_coordinates

TRIANGLE = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def test_local_coordinates() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        corners = rng.normal(size=(3, 3))
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        normal /= np.linalg.norm(normal)
        u, v, z = rng.normal(size=3)
        p = (1 - u - v) * corners[0] + u * corners[1] + v * corners[2] + z * normal
        found = local_coordinates(np.concatenate([[p], corners]), 0, 1, 2, 3)
        np.testing.assert_allclose(found, [u, v, z], atol=1e-12)


def test_a_translating_triangle_is_exact() -> None:
    x_t0 = np.concatenate([[[0.2, 0.3, 0.5]], TRIANGLE])
    x_t1 = x_t0 + np.array([7.0, -3.0, 2.0])
    x_t1[0] += [0.1, 0.0, -2.0]
    assert time_of_impact([x_t0], [x_t1], method="triangle-space") == pytest.approx([0.25])
    assert time_of_impact([x_t0], [x_t1], method="triangle-space", separation=0.1) == pytest.approx([0.2])
    x_t1[0] += [9.0, 0.0, 0.0]
    assert time_of_impact([x_t0], [x_t1], method="triangle-space") == [np.inf]


def test_what_it_misses() -> None:
    queries = build("turning over", np.random.default_rng(2), 2000, "vertex-triangle")
    missed = np.isinf(time_of_impact(queries.x_t0, queries.x_t1, method="triangle-space"))
    assert missed.mean() > 0.5
