"""weft scenes"""

from __future__ import annotations

import json
from typing import Annotated

import typer

EXAMPLE = "Example: weft scenes, then: weft describe tablecloth"


def scenes(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the scenes that ship with Weft."""
    from weft.scene.files import gallery_names, scene_summary

    rows = {name: scene_summary(name) for name in gallery_names()}
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for name, summary in rows.items():
        typer.echo(f"{name:<12} {summary}")
