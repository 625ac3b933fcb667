"""weft describe NAME"""

from __future__ import annotations

import inspect
import json
import sys
from typing import Annotated, Any

import typer

EXAMPLE = "Example: weft describe cotton   or: weft describe tablecloth   or: weft describe mass_spring"


def describe(
    name: Annotated[str, typer.Argument(help="A fabric, scene, method, part or shape; `scene` for the file format.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Explain a fabric, a scene, a method or a part: its parameters with units, defaults and ranges, and its paper."""
    text, rows = _lookup(name)
    if as_json:
        typer.echo(json.dumps({"name": name, "description": text, "parameters": [row._asdict() for row in rows]}))
        return
    typer.echo(f"{text}\n" if rows else text)
    if rows:
        _print_table(rows)


def _lookup(name: str) -> tuple[str, list[Any]]:
    from pydantic import BaseModel

    from weft.bodies.shapes import Box, Capsule, Cylinder, Plane, Sphere
    from weft.errors import WeftError, nearest
    from weft.methods import METHODS, PARTS, Method
    from weft.models.fabrics import Fabric, fabric_names, load_fabric
    from weft.models.wind import Wind
    from weft.parameters import parameter_table
    from weft.scene import schema
    from weft.scene.files import gallery_names, load_scene

    tables: dict[str, type[BaseModel]] = {
        "scene": schema.Scene,
        "cloth": schema.Cloth,
        "grid": schema.Grid,
        "pins": schema.Pin,
        "wind": Wind,
    }
    tables |= {"collider": schema.Collider, "fabric": Fabric, "method": Method}
    tables |= {"plane": Plane, "box": Box, "sphere": Sphere, "capsule": Capsule, "cylinder": Cylinder}
    parts = {part: (kind, family) for kind, family in PARTS.items() for part in family}
    if name in fabric_names():
        fabric = load_fabric(name)
        return f"fabric {name}: {fabric.source}", parameter_table(Fabric, fabric)[:-1]
    if name in gallery_names():
        scene = load_scene(name)
        return f"scene {name}: {scene.description}", parameter_table(schema.Scene, scene)[:-1]
    if name in METHODS:
        return f"method {name}: {METHODS[name].description}", parameter_table(Method, METHODS[name])[1:]
    if name in parts:
        kind, family = parts[name]
        member = family.load(name)
        module = inspect.getdoc(sys.modules[member.__module__]) or ""
        return f"{kind} {name}: {inspect.getdoc(member)}\n\n{module}", parameter_table(member.Parameters)
    if name in tables:
        rows = [row for row in parameter_table(tables[name]) if row.name != "folder"]
        return f"{name}: {inspect.getdoc(tables[name])}", rows
    known = [*fabric_names(), *gallery_names(), *METHODS, *parts, *tables]
    raise WeftError(f"nothing is called {name!r}{nearest(name, known)}")


def _print_table(rows: list[Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "unit", "default", "range", "meaning"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.name, row.unit, row.default, row.range, row.meaning)
    Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False).print(table)
