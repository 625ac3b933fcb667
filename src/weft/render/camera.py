"""A perspective camera, z up, and the framing that places it.

Image coordinates: x to the right and y down in pixels, the centre of the first pixel at (0.5, 0.5). Azimuth is where
the camera stands, anticlockwise from +x seen from above; elevation is how high it stands above the horizontal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats, as_positions
from weft.errors import WeftError

AZIMUTH = -62.0
ELEVATION = 24.0
FIELD_OF_VIEW = 28.0  # a long lens: verticals stay upright and near folds do not swell
MARGIN = 0.1
SMALLEST_DISTANCE = 1e-3  # [m], for a subject without extent
NEAREST_SHARE = 0.25  # no point of the subject comes nearer, as a share of the distance to its middle
NEAR_SHARE = 0.01  # the near plane, as a share of the distance to the subject


@dataclass(frozen=True)
class Camera:
    """Where the eye is and what it sees.

    Attributes
    ----------
    position : (3,) float64 [m]
    axes : (3, 3) float64, rows right, up and forward: orthonormal
    field_of_view : the full vertical angle [degrees]
    focus : distance to the subject along `forward` [m]; the ground fades out around it
    near : what is nearer than this along `forward` is cut away [m]
    """

    position: Floats
    axes: Floats
    field_of_view: float
    focus: float
    near: float

    def focal_length(self, height: int) -> float:
        """The distance from the eye to a picture of `height` pixels, in pixels."""
        return 0.5 * height / float(np.tan(np.radians(0.5 * self.field_of_view)))

    def project(self, positions: Floats, size: tuple[int, int]) -> Floats:
        """Homogeneous image coordinates: `(n, 3)` rows (X, Y, W), for the pixel (X / W, Y / W) at depth W [m].

        W is negative behind the eye, where X / W means nothing.
        """
        width, height = size
        focal = self.focal_length(height)
        # Written out, since a matrix product may round equal points in unequal ways and open a seam between triangles.
        x, y, z = (positions - self.position).T
        right, up, depth = (axis[0] * x + axis[1] * y + axis[2] * z for axis in self.axes)
        return np.stack([focal * right + 0.5 * width * depth, -focal * up + 0.5 * height * depth, depth], axis=1)


def look_at(
    position: npt.ArrayLike, target: npt.ArrayLike, field_of_view: float = FIELD_OF_VIEW, near: float | None = None
) -> Camera:
    """A camera at `position` that looks at `target`, upright."""
    eye, goal = _points(position, target, "camera")
    distance = float(np.linalg.norm(goal - eye))
    if distance == 0.0:
        raise WeftError("camera: position and target are the same point")
    x, y, z = (eye - goal) / distance
    axes = _axes(float(np.degrees(np.arctan2(y, x))), float(np.degrees(np.arcsin(np.clip(z, -1.0, 1.0)))))
    return Camera(eye, axes, _angle(field_of_view), distance, NEAR_SHARE * distance if near is None else near)


class Framing:
    """Finds the nearest place from which a camera, turned a given way, sees every point of every frame.

    Include the positions of all frames of an animation, then take the camera once: it does not move while the cloth
    does. Only six numbers are kept, so a long recording costs no memory, and the fit is exact: some point lies on
    the margin, unless the subject would come too near.

    Parameters
    ----------
    size : width and height of the picture [pixels]
    azimuth, elevation : where the camera stands [degrees]
    field_of_view : the full vertical angle [degrees]
    margin : share of the half picture that stays free on every side
    """

    def __init__(
        self,
        size: tuple[int, int],
        azimuth: float = AZIMUTH,
        elevation: float = ELEVATION,
        field_of_view: float = FIELD_OF_VIEW,
        margin: float = MARGIN,
    ) -> None:
        if not -90.0 <= elevation <= 90.0:
            raise WeftError(f"elevation: expected -90 to 90 degrees, got {elevation:g}")
        if not np.isfinite(azimuth):
            raise WeftError(f"azimuth: expected an angle in degrees, got {azimuth:g}")
        if not 0.0 <= margin < 1.0:
            raise WeftError(f"margin: expected 0 to less than 1, got {margin:g}")
        self.field_of_view = _angle(field_of_view)
        self.axes = _axes(azimuth, elevation)
        half_height = (1.0 - margin) * np.tan(np.radians(0.5 * self.field_of_view))
        self._slopes = np.array([half_height * size[0] / size[1], half_height])
        # A point (x, y, z) in the camera's axes is seen from c where |x - cx| <= sx (z - cz), and so for y. The
        # largest x - sx z and -x - sx z over all points therefore say all there is to know about x.
        self._most = np.full((2, 2), -np.inf)  # rows +, -; columns right, up
        self._depths = np.array([np.inf, -np.inf])

    def include(self, positions: npt.ArrayLike) -> None:
        """Add `(n, 3)` points that the camera must see [m]."""
        x = as_positions(positions)
        if len(x) == 0:
            return
        right, up, depth = self.axes @ x.T
        across = np.stack([right, up])
        back = self._slopes[:, None] * depth
        self._most = np.maximum(self._most, [(across - back).max(axis=1), (-across - back).max(axis=1)])
        self._depths = np.array([min(self._depths[0], depth.min()), max(self._depths[1], depth.max())])

    def camera(self) -> Camera:
        """The camera that sees all points included so far."""
        if not np.isfinite(self._depths).all():
            raise WeftError("camera: nothing to look at; include the positions of at least one frame")
        plus, minus = self._most
        across = 0.5 * (plus - minus)
        back = float((-0.5 * (plus + minus) / self._slopes).min())
        nearest, middle = float(self._depths[0]), float(self._depths.mean())
        # A long subject end on could come right up to the eye.
        back = min(back, (nearest - NEAREST_SHARE * middle) / (1.0 - NEAREST_SHARE))
        focus = max(middle - back, SMALLEST_DISTANCE)
        position = np.array([across[0], across[1], middle - focus]) @ self.axes
        return Camera(position, self.axes, self.field_of_view, focus, NEAR_SHARE * focus)


def frame_bounds(low: npt.ArrayLike, high: npt.ArrayLike, size: tuple[int, int], **view: float) -> Camera:
    """A camera that sees the box from `low` to `high`; `view` takes the angles and margin of `Framing`."""
    framing = Framing(size, **view)
    ends = _points(low, high, "bounds")
    framing.include([[ends[i, 0], ends[j, 1], ends[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    return framing.camera()


def _points(first: npt.ArrayLike, second: npt.ArrayLike, name: str) -> Floats:
    """Two points as rows."""
    rows = [np.atleast_1d(np.asarray(point, np.float64)) for point in (first, second)]
    if any(row.shape != (3,) for row in rows):
        raise WeftError(f"{name}: expected two points of three numbers")
    return as_positions(rows, name)


def _angle(field_of_view: float) -> float:
    if not 1.0 <= field_of_view <= 150.0:
        raise WeftError(f"field of view: expected 1 to 150 degrees, got {field_of_view:g}")
    return float(field_of_view)


def _axes(azimuth: float, elevation: float) -> Floats:
    """Right, up and forward of a camera that stands at these angles [degrees] and looks at the centre."""
    a, e = np.radians(azimuth), np.radians(elevation)
    return np.array(
        [
            [-np.sin(a), np.cos(a), 0.0],
            [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)],
            [-np.cos(e) * np.cos(a), -np.cos(e) * np.sin(a), -np.sin(e)],
        ]
    )
