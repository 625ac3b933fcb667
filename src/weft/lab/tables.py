"""Drapes of cloth, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.lab import experiments, theory
from weft.lab.experiments import Drape
from weft.models.fabrics import fabric_names, load_fabric


class Table(NamedTuple):
    """Rows of words under a title."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> str:
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        return "\n".join([f"# {self.title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""])


def cusick_drapes() -> dict[str, Drape]:
    """Each preset on Cusick's pedestal."""
    return {name: experiments.cusick(load_fabric(name)) for name in fabric_names()}


def cusick_table(drapes: dict[str, Drape]) -> Table:
    """Drape coefficients and nodes, beside what Cusick's regression over measured cloths gives."""
    rows = []
    for name, drape in drapes.items():
        expected = theory.cusick_regression(load_fabric(name))
        rows.append((name, f"{100 * drape.coefficient:.0f}", f"{expected:.0f}", str(drape.nodes), f"{drape.fall:.2f}"))
    head = ("fabric", "drape coefficient [%]", "by Cusick's regression [%]", "nodes", "fall / overhang")
    return Table("A disc of 30 cm on a pedestal of 18 cm, by 8 rings of 64 vertices", head, rows)


def resolution_table(name: str = "denim") -> Table:
    """One fabric on grids of three resolutions and on unstructured meshes."""
    rows = []
    for kind in ("grid", "unstructured"):
        for vertices in (21, 41, 81):
            drape = experiments.square_drape(load_fabric(name), vertices, kind)
            shown = f"{100 * drape.coefficient:.0f}", str(drape.nodes), f"{drape.fall:.3f}"
            rows.append((f"{kind}, {vertices} a side", *shown))
    head = ("mesh", "drape coefficient [%]", "folds", "fall / overhang")
    return Table(f"A square of {name}, 40 cm, over a square pedestal of 20 cm", head, rows)
