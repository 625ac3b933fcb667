"""Rigid motion by keyframes, for colliders and for pins."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pydantic import model_validator
from scipy.spatial.transform import Rotation, Slerp

from weft.arrays import Floats
from weft.explain import problem_at
from weft.parameters import Parameters, Vector, quantity

STEEPEST = 1.5  # times the mean speed: the largest of a motion that starts and stops softly


class Keyframe(Parameters):
    """Where a body or a pin is at one time, relative to where the scene puts it.

    [[collider]]
    sphere = { radius = 0.1 }
    motion.keyframes = [{ time = 0 }, { time = 1, move = [0, 0, 0.1], turn = [0, 0, 90] }]
    """

    time: float = quantity("time of this pose", unit="s", ge=0, le=36000)
    move: Vector = quantity("displacement from the start", unit="m", default=(0.0, 0.0, 0.0))
    turn: Vector = quantity("rotation about the centre: axis times angle", unit="deg", default=(0.0, 0.0, 0.0))
    scale: Vector = quantity("factors along x, y and z about the centre; for pins only", default=(1.0, 1.0, 1.0))


class Motion(Parameters):
    """Keyframes, with straight or smooth motion between them; still before the first and after the last.

    Turns about one axis go by the angle given, 360 degrees being a revolution; from one axis to another they go the
    shortest way.

    [[collider]]
    sphere = { radius = 0.1 }
    motion = { ease = true, keyframes = [{ time = 0.5 }, { time = 1, move = [0, 0, 0.1] }] }
    """

    keyframes: list[Keyframe] = quantity("poses in the order of time", min_length=1)
    ease: bool = quantity("start and stop softly at each keyframe", default=False)

    @model_validator(mode="after")
    def _ascending(self) -> Motion:
        for k, (a, b) in enumerate(pairwise(frame.time for frame in self.keyframes)):
            if b <= a:
                raise problem_at(f"{b:g} s is not after {a:g} s; put keyframes in order", "keyframes", k + 1, "time")
        return self

    def between(self, time: float) -> tuple[Keyframe, Keyframe, float]:
        """The keyframes before and after `time` [s], and how far from the one to the other it is, from 0 to 1."""
        times = [frame.time for frame in self.keyframes]
        if time <= times[0] or time >= times[-1]:
            held = self.keyframes[0 if time <= times[0] else -1]
            return held, held, 0.0
        k = int(np.searchsorted(times, time, side="right")) - 1
        s = (time - times[k]) / (times[k + 1] - times[k])
        return self.keyframes[k], self.keyframes[k + 1], s * s * (3.0 - 2.0 * s) if self.ease else s

    def turned(self, t0: float, t1: float) -> float:
        """How far it turns from `t0` to `t1` [deg], all revolutions counted, or somewhat more."""
        total = 0.0
        for first, second in pairwise(self.keyframes):
            share = (min(t1, second.time) - max(t0, first.time)) / (second.time - first.time)
            a, b = np.array(first.turn), np.array(second.turn)
            angle = float(np.linalg.norm(b - a))
            angle = angle if _are_parallel(a, b) else min(angle, 180.0)
            total += max(share, 0.0) * angle * (STEEPEST if self.ease else 1.0)
        return total


class Pose(NamedTuple):
    """A rotation about the origin of a body, then a displacement: world = rotation @ local + position."""

    rotation: Floats
    """(3, 3)"""
    position: Floats
    """(3,) [m]"""

    def to_world(self, local: Floats) -> Floats:
        return local @ self.rotation.T + self.position

    def to_local(self, world: Floats) -> Floats:
        return (world - self.position) @ self.rotation


def pose_at(motion: Motion | None, time: float, start: Pose) -> Pose:
    """The pose of a body that the scene puts at `start`, at `time` [s]."""
    if motion is None:
        return start
    first, second, s = motion.between(time)
    turn = _turn_between(np.deg2rad(first.turn), np.deg2rad(second.turn), s)
    move = (1.0 - s) * np.array(first.move) + s * np.array(second.move)
    return Pose(turn.as_matrix() @ start.rotation, start.position + move)


def _turn_between(a: Floats, b: Floats, s: float) -> Rotation:
    """From the rotation vector `a` to `b` [rad]: about one axis by the angle given, or else the shortest way."""
    if _are_parallel(a, b):
        return Rotation.from_rotvec((1.0 - s) * a + s * b)  # 360 degrees are a revolution: the shortest way is rest
    return Slerp([0.0, 1.0], Rotation.from_rotvec([a, b]))(s)


def _are_parallel(a: Floats, b: Floats) -> bool:
    return bool(np.linalg.norm(np.cross(a, b)) <= 1e-9 * np.linalg.norm(a) * np.linalg.norm(b))


def scale_at(motion: Motion | None, time: float) -> Floats:
    """The factors (3,) by which a group of pins is spread or gathered at `time` [s]."""
    if motion is None:
        return np.ones(3)
    first, second, s = motion.between(time)
    return (1.0 - s) * np.array(first.scale) + s * np.array(second.scale)
