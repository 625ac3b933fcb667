"""Grids, files and every reason to refuse a mesh, each with the index it names."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.real_data import DATA, needs_real_data

from weft.arrays import Ints, as_indices
from weft.errors import WeftError
from weft.geometry.mesh import MAX_GRID_VERTICES, READABLE, Mesh, build_grid, check_mesh, local_heights, read_mesh

SQUARE = [[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
HALVES = [[0, 1, 2], [0, 2, 3]]
TRIANGLE_OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def mesh_of(positions: object, triangles: object) -> Mesh:
    return Mesh(np.array(positions, np.float64).reshape(-1, 3), np.array(triangles, np.int32).reshape(-1, 3))


def refusal(path: Path) -> str:
    """What `read_mesh` says of a file, without the path that it must start with; always one line."""
    with pytest.raises(WeftError) as caught:
        read_mesh(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


# Grids


@settings(deadline=None)
@given(st.integers(2, 9), st.integers(2, 9), st.floats(0.01, 100), st.floats(0.01, 100))
def test_grid(m: int, n: int, width: float, height: float) -> None:
    grid = build_grid((width, height), (m, n))
    check_mesh(grid)
    assert grid.grid_shape == (m, n)
    assert grid.n_vertices == m * n
    assert len(grid.triangles) == 2 * (m - 1) * (n - 1)
    x = grid.positions.reshape(m, n, 3)
    np.testing.assert_allclose(x[:, 0, 0], np.linspace(-width / 2, width / 2, m), atol=1e-12 * width)
    np.testing.assert_allclose(x[0, :, 1], np.linspace(-height / 2, height / 2, n), atol=1e-12 * height)
    assert (x[..., 2] == 0).all()
    assert grid.material is not None
    np.testing.assert_array_equal(grid.material, grid.positions[:, :2])
    a, b, c = grid.positions[grid.triangles].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    assert (normals[:, 2] > 0).all()
    np.testing.assert_allclose(normals[:, 2].sum() / 2, width * height)


def test_grid_halves_share_a_quad() -> None:
    grid = build_grid((1.0, 1.0), (3, 4))
    quads = 2 * 3
    for t in range(quads):
        first, second = grid.triangles[t], grid.triangles[t + quads]
        assert len(set(first) & set(second)) == 2
    assert grid.triangles[0].tolist() == [0, 4, 5]
    assert grid.triangles[quads].tolist() == [0, 5, 1]


@pytest.mark.parametrize(
    ("size", "vertices", "text"),
    [
        ((1.0, 1.0), (1, 5), "grid: needs at least 2 x 2 vertices, got 1 x 5"),
        ((1.0, 1.0), (3, 0), "grid: needs at least 2 x 2 vertices, got 3 x 0"),
        ((1.0, 1.0), (2001, 2001), f"grid: 2001 x 2001 vertices are more than {MAX_GRID_VERTICES:,}; use fewer"),
        ((0.0, 1.0), (2, 2), "grid: size must be positive, got 0.0 x 1.0"),
        ((1.0, -2.0), (2, 2), "grid: size must be positive, got 1.0 x -2.0"),
        ((np.inf, 1.0), (2, 2), "grid: size must be positive, got inf x 1.0"),
        ((1.0, np.nan), (2, 2), "grid: size must be positive, got 1.0 x nan"),
    ],
)
def test_grid_refusals(size: tuple[float, float], vertices: tuple[int, int], text: str) -> None:
    with pytest.raises(WeftError, match=f"^{re.escape(text)}$"):
        build_grid(size, vertices)


# Refusals of check_mesh


def moved(vertex: int, value: float) -> list[list[float]]:
    positions = [list(p) for p in SQUARE]
    positions[vertex][1] = value
    return positions


@pytest.mark.parametrize(
    ("positions", "triangles", "text"),
    [
        ([], [], "empty mesh: it has no triangles"),
        (SQUARE, [], "empty mesh: it has no triangles"),
        (moved(2, np.nan), HALVES, "positions: vertex 2 is NaN or infinite"),
        (moved(1, -np.inf), HALVES, "positions: vertex 1 is NaN or infinite"),
        (SQUARE, [[0, 1, 2], [0, 2, 4]], "triangles: row 1 is [0, 2, 4], but there are 4 vertices (0 to 3)"),
        (SQUARE, [[0, 1, -1], [0, 2, 3]], "triangles: row 0 is [0, 1, -1], but there are 4 vertices (0 to 3)"),
        ([*SQUARE, [2, 2, 2]], HALVES, "vertex 4 belongs to no triangle; remove it"),
        (
            [*SQUARE, [3, 0, 0]],
            [*HALVES, [0, 1, 4]],
            "triangle 2 [0, 1, 4] has no area; remove it or merge its vertices",
        ),
        (SQUARE, [*HALVES, [1, 1, 2]], "triangle 2 [1, 1, 2] has no area; remove it or merge its vertices"),
        (SQUARE, [*HALVES, [2, 0, 1]], "triangle 2 [2, 0, 1] repeats triangle 0; remove one"),
        (SQUARE, [*HALVES, [2, 1, 0]], "triangle 2 [2, 1, 0] repeats triangle 0; remove one"),
        (
            [*SQUARE, [0, 0, 1]],
            [*HALVES, [0, 2, 4]],
            "edge [0, 2] has 3 triangles [0, 1, 2]; cloth allows two",
        ),
    ],
)
def test_check_refusals(positions: list[list[float]], triangles: list[list[int]], text: str) -> None:
    mesh = mesh_of(positions, triangles)
    with pytest.raises(WeftError, match=f"^{re.escape(text)}$"):
        check_mesh(mesh)


def test_edge_of_many_triangles_names_four() -> None:
    positions = [[0.0, 0, 0], [0, 0, 1], *([np.cos(k), np.sin(k), 0] for k in range(6))]
    with pytest.raises(WeftError, match=r"^edge \[0, 1\] has 6 triangles \[0, 1, 2, 3\]; cloth allows two$"):
        check_mesh(mesh_of(positions, [[0, 1, 2 + k] for k in range(6)]))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-6, 1.0, 1e6, 1e160, 1e308])
def test_size_is_no_reason_to_refuse(scale: float) -> None:
    """Squares of the sides would vanish, or overflow with a warning; so would the largest sides themselves."""
    check_mesh(mesh_of(scale * np.array(SQUARE), HALVES))
    check_mesh(mesh_of(scale * (2 * np.array(SQUARE) - 1), HALVES))
    with pytest.raises(WeftError, match=r"^triangle 1 \[0, 2, 3\] has no area"):
        check_mesh(mesh_of(scale * np.array([[0, 0, 0], [1, 0, 0.5], [1, 1, 0], [0.5, 0.5, 0]]), HALVES))


def test_thin_triangles_are_kept() -> None:
    check_mesh(mesh_of([[0, 0, 0], [1, 0, 0], [0.5, 1e-9, 0]], [[0, 1, 2]]))
    with pytest.raises(WeftError, match=r"^triangle 0 .* has no area"):
        check_mesh(mesh_of([[0, 0, 0], [1, 0, 0], [0.5, 1e-14, 0]], [[0, 1, 2]]))


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_check_agrees_with_counting(data: st.DataObject) -> None:
    """On points of which no three lie on a line, a mesh is refused for its indices alone."""
    n = data.draw(st.integers(3, 7))
    vertex = st.integers(0, n - 1)
    triangles = data.draw(st.lists(st.lists(vertex, min_size=3, max_size=3), min_size=1, max_size=8))
    t = np.arange(n, dtype=np.float64)
    mesh = mesh_of(np.stack([t, t**2, t**3], axis=1), triangles)
    sets = [frozenset(triangle) for triangle in triangles]
    shared = [len([1 for s in sets if {a, b} <= s]) for a in range(n) for b in range(a)]
    fine = (
        frozenset().union(*sets) == set(range(n))
        and all(len(s) == 3 for s in sets)
        and len(set(sets)) == len(sets)
        and max(shared) <= 2
    )
    if fine:
        check_mesh(mesh)
    else:
        with pytest.raises(WeftError):
            check_mesh(mesh)


# Files


@pytest.mark.parametrize("ending", [".obj", ".ply", ".glb", ".gltf", ".off", ".OBJ", ".Ply"])
def test_round_trip_keeps_the_order_of_vertices(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(1)
    grid = build_grid((1.0, 1.5), (5, 7))
    shuffle = rng.permutation(grid.n_vertices)
    positions = (grid.positions + 0.01 * rng.normal(size=grid.positions.shape))[shuffle].astype(np.float32)
    triangles = np.argsort(shuffle)[grid.triangles]
    path = tmp_path / f"grid{ending}"
    if ending.lower() == ".obj":
        lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in positions.tolist()]
        lines += [f"f {a} {b} {c}" for a, b, c in (triangles + 1).tolist()]
        path.write_text("\n".join(lines))
    elif ending == ".gltf":
        for name, data in (
            trimesh.Scene(trimesh.Trimesh(positions, triangles, process=False)).export(file_type="gltf").items()
        ):
            (tmp_path / (path.name if name.endswith(".gltf") else name)).write_bytes(data)
    else:
        trimesh.Trimesh(positions, triangles, process=False).export(path, file_type=ending[1:].lower())
    mesh = read_mesh(path)
    assert mesh.positions.dtype == np.float64
    assert mesh.triangles.dtype == np.int32
    np.testing.assert_allclose(mesh.positions, positions, atol=1e-7)
    np.testing.assert_array_equal(mesh.triangles, triangles)


def test_stl_is_welded_in_order_of_first_use(tmp_path: Path) -> None:
    """STL repeats every corner; a mesh needs neighbours."""
    grid = build_grid((1.0, 1.5), (5, 7))
    for name, kind in (("binary.stl", "stl"), ("text.stl", "stl_ascii")):
        trimesh.Trimesh(grid.positions, grid.triangles, process=False).export(tmp_path / name, file_type=kind)
        mesh = read_mesh(str(tmp_path / name))
        _, first = np.unique(grid.triangles.ravel(), return_index=True)
        order = grid.triangles.ravel()[np.sort(first)]
        np.testing.assert_allclose(mesh.positions, grid.positions[order], atol=1e-7)
        np.testing.assert_array_equal(order[mesh.triangles], grid.triangles)
        assert len(mesh.topology.edges) == len(grid.topology.edges)


def test_obj_quads_texture_and_relative_indices(tmp_path: Path) -> None:
    path = tmp_path / "mesh.obj"
    path.write_text(
        "# a comment\nmtllib x.mtl\no name\nv 0 0 0 1.0\nv 1 0 0\nvt 0 0\nvn 0 0 1\n"
        "v 1 1 0 0.5 0.5 0.5\nv 0 1 0\nf 1/1/1 2/1/1 3/1/1 4/1/1  # a quad\nv 0.5 2 0\ng other\nf -1 -2 -3\nl 1 2\n"
    )
    mesh = read_mesh(path)
    assert mesh.triangles.tolist() == [[0, 1, 2], [0, 2, 3], [4, 3, 2]]
    assert mesh.positions.tolist() == [*SQUARE, [0.5, 2, 0]]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + TRIANGLE_OBJ.encode(),  # a byte order mark
        TRIANGLE_OBJ.replace("\n", "\r\n").encode(),
        TRIANGLE_OBJ.replace("\n", "\r").encode(),
        "# Größe\n".encode("latin-1") + TRIANGLE_OBJ.encode(),
        TRIANGLE_OBJ.replace("f 1 2 3", "f 1 2 \\\n 3").encode(),
        TRIANGLE_OBJ.replace("v 1 0 0", "v 1\\\n0 \\\n\\\n 0").encode(),
        b"# ends in a backslash \\\n" + TRIANGLE_OBJ.encode(),
        TRIANGLE_OBJ.rstrip().encode(),
        b"\n \t\n" + TRIANGLE_OBJ.replace(" ", "\t ").encode(),
    ],
)
def test_obj_as_others_write_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "mesh.obj"
    path.write_bytes(data)
    mesh = read_mesh(path)
    assert mesh.positions.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert mesh.triangles.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v 0 0\n", "line 1: a vertex needs three numbers, got 'v 0 0'"),
        ("v 0 0 0\n\nv a b c\n", "line 3: a vertex needs three numbers, got 'v a b c'"),
        ("v 1\\\n2\nv 3 3\n", "line 1: a vertex needs three numbers, got 'v 1 2'"),
        ("v 1 2 \\\n3\nv 3 3\n", "line 3: a vertex needs three numbers, got 'v 3 3'"),
        ("v 0 0 0\nf 1 1\n", "line 2: a face needs three vertices, counted from 1, got 'f 1 1'"),
        ("v 0 0 0\nf 0 1 2\n", "line 2: a face needs three vertices, counted from 1, got 'f 0 1 2'"),
        ("v 0 0 0\nf 1.5 1 1\n", "line 2: a face needs three vertices, counted from 1, got 'f 1.5 1 1'"),
        (TRIANGLE_OBJ + "f 1 2 4\n", "line 5: 'f 1 2 4' names a vertex that is not there; the file has 3"),
        (TRIANGLE_OBJ + "f 1 2 -4\n", "line 5: 'f 1 2 -4' names a vertex that is not there; the file has 3"),
        (
            TRIANGLE_OBJ + "f 1 2 99999999999999\n",
            "line 5: 'f 1 2 99999999999999' names a vertex that is not there; the file has 3",
        ),
        ("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "positions: vertex 0 is NaN or infinite"),
        ("v 0 0 0\nv 1 0 1e999\nv 0 1 0\nf 1 2 3\n", "positions: vertex 1 is NaN or infinite"),
        ("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "triangle 0 [0, 1, 2] has no area; remove it or merge its vertices"),
        ("v 9 9 9\n" + TRIANGLE_OBJ.replace("f 1 2 3", "f 2 3 4"), "vertex 0 belongs to no triangle; remove it"),
        ("", "empty mesh: it has no triangles"),
        ("hello\n", "empty mesh: it has no triangles"),
    ],
)
def test_obj_refusals(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "mesh.obj"
    path.write_text(text)
    assert refusal(path) == expected


@pytest.mark.parametrize("ending", READABLE)
@pytest.mark.parametrize("kind", ["noise", "zeros", "empty", "cut"])
def test_garbage(tmp_path: Path, ending: str, kind: str) -> None:
    """Whatever the bytes: one line that names the file, and no error of a reader's insides, nor a warning."""
    path = tmp_path / f"garbage{ending}"
    whole = trimesh.Trimesh(SQUARE, HALVES, process=False).export(file_type="glb" if ending == ".gltf" else ending[1:])
    data = {
        "noise": np.random.default_rng(0).bytes(3000),
        "zeros": bytes(500),
        "empty": b"",
        "cut": (whole.encode() if isinstance(whole, str) else whole)[: len(whole) * 2 // 3],
    }[kind]
    path.write_bytes(data)
    text = refusal(path)
    assert "Import" not in text
    assert "Module" not in text
    if kind == "noise":
        assert text.startswith(f"damaged, or not {ending[1:].upper()} (")


@settings(deadline=None, max_examples=150)
@given(
    st.binary(max_size=300),
    st.sampled_from(READABLE),
    st.sampled_from([b"", b"ply\n", b"solid a\n", b"glTF", b"OFF\n", b"v "]),
)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, ending: str, start: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / f"bytes{ending}"
    path.write_bytes(start + data)
    with contextlib.suppress(WeftError):  # a mesh by chance is no failure
        read_mesh(path)
        return
    assert refusal(path)


def test_paths_that_are_no_mesh_files(tmp_path: Path) -> None:
    endings = ", ".join(READABLE)
    folder = tmp_path / "folder.obj"
    folder.mkdir()
    assert refusal(folder) == f"is a folder; give a mesh file ({endings})"
    assert refusal(tmp_path / "missing.obj") == "no such file"
    assert refusal(tmp_path / "missing" / "missing.obj") == "no such file"
    for name, kind in (("mesh.fbx", "'.fbx' files"), ("mesh", "a file without an ending")):
        (tmp_path / name).write_text("x")
        assert refusal(tmp_path / name) == f"cannot read {kind}; use {endings}"
    assert refusal(tmp_path / f"{'x' * 300}.obj") == "cannot be read (File name too long)"


@needs_real_data
@pytest.mark.parametrize(
    ("file", "n_vertices", "n_triangles"),
    [
        ("garments/tshirt1000-tri.obj", 1426, 2745),
        ("garments/dress-v5k-f10k-v3.obj", 4536, 8801),
        ("garments/tableCloth.obj", 14161, 27848),
        ("colliders/spot.obj", 2930, 5856),
        ("colliders/teapot.obj", 3644, 6320),
        ("makehuman/base.obj", 19158, 36972),
        ("patterns/mean_all.obj", 23752, 47500),
        ("characters/CesiumMan.glb", 3273, 4672),
        ("characters/Fox.glb", 1728, 576),
    ],
)
def test_real_files(file: str, n_vertices: int, n_triangles: int) -> None:
    mesh = read_mesh(DATA / file)
    assert (mesh.n_vertices, len(mesh.triangles)) == (n_vertices, n_triangles)
    if file.endswith(".obj"):
        vertices = [line.split()[1:4] for line in (DATA / file).read_text().splitlines() if line.startswith("v ")]
        np.testing.assert_array_equal(mesh.positions, np.array(vertices, np.float64))


@needs_real_data
def test_real_file_with_a_repeated_triangle() -> None:
    assert refusal(DATA / "colliders/suzanne.obj") == "triangle 270 [70, 137, 138] repeats triangle 269; remove one"


def test_indices_without_vertices_are_refused_in_words() -> None:
    with pytest.raises(WeftError, match=r"^triangles: row 0 is \[0, 1, 2\], but there is no vertex$"):
        as_indices([[0, 1, 2]], 0)


def ring_of(n: int, twisted: bool) -> tuple[list[list[float]], list[list[int]]]:
    """A closed band of 2 n triangles; twisted by half a turn, it has one side only."""
    angles = [2 * np.pi * k / n for k in range(n)]
    top = [[np.cos(a), np.sin(a), 1.0] for a in angles]
    low = [[1.5 * np.cos(a), 1.5 * np.sin(a), 0.0] for a in angles]
    triangles = []
    for k in range(n):
        a, b = 2 * k, 2 * k + 1
        c, d = (2 * k + 2) % (2 * n), (2 * k + 3) % (2 * n)
        if twisted and k == n - 1:
            c, d = d, c
        triangles += [[a, b, c], [b, d, c]]
    return [p for pair in zip(top, low, strict=True) for p in pair], triangles


def clashes(triangles: Ints) -> int:
    """Edges that both their triangles run along the same way."""
    directed = [tuple(t[[k, (k + 1) % 3]]) for t in triangles for k in range(3)]
    return len(directed) - len(set(directed))


@pytest.mark.parametrize("twisted", [False, True])
def test_triangles_of_a_file_are_wound_alike(tmp_path: Path, twisted: bool, rng: np.random.Generator) -> None:
    positions, triangles = ring_of(9, twisted)
    for i in rng.permutation(len(triangles))[:7]:
        triangles[i] = triangles[i][::-1]
    lines = [f"v {x} {y} {z}" for x, y, z in positions] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangles]
    (tmp_path / "ring.obj").write_text("\n".join(lines))
    mesh = read_mesh(tmp_path / "ring.obj")
    assert clashes(np.array(triangles)) > 1
    assert clashes(mesh.triangles) == (1 if twisted else 0), "a band with one side clashes with itself once"
    assert mesh.triangles[0].tolist() == triangles[0], "the first stays as it is"
    np.testing.assert_array_equal(np.sort(mesh.triangles, axis=1), np.sort(triangles, axis=1))


def distance_from_line(p, a, b):
    along = (b - a) / np.linalg.norm(b - a)
    return np.linalg.norm(p - a - ((p - a) @ along) * along)


@pytest.mark.parametrize("rings", [0, 1, 2])
def test_heights_of_the_triangles_around(rng, rings):
    """Against every corner's distance from its opposite side, and neighbours found by their triangles."""
    grid = build_grid((4.0, 8.0), (5, 6))
    mesh = Mesh(grid.positions + rng.normal(scale=0.2, size=(30, 3)), grid.triangles)
    around = [{i} for i in range(31)]
    for _ in range(rings):
        around = [set().union(near, *(t for t in mesh.triangles.tolist() if near & set(t))) for near in around[:30]]
    heights = np.full(30, np.inf)
    for i, j, k in mesh.triangles:
        a, b, c = mesh.positions[[i, j, k]]
        least = min(distance_from_line(a, b, c), distance_from_line(b, c, a), distance_from_line(c, a, b))
        heights[[i, j, k]] = np.minimum(heights[[i, j, k]], least)
    expected = [min(heights[list(near)]) for near in around[:30]]
    np.testing.assert_allclose(local_heights(mesh, rings), expected, rtol=1e-9)
