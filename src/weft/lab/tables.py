"""Drapes of cloth, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.lab import experiments, published
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
    """Drape coefficients and nodes, beside what was measured of such cloths."""
    rows = []
    for name, drape in drapes.items():
        low, high, of = published.drape_range(name)
        measured = f"{low:.0f} to {high:.0f} ({of})"
        rows.append((name, f"{100 * drape.coefficient:.0f}", measured, str(drape.nodes), f"{drape.fall:.2f}"))
    head = ("fabric", "drape coefficient [%]", "measured [%]", "nodes", "fall / overhang")
    return Table("A disc of 30 cm on a pedestal of 18 cm, by 8 rings of 64 vertices", head, rows)


def sheets_table() -> Table:
    """Cloths of which both the sheet and the drape were measured: what their sheets lead to, and what was seen."""
    rows = []
    for name, coefficient, nodes in published.MATSUDAIRA:
        drape = experiments.cusick(load_fabric(name), pedestal=published.JIS_STAND, radius=published.JIS_RADIUS)
        rows.append((name, f"{100 * drape.coefficient:.0f}", f"{coefficient:.0f}", str(drape.nodes), str(nodes)))
    head = ("fabric", "drape coefficient [%]", "measured [%]", "nodes", "measured")
    return Table("Measured sheets and measured drapes (Matsudaira 2015), 25.4 cm on 12.7 cm", head, rows)


def resolution_table(name: str = "cotton_poplin") -> Table:
    """One fabric on grids of three resolutions and on unstructured meshes."""
    rows = []
    for kind in ("grid", "unstructured"):
        for vertices in (21, 41, 81):
            drape = experiments.square_drape(load_fabric(name), vertices, kind)
            shown = f"{100 * drape.coefficient:.0f}", str(drape.nodes), f"{drape.fall:.3f}"
            rows.append((f"{kind}, {vertices} a side", *shown))
    head = ("mesh", "drape coefficient [%]", "folds", "fall / overhang")
    return Table(f"A square of {name}, 40 cm, over a square pedestal of 20 cm", head, rows)
