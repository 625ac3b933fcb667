"""From visible triangles to light: cloth, bodies, the ground and the backdrop, one pixel at a time.

Each triangle seen in a pixel is shaded once, in the middle of its samples there, and counts by their share: edges are
smooth while a pixel inside a triangle costs one shading, not four. All light is linear; the last step is the tone curve.

Numba counts a reference, atomically, for every array that a function passes on to another one: that made the picture
three times slower. So the loop over rows, which holds all arrays, asks for the spot that is seen, for the lights on it and for
what it reflects, one after the other; none of these hands an array on to a function too large to be inlined.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.arrays import Bytes, Floats, Ints
from weft.jit import kernel
from weft.render.colours import to_srgb
from weft.render.jobs import run_bands
from weft.render.lights import KeyLight, compute_key_share, lattice_index
from weft.render.rasteriser import NOTHING, Keys, Triple, edge_functions

# Linear light. The key is a warm lamp over the camera's left shoulder, the sky is cool, the bounce comes from the floor.
KEY_COLOUR = (1.02, 0.965, 0.89)
SKY_COLOUR = (0.40, 0.435, 0.48)
BOUNCE_COLOUR = (0.185, 0.175, 0.165)
AMBIENT = 0.10  # share of the sky light that gets everywhere: no corner is black
SHEEN = 0.26  # light that fibres standing off the cloth catch at grazing angles
GLOSS = 0.03  # a broad, weak highlight

GROUND_COLOUR = (0.565, 0.56, 0.55)
BACKDROP_TOP = (0.60, 0.615, 0.635)
BACKDROP_BOTTOM = (0.74, 0.735, 0.725)
FADE_START = 0.3  # where the floor begins to fade, as a share of its radius
FARTHEST = 1e9  # [m], in place of infinity
GRID_STRENGTH = 0.13  # how much darker the ground is on a grid line
GRID_WIDTH = 0.012  # width of a line, as a share of the spacing

CURVE_STEPS = 4096
CURVE_TOP = 1.6  # linear light that comes out white
SHOULDER = 0.72  # linear light above which the tone curve bends

BANDS = 36
DONE = -2  # a sample that has been shaded

# Columns of a triangle's corner.
POINT, NORMAL, PLACE, HEAT, CORNER_COLUMNS = 0, 3, 6, 9, 10
# Columns of a material.
FRONT, BACK, IS_CLOTH, HAS_HEAT, IS_SCENERY, MATERIAL_COLUMNS = 0, 3, 6, 7, 8, 9


class View(NamedTuple):
    """The camera, as the kernels read it: numbers only."""

    eye_x: float
    eye_y: float
    eye_z: float
    right_x: float
    right_y: float
    right_z: float
    up_x: float
    up_y: float
    up_z: float
    forward_x: float
    forward_y: float
    forward_z: float
    inv_focal: float
    """one over the distance of the picture from the eye [1 / pixel]"""
    middle_x: float
    middle_y: float
    """the middle of the picture [pixels]"""


class Drawn(NamedTuple):
    """All surfaces of a picture, triangle by triangle."""

    corners: Floats
    """(m, 3, CORNER_COLUMNS): point [m], unit normal, place (X, Y, W) in the picture, heat from 0 to 1"""
    tags: Ints
    """(m, 3): the surface of each triangle, and the order and first point of its sky light"""
    sky: Floats
    """(l, 4): as from `compute_sky_on_triangles`"""
    materials: Floats
    """(s, MATERIAL_COLUMNS): front and back colour in linear light, then switches: cloth, heat map, scenery"""


class Ground(NamedTuple):
    """The floor: a disc of the plane z = height that fades into the backdrop. Lengths in metres."""

    height: float
    """-inf where there is no floor"""
    is_pierced: bool
    """whether anything reaches below the floor"""
    tolerance: float
    """what lies less than this below the floor still shows: cloth at rest is not speckled by it"""
    centre_x: float
    centre_y: float
    inv_radius: float
    """one over the distance at which the disc has faded out"""
    spacing: float
    """of the grid lines"""
    corner_x: float
    corner_y: float
    inv_cell: float
    """first point of, and one over the cell of, the grid that holds the sky light on the floor"""


class Spot(NamedTuple):
    """A point that is seen, ready for the lights."""

    point: Triple
    """[m]"""
    normal: Triple
    """unit, on the eye's side"""
    to_eye: Triple
    """unit"""
    albedo: Triple
    """linear"""
    sheen: float
    irradiance: float
    """from the sky; 1 on a level face in the open"""
    seen: float
    """share of the sky"""
    is_floor: bool
    """the floor is matt"""
    fade: float
    """how much of it stands before the backdrop"""


def tone_curve() -> Bytes:
    """`(CURVE_STEPS,) uint8`: the sRGB byte of linear light from 0 to CURVE_TOP.

    The identity up to SHOULDER, then an arc that begins with the same slope and reaches white at CURVE_TOP: a bright
    fold keeps its shape.
    """
    light = np.linspace(0.0, CURVE_TOP, CURVE_STEPS)
    reach = np.clip((light - SHOULDER) / (CURVE_TOP - SHOULDER), 0.0, 1.0)
    power = (CURVE_TOP - SHOULDER) / (1.0 - SHOULDER)
    bent = SHOULDER + (1.0 - SHOULDER) * (1.0 - (1.0 - reach) ** power)
    return np.asarray(np.rint(255.0 * to_srgb(np.where(light < SHOULDER, light, bent))), np.uint8)


@kernel
def _unit(x: float, y: float, z: float) -> Triple:
    length = math.sqrt(x * x + y * y + z * z)
    scale = 1.0 / length if length > 0.0 else 0.0
    return x * scale, y * scale, z * scale


@kernel
def _dot(a: Triple, b: Triple) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def _ray(view: View, x: float, y: float) -> Triple:
    """The direction through a place in the picture, as long as its depth is 1."""
    right, up = (x - view.middle_x) * view.inv_focal, (view.middle_y - y) * view.inv_focal
    return (
        view.forward_x + right * view.right_x + up * view.up_x,
        view.forward_y + right * view.right_y + up * view.up_y,
        view.forward_z + right * view.right_z + up * view.up_z,
    )


@kernel
def _mix(weights: Triple, corners: Floats, ti: int, column: int) -> float:
    """A column of a triangle's corners, between them."""
    return (
        weights[0] * corners[ti, 0, column] + weights[1] * corners[ti, 1, column] + weights[2] * corners[ti, 2, column]
    )


@kernel
def _weights_at(corners: Floats, ti: int, x: float, y: float) -> Triple:
    """What each corner counts at a place in the picture, seen in perspective."""
    ea, eb, ec, _ = edge_functions(
        (corners[ti, 0, PLACE], corners[ti, 0, PLACE + 1], corners[ti, 0, PLACE + 2]),
        (corners[ti, 1, PLACE], corners[ti, 1, PLACE + 1], corners[ti, 1, PLACE + 2]),
        (corners[ti, 2, PLACE], corners[ti, 2, PLACE + 1], corners[ti, 2, PLACE + 2]),
    )
    here = (x, y, 1.0)
    a, b, c = _dot(ea, here), _dot(eb, here), _dot(ec, here)
    scale = 1.0 / (a + b + c)
    return a * scale, b * scale, c * scale


@kernel
def _is_back(corners: Floats, ti: int, to_eye: Triple) -> bool:
    """Whether the eye sees the back of a triangle."""
    ux, uy = corners[ti, 1, 0] - corners[ti, 0, 0], corners[ti, 1, 1] - corners[ti, 0, 1]
    uz, vz = corners[ti, 1, 2] - corners[ti, 0, 2], corners[ti, 2, 2] - corners[ti, 0, 2]
    vx, vy = corners[ti, 2, 0] - corners[ti, 0, 0], corners[ti, 2, 1] - corners[ti, 0, 1]
    return _dot((uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx), to_eye) < 0.0


@kernel
def _normal_towards_eye(weights: Triple, corners: Floats, ti: int, to_eye: Triple, is_back: bool) -> Triple:
    """The smooth unit normal on the eye's side."""
    sign = -1.0 if is_back else 1.0
    x, y, z = _unit(
        sign * _mix(weights, corners, ti, NORMAL),
        sign * _mix(weights, corners, ti, NORMAL + 1),
        sign * _mix(weights, corners, ti, NORMAL + 2),
    )
    away = _dot((x, y, z), to_eye)
    if away < 0.0:  # it looks past the silhouette: bend it back to the edge
        return _unit(x - away * to_eye[0], y - away * to_eye[1], z - away * to_eye[2])
    return x, y, z


@kernel
def _rounded(weights: Triple, corners: Floats, ti: int, point: Triple, sign: float) -> Triple:
    """A point of a triangle moved out to the smooth surface that its corner normals stand for.

    Shading pretends that the cloth is smooth, while its triangles throw facetted shadows on one another where light
    grazes. Seen from the tangent planes of the corners the point is above the facets (Hanika 2021, "Hacking the
    shadow terminator"): p + sum_i w_i max(0, (v_i - p) . n_i) n_i. `sign` is -1 on the back.
    """
    x, y, z = point
    for k in range(3):
        nx, ny, nz = corners[ti, k, NORMAL], corners[ti, k, NORMAL + 1], corners[ti, k, NORMAL + 2]
        gap = (corners[ti, k, 0] - point[0]) * nx + (corners[ti, k, 1] - point[1]) * ny
        gap = sign * (gap + (corners[ti, k, 2] - point[2]) * nz)
        lift = sign * weights[k] * max(0.0, gap)
        x, y, z = x + lift * nx, y + lift * ny, z + lift * nz
    return x, y, z


@kernel
def _sky_at(weights: Triple, tags: Ints, sky: Floats, ti: int, column: int) -> tuple[float, float]:
    """Irradiance and seen share of the sky, between the three points of a triangle's lattice around a place."""
    order, start = tags[ti, 1], tags[ti, 2]
    u, v = order * min(max(weights[1], 0.0), 1.0), order * min(max(weights[2], 0.0), 1.0)
    i, j = int(u), int(v)
    over = max(0, i + j + 1 - order)  # on the far edge, step back into the last cell
    take = min(over, i)
    i, j = i - take, j - (over - take)
    fu, fv = u - i, v - j
    near, b, c = lattice_index(order, i, j), lattice_index(order, i + 1, j), lattice_index(order, i, j + 1)
    if fu + fv > 1.0 and i + j + 2 <= order:  # the upper half of the cell
        near = lattice_index(order, i + 1, j + 1)
        b, c = c, b
        fu, fv = 1.0 - fu, 1.0 - fv
    near, b, c = near + start, b + start, c + start
    irradiance = (
        sky[near, column] + fu * (sky[b, column] - sky[near, column]) + fv * (sky[c, column] - sky[near, column])
    )
    column += 1
    seen = sky[near, column] + fu * (sky[b, column] - sky[near, column]) + fv * (sky[c, column] - sky[near, column])
    return irradiance, seen


@kernel
def _fade(x: float, y: float, ground: Ground) -> float:
    """1 around the subject, 0 from the edge of the floor on."""
    away = math.sqrt((x - ground.centre_x) ** 2 + (y - ground.centre_y) ** 2) * ground.inv_radius
    t = min(1.0, max(0.0, (away - FADE_START) * (1.0 / (1.0 - FADE_START))))
    return 1.0 - t * t * (3.0 - 2.0 * t)


@kernel
def _surface_spot(
    x: float,
    y: float,
    ti: int,
    view: View,
    ground: Ground,
    corners: Floats,
    tags: Ints,
    sky: Floats,
    materials: Floats,
    heat_colours: Floats,
) -> Spot:
    """What triangle ti shows at a place in the picture."""
    weights = _weights_at(corners, ti, x, y)
    point = (_mix(weights, corners, ti, 0), _mix(weights, corners, ti, 1), _mix(weights, corners, ti, 2))
    to_eye = _unit(view.eye_x - point[0], view.eye_y - point[1], view.eye_z - point[2])
    is_back = _is_back(corners, ti, to_eye)
    normal = _normal_towards_eye(weights, corners, ti, to_eye, is_back)
    si = tags[ti, 0]
    side = BACK if is_back else FRONT
    share = min(max(_mix(weights, corners, ti, HEAT), 0.0), 1.0) * materials[si, HAS_HEAT]
    step = int(share * (len(heat_colours) - 1) + 0.5)
    albedo = (heat_colours[step, 0], heat_colours[step, 1], heat_colours[step, 2])
    if materials[si, HAS_HEAT] == 0.0:
        albedo = (materials[si, side], materials[si, side + 1], materials[si, side + 2])
    is_cloth = materials[si, IS_CLOTH] > 0.0
    irradiance, seen = _sky_at(weights, tags, sky, ti, 2 if is_back else 0)
    return Spot(
        _rounded(weights, corners, ti, point, -1.0 if is_back else 1.0),
        normal,
        to_eye,
        albedo,
        SHEEN if is_cloth else 0.0,
        irradiance,
        seen,
        False,
        _fade(point[0], point[1], ground) if materials[si, IS_SCENERY] > 0.0 else 1.0,
    )


@kernel
def _depth_of_floor(direction: Triple, view: View, height: float) -> float:
    """Where a ray from the eye meets the floor; infinite where it does not, or comes from below."""
    if height < view.eye_z and direction[2] < 0.0:
        return (height - view.eye_z) / direction[2]
    return math.inf


@kernel
def _floor_spot(x: float, y: float, view: View, ground: Ground, ground_sky: Floats) -> Spot:
    """What the floor shows at a place in the picture; where there is none, it has faded away."""
    direction = _ray(view, x, y)
    depth = min(_depth_of_floor(direction, view, ground.height), FARTHEST)
    x, y = view.eye_x + depth * direction[0], view.eye_y + depth * direction[1]
    tone = 1.0 - GRID_STRENGTH * _grid_share(direction, depth, x, y, view, ground.spacing)
    return Spot(
        (x, y, ground.height),
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 1.0),
        (GROUND_COLOUR[0] * tone, GROUND_COLOUR[1] * tone, GROUND_COLOUR[2] * tone),
        0.0,
        _ground_sky(ground, ground_sky, x, y),
        1.0,
        True,
        _fade(x, y, ground),
    )


@kernel
def _ground_sky(ground: Ground, sky: Floats, x: float, y: float) -> float:
    """Sky light on the floor, between the points of its grid; a place beyond it reads the border."""
    last = len(sky) - 1.0
    u = min(max((x - ground.corner_x) * ground.inv_cell, 0.0), last)
    v = min(max((y - ground.corner_y) * ground.inv_cell, 0.0), last)
    i, j = int(min(u, last - 1.0)), int(min(v, last - 1.0))
    fu, fv = u - i, v - j
    low = sky[i, j] + fv * (sky[i, j + 1] - sky[i, j])
    high = sky[i + 1, j] + fv * (sky[i + 1, j + 1] - sky[i + 1, j])
    return low + fu * (high - low)


@kernel
def _line_share(place: float, spacing: float, footprint: float) -> float:
    """How much of a pixel, `footprint` wide on the floor, is covered by the nearest grid line."""
    distance = abs(place - spacing * math.floor(place / spacing + 0.5))
    width = GRID_WIDTH * spacing
    inv_blur = 1.0 / max(footprint, 1e-12)
    share = min(1.0, max(0.0, 0.5 + (0.5 * width - distance) * inv_blur))
    return min(share, width * inv_blur)


@kernel
def _grid_share(direction: Triple, depth: float, x: float, y: float, view: View, spacing: float) -> float:
    """How much of a pixel on the floor is covered by grid lines."""
    # A step of one pixel moves the ray by right / focal or up / focal; this is how far it moves the point on the floor.
    pixel, inv_fall = depth * view.inv_focal, 1.0 / direction[2]
    right, up = view.right_z * inv_fall, view.up_z * inv_fall
    across_x = abs(view.right_x - right * direction[0]) + abs(view.up_x - up * direction[0])
    across_y = abs(view.right_y - right * direction[1]) + abs(view.up_y - up * direction[1])
    return max(_line_share(x, spacing, pixel * across_x), _line_share(y, spacing, pixel * across_y))


@kernel
def _reflected(spot: Spot, to_light: Triple, share: float, t: float) -> Triple:
    """Light that leaves a spot towards the eye, before the backdrop at height t of the picture (0 top, 1 bottom).

    Lambert's law for the key light, the sky and the floor's bounce; fibres that catch light at grazing angles; and a
    weak broad highlight, a twelfth power of the cosine.
    """
    n, to_eye, albedo = spot.normal, spot.to_eye, spot.albedo
    irradiance = AMBIENT + (1.0 - AMBIENT) * spot.irradiance
    direct = share * max(0.0, _dot(n, to_light))
    bounce = (0.5 - 0.5 * n[2]) * (0.25 + 0.75 * min(1.0, 2.0 * spot.seen))
    rim, gloss = 0.0, 0.0
    if not spot.is_floor:
        grazing = 1.0 - max(0.0, _dot(n, to_eye))
        rim = spot.sheen * grazing * grazing * grazing
        half = _unit(to_light[0] + to_eye[0], to_light[1] + to_eye[1], to_light[2] + to_eye[2])
        shine = max(0.0, _dot(n, half)) ** 2
        gloss = GLOSS * direct * shine * shine * shine * shine * shine * shine
    red = KEY_COLOUR[0] * direct + SKY_COLOUR[0] * irradiance + BOUNCE_COLOUR[0] * bounce
    green = KEY_COLOUR[1] * direct + SKY_COLOUR[1] * irradiance + BOUNCE_COLOUR[1] * bounce
    blue = KEY_COLOUR[2] * direct + SKY_COLOUR[2] * irradiance + BOUNCE_COLOUR[2] * bounce
    red = red * (albedo[0] + rim * (0.15 + 0.85 * albedo[0])) + gloss
    green = green * (albedo[1] + rim * (0.15 + 0.85 * albedo[1])) + gloss
    blue = blue * (albedo[2] + rim * (0.15 + 0.85 * albedo[2])) + gloss
    behind = 1.0 - spot.fade
    return (
        spot.fade * red + behind * (BACKDROP_TOP[0] + t * (BACKDROP_BOTTOM[0] - BACKDROP_TOP[0])),
        spot.fade * green + behind * (BACKDROP_TOP[1] + t * (BACKDROP_BOTTOM[1] - BACKDROP_TOP[1])),
        spot.fade * blue + behind * (BACKDROP_TOP[2] + t * (BACKDROP_BOTTOM[2] - BACKDROP_TOP[2])),
    )


@kernel
def _take_samples(offsets: Floats, row: int, column: int, s: int, ids: Ints) -> tuple[float, float, int]:
    """The middle and number of those samples of a pixel, from s on, that show the same as s; they are marked DONE."""
    ti = ids[row, column, s]
    x, y, count = 0.0, 0.0, 0
    for other in range(s, len(offsets)):
        if ids[row, column, other] == ti:
            x, y, count = x + offsets[other, 0], y + offsets[other, 1], count + 1
            ids[row, column, other] = DONE
    scale = 1.0 / count
    return column + scale * x, row + scale * y, count


@kernel
def _byte(light: float, curve: Bytes) -> int:
    """The tone curve at an amount of linear light."""
    return curve[int(min(max(light, 0.0), CURVE_TOP) * ((CURVE_STEPS - 1) / CURVE_TOP) + 0.5)]


@kernel
def _shade_rows(
    top: int,
    bottom: int,
    view: View,
    drawn: Drawn,
    ground: Ground,
    ground_sky: Floats,
    key: KeyLight,
    heat_colours: Floats,
    curve: Bytes,
    offsets: Floats,
    keys: Keys,
    ids: Ints,
    image_out: Bytes,
) -> None:
    """Write the rows from `top` to before `bottom`."""
    frames, heights, tiles = key.frames, key.heights, key.tiles
    corners, tags, sky, materials = drawn.corners, drawn.tags, drawn.sky, drawn.materials
    to_light = (frames[0, 2, 0], frames[0, 2, 1], frames[0, 2, 2])
    n_samples = len(offsets)
    inv_n, inv_height = 1.0 / n_samples, 0.5 / view.middle_y
    for row in range(top, bottom):
        for column in range(image_out.shape[1]):
            for s in range(n_samples if ground.is_pierced else 0):
                direction = _ray(view, column + offsets[s, 0], row + offsets[s, 1])
                if keys[0, row, column, s] * _depth_of_floor(direction, view, ground.height - ground.tolerance) < 1.0:
                    ids[row, column, s] = NOTHING
            red, green, blue = 0.0, 0.0, 0.0
            for s in range(n_samples):
                ti = ids[row, column, s]
                if ti != DONE:
                    x, y, count = _take_samples(offsets, row, column, s, ids)
                    if ti == NOTHING:
                        spot = _floor_spot(x, y, view, ground, ground_sky)
                    else:
                        spot = _surface_spot(x, y, ti, view, ground, corners, tags, sky, materials, heat_colours)
                    share = compute_key_share(spot.point, spot.normal, frames, heights, tiles)
                    light = _reflected(spot, to_light, share, y * inv_height)
                    red, green, blue = red + count * light[0], green + count * light[1], blue + count * light[2]
            image_out[row, column, 0] = _byte(red * inv_n, curve)
            image_out[row, column, 1] = _byte(green * inv_n, curve)
            image_out[row, column, 2] = _byte(blue * inv_n, curve)


def shade(
    view: View,
    drawn: Drawn,
    ground: Ground,
    ground_sky: Floats,
    key: KeyLight,
    heat_colours: Floats,
    offsets: Floats,
    keys: Keys,
    ids: Ints,
    image_out: Bytes,
) -> None:
    """Write the picture.

    Parameters
    ----------
    ground_sky : (g, g) float64, sky light on the floor
    heat_colours : (c, 3) float64, linear light of the heat map from cold to hot
    offsets, keys, ids : as from `rasterise`; ids are used up
    image_out : (height, width, 3) uint8, overwritten
    """
    rest = (view, drawn, ground, ground_sky, key, heat_colours, tone_curve(), offsets, keys, ids, image_out)
    run_bands(lambda top, bottom: _shade_rows(top, bottom, *rest), len(image_out), BANDS)
