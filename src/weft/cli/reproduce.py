"""weft reproduce PAPER"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: weft reproduce liu1998 --quick -o out/liu1998"


def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper, e.g. liu1998.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small cloths and few steps: minutes, not an hour.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the report; out/reproduce/PAPER by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Run again what has been run before.")] = False,
) -> None:
    """Run a paper's experiments and write its tables and figures beside ours, as Markdown and HTML."""
    from weft.reproduce import PAPERS

    measure = PAPERS.load(paper)
    folder = output or Path("out") / "reproduce" / (f"{paper}-quick" if quick else paper)

    from weft.cli.progress import progress

    with progress("reproducing", measure.n_parts(quick)) as advance:
        report = measure(folder, quick=quick, overwrite=overwrite).run(advance)
    typer.echo(report.as_text())
    typer.echo(f"{folder / 'report.html'}: written, with report.md")
