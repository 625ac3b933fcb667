"""weft check RECORDING|MESH"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: weft check out/tablecloth   or: weft check shirt.obj --json"


def check(
    source: Annotated[Path, typer.Argument(help="A recording or a mesh file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> int:
    """Count the triangles that cross, exactly, frame by frame; exit 1 if there are any."""
    from weft.cli.progress import progress
    from weft.cli.run import describe_start
    from weft.errors import WeftError
    from weft.simulation.recording import Recording

    if not source.exists():
        raise WeftError(f"{source}: no such recording or mesh")
    recording = Recording(source) if source.is_dir() else None
    if recording is not None and len(recording) == 0:
        raise WeftError(f"{source}: holds no frame yet; run its scene first")

    from weft.simulation.check import check_mesh_file, check_recording

    if recording is not None:
        counts = []
        with progress("checking", len(recording), quiet=as_json) as advance:
            for count in check_recording(recording):
                counts.append(count)
                advance(len(counts))
    else:
        counts = [check_mesh_file(source)]
    crossing = [k for k, count in enumerate(counts) if count.crossing]
    if as_json:
        typer.echo(json.dumps({"source": str(source), "frames": [count._asdict() for count in counts]}))
    else:
        if recording is not None and recording.meta.get("untangled"):
            typer.echo(describe_start(recording.meta["untangled"]))
        for k in crossing:
            c = counts[k]
            typer.echo(f"frame {k}: {c.itself} pairs of cloth triangles cross, {c.bodies} of cloth and body")
        verdict = f"{len(crossing)} with intersections" if crossing else "no intersection"
        due = recording.n_due if recording is not None else 1
        missing = f" (of {due}: the run is not done; go on with --resume)" if len(counts) < due else ""
        typer.echo(f"{source}: {len(counts)} {'frame' if len(counts) == 1 else 'frames'} checked, {verdict}{missing}")
    return 1 if crossing else 0
