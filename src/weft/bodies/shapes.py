"""Shapes with exact signed distances: plane, box, sphere, capsule, cylinder.

Each is given in its own frame, centred on the origin (`weft.bodies` moves it). `distances` returns, for points
(n, 3), the signed distance to the surface [m], negative inside, and the outward unit normal, which is the gradient
of the distance: at an edge or a corner it points from the closest point of the body to the point.
"""

from __future__ import annotations

import numpy as np
from pydantic import field_validator

from weft.arrays import Floats, Ints
from weft.bodies.solids import CYLINDER, PLANE, ROUNDED_BOX, Solid
from weft.parameters import LARGEST, Length, Parameters, Vector, quantity

FAR = 50.0  # [m] half the side of the square that stands for a plane where a mesh is needed


class Shape(Parameters):
    """A collider's geometry. Every shape is convex: `weft.bodies.contacts` relies on it."""

    def solid(self) -> Solid:
        """The shape as kernels know it."""
        raise NotImplementedError

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        """Signed distances (n,) [m] and outward unit normals (n, 3) at local points (n, 3)."""
        from weft.bodies.distances import distances  # imports numba: not when a scene is only read

        return distances(self.solid(), points)

    def triangulate(self) -> tuple[Floats, Ints]:
        """A closed surface (a square for a plane) as positions and triangles, normals outward."""
        raise NotImplementedError


class Plane(Shape):
    """A half space: everything behind the plane is solid.

    [[collider]]
    plane = { normal = [0, 0, 1] }
    """

    normal: Vector = quantity("outward normal, of any length", default=(0.0, 0.0, 1.0))
    center: Vector = quantity("a point of the plane", unit="m", default=(0.0, 0.0, 0.0))

    @field_validator("normal")
    @classmethod
    def _has_direction(cls, normal: Vector) -> Vector:
        if max(map(abs, normal)) < 1e-6:
            raise ValueError("has no direction; give one, e.g. [0, 0, 1] for a floor")
        return normal

    def solid(self) -> Solid:
        return Solid(PLANE, np.array([*np.array(self.normal) / np.linalg.norm(self.normal), 0.0]))

    def triangulate(self) -> tuple[Floats, Ints]:
        n = np.array(self.normal) / np.linalg.norm(self.normal)
        a = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        a /= np.linalg.norm(a)
        b = np.cross(n, a)
        corners = FAR * np.array([-a - b, a - b, a + b, -a + b])
        return corners, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


class Box(Shape):
    """A box with sharp edges.

    [[collider]]
    box = { size = [0.5, 0.5, 0.7], center = [0, 0, 0.35] }
    """

    size: tuple[Length, Length, Length] = quantity("lengths of the sides", unit="m")
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def solid(self) -> Solid:
        return Solid(ROUNDED_BOX, np.array([*(0.5 * side for side in self.size), 0.0]))

    def triangulate(self) -> tuple[Floats, Ints]:
        corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
        quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
        return corners * np.array(self.size), np.array(triangles, np.int32)


class Sphere(Shape):
    """A ball.

    [[collider]]
    sphere = { radius = 0.2, center = [0, 0, 0.2] }
    """

    radius: float = quantity("radius", unit="m", ge=1e-4, le=LARGEST)
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def solid(self) -> Solid:
        return Solid(ROUNDED_BOX, np.array([0.0, 0.0, 0.0, self.radius]))

    def triangulate(self) -> tuple[Floats, Ints]:
        return _revolve(*_arc(self.radius, 0.0, -90.0, 90.0))


class Capsule(Shape):
    """A cylinder along its own z axis with round ends; `length` is between the centres of the ends.

    [[collider]]
    capsule = { radius = 0.02, length = 1, center = [0, 0, 0.5] }
    turn = [90, 0, 0]
    """

    radius: float = quantity("radius", unit="m", ge=1e-4, le=LARGEST)
    length: float = quantity("distance between the centres of the round ends", unit="m", ge=1e-4, le=LARGEST)
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def solid(self) -> Solid:
        return Solid(ROUNDED_BOX, np.array([0.0, 0.0, 0.5 * self.length, self.radius]))

    def triangulate(self) -> tuple[Floats, Ints]:
        low = _arc(self.radius, -0.5 * self.length, -90.0, 0.0)
        high = _arc(self.radius, 0.5 * self.length, 0.0, 90.0)
        return _revolve(np.concatenate([low[0], high[0]]), np.concatenate([low[1], high[1]]))


class Cylinder(Shape):
    """A cylinder along its own z axis with flat ends and sharp rims.

    [[collider]]
    cylinder = { radius = 0.3, length = 0.7, center = [0, 0, 0.35] }
    """

    radius: float = quantity("radius", unit="m", ge=1e-4, le=LARGEST)
    length: float = quantity("height", unit="m", ge=1e-4, le=LARGEST)
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def solid(self) -> Solid:
        return Solid(CYLINDER, np.array([self.radius, 0.5 * self.length, 0.0, 0.0]))

    def triangulate(self) -> tuple[Floats, Ints]:
        half = 0.5 * self.length
        return _revolve(np.array([0.0, self.radius, self.radius, 0.0]), np.array([-half, -half, half, half]))


def _arc(radius: float, height: float, first: float, last: float) -> tuple[Floats, Floats]:
    angles = np.deg2rad(np.linspace(first, last, 13))
    return radius * np.maximum(np.cos(angles), 0.0) * (np.abs(angles) < np.pi / 2 - 1e-9), height + radius * np.sin(
        angles
    )


def _revolve(radii: Floats, heights: Floats, sides: int = 48) -> tuple[Floats, Ints]:
    """Turn a profile that starts and ends on the z axis, from the bottom up, into a closed surface."""
    angle = np.arange(sides) * (2.0 * np.pi / sides)
    rings = [
        np.stack([r * np.cos(angle), r * np.sin(angle), np.full(sides, z)], axis=1)
        for r, z in zip(radii[1:-1], heights[1:-1], strict=True)
    ]
    positions = np.concatenate([[[0.0, 0.0, heights[0]]], *rings, [[0.0, 0.0, heights[-1]]]])
    here, there = np.arange(sides), (np.arange(sides) + 1) % sides
    top = len(positions) - 1
    parts = [np.stack([np.zeros(sides, int), 1 + there, 1 + here], axis=1)]
    for k in range(len(rings) - 1):
        low, high = 1 + k * sides, 1 + (k + 1) * sides
        parts.append(np.stack([low + here, low + there, high + there], axis=1))
        parts.append(np.stack([low + here, high + there, high + here], axis=1))
    last = 1 + (len(rings) - 1) * sides
    parts.append(np.stack([last + here, last + there, np.full(sides, top)], axis=1))
    return positions, np.concatenate(parts).astype(np.int32)
