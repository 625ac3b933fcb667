"""The scene file's keys, each with its unit, default, range and meaning."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from weft.bodies.motion import Motion, Vector
from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Sphere
from weft.methods import METHODS, PARTS, Method, part_choice
from weft.models.fabrics import Fabric, load_fabric
from weft.models.wind import Wind
from weft.parameters import Parameters, quantity


class Ripple(Parameters):
    """A wave in the cloth at the start, along its normal, so that a flat sheet knows which way to buckle."""

    amplitude: float = quantity("height of the wave", unit="m")
    waves: tuple[float, float] = quantity("waves along u and v")
    phase: float = quantity("phase at the corner u = v = 0", unit="deg", default=0.0)


class Grid(Parameters):
    """A rectangular cloth of M x N vertices."""

    size: tuple[float, float] = quantity("lengths along u and v", unit="m")
    vertices: tuple[int, int] = quantity("vertices along u and v")
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))
    plane: Literal["xy", "xz", "yz"] = quantity(
        "the plane it lies in: u along the first, v along the second", default="xy"
    )
    turn: Vector = quantity("rotation about its centre: axis times angle", unit="deg", default=(0.0, 0.0, 0.0))
    ripples: list[Ripple] = quantity("waves at the start", default=[])

    @field_validator("size")
    @classmethod
    def _positive(cls, size: tuple[float, float]) -> tuple[float, float]:
        if min(size) <= 0.0:
            raise ValueError("both lengths must be greater than 0")
        return size

    @field_validator("vertices")
    @classmethod
    def _enough(cls, vertices: tuple[int, int]) -> tuple[int, int]:
        if min(vertices) < 2:
            raise ValueError("needs at least 2 along each side")
        if vertices[0] * vertices[1] > 4_000_000:
            raise ValueError("at most 4,000,000 vertices in all")
        return vertices


class MeshFile(Parameters):
    """A cloth from a mesh file, placed in the scene."""

    file: str = quantity("path, relative to the scene file")
    scale: float = quantity("factor on its coordinates, e.g. 0.01 for centimetres", default=1.0, gt=0)
    move: Vector = quantity("displacement, after scale and turn", unit="m", default=(0.0, 0.0, 0.0))
    turn: Vector = quantity("rotation about the origin: axis times angle", unit="deg", default=(0.0, 0.0, 0.0))


class Pin(Parameters):
    """Vertices that follow a motion, or stay where they are."""

    where: Literal["corners", "left", "right", "bottom", "top", "center"] | None = quantity(
        "part of a grid: left and right are the ends of u, bottom and top those of v", default=None
    )
    vertices: list[int] | None = quantity("vertices by index", default=None)
    every: int = quantity("take every n-th of these vertices", default=1, ge=1)
    box: tuple[Vector, Vector] | None = quantity("all vertices between two corners", unit="m", default=None)
    motion: Motion | None = quantity("keyframes, about the centre of the pinned vertices", default=None)

    @model_validator(mode="after")
    def _one_choice(self) -> Pin:
        if sum(choice is not None for choice in (self.where, self.vertices, self.box)) != 1:
            raise ValueError("give one of where, vertices or box")
        return self


class Cloth(Parameters):
    """One piece of cloth."""

    grid: Grid | None = quantity("a rectangular cloth", default=None)
    mesh: str | MeshFile | None = quantity("a mesh file, or a table with its placement", default=None)
    fabric: str | Fabric = quantity("a preset's name, or a table of measured values", default="cotton")
    pins: list[Pin] = quantity("vertices that are held", default=[])
    velocity: Vector = quantity("velocity at the start", unit="m/s", default=(0.0, 0.0, 0.0))
    contact_distance: float | None = quantity(
        "distance kept to bodies; by default the thickness or 0.2 of the mean edge, whichever is larger",
        unit="m",
        default=None,
        gt=0,
    )

    @field_validator("fabric")
    @classmethod
    def _known_fabric(cls, fabric: str | Fabric) -> str | Fabric:
        if isinstance(fabric, str):
            load_fabric(fabric)
        return fabric

    @model_validator(mode="after")
    def _one_source(self) -> Cloth:
        if (self.grid is None) == (self.mesh is None):
            raise ValueError("give either grid or mesh")
        if self.grid is None and any(pin.where for pin in self.pins):
            raise ValueError("pins.where needs a grid; use vertices or box for a mesh")
        return self


class Collider(Parameters):
    """A body that cloth collides with: one shape, at rest or moving."""

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
        if sum(getattr(self, kind) is not None for kind in ("plane", "box", "sphere", "capsule", "cylinder")) != 1:
            raise ValueError("give one of plane, box, sphere, capsule or cylinder")
        if self.motion and any(frame.scale != (1.0, 1.0, 1.0) for frame in self.motion.keyframes):
            raise ValueError("motion.keyframes.scale is for pins; a collider keeps its size")
        return self

    @property
    def shape(self) -> Plane | Box | Sphere | Capsule | Cylinder:
        shape = self.plane or self.box or self.sphere or self.capsule or self.cylinder
        assert shape is not None  # _one_shape
        return shape


class Scene(Parameters):
    """What is simulated."""

    name: str = quantity("name, also of the default output folder")
    description: str = quantity("one line for `weft scenes`", default="")
    duration: float = quantity("simulated time", unit="s", default=2.0, gt=0, le=36000)
    fps: float = quantity("recorded frames per second", unit="1/s", default=60.0, gt=0, le=10000)
    method: str | Method = quantity("a method's name, or a table of parts", default="engine")
    steps_per_frame: int | None = quantity(
        "steps in one frame; the method's choice where absent", default=None, ge=1, le=100000
    )
    gravity: Vector = quantity("acceleration of free fall", unit="m/s2", default=(0.0, 0.0, -9.81))
    cloth: list[Cloth] = quantity("pieces of cloth", min_length=1)
    collider: list[Collider] = quantity("bodies", default=[])
    wind: Wind = quantity("moving air", default_factory=Wind)
    record: list[Literal["velocities"]] = quantity("what is recorded besides positions", default=[])
    folder: str = Field(default=".", exclude=True, description="where relative paths start; the scene file's folder")

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not name or any(c in '/\\:*?"<>|' or not c.isprintable() for c in name) or name.startswith("."):
            raise ValueError("must be a plain name, without path separators")
        return name

    @field_validator("method")
    @classmethod
    def _known_method(cls, method: str | Method) -> str | Method:
        from weft.errors import WeftError, nearest

        try:
            if isinstance(method, str) and method not in METHODS:
                raise ValueError(f"unknown method{nearest(method, METHODS)}")
            if isinstance(method, Method):
                for kind in PARTS:
                    part_choice(getattr(method, kind), kind)
        except WeftError as error:
            raise ValueError(str(error)) from None
        return method

    @property
    def parts(self) -> Method:
        """The set of parts in use."""
        return METHODS[self.method] if isinstance(self.method, str) else self.method

    @property
    def n_frames(self) -> int:
        """Frames after the first, which shows the start."""
        return max(1, round(self.duration * self.fps))
