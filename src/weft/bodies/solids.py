"""What a shape is to the kernels: a kind and a few numbers."""

from __future__ import annotations

from typing import NamedTuple

from weft.arrays import Floats

PLANE, ROUNDED_BOX, CYLINDER = 0, 1, 2


class Solid(NamedTuple):
    """A shape in its own frame."""

    kind: int
    size: Floats
    """(4,) a plane's unit normal; half the sides of a box and the radius that rounds it; a cylinder's radius and half
    its length [m]"""
