"""weft run SCENE"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

VISIBLE_LAG = 1e-5  # [m] of a pin: less is rounding
LARGE_STRETCH = 0.5  # of its length: cloth would have torn
EXAMPLE = "Example: weft run tablecloth -o out/denim --set cloth.0.fabric=denim --set duration=1"


def run(
    scene: Annotated[str, typer.Argument(help="A name from `weft scenes`, or a TOML file.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the recording; out/NAME by default.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="A name from `weft methods`.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a key: cloth.0.fabric=denim")] = None,
    frames: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="Frames after the start; overrides the duration.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the recording that is there.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the recording that is there.")] = False,
    threads: Annotated[int | None, typer.Option(min=1, max=256, help="Threads; all cores by default.")] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Print the time spent in each stage.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Simulate a scene and record it, with a certificate for every frame."""
    from weft.errors import WeftError
    from weft.scene.files import load_scene
    from weft.simulation.recording import output_folder, refuse_folder

    if resume and overwrite:
        raise WeftError("--resume and --overwrite exclude each other; give one")
    overrides = list(set_ or [])
    if method is not None:
        overrides.insert(0, f"method={json.dumps(method)}")  # what is set of it comes after it
    loaded = load_scene(scene, overrides)
    refuse_folder(output_folder(loaded, output), overwrite=overwrite, resume=resume)
    if frames is not None:
        loaded = loaded.model_copy(update={"duration": frames / loaded.fps})
    if threads is not None:
        os.environ["WEFT_THREADS"] = str(threads)  # numba fixes its largest thread count when it is imported

    from weft.cli.progress import progress
    from weft.simulation.run import run as simulate

    with progress("simulating", loaded.n_frames + 1, quiet=as_json) as advance:
        recording = simulate(
            loaded, output, overwrite=overwrite, resume=resume, on_frame=lambda frame: advance(frame.index + 1)
        )
    rows = recording.certificates
    summary: dict[str, Any] = {
        "recording": str(recording.path),
        "frames": len(rows),
        "intersecting_frames": sum(1 for row in rows if row["intersections"] or row["body_intersections"]),
        "max_intersections": max(row["intersections"] + row["body_intersections"] for row in rows),
        "vertices_inside_bodies": max(row["inside"] for row in rows),
        "max_stretch": max(row["max_stretch"] for row in rows),
        "most_stretched_frame": max(range(len(rows)), key=lambda k: rows[k]["max_stretch"]),
        "max_pin_lag": max(row.get("pin_lag", 0.0) for row in rows),
        "untangled": recording.meta.get("untangled"),
        "seconds": _by_stage(rows),
    }
    if as_json:
        typer.echo(json.dumps(summary))
        return
    if summary["untangled"]:
        typer.echo(describe_start(summary["untangled"]))
    typer.echo(f"{summary['recording']}: {summary['frames']} frames, {_verdict(summary)}")
    if profile:
        seconds = _by_stage(rows)
        for stage, spent in sorted(seconds.items(), key=lambda item: -item[1]):
            share = 100.0 * spent / max(sum(seconds.values()), 1e-12)
            typer.echo(f"  {stage:<10} {1e3 * spent / len(rows):8.2f} ms a frame {share:5.1f} %")


def describe_start(untangled: dict[str, float]) -> str:
    """What was done about a tangled start, from the `meta.json` of its recording."""
    words = {"crossings": "crossings", "touching": "touching pairs", "in_bodies": "places in bodies"}
    found = ", ".join(f"{untangled[key]} {word}" for key, word in words.items() if untangled[key])
    pins = f", {untangled['pins']} of them pinned" if untangled["pins"] else ""
    left = f"; {untangled['left']} are left" if untangled["left"] else ""
    return f"untangled the start: {found}; moved vertices by up to {_length(untangled['moved'])}{pins}{left}"


def _length(metres: float) -> str:
    return f"{metres:.2g} m" if metres >= 0.1 else f"{1e3 * metres:.2g} mm"


def _by_stage(rows: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for row in rows:
        for stage, spent in row["seconds"].items():
            total[stage] = round(total.get(stage, 0.0) + spent, 6)
    return total


def _verdict(summary: dict[str, object]) -> str:
    if summary["intersecting_frames"]:
        crossing = (
            f"{summary['intersecting_frames']} of them with intersections, {summary['max_intersections']} at worst"
        )
    else:
        crossing = "certified free of intersections"
    inside = (
        f", {summary['vertices_inside_bodies']} vertices inside bodies" if summary["vertices_inside_bodies"] else ""
    )
    lag = float(str(summary["max_pin_lag"]))
    yielding = f"; pins gave way by up to {_length(lag)} so as not to cross" if lag > VISIBLE_LAG else ""
    stretch = float(str(summary["max_stretch"]))
    torn = f"; stretched by {stretch:.0%} in frame {summary['most_stretched_frame']}: pins or bodies pull too far"
    return f"{crossing}{inside}{yielding}{torn if stretch > LARGE_STRETCH else ''}"
