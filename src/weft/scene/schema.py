"""The scene file's keys, each with its unit, default, range and meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field, field_validator, model_validator

from weft.bodies import SHAPES
from weft.bodies.motion import Motion
from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Sphere
from weft.errors import WeftError
from weft.explain import problem_at
from weft.geometry.mesh import MAX_GRID_VERTICES
from weft.methods import METHODS, Method, load_method
from weft.models.fabrics import Fabric, load_fabric
from weft.models.wind import Wind
from weft.parameters import NameOr, Parameters, Vector, quantity

Side = Annotated[float, Ge(1e-3), Le(1e3)]
Count = Annotated[int, Ge(2)]
Waves = Annotated[float, Ge(-1e3), Le(1e3)]
MAX_NAME = 100  # characters: file systems allow 255 bytes


def _exactly_one(table: Parameters, *keys: str) -> None:
    given = [key for key in keys if getattr(table, key) is not None]
    if not given:
        raise problem_at(f"give one of {', '.join(keys[:-1])} or {keys[-1]}")
    if len(given) > 1:
        raise problem_at(f"has {' and '.join(given)}; keep one of them")


class Ripple(Parameters):
    """A wave in the cloth at the start, along its normal, so that a flat sheet knows which way to buckle.

    At rest the cloth is flat: a wave of slope s stretches it by s^2 / 2 at the start. For one that is rippled at rest,
    use a mesh.

    [[cloth]]
    grid = { size = [1, 1], vertices = [51, 51], ripples = [{ amplitude = 0.02, waves = [2, 0] }] }
    """

    amplitude: float = quantity("height of the wave", unit="m", ge=-10, le=10)
    waves: tuple[Waves, Waves] = quantity("waves along u and v")
    phase: float = quantity("phase at the corner u = v = 0", unit="deg", default=0.0, ge=-1e4, le=1e4)


class Grid(Parameters):
    """A rectangular cloth of M x N vertices.

    [[cloth]]
    grid = { size = [1.2, 0.8], vertices = [61, 41], center = [0, 0, 0.5], plane = "xz" }
    """

    size: tuple[Side, Side] = quantity("lengths along u and v", unit="m")
    vertices: tuple[Count, Count] = quantity(f"vertices along u and v; at most {MAX_GRID_VERTICES:,} in all")
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))
    plane: Literal["xy", "xz", "yz"] = quantity(
        "the plane it lies in: u along the first, v along the second", default="xy"
    )
    turn: Vector = quantity("rotation about its centre: axis times angle", unit="deg", default=(0.0, 0.0, 0.0))
    ripples: list[Ripple] = quantity("waves at the start", default=[])

    @field_validator("vertices")
    @classmethod
    def _not_too_many(cls, vertices: tuple[int, int]) -> tuple[int, int]:
        if vertices[0] * vertices[1] > MAX_GRID_VERTICES:
            raise ValueError(f"more than {MAX_GRID_VERTICES:,} in all; use fewer, e.g. [51, 51]")
        return vertices


class MeshFile(Parameters):
    """A cloth from a mesh file (obj, ply, stl, glb, gltf, off), placed in the scene.

    [[cloth]]
    mesh = { file = "shirt.obj", scale = 0.01, move = [0, 0, 1] }     # or only: mesh = "shirt.obj"
    """

    file: str = quantity("path, relative to the scene file")
    scale: float = quantity("factor on its coordinates, e.g. 0.01 for centimetres", default=1.0, ge=1e-6, le=1e6)
    move: Vector = quantity("displacement, after scale and turn", unit="m", default=(0.0, 0.0, 0.0))
    turn: Vector = quantity("rotation about the origin: axis times angle", unit="deg", default=(0.0, 0.0, 0.0))


class Pin(Parameters):
    """Vertices that follow a motion, or stay where they are: one of where, vertices or box says which.

    [[cloth]]
    grid = { size = [1, 1], vertices = [51, 51], plane = "xz" }
    pins = [{ where = "top", every = 5 }, { box = [[-0.1, -0.1, -0.6], [0.1, 0.1, -0.4]] }]
    """

    where: Literal["corners", "left", "right", "bottom", "top", "center"] | None = quantity(
        "part of a grid: left and right are the ends of u, bottom and top those of v", default=None
    )
    vertices: list[int] | None = quantity("vertices by index", default=None)
    every: int = quantity("take every n-th of these vertices", default=1, ge=1, le=MAX_GRID_VERTICES)
    box: tuple[Vector, Vector] | None = quantity("all vertices between two corners", unit="m", default=None)
    motion: Motion | None = quantity("keyframes, about the centre of the pinned vertices", default=None)

    @model_validator(mode="after")
    def _one_choice(self) -> Pin:
        _exactly_one(self, "where", "vertices", "box")
        return self


class Cloth(Parameters):
    """One piece of cloth: a grid or a mesh.

    [[cloth]]
    grid = { size = [1, 1], vertices = [51, 51], center = [0, 0, 0.5] }
    fabric = "silk"
    pins = [{ where = "corners" }]
    """

    grid: Grid | None = quantity("a rectangular cloth", default=None)
    mesh: NameOr[MeshFile] | None = quantity("a mesh file, or a table with its placement", default=None)
    fabric: NameOr[Fabric] = quantity("a preset's name, or a table of measured values", default="cotton")
    pins: list[Pin] = quantity("vertices that are held", default=[])
    velocity: Vector = quantity("velocity at the start", unit="m/s", default=(0.0, 0.0, 0.0))
    contact_distance: float | None = quantity(
        "distance kept to bodies and cloth; by default the thickness or 0.2 of the mean edge, whichever is larger; "
        "less in the engine where triangles are so small that it is more than 0.7 of their height",
        unit="m",
        default=None,
        ge=1e-6,
        le=1,
    )

    @field_validator("fabric")
    @classmethod
    def _known_fabric(cls, fabric: str | Fabric) -> str | Fabric:
        try:
            if isinstance(fabric, str):
                load_fabric(fabric)
        except WeftError as error:
            raise problem_at(str(error)) from None
        return fabric

    @model_validator(mode="after")
    def _one_source(self) -> Cloth:
        _exactly_one(self, "grid", "mesh")
        for k, pin in enumerate(self.pins):
            if self.grid is None and pin.where is not None:
                raise problem_at("is for a grid; use vertices or box for a mesh", "pins", k, "where")
        return self


class Collider(Parameters):
    """A body that cloth collides with: one shape, at rest or moving.

    [[collider]]
    sphere = { radius = 0.1, center = [0, 0, 0.1] }
    friction = 0.5
    motion.keyframes = [{ time = 0 }, { time = 1, move = [0, 0, 0.2] }]
    """

    plane: Plane | None = quantity("a half space", default=None)
    box: Box | None = quantity("a box", default=None)
    sphere: Sphere | None = quantity("a ball", default=None)
    capsule: Capsule | None = quantity("a cylinder with round ends", default=None)
    cylinder: Cylinder | None = quantity("a cylinder with flat ends", default=None)
    turn: Vector = quantity("rotation about its centre: axis times angle", unit="deg", default=(0.0, 0.0, 0.0))
    friction: float | None = quantity("Coulomb coefficient; the fabric's where absent", default=None, ge=0, le=10)
    motion: Motion | None = quantity("keyframes", default=None)

    @model_validator(mode="after")
    def _one_shape(self) -> Collider:
        _exactly_one(self, *SHAPES)
        for k, frame in enumerate(self.motion.keyframes if self.motion else []):
            if frame.scale != (1.0, 1.0, 1.0):
                raise problem_at("is for pins; a collider keeps its size", "motion", "keyframes", k, "scale")
        return self

    @property
    def shape(self) -> Plane | Box | Sphere | Capsule | Cylinder:
        shape = self.plane or self.box or self.sphere or self.capsule or self.cylinder
        assert shape is not None  # _one_shape
        return shape


class Scene(Parameters):
    """What is simulated: a TOML file, in SI units with z up. Its own keys come first, its tables after them.

    duration = 1.0
    fps = 60

    [[cloth]]
    grid = { size = [0.4, 0.4], vertices = [31, 31], center = [0, 0, 0.3] }
    fabric = "silk"

    [[collider]]
    plane = { normal = [0, 0, 1] }
    """

    name: str = quantity("name, also of the output folder out/NAME; a file without it goes by its own", default="scene")
    description: str = quantity("one line for `weft scenes`", default="")
    duration: float = quantity("simulated time", unit="s", default=2.0, ge=1e-4, le=36000)
    fps: float = quantity("recorded frames per second", unit="1/s", default=60.0, ge=0.1, le=10000)
    method: NameOr[Method] = quantity("a method's name, or a table of parts", default="engine")
    steps_per_frame: int | None = quantity(
        "steps in one frame; the method's choice where absent", default=None, ge=1, le=100000
    )
    untangle: Literal["fully", "partly", "off"] = quantity(
        "part what crosses or touches at the start: all of it, or as much as can be, or nothing", default="fully"
    )
    gravity: Vector = quantity("acceleration of free fall", unit="m/s2", default=(0.0, 0.0, -9.81))
    cloth: list[Cloth] = quantity("pieces of cloth", min_length=1)
    collider: list[Collider] = quantity("bodies", default=[])
    wind: Wind = quantity("moving air", default_factory=Wind)
    record: list[Literal["velocities"]] = quantity("what is recorded besides positions", default=[])
    folder: str = Field(default=".", exclude=True, description="where relative paths start; the scene file's folder")
    source: str = Field(default="scene", exclude=True, description="where it comes from; errors start with it")

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not name or any(c in '/\\:*?"<>|' or not c.isprintable() for c in name) or name.startswith("."):
            raise ValueError(f"{name!r} cannot name a folder; use letters, digits, - and _")
        if len(name) > MAX_NAME:
            raise ValueError(f"longer than {MAX_NAME} characters")
        return name

    @field_validator("record")
    @classmethod
    def _once_each(cls, record: list[str]) -> list[str]:
        if len(set(record)) < len(record):
            raise ValueError("names the same array twice")
        return record

    @field_validator("method")
    @classmethod
    def _known_method(cls, method: str | Method) -> str | Method:
        try:
            if isinstance(method, str):
                load_method(method)
        except WeftError as error:
            raise problem_at(str(error)) from None
        return method

    @property
    def parts(self) -> Method:
        """The set of parts in use."""
        return METHODS[self.method] if isinstance(self.method, str) else self.method

    @property
    def n_frames(self) -> int:
        """Frames after the first, which shows the start."""
        return max(1, round(self.duration * self.fps))
