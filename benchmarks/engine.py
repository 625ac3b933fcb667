"""The engine on the two scenes on which cloth simulators are compared: milliseconds a frame, quality, and growth.

    python benchmarks/engine.py [--sizes 21 51 101 201 401] [--frames 120] [--repeats 1] [--bpy PYTHON]

A square metre of cloth of 0.2 kg/m2 with a stretch stiffness of 4,000 N/m, 60 frames a second, friction 0.3: `table`,
it falls on a box; `ground`, it stands on the floor, rippled, and crumples; both start as they are at rest. Times are
those of `Simulation.step`, warm, with the certificate beside. Where Blender's `bpy` is installed (here, or for the
interpreter `--bpy`), its cloth runs the same scenes in the same run, one after the other, at 8 steps a frame and 4
rounds of collisions, its units converted to ours. On a busy machine repeat: sizes and programs take turns, round by
round, and of each the fastest run counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh

from weft.geometry.mesh import build_grid
from weft.jit import threads
from weft.scene.schema import Scene
from weft.simulation.simulation import Simulation

DENSITY, STRETCH, BENDING, FRICTION = 0.2, 4000.0, 1e-5, 0.3  # kg/m2, N/m, N m, 1
WARM_SIZE, WARM_FPS, WARM_FRAMES = 31, 20, 30  # steps so long that cloth is held back, eased and solved again
HIGH, LOW = 0.10, 0.02  # largest and mean stretch that count as cloth


class Result(NamedTuple):
    """What one run gave."""

    scene: str
    size: int
    ms: float
    """a frame, without the certificate"""
    certificate_ms: float
    crossings: int
    """in all frames: crossing triangles, and vertices inside bodies"""
    max_stretch: float
    mean_stretch: float
    stages: dict[str, float]


def contact_distance(size: int) -> float:
    return 0.2 / (size - 1)


def write_ground(size: int, path: Path) -> None:
    """The rippled sheet, as a file: a grid with ripples would be flat at rest, and stretched by 3 % at the start."""
    grid = build_grid((1.0, 1.0), (size, size))
    x, z = grid.positions[:, 0], grid.positions[:, 1] + 0.52
    y = 0.02 * np.sin(3 * np.pi * x) + 0.01 * np.sin(5 * np.pi * z)
    trimesh.Trimesh(np.stack([x, y, z], axis=1), grid.triangles, process=False).export(path, digits=12)


def build_scene(name: str, size: int, folder: Path) -> Scene:
    """Build one of the scenes; `folder` is for its mesh."""
    colliders: list[dict[str, Any]] = [{"plane": {"normal": [0, 0, 1]}, "friction": FRICTION}]
    source: dict[str, Any]
    if name == "table":
        colliders.append({"box": {"size": [0.5, 0.5, 0.5], "center": [0, 0, 0.25]}, "friction": FRICTION})
        source = {"grid": {"size": [1.0, 1.0], "vertices": [size, size], "center": [0.0, 0.0, 0.55]}}
    else:
        source = {"mesh": str(folder / f"ground_{size}.obj")}
        write_ground(size, Path(source["mesh"]))
    fabric = {
        "density": DENSITY,
        "stretch_warp": STRETCH,
        "stretch_weft": STRETCH,
        "shear": STRETCH / 3.0,
        "poisson": 0.3,
        "bending_warp": BENDING,
        "bending_weft": BENDING,
        "friction": FRICTION,
        "thickness": 5e-4,
    }
    cloth = source | {"fabric": fabric, "contact_distance": contact_distance(size)}
    return Scene.model_validate({"name": name, "fps": 60, "duration": 2.0, "cloth": [cloth], "collider": colliders})


def run_weft(name: str, size: int, frames: int) -> Result:
    """Run on the machine's threads, after a small cloth that has made all kernels load; two frames are not timed."""
    with tempfile.TemporaryDirectory() as folder:
        small = Simulation(build_scene(name, WARM_SIZE, Path(folder)).model_copy(update={"fps": WARM_FPS}))
        simulation = Simulation(build_scene(name, size, Path(folder)))
    for _ in range(WARM_FRAMES):
        small.step()
    spent, certifying, crossings = [], [], 0
    worst, means, stages = 0.0, [], dict[str, float]()
    for index in range(1, frames + 1):
        start = time.perf_counter()
        for _ in range(simulation.steps_per_frame):
            simulation.step()
        middle = time.perf_counter()
        certificate = simulation.frame(index).certificate
        spent.append(middle - start)
        certifying.append(time.perf_counter() - middle)
        crossings += certificate.intersections + certificate.body_intersections + certificate.inside
        worst = max(worst, certificate.max_stretch)
        means.append(certificate.mean_stretch)
        for stage, seconds in certificate.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + seconds / frames
    return Result(
        name,
        size,
        1e3 * float(np.mean(spent[2:])),
        1e3 * float(np.mean(certifying[2:])),
        crossings,
        worst,
        max(means),
        stages,
    )


BLENDER = """
import json, math, sys, time
import bpy
import numpy as np
name, size, frames, thickness, density, stretch, bending, friction = json.loads(sys.argv[1])
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, frames + 1
u = np.linspace(-0.5, 0.5, size)
a, b = np.meshgrid(u, u, indexing="ij")
if name == "table":
    x = np.stack([a, b, np.full_like(a, 0.55)], axis=-1)
else:
    z = b + 0.52
    x = np.stack([a, 0.02 * np.sin(3 * np.pi * a) + 0.01 * np.sin(5 * np.pi * z), z], axis=-1)
i, j = np.meshgrid(np.arange(size - 1), np.arange(size - 1), indexing="ij")
first = (i * size + j).ravel()
corners = [first, first + size, first + size + 1, first + 1]
faces = np.concatenate([np.stack([corners[k] for k in t], axis=1) for t in ((0, 1, 2), (0, 2, 3))])
def add(label, vertices, polygons):
    mesh = bpy.data.meshes.new(label)
    mesh.from_pydata(vertices, [], polygons)
    mesh.update()
    thing = bpy.data.objects.new(label, mesh)
    scene.collection.objects.link(thing)
    return thing
def collide(thing):
    thing.modifiers.new("Collision", "COLLISION")
    c = thing.collision
    c.thickness_outer, c.cloth_friction, c.damping = 0.001, 100 * friction, 0.0
    c.use_culling, c.use_normal = True, False
cloth = add("cloth", x.reshape(-1, 3).tolist(), faces.tolist())
collide(add("floor", [(-5, -5, 0), (5, -5, 0), (5, 5, 0), (-5, 5, 0)], [(0, 1, 2, 3)]))
if name == "table":
    h = 0.25
    box = [(p, q, r) for r in (0, 0.5) for p, q in ((-h, -h), (h, -h), (h, h), (-h, h))]
    sides = [(3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
    collide(add("box", box, sides))
modifier = cloth.modifiers.new("Cloth", "CLOTH")
s, c = modifier.settings, modifier.collision_settings
# one frame is 1 / sqrt(1000) s at a time scale of 1, and forces are in thousandths
s.quality, s.time_scale, s.bending_model = 8, math.sqrt(1000.0) / 60.0, "ANGULAR"
edge = 1.0 / (size - 1)
mean_edge = edge * (2.0 + math.sqrt(2.0)) / 3.0
s.mass = density / size**2
share = s.mass / 0.3
s.tension_stiffness = s.compression_stiffness = s.shear_stiffness = stretch * mean_edge / 1000.0
s.bending_stiffness = 0.03 * bending / edge**2
s.tension_damping = s.compression_damping = s.shear_damping = 5.0 * share
s.bending_damping, s.air_damping = 0.5 * share, share
for kind in ("tension", "compression", "shear", "bending"):
    setattr(s, kind + "_stiffness_max", getattr(s, kind + "_stiffness"))
c.use_collision = c.use_self_collision = True
c.collision_quality = 4
c.distance_min, c.self_distance_min = max(0.001, thickness - 0.001), max(0.001, thickness)
c.friction = c.self_friction = 100 * friction
modifier.point_cache.frame_start, modifier.point_cache.frame_end = 1, frames + 1
scene.frame_set(1)
spent = []
for k in range(frames):
    start = time.perf_counter()
    scene.frame_set(2 + k)
    cloth.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.vertices[0].co[0]
    spent.append(time.perf_counter() - start)
print("MS", 1e3 * float(np.mean(spent[2:])))
"""


def run_blender(python: str, name: str, size: int, frames: int) -> float:
    """Milliseconds a frame of Blender's cloth; NaN where it cannot run."""
    values = json.dumps([name, size, frames, contact_distance(size), DENSITY, STRETCH, BENDING, FRICTION])
    done = subprocess.run([python, "-c", BLENDER, values], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("MS ")]
    return float(lines[0].split()[1]) if lines else math.nan


def find_blender(chosen: str | None) -> str | None:
    if chosen is not None:
        return chosen
    return sys.executable if importlib.util.find_spec("bpy") else None


def row(r: Result, blender_ms: float) -> str:
    flag = " " if r.crossings == 0 and r.max_stretch < HIGH and r.mean_stretch < LOW else "!"
    return (
        f"{r.scene:7} {r.size:4}  {r.ms:10.1f}  {r.certificate_ms:11.1f}  {r.crossings:9}  {r.max_stretch:11.3f}"
        f"  {r.mean_stretch:.4f}{flag} {blender_ms:7.1f}  {blender_ms / r.ms:6.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[21, 51, 101, 201, 401])
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=1, help="runs of each, of which the fastest counts")
    parser.add_argument("--bpy", help="an interpreter that has bpy, where this one has not")
    args = parser.parse_args()
    blender = find_blender(args.bpy)
    print(f"{threads()} threads, {args.frames} frames" + ("" if blender else "; Blender: bpy is not installed"))
    print("scene   size  ms a frame  certificate  crossings  max stretch  mean  Blender  times faster")
    cases = [(name, size) for size in args.sizes for name in ("table", "ground")]
    best: dict[tuple[str, int], tuple[Result, float]] = {}
    for _ in range(args.repeats):
        for name, size in cases:
            result = run_weft(name, size, args.frames)
            other = run_blender(blender, name, size, args.frames) if blender else math.nan
            print(row(result, other), flush=True)
            before, other_before = best.get((name, size), (result, other))
            best[name, size] = min(before, result, key=lambda run: run.ms), min(other_before, other)
    if args.repeats > 1:
        print("the fastest of each:")
        for result, other in best.values():
            print(row(result, other))
    for result, _ in best.values():
        print(f"{result.scene} {result.size}: " + ", ".join(f"{k} {1e3 * s:.1f}" for k, s in result.stages.items()))
    for name in ("table", "ground"):
        rows = [result for result, _ in best.values() if result.scene == name]
        for small, large in pairwise(rows):
            power = math.log(large.ms / small.ms) / math.log((large.size - 1) ** 2 / (small.size - 1) ** 2)
            print(f"{name}: {small.size} to {large.size}: {large.ms / small.ms:.1f}x, triangles^{power:.2f}")


if __name__ == "__main__":
    main()
