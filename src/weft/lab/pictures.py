"""Pictures of the laboratory: models side by side, a sheet that buckles, and fabrics on the pedestal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from weft.arrays import Bytes, Floats
from weft.bodies.shapes import Plane
from weft.lab.experiments import Drape
from weft.models import MODELS
from weft.render.camera import Framing
from weft.render.colours import body_colour, cloth_colours
from weft.render.picture import BODY_CREASE, Surface, draw
from weft.scene.files import load_scene
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

SIZE = (480, 360)


def write_models(path: Path) -> None:
    """Every cloth model on the same scene."""
    panels = {}
    for model in MODELS:
        scene = load_scene("tablecloth", ["cloth.0.grid.vertices=[41, 41]", f'method={{model="{model}"}}'])
        panels[model] = _draw_last(scene)
    _write_row(path, panels, columns=3)


def write_buckling(path: Path) -> None:
    """Choi and Ko's cloth: a sheet compressed by a fifth, and one that hangs by two corners."""
    method = {"model": "responsive", "integrator": "bdf2"}
    ripples = [{"amplitude": 0.01, "waves": [0.5, 0.0], "phase": 180}]
    grid = {"size": [0.5, 0.2], "vertices": [31, 13], "ripples": ripples, "center": [0.0, 0.0, 0.01]}
    pins = [
        {"where": end, "motion": {"ease": True, "keyframes": [{"time": 0.0}, {"time": 4.0, "move": [way, 0.0, 0.0]}]}}
        for end, way in (("left", 0.05), ("right", -0.05))
    ]
    common: dict[str, Any] = {"method": method, "fps": 10, "steps_per_frame": 6, "duration": 6.0}
    floor = [{"plane": {"normal": [0, 0, 1]}}]
    compressed = Scene.model_validate(
        {"name": "compressed", "cloth": [{"grid": grid, "pins": pins}], "gravity": [0, 0, 0], **common}
    )
    hanging = {"size": [0.5, 0.5], "vertices": [31, 31], "plane": "xz", "center": [0, 0, 0.6]}
    corners = [{"vertices": [30, 31 * 31 - 1]}]
    hung = Scene.model_validate(
        {"name": "hung", "cloth": [{"grid": hanging, "pins": corners}], "collider": floor, **common}
    )
    _write_row(path, {"compressed by a fifth": _draw_last(compressed), "hung by two corners": _draw_last(hung)})


def write_drapes(path: Path, drapes: dict[str, Drape]) -> None:
    """Fabrics on Cusick's pedestal, from above."""
    panels = {}
    for name, drape in drapes.items():
        label = f"{name}: {100 * drape.coefficient:.0f} %, {drape.nodes} nodes"
        panels[label] = _draw([Surface(drape.positions, drape.mesh.triangles, *cloth_colours(0))], None, 60.0)
    _write_row(path, panels)


def _draw_last(scene: Scene) -> Bytes:
    """The last frame of a scene."""
    simulation = Simulation(scene)
    for frame in simulation:
        positions = frame.positions
    surfaces = [Surface(positions, simulation.world.triangles, *cloth_colours(0))]
    solid = [body for body in simulation.world.bodies if not isinstance(body.shape, Plane)]
    surfaces += [Surface(*body.triangulate(frame.time), body_colour(0), crease=BODY_CREASE) for body in solid]
    return _draw(surfaces, 0.0 if len(solid) < len(simulation.world.bodies) else None)


def _draw(surfaces: list[Surface], ground: float | None, elevation: float = 22.0) -> Bytes:
    framing = Framing(SIZE, elevation=elevation)
    for surface in surfaces:
        positions: Floats = np.asarray(surface.positions, np.float64)
        framing.include(positions)
    return draw(surfaces, framing.camera(), SIZE, ground_height=ground)


def _write_row(path: Path, panels: dict[str, Bytes], columns: int = 4) -> None:
    """Pictures beside one another, each with its name."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    sheet = Image.new("RGB", (columns * SIZE[0], rows * SIZE[1]), "white")
    for k, (name, picture) in enumerate(panels.items()):
        panel = Image.fromarray(picture)
        ImageDraw.Draw(panel).text((10, 8), name, fill="black", font_size=20)
        sheet.paste(panel, (k % columns * SIZE[0], k // columns * SIZE[1]))
    sheet.save(path)
