"""Keyframes: what holds before, between and after them."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from weft.bodies.motion import Motion, Pose, pose_at, scale_at

START = Pose(Rotation.from_rotvec([0.0, 0.0, np.pi / 2]).as_matrix(), np.array([1.0, 2.0, 3.0]))
STILL = Pose(np.eye(3), np.zeros(3))


def motion(*keyframes, ease=False):
    return Motion.model_validate({"keyframes": list(keyframes), "ease": ease})


def angle_about(pose, axis, start=STILL):
    """Signed angle [deg] of the turn since `start`, which must be about `axis`."""
    vector = np.rad2deg(Rotation.from_matrix(pose.rotation @ start.rotation.T).as_rotvec())
    np.testing.assert_allclose(np.cross(vector, axis), 0.0, atol=1e-9)
    return float(vector @ np.array(axis))


def test_a_body_without_motion_stays_where_the_scene_puts_it():
    assert pose_at(None, 7.0, START) is START
    np.testing.assert_array_equal(scale_at(None, 7.0), 1.0)


def test_straight_between_keyframes():
    m = motion({"time": 1.0}, {"time": 3.0, "move": (2.0, -4.0, 0.5)}, {"time": 4.0, "move": (0.0, 0.0, 1.0)})
    np.testing.assert_allclose(pose_at(m, 1.5, START).position, START.position + np.array([0.5, -1.0, 0.125]))
    np.testing.assert_allclose(pose_at(m, 3.0, START).position, START.position + np.array([2.0, -4.0, 0.5]))
    np.testing.assert_allclose(pose_at(m, 3.75, START).position, START.position + np.array([0.5, -1.0, 0.875]))


@pytest.mark.parametrize("ease", [False, True])
def test_held_before_the_first_and_after_the_last(ease):
    first, last = (
        {"move": (1.0, 0.0, 0.0), "turn": (10.0, 0.0, 0.0)},
        {"move": (0.0, 3.0, 0.0), "scale": (2.0, 1.0, 1.0)},
    )
    m = motion({"time": 1.0, **first}, {"time": 2.0, **last}, ease=ease)
    for time in (0.0, 0.999, 1.0):
        np.testing.assert_allclose(pose_at(m, time, STILL).position, [1.0, 0.0, 0.0])
        assert angle_about(pose_at(m, time, STILL), (1, 0, 0)) == pytest.approx(10.0)
        np.testing.assert_allclose(scale_at(m, time), [1.0, 1.0, 1.0])
    for time in (2.0, 2.5, 1e6):
        np.testing.assert_allclose(pose_at(m, time, STILL).position, [0.0, 3.0, 0.0])
        assert angle_about(pose_at(m, time, STILL), (1, 0, 0)) == pytest.approx(0.0)
        np.testing.assert_allclose(scale_at(m, time), [2.0, 1.0, 1.0])


def test_one_keyframe_is_held_for_ever():
    m = motion({"time": 1.0, "move": (0.0, 0.0, 5.0)})
    for time in (0.0, 1.0, 2.0):
        np.testing.assert_array_equal(pose_at(m, time, STILL).position, [0.0, 0.0, 5.0])


def test_ease_is_a_smooth_step_with_no_speed_at_keyframes():
    m = motion({"time": 0.0}, {"time": 2.0, "move": (8.0, 0.0, 0.0)}, ease=True)
    at = [pose_at(m, t, STILL).position[0] for t in (0.0, 0.5, 1.0, 1.5, 2.0)]
    np.testing.assert_allclose(at, [0.0, 8 * 5 / 32, 4.0, 8 * 27 / 32, 8.0])
    h = 1e-5
    for t in (0.0, 2.0 - h):
        speed = (pose_at(m, t + h, STILL).position[0] - pose_at(m, t, STILL).position[0]) / h
        assert abs(speed) < 1e-3


def test_turns_go_at_constant_speed_about_a_fixed_axis():
    """From one turn to another: the relative rotation is about one axis, by an angle in proportion to time."""
    a, b = Rotation.from_rotvec([30, 40, 0], degrees=True), Rotation.from_rotvec([0, -20, 70], degrees=True)
    m = motion({"time": 0.0, "turn": (30, 40, 0)}, {"time": 1.0, "turn": (0, -20, 70)})
    whole = (b * a.inv()).as_rotvec()
    for s in (0.25, 0.5, 0.9):
        part = Rotation.from_matrix(pose_at(m, s, STILL).rotation) * a.inv()
        np.testing.assert_allclose(part.as_rotvec(), s * whole, atol=1e-12)


def test_the_turn_is_about_the_centre_and_after_the_turn_of_the_scene():
    m = motion({"time": 0.0}, {"time": 1.0, "turn": (90.0, 0.0, 0.0), "move": (0.0, 0.0, 1.0)})
    pose = pose_at(m, 1.0, START)
    np.testing.assert_allclose(pose.to_world(np.zeros((1, 3)))[0], [1.0, 2.0, 4.0], atol=1e-12)
    # local x is world y in START, which the motion turns into z
    np.testing.assert_allclose(pose.to_world(np.array([[1.0, 0.0, 0.0]]))[0], [1.0, 2.0, 5.0], atol=1e-12)


@pytest.mark.parametrize("turns", [0.75, 1.0, 2.5, -1.5])
def test_more_than_half_a_turn_is_turned_in_full(turns):
    """About one axis the angle itself runs: 360 degrees in a second is one revolution, not rest."""
    m = motion({"time": 0.0}, {"time": 1.0, "turn": (0.0, 0.0, 360.0 * turns)})
    times = np.linspace(0.0, 1.0, 41)
    poses = [pose_at(m, t, STILL).rotation for t in times]
    angles = np.unwrap([np.arctan2(r[1, 0], r[0, 0]) for r in poses])
    np.testing.assert_allclose(angles, 2 * np.pi * turns * times, atol=1e-9)


def test_scale_runs_straight():
    m = motion({"time": 0.0}, {"time": 2.0, "scale": (0.0, 3.0, 1.0)})
    np.testing.assert_allclose(scale_at(m, 0.5), [0.75, 1.5, 1.0])


def test_world_and_local_undo_each_other(rng):
    pose = Pose(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3))
    x = rng.normal(size=(20, 3))
    np.testing.assert_allclose(pose.to_local(pose.to_world(x)), x, atol=1e-13)
    wanted = [pose.rotation @ row + pose.position for row in x]
    np.testing.assert_allclose(pose.to_world(x), wanted, atol=1e-13)


@pytest.mark.parametrize("times", [(1.0, 1.0), (2.0, 1.0)])
def test_times_must_increase(times):
    with pytest.raises(ValidationError, match="put keyframes in order"):
        motion(*({"time": t} for t in times))


def test_no_keyframes_are_refused():
    with pytest.raises(ValidationError):
        motion()


def test_turns_are_counted_with_all_their_revolutions():
    m = motion({"time": 1.0}, {"time": 2.0, "turn": (0.0, 0.0, 720.0)}, {"time": 4.0, "turn": (0.0, 0.0, 700.0)})
    assert m.turned(0.0, 1.0) == 0.0
    assert m.turned(1.25, 1.75) == pytest.approx(360.0)
    assert m.turned(1.5, 3.0) == pytest.approx(360.0 + 10.0)
    assert m.turned(3.5, 9.0) == pytest.approx(5.0)


def test_no_less_than_a_body_turns_is_counted():
    """About changing axes, and softly."""
    frames = [{"time": 0.0, "turn": (170.0, 0.0, 0.0)}, {"time": 1.0, "turn": (0.0, -170.0, 20.0)}]
    for ease in (False, True):
        m = motion(*frames, ease=ease)
        for t0 in np.linspace(0.0, 0.95, 20):
            a, b = (pose_at(m, t, STILL).rotation for t in (t0, t0 + 0.05))
            assert np.rad2deg(Rotation.from_matrix(b @ a.T).magnitude()) <= m.turned(t0, t0 + 0.05) + 1e-9
