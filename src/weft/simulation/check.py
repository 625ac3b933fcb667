"""The certificate of what is on disk, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, as_positions
from weft.bodies import Body
from weft.bodies.shapes import Plane
from weft.collision.certificate import intersections, self_intersections
from weft.errors import WeftError
from weft.geometry.mesh import read_mesh
from weft.scene.build import build_bodies
from weft.simulation.recording import Recording


class Count(NamedTuple):
    """Pairs of triangles that cross in one frame."""

    itself: int
    bodies: int

    @property
    def crossing(self) -> bool:
        return self.itself + self.bodies > 0


def check_mesh_file(path: Path) -> Count:
    """Count the crossings of a mesh with itself."""
    mesh = read_mesh(path)
    return Count(len(self_intersections(mesh.positions, mesh.triangles)), 0)


def check_recording(recording: Recording) -> Iterator[Count]:
    """Count the crossings of every recorded frame, from the numbers on disk and the bodies of its scene."""
    bodies = build_bodies(recording.scene)
    for k, positions in enumerate(recording.positions):
        try:
            x = as_positions(np.asarray(positions, np.float64), f"frame {k}")
        except WeftError as error:
            raise WeftError(f"{recording.path}: {error}") from None
        crossing = len(self_intersections(x, recording.triangles))
        yield Count(crossing, sum(_through(x, recording, body, k / recording.fps) for body in bodies))


def _through(x: Floats, recording: Recording, body: Body, time: float) -> int:
    """Cloth triangles that cross a body; for a plane, those with a corner behind it."""
    if isinstance(body.shape, Plane):
        behind = body.distances(x, time)[0] < 0.0
        return int(behind[recording.triangles].any(axis=1).sum())
    return len(intersections(x, recording.triangles, *body.triangulate(time)))
