"""Shapes with exact signed distances: plane, box, sphere, capsule, cylinder.

Each is given in its own frame, centred on the origin (`weft.bodies` moves it). `distances` returns, for points
(n, 3), the signed distance to the surface [m], negative inside, and the outward unit normal, which is the gradient
of the distance: at an edge or a corner it points from the closest point of the body to the point. In numpy: a few
thousand points take less than 0.1 ms, below the rest of a step.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from pydantic import field_validator

from weft.arrays import Floats, Ints
from weft.parameters import LARGEST, Length, Parameters, Vector, quantity

FAR = 50.0  # [m] half the side of the square that stands for a plane where a mesh is needed


class Shape(Protocol):
    """What a collider's geometry must answer. Every shape is convex: `weft.bodies` relies on it."""

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        """Signed distances (n,) [m] and outward unit normals (n, 3) at local points (n, 3)."""

    def triangulate(self) -> tuple[Floats, Ints]:
        """A closed surface (a square for a plane) as positions and triangles, normals outward."""


class Plane(Parameters):
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

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        n = np.array(self.normal) / np.linalg.norm(self.normal)
        return points @ n, np.broadcast_to(n, points.shape).copy()

    def triangulate(self) -> tuple[Floats, Ints]:
        n = np.array(self.normal) / np.linalg.norm(self.normal)
        a = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        a /= np.linalg.norm(a)
        b = np.cross(n, a)
        corners = FAR * np.array([-a - b, a - b, a + b, -a + b])
        return corners, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


class Box(Parameters):
    """A box with sharp edges.

    [[collider]]
    box = { size = [0.5, 0.5, 0.7], center = [0, 0, 0.35] }
    """

    size: tuple[Length, Length, Length] = quantity("lengths of the sides", unit="m")
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        q = np.abs(points) - 0.5 * np.array(self.size)
        sign = np.where(points < 0.0, -1.0, 1.0)
        outside = np.maximum(q, 0.0)
        far = np.linalg.norm(outside, axis=1)
        face = np.argmax(q, axis=1)
        inside = far == 0.0
        normals = np.divide(outside, far[:, None], out=np.zeros_like(points), where=~inside[:, None])
        normals[inside, face[inside]] = 1.0
        return np.where(inside, q.max(axis=1), far), sign * normals

    def triangulate(self) -> tuple[Floats, Ints]:
        corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
        quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
        return corners * np.array(self.size), np.array(triangles, np.int32)


class Sphere(Parameters):
    """A ball.

    [[collider]]
    sphere = { radius = 0.2, center = [0, 0, 0.2] }
    """

    radius: float = quantity("radius", unit="m", ge=1e-4, le=LARGEST)
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        far, normals = _radial(points)
        return far - self.radius, normals

    def triangulate(self) -> tuple[Floats, Ints]:
        return _revolve(*_arc(self.radius, 0.0, -90.0, 90.0))


class Capsule(Parameters):
    """A cylinder along its own z axis with round ends; `length` is between the centres of the ends.

    [[collider]]
    capsule = { radius = 0.02, length = 1, center = [0, 0, 0.5] }
    turn = [90, 0, 0]
    """

    radius: float = quantity("radius", unit="m", ge=1e-4, le=LARGEST)
    length: float = quantity("distance between the centres of the round ends", unit="m", ge=1e-4, le=LARGEST)
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        axis = np.zeros_like(points)
        axis[:, 2] = np.clip(points[:, 2], -0.5 * self.length, 0.5 * self.length)
        far, normals = _radial(points - axis)
        return far - self.radius, normals

    def triangulate(self) -> tuple[Floats, Ints]:
        low = _arc(self.radius, -0.5 * self.length, -90.0, 0.0)
        high = _arc(self.radius, 0.5 * self.length, 0.0, 90.0)
        return _revolve(np.concatenate([low[0], high[0]]), np.concatenate([low[1], high[1]]))


class Cylinder(Parameters):
    """A cylinder along its own z axis with flat ends and sharp rims.

    [[collider]]
    cylinder = { radius = 0.3, length = 0.7, center = [0, 0, 0.35] }
    """

    radius: float = quantity("radius", unit="m", ge=1e-4, le=LARGEST)
    length: float = quantity("height", unit="m", ge=1e-4, le=LARGEST)
    center: Vector = quantity("centre", unit="m", default=(0.0, 0.0, 0.0))

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        flat = points.copy()
        flat[:, 2] = 0.0
        rho, radial = _radial(flat)
        axial = np.zeros_like(points)
        axial[:, 2] = np.where(points[:, 2] < 0.0, -1.0, 1.0)
        q = np.stack([rho - self.radius, np.abs(points[:, 2]) - 0.5 * self.length], axis=1)
        outside = np.maximum(q, 0.0)
        far = np.linalg.norm(outside, axis=1)
        inside = far == 0.0
        weights = np.divide(outside, far[:, None], out=np.zeros_like(q), where=~inside[:, None])
        weights[inside, np.argmax(q, axis=1)[inside]] = 1.0
        normals = weights[:, :1] * radial + weights[:, 1:] * axial
        return np.where(inside, q.max(axis=1), far), normals

    def triangulate(self) -> tuple[Floats, Ints]:
        half = 0.5 * self.length
        return _revolve(np.array([0.0, self.radius, self.radius, 0.0]), np.array([-half, -half, half, half]))


def _radial(points: Floats) -> tuple[Floats, Floats]:
    """Lengths and directions; the direction at the origin is +x, any being as right."""
    far = np.linalg.norm(points, axis=1)
    at_origin = far == 0.0
    normals = np.divide(points, far[:, None], out=np.zeros_like(points), where=~at_origin[:, None])
    normals[at_origin, 0] = 1.0
    return far, normals


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
