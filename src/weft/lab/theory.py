"""What theory says of a cloth: closed forms and boundary-value problems, without any mesh."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_bvp, trapezoid
from scipy.optimize import brentq

from weft.arrays import Floats
from weft.models.fabrics import Fabric

GRAVITY = 9.81
BUCKLING_LOAD = 12.85  # Prandtl, Michell (1899): q L^3 / sqrt(EI GJ) of a narrow cantilever under its own weight
HANGING_CHAIN = 2.404825557695773  # first zero of the Bessel function J0


def heavy_elastica(load: float, samples: int = 401) -> Floats:
    """Shape (samples, 2) of a clamped heavy strip of unit length: distance from the clamp, and sink.

    B t'' = -w (L - s) cos t, with t the angle below the horizontal, t(0) = 0 and t'(L) = 0; `load` = w L^3 / B.
    """
    s, t = np.linspace(0.0, 1.0, 101), np.zeros((2, 101))
    for q in np.geomspace(min(load, 1.0), load, 2 + int(6 * max(0.0, np.log10(load)))):

        def slope(s: Floats, t: Floats, q: float = q) -> Floats:
            return np.stack([t[1], -q * (1.0 - s) * np.cos(t[0])])

        found = solve_bvp(slope, lambda a, b: np.array([a[0], b[1]]), s, t, tol=1e-8, max_nodes=50000)
        s, t = found.x, found.y
    at = np.linspace(0.0, 1.0, samples)
    angle = found.sol(at)[0]
    steps = np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    walked = np.cumsum(0.5 * (steps[1:] + steps[:-1]) / (samples - 1), axis=0)
    return np.concatenate([np.zeros((1, 2)), walked])


def overhang_at(degrees: float) -> float:
    """Overhang, in bending lengths (B / w)^(1/3), at which the tip is seen that far below the edge."""

    def angle(load: float) -> float:
        x, sink = np.abs(heavy_elastica(load)[-1])
        return float(np.rad2deg(np.arctan2(sink, x))) - degrees

    load: float = brentq(angle, 1.0, 40.0, xtol=1e-6)
    return float(load ** (1.0 / 3.0))


def hanging_stretch(fabric: Fabric, length: float) -> float:
    """Extension [m] of a strip that hangs along its warp, by its own weight.

    At the distance s from the lower end the pull is w s = Y e l with e = (l^2 - 1) / 2, l the stretch.
    """
    s = np.linspace(0.0, length, 1001)
    pull = GRAVITY * fabric.density * s / fabric.stretch_warp
    stretch = np.array([brentq(lambda a, p=p: 0.5 * a * (a * a - 1.0) - p, 1.0, 3.0) for p in pull])
    return float(trapezoid(stretch - 1.0, s))


def catenary_sag(length: float, span: float) -> float:
    """Sag of an inextensible strip of that length between two points of equal height."""
    a = float(brentq(lambda a: 2.0 * a * np.sinh(0.5 * span / a) - length, 0.05 * span, 50.0 * span))
    return a * (float(np.cosh(0.5 * span / a)) - 1.0)


def stiffness_at(fabric: Fabric, degrees: float) -> float:
    """Membrane stiffness [N/m] of a strip pulled at an angle to the weft, sides free."""
    c, s = np.cos(np.deg2rad(degrees)) ** 2, np.sin(np.deg2rad(degrees)) ** 2
    coupling = 1.0 / fabric.shear - 2.0 * fabric.poisson / np.sqrt(fabric.stretch_weft * fabric.stretch_warp)
    return float(1.0 / (c * c / fabric.stretch_weft + s * s / fabric.stretch_warp + c * s * coupling))


def swing_period(length: float) -> float:
    """Period [s] of the slowest small swing of a hanging chain."""
    return 2.0 * np.pi / (0.5 * HANGING_CHAIN * float(np.sqrt(GRAVITY / length)))


def buckling_length(fabric: Fabric) -> float:
    """Length [m] at which a strip, clamped at one end and standing on its edge, tips over by its own weight.

    A strip of height b and equal rigidities B has EI = B b and GJ = 2 B b.
    """
    return float((BUCKLING_LOAD * np.sqrt(2.0) * fabric.bending_weft / (GRAVITY * fabric.density)) ** (1.0 / 3.0))


def slope_acceleration(friction: float, degrees: float) -> float:
    """Acceleration [m/s2] of what lies on a slope, by Coulomb."""
    angle = np.deg2rad(degrees)
    return float(max(0.0, GRAVITY * (np.sin(angle) - friction * np.cos(angle))))
