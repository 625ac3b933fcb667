"""The camera: what it projects where, and that framing shows everything and no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import WeftError
from weft.render.camera import Framing, frame_bounds, look_at

SIZE = (320, 240)


def pixels(camera, points, size=SIZE):
    homogeneous = camera.project(np.asarray(points, float), size)
    return homogeneous[:, :2] / homogeneous[:, 2:]


def test_camera_looks_at_its_target_with_z_up():
    camera = look_at((3.0, -4.0, 2.0), (0.5, 0.5, 0.5))
    target, above, right = pixels(camera, [(0.5, 0.5, 0.5), (0.5, 0.5, 0.6), (0.6, 0.55, 0.5)])
    assert target == pytest.approx((160.0, 120.0))
    assert above[0] == pytest.approx(160.0)
    assert above[1] < 120.0  # y runs down the picture
    assert right[0] > 160.0
    assert camera.axes @ camera.axes.T == pytest.approx(np.eye(3))
    assert camera.focus == pytest.approx(np.sqrt(2.5**2 + 4.5**2 + 1.5**2))


def test_field_of_view_is_the_whole_height():
    camera = look_at((0.0, -2.0, 0.0), (0.0, 0.0, 0.0), field_of_view=60.0)
    top = 2.0 * np.tan(np.radians(30.0))
    assert pixels(camera, [(0.0, 0.0, top)])[0] == pytest.approx((160.0, 0.0))


def test_azimuth_and_elevation_say_where_the_camera_stands():
    camera = frame_bounds((-1, -1, -1), (1, 1, 1), SIZE, azimuth=90.0, elevation=30.0)
    assert -camera.axes[2] == pytest.approx((0.0, np.cos(np.radians(30.0)), 0.5))
    assert camera.position[1] > 1.0
    assert camera.position[2] > 1.0


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    azimuth=st.floats(-360, 360),
    elevation=st.floats(-90, 90),
    field_of_view=st.floats(5, 120),
    margin=st.floats(0, 0.5),
)
def test_framing_shows_every_point_and_touches_the_margin(seed, azimuth, elevation, field_of_view, margin):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 3)) * rng.uniform(0.01, 10.0, 3) + rng.normal(size=3) * 5.0
    framing = Framing(SIZE, azimuth, elevation, field_of_view, margin)
    framing.include(points)
    camera = framing.camera()
    nearest = camera.project(points, SIZE)[:, 2].min() / camera.focus
    assert nearest > 0.25 - 1e-9
    half = np.array(SIZE) / 2.0
    reach = np.abs(pixels(camera, points) - half) / half  # 0 in the middle, 1 at the edge
    assert reach.max() < 1.0 - margin + 1e-6
    assert reach.max() > 1.0 - margin - 1e-6 or nearest < 0.25 + 1e-6


def test_framing_of_an_animation_is_that_of_all_its_frames():
    rng = np.random.default_rng(3)
    frames = rng.normal(size=(5, 20, 3)) + np.arange(5)[:, None, None]
    together, one_by_one = Framing(SIZE), Framing(SIZE)
    together.include(frames.reshape(-1, 3))
    for frame in frames:
        one_by_one.include(frame)
    assert one_by_one.camera().position == pytest.approx(together.camera().position)
    for frame in frames:
        places = pixels(one_by_one.camera(), frame)
        assert (places > 0.0).all()
        assert (places < SIZE).all()


def test_a_single_point_can_be_framed():
    framing = Framing(SIZE)
    framing.include([[1.0, 2.0, 3.0]])
    assert pixels(framing.camera(), [(1.0, 2.0, 3.0)])[0] == pytest.approx((160.0, 120.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Framing(SIZE).camera(), "nothing to look at"),
        (lambda: Framing(SIZE, elevation=91.0), "elevation"),
        (lambda: Framing(SIZE, azimuth=float("nan")), "azimuth"),
        (lambda: Framing(SIZE, field_of_view=0.0), "field of view"),
        (lambda: Framing(SIZE, margin=1.0), "margin"),
        (lambda: look_at((0, 0, 0), (0, 0, 0)), "same point"),
        (lambda: frame_bounds((0, 0, np.inf), (1, 1, 1), SIZE), "bounds"),
    ],
)
def test_bad_views_are_refused(make, message):
    with pytest.raises(WeftError, match=message):
        make()
