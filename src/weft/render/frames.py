"""What the writers of animations share: which part of a frame is new."""

from __future__ import annotations

import numpy as np

from weft.arrays import Bytes


def changed_box(before: Bytes | None, after: Bytes) -> tuple[int, int, int, int]:
    """The box (left, top, right, bottom) of pixels that changed: all without a frame before, one pixel where none did.

    Both are `(height, width)` or `(height, width, 3)`.
    """
    height, width = after.shape[:2]
    if before is None:
        return 0, 0, width, height
    differs = before != after
    if differs.ndim == 3:
        differs = differs.any(axis=2)
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if len(rows) == 0:
        return 0, 0, 1, 1
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
