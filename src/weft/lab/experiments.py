"""The textile laboratory: each experiment builds a piece of cloth, brings it to rest and measures it.

All use the shell model. There are no contacts here: limp cloth that would touch itself passes through.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import brentq

from weft.arrays import Bools, Floats
from weft.geometry.mesh import Mesh, build_grid
from weft.lab.dynamics import fall, settle
from weft.lab.samples import build_polar, build_unstructured, turned_material, vertex_masses
from weft.lab.statics import GRAVITY, find_rest
from weft.models import Model
from weft.models.fabrics import Fabric
from weft.models.shell import Shell, ShellParameters
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

LINEAR = ShellParameters(buckling=1e6)  # theory knows no folds within a triangle


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
    rest = find_rest(Shell(mesh, fabric, LINEAR), x, vertex_masses(mesh, fabric.density), free, tolerance=1e-7)
    return float(x[:, 2].min() - rest.positions[:, 2].min())


def catenary(fabric: Fabric, length: float, span: float, segments: int) -> float:
    """Sag [m] of a strip whose ends are held at equal heights, `span` apart."""
    mesh = build_grid((length, 4 * length / segments), (segments + 1, 5))
    x = mesh.positions.copy()
    s = x[:, 0] / length
    x[:, 0] *= span / length
    x[:, 2] = -0.5 * np.sqrt(length**2 - span**2) * np.cos(np.pi * s)
    free: Bools = np.abs(s) < 0.5 - 1e-9
    rest = find_rest(Shell(mesh, fabric, LINEAR), x, vertex_masses(mesh, fabric.density), free)
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
    model = cast("Model", Shell(mesh, fabric, LINEAR))
    x = find_rest(model, x, masses, ~held, tolerance=1e-7).positions
    lowest = model.energy(x) + GRAVITY * float(masses @ x[:, 2])
    shape = j0(2.404825557695773 * np.sqrt(np.maximum(length - below, 0.0) / length))
    x[:, 1] += amplitude * np.where(held, 0.0, shape)
    x[:, 2] += _shortening(amplitude * shape.reshape(5, n)[0], length / (n - 1))[np.arange(5 * n) % n]
    times, tips, energies = [], [], []
    for k, (now, v) in enumerate(fall(model, mesh, fabric, x, held, dt, tolerance=1e-6)):
        kinetic = 0.5 * float(masses @ (v**2).sum(axis=1))
        times.append(k * dt)
        tips.append(float(now[below > length - 1e-9, 1].mean()))
        energies.append(kinetic + model.energy(now) + GRAVITY * float(masses @ now[:, 2]) - lowest)
        if k == round(duration / dt):
            break
    return Swing(np.array(times), np.array(tips), np.array(energies))


def _shortening(deflection: Floats, spacing: float) -> Floats:
    """How much higher a line lies that is deflected without stretching; v runs upwards, the last vertex is held."""
    rise = spacing - np.sqrt(spacing**2 - np.diff(deflection) ** 2)
    return np.concatenate([np.cumsum(rise[::-1])[::-1], [0.0]])


def buckling_stiffness(fabric: Fabric, length: float, segments: int = 24, rows: int = 2) -> float:
    """Smallest stiffness against tipping over of a strip that stands on its edge, clamped at one end, relative to the
    smallest one without weight. The strip tips over where it becomes negative.

    The model's own matrix leaves compression out, so the second derivative is taken from differences of forces, by four
    points: the forces are cubic in the positions, and a trace of that would outweigh the smallest stiffness.
    """
    h = length / (segments - 0.5)
    mesh = build_grid((segments * h, rows * h), (segments + 1, rows + 1))
    x = np.ascontiguousarray(mesh.positions @ np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]]))
    masses = vertex_masses(mesh, fabric.density)
    model = Shell(mesh, fabric, LINEAR)
    loose = x[:, 0] > x[:, 0].min() + 1.01 * h
    in_plane = np.repeat(loose[:, None], 3, axis=1)
    in_plane[:, 1] = False
    free = np.flatnonzero(loose)
    lowest, step = [], 0.1 * h
    for y in (find_rest(model, x, masses, in_plane).positions, x):
        matrix = np.zeros((len(free), len(free)))
        for k, vi in enumerate(free):
            for multiple, share in ((-2, -1 / 12), (-1, 2 / 3), (1, -2 / 3), (2, 1 / 12)):
                moved, forces = y.copy(), np.zeros_like(y)
                moved[vi, 1] += multiple * step
                model.add_forces(moved, np.zeros_like(y), forces)
                matrix[:, k] += share / step * forces[free, 1]
        inverse = 1.0 / np.sqrt(masses[free])
        lowest.append(float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T) * np.outer(inverse, inverse))[0]))
    return lowest[0] / lowest[1]


def slope_acceleration(friction: float, degrees: float, duration: float = 0.5) -> float:
    """Acceleration [m/s2] of a small cloth that is laid on a slope, from how far it slides."""
    angle = np.deg2rad(degrees)
    normal, down = np.array([np.sin(angle), 0.0, np.cos(angle)]), np.array([np.cos(angle), 0.0, -np.sin(angle)])
    clearance = 0.002
    grid = {"size": [0.2, 0.2], "vertices": [4, 4], "center": list(clearance * normal), "turn": [0, degrees, 0]}
    scene = {"name": "slope", "duration": duration, "fps": round(2 / duration), "steps_per_frame": 60}
    scene |= {"cloth": [{"grid": grid, "contact_distance": clearance}], "wind": {"density": 0.0}}
    scene |= {"collider": [{"plane": {"normal": list(normal)}, "friction": friction}]}
    simulation = Simulation(Scene.model_validate(scene))
    start = simulation.state.positions.mean(axis=0)
    for frame in simulation:
        slid = float((frame.positions.mean(axis=0) - start) @ down)
    return 2.0 * slid / duration**2


class Drape(NamedTuple):
    """A cloth that hangs over a pedestal."""

    mesh: Mesh
    positions: Floats
    coefficient: float
    """shadow of what hangs, relative to the same when flat"""
    nodes: int
    """folds: the strongest wave of the rim's distance from the axis, relative to its distance when flat"""
    fall: float
    """mean of the rim, relative to what overhangs"""


def cusick(
    fabric: Fabric, rings: int = 8, sectors: int = 64, seed: int = 1, *, pedestal: float = 0.09, radius: float = 0.15
) -> Drape:
    """The Cusick drape test (BS 5058): a disc of 30 cm on a pedestal of 18 cm, unless others are given [m].

    The support is lowered within six seconds. Nodes depend on that, as they do in the laboratory: cotton has 8 or 9
    when it is lowered within 1.5 s, 6 or 7 within 6 s and 4 to 6 within 20 s, at energies that differ by some per cent.
    """
    mesh = build_polar(pedestal, radius, rings, sectors)
    distance = np.hypot(*mesh.positions[:, :2].T)
    return _drape(mesh, fabric, distance, (pedestal, radius, (radius - pedestal) / rings), np.pi, seed, lowering=6.0)


def square_drape(fabric: Fabric, vertices: int, kind: str = "grid", seed: int = 1) -> Drape:
    """A square of 40 cm over a square pedestal of 20 cm, with so many vertices a side."""
    side, pedestal = 0.4, 0.2
    if kind == "grid":
        mesh = build_grid((side, side), (vertices, vertices))
    else:
        mesh = build_unstructured((side, side), side / (vertices - 1), pedestal=pedestal)
    distance = np.abs(mesh.positions[:, :2]).max(axis=1)
    return _drape(mesh, fabric, distance, (0.5 * pedestal, 0.5 * side, side / (vertices - 1)), 4.0, seed)


def _drape(
    mesh: Mesh,
    fabric: Fabric,
    distance: Floats,
    sizes: tuple[float, float, float],
    shape: float,
    seed: int,
    lowering: float = 1.5,
) -> Drape:
    """Lower the support of a cloth that is held where `distance` (n,) from the axis is at most the first of `sizes`.

    The others are the distance of the rim and the edges' length h [m]: as in `cantilever`, the cloth is clamped half
    an edge inside the last row held, so that the overhang is longer by h / 2. `shape` is the area within a distance of
    1. The cloth starts flat, with a ripple of random waves a tenth of a millimetre high, and finds its folds.
    """
    inner, outer, h = sizes
    flat = mesh.positions
    angle = np.arctan2(flat[:, 1], flat[:, 0])
    rng = np.random.default_rng(seed)
    ripple = sum(np.cos(n * angle + rng.uniform(0, 2 * np.pi)) * rng.uniform(0.5, 1.0) for n in range(2, 10))
    held: Bools = distance <= inner * (1.0 + 1e-9)
    x = flat.copy()
    x[:, 2] = 1e-4 * ripple * np.where(held, 0.0, (distance - inner) / (outer - inner))
    rest = settle(cast("Model", Shell(mesh, fabric)), mesh, fabric, x, held, lowering=lowering)
    rim = np.flatnonzero(distance > outer * (1.0 - 1e-9))
    rim = rim[np.argsort(angle[rim])]
    px, py = rest[rim, 0], rest[rim, 1]
    shadow = 0.5 * float(np.sum(px * np.roll(py, -1) - py * np.roll(px, -1)))
    around = np.linspace(-np.pi, np.pi, 256, endpoint=False)
    drawn_in = np.interp(around, angle[rim], np.hypot(px, py) / np.hypot(*flat[rim, :2].T), period=2 * np.pi)
    waves = np.abs(np.fft.rfft(drawn_in - drawn_in.mean()))
    return Drape(
        mesh,
        rest,
        (shadow - shape * inner**2) / (shape * (outer**2 - inner**2)),
        int(np.argmax(waves)),
        float(-rest[rim, 2].mean()) / (outer - inner + 0.5 * h),
    )
