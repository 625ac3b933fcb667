"""The incidence arrays against dictionaries and loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.real_data import DATA, needs_real_data

from weft.geometry.mesh import build_grid, read_mesh
from weft.geometry.topology import Topology, build_topology, group_rows


def slow_topology(triangles: list[list[int]], n_vertices: int) -> dict[str, list[list[int]]]:
    """The same incidences, looked up one by one."""
    edges = sorted({tuple(sorted((t[k], t[(k + 1) % 3]))) for t in triangles for k in range(3)})
    around = [[i for i, t in enumerate(triangles) if a in t and b in t] for a, b in edges]
    across = [
        [next(v for v in triangles[i] if v not in edge) for i in owners]
        for edge, owners in zip(edges, around, strict=True)
    ]
    pad = [-1]
    return {
        "edges": [list(edge) for edge in edges],
        "edge_triangles": [(owners + pad)[:2] for owners in around],
        "edge_opposite": [(vertices + pad)[:2] for vertices in across],
        "triangle_edges": [[edges.index(tuple(sorted((t[k], t[(k + 1) % 3])))) for k in range(3)] for t in triangles],
        "vertex_triangles": [[i for i, t in enumerate(triangles) if v in t] for v in range(n_vertices)],
        "vertex_neighbours": [sorted({w for e in edges for w in e if v in e} - {v}) for v in range(n_vertices)],
    }


def check(triangles: list[list[int]], n_vertices: int) -> None:
    topology = build_topology(np.array(triangles, np.int32).reshape(-1, 3), n_vertices)
    expected = slow_topology(triangles, n_vertices)
    assert topology.n_vertices == n_vertices
    assert topology.triangles.tolist() == triangles
    for name in ("edges", "edge_triangles", "edge_opposite", "triangle_edges"):
        assert getattr(topology, name).tolist() == expected[name], name
    for name in ("vertex_triangles", "vertex_neighbours"):
        rows = getattr(topology, name)
        assert len(rows.starts) == n_vertices + 1
        assert [rows.row(i).tolist() for i in range(n_vertices)] == expected[name], name
    check_types(topology)


def check_types(topology: Topology) -> None:
    """Kernels rely on contiguous int32."""
    arrays = [value for value in topology if isinstance(value, np.ndarray)]
    arrays += [array for csr in (topology.vertex_triangles, topology.vertex_neighbours) for array in csr]
    assert len(arrays) == 9
    for array in arrays:
        assert array.dtype == np.int32
        assert array.flags.c_contiguous


def two_sided(candidates: list[list[int]]) -> list[list[int]]:
    """Of the triangles given, those that can be added one after the other without a third one at any edge."""
    counts: dict[frozenset[int], int] = {}
    kept = []
    for t in candidates:
        edges = [frozenset((t[k], t[(k + 1) % 3])) for k in range(3)]
        if len(set(t)) == 3 and all(counts.get(edge, 0) < 2 for edge in edges):
            kept.append(t)
            for edge in edges:
                counts[edge] = counts.get(edge, 0) + 1
    return kept


@settings(deadline=None, max_examples=200)
@given(st.integers(3, 12), st.data())
def test_any_mesh(n_vertices: int, data: st.DataObject) -> None:
    """Also with vertices that no triangle uses, and in pieces."""
    vertex = st.integers(0, n_vertices - 1)
    triangles = two_sided(data.draw(st.lists(st.lists(vertex, min_size=3, max_size=3), max_size=30)))
    check(triangles, n_vertices)


@pytest.mark.parametrize("vertices", [(2, 2), (2, 5), (4, 3), (6, 7)])
def test_grids(vertices: tuple[int, int]) -> None:
    grid = build_grid((1.0, 1.0), vertices)
    check(grid.triangles.tolist(), grid.n_vertices)
    m, n = vertices
    topology = grid.topology
    border = topology.edge_triangles[:, 1] < 0
    assert len(topology.edges) == m * (n - 1) + n * (m - 1) + (m - 1) * (n - 1)
    assert border.sum() == 2 * (m - 1) + 2 * (n - 1)
    assert ((topology.edge_opposite[:, 1] < 0) == border).all()


def test_no_triangles() -> None:
    check([], 0)
    check([], 4)


def test_large_indices_do_not_wrap() -> None:
    """Edges are sorted by one number, low * n + high, which does not fit 32 bits here."""
    n = 100_000
    triangles = [[0, n - 1, n - 2], [n - 1, n - 3, n - 2]]
    topology = build_topology(np.array(triangles, np.int32), n)
    assert topology.edges.tolist() == [[0, n - 2], [0, n - 1], [n - 3, n - 2], [n - 3, n - 1], [n - 2, n - 1]]
    assert topology.edge_triangles.tolist() == [[0, -1], [0, -1], [1, -1], [1, -1], [0, 1]]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-5, 5)), max_size=40))
def test_group_rows(items: list[tuple[int, int]]) -> None:
    keys, values = np.array(items, np.int32).reshape(-1, 2).T
    rows = group_rows(keys, values, 8)
    assert [rows.row(i).tolist() for i in range(8)] == [sorted(v for k, v in items if k == i) for i in range(8)]


@needs_real_data
@pytest.mark.parametrize("file", ["garments/sock482.obj", "colliders/torus.obj", "characters/RiggedFigure.glb"])
def test_real_mesh(file: str) -> None:
    mesh = read_mesh(DATA / file)
    check(mesh.triangles.tolist(), mesh.n_vertices)
