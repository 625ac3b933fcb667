"""Intersection contours: closed where surfaces are, complete, and on both surfaces at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.collision.narrow.bouncing_node import icosahedron

from weft.collision.narrow.contours import Contours, find_contours
from weft.errors import WeftError
from weft.geometry.mesh import build_grid

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


def all_pairs(first: Ints, second: Ints) -> Ints:
    return np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.int32)


def check_places(contours: Contours, x: Floats, triangles: Ints) -> None:
    """Every point lies where its edge says and where its triangle says."""
    a, b = x[contours.edges[:, 0]], x[contours.edges[:, 1]]
    on_edge = a + contours.parameters[:, None] * (b - a)
    np.testing.assert_allclose(contours.points, on_edge, atol=1e-14)
    in_face = contours.triangles >= 0
    corners = x[triangles[contours.triangles[in_face]]]
    np.testing.assert_allclose(
        contours.points[in_face], np.einsum("pk,pki->pi", contours.barycentric[in_face], corners), atol=1e-12
    )
    assert (contours.barycentric >= 0.0).all()


def test_two_triangles() -> None:
    x = np.array([[0, 0, 0], [3, 0, 0], [0, 3, 0], [1, 1, -1], [1, 1, 1], [5, 5, 1]], np.float64)
    triangles = np.array([[0, 1, 2], [3, 4, 5]], np.int32)
    contours = find_contours(x, triangles, [[0, 1]])
    assert sorted(map(tuple, contours.points.round(12).tolist())) == [(1, 1, 0), (1.5, 1.5, 0)]
    assert not contours.closed[0]
    check_places(contours, x, triangles)
    x[3:, 2] += 2
    assert len(find_contours(x, triangles, [[0, 1]]).closed) == 0


@pytest.mark.parametrize("height", [0.1, 0.5, -0.3])
def test_a_body_through_a_sheet_leaves_one_closed_line(height: float) -> None:
    grid = build_grid((3.0, 3.0), (14, 14))
    body, faces = icosahedron()
    body = body[:12]
    x = np.concatenate([grid.positions + np.array([0.013, 0.027, height]), body])
    triangles = np.concatenate([grid.triangles, faces + len(grid.positions)]).astype(np.int32)
    pairs = all_pairs(np.arange(len(grid.triangles)), len(grid.triangles) + np.arange(20))
    contours = find_contours(x, triangles, pairs)
    assert contours.closed.tolist() == [True]
    np.testing.assert_allclose(contours.points[:, 2], height, atol=1e-12)
    check_places(contours, x, triangles)
    # the closed line is the section of the icosahedron: compare lengths with one cut edge by edge
    line = np.concatenate([contours.points, contours.points[:1]])
    length = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
    section = 0.0
    for corners in body[faces]:
        z = corners[:, 2] - height
        ends = [
            corners[k] + z[k] / (z[k] - z[j]) * (corners[j] - corners[k])
            for k, j in ((0, 1), (1, 2), (2, 0))
            if z[k] * z[j] < 0
        ]
        section += np.linalg.norm(ends[0] - ends[1]) if ends else 0.0
    assert length == pytest.approx(section)


def test_two_sheets_cross_along_an_open_line() -> None:
    grid = build_grid((2.0, 2.0), (9, 9))
    upright = grid.positions[:, [2, 0, 1]] * 0.7 + [0.03, 0.01, 0.02]
    x = np.concatenate([grid.positions, upright])
    triangles = np.concatenate([grid.triangles, grid.triangles + len(upright)]).astype(np.int32)
    n = len(grid.triangles)
    contours = find_contours(x, triangles, all_pairs(np.arange(n), n + np.arange(n)))
    assert contours.closed.tolist() == [False]
    assert np.ptp(contours.points[:, 1]) == pytest.approx(1.4)
    steps = np.diff(contours.points[:, 1])
    assert (steps > 0).all() or (steps < 0).all()


def test_a_cloth_through_itself() -> None:
    """A strip whose end is bent around and through its middle: one line across it, from border to border."""
    grid = build_grid((6.0, 1.0), (61, 8))
    u, v = grid.positions[:, 0], grid.positions[:, 1]
    angle = np.clip(u + 1.0, 0.0, None) * 1.9
    radius = 0.5
    x = np.stack(
        [np.where(u < -1, u, -1 + radius * np.sin(angle)), v + 0.003 * u, radius * (1 - np.cos(angle))], axis=1
    )
    x[:, 2] -= np.where(u < -1, 0.0, 0.02 * (u + 1.0))
    n = len(grid.triangles)
    first, second = np.triu_indices(n, 1)
    contours = find_contours(x, grid.triangles, np.stack([first, second], axis=1))
    assert len(contours.closed) >= 1
    assert not contours.closed.any()
    check_places(contours, x, grid.triangles)
    for start, end in zip(contours.starts[:-1], contours.starts[1:], strict=True):
        assert np.ptp(contours.points[start:end, 1]) == pytest.approx(1.0, abs=0.05)


def test_a_shared_vertex_ends_a_contour() -> None:
    """Two triangles with one vertex in common that cross: the line runs from that vertex to the far edge."""
    x = np.array([[0, 0, 0], [2, -1, 0], [2, 1, 0], [1, 0, -1], [3, 0, 1]], np.float64)
    triangles = np.array([[0, 1, 2], [0, 3, 4]], np.int32)
    contours = find_contours(x, triangles, [[0, 1]])
    assert contours.closed.tolist() == [False]
    by_x = contours.points[np.argsort(contours.points[:, 0])]
    np.testing.assert_allclose(by_x, [[0, 0, 0], [2, 0, 0]], atol=1e-15)
    assert -1 in contours.triangles
    assert [0, 0] in contours.edges.tolist()


def test_neighbours_and_nothing() -> None:
    grid = build_grid((1.0, 1.0), (4, 4))
    n = len(grid.triangles)
    first, second = np.triu_indices(n, 1)
    bumpy = grid.positions + np.random.default_rng(1).normal(scale=0.05, size=grid.positions.shape)
    assert len(find_contours(bumpy, grid.triangles, np.stack([first, second], axis=1)).points) == 0
    assert len(find_contours(bumpy, grid.triangles, np.empty((0, 2), np.int32)).closed) == 0
    with pytest.raises(WeftError, match="pairs: row 0"):
        find_contours(bumpy, grid.triangles, [[0, 99]])
