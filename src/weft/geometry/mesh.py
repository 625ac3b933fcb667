"""Triangle meshes: grids made here, files read through trimesh, and the checks that either must pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weft.arrays import Floats, Ints, Longs, as_indices, as_positions
from weft.errors import WeftError
from weft.geometry.topology import Topology, build_topology

READABLE = (".obj", ".ply", ".stl", ".glb", ".gltf", ".off")
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


def read_mesh(path: Path | str) -> Mesh:
    """Read a mesh file. Vertices keep the file's order; quads and polygons are cut into triangles.

    Raises
    ------
    WeftError
        naming the file and the reason, where it cannot be read or cannot be simulated.
    """
    path = Path(path)
    if path.is_dir():
        raise WeftError(f"{path}: is a folder; give a mesh file ({', '.join(READABLE)})")
    if not path.exists():
        raise WeftError(f"{path}: no such file")
    if path.suffix.lower() not in READABLE:
        raise WeftError(f"{path}: cannot read {path.suffix or 'a file without an ending'!r}; use {', '.join(READABLE)}")
    try:
        positions, faces = _read_obj(path) if path.suffix.lower() == ".obj" else _read_with_trimesh(path)
    except WeftError:
        raise
    except Exception as error:  # a reader meets arbitrary bytes: whatever it trips over is the file's fault
        raise WeftError(f"{path}: cannot be read as a {path.suffix[1:].upper()} mesh ({_one_line(error)})") from None
    try:
        mesh = Mesh(as_positions(positions), as_indices(faces, len(positions)))
        check_mesh(mesh)
    except WeftError as error:
        raise WeftError(f"{path}: {error}") from None
    return mesh


def _one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip()[:160]


def _read_with_trimesh(path: Path) -> tuple[Floats, Longs]:
    import trimesh  # 0.3 s: only when a file is read

    loaded = trimesh.load_mesh(path, process=False)
    geometry = loaded.to_mesh() if isinstance(loaded, trimesh.Scene) else loaded
    if path.suffix.lower() == ".stl":
        geometry.merge_vertices()  # STL repeats every corner: without welding no triangle has a neighbour
    return np.asarray(geometry.vertices), np.asarray(geometry.faces)


def _read_obj(path: Path) -> tuple[Floats, Longs]:
    """Vertices and faces of a Wavefront OBJ.

    By hand, since trimesh reorders and splits vertices wherever texture seams pass: a simulation's output must match
    the file vertex by vertex.
    """
    positions: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="strict").splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        try:
            if words[0] == "v":
                positions.append([float(word) for word in words[1:4]])
                if len(positions[-1]) != 3:
                    raise ValueError("a vertex needs three coordinates")
            elif words[0] == "f":
                corners = [int(word.split("/")[0]) for word in words[1:]]
                if len(corners) < 3 or 0 in corners:
                    raise ValueError("a face needs three vertices, counted from 1")
                ring = [c - 1 if c > 0 else len(positions) + c for c in corners]
                faces.extend((ring[0], ring[k], ring[k + 1]) for k in range(1, len(ring) - 1))
        except ValueError as error:
            raise WeftError(f"{path}: line {number}: {error}") from None
    return np.array(positions, np.float64).reshape(-1, 3), np.array(faces, np.int64).reshape(-1, 3)


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
    corners = x[triangles]
    sides = np.stack([corners[:, k] - corners[:, k - 1] for k in range(3)], axis=1)
    doubled_area = np.linalg.norm(np.cross(sides[:, 1], sides[:, 2]), axis=1)
    longest_sq = (sides**2).sum(axis=2).max(axis=1)
    flat = ~(doubled_area > 1e-12 * longest_sq)
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
