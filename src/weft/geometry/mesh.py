"""Triangle meshes: grids made here, files read through trimesh, and the checks that either must pass."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weft.arrays import Floats, Ints, Longs, as_indices, as_positions
from weft.errors import WeftError
from weft.geometry.topology import Topology, build_topology

READABLE = (".obj", ".ply", ".stl", ".glb", ".gltf", ".off")
MIN_RELATIVE_AREA = 1e-12  # of a triangle, doubled, over its longest side squared
MAX_GRID_VERTICES = 4_000_000  # 2000 x 2000: about 8 GB in a simulation


@dataclass(frozen=True)
class Mesh:
    """A triangle mesh at rest.

    Attributes
    ----------
    positions : (n, 3) float64 [m]
    triangles : (m, 3) int32, anticlockwise seen from the front
    material : (n, 2) float64 [m], coordinates in the flat cloth: u along the weft, v along the warp; None where the
        mesh has no flat pattern
    grid_shape : (M, N) where the mesh is a regular grid: vertex (i, j) has index i * N + j; None otherwise
    """

    positions: Floats
    triangles: Ints
    material: Floats | None = None
    grid_shape: tuple[int, int] | None = None

    @property
    def n_vertices(self) -> int:
        return len(self.positions)

    @cached_property
    def topology(self) -> Topology:
        return build_topology(self.triangles, self.n_vertices)


def build_grid(size: tuple[float, float], vertices: tuple[int, int]) -> Mesh:
    """A flat M x N grid in the xy plane, centred on the origin, normals up.

    Vertex (i, j) has index i * N + j and lies at x = (i / (M - 1) - 1/2) * size[0], y likewise with j. The quad of
    (i, j) is cut along its diagonal into (a, b, c) and (a, c, d) with a = (i, j), b = (i + 1, j), c = (i + 1, j + 1)
    and d = (i, j + 1); all the first halves come before all the second ones, so that triangles t and t + (M - 1)(N - 1)
    share a quad.
    """
    m, n = vertices
    if m < 2 or n < 2:
        raise WeftError(f"grid: needs at least 2 x 2 vertices, got {m} x {n}")
    if not all(0.0 < side < np.inf for side in size):
        raise WeftError(f"grid: size must be positive, got {size[0]} x {size[1]}")
    if m * n > MAX_GRID_VERTICES:
        raise WeftError(f"grid: {m} x {n} vertices are more than {MAX_GRID_VERTICES:,}; use fewer")
    u = (np.arange(m) / (m - 1) - 0.5) * size[0]
    v = (np.arange(n) / (n - 1) - 0.5) * size[1]
    material = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    a = (np.arange(m - 1)[:, None] * n + np.arange(n - 1)[None, :]).ravel()
    b, c, d = a + n, a + n + 1, a + 1
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]).astype(np.int32)
    positions = np.concatenate([material, np.zeros((m * n, 1))], axis=1)
    return Mesh(np.ascontiguousarray(positions), triangles, np.ascontiguousarray(material), (m, n))


def local_heights(mesh: Mesh, rings: int) -> Floats:
    """(n,) [m] the smallest height of the triangles no more than so many edges away; infinite where there are none."""
    corners = mesh.positions[mesh.triangles]
    doubled = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    least: Floats = np.full(mesh.n_vertices, np.inf)
    np.minimum.at(least, mesh.triangles, (doubled / longest)[:, None])
    i, j = mesh.topology.edges.T
    for _ in range(rings):
        before = least.copy()
        np.minimum.at(least, i, before[j])
        np.minimum.at(least, j, before[i])
    return least


def read_mesh(path: Path | str) -> Mesh:
    """Read a mesh file. Vertices keep the file's order; quads and polygons are cut into triangles.

    Triangles that are wound against their neighbours are turned; in each piece, the first stays as it is. A surface
    with one side only, such as Moebius' band, keeps a line where they disagree.

    STL has no vertices of its own: equal corners become one vertex, in the order in which they first occur.

    Raises
    ------
    WeftError
        naming the file and the reason, where it cannot be read or cannot be simulated.
    """
    path = Path(path)
    try:
        positions, faces = _read_arrays(path)
        mesh = Mesh(as_positions(positions), as_indices(faces, len(positions)))
        check_mesh(mesh)
        mesh = Mesh(mesh.positions, _wind_alike(mesh))
    except WeftError as error:
        raise WeftError(f"{path}: {error}") from None
    except OSError as error:
        raise WeftError(f"{path}: cannot be read ({error.strerror or _one_line(error)})") from None
    except Exception as error:  # a reader meets arbitrary bytes: whatever it trips over is the file's fault
        raise WeftError(f"{path}: damaged, or not {path.suffix[1:].upper()} ({_one_line(error)})") from None
    return mesh


def _wind_alike(mesh: Mesh) -> Ints:
    """The triangles of `mesh`, turned so that neighbours run along their edge in opposite ways."""
    topology, triangles = mesh.topology, mesh.triangles
    inner = topology.edge_triangles[:, 1] >= 0
    sides, edges = topology.edge_triangles[inner], topology.edges[inner]
    following = np.roll(triangles, -1, axis=1)
    forward = [following[sides[:, k]][triangles[sides[:, k]] == edges[:, :1]] == edges[:, 1] for k in (0, 1)]
    agree = np.where(forward[0] == forward[1], -1, 1).astype(np.int8)
    if (agree > 0).all():
        return triangles
    turn = np.zeros(len(triangles), np.int8)
    while (turn == 0).any():
        turn[np.argmax(turn == 0)] = 1
        while True:
            a, b = turn[sides[:, 0]], turn[sides[:, 1]]
            to_b, to_a = (a != 0) & (b == 0), (a == 0) & (b != 0)
            if not (to_a.any() or to_b.any()):
                break
            turn[sides[to_b, 1]] = (a * agree)[to_b]
            turn[sides[to_a, 0]] = (b * agree)[to_a]
    return np.ascontiguousarray(np.where(turn[:, None] < 0, triangles[:, ::-1], triangles))


def _read_arrays(path: Path) -> tuple[Floats, Longs]:
    if path.is_dir():
        raise WeftError(f"is a folder; give a mesh file ({', '.join(READABLE)})")
    if not path.exists():
        raise WeftError("no such file")
    if path.suffix.lower() not in READABLE:
        kind = f"{path.suffix!r} files" if path.suffix else "a file without an ending"
        raise WeftError(f"cannot read {kind}; use {', '.join(READABLE)}")
    return _read_obj(path) if path.suffix.lower() == ".obj" else _read_with_trimesh(path)


def _one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip()[:160]


def _read_with_trimesh(path: Path) -> tuple[Floats, Longs]:
    import trimesh  # 0.3 s: only when a file is read

    if path.suffix.lower() == ".gltf":
        json.loads(path.read_bytes())  # trimesh takes what is not JSON for an archive, and misses "model.gltf" in it
    try:
        loaded = trimesh.load_mesh(path, process=False)
    except ImportError:  # it asks for a package that guesses encodings when a text format holds no text
        raise ValueError("neither text nor the binary form") from None
    geometry = loaded.to_mesh() if isinstance(loaded, trimesh.Scene) else loaded
    positions, faces = np.asarray(geometry.vertices), np.asarray(geometry.faces)
    if path.suffix.lower() == ".stl":
        _, first, vertex_of = np.unique(positions, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.argsort(order)
        positions, faces = positions[first[order]], rank[vertex_of.ravel()][faces]
    return positions, faces


def _read_obj(path: Path) -> tuple[Floats, Longs]:
    """Vertices and faces of a Wavefront OBJ.

    By hand, since trimesh reorders and splits vertices wherever texture seams pass: a simulation's output must match
    the file vertex by vertex. Letters of any encoding may stand in comments and names.
    """
    data = path.read_bytes()
    if b"\0" in data:
        raise ValueError("binary data, not text")
    lines = re.split("\r\n|\r|\n", data.decode("utf-8-sig", errors="replace"))
    positions: list[list[float]] = []
    faces: list[list[int]] = []
    face_lines: list[int] = []
    for number, words in _join_continued(lines):
        try:
            if words[0] == "v":
                x, y, z = words[1:4]
                positions.append([float(x), float(y), float(z)])
            elif words[0] == "f":
                ring = [int(word.split("/")[0]) for word in words[1:]]
                if len(ring) < 3 or 0 in ring:
                    raise ValueError
                ring = [vertex - 1 if vertex > 0 else len(positions) + vertex for vertex in ring]
                faces.extend([ring[0], ring[k], ring[k + 1]] for k in range(1, len(ring) - 1))
                face_lines.extend([number] * (len(ring) - 2))
        except ValueError:
            need = "a vertex needs three numbers" if words[0] == "v" else "a face needs three vertices, counted from 1"
            raise WeftError(f"line {number}: {need}, got {' '.join(words)[:60]!r}") from None
    triangles = np.array(faces, np.int64).reshape(-1, 3)
    missing = ((triangles < 0) | (triangles >= len(positions))).any(axis=1)
    if missing.any():
        number = face_lines[int(np.argmax(missing))]
        face = " ".join(lines[number - 1].split())[:60]
        raise WeftError(f"line {number}: {face!r} names a vertex that is not there; the file has {len(positions)}")
    return np.array(positions, np.float64).reshape(-1, 3), triangles


def _join_continued(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The number and the words of each line without its comment; one that ends in a backslash takes in the next."""
    words: list[str] = []
    start = 1
    for number, line in enumerate(lines, start=1):
        start = start if words else number
        text = line.partition("#")[0].rstrip()
        words += text.removesuffix("\\").split()
        if words and not text.endswith("\\"):
            yield start, words
            words = []


def check_mesh(mesh: Mesh) -> None:
    """Refuse a mesh that cannot be simulated, with the reason and the first index that shows it."""
    x, triangles = mesh.positions, mesh.triangles
    if len(x) == 0 or len(triangles) == 0:
        raise WeftError("empty mesh: it has no triangles")
    as_positions(x)
    as_indices(triangles, len(x))
    unused = np.bincount(triangles.ravel(), minlength=len(x)) == 0
    if unused.any():
        raise WeftError(f"vertex {int(np.argmax(unused))} belongs to no triangle; remove it")
    half = 0.5 * x[triangles]  # half, and then relative to the longest side: no size overflows or vanishes
    sides = np.stack([half[:, k] - half[:, k - 1] for k in range(3)], axis=1)
    longest = np.abs(sides).max(axis=(1, 2), keepdims=True)
    sides = np.divide(sides, longest, out=np.zeros_like(sides), where=longest > 0.0)
    flat = ~(np.linalg.norm(np.cross(sides[:, 1], sides[:, 2]), axis=1) > MIN_RELATIVE_AREA)
    if flat.any():
        i = int(np.argmax(flat))
        raise WeftError(f"triangle {i} {triangles[i].tolist()} has no area; remove it or merge its vertices")
    _, first, inverse = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True, return_inverse=True)
    original = first[inverse.ravel()]
    repeated = original != np.arange(len(triangles))
    if repeated.any():
        i = int(np.argmax(repeated))
        raise WeftError(f"triangle {i} {triangles[i].tolist()} repeats triangle {int(original[i])}; remove one")
    half_edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1).astype(np.int64)
    keys, counts = np.unique(half_edges[:, 0] * len(x) + half_edges[:, 1], return_counts=True)
    if (counts > 2).any():
        key = int(keys[np.argmax(counts > 2)])
        a, b = divmod(key, len(x))
        owners = np.flatnonzero(((triangles == a).any(axis=1)) & ((triangles == b).any(axis=1)))
        raise WeftError(f"edge [{a}, {b}] has {len(owners)} triangles {owners[:4].tolist()}; cloth allows two")
