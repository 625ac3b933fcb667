"""What a picture contains, and how it is drawn: plain arrays in, `(height, width, 3)` bytes out.

See the package's own page for an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.arrays import Bytes, Floats, Ints, as_indices, as_positions
from weft.errors import WeftError
from weft.render.camera import Camera
from weft.render.colours import Colour, as_colour, heat_colours, to_linear
from weft.render.legend import draw_legend
from weft.render.lights import (
    Sky,
    build_key_light,
    build_sky,
    compute_sky_on_floor,
    compute_sky_on_triangles,
)
from weft.render.normals import compute_corner_normals
from weft.render.rasteriser import rasterise, sample_offsets
from weft.render.shading import shade
from weft.render.spots import (
    BACK,
    CORNER_COLUMNS,
    EDGE,
    FRONT,
    HAS_HEAT,
    HEAT,
    IS_CLOTH,
    IS_SCENERY,
    MATERIAL_COLUMNS,
    NORMAL,
    POINT,
    Drawn,
    Ground,
    View,
)

SIZE = (960, 720)
BODY_CREASE = 40.0  # degrees: a box keeps its edges, a sphere and a capsule are round
KEY_TURN, KEY_ELEVATION = -48.0, 47.0  # degrees: where the key light stands, seen from the camera
GROUND_REACH = 4.6  # radius of the floor, in half widths of the view at the subject
GROUND_TOLERANCE = 5e-4  # as a share of the distance to the subject
SKY_STEP = 4.0  # texels of a sky map between points where sky light is known on a body
SKY_MOST_STEPS = 96
SKY_GRID = 72  # points a side of the grid that holds the sky light on the floor
HEAT_STEPS = 512
FLAT = 1.0 - 1e-9  # cosine between neighbours that count as one plane, whatever the crease: a triangle is its own
LARGEST_SIDE = 8192
MOST_SAMPLES = 300_000_000  # at 8 bytes each


@dataclass(frozen=True)
class Surface:
    """A triangle mesh to be drawn.

    Attributes
    ----------
    positions : (n, 3) [m]
    triangles : (m, 3), anticlockwise seen from the front
    front, back : colours of the two sides; a body has one, so its back may be left out
    values : (n,) or (m,) numbers shown as a heat map in place of the colours, by vertex or by triangle
    crease : degrees; edges sharper than this stay sharp. None smooths over all of them, as cloth wants
    scenery : True for a large plane or lines: takes shadows but throws none, and fades into the backdrop like the floor
    """

    positions: npt.ArrayLike
    triangles: npt.ArrayLike
    front: Colour
    back: Colour | None = None
    values: npt.ArrayLike | None = None
    crease: float | None = None
    scenery: bool = False


@dataclass(frozen=True)
class HeatScale:
    """The values at the cold and the hot end of the heat map, and the words beside its bar.

    Give the same scale to all pictures of an animation.
    """

    low: float
    high: float
    label: str = ""


def draw(
    surfaces: Sequence[Surface],
    camera: Camera,
    size: tuple[int, int] = SIZE,
    *,
    ground_height: float | None = None,
    heat: HeatScale | None = None,
    supersampling: int = 2,
) -> Bytes:
    """Draw a picture.

    Parameters
    ----------
    surfaces : cloths and bodies, in any order
    camera : as from `Framing.camera`
    size : width and height [pixels]
    ground_height : z of a level floor [m]; None draws no floor
    heat : the scale of the surfaces' values; without it, from their smallest to their largest
    supersampling : samples a pixel and side: 2 takes four samples, 1 draws fast and jagged

    Returns
    -------
    image : (height, width, 3) uint8, sRGB
    """
    if not 1 <= supersampling <= 4:
        raise WeftError(f"supersampling: expected 1 to 4, got {supersampling}")
    width, height = check_size(size, supersampling)
    if ground_height is not None and not np.isfinite(ground_height):
        raise WeftError(f"ground_height: expected a height in metres, got {ground_height}")
    scale = _scale_of(surfaces, heat)
    scene = _gather(surfaces, scale)
    key = build_key_light(key_direction(camera), scene.x, scene.casters)
    sky = build_sky(scene.x, scene.casters)
    projected = np.ones((len(scene.x), 4))
    projected[:, :3] = camera.project(scene.x, (width, height))
    offsets = sample_offsets(supersampling)
    keys = np.empty((height, width, len(offsets)), np.float32)
    ids = np.empty((height, width, len(offsets)), np.int32)
    rasterise(projected, scene.triangles, offsets, camera.near, keys, ids)
    drawn = _at_corners(scene, projected, sky)
    ground, ground_sky = _build_ground(camera, (width, height), ground_height, scene, sky)
    view = _build_view(camera, width, height)
    ramp = to_linear(heat_colours(np.linspace(0.0, 1.0, HEAT_STEPS)))
    image = np.empty((height, width, 3), np.uint8)
    shade(view, drawn, ground, ground_sky, key, ramp, offsets, keys, ids, image)
    return image if scale is None else draw_legend(image, scale.low, scale.high, scale.label)


def _build_view(camera: Camera, width: int, height: int) -> View:
    """The camera as the kernels read it."""
    middle = (0.5 * width, 0.5 * height)
    numbers = (*camera.position, *camera.axes.ravel(), 1.0 / camera.focal_length(height), *middle)
    return View(*(float(number) for number in numbers))


def check_size(size: tuple[int, int], supersampling: int = 2) -> tuple[int, int]:
    """Refuse a picture that cannot be made, or would not fit in memory."""
    width, height = (int(side) for side in size)
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
        raise WeftError(f"size: expected 1 to {LARGEST_SIDE} pixels a side, got {size[0]} x {size[1]}")
    if width * height * supersampling**2 > MOST_SAMPLES:
        raise WeftError(f"size: {width} x {height} pixels with supersampling {supersampling} need too much memory")
    return width, height


def key_direction(camera: Camera) -> Floats:
    """The unit vector to the key light: over the camera's left shoulder, whichever way it looks."""
    right = camera.axes[0]
    towards_camera = np.array([right[1], -right[0], 0.0])
    turn, elevation = np.radians(KEY_TURN), np.radians(KEY_ELEVATION)
    level = np.cos(turn) * towards_camera + np.sin(turn) * right
    return np.asarray(np.cos(elevation) * level + np.array([0.0, 0.0, np.sin(elevation)]), np.float64)


def _scale_of(surfaces: Sequence[Surface], heat: HeatScale | None) -> HeatScale | None:
    """The scale asked for, or from the smallest to the largest value; None where no surface has values."""
    values = [_values_of(surface, index) for index, surface in enumerate(surfaces) if surface.values is not None]
    if not values:
        return None
    if heat is None:
        joined = np.concatenate([each.ravel() for each in values])
        return HeatScale(float(joined.min(initial=np.inf)), float(joined.max(initial=-np.inf)))
    if not heat.low < heat.high:
        raise WeftError(f"heat scale: expected low < high, got {heat.low:g} and {heat.high:g}")
    return heat


def _values_of(surface: Surface, index: int) -> Floats:
    """The values of a surface, as finite numbers."""
    try:
        values = np.asarray(surface.values, np.float64)
    except (TypeError, ValueError):
        raise WeftError(f"values of surface {index}: expected numbers") from None
    if not np.isfinite(values).all():
        raise WeftError(f"values of surface {index}: number {int(np.argmin(np.isfinite(values)))} is NaN or infinite")
    return values


def _heat_at_corners(surface: Surface, index: int, triangles: Ints, n_vertices: int, scale: HeatScale | None) -> Floats:
    """`(m, 3)` values from 0 to 1; 0 where the surface has none."""
    if scale is None or surface.values is None:
        return np.zeros((len(triangles), 3))
    values = _values_of(surface, index)
    if values.shape not in ((n_vertices,), (len(triangles),)):
        raise WeftError(
            f"values of surface {index}: expected {n_vertices} (by vertex) or {len(triangles)} (by triangle), "
            f"got shape {values.shape}"
        )
    share = (values - scale.low) / (scale.high - scale.low) if scale.high > scale.low else np.zeros_like(values)
    return share[triangles] if len(values) == n_vertices else np.repeat(share[:, None], 3, axis=1)


class _Scene(NamedTuple):
    """All surfaces as one mesh."""

    x: Floats
    triangles: Ints
    owners: Ints
    crease_cosines: Floats
    heat: Floats
    materials: Floats
    casters: Ints
    """those of the triangles that cast shadows"""


def _gather(surfaces: Sequence[Surface], scale: HeatScale | None) -> _Scene:
    """Check all surfaces and join them."""
    positions, triangles, casters = [np.zeros((0, 3))], [np.zeros((0, 3), np.int32)], [np.zeros((0, 3), np.int32)]
    heat, creases, owners = [np.zeros((0, 3))], [np.zeros(0)], [np.zeros(0, np.int32)]
    materials = np.zeros((len(surfaces), MATERIAL_COLUMNS))
    n = 0
    for index, surface in enumerate(surfaces):
        x = as_positions(surface.positions, f"positions of surface {index}")
        faces = as_indices(surface.triangles, len(x), name=f"triangles of surface {index}")
        heat.append(_heat_at_corners(surface, index, faces, len(x), scale))
        materials[index, FRONT : FRONT + 3] = to_linear(as_colour(surface.front, f"front of surface {index}"))
        back = surface.front if surface.back is None else surface.back
        materials[index, BACK : BACK + 3] = to_linear(as_colour(back, f"back of surface {index}"))
        materials[index, IS_CLOTH] = surface.crease is None
        materials[index, HAS_HEAT] = surface.values is not None
        materials[index, IS_SCENERY] = surface.scenery
        creases.append(np.full(len(faces), _crease_cosine(surface.crease, index)))
        positions.append(x)
        triangles.append(faces + np.int32(n))
        owners.append(np.full(len(faces), index, np.int32))
        if not surface.scenery:
            casters.append(triangles[-1])
        n += len(x)
    return _Scene(
        np.concatenate(positions),
        np.concatenate(triangles),
        np.concatenate(owners),
        np.concatenate(creases),
        np.concatenate(heat),
        materials,
        np.concatenate(casters),
    )


def _crease_cosine(crease: float | None, index: int) -> float:
    """The cosine above which neighbours are smoothed together; -2 takes all of them."""
    if crease is None:
        return -2.0
    if not 0.0 <= crease <= 180.0:
        raise WeftError(f"crease of surface {index}: expected 0 to 180 degrees, got {crease:g}")
    return min(float(np.cos(np.radians(crease))), FLAT)


def _at_corners(scene: _Scene, places: Floats, sky: Sky) -> Drawn:
    """What the shading reads of every triangle."""
    faces = scene.triangles
    normals = compute_corner_normals(scene.x, faces, scene.crease_cosines)
    corners = np.empty((len(faces), 3, CORNER_COLUMNS))
    corners[:, :, POINT : POINT + 3] = scene.x[faces]
    corners[:, :, NORMAL : NORMAL + 3] = normals
    seen = places[faces, :3]
    for k in range(3):
        corners[:, k, EDGE : EDGE + 3] = np.cross(seen[:, k - 2], seen[:, k - 1])
    corners[:, :, HEAT] = scene.heat
    # Cloth has its sky light at the corners. A body may have few, large triangles: theirs are divided more finely.
    sides = corners[:, :, :3] - corners[:, [1, 2, 0], :3]
    longest = np.sqrt((sides**2).sum(axis=2).max(axis=1, initial=0.0))
    orders = np.clip(np.ceil(longest / (SKY_STEP * sky.frames[0, 2, 3])), 1, SKY_MOST_STEPS).astype(np.int32)
    orders[scene.materials[scene.owners, IS_CLOTH] > 0.0] = 1
    starts = np.zeros(len(faces) + 1, np.int32)
    np.cumsum((orders + 1) * (orders + 2) // 2, out=starts[1:])
    light = compute_sky_on_triangles(scene.x, faces, normals, orders, starts, sky)
    # The picture's y runs down, so a front has its corners clockwise there: a . (b x c) is negative.
    is_back = np.einsum("mi,mi->m", seen[:, 0], corners[:, 0, EDGE : EDGE + 3]) > 0.0
    tags = np.stack([scene.owners, orders, starts[:-1], is_back.astype(np.int32)], axis=1)
    return Drawn(corners, tags, light, scene.materials)


def _build_ground(
    camera: Camera, size: tuple[int, int], height: float | None, scene: _Scene, sky: Sky
) -> tuple[Ground, Floats]:
    """The floor under what is drawn, and the sky light on it."""
    half_width = float(camera.focus * np.tan(np.radians(0.5 * camera.field_of_view)) * max(1.0, size[0] / size[1]))
    subject = camera.position + camera.focus * camera.axes[2]
    corner, cell, light = np.zeros(2), 1.0, np.ones((2, 2))
    if height is not None and len(scene.casters):
        corner, cell, light = _sky_on_floor(height, scene.x[np.unique(scene.casters)], sky)
    tolerance = GROUND_TOLERANCE * camera.focus
    ground = Ground(
        height=-np.inf if height is None else float(height),
        is_pierced=height is not None and bool((scene.x[:, 2] < height - tolerance).any()),
        tolerance=tolerance,
        centre_x=float(subject[0]),
        centre_y=float(subject[1]),
        inv_radius=1.0 / (GROUND_REACH * half_width),
        spacing=_round_number(0.5 * half_width),
        corner_x=float(corner[0]),
        corner_y=float(corner[1]),
        inv_cell=1.0 / cell,
    )
    return ground, light


def _sky_on_floor(height: float, used: Floats, sky: Sky) -> tuple[Floats, float, Floats]:
    """The first point, the cell and the sky light of a square grid on the floor around the points `used`."""
    low, high = used.min(axis=0), used.max(axis=0)
    reach = 1.5 * max(high[2] - height, 0.0) + 0.1 * float((high - low).max())
    corner = low[:2] - reach
    cell = float((high[:2] - corner + reach).max()) / (SKY_GRID - 1)
    steps = np.arange(SKY_GRID) * cell
    light = compute_sky_on_floor(corner + steps[:, None], height, sky)
    # The grid ends where little is hidden; let that little fade, so that no edge shows.
    edge = np.minimum(1.0, 8.0 * np.minimum(steps, steps[::-1]) / steps[-1])
    light = _blur(_blur(light).T).T
    return corner, cell, np.ascontiguousarray(1.0 - (1.0 - light) * edge[:, None] * edge[None, :])


def _blur(rows: Floats) -> Floats:
    """Each row mixed with its neighbours, 1 : 2 : 1, lest the shadows from the sky's few directions show."""
    padded = np.concatenate([rows[:1], rows, rows[-1:]])
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]


def _round_number(value: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is not above `value`."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-9)))
    return float(power * max(k for k in (1.0, 2.0, 5.0) if k * power <= value * (1.0 + 1e-9)))
