"""weft render RECORDING"""

from __future__ import annotations

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
) -> None:
    """Draw a recording as a picture or an animation."""
    from weft.errors import WeftError
    from weft.render.film import Film, is_animation
    from weft.simulation.recording import Recording

    width, _, height = size.lower().partition("x")
    if not (width.isdigit() and height.isdigit() and 16 <= int(width) <= 8192 and 16 <= int(height) <= 8192):
        raise WeftError(f"--size {size}: expected WIDTHxHEIGHT from 16 to 8192, e.g. 960x720")
    animated = is_animation(output)
    film = Film(Recording(recording), (int(width), int(height)), azimuth, elevation, stretch)
    if not animated:
        film.write_picture(output, frame)
    else:
        from weft.cli.progress import progress

        with progress("drawing", film.n_pictures) as advance:
            film.write_animation(output, advance)
    typer.echo(f"{output}: drawn")
