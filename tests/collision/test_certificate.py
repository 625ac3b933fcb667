"""The certificate as users call it: whole meshes against the rational oracle, and cloth whose answer is known."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.oracles import rational_intersections as oracle
from tests.real_data import DATA, needs_real_data

from weft.collision.certificate import intersections, self_intersections
from weft.errors import WeftError
from weft.geometry.box_tree import build_box_tree, find_self_pairs
from weft.geometry.mesh import Mesh, build_grid, read_mesh


def rotation(seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]


def soup(seed: int, m: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (m, 1, 3)) + size * rng.normal(size=(m, 3, 3))
    return corners.reshape(-1, 3), np.arange(3 * m).reshape(m, 3)


def crumpled(mesh: Mesh, amplitude: float, seed: int) -> np.ndarray:
    """The mesh bent by a few sine waves, until it crosses itself where they are high."""
    rng = np.random.default_rng(seed)
    x = mesh.positions.copy()
    for _ in range(8):
        wave = np.sin(mesh.positions @ rng.normal(size=3) * 12 + rng.uniform(0, 6))
        x += amplitude * np.outer(wave, rng.normal(size=3))
    return x


def as_pairs(found: np.ndarray) -> list[tuple[int, int]]:
    assert found.dtype == np.int32
    assert found.shape == (len(found), 2)
    return [(i, j) for i, j in found.tolist()]


@pytest.mark.parametrize("exponent", [0, 500, -500])
@pytest.mark.parametrize("size", [0.1, 0.5])
def test_random_soup(size: float, exponent: int) -> None:
    x, triangles = soup(1, 200, size)
    x = np.ldexp(x, exponent)
    found = as_pairs(self_intersections(x, triangles))
    assert found == oracle.self_intersections(x, triangles)
    assert len(found) > 5


def test_two_soups() -> None:
    x, triangles = soup(2, 120, 0.4)
    y, others = soup(3, 90, 0.4)
    found = as_pairs(intersections(x, triangles, y, others))
    assert found == oracle.intersections(x, triangles, y, others)
    assert len(found) > 100
    assert sorted((j, i) for i, j in found) == as_pairs(intersections(y, others, x, triangles))


@pytest.mark.parametrize("seed", range(4))
def test_lattice_soup(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, triangles = rng.integers(-2, 3, (25, 3)).astype(float), rng.integers(0, 25, (40, 3))
    assert as_pairs(self_intersections(x, triangles)) == oracle.self_intersections(x, triangles)


@pytest.mark.parametrize("seed", range(5))
def test_flat_rotated_cloth_is_free(seed: int) -> None:
    """Neighbours lie in one plane but for rounding, which must not be mistaken for contact."""
    grid = build_grid((1.0, 1.3), (41, 37))
    x = grid.positions @ rotation(seed).T + np.random.default_rng(seed).normal(size=3)
    assert len(self_intersections(x, grid.triangles)) == 0
    assert len(self_intersections(x.astype(np.float32), grid.triangles)) == 0
    assert len(self_intersections(grid.positions, grid.triangles)) == 0


@pytest.mark.parametrize("offset", [0.0, 0.013])
def test_cloth_folded_onto_itself(offset: float) -> None:
    """Folded exactly flat along a line of the grid, or beside one: both halves lie in one plane and touch all over."""
    grid = build_grid((1.0, 1.0), (9, 6))
    x = grid.positions.copy()
    x[:, 0] = -abs(x[:, 0] - offset)
    found = as_pairs(self_intersections(x, grid.triangles))
    assert found == oracle.self_intersections(x, grid.triangles)
    assert len(found) > 100


def test_fold_with_a_gap_is_free() -> None:
    """The smallest gap that doubles can hold between two layers is a gap."""
    grid = build_grid((1.0, 1.0), (9, 6))
    x = grid.positions.copy()
    upper = x[:, 0] > 0
    x[:, 0] = -abs(x[:, 0])
    x[upper, 2] = np.nextafter(0.0, 1.0)
    found = as_pairs(self_intersections(x, grid.triangles))
    assert found == oracle.self_intersections(x, grid.triangles)
    hinge = (abs(x[grid.triangles][:, :, 0]) < 1e-9).any(axis=1)
    assert all(hinge[i] and hinge[j] for i, j in found)


def test_two_crossing_grids() -> None:
    grid, other = build_grid((1.0, 1.0), (11, 9)), build_grid((0.9, 1.1), (8, 8))
    for turn in (rotation(8), np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])):
        y = other.positions @ turn.T
        found = as_pairs(intersections(grid.positions, grid.triangles, y, other.triangles))
        assert found == oracle.intersections(grid.positions, grid.triangles, y, other.triangles)
        assert len(found) > 10


def test_crumpled_cloth() -> None:
    grid = build_grid((1.0, 1.0), (12, 11))
    x = crumpled(grid, 0.15, 4)
    found = as_pairs(self_intersections(x, grid.triangles))
    assert found == oracle.self_intersections(x, grid.triangles)
    assert len(found) > 50


def test_touching_by_position_counts_but_sharing_does_not() -> None:
    """Two grids side by side that meet along a seam: free as one welded mesh, touching where vertices are split."""
    grid = build_grid((1.0, 1.0), (2, 2))
    x = np.concatenate([grid.positions, grid.positions + np.array([1.0, 0.0, 0.0])])
    triangles = np.concatenate([grid.triangles, grid.triangles + 4])
    split = as_pairs(self_intersections(x, triangles))
    assert split == oracle.self_intersections(x, triangles) != []
    welded = triangles.copy()
    welded[welded == 4], welded[welded == 5] = 2, 3
    assert len(self_intersections(x, welded)) == 0


def test_duplicate_triangles_count() -> None:
    x = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]]
    assert self_intersections(x, [[0, 1, 2], [0, 1, 3], [2, 0, 1]]).tolist() == [[0, 2]]


THREADS_SCRIPT = """
import numpy as np
from tests.collision.test_certificate import build_grid, crumpled, intersections, rotation, self_intersections
from weft.jit import threads
grid = build_grid((1.0, 1.0), (41, 41))
x = crumpled(grid, 0.1, 2)
found = self_intersections(x, grid.triangles), intersections(x, grid.triangles, x @ rotation(1).T, grid.triangles)
print(threads(), *(pairs.tobytes().hex() for pairs in found))
"""


def test_same_for_any_number_of_threads() -> None:
    """More threads than cores have to be asked for before Python starts."""
    answers = {}
    for n in (1, 2, 5):
        environment = {**os.environ, "WEFT_THREADS": str(n), "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", THREADS_SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        n_threads, *answers[n] = run.stdout.split()
        assert int(n_threads) == n
    assert min(len(pairs) for pairs in answers[1]) > 1000
    assert answers[1] == answers[2] == answers[5]


def test_sorted_for_any_order_of_triangles() -> None:
    x, triangles = soup(5, 150, 0.4)
    shuffle = np.random.default_rng(0).permutation(len(triangles))
    expected = sorted(tuple(sorted((int(i), int(j)))) for i, j in shuffle[self_intersections(x, triangles[shuffle])])
    found = as_pairs(self_intersections(x, triangles))
    assert found == expected
    assert all(i < j for i, j in found)


def test_accepts_plain_lists_and_single_precision() -> None:
    x = [[0.0, 0, 0], [4, 0, 0], [0, 4, 0], [1, 1, -1], [1, 1, 1], [2, 1, 1]]
    for positions in (x, np.array(x, np.float32), np.asfortranarray(x)):
        for triangles in ([[0, 1, 2], [3, 4, 5]], np.array([[0, 1, 2], [3, 4, 5]], np.uint16)):
            assert self_intersections(positions, triangles).tolist() == [[0, 1]]


def test_empty() -> None:
    x, triangles = soup(0, 3, 1.0)
    none = np.empty((0, 3), int)
    for found in (
        self_intersections(x, none),
        self_intersections(np.empty((0, 3)), none),
        intersections(x, triangles, x, none),
        intersections(x, none, x, triangles),
    ):
        assert as_pairs(found) == []
    assert as_pairs(self_intersections(x, triangles[:1])) == []


def test_refusals() -> None:
    x, triangles = soup(0, 3, 1.0)
    bad = x.copy()
    bad[4, 1] = np.nan
    with pytest.raises(WeftError, match=r"^positions: vertex 4 is NaN or infinite$"):
        self_intersections(bad, triangles)
    with pytest.raises(WeftError, match=r"^other_positions: vertex 4 is NaN or infinite$"):
        intersections(x, triangles, bad, triangles)
    with pytest.raises(WeftError, match=r"^triangles: row 1 is \[3, 4, 9\], but there are 9 vertices"):
        self_intersections(x, [[0, 1, 2], [3, 4, 9]])
    with pytest.raises(WeftError, match=r"^other_triangles: row 0 is \[-1, 0, 1\]"):
        intersections(x, triangles, x, [[-1, 0, 1]])


@needs_real_data
@pytest.mark.parametrize(
    ("file", "n_crossing"),
    [
        ("garments/sock482.obj", 0),
        ("garments/skirt1252.obj", 0),
        ("colliders/torus.obj", 0),
        ("characters/Fox.glb", 3697),
    ],
)
def test_real_mesh(file: str, n_crossing: int) -> None:
    """Garments are free of intersections; a character from a game engine has split vertices, which touch."""
    mesh = read_mesh(DATA / file)
    assert len(self_intersections(mesh.positions, mesh.triangles)) == n_crossing


@needs_real_data
@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["garments/dress-v5k-f10k-v3.obj", "makehuman/female_casualsuit01.obj", "characters/Fox.glb"]
)
def test_real_mesh_against_the_oracle(file: str) -> None:
    mesh = read_mesh(DATA / file)
    found = set(as_pairs(self_intersections(mesh.positions, mesh.triangles)))
    candidates = np.sort(find_self_pairs(build_box_tree(mesh.positions, mesh.triangles)), axis=1)
    for i, j in [*np.random.default_rng(0).choice(candidates, 5000).tolist(), *sorted(found)[:1000]]:
        a, b = mesh.triangles[i].tolist(), mesh.triangles[j].tolist()
        assert oracle.is_crossing(mesh.positions[a], mesh.positions[b], a, b) == ((i, j) in found)
