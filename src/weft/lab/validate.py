"""Cloth against theory: `python -m weft.lab.validate out/validate` writes figures, tables and pictures.

Give names after the folder to write only these.
"""

from __future__ import annotations

import sys
from pathlib import Path

from weft.errors import WeftError, nearest
from weft.lab.figures import FIGURES
from weft.lab.pictures import write_buckling, write_drapes, write_models
from weft.lab.plot import draw
from weft.lab.tables import Table, cusick_drapes, cusick_table, resolution_table, sheets_table


def write(name: str, folder: Path) -> str:
    """Write what `name` stands for into `folder`, and return what it shows."""
    if name in FIGURES:
        figure = FIGURES[name]()
        (folder / f"{name}.svg").write_text(draw(figure), encoding="utf-8")
        return f"{figure.title}: {figure.deviation}"
    if name == "models":
        write_models(folder / "models.png")
        return "every cloth model on the tablecloth"
    if name == "buckling":
        write_buckling(folder / "buckling.png")
        return "Choi and Ko's cloth, compressed and hung"
    if name == "cusick":
        drapes = cusick_drapes()
        write_drapes(folder / "cusick.png", drapes)
        return _write_table(cusick_table(drapes), folder / "cusick.md")
    if name == "sheets":
        return _write_table(sheets_table(), folder / "sheets.md")
    return _write_table(resolution_table(), folder / "resolution.md")


NAMES = [*FIGURES, "models", "buckling", "cusick", "sheets", "resolution"]


def _write_table(table: Table, path: Path) -> str:
    text = table.markdown()
    path.write_text(text, encoding="utf-8")
    return text


def main(folder: Path, names: list[str]) -> None:
    """Write all that `names` stand for into `folder`, and say what each shows."""
    for name in names:
        if name not in NAMES:
            raise WeftError(f"unknown figure {name!r}{nearest(name, NAMES)}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        sys.stdout.write(f"{name:12} {write(name, folder)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out/validate"), sys.argv[2:] or NAMES)
