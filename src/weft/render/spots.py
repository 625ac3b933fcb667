"""What is seen at a place in the picture: a spot of cloth, of a body or of the floor, ready for the lights."""

from __future__ import annotations

import math
from typing import NamedTuple

from weft.arrays import Floats, Ints
from weft.geometry.vectors import dot
from weft.jit import kernel
from weft.render.lights import clamp, lattice_index
from weft.render.rasteriser import Triple

GROUND_COLOUR = (0.565, 0.56, 0.55)
FADE_START = 0.3  # where the floor begins to fade, as a share of its radius
FARTHEST = 1e9  # [m]; a floor beyond is not seen
GRID_STRENGTH = 0.13  # how much darker the ground is on a grid line
GRID_WIDTH = 0.012  # width of a line, as a share of the spacing
SHEEN = 0.26  # light that fibres standing off the cloth catch at grazing angles

# Columns of a triangle's corner.
POINT, NORMAL, EDGE, HEAT, CORNER_COLUMNS = 0, 3, 6, 9, 10
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
    """(m, 3, CORNER_COLUMNS): point [m], unit normal, edge function across from the corner (coefficients of
    x, y and 1 in the picture), heat from 0 to 1"""
    tags: Ints
    """(m, 4): the surface of each triangle, the order and first point of its sky light, and 1 where its back is seen"""
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


@kernel
def unit(x: float, y: float, z: float) -> Triple:
    length = math.sqrt(x * x + y * y + z * z)
    scale = 1.0 / length if length > 0.0 else 0.0
    return x * scale, y * scale, z * scale


@kernel
def ray(view: View, x: float, y: float) -> Triple:
    """The direction through a place in the picture, as long as its depth is 1."""
    right, up = (x - view.middle_x) * view.inv_focal, (view.middle_y - y) * view.inv_focal
    return (
        view.forward_x + right * view.right_x + up * view.up_x,
        view.forward_y + right * view.right_y + up * view.up_y,
        view.forward_z + right * view.right_z + up * view.up_z,
    )


@kernel
def _mix(weights: Triple, corners: Floats, ti: int, column: int) -> Triple:
    """Three columns of a triangle's corners, between them."""
    wa, wb, wc = weights
    return (
        wa * corners[ti, 0, column] + wb * corners[ti, 1, column] + wc * corners[ti, 2, column],
        wa * corners[ti, 0, column + 1] + wb * corners[ti, 1, column + 1] + wc * corners[ti, 2, column + 1],
        wa * corners[ti, 0, column + 2] + wb * corners[ti, 1, column + 2] + wc * corners[ti, 2, column + 2],
    )


@kernel
def _weights_at(corners: Floats, ti: int, x: float, y: float) -> Triple:
    """What each corner counts at a place in the picture, seen in perspective."""
    a = corners[ti, 0, EDGE] * x + corners[ti, 0, EDGE + 1] * y + corners[ti, 0, EDGE + 2]
    b = corners[ti, 1, EDGE] * x + corners[ti, 1, EDGE + 1] * y + corners[ti, 1, EDGE + 2]
    c = corners[ti, 2, EDGE] * x + corners[ti, 2, EDGE + 1] * y + corners[ti, 2, EDGE + 2]
    scale = 1.0 / (a + b + c)
    return a * scale, b * scale, c * scale


@kernel
def _normal_towards_eye(weights: Triple, corners: Floats, ti: int, to_eye: Triple, is_back: bool) -> Triple:
    """The smooth unit normal on the eye's side."""
    sign = -1.0 if is_back else 1.0
    nx, ny, nz = _mix(weights, corners, ti, NORMAL)
    x, y, z = unit(sign * nx, sign * ny, sign * nz)
    away = dot((x, y, z), to_eye)
    if away < 0.0:  # it looks past the silhouette: bend it back to the edge
        return unit(x - away * to_eye[0], y - away * to_eye[1], z - away * to_eye[2])
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
    u, v = order * clamp(weights[1], 0.0, 1.0), order * clamp(weights[2], 0.0, 1.0)
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
def _fade(x: float, y: float, disc: Triple) -> float:
    """1 around the subject, 0 from the edge of the floor on: a disc (x, y, 1 / radius)."""
    away = math.sqrt((x - disc[0]) ** 2 + (y - disc[1]) ** 2) * disc[2]
    t = min(1.0, max(0.0, (away - FADE_START) * (1.0 / (1.0 - FADE_START))))
    return 1.0 - t * t * (3.0 - 2.0 * t)


@kernel
def surface_spot(
    x: float,
    y: float,
    ti: int,
    eye: Triple,
    disc: Triple,
    corners: Floats,
    tags: Ints,
    sky: Floats,
    materials: Floats,
    heat_colours: Floats,
) -> Spot:
    """What triangle ti shows at a place in the picture; `disc` is where scenery fades, as in `_fade`."""
    weights = _weights_at(corners, ti, x, y)
    point = _mix(weights, corners, ti, POINT)
    to_eye = unit(eye[0] - point[0], eye[1] - point[1], eye[2] - point[2])
    is_back = tags[ti, 3] > 0
    normal = _normal_towards_eye(weights, corners, ti, to_eye, is_back)
    si = tags[ti, 0]
    side = BACK if is_back else FRONT
    heat = dot(weights, (corners[ti, 0, HEAT], corners[ti, 1, HEAT], corners[ti, 2, HEAT]))
    share = clamp(heat, 0.0, 1.0) * materials[si, HAS_HEAT]
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
        _fade(point[0], point[1], disc) if materials[si, IS_SCENERY] > 0.0 else 1.0,
    )


@kernel
def depth_of_floor(direction: Triple, view: View, height: float) -> float:
    """Where a ray from the eye meets the floor; infinite where it does not, or comes from below."""
    if height < view.eye_z and direction[2] < 0.0:
        return (height - view.eye_z) / direction[2]
    return math.inf


@kernel
def floor_spot(x: float, y: float, view: View, ground: Ground, ground_sky: Floats) -> Spot:
    """What the floor shows at a place in the picture; where there is none, it has faded away."""
    direction = ray(view, x, y)
    depth = depth_of_floor(direction, view, ground.height)
    is_floor = depth < FARTHEST
    if not is_floor:
        depth = 0.0
    x, y, z = view.eye_x + depth * direction[0], view.eye_y + depth * direction[1], view.eye_z + depth * direction[2]
    tone = 1.0
    if is_floor:
        tone -= GRID_STRENGTH * _grid_share(direction, depth, x, y, view, ground.spacing)
    return Spot(
        (x, y, z),
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 1.0),
        (GROUND_COLOUR[0] * tone, GROUND_COLOUR[1] * tone, GROUND_COLOUR[2] * tone),
        0.0,
        _ground_sky(ground, ground_sky, x, y),
        1.0,
        True,
        _fade(x, y, (ground.centre_x, ground.centre_y, ground.inv_radius)) if is_floor else 0.0,
    )


@kernel
def _ground_sky(ground: Ground, sky: Floats, x: float, y: float) -> float:
    """Sky light on the floor, between the points of its grid; a place beyond it reads the border."""
    last = len(sky) - 1.0
    u = clamp((x - ground.corner_x) * ground.inv_cell, 0.0, last)
    v = clamp((y - ground.corner_y) * ground.inv_cell, 0.0, last)
    i, j = int(min(u, last - 1.0)), int(min(v, last - 1.0))
    fu, fv = u - i, v - j
    low = sky[i, j] + fv * (sky[i, j + 1] - sky[i, j])
    high = sky[i + 1, j] + fv * (sky[i + 1, j + 1] - sky[i + 1, j])
    return float(low + fu * (high - low))


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
