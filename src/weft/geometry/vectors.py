"""Vectors of three numbers as tuples: what kernels compute with in registers."""

from __future__ import annotations

from weft.arrays import Floats
from weft.jit import kernel

Vector = tuple[float, float, float]


@kernel
def difference(x: Floats, i: int, y: Floats, j: int) -> Vector:
    """Row i of x minus row j of y."""
    return x[i, 0] - y[j, 0], x[i, 1] - y[j, 1], x[i, 2] - y[j, 2]


@kernel
def minus(u: Vector, v: Vector) -> Vector:
    return u[0] - v[0], u[1] - v[1], u[2] - v[2]


@kernel
def cross(u: Vector, v: Vector) -> Vector:
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


@kernel
def dot(u: Vector, v: Vector) -> float:
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
