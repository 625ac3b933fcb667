"""Colours: sRGB and linear light, the palette of cloths and bodies, and the heat map.

A colour is three sRGB numbers from 0 to 1, as on a screen. Light adds up in linear RGB, so the kernels work there.
Colours that must look evenly spaced are mixed in OKLab (Ottosson 2020, "A perceptual color space for image
processing"), where equal steps look equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.arrays import Floats
from weft.errors import WeftError

Colour = tuple[float, float, float]
"""Red, green and blue as on a screen (sRGB), each from 0 to 1."""

GOLDEN_ANGLE = 137.50776405003785  # degrees: successive hues never come close to one another

# Lightness, chroma and hue (degrees) in OKLab of the first cloths: madder, indigo, ochre, sage, plum, teal.
FABRICS = (
    (0.545, 0.130, 29.0),
    (0.470, 0.085, 262.0),
    (0.730, 0.115, 82.0),
    (0.640, 0.075, 138.0),
    (0.470, 0.085, 335.0),
    (0.565, 0.080, 205.0),
)
# Bodies stay behind the cloth: stone, slate, sand and clay with little chroma.
BODIES = ((0.740, 0.012, 80.0), (0.620, 0.020, 250.0), (0.800, 0.030, 85.0), (0.640, 0.035, 45.0))

# From cold to hot. Lightness rises with every anchor, and the dark end is not too dark: a value must not be
# mistaken for a shadow.
HEAT_ANCHORS = ("#3b3f9e", "#2f78b4", "#27a296", "#72c15f", "#d9cf46", "#fff3a6")

_TO_CONE = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def as_colour(values: npt.ArrayLike, name: str) -> Floats:
    """Cast to `(3,) float64` and refuse what is not a colour."""
    try:
        colour = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise WeftError(f"{name}: expected three numbers from 0 to 1, got {values!r}") from None
    if colour.shape != (3,) or not ((colour >= 0.0) & (colour <= 1.0)).all():
        raise WeftError(f"{name}: expected three numbers from 0 to 1, got {values!r}")
    return colour


def to_linear(srgb: npt.ArrayLike) -> Floats:
    """Linear light of sRGB values (IEC 61966-2-1)."""
    c = np.asarray(srgb, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((np.maximum(c, 0.0) + 0.055) / 1.055) ** 2.4)


def to_srgb(linear: npt.ArrayLike) -> Floats:
    """sRGB values of linear light, cut to 0 to 1."""
    c = np.clip(np.asarray(linear, dtype=np.float64), 0.0, 1.0)
    return np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1.0 / 2.4) - 0.055)


def to_oklab(srgb: npt.ArrayLike) -> Floats:
    """OKLab (lightness, a, b) of `(..., 3)` sRGB values."""
    return np.asarray(np.cbrt(to_linear(srgb) @ _TO_CONE.T) @ _TO_OKLAB.T, dtype=np.float64)


def from_oklab(oklab: npt.ArrayLike) -> Floats:
    """`(..., 3)` sRGB values of OKLab colours, cut to what a screen shows."""
    cone = (np.asarray(oklab, dtype=np.float64) @ np.linalg.inv(_TO_OKLAB).T) ** 3
    return to_srgb(cone @ np.linalg.inv(_TO_CONE).T)


def _from_hue(lightness: float, chroma: float, hue: float) -> Colour:
    angle = np.radians(hue)
    red, green, blue = from_oklab([lightness, chroma * np.cos(angle), chroma * np.sin(angle)])
    return float(red), float(green), float(blue)


def cloth_colours(index: int) -> tuple[Colour, Colour]:
    """The front and back colours of cloth number `index`. Cloths differ; a back is a pale tone of its front."""
    if index < len(FABRICS):
        lightness, chroma, hue = FABRICS[index]
    else:
        lightness, chroma, hue = 0.58, 0.095, (FABRICS[0][2] + GOLDEN_ANGLE * index) % 360.0
    return _from_hue(lightness, chroma, hue), _from_hue(0.86, 0.42 * chroma, hue + 18.0)


def body_colour(index: int) -> Colour:
    """The colour of collider number `index`: quiet, so that the cloth leads."""
    return _from_hue(*BODIES[index % len(BODIES)])


def _from_hex(text: str) -> list[float]:
    return [int(text[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]


def heat_colours(values: npt.ArrayLike) -> Floats:
    """`(..., 3)` sRGB colours of values from 0 (cold) to 1 (hot); outside values take the end colours."""
    t = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
    anchors = to_oklab([_from_hex(text) for text in HEAT_ANCHORS])
    places = np.linspace(0.0, 1.0, len(anchors))
    return from_oklab(np.stack([np.interp(t, places, anchors[:, k]) for k in range(3)], axis=-1))
