import numpy as np

from weft.collision.culling.adjacency import Adjacency
from weft.geometry.mesh import build_grid


def test_neighbours_are_removed():
    mesh = build_grid((1.0, 1.0), (6, 5))
    n = len(mesh.triangles)
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)], np.int32)
    common = np.array([len(set(mesh.triangles[i]) & set(mesh.triangles[j])) for i, j in pairs])
    assert set(common) == {0, 1, 2}
    for shared in (1, 2):
        keep = Adjacency(mesh, Adjacency.Parameters(shared=shared)).keep(pairs)
        np.testing.assert_array_equal(keep, common < shared)
