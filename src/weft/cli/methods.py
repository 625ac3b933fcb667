"""weft methods"""

from __future__ import annotations

import json
from typing import Annotated

import typer

EXAMPLE = "Example: weft methods, then: weft run flag --method provot1995"


def methods(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the methods (named sets of parts) and the parts that a scene can combine."""
    from weft.methods import METHODS, PARTS

    if as_json:
        parts = {kind: list(family) for kind, family in PARTS.items()}
        named = {name: json.loads(method.model_dump_json()) for name, method in METHODS.items()}
        typer.echo(json.dumps({"methods": named, "parts": parts}))
        return
    for name, method in METHODS.items():
        typer.echo(f"{name:<12} {method.description}")
    typer.echo("\nparts for a table of your own (method = { model = ..., integrator = ... }):")
    for kind, family in PARTS.items():
        typer.echo(f"{kind:<12} {', '.join(family)}")
