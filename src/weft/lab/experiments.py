"""The textile laboratory: each experiment builds a piece of cloth, brings it to rest and measures it.

All use the shell model. There are no contacts here: limp cloth that would touch itself passes through.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import brentq

from weft import jit
from weft.arrays import Bools, Floats
from weft.geometry.mesh import Mesh, build_grid
from weft.integrators import Start
from weft.integrators.implicit_euler import ImplicitEuler, ImplicitEulerParameters
from weft.lab.samples import build_polar, build_unstructured, turned_material, vertex_masses
from weft.lab.statics import GRAVITY, find_rest
from weft.linear.constraints import build_constraints
from weft.models import Model
from weft.models.fabrics import Fabric
from weft.models.shell import Shell
from weft.models.wind import Wind
from weft.simulation.system import ClothSystem


def cantilever(fabric: Fabric, length: float, segments: int, kind: str = "grid") -> Floats:
    """Middle line (k, 2) [m] of a strip along the weft that overhangs an edge: distance from the edge, and height.

    Two rows of vertices are held, and the edge is half way between them.
    """
    h = length / (segments - 0.5)
    size = (segments * h, 4.0 * h)
    mesh = build_grid(size, (segments + 1, 5)) if kind == "grid" else build_unstructured(size, h)
    start = mesh.positions[:, 0].min()
    free = mesh.positions[:, 0] > start + 1.01 * h
    rest = find_rest(Shell(mesh, fabric), mesh.positions, vertex_masses(mesh, fabric.density), free)
    line = np.abs(mesh.positions[:, 1]) < 1e-9 if kind == "grid" else mesh.positions[:, 1] < -2.0 * h + 1e-9
    order = np.flatnonzero(line)[np.argsort(mesh.positions[line, 0])]
    return np.stack([rest.positions[order, 0] - start - 0.5 * h, rest.positions[order, 2]], axis=1)


def overhang(fabric: Fabric, degrees: float = 41.5, segments: int = 24) -> float:
    """Length [m] of strip along the weft whose tip is seen that far below the edge (ASTM D1388, option A)."""

    def angle(length: float) -> float:
        x, z = cantilever(fabric, length, segments)[-1]
        return float(np.rad2deg(np.arctan2(-z, x))) - degrees

    guess = (fabric.bending_weft / (GRAVITY * fabric.density)) ** (1.0 / 3.0)
    return float(brentq(angle, 1.7 * guess, 2.3 * guess, xtol=1e-5))


def hanging_strip(fabric: Fabric, length: float, segments: int) -> float:
    """Extension [m] of a strip that hangs along its warp; its upper edge may narrow."""
    mesh = build_grid((length / 10, length), (3, segments + 1))
    x = mesh.positions @ np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
    top = x[:, 2] > x[:, 2].max() - 1e-9
    free = np.ones(x.shape, bool)
    free[:, 1] = False
    free[top, 2] = False
    free[np.abs(x[:, 0]) < 1e-9, 0] = False
    rest = find_rest(Shell(mesh, fabric), x, vertex_masses(mesh, fabric.density), free, tolerance=1e-7)
    return float(x[:, 2].min() - rest.positions[:, 2].min())


def catenary(fabric: Fabric, length: float, span: float, segments: int) -> float:
    """Sag [m] of a strip whose ends are held at equal heights, `span` apart."""
    mesh = build_grid((length, 4 * length / segments), (segments + 1, 5))
    x = mesh.positions.copy()
    s = x[:, 0] / length
    x[:, 0] *= span / length
    x[:, 2] = -0.5 * np.sqrt(length**2 - span**2) * np.cos(np.pi * s)
    free: Bools = np.abs(s) < 0.5 - 1e-9
    rest = find_rest(Shell(mesh, fabric), x, vertex_masses(mesh, fabric.density), free)
    return float(-rest.positions[:, 2].min())


def picture_frame(fabric: Fabric, side: float, degrees: float, kind: str = "grid") -> float:
    """Energy [J] of a square in a frame with hinged corners, sheared by that angle."""
    mesh = build_grid((side, side), (11, 11)) if kind == "grid" else build_unstructured((side, side), side / 10)
    half = 0.5 * np.deg2rad(degrees)
    frame = np.array([[np.cos(half), np.sin(half), 0.0], [np.sin(half), np.cos(half), 0.0], [0.0, 0.0, 1.0]])
    x = np.ascontiguousarray(mesh.positions @ frame)
    inside = np.abs(mesh.positions[:, :2]).max(axis=1) < 0.5 * side - 1e-9
    model = Shell(mesh, fabric)
    masses = vertex_masses(mesh, fabric.density)
    force = 0.1 * fabric.shear * side
    return model.energy(find_rest(model, x, masses, inside, loads=np.zeros_like(x), force_scale=force).positions)


def pulled_strip(fabric: Fabric, degrees: float, kind: str = "grid") -> float:
    """Stiffness [N/m] of a strip pulled by both ends at an angle to the weft, sides free."""
    size, h, strain = (0.2, 0.05), 0.01, 1e-4
    mesh = build_grid(size, (21, 6)) if kind == "grid" else build_unstructured(size, h)
    mesh = turned_material(mesh, degrees)
    x = mesh.positions
    pull = strain * fabric.shear
    loads = np.zeros_like(x)
    for sign in (-1.0, 1.0):
        end = np.flatnonzero(sign * x[:, 0] > 0.5 * size[0] - 1e-9)
        share = np.where(np.abs(x[end, 1]) > 0.5 * size[1] - 1e-9, 0.5, 1.0)
        loads[end, 0] = sign * pull * size[1] * share / share.sum()
    free = np.ones(x.shape, bool)
    free[:, 2] = False
    middle = np.argmin(np.abs(x[:, :2]).sum(axis=1))
    free[middle] = False  # against drifting,
    free[np.argmin(np.linalg.norm(x - x[middle] - [0.5 * size[0], 0, 0], axis=1)), 1] = False  # and turning
    rest = find_rest(Shell(mesh, fabric), x, vertex_masses(mesh, fabric.density), free, loads=loads, tolerance=1e-7)
    ends = [rest.positions[np.sign(s) * x[:, 0] > 0.5 * size[0] - 1e-9, 0].mean() for s in (-1.0, 1.0)]
    return pull / float((ends[1] - ends[0]) / size[0] - 1.0)


class Swing(NamedTuple):
    """A sheet that swings."""

    times: Floats
    tips: Floats
    """(k,) deflection of the lower edge [m]"""
    energies: Floats
    """(k,) kinetic, elastic and of the weight, from its lowest [J]"""


def swing(fabric: Fabric, length: float, dt: float, duration: float, amplitude: float = 0.02) -> Swing:
    """A narrow sheet, hung by its upper edge and let go in its slowest small swing, by implicit Euler."""
    from scipy.special import j0

    n = 21
    mesh = build_grid((length / 5, length), (5, n))
    x = np.ascontiguousarray(mesh.positions @ np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]]))
    below = x[:, 2].max() - x[:, 2]
    masses = vertex_masses(mesh, fabric.density)
    held = below < 1e-9
    model = Shell(mesh, fabric)
    x = find_rest(model, x, masses, ~held, tolerance=1e-7).positions
    lowest = model.energy(x) + GRAVITY * float(masses @ x[:, 2])
    shape = j0(2.404825557695773 * np.sqrt(np.maximum(length - below, 0.0) / length))
    x[:, 1] += amplitude * np.where(held, 0.0, shape)
    x[:, 2] += _shortening(amplitude * shape.reshape(5, n)[0], length / (n - 1))[np.arange(5 * n) % n]
    v = np.zeros_like(x)
    stepper = ImplicitEuler(model.pairs, len(x), ImplicitEulerParameters(tolerance=1e-6, max_iterations=2000))
    gravity = np.array([0.0, 0.0, -GRAVITY])
    still_air = Wind(density=0.0)
    system = ClothSystem(
        [cast("Model", model)], [slice(0, len(x))], masses, gravity, mesh.topology, still_air, np.zeros(len(x))
    )
    limits = build_constraints(len(x))
    limits.filters[held] = 0.0
    times, tips, energies = [], [], []
    with jit.threads_for(len(x)):
        for k in range(round(duration / dt) + 1):
            kinetic = 0.5 * float(masses @ (v**2).sum(axis=1))
            times.append(k * dt)
            tips.append(float(x[below > length - 1e-9, 1].mean()))
            energies.append(kinetic + model.energy(x) + GRAVITY * float(masses @ x[:, 2]) - lowest)
            stepper.begin(system, Start(x, v, np.zeros((0, *x.shape))), dt)
            v = v + stepper.solve(limits)[0]
            x = x + dt * v
    return Swing(np.array(times), np.array(tips), np.array(energies))


def _shortening(deflection: Floats, spacing: float) -> Floats:
    """How much higher a line lies that is deflected without stretching; v runs upwards, the last vertex is held."""
    rise = spacing - np.sqrt(spacing**2 - np.diff(deflection) ** 2)
    return np.concatenate([np.cumsum(rise[::-1])[::-1], [0.0]])


def buckling_stiffness(fabric: Fabric, length: float, segments: int = 24, rows: int = 2) -> float:
    """Smallest stiffness against tipping over of a strip that stands on its edge, clamped at one end, relative to the
    smallest one without weight. The strip tips over where it becomes negative.

    The model's own matrix leaves compression out, so the second derivative is taken from differences of forces.
    """
    h = length / (segments - 0.5)
    mesh = build_grid((segments * h, rows * h), (segments + 1, rows + 1))
    x = np.ascontiguousarray(mesh.positions @ np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]]))
    masses = vertex_masses(mesh, fabric.density)
    model = Shell(mesh, fabric)
    loose = x[:, 0] > x[:, 0].min() + 1.01 * h
    in_plane = np.repeat(loose[:, None], 3, axis=1)
    in_plane[:, 1] = False
    free = np.flatnonzero(loose)
    lowest = []
    for y in (find_rest(model, x, masses, in_plane).positions, x):
        matrix = np.zeros((len(free), len(free)))
        step = 1e-3 * h
        for k, vi in enumerate(free):
            ends = []
            for sign in (-1.0, 1.0):
                moved, forces = y.copy(), np.zeros_like(y)
                moved[vi, 1] += sign * step
                model.add_forces(moved, np.zeros_like(y), forces)
                ends.append(forces[free, 1])
            matrix[:, k] = (ends[0] - ends[1]) / (2 * step)
        inverse = 1.0 / np.sqrt(masses[free])
        lowest.append(float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T) * np.outer(inverse, inverse))[0]))
    return lowest[0] / lowest[1]


class Drape(NamedTuple):
    """A cloth that hangs over a round pedestal."""

    mesh: Mesh
    positions: Floats
    coefficient: float
    """shadow of the ring that hangs, relative to the ring when flat"""
    nodes: int
    """folds: the strongest wave of the rim's distance from the axis"""
    height: float
    """mean fall of the rim [m]"""


def cusick(
    fabric: Fabric, rings: int = 12, sectors: int = 96, radius: float = 0.15, pedestal: float = 0.09, seed: int = 1
) -> Drape:
    """The Cusick drape test (BS 5058): a disc of 30 cm on a pedestal of 18 cm.

    The cloth starts flat with a ripple of random waves, a tenth of a millimetre high, and falls into the folds that
    it finds.
    """
    mesh = build_polar(pedestal, radius, rings, sectors)
    r, angle = np.hypot(*mesh.positions[:, :2].T), np.arctan2(mesh.positions[:, 1], mesh.positions[:, 0])
    rng = np.random.default_rng(seed)
    ripple = sum(np.cos(n * angle + rng.uniform(0, 2 * np.pi)) * rng.uniform(0.5, 1.0) for n in range(2, 10))
    free = r > pedestal * (1.0 + 1e-9)
    x = mesh.positions.copy()
    x[:, 2] = 1e-4 * ripple * np.where(free, (r - pedestal) / (radius - pedestal), 0.0)
    model = Shell(mesh, fabric)
    rest = find_rest(model, x, vertex_masses(mesh, fabric.density), free, tolerance=1e-2)
    rim = rest.positions[r > radius - 1e-9]
    return Drape(mesh, rest.positions, *measure_rim(rim, radius, pedestal))


def measure_rim(rim: Floats, radius: float, pedestal: float) -> tuple[float, int, float]:
    """Drape coefficient, number of folds and mean fall of a rim (k, 3) in order around the axis."""
    x, y = rim[:, 0], rim[:, 1]
    shadow = 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
    coefficient = (shadow - np.pi * pedestal**2) / (np.pi * (radius**2 - pedestal**2))
    waves = np.abs(np.fft.rfft(np.hypot(x, y) - np.hypot(x, y).mean()))
    return coefficient, int(np.argmax(waves[1:]) + 1), float(-rim[:, 2].mean())
