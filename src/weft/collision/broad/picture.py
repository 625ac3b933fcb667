"""The boxes a search did not look at, as arrays and as a mesh to draw (paper 001, Fig. 5).

cloth.refit(x), body.refit(y)
cloth.pairs(body)
lower, upper, depth = untested_boxes(cloth)
positions, triangles = build_wireframe(lower, upper, thickness=0.001)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.arrays import Floats, Ints, Longs
from weft.collision.broad import BroadPhase, TestedBoxes


class UntestedBoxes(NamedTuple):
    """Boxes that the last search of a broad phase never compared with another."""

    lower: Floats
    """(b, 3) [m]"""
    upper: Floats
    """(b, 3) [m]"""
    depth: Ints
    """(b,): 0 is the box around everything; ascending"""


def untested_boxes(phase: BroadPhase, outermost: bool = False) -> UntestedBoxes:
    """Boxes that the last `self_pairs` or `pairs` of `phase` skipped, the shallowest first.

    With `outermost` only those that lie in no other of them: where the search stopped.
    """
    boxes = phase.tested_boxes()
    skipped = np.flatnonzero(~boxes.tested)
    skipped = skipped[np.argsort(boxes.depth[skipped], kind="stable")]
    if outermost:
        skipped = _outermost(boxes, skipped)
    return UntestedBoxes(boxes.lower[skipped], boxes.upper[skipped], boxes.depth[skipped])


def _outermost(boxes: TestedBoxes, skipped: Longs) -> Longs:
    """Those of `skipped` that lie in no shallower one of them."""
    kept = skipped[:0]
    for depth in np.unique(boxes.depth[skipped]):
        level = skipped[boxes.depth[skipped] == depth]
        within = np.zeros(len(level), np.bool_)
        for outer in kept:
            within |= (boxes.lower[level] >= boxes.lower[outer]).all(axis=1) & (
                boxes.upper[level] <= boxes.upper[outer]
            ).all(axis=1)
        kept = np.concatenate([kept, level[~within]])
    return kept


def build_wireframe(lower: Floats, upper: Floats, thickness: float) -> tuple[Floats, Ints]:
    """The twelve edges of each box as thin square bars.

    Returns
    -------
    positions : (96 b, 3) [m]
    triangles : (144 b, 3), anticlockwise seen from outside
    """
    corners, ends = [], []
    for axis in range(3):
        for side in range(4):
            start = np.zeros(3, np.int64)
            start[(axis + 1) % 3], start[(axis + 2) % 3] = side % 2, side // 2
            end = start.copy()
            end[axis] = 1
            corners.append(start)
            ends.append(end)
    boxes = np.stack([lower, upper], axis=1)  # (b, 2, 3)
    axes = np.arange(3)
    starts = boxes[:, np.array(corners), axes].reshape(-1, 3) - 0.5 * thickness
    stops = boxes[:, np.array(ends), axes].reshape(-1, 3) + 0.5 * thickness
    unit = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    positions = np.where(unit[None] == 1, stops[:, None], starts[:, None]).reshape(-1, 3)
    faces = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    bar = np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    triangles = (8 * np.arange(len(starts))[:, None, None] + bar[None]).reshape(-1, 3)
    return np.ascontiguousarray(positions), triangles.astype(np.int32)
