"""weft describe NAME"""

from __future__ import annotations

import inspect
import json
import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

    from weft.parameters import Row
    from weft.registry import Family

EXAMPLE = "Example: weft describe cotton   or: weft describe tablecloth   or: weft describe mass_spring"


ALL = ("name", "type", "unit", "default", "range", "meaning")
PRESET = ("name", "value", "unit", "range", "meaning")
SCENE = ("name", "value", "unit", "meaning")


class Description(NamedTuple):
    """All that is said about one name."""

    text: str
    rows: list[Row]
    columns: tuple[str, ...]
    """what to show of each row; "value" is its default, where the rows hold what a preset sets"""
    hint: str
    """how to use it, or where to read on"""
    preset: BaseModel | None = None
    """the values themselves, for programs"""


def describe(
    name: Annotated[
        str, typer.Argument(help="A fabric, scene, method or part; or a table of the scene file: scene, cloth, grid...")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Explain a fabric, a scene, a method or a part: its parameters with units, defaults and ranges, and its paper."""
    found = _lookup(name)
    if as_json:
        rows = [dict(zip(found.columns, _cells(row, found.columns), strict=True)) for row in found.rows]
        answer = {"name": name, "description": found.text, "parameters": rows, "hint": found.hint}
        if found.preset is not None:
            answer["values"] = json.loads(found.preset.model_dump_json())
        typer.echo(json.dumps(answer))
        return
    typer.echo(f"{found.text}\n")
    if found.rows:
        _print_table(found)
    else:
        typer.echo("It has no parameters.")
    typer.echo(f"\n{found.hint}")


def _lookup(name: str) -> Description:
    from weft.errors import WeftError, nearest
    from weft.methods import METHODS, PARTS
    from weft.models.fabrics import fabric_names, load_fabric
    from weft.parameters import set_values, value_table
    from weft.scene.files import gallery_names, load_scene

    tables = _tables()
    parts = {part: (kind, family) for kind, family in PARTS.items() for part in family}
    if name in fabric_names():
        fabric = load_fabric(name)
        rows = [row for row in value_table(fabric) if row.name != "source"]
        hint = f"Use it: weft run tablecloth --set cloth.0.fabric={name}"
        return Description(f"fabric {name}: {fabric.source}", rows, PRESET, hint, fabric)
    if name in gallery_names():
        scene = load_scene(name)
        rows = [row for row in set_values(scene) if row.name not in ("name", "description")]
        hint = f"Run it: weft run {name}   Change a key: --set KEY=VALUE   All keys: weft describe scene"
        return Description(f"scene {name}: {scene.description}", rows, SCENE, hint, scene)
    if name in METHODS:
        rows = [row for row in value_table(METHODS[name]) if row.name != "description"]
        hint = f"Use it: weft run tablecloth --method {name}"
        return Description(f"method {name}: {METHODS[name].description}", rows, PRESET, hint, METHODS[name])
    if name in parts:
        return _describe_part(name, *parts[name])
    if name in tables:
        return _describe_table(name, tables[name])
    known = [*fabric_names(), *gallery_names(), *METHODS, *parts, *tables]
    raise WeftError(f"nothing is called {name!r}{nearest(name, known)}")


def _tables() -> dict[str, type[BaseModel]]:
    """Every table of a scene file, by the key that holds it."""
    from weft.explain import tables_in
    from weft.models.sheets import SHEETS
    from weft.scene.schema import Scene

    return {home[-1] if home else "scene": model for home, model in tables_in(Scene)} | dict(SHEETS)


def _describe_part(name: str, kind: str, family: Family) -> Description:
    from weft.parameters import parameter_table

    member = family.load(name)
    rows = parameter_table(member.Parameters)
    about = inspect.getdoc(sys.modules[member.__module__]) or ""
    first = next((f", {row.name} = {_quoted(row)}" for row in rows if row.default), "")
    part = f'{{ name = "{name}"{first} }}' if first else f'"{name}"'
    hint = f"In a scene: method = {{ {kind} = {part} }}"
    return Description(f"{kind} {name}: {inspect.getdoc(member)}\n\n{about}", rows, ALL, hint)


def _quoted(row: Row) -> str:
    return json.dumps(row.default) if row.type in ("text", "choice") else row.default


def _describe_table(name: str, model: type[BaseModel]) -> Description:
    from weft.explain import keys_of, models_in
    from weft.parameters import parameter_table

    inner = [key for key in keys_of(model) if models_in(model.model_fields[key].annotation)]
    hint = f"More: weft describe {' | '.join(inner or ['scene'])}"
    return Description(f"{name}: {inspect.getdoc(model)}", parameter_table(model), ALL, hint)


def _cells(row: Row, columns: tuple[str, ...]) -> list[str]:
    values = row._asdict()
    return [values["default" if column == "value" else column] for column in columns]


def _print_table(found: Description) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in found.columns:
        table.add_column(heading, overflow="fold")
    for row in found.rows:
        table.add_row(*_cells(row, found.columns))
    Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False).print(table)
