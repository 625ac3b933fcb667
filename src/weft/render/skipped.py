"""The boxes of the cloth that a broad phase did not look at (paper 001, Fig. 5: its green boxes).

The search is the one of cloth against bodies over the step that ends in a frame. A search of the cloth against itself
looks at every box, since each has neighbours that it meets.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Floats
from weft.bodies import Body
from weft.collision.broad import BROAD_PHASES, join_meshes
from weft.collision.broad.picture import build_wireframe, untested_boxes
from weft.errors import WeftError
from weft.geometry.mesh import Mesh
from weft.render.colours import Colour
from weft.render.picture import BODY_CREASE, Surface
from weft.scene.build import build_bodies, build_world
from weft.simulation.recording import Recording

GREEN: Colour = (0.30, 0.78, 0.38)
BAR = 1.0 / 400.0  # thickness of a bar, in lengths of the cloth's box


class SkippedBoxes:
    """Finds, frame by frame, the largest boxes of a broad phase that need no test.

    Parameters
    ----------
    recording : its scene must have a body
    broad : name of a broad phase
    """

    def __init__(self, recording: Recording, broad: str) -> None:
        self.recording = recording
        self._bodies: list[Body] = build_bodies(recording.scene)
        if not self._bodies:
            raise WeftError(f"{recording.path}: has no collider to search against, so it has no boxes to show")
        member = BROAD_PHASES.load(broad)
        pieces = build_world(recording.scene).pieces
        self._cloth = member(join_meshes([piece.mesh for piece in pieces]))
        self._body = member(join_meshes([Mesh(*body.triangulate(0.0)) for body in self._bodies]))
        self._margin = max(piece.contact_distance for piece in pieces)

    def surface(self, frame: int) -> Surface | None:
        """The wires of the boxes that the step to `frame` skipped; None where all were looked at."""
        before = max(frame - 1, 0)
        x = self.recording.positions
        self._cloth.refit(x[before], x[frame], self._margin)
        self._body.refit(self._body_vertices(before), self._body_vertices(frame), self._margin)
        self._cloth.pairs(self._body)
        lower, upper, _ = untested_boxes(self._cloth, outermost=True)
        if not len(lower):
            return None
        wires = build_wireframe(lower, upper, BAR * float(np.ptp(x[frame], axis=0).max()))
        return Surface(*wires, GREEN, crease=BODY_CREASE, scenery=True)

    def _body_vertices(self, frame: int) -> Floats:
        time = frame / self.recording.fps
        return np.concatenate([body.triangulate(time)[0] for body in self._bodies])
