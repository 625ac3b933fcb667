"""How much softer fabrics are along the edges of their meshes, against the compliance of strips."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import build_grid
from weft.models.fabrics import Fabric, load_fabric
from weft.models.softness import SOFTEST, edge_softness


def fabric(**values):
    common = {"density": 0.2, "bending_warp": 1e-5, "bending_weft": 1e-5, "thickness": 5e-4, "poisson": 0.3}
    return Fabric(**common | {"stretch_warp": 4000.0, "stretch_weft": 4000.0, "shear": 4000.0 / 2.6} | values)


def edges_along(mesh, softness):
    """The softness of edges along the weft, along the warp and on the bias."""
    ways = np.abs(np.diff(mesh.positions[mesh.topology.edges], axis=1)[:, 0]) > 1e-9
    return [np.unique(softness[(ways[:, :2] == which).all(axis=1)].round(9)) for which in ([1, 0], [0, 1], [1, 1])]


def test_a_fabric_that_is_alike_in_all_directions_is_alike_along_all_edges():
    mesh = build_grid((1.0, 0.5), (6, 7))
    np.testing.assert_allclose(edge_softness(mesh, fabric()), 1.0, rtol=1e-12)


def test_threads_are_as_soft_as_measured():
    mesh = build_grid((1.0, 1.0), (5, 5))
    weft, warp, _ = edges_along(mesh, edge_softness(mesh, fabric(stretch_weft=2500.0)))
    assert (weft.tolist(), warp.tolist()) == ([1.6], [1.0])


@pytest.mark.parametrize("shear", [800.0, 1200.0])
def test_the_bias_is_as_soft_as_a_strip_cut_along_it(shear):
    """The strain of such a strip under a pull p: threads take p / 2 each, and shear p / 2 turns them."""
    mesh = build_grid((1.0, 1.0), (5, 5))
    _, _, bias = edges_along(mesh, edge_softness(mesh, fabric(shear=shear)))
    pull = 1.0
    threads = (pull / 2) * (1.0 - 0.3) / 4000.0
    strain = threads + (pull / 2) / shear / 2.0
    np.testing.assert_allclose(bias, [strain / (pull / 4000.0)], rtol=1e-8)


def test_softness_has_an_end():
    mesh = build_grid((1.0, 1.0), (5, 5))
    for each in (load_fabric("cotton"), fabric(shear=0.0)):
        _, _, bias = edges_along(mesh, edge_softness(mesh, each))
        assert bias.tolist() == [SOFTEST]
