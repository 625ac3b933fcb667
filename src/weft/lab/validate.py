"""Plots of cloth against theory: `python -m weft.lab.validate out/validate` writes SVG pictures and a table.

Each figure runs its experiments anew. A line is theory, a dot is the shell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.lab import experiments, theory
from weft.models.fabrics import load_fabric

WIDTH, HEIGHT, MARGIN = 560, 380, 56
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b")


class Series(NamedTuple):
    """One curve or one set of dots."""

    label: str
    points: list[tuple[float, float]]
    dots: bool


class Figure(NamedTuple):
    """A figure and the largest deviation it shows."""

    title: str
    x_label: str
    y_label: str
    series: list[Series]
    deviation: str


def elastica() -> Figure:
    """Shapes of overhanging strips over two decades of the load."""
    fabric = load_fabric("cotton")
    unit = (fabric.bending_weft / (theory.GRAVITY * fabric.density)) ** (1 / 3)
    series, worst = [], 0.0
    for load in (1.0, 3.0, 10.0, 30.0, 100.0):
        length = unit * load ** (1 / 3)
        wanted = theory.heavy_elastica(load)
        found = experiments.cantilever(fabric, length, 20) / length
        worst = max(worst, abs(found[-1, 1] / wanted[-1, 1] - 1.0))
        series.append(Series(f"w L3 / B = {load:g}", [(x, z) for x, z in wanted], False))
        series.append(Series("", [(x, z) for x, z in found[1:]], True))
    note = f"tip height within {100 * worst:.2f} % with 20 segments"
    return Figure("Cantilever and heavy elastica", "distance / length", "height / length", series, note)


def stiffness() -> Figure:
    """Stiffness of strips cut at angles to the weft."""
    fabric = load_fabric("cotton")
    angles = np.linspace(0.0, 90.0, 91)
    wanted = [(float(a), theory.stiffness_at(fabric, float(a))) for a in angles]
    series, worst = [Series("theory", wanted, False)], 0.0
    for kind in ("grid", "unstructured"):
        found = [(float(a), experiments.pulled_strip(fabric, float(a), kind)) for a in angles[::15]]
        worst = max(worst, *(abs(k / theory.stiffness_at(fabric, a) - 1.0) for a, k in found))
        series.append(Series(kind, found, True))
    note = f"within {100 * worst:.3f} %"
    return Figure("Stiffness from weft to warp", "angle to the weft [deg]", "stiffness [N/m]", series, note)


def shear() -> Figure:
    """Energy in the picture frame."""
    fabric, side = load_fabric("cotton"), 0.1

    def energy(a: float) -> float:
        return float(0.5e3 * fabric.shear * np.sin(np.deg2rad(a)) ** 2 * side**2)

    angles = [float(a) for a in np.linspace(0.0, 30.0, 31)]
    found = [(a, 1e3 * experiments.picture_frame(fabric, side, a, "unstructured")) for a in angles[5::5]]
    worst = max(abs(e / energy(a) - 1.0) for a, e in found)
    series = [Series("theory", [(a, energy(a)) for a in angles], False), Series("unstructured mesh", found, True)]
    return Figure("Picture frame", "shear [deg]", "energy [mJ]", series, f"within {100 * worst:.3f} %")


def hanging() -> Figure:
    """Stretch of hanging jersey, and the sag of a limp strip."""
    jersey = load_fabric("jersey")
    lengths = [float(v) for v in np.linspace(0.2, 2.0, 10)]
    wanted = [(v, 1e3 * theory.hanging_stretch(jersey, v)) for v in lengths]
    found = [(v, 1e3 * experiments.hanging_strip(jersey, v, 20)) for v in lengths[1::2]]
    worst = max(abs(e / (1e3 * theory.hanging_stretch(jersey, v)) - 1.0) for v, e in found)
    series = [Series("theory", wanted, False), Series("jersey, 20 segments", found, True)]
    return Figure("Hanging strip", "length [m]", "extension [mm]", series, f"within {100 * worst:.2f} %")


def sag() -> Figure:
    """Sag of a limp strip, against the catenary."""
    limp = load_fabric("cotton").model_copy(
        update={"bending_warp": 1e-10, "bending_weft": 1e-10, "stretch_warp": 2e4, "stretch_weft": 2e4}
    )
    spans = [float(v) for v in np.linspace(0.3, 0.95, 27)]
    wanted = [(v, theory.catenary_sag(1.0, v)) for v in spans]
    found = [(v, experiments.catenary(limp, 1.0, v, 40)) for v in spans[3::8]]
    worst = max(abs(e / theory.catenary_sag(1.0, v) - 1.0) for v, e in found)
    series = [Series("catenary", wanted, False), Series("limp strip, 40 segments", found, True)]
    return Figure(
        "Limp strip between two points", "span / length", "sag / length", series, f"within {100 * worst:.2f} %"
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    "elastica": elastica,
    "stiffness": stiffness,
    "shear": shear,
    "hanging": hanging,
    "sag": sag,
}


def draw(figure: Figure) -> str:
    """The figure as SVG."""
    points = np.array([point for series in figure.series for point in series.points])
    low, high = points.min(axis=0), points.max(axis=0)
    pad = 0.04 * (high - low)
    low, high = low - pad, high + pad

    def place(point: tuple[float, float]) -> tuple[float, float]:
        share = (np.array(point) - low) / (high - low)
        return MARGIN + float(share[0]) * (WIDTH - 1.5 * MARGIN), HEIGHT - MARGIN - float(share[1]) * (
            HEIGHT - 2 * MARGIN
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{MARGIN}" y="22" font-size="15">{figure.title}: {figure.deviation}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{figure.x_label}</text>',
        f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{figure.y_label}</text>',
    ]
    for axis in range(2):
        for value in _ticks(low[axis], high[axis]):
            x, y = place((value, low[1]) if axis == 0 else (low[0], value))
            end = (x, place((value, high[1]))[1]) if axis == 0 else (place((high[0], value))[0], y)
            parts.append(f'<path d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}" stroke="#ddd"/>')
            at = (x, y + 16, "middle") if axis == 0 else (x - 6, y + 4, "end")
            parts.append(f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{at[2]}">{value:g}</text>')
    row, colour = 0, -1
    for series in figure.series:
        colour += not series.dots or bool(series.label)
        shade = COLOURS[colour % len(COLOURS)]
        placed = [place(point) for point in series.points]
        if series.dots:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{shade}"/>' for x, y in placed]
        else:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{shade}" stroke-width="1.5"/>')
        if series.label:
            parts.append(f'<text x="{MARGIN + 10}" y="{MARGIN + 4 + 16 * row}" fill="{shade}">{series.label}</text>')
            row += 1
    return "\n".join([*parts, "</svg>\n"])


def _ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 6
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(s - rough)))
    return [round(k * step, 12) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def main(folder: Path) -> None:
    """Write every figure into `folder`, and say what each shows."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, build in FIGURES.items():
        figure = build()
        (folder / f"{name}.svg").write_text(draw(figure), encoding="utf-8")
        sys.stdout.write(f"{name:12} {figure.title}: {figure.deviation}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out/validate"))
