"""Light that things keep from one another: a key light with soft shadows, and a sky.

The key light is a small distant disc. Its shadow map holds, for every texel of a plane across the light, the greatest
height towards the light. A point first looks for what stands above it within the disc's reach, then blurs over the
penumbra that belongs to the mean height found (Fernando 2005, "Percentage-closer soft shadows"): shadows are sharp at
the contact and soft away from it. The taps are the same at every pixel, so nothing flickers from frame to frame.

The sky is a few dozen small maps of the same kind, spread over the upper hemisphere. What share of them a point sees,
weighted by Lambert's cosine, is its sky light: it darkens the depth of a fold and the ground where something touches.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.arrays import Bools, Floats, Ints
from weft.jit import kernel
from weft.render.colours import GOLDEN_ANGLE
from weft.render.jobs import run_bands
from weft.render.rasteriser import BANDS, Keys, Triple, rasterise

KEY_RESOLUTION = 1152  # texels a side, whole tiles
SKY_RESOLUTION = 160
SKY_DIRECTIONS = 28
SKY_LOWEST = 0.12  # height of the lowest direction: below it shadows grow longer than their map
HORIZON = 0.4  # how bright the sky is there, if 1 overhead
LIGHT_SLOPE = 0.045  # tangent of the key light's angular radius
N_SEARCH = 20  # taps that look for blockers
FEWEST_TAPS, TAPS_A_TEXEL = 10.0, 4.0  # taps that blur: more for a wider penumbra, lest it show rings
TILE = 16  # texels; no search reaches farther, so that a tile and its neighbours bound it
WIDEST = 13.0  # radius of the widest penumbra [texels]
KEY_BORDER = 2 * TILE + 2  # empty texels around the map: half of them for places beyond it, half for their taps
SKY_BORDER = 2
SKY_BANDS = 8

# A point is lifted off its surface before it looks at a light, by texels of the map: what the map holds is up to a
# texel wrong. The lift counts more the flatter the light strikes, just where the error grows.
KEY_OFFSET = 1.6
SKY_OFFSET = 1.5
STEEPEST = 4.0  # slope of a receiver against the light beyond which its plane is no longer followed
BIAS = 0.4  # texels a blocker must stand above the receiver's plane
TAP_BIAS = 0.12  # and for each texel of distance: folds curve; a blocker that matters stands 1 / LIGHT_SLOPE higher


class LightMaps(NamedTuple):
    """Heights towards k directions, each over a square across its direction."""

    frames: Floats
    """(k, 3, 4): rows (U, u0), (V, v0) and (D, texel). A point p lies at U . p + u0, V . p + v0 in texels and at height
    D . p [m]; D is the unit vector to the light, texel the side of a texel [m]"""
    heights: Keys
    """(k, resolution^2) float32: the greatest height in each texel's centre [m], row by row; -inf where nothing is"""


class Sky(NamedTuple):
    """The maps of the sky, and how bright it is."""

    frames: Floats
    heights: Keys
    """both as in LightMaps"""
    weights: Floats
    """(k, 2): radiance, such that a face turned up under an open sky has irradiance 1; and share of the sky, 1 / k"""


class KeyLight(NamedTuple):
    """The key light's map, and what bounds it tile by tile."""

    frames: Floats
    heights: Keys
    """both as in LightMaps, with k = 1"""
    tiles: Keys
    """(resolution / TILE, resolution / TILE) float32: the greatest height in a tile and its neighbours [m]"""


def _taps(n: int, step: float) -> Floats:
    """`(n, 3)` points on a spiral that grows so that each has the same area: x, y and the distance from the middle."""
    i = np.arange(n)
    radius, angle = step * np.sqrt(i + 0.5), np.radians(GOLDEN_ANGLE) * i
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), radius], axis=1)


SEARCH_TAPS = _taps(N_SEARCH, 1.0 / N_SEARCH**0.5)  # over the unit disc
TAPS = _taps(64, 1.0)  # the first n of them, divided by sqrt(n), fill the unit disc


def light_axes(directions: Floats) -> Floats:
    """`(k, 3, 3)` rows u, v, direction: u is level."""
    axes = np.empty((len(directions), 3, 3))
    for k, d in enumerate(directions):
        level = np.array([-d[1], d[0], 0.0])
        length = np.linalg.norm(level)
        u = level / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
        axes[k] = u, np.cross(d, u), d
    return axes


def sky_directions(n: int) -> Floats:
    """`(n, 3)` directions spread evenly over the upper hemisphere, on a spiral."""
    i = np.arange(n)
    z = 1.0 - (1.0 - SKY_LOWEST) * (i + 0.5) / n
    angle = np.radians(GOLDEN_ANGLE) * i
    level = np.sqrt(1.0 - z * z)
    return np.stack([level * np.cos(angle), level * np.sin(angle), z], axis=1)


@kernel
def _update_places(x: Floats, is_used: Bools, border: float, k: int, frames_out: Floats, vertices_out: Floats) -> None:
    """Place all points in the square of direction k, so that the used ones keep off its border.

    Writes the origins u0, v0 into the frame, a whole number of texels, and the points as the rasteriser takes them.
    """
    f = frames_out
    u_low, v_low = math.inf, math.inf
    for vi in range(len(x)):
        u = x[vi, 0] * f[k, 0, 0] + x[vi, 1] * f[k, 0, 1] + x[vi, 2] * f[k, 0, 2]
        v = x[vi, 0] * f[k, 1, 0] + x[vi, 1] * f[k, 1, 1] + x[vi, 2] * f[k, 1, 2]
        h = x[vi, 0] * f[k, 2, 0] + x[vi, 1] * f[k, 2, 1] + x[vi, 2] * f[k, 2, 2]
        vertices_out[vi, 0], vertices_out[vi, 1] = u, v
        vertices_out[vi, 2], vertices_out[vi, 3] = 1.0, h
        if is_used[vi]:
            u_low, v_low = min(u_low, u), min(v_low, v)
    f[k, 0, 3] = border - math.floor(u_low) if u_low < math.inf else border
    f[k, 1, 3] = border - math.floor(v_low) if v_low < math.inf else border
    for vi in range(len(x)):
        vertices_out[vi, 0] += f[k, 0, 3]
        vertices_out[vi, 1] += f[k, 1, 3]


def build_light_maps(directions: Floats, x: Floats, triangles: Ints, resolution: int, border: int) -> LightMaps:
    """Draw the heights of all triangles towards every direction, with `border` empty texels around them.

    The texel size is one of four an octave and the origin a whole number of texels: while the cloth moves a little,
    the map stays where it is and the shadow's edge does not crawl.
    """
    axes = light_axes(directions)
    is_used = np.zeros(len(x), np.bool_)
    is_used[triangles.ravel()] = True
    used = x[is_used] if is_used.any() else np.zeros((1, 3))
    extent = max(float(np.linalg.norm(used.max(axis=0) - used.min(axis=0))), 1e-6)
    texel = 2.0 ** (np.ceil(4.0 * np.log2(extent)) / 4.0) / (resolution - 2 * border - 1)
    frames = np.zeros((len(axes), 3, 4))
    frames[:, :2, :3] = axes[:, :2] / texel
    frames[:, 2, :3] = axes[:, 2]
    frames[:, 2, 3] = texel
    heights = np.empty((len(axes), resolution, resolution, 1), np.float32)
    no_ids = np.empty((0, 0, 0), np.int32)
    middle_of_texel = np.array([[0.5, 0.5]])
    n_bands = BANDS if len(axes) == 1 else 1

    def draw_map(k: int) -> None:
        vertices = np.empty((len(x), 4))
        _update_places(x, is_used, float(border), k, frames, vertices)
        rasterise(vertices, triangles, middle_of_texel, 0.5, heights[k], no_ids, n_bands)

    run_bands(lambda k, _: draw_map(k), len(axes), len(axes))
    return LightMaps(frames, heights.reshape(len(axes), -1))


def build_key_light(direction: Floats, x: Floats, triangles: Ints) -> KeyLight:
    """The shadow map of the key light."""
    maps = build_light_maps(direction[None], x, triangles, KEY_RESOLUTION, KEY_BORDER)
    n = KEY_RESOLUTION // TILE
    inner = maps.heights.reshape(n, TILE, n, TILE).max(axis=(1, 3))
    padded = np.pad(inner, 1, constant_values=-np.inf)
    tiles = np.max([padded[i : i + n, j : j + n] for i in range(3) for j in range(3)], axis=0)
    return KeyLight(*maps, tiles)


def build_sky(x: Floats, triangles: Ints) -> Sky:
    """The maps of the sky, which is brightest overhead."""
    directions = sky_directions(SKY_DIRECTIONS)
    height = directions[:, 2]
    radiance = HORIZON + (1.0 - HORIZON) * height
    weights = np.stack([radiance / (radiance * height).sum(), np.full(len(height), 1.0 / len(height))], axis=1)
    return Sky(*build_light_maps(directions, x, triangles, SKY_RESOLUTION, SKY_BORDER), weights)


@kernel
def clamp(value: float, low: float, high: float) -> float:
    """`value`, but not below `low` or above `high`; NaN becomes `low`, so that the result may be used as an index."""
    out = low
    if value > low:
        out = value
    if value > high:
        out = high
    return out


@kernel
def _lit_share(
    heights: Keys, k: int, resolution: int, u: float, v: float, h: float, slope_u: float, slope_v: float
) -> float:
    """The lit share, from 0 to 1, of a receiver at height h and place (u, v) in texels, between four texels.

    The receiver's plane rises by slope_u and slope_v a texel.
    """
    column, row = int(u - 0.5), int(v - 0.5)
    fu, fv = u - 0.5 - column, v - 0.5 - row
    h -= slope_u * fu + slope_v * fv
    i = row * resolution + column
    lit = 1.0
    if heights[k, i] > h:
        lit -= (1.0 - fu) * (1.0 - fv)
    if heights[k, i + 1] > h + slope_u:
        lit -= fu * (1.0 - fv)
    if heights[k, i + resolution] > h + slope_v:
        lit -= (1.0 - fu) * fv
    if heights[k, i + resolution + 1] > h + slope_u + slope_v:
        lit -= fu * fv
    return lit


@kernel
def compute_key_share(p: Triple, n: Triple, frames: Floats, heights: Keys, tiles: Keys) -> float:
    """The share of the key light, from 0 to 1, that reaches point p with unit normal n on the eye's side."""
    resolution = len(tiles) * TILE
    texel = frames[0, 2, 3]
    off = KEY_OFFSET * texel
    x, y, z = p[0] + off * n[0], p[1] + off * n[1], p[2] + off * n[2]
    low, high = TILE + 1.0, resolution - 2.0 - TILE  # a place beyond the map takes all its taps in the empty border
    u = clamp(x * frames[0, 0, 0] + y * frames[0, 0, 1] + z * frames[0, 0, 2] + frames[0, 0, 3], low, high)
    v = clamp(x * frames[0, 1, 0] + y * frames[0, 1, 1] + z * frames[0, 1, 2] + frames[0, 1, 3], low, high)
    # The plane of the receiver: how much it rises a texel along u and v.
    nu = texel * (n[0] * frames[0, 0, 0] + n[1] * frames[0, 0, 1] + n[2] * frames[0, 0, 2])
    nv = texel * (n[0] * frames[0, 1, 0] + n[1] * frames[0, 1, 1] + n[2] * frames[0, 1, 2])
    cosine = n[0] * frames[0, 2, 0] + n[1] * frames[0, 2, 1] + n[2] * frames[0, 2, 2]
    scale = -texel / max(cosine, 1.0 / STEEPEST)
    slope_u, slope_v = scale * nu, scale * nv
    h = x * frames[0, 2, 0] + y * frames[0, 2, 1] + z * frames[0, 2, 2] + BIAS * texel
    highest = tiles[int(v) // TILE, int(u) // TILE]
    spread = LIGHT_SLOPE / texel
    # Loops that may have no turns stand where branches would: an array touched on one branch only has its references
    # counted, atomically, at every call.
    n_search = N_SEARCH if cosine > 0.0 and highest > h else 0
    # The search reaches a little farther than the penumbra, so that full shade ends before the blur does.
    reach = min(float(TILE), 2.0 + 1.2 * spread * (highest - h))
    rise = TAP_BIAS * texel * reach
    total, count = 0.0, 0
    for i in range(n_search):
        du, dv = reach * SEARCH_TAPS[i, 0], reach * SEARCH_TAPS[i, 1]
        height = heights[0, int(v + dv) * resolution + int(u + du)]
        if height > h + slope_u * du + slope_v * dv + rise * SEARCH_TAPS[i, 2]:
            total += height
            count += 1
    in_penumbra = 0 < count < N_SEARCH
    radius = min(WIDEST, 1.0 + spread * (total / max(count, 1) - h))
    n_blur = min(len(TAPS), int(FEWEST_TAPS + TAPS_A_TEXEL * radius)) if in_penumbra else 0
    step = radius / math.sqrt(max(n_blur, 1))
    rise = TAP_BIAS * texel * step
    lit = 0.0
    for i in range(n_blur):
        du, dv = step * TAPS[i, 0], step * TAPS[i, 1]
        plane = h + slope_u * du + slope_v * dv + rise * TAPS[i, 2]
        lit += _lit_share(heights, 0, resolution, u + du, v + dv, plane, slope_u, slope_v)
    if in_penumbra:
        return lit / n_blur
    return 1.0 if count == 0 else 0.0


@kernel
def compute_sky_light(p: Triple, n: Triple, frames: Floats, heights: Keys, weights: Floats) -> tuple[float, float]:
    """Irradiance on point p with unit normal n, and the share of the sky that p sees."""
    off = SKY_OFFSET * frames[0, 2, 3]
    x, y, z = p[0] + off * n[0], p[1] + off * n[1], p[2] + off * n[2]
    low, high = 0.5, SKY_RESOLUTION - 1.0
    irradiance, seen = 0.0, 0.0
    for k in range(len(frames)):
        cosine = n[0] * frames[k, 2, 0] + n[1] * frames[k, 2, 1] + n[2] * frames[k, 2, 2]
        if cosine > 0.0:
            u = clamp(x * frames[k, 0, 0] + y * frames[k, 0, 1] + z * frames[k, 0, 2] + frames[k, 0, 3], low, high)
            v = clamp(x * frames[k, 1, 0] + y * frames[k, 1, 1] + z * frames[k, 1, 2] + frames[k, 1, 3], low, high)
            h = x * frames[k, 2, 0] + y * frames[k, 2, 1] + z * frames[k, 2, 2]
            lit = _lit_share(heights, k, SKY_RESOLUTION, u, v, h + 0.5 * off, 0.0, 0.0)
            irradiance += weights[k, 0] * cosine * lit
            seen += weights[k, 1] * lit
    return irradiance, seen


@kernel
def _update_sky_on_floor(
    first: int,
    last: int,
    places: Floats,
    height: float,
    frames: Floats,
    heights: Keys,
    weights: Floats,
    light_out: Floats,
) -> None:
    for i in range(first, last):
        for j in range(len(places)):
            p = (places[i, 0], places[j, 1], height)
            light_out[i, j] = compute_sky_light(p, (0.0, 0.0, 1.0), frames, heights, weights)[0]


def compute_sky_on_floor(places: Floats, height: float, sky: Sky) -> Floats:
    """`(g, g)`: irradiance on a level floor at the points (places[i, 0], places[j, 1])."""
    light = np.empty((len(places), len(places)))
    run_bands(
        lambda first, last: _update_sky_on_floor(first, last, places, height, *sky, light), len(places), SKY_BANDS
    )
    return light


@kernel
def lattice_index(order: int, i: int, j: int) -> int:
    """The number of a point in the lattice of a triangle: i of `order` steps towards corner 1, j towards corner 2."""
    return i * (order + 1) - i * (i - 1) // 2 + j


@kernel
def _update_sky_on_triangles(
    first: int,
    last: int,
    x: Floats,
    triangles: Ints,
    normals: Floats,
    orders: Ints,
    starts: Ints,
    frames: Floats,
    heights: Keys,
    weights: Floats,
    known: Floats,
    light: Floats,
    light_out: Floats,
) -> None:
    for ti in range(first, last):
        order = orders[ti]
        a, b, c = triangles[ti, 0], triangles[ti, 1], triangles[ti, 2]
        for i in range(order + 1):
            for j in range(order + 1 - i):
                wa, wb, wc = (order - i - j) / order, i / order, j / order
                nx = wa * normals[ti, 0, 0] + wb * normals[ti, 1, 0] + wc * normals[ti, 2, 0]
                ny = wa * normals[ti, 0, 1] + wb * normals[ti, 1, 1] + wc * normals[ti, 2, 1]
                nz = wa * normals[ti, 0, 2] + wb * normals[ti, 1, 2] + wc * normals[ti, 2, 2]
                vi = a if i + j == 0 else (b if j == 0 else c)
                if order > 1 or known[vi, 0] != nx or known[vi, 1] != ny or known[vi, 2] != nz:
                    known[vi, 0], known[vi, 1], known[vi, 2] = nx, ny, nz
                    p = (
                        wa * x[a, 0] + wb * x[b, 0] + wc * x[c, 0],
                        wa * x[a, 1] + wb * x[b, 1] + wc * x[c, 1],
                        wa * x[a, 2] + wb * x[b, 2] + wc * x[c, 2],
                    )
                    light[vi, 0], light[vi, 1] = compute_sky_light(p, (nx, ny, nz), frames, heights, weights)
                    light[vi, 2], light[vi, 3] = compute_sky_light(p, (-nx, -ny, -nz), frames, heights, weights)
                at = starts[ti] + lattice_index(order, i, j)
                for q in range(4):
                    light_out[at, q] = light[vi, q]


def compute_sky_on_triangles(
    x: Floats, triangles: Ints, normals: Floats, orders: Ints, starts: Ints, sky: Sky
) -> Floats:
    """Sky light over every triangle, at the points of a lattice that divides its edges into `order` parts.

    Parameters
    ----------
    normals : (m, 3, 3) float64, unit normals at the corners
    orders : (m,) int32
    starts : (m + 1,) int32, the first point of each triangle: it has (order + 1)(order + 2) / 2

    Returns
    -------
    light : (starts[m], 4) float64, irradiance and seen share of the sky, on the front and then on the back
    """
    light = np.empty((starts[-1], 4))

    def fill(first: int, last: int) -> None:
        # Mostly all corners at a vertex share their normal, and so their light: keep the last one found there.
        known, last_light = np.full((len(x), 3), np.nan), np.empty((len(x), 4))
        _update_sky_on_triangles(first, last, x, triangles, normals, orders, starts, *sky, known, last_light, light)

    run_bands(fill, len(triangles), SKY_BANDS)
    return light
