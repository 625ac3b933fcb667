"""From visible triangles to light, one pixel at a time.

Each triangle seen in a pixel is shaded once, in the middle of its samples there, and counts by their share: edges are
smooth while a pixel inside a triangle costs one shading, not four. All light is linear; the tone curve comes last.

Numba counts a reference, atomically, for every array that a function passes on to another one: that made the picture
three times slower. So the loop over rows, which holds all arrays, asks for the spot that is seen, for the light on it
and for what it reflects, one after the other; none of these hands an array on to a function too large to be inlined.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import Bytes, Floats, Ints
from weft.geometry.vectors import dot
from weft.jit import kernel
from weft.render.colours import to_srgb
from weft.render.jobs import run_bands
from weft.render.lights import KeyLight, clamp, compute_key_share
from weft.render.rasteriser import NOTHING, Keys, Triple
from weft.render.spots import Drawn, Ground, Spot, View, depth_of_floor, floor_spot, ray, surface_spot, unit

# Linear light: a warm lamp over the camera's left shoulder, a cool sky, and what the floor throws back.
KEY_COLOUR = (1.02, 0.965, 0.89)
SKY_COLOUR = (0.40, 0.435, 0.48)
BOUNCE_COLOUR = (0.185, 0.175, 0.165)
AMBIENT = 0.10  # share of the sky light that gets everywhere: no corner is black
GLOSS = 0.03  # a broad, weak highlight

BACKDROP_TOP = (0.60, 0.615, 0.635)
BACKDROP_BOTTOM = (0.74, 0.735, 0.725)

CURVE_STEPS = 4096
CURVE_TOP = 1.6  # linear light that comes out white
SHOULDER = 0.72  # linear light above which the tone curve bends

BANDS = 36
DONE = -2  # a sample that has been shaded


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
def _reflected(spot: Spot, to_light: Triple, share: float, t: float) -> Triple:
    """Light that leaves a spot towards the eye, before the backdrop at height t of the picture (0 top, 1 bottom).

    Lambert's law for the key light, the sky and the floor's bounce; fibres that catch light at grazing angles; and a
    weak broad highlight, a twelfth power of the cosine.
    """
    n, to_eye, albedo = spot.normal, spot.to_eye, spot.albedo
    irradiance = AMBIENT + (1.0 - AMBIENT) * spot.irradiance
    direct = share * max(0.0, dot(n, to_light))
    bounce = (0.5 - 0.5 * n[2]) * (0.25 + 0.75 * min(1.0, 2.0 * spot.seen))
    rim, gloss = 0.0, 0.0
    if not spot.is_floor:
        grazing = 1.0 - max(0.0, dot(n, to_eye))
        rim = spot.sheen * grazing * grazing * grazing
        half = unit(to_light[0] + to_eye[0], to_light[1] + to_eye[1], to_light[2] + to_eye[2])
        shine = max(0.0, dot(n, half)) ** 2
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
    return int(curve[int(clamp(light, 0.0, CURVE_TOP) * ((CURVE_STEPS - 1) / CURVE_TOP) + 0.5)])


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
    eye = (view.eye_x, view.eye_y, view.eye_z)
    disc = (ground.centre_x, ground.centre_y, ground.inv_radius)
    n_samples = len(offsets)
    inv_n, inv_height = 1.0 / n_samples, 0.5 / view.middle_y
    for row in range(top, bottom):
        for column in range(image_out.shape[1]):
            for s in range(n_samples if ground.is_pierced else 0):
                direction = ray(view, column + offsets[s, 0], row + offsets[s, 1])
                if keys[row, column, s] * depth_of_floor(direction, view, ground.height - ground.tolerance) < 1.0:
                    ids[row, column, s] = NOTHING
            red, green, blue = 0.0, 0.0, 0.0
            for s in range(n_samples):
                ti = ids[row, column, s]
                if ti != DONE:
                    x, y, count = _take_samples(offsets, row, column, s, ids)
                    if ti == NOTHING:
                        spot = floor_spot(x, y, view, ground, ground_sky)
                    else:
                        spot = surface_spot(x, y, ti, eye, disc, corners, tags, sky, materials, heat_colours)
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
