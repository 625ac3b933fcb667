"""Weft: cloth that never passes through itself.

    recording = weft.run("tablecloth")
    for frame in weft.Simulation(weft.load_scene("flag")): frame.positions
    weft.collision.self_intersections(positions, triangles)

Names are imported when they are first used: `import weft` is fast and does not load numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from weft import collision
    from weft.errors import WeftError
    from weft.models.fabrics import Fabric
    from weft.scene.files import load_scene
    from weft.scene.schema import Cloth, Scene
    from weft.simulation.recording import Recording
    from weft.simulation.run import run
    from weft.simulation.simulation import Simulation

_WHERE = {
    "Cloth": "weft.scene.schema",
    "Fabric": "weft.models.fabrics",
    "Recording": "weft.simulation.recording",
    "Scene": "weft.scene.schema",
    "Simulation": "weft.simulation.simulation",
    "WeftError": "weft.errors",
    "load_scene": "weft.scene.files",
    "run": "weft.simulation.run",
}
__all__ = ["Cloth", "Fabric", "Recording", "Scene", "Simulation", "WeftError", "collision", "load_scene", "run"]


def __getattr__(name: str) -> Any:
    if name == "collision":
        return importlib.import_module("weft.collision")
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
