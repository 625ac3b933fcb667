"""Shadows and sky at single points, and the tone curve."""

from __future__ import annotations

import numpy as np
import pytest

from weft.geometry.mesh import build_grid
from weft.render.lights import build_key_light, build_sky, compute_key_share, compute_sky_on_floor, sky_directions
from weft.render.shading import CURVE_TOP, SHOULDER, tone_curve

UP = (0.0, 0.0, 1.0)


def roof(size, height):
    mesh = build_grid((size, size), (9, 9))
    return mesh.positions + np.array([0.0, 0.0, height]), mesh.triangles


def test_a_light_overhead_is_hidden_below_and_seen_beside_and_above():
    light = build_key_light(np.array(UP), *roof(1.0, 0.5))
    assert compute_key_share((0.0, 0.0, 0.0), UP, *light) == 0.0
    assert compute_key_share((0.3, -0.4, 0.4), UP, *light) == 0.0
    assert compute_key_share((0.7, 0.0, 0.0), UP, *light) == 1.0
    assert compute_key_share((9.0, 9.0, -3.0), UP, *light) == 1.0
    assert compute_key_share((0.0, 0.0, 0.5), UP, *light) == 1.0  # the roof does not shade itself
    assert compute_key_share((0.5, 0.0, 0.0), UP, *light) == pytest.approx(0.5, abs=0.06)  # below its edge


def test_a_slanting_light_moves_the_shadow():
    direction = np.array([0.6, 0.0, 0.8])
    light = build_key_light(direction, *roof(1.0, 0.8))
    assert compute_key_share((-0.6, 0.0, 0.0), UP, *light) == 0.0
    assert compute_key_share((-1.2, 0.0, 0.0), UP, *light) == 1.0
    assert compute_key_share((-0.2, 0.0, 0.0), UP, *light) == 0.0
    assert compute_key_share((0.0, 0.0, 0.0), UP, *light) == 1.0


def test_the_half_shade_of_a_disc_widens_with_the_drop():
    """Across a straight edge the light rises over twice the drop times the tangent of the disc's radius."""
    widths = []
    for drop in (0.1, 0.2):
        light = build_key_light(np.array(UP), *roof(1.0, drop))
        places = np.linspace(0.45, 0.55, 400)
        shares = np.array([compute_key_share((x, 0.0, 0.0), UP, *light) for x in places])
        assert (np.diff(shares) > -0.08).all()
        widths.append(np.ptp(places[(shares > 0.02) & (shares < 0.98)]))
    assert widths[1] == pytest.approx(2.0 * widths[0], rel=0.35)
    assert widths[1] == pytest.approx(2 * 0.2 * 0.045, rel=0.4)


def test_sky_light_is_one_in_the_open_and_little_under_a_roof():
    sky = build_sky(*roof(2.0, 0.2))
    places = np.array([[0.0, 0.0], [30.0, 30.0], [1.05, 0.0]])
    light = compute_sky_on_floor(places, 0.0, sky)
    assert light[0, 0] < 0.1
    assert light[1, 1] == pytest.approx(1.0)
    assert 0.2 < light[2, 0] < 0.9


def test_the_sky_is_spread_evenly():
    directions = sky_directions(200)
    assert np.linalg.norm(directions, axis=1) == pytest.approx(np.ones(200))
    assert directions[:, 2].min() > 0.1
    assert np.abs(directions[:, :2].mean(axis=0)).max() < 0.02


def test_the_tone_curve_rises_without_a_kink_to_white():
    curve = tone_curve().astype(int)
    assert curve[0] == 0
    assert curve[-1] == 255
    steps = np.diff(curve)
    assert (steps >= 0).all()
    half = curve[round(0.21404 / CURVE_TOP * (len(curve) - 1))]
    assert half == pytest.approx(127.5, abs=1.0)
    bend = round(SHOULDER / CURVE_TOP * (len(curve) - 1))
    before, after = curve[bend] - curve[bend - 60], curve[bend + 60] - curve[bend]
    assert abs(before - after) <= 1
