"""Figures of curves and dots as SVG, without any library."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

WIDTH, HEIGHT, MARGIN, LEGEND = 700, 380, 56, 150
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


def draw(figure: Figure) -> str:
    """The figure as SVG."""
    points = np.array([point for series in figure.series for point in series.points])
    low, high = points.min(axis=0), points.max(axis=0)
    pad = 0.04 * (high - low)
    low, high = low - pad, high + pad

    def place(point: tuple[float, float]) -> tuple[float, float]:
        share = (np.array(point) - low) / (high - low)
        return MARGIN + float(share[0]) * (WIDTH - LEGEND - 1.5 * MARGIN), HEIGHT - MARGIN - float(share[1]) * (
            HEIGHT - 2 * MARGIN
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{MARGIN}" y="22" font-size="15">{figure.title}: {figure.deviation}</text>',
        f'<text x="{(WIDTH - LEGEND) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{figure.x_label}</text>',
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
            at_y = MARGIN + 10 + 18 * row
            parts.append(f'<text x="{WIDTH - LEGEND}" y="{at_y}" fill="{shade}">{series.label}</text>')
            row += 1
    return "\n".join([*parts, "</svg>\n"])


def _ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 6
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(s - rough)))
    return [round(k * step, 12) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
