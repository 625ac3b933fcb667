"""From a checked Scene to arrays: meshes, fabrics, pins and bodies of all cloths together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from weft.arrays import Floats, Ints
from weft.bodies import Body
from weft.bodies.motion import Motion, Pose, pose_at, scale_at
from weft.errors import WeftError
from weft.explain import show
from weft.geometry.mesh import Mesh, build_grid, read_mesh
from weft.models.fabrics import Fabric, load_fabric
from weft.parameters import LARGEST
from weft.scene.schema import Cloth, Grid, MeshFile, Pin, Scene

PLANES = {
    "xy": np.eye(3),
    "xz": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "yz": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
}
SMALLEST = 1e-3  # [m] of a mesh's extent
CONTACT_SHARE = 0.2  # of the mean edge: the distance kept to bodies, so that triangles between vertices stay clear


@dataclass(frozen=True)
class ClothPiece:
    """One cloth: its mesh at rest, its fabric, and which vertices of the world it owns."""

    mesh: Mesh
    fabric: Fabric
    first: int
    contact_distance: float

    @property
    def vertices(self) -> slice:
        return slice(self.first, self.first + self.mesh.n_vertices)


@dataclass(frozen=True)
class PinGroup:
    """Vertices that move together."""

    name: str
    """its key in the scene"""
    vertices: Ints
    start: Floats
    """(k, 3) positions at time 0"""
    motion: Motion | None

    def positions(self, time: float) -> Floats:
        if self.motion is None:
            return self.start
        center = self.start.mean(axis=0)
        return pose_at(self.motion, time, Pose(np.eye(3), center)).to_world(
            (self.start - center) * scale_at(self.motion, time)
        )


@dataclass(frozen=True)
class World:
    """Everything that a simulation starts from; vertices of all cloths are numbered one after another."""

    pieces: list[ClothPiece]
    positions: Floats
    velocities: Floats
    triangles: Ints
    masses: Floats
    pins: list[PinGroup]
    bodies: list[Body]


def build_world(scene: Scene) -> World:
    """Build all that `scene` describes, or say which of its keys cannot be."""
    try:
        return _build(scene)
    except WeftError as error:
        raise WeftError(f"{scene.source}: {error}") from None


def _build(scene: Scene) -> World:
    pieces: list[ClothPiece] = []
    starts: list[Floats] = []
    pins: list[PinGroup] = []
    first = 0
    for k, cloth in enumerate(scene.cloth):
        mesh, start = _place(cloth, Path(scene.folder), f"cloth.{k}")
        fabric = load_fabric(cloth.fabric) if isinstance(cloth.fabric, str) else cloth.fabric
        ends = mesh.positions[mesh.topology.edges]
        mean_edge = float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean())
        distance = cloth.contact_distance or max(fabric.thickness, CONTACT_SHARE * mean_edge)
        pieces.append(ClothPiece(mesh, fabric, first, distance))
        starts.append(start)
        for j, pin in enumerate(cloth.pins):
            key = f"cloth.{k}.pins.{j}"
            chosen = _pinned(pin, mesh, start, key)
            pins.append(PinGroup(key, chosen + np.int32(first), start[chosen], pin.motion))
        first += mesh.n_vertices
    world = World(
        pieces=pieces,
        positions=np.concatenate(starts),
        velocities=np.concatenate(
            [np.tile(np.array(c.velocity), (len(s), 1)) for c, s in zip(scene.cloth, starts, strict=True)]
        ),
        triangles=np.concatenate([piece.mesh.triangles + np.int32(piece.first) for piece in pieces]),
        masses=np.concatenate([_masses(piece) for piece in pieces]),
        pins=pins,
        bodies=build_bodies(scene),
    )
    _refuse_pins_that_disagree(world)
    return world


def build_bodies(scene: Scene) -> list[Body]:
    """The colliders of `scene`."""
    return [
        Body(f"collider.{k}", c.shape, _pose(c.shape.center, c.turn), c.motion, c.friction)
        for k, c in enumerate(scene.collider)
    ]


def _pose(center: tuple[float, float, float], turn: tuple[float, float, float]) -> Pose:
    return Pose(Rotation.from_rotvec(np.deg2rad(turn)).as_matrix(), np.array(center, np.float64))


def _place(cloth: Cloth, folder: Path, key: str) -> tuple[Mesh, Floats]:
    """The mesh at rest and its positions at the start."""
    if cloth.grid is not None:
        mesh = build_grid(cloth.grid.size, cloth.grid.vertices)
        return mesh, _placed_grid(mesh, cloth.grid)
    placement = cloth.mesh if isinstance(cloth.mesh, MeshFile) else MeshFile(file=str(cloth.mesh))
    try:
        read = read_mesh(folder / placement.file)
    except WeftError as error:
        raise WeftError(f"{key}.mesh: {error}") from None
    turn = Rotation.from_rotvec(np.deg2rad(placement.turn)).as_matrix()
    positions = np.ascontiguousarray(placement.scale * read.positions @ turn.T + np.array(placement.move))
    far, wide = float(np.abs(positions).max()), float(np.ptp(positions, axis=0).max())
    if far > LARGEST:
        raise WeftError(f"{key}.mesh: {placement.file}: reaches {far:.3g} m from the origin; set mesh.scale")
    if wide < SMALLEST:
        raise WeftError(f"{key}.mesh: {placement.file}: is only {wide:.3g} m large; set mesh.scale")
    return Mesh(positions, read.triangles), positions


def _placed_grid(mesh: Mesh, grid: Grid) -> Floats:
    assert mesh.material is not None
    local = mesh.positions.copy()
    share = mesh.material / np.array(grid.size) + 0.5
    for ripple in grid.ripples:
        local[:, 2] += ripple.amplitude * np.sin(
            2.0 * np.pi * share @ np.array(ripple.waves) + np.deg2rad(ripple.phase)
        )
    return np.ascontiguousarray(_pose(grid.center, grid.turn).to_world(local @ PLANES[grid.plane]))


def _pinned(pin: Pin, mesh: Mesh, start: Floats, key: str) -> Ints:
    if pin.vertices is not None:
        for k, vi in enumerate(pin.vertices):
            if not 0 <= vi < mesh.n_vertices:
                raise WeftError(
                    f"{key}.vertices.{k}: {show(vi)} is not a vertex; the cloth has 0 to {mesh.n_vertices - 1}"
                )
        chosen = np.array(pin.vertices, np.int32)
    elif pin.box is not None:
        low, high = np.sort(np.array(pin.box), axis=0)
        chosen = np.flatnonzero(((start >= low) & (start <= high)).all(axis=1)).astype(np.int32)
    else:
        chosen = _grid_part(mesh, str(pin.where))
    chosen = np.unique(chosen)[:: pin.every]
    if len(chosen) == 0:
        raise WeftError(f"{key}: holds no vertex; make the box larger or name vertices")
    return chosen.astype(np.int32)


def _grid_part(mesh: Mesh, where: str) -> Ints:
    assert mesh.grid_shape is not None  # schema: pins.where needs a grid
    m, n = mesh.grid_shape
    index = np.arange(m * n, dtype=np.int32).reshape(m, n)
    parts: dict[str, Ints] = {
        "corners": index[:: m - 1, :: n - 1],
        "left": index[0],
        "right": index[-1],
        "bottom": index[:, 0],
        "top": index[:, -1],
        "center": index[m // 2 : m // 2 + 1, n // 2],
    }
    return parts[where].ravel()


def _masses(piece: ClothPiece) -> Floats:
    """A third of each triangle's mass at each of its corners [kg]."""
    corners = piece.mesh.positions[piece.mesh.triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    share = np.repeat(piece.fabric.density * area / 3.0, 3)
    return np.bincount(piece.mesh.triangles.ravel(), share, minlength=piece.mesh.n_vertices).astype(np.float64)


def _refuse_pins_that_disagree(world: World) -> None:
    holder = np.full(len(world.positions), -1)
    for k, group in enumerate(world.pins):
        for vi in group.vertices[holder[group.vertices] >= 0]:
            other = world.pins[holder[vi]]
            if other.motion or group.motion:  # also the same one: each group turns about its own centre
                vertex = vi - max(piece.first for piece in world.pieces if piece.first <= vi)
                raise WeftError(f"{group.name}: vertex {vertex} is held by {other.name} too; leave it out of one")
        holder[group.vertices] = k
