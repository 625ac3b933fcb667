"""weft render RECORDING"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: weft render out/tablecloth -o tablecloth.png   or: weft render out/flag -o flag.webp --size 640x480"


def render(
    recording: Annotated[Path, typer.Argument(help="A recording.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="x.png for a picture, x.webp or x.gif for an animation.")
    ],
    frame: Annotated[int, typer.Option(help="Frame of a picture; -1 is the last.")] = -1,
    size: Annotated[str, typer.Option(help="Width x height in pixels.")] = "960x720",
    azimuth: Annotated[float, typer.Option(help="Direction of view around z, in degrees.")] = 30.0,
    elevation: Annotated[float, typer.Option(min=-89, max=89, help="Height of view, in degrees.")] = 22.0,
    stretch: Annotated[bool, typer.Option("--stretch", help="Colour the cloth by how far it is stretched.")] = False,
    boxes: Annotated[
        str | None,
        typer.Option(help="Draw the boxes that this broad phase, e.g. aabb_tree, did not test against the bodies."),
    ] = None,
) -> None:
    """Draw a recording as a picture or an animation."""
    from weft.errors import WeftError
    from weft.simulation.recording import Recording

    sides = [int(side) for side in size.lower().split("x")] if re.fullmatch(r"[0-9]{2,4}[xX][0-9]{2,4}", size) else []
    if not sides or not 16 <= min(sides) <= max(sides) <= 8192:
        raise WeftError(f"--size {size}: expected WIDTHxHEIGHT, each from 16 to 8192, e.g. 960x720")
    if not (math.isfinite(azimuth) and math.isfinite(elevation)):
        raise WeftError("--azimuth and --elevation must be finite numbers of degrees")
    opened = Recording(recording)

    from weft.render.film import Film, is_animation

    animated = is_animation(output)
    film = Film(opened, (sides[0], sides[1]), azimuth, elevation, stretch, boxes)
    if not animated:
        film.write_picture(output, frame)
    else:
        from weft.cli.progress import progress

        with progress("drawing", film.n_pictures) as advance:
            film.write_animation(output, advance)
    typer.echo(f"{output}: drawn")
