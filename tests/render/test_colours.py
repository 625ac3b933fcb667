"""Colours: conversions there and back, different cloths, an ordered heat map."""

from __future__ import annotations

import numpy as np
import pytest

from weft.errors import WeftError
from weft.render.colours import (
    as_colour,
    body_colour,
    cloth_colours,
    from_oklab,
    heat_colours,
    to_linear,
    to_oklab,
    to_srgb,
)


def test_known_values():
    assert to_linear([0.0, 0.5, 1.0]) == pytest.approx([0.0, 0.21404114, 1.0])
    assert to_oklab([1.0, 1.0, 1.0]) == pytest.approx([1.0, 0.0, 0.0], abs=1e-4)
    assert to_oklab([1.0, 0.0, 0.0]) == pytest.approx([0.628, 0.2249, 0.1258], abs=1e-3)  # Ottosson's red


def test_conversions_go_back():
    colours = np.random.default_rng(0).uniform(0, 1, (100, 3))
    assert to_srgb(to_linear(colours)) == pytest.approx(colours)
    assert from_oklab(to_oklab(colours)) == pytest.approx(colours, abs=1e-6)


def test_cloths_differ_and_their_sides_differ():
    pairs = [cloth_colours(index) for index in range(12)]
    fronts = to_oklab([front for front, _ in pairs])
    apart = np.linalg.norm(fronts[:, None] - fronts[None], axis=2) + np.eye(12)
    assert apart[:6, :6].min() > 0.1  # told apart at a glance
    assert apart.min() > 0.03
    for front, back in pairs:
        assert to_oklab(back)[0] - to_oklab(front)[0] > 0.1
    assert all(0.0 <= part <= 1.0 for pair in pairs for colour in pair for part in colour)
    assert all(0.0 <= part <= 1.0 for index in range(6) for part in body_colour(index))


def test_heat_rises_evenly_in_lightness():
    lightness = to_oklab(heat_colours(np.linspace(0, 1, 200)))[:, 0]
    assert (np.diff(lightness) > 0.0).all()
    assert lightness[-1] - lightness[0] > 0.45


def test_heat_beyond_the_ends_keeps_the_end_colours():
    assert heat_colours([-3.0, 7.0]) == pytest.approx(heat_colours([0.0, 1.0]))


@pytest.mark.parametrize("bad", [(0.5, 0.5), (0.5, 0.5, 1.5), (0, 0, np.nan), "red", None])
def test_bad_colours_are_refused(bad):
    with pytest.raises(WeftError, match="front"):
        as_colour(bad, "front")
