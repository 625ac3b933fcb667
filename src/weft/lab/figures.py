"""Cloth against theory, figure by figure. Each runs its experiments anew: a line is theory, a dot is the shell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.lab import experiments, theory
from weft.lab.plot import Figure, Series
from weft.models.fabrics import load_fabric


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


def swing() -> Figure:
    """Energy of a swinging sheet, which implicit Euler loses with its step."""
    limp = load_fabric("cotton").model_copy(update={"damping": 0.0, "bending_warp": 1e-9, "bending_weft": 1e-9})
    period = theory.swing_period(0.5)
    series = [Series("theory", [(0.0, 1.0), (1.0, 1.0)], False)]
    for dt in (0.008, 0.004, 0.002):
        found = experiments.swing(limp, 0.5, dt, period)
        share = found.energies / found.energies[0]
        series.append(
            Series(
                f"step of {1e3 * dt:g} ms",
                list(zip(found.times / period, share, strict=True))[:: round(0.04 / dt)],
                True,
            )
        )
        quarter = 4.0 * found.times[np.argmax(found.tips < 0.0)] / period
    note = f"{100 * (1 - share[-1]):.0f} % lost in a period at 2 ms, period within {100 * abs(quarter - 1):.1f} %"
    return Figure("Swinging sheet", "time / period", "energy / energy at first", series, note)


def tipping() -> Figure:
    """Stiffness of a strip on its edge, which vanishes where it tips over."""
    cotton = load_fabric("cotton")
    even = cotton.model_copy(update={"bending_weft": cotton.bending_warp})
    critical = theory.buckling_length(even)
    shares = [float(v) for v in np.linspace(0.6, 1.1, 6)]
    series, notes = [Series("Prandtl", [(0.6, 0.0), (1.0, 0.0), (1.0, 1.0)], False)], []
    for segments, rows in ((12, 1), (24, 1), (48, 2)):
        found = [(v, experiments.buckling_stiffness(even, v * critical, segments, rows)) for v in shares]
        lengths, stiffness = np.array(found).T
        onset = float(np.interp(0.0, -stiffness, lengths))
        notes.append(f"{100 * (onset - 1):.1f} %")
        series.append(Series(f"{segments} segments", found, True))
    note = f"onset off by {', '.join(notes)}"
    return Figure("Strip on its edge tips over", "length / critical length", "relative stiffness", series, note)


def incline() -> Figure:
    """How cloth of friction 0.3 gathers speed on a slope."""
    friction = 0.3
    angles = [float(v) for v in np.linspace(10.0, 30.0, 41)]
    wanted = [(v, theory.slope_acceleration(friction, v)) for v in angles]
    found = [(v, experiments.slope_acceleration(friction, v)) for v in (10.0, 15.0, 16.0, 17.5, 20.0, 25.0, 30.0)]
    worst = max(abs(a - theory.slope_acceleration(friction, v)) for v, a in found)
    title = f"Slope, friction {friction} (slides from {np.rad2deg(np.arctan(friction)):.1f} deg)"
    series = [Series("Coulomb", wanted, False), Series("cotton", found, True)]
    return Figure(title, "slope [deg]", "acceleration [m/s2]", series, f"within {worst:.2g} m/s2")


FIGURES: dict[str, Callable[[], Figure]] = {
    "elastica": elastica,
    "stiffness": stiffness,
    "shear": shear,
    "hanging": hanging,
    "sag": sag,
    "swing": swing,
    "tipping": tipping,
    "incline": incline,
}
