"""Pictures and animations of a recording: what to draw in each frame, and from where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from weft.arrays import Bytes, Floats
from weft.bodies import Body
from weft.bodies.shapes import Plane
from weft.errors import WeftError
from weft.geometry.topology import build_topology
from weft.render.animation import is_animation, write_animation, write_picture
from weft.render.camera import Camera, Framing
from weft.render.colours import body_colour, cloth_colours
from weft.render.picture import BODY_CREASE, HeatScale, Surface, draw
from weft.render.skipped import SkippedBoxes
from weft.scene.build import build_bodies, build_world
from weft.simulation.recording import Recording

LEVEL = 0.999  # z of a plane's normal from which it is drawn as the floor
ANIMATION_FPS = 30.0  # shown; a recording with more frames a second is thinned
FRAMED = 40  # frames, evenly chosen, that the camera of an animation must show whole
FULL_HEAT = 0.05  # strain at the hot end of the stretch colours

__all__ = ["Film", "is_animation"]


class Film:
    """Draws the frames of one recording.

    Parameters
    ----------
    recording : what to draw
    size : width and height [pixels]
    azimuth, elevation : where the camera stands [degrees]
    stretch : colour the cloth by its strain
    boxes : name of a broad phase whose boxes are drawn where it did not look for contact with bodies
    """

    def __init__(
        self,
        recording: Recording,
        size: tuple[int, int],
        azimuth: float,
        elevation: float,
        stretch: bool = False,
        boxes: str | None = None,
    ) -> None:
        if len(recording) == 0:
            raise WeftError(f"{recording.path}: holds no frame yet; run its scene first")
        self.recording = recording
        self.size = size
        self._view = {"azimuth": azimuth, "elevation": elevation}
        self._bodies = build_bodies(recording.scene)
        floors = [body for body in self._bodies if _is_floor(body)]
        self._ground = max((float(body.start.position[2]) for body in floors), default=None)
        self._bodies = [body for body in self._bodies if body not in floors]
        self._skipped = None if boxes is None else SkippedBoxes(recording, boxes)
        self._stretch = stretch
        if stretch:
            world = build_world(recording.scene)
            self._edges = build_topology(recording.triangles, recording.n_vertices).edges
            rest = np.concatenate([piece.mesh.positions for piece in world.pieces])
            self._rest_lengths = _lengths(rest, self._edges)
        self._every = max(1, round(recording.fps / ANIMATION_FPS))

    @property
    def n_pictures(self) -> int:
        """Pictures in an animation."""
        return len(range(0, len(self.recording), self._every))

    def write_picture(self, path: Path, frame: int = -1) -> None:
        """Draw one frame; negative numbers count from the end."""
        count = len(self.recording)
        if not -count <= frame < count:
            raise WeftError(f"--frame {frame}: the recording has frames 0 to {count - 1}")
        frame %= count
        write_picture(path, self._draw(frame, self._camera([frame])))

    def write_sheet(self, path: Path, frames: Sequence[int], columns: int) -> None:
        """Draw several frames from one place, row by row."""
        camera = self._camera(list(frames))
        pictures = [self._draw(frame, camera) for frame in frames]
        pictures += [np.full_like(pictures[0], 255)] * (-len(pictures) % columns)
        rows = [np.concatenate(pictures[k : k + columns], axis=1) for k in range(0, len(pictures), columns)]
        write_picture(path, np.concatenate(rows))

    def write_animation(self, path: Path, advance: Callable[[int], None] | None = None) -> None:
        """Draw all frames, thinned to about 30 a second."""
        frames = range(0, len(self.recording), self._every)
        chosen = sorted({frames[int(k)] for k in np.linspace(0, len(frames) - 1, FRAMED)})
        camera = self._camera(chosen)

        def pictures() -> Iterator[Bytes]:
            for frame in frames:
                yield self._draw(frame, camera)

        write_animation(path, pictures(), self.recording.fps / self._every, advance)

    def _camera(self, frames: list[int]) -> Camera:
        framing = Framing(self.size, **self._view)
        for frame in frames:
            framing.include(self._positions(frame))
            for body in self._bodies:
                if not isinstance(body.shape, Plane):
                    framing.include(body.triangulate(frame / self.recording.fps)[0])
        return framing.camera()

    def _positions(self, frame: int) -> Floats:
        return np.asarray(self.recording.positions[frame], np.float64)

    def _draw(self, frame: int, camera: Camera) -> Bytes:
        x, triangles = self._positions(frame), self.recording.triangles
        surfaces = []
        strain = self._strain(x) if self._stretch else None
        for k, cloth in enumerate(self.recording.meta["cloth"]):
            first, last = cloth["first"], cloth["first"] + cloth["n_vertices"]
            own = triangles[(triangles[:, 0] >= first) & (triangles[:, 0] < last)] - first
            values = None if strain is None else strain[first:last]
            surfaces.append(Surface(x[first:last], own, *cloth_colours(k), values))
        for k, body in enumerate(self._bodies):
            mesh = body.triangulate(frame / self.recording.fps)
            scenery = isinstance(body.shape, Plane)
            surfaces.append(Surface(*mesh, body_colour(k), crease=BODY_CREASE, scenery=scenery))
        skipped = None if self._skipped is None else self._skipped.surface(frame)
        if skipped is not None:
            surfaces.append(skipped)
        heat = HeatScale(0.0, FULL_HEAT, "stretch") if self._stretch else None
        return draw(surfaces, camera, self.size, ground_height=self._ground, heat=heat)

    def _strain(self, x: Floats) -> Floats:
        """Mean strain of the edges at each vertex, compression counting as none."""
        strain = np.maximum(_lengths(x, self._edges) / self._rest_lengths - 1.0, 0.0)
        ends = self._edges.T.ravel()
        total = np.bincount(ends, np.tile(strain, 2), minlength=len(x))
        mean: Floats = total / np.bincount(ends, minlength=len(x))
        return mean


def _is_floor(body: Body) -> bool:
    if not isinstance(body.shape, Plane) or body.motion is not None:
        return False
    normal = body.start.rotation @ np.array(body.shape.normal)
    return bool(normal[2] >= LEVEL * np.linalg.norm(normal))


def _lengths(x: Floats, edges: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> Floats:
    ends = x[edges]
    lengths: Floats = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    return lengths
