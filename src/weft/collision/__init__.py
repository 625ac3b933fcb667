"""Collision detection and response, each part usable alone on plain arrays.

The functions below are imported when they are first used, so that `import weft` does not load numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.collision.certificate import intersections, self_intersections
    from weft.collision.narrow.continuous import time_of_impact
    from weft.collision.narrow.proximity import distances

_WHERE = {
    "distances": "weft.collision.narrow.proximity",
    "intersections": "weft.collision.certificate",
    "self_intersections": "weft.collision.certificate",
    "time_of_impact": "weft.collision.narrow.continuous",
}
__all__ = ["distances", "intersections", "self_intersections", "time_of_impact"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
