"""The bar that tells what the colours of a heat map mean."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from weft.arrays import Bytes
from weft.render.colours import heat_colours

INK = (40, 42, 46)
SMALLEST_PICTURE = 120  # pixels a side below which there is no room for a legend


def draw_legend(image: Bytes, low: float, high: float, label: str) -> Bytes:
    """The picture with a bar from `low` to `high` in its lower left corner; a very small picture stays as it is."""
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_PICTURE:
        return image
    unit = max(9, round(0.021 * min(height, width)))  # height of the letters
    bar_width, bar_height = 11 * unit, max(4, round(0.55 * unit))
    left, top = round(1.4 * unit), height - round(3.6 * unit)
    picture = Image.fromarray(image)
    steps = np.broadcast_to(np.linspace(0.0, 1.0, bar_width), (bar_height, bar_width))
    bar = np.asarray(np.rint(255.0 * heat_colours(steps)), np.uint8)
    picture.paste(Image.fromarray(bar), (left, top))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(unit)
    pen.rectangle((left - 1, top - 1, left + bar_width, top + bar_height), outline=INK)
    below = top + bar_height + round(0.25 * unit)
    pen.text((left, below), f"{low:.3g}", fill=INK, font=font, anchor="la")
    pen.text((left + bar_width, below), f"{high:.3g}", fill=INK, font=font, anchor="ra")
    pen.text((left, top - round(0.35 * unit)), label, fill=INK, font=font, anchor="ls")
    return np.asarray(picture, np.uint8).copy()
