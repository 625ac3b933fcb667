"""Bad input of every kind, each with the one line that it must be answered with.

Each case is a folder's files, a command line run in that folder, and the line on stderr after "weft: ". Where the
text comes from a library and may change, `…` stands for it.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import struct
from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """One command line that must be refused."""

    id: str
    arguments: list[str]
    answer: str
    files: dict[str, str | bytes | None] = {}  # noqa: RUF012  # never changed
    """name -> contents; None for a folder"""


GRID = "grid = { size = [1, 1], vertices = [5, 5] }\n"
CLOTH = f"[[cloth]]\n{GRID}"


def scene(name: str, text: str | bytes, answer: str, *options: str, **files: str | bytes) -> Case:
    """`weft run s.toml` with `text` in it; the answer starts with the file's name."""
    others = {key.replace("_", "."): value for key, value in files.items()}
    return Case(name, ["run", "s.toml", *options], f"s.toml: {answer}", {"s.toml": text, **others})


def cloth(name: str, text: str, answer: str, **files: str | bytes) -> Case:
    """As `scene`, with `text` in its one cloth."""
    return scene(name, f"[[cloth]]\n{text}\n", answer, **files)


def collider(name: str, text: str, answer: str) -> Case:
    return scene(name, f"{CLOTH}[[collider]]\n{text}\n", answer)


def mesh(name: str, file: str, contents: str | bytes | None, answer: str) -> Case:
    """A cloth from a mesh file that is no good."""
    files = {"s.toml": f'[[cloth]]\nmesh = "{file}"\n', **({} if contents is None else {file: contents})}
    return Case(name, ["run", "s.toml"], f"s.toml: cloth.0.mesh: {file}: {answer}", files)


# fmt: off
FILES = [
    Case("missing file", ["run", "s.toml"], "s.toml: no such file; `weft scenes` lists the scenes that ship"),
    Case("unknown scene", ["run", "tabelcloth"], "unknown scene 'tabelcloth'; did you mean 'tablecloth'?"),
    Case(
        "folder as a scene",
        ["run", "d"],
        "d: is a folder; give a scene file (.toml) or a name: banner, curtain, flag, gather, ground, sphere, tablecloth",
        {"d": None},
    ),
    scene("empty file", "", "cloth: missing; add [[cloth]]"),
    scene("binary garbage", bytes(range(256)), "not a text file in UTF-8; a scene is TOML, see `weft describe scene`"),
    scene(
        "UTF-16", CLOTH.encode("utf-16"), "not a text file in UTF-8; a scene is TOML, see `weft describe scene`"
    ),
    scene("invalid TOML", f"{CLOTH}fabric = cotton\n", "not valid TOML: …line 3…"),
    scene("unclosed bracket", f"{CLOTH}pins = [\n", "not valid TOML: …"),
    scene("key given twice", f"fps = 60\nfps = 30\n{CLOTH}", "not valid TOML: …line 2…"),
    scene("endless nesting", "a = " + "[" * 100_000, "not valid TOML: nested too deeply"),
    scene("number of 5000 digits", f"fps = {'9' * 5000}\n{CLOTH}", "not valid TOML: a number has too many digits"),
    scene("10 MB of nothing", b" " * 10_000_001, "too large for a scene (more than 10,000,000 bytes)"),
    Case("a mesh as a scene", ["run", "a.obj"], "a.obj: not valid TOML: …line 1…", {"a.obj": "v 0 0 0\n"}),
]

KEYS = [
    scene("unknown key", f"duratoin = 1\n{CLOTH}", "duratoin: unknown key; did you mean 'duration'?"),
    scene("unknown key in capitals", f"Duration = 1\n{CLOTH}", "Duration: unknown key; did you mean 'duration'?"),
    scene("unknown table", f"{CLOTH}[[colider]]\n", "colider: unknown key; did you mean 'collider'?"),
    scene("misspelled required table", "[[cloths]]\n", "cloths: unknown key; did you mean 'cloth'?"),
    cloth("nested unknown key", "grid = { siz = [1, 1], vertices = [5, 5] }", "cloth.0.grid.siz: unknown key; did you mean 'size'?"),
    cloth("scene's key in a cloth", f"{GRID}duration = 1", "cloth.0.duration: unknown key here; put it at the top of the file, above the first [table]"),
    collider("shape's key in a collider", "radius = 0.1", "collider.0.radius: unknown key here; it belongs in collider.sphere or collider.capsule or collider.cylinder"),
    cloth("collider's key in a cloth", f"{GRID}box = {{ size = [1, 1, 1] }}", "cloth.0.box: unknown key here; it belongs in cloth.pins or collider"),
    cloth("nothing like it", f"{GRID}zzz = 1", "cloth.0.zzz: unknown key; choose from contact_distance, fabric, grid, mesh, pins, velocity"),
    scene("hidden key", f'folder = "x"\n{CLOTH}', "folder: unknown key; …"),
]

VALUES = [
    scene("no cloth", "fps = 60\n", "cloth: missing; add [[cloth]]"),
    scene("empty list of cloths", "cloth = []\n", "cloth: empty; it needs at least one entry"),
    scene("cloth as one table", f"[cloth]\n{GRID}", "cloth: should be a list of tables, got one table; write [[cloth]] instead of [cloth]"),
    scene("wind as a list", f"{CLOTH}[[wind]]\n", "wind: should be a table, got a list; write [wind] instead of [[wind]]"),
    scene("a word for a number", f'duration = "long"\n{CLOTH}', "duration: should be a number [s], got 'long'"),
    scene("a number with its unit", f'duration = "2 s"\n{CLOTH}', "duration: should be a number [s], got '2 s'; leave out the unit"),
    scene("a number in quotes", f'duration = "2.0"\n{CLOTH}', "duration: should be a number [s], got '2.0'; leave out the quotes"),
    scene("a truth for a number", f"fps = true\n{CLOTH}", "fps: should be a number [1/s], got true"),
    scene("a date for a number", f"fps = 2020-01-01\n{CLOTH}", "fps: should be a number [1/s], got 2020-01-01"),
    scene("a number for a truth", f"{CLOTH}[[collider]]\nsphere.radius = 1\nmotion = {{ ease = 1, keyframes = [{{ time = 0 }}] }}", "collider.0.motion.ease: should be true or false, got 1"),
    scene("a fraction for a count", f"steps_per_frame = 2.5\n{CLOTH}", "steps_per_frame: should be a whole number, got 2.5"),
    scene("a number for text", f"name = 5\n{CLOTH}", "name: should be text, got 5; put it in quotes"),
    scene("NaN", f"duration = nan\n{CLOTH}", "duration: should be a finite number, got nan"),
    scene("infinite", f"gravity = [0, 0, -inf]\n{CLOTH}", "gravity.2: should be a finite number, got -inf"),
    scene("duration 0", f"duration = 0\n{CLOTH}", "duration: should be at least 0.0001 [s], got 0"),
    scene("duration negative", f"duration = -1.0\n{CLOTH}", "duration: should be at least 0.0001 [s], got -1"),
    scene("fps 0", f"fps = 0\n{CLOTH}", "fps: should be at least 0.1 [1/s], got 0"),
    scene("an integer beyond floats", f"fps = 1{'0' * 400}\n{CLOTH}", "fps: should be a number [1/s], got a number of too many digits"),
    scene("a vector of two", f"gravity = [0, -9.81]\n{CLOTH}", "gravity: should be 3 numbers [m/s2], got [0, -9.81]"),
    scene("a vector of four", f"gravity = [0, 0, 0, 1]\n{CLOTH}", "gravity: should be 3 numbers [m/s2], got [0, 0, 0, 1]"),
    scene("a number for a vector", f"gravity = -9.81\n{CLOTH}", "gravity: should be 3 numbers [m/s2], got -9.81"),
    scene("a vector out of range", f"gravity = [0, 0, 1e30]\n{CLOTH}", "gravity.2: should be at most 10000 [m/s2], got 1e30"),
    scene("name with a slash", f'name = "a/b"\n{CLOTH}', "name: 'a/b' cannot name a folder; use letters, digits, - and _"),
    scene("name of a hidden folder", f'name = ".."\n{CLOTH}', "name: '..' cannot name a folder; use letters, digits, - and _"),
    scene("endless name", f'name = "{"a" * 300}"\n{CLOTH}', "name: longer than 100 characters"),
    scene("unknown array to record", f'record = ["colours"]\n{CLOTH}', "record.0: should be 'velocities', got 'colours'"),
    scene("an array recorded twice", f'record = ["velocities", "velocities"]\n{CLOTH}', "record: names the same array twice"),
    scene("unknown method", f'method = "engin"\n{CLOTH}', "method: unknown method 'engin'; did you mean 'engine'?"),
    scene("a number for a method", f"method = 4\n{CLOTH}", "method: should be a name or table, got 4"),
    scene("unknown part", f'method = {{ model = "mass_spring", integrator = "implicit" }}\n{CLOTH}', "method.integrator: unknown integrator 'implicit'; did you mean 'implicit_euler'?"),
    scene("unknown kind of part", f'method = {{ solver = "cg" }}\n{CLOTH}', "method.solver: unknown key; choose from …integrator, model, response, steps_per_frame, strain"),
    scene("part without a name", f"method.integrator = {{ tolerance = 0.1 }}\n{CLOTH}", "method.integrator: the table needs a name; choose from implicit_euler, symplectic_euler…"),
    scene("unknown parameter of a part", f'method.integrator = {{ name = "implicit_euler", tolerence = 0.1 }}\n{CLOTH}', "method.integrator.tolerence: unknown key; did you mean 'tolerance'?"),
    scene("wrong parameter of a part", f'method.integrator = {{ name = "implicit_euler", tolerance = 2 }}\n{CLOTH}', "method.integrator.tolerance: should be less than 1, got 2"),
    scene("wrong parameter of a method", f"method.steps_per_frame = 0\n{CLOTH}", "method.steps_per_frame: should be at least 1, got 0"),
    scene("wind without direction", f"{CLOTH}[wind]\nvelocity = 3\n", "wind.velocity: should be 3 numbers [m/s], got 3"),
]

CLOTHS = [
    cloth("neither grid nor mesh", 'fabric = "silk"', "cloth.0: give one of grid or mesh"),
    cloth("both grid and mesh", f'{GRID}mesh = "a.obj"', "cloth.0: has grid and mesh; keep one of them"),
    cloth("grid without size", "grid = { vertices = [5, 5] }", "cloth.0.grid.size: missing; add 2 numbers [m]"),
    cloth("grid of 1 vertex", "grid = { size = [1, 1], vertices = [1, 1] }", "cloth.0.grid.vertices.0: should be at least 2, got 1"),
    cloth("huge grid", "grid = { size = [1, 1], vertices = [1000000, 1000000] }", "cloth.0.grid.vertices: more than 4,000,000 in all; use fewer, e.g. [51, 51]"),
    cloth("grid of size 0", "grid = { size = [0, 1], vertices = [5, 5] }", "cloth.0.grid.size.0: should be at least 0.001 [m], got 0"),
    cloth("grid of negative size", "grid = { size = [1, -1.0], vertices = [5, 5] }", "cloth.0.grid.size.1: should be at least 0.001 [m], got -1"),
    cloth("one number for a size", "grid = { size = 1.0, vertices = [5, 5] }", "cloth.0.grid.size: should be 2 numbers [m], got 1"),
    cloth("unknown plane", 'grid = { size = [1, 1], vertices = [5, 5], plane = "zx" }', "cloth.0.grid.plane: should be 'xy', 'xz' or 'yz', got 'zx'"),
    cloth("unknown fabric", f'{GRID}fabric = "denm"', "cloth.0.fabric: unknown fabric 'denm'; did you mean 'denim'?"),
    cloth("a number for a fabric", f"{GRID}fabric = 0.2", "cloth.0.fabric: should be a name or table, got 0.2"),
    cloth("fabric with few values", f"{GRID}fabric = {{ density = 0.2 }}", "cloth.0.fabric.stretch_warp: missing; add a number [N/m]"),
    cloth("fabric with a wrong key", f"{GRID}fabric = {{ mass = 0.2 }}", "cloth.0.fabric.mass: unknown key; …"),
    cloth("fabric without mass", f"{GRID}fabric = {{ density = 0, stretch_warp = 1, stretch_weft = 1, shear = 1, bending_warp = 0, bending_weft = 0, thickness = 0.001 }}", "cloth.0.fabric.density: should be greater than 0 [kg/m2], got 0"),
    cloth("sheet with a wrong key", f"{GRID}fabric = {{ kes = {{ wait = 1 }} }}", "cloth.0.fabric.kes.wait: unknown key; did you mean 'weight'?"),
    cloth("sheet that is a number", f"{GRID}fabric = {{ fast = 3 }}", "cloth.0.fabric.fast: should be a table, got 3"),
    cloth("sheet beyond all floats", f"{GRID}fabric = {{ fast = {{ weight = 150, thickness = 0.4, e100_warp = 1, e100_weft = 2, eb5 = 3, c_warp = 1e200, c_weft = 16 }} }}", "cloth.0.fabric.fast.c_warp: should be at most 1000 [mm], got 1e200"),
    cloth("sheet of an impossible fabric", f"{GRID}fabric = {{ fast = {{ weight = 150, thickness = 0.4, e100_warp = 1e-9, e100_weft = 2, eb5 = 3, c_warp = 18, c_weft = 16 }} }}", "cloth.0.fabric.stretch_warp: should be at most 1e7 [N/m], got 9.80665e12"),
    cloth("contact distance 0", f"{GRID}contact_distance = 0", "cloth.0.contact_distance: should be at least 1e-6 [m], got 0"),
    cloth("one pin without a list", f'{GRID}pins = {{ where = "top" }}', "cloth.0.pins: should be a list of tables, got one table; put [ ] around it"),
    cloth("pin that is a word", f'{GRID}pins = ["top"]', "cloth.0.pins.0: should be a table, got 'top'"),
    cloth("pin of an unknown part", f'{GRID}pins = [{{ where = "corner" }}]', "cloth.0.pins.0.where: should be 'corners', 'left', 'right', 'bottom', 'top' or 'center', got 'corner'"),
    cloth("pin of nothing", f"{GRID}pins = [{{ every = 2 }}]", "cloth.0.pins.0: give one of where, vertices or box"),
    cloth("pin in two ways", f'{GRID}pins = [{{ where = "top", vertices = [1] }}]', "cloth.0.pins.0: has where and vertices; keep one of them"),
    cloth("pin of a missing vertex", f"{GRID}pins = [{{ vertices = [0, 25] }}]", "cloth.0.pins.0.vertices.1: 25 is not a vertex; the cloth has 0 to 24"),
    cloth("pin of a negative vertex", f"{GRID}pins = [{{ vertices = [-1] }}]", "cloth.0.pins.0.vertices.0: -1 is not a vertex; the cloth has 0 to 24"),
    cloth("pin beyond all integers", f"{GRID}pins = [{{ vertices = [1{'0' * 30}] }}]", f"cloth.0.pins.0.vertices.0: 1{'0' * 30} is not a vertex; the cloth has 0 to 24"),
    cloth("box that holds nothing", f"{GRID}pins = [{{ box = [[5, 5, 5], [6, 6, 6]] }}]", "cloth.0.pins.0: holds no vertex; make the box larger or name vertices"),
    cloth("box of one corner", f"{GRID}pins = [{{ box = [[5, 5, 5]] }}]", "cloth.0.pins.0.box: should be 2 x 3 numbers [m], got [[5, 5, 5]]"),
    cloth("every 0th vertex", f'{GRID}pins = [{{ where = "top", every = 0 }}]', "cloth.0.pins.0.every: should be at least 1, got 0"),
    cloth("part of a grid on a mesh", 'mesh = "a.obj"\npins = [{ vertices = [0] }, { where = "top" }]', "cloth.0.pins.1.where: is for a grid; use vertices or box for a mesh"),
    cloth("pins that disagree", f'{GRID}pins = [{{ where = "top" }}, {{ vertices = [4], motion.keyframes = [{{ time = 0 }}, {{ time = 1, move = [1, 0, 0] }}] }}]', "cloth.0.pins.1: vertex 4 is held by cloth.0.pins.0 too; leave it out of one"),
    cloth("a number for a mesh", "mesh = 3", "cloth.0.mesh: should be a name or table, got 3"),
    cloth("mesh table without a file", "mesh = { scale = 2 }", "cloth.0.mesh.file: missing; add text"),
    cloth("mesh scaled to nothing", 'mesh = { file = "a.obj", scale = 0 }', "cloth.0.mesh.scale: should be at least 1e-6, got 0"),
]

COLLIDERS = [
    collider("no shape", "friction = 0.5", "collider.0: give one of plane, box, sphere, capsule or cylinder"),
    collider("two shapes", "sphere.radius = 1\nbox.size = [1, 1, 1]", "collider.0: has box and sphere; keep one of them"),
    collider("plane without direction", "plane = { normal = [0, 0, 0] }", "collider.0.plane.normal: has no direction; give one, e.g. [0, 0, 1] for a floor"),
    collider("box of size 0", "box = { size = [1, 0, 1] }", "collider.0.box.size.1: should be at least 0.0001 [m], got 0"),
    collider("box of negative size", "box = { size = [1, 1, -1] }", "collider.0.box.size.2: should be at least 0.0001 [m], got -1"),
    collider("sphere without radius", "sphere = {}", "collider.0.sphere.radius: missing; add a number [m]"),
    collider("sphere of radius 0", "sphere.radius = 0", "collider.0.sphere.radius: should be at least 0.0001 [m], got 0"),
    collider("capsule of negative length", "capsule = { radius = 0.1, length = -1 }", "collider.0.capsule.length: should be at least 0.0001 [m], got -1"),
    collider("a number for a shape", "sphere = 0.1", "collider.0.sphere: should be a table, got 0.1"),
    collider("negative friction", "sphere.radius = 1\nfriction = -1", "collider.0.friction: should be at least 0, got -1"),
    collider("keyframes out of order", "sphere.radius = 1\nmotion.keyframes = [{ time = 1 }, { time = 0.5 }]", "collider.0.motion.keyframes.1.time: 0.5 s is not after 1 s; put keyframes in order"),
    collider("no keyframes", "sphere.radius = 1\nmotion.keyframes = []", "collider.0.motion.keyframes: empty; it needs at least one entry"),
    collider("motion without its table", "sphere.radius = 1\nmotion = [{ time = 0 }]", "collider.0.motion: should be a table, got a list; give one table, without [ ]"),
    collider("collider that grows", "sphere.radius = 1\nmotion.keyframes = [{ time = 0, scale = [2, 2, 2] }]", "collider.0.motion.keyframes.0.scale: is for pins; a collider keeps its size"),
    scene("cloth inside a collider", f"{CLOTH}[[collider]]\nbox.size = [0.2, 0.2, 0.2]\n", "cloth.0: vertex 12 starts 100 mm inside collider.0; move one of them", "--set", "untangle=off"),
]

TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
PLY = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"

MESHES = [
    mesh("missing mesh", "a.obj", None, "no such file"),
    mesh("folder as a mesh", ".", None, "is a folder; give a mesh file (.obj, .ply, .stl, .glb, .gltf, .off)"),
    mesh("empty OBJ", "a.obj", "", "empty mesh: it has no triangles"),
    mesh("vertices alone", "a.obj", TRIANGLE, "empty mesh: it has no triangles"),
    mesh("NaN vertex", "a.obj", "v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "positions: vertex 0 is NaN or infinite"),
    mesh("word for a coordinate", "a.obj", "v 0 zero 0\n", "line 1: …zero…"),
    mesh("vertex of two numbers", "a.obj", "v 0 0\n", "line 1: …three…"),
    mesh("face of two vertices", "a.obj", f"{TRIANGLE}f 1 2\n", "line 4: …three…"),
    mesh("index out of range", "a.obj", f"{TRIANGLE}f 1 2 4\n", "line 4: …vertex…"),
    mesh("triangle without area", "a.obj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "triangle 0 [0, 1, 2] has no area; remove it or merge its vertices"),
    mesh("unused vertex", "a.obj", f"{TRIANGLE}v 5 5 5\nf 1 2 3\n", "vertex 3 belongs to no triangle; remove it"),
    mesh("same triangle twice", "a.obj", f"{TRIANGLE}f 1 2 3\nf 1 2 3\n", "triangle 1 [0, 1, 2] repeats triangle 0; remove one"),
    mesh("binary OBJ", "a.obj", bytes(range(256)), "damaged, or not OBJ …"),
    mesh("unsupported ending", "a.xyz", TRIANGLE, "cannot read '.xyz' files; use .obj, .ply, .stl, .glb, .gltf, .off"),
    mesh("no ending", "shirt", TRIANGLE, "cannot read a file without an ending; use .obj, .ply, .stl, .glb, .gltf, .off"),
    mesh("truncated GLB", "a.glb", b"glTF" + struct.pack("<II", 2, 500) + b"{}", "damaged, or not GLB …"),
    mesh("GLB of zeros", "a.glb", bytes(100), "damaged, or not GLB …"),
    mesh("empty GLB", "a.glb", b"", "…"),
    mesh("truncated PLY", "a.ply", PLY + "0 0 0\n1 0 0\n", "…"),
    mesh("PLY that is text", "a.ply", "hello\n", "damaged, or not PLY …"),
    mesh("PLY of a billion vertices", "a.ply", PLY.replace("vertex 3", "vertex 1000000000").replace("ascii", "binary_little_endian"), "damaged, or not PLY …"),
    mesh("STL that is text", "a.stl", "hello\n", "…"),
    mesh("OFF that is text", "a.off", "hello\n", "…"),
    mesh("GLTF that is not JSON", "a.gltf", "hello\n", "damaged, or not GLTF …"),
    mesh("GLTF without its data", "a.gltf", json.dumps({"asset": {"version": "2.0"}, "buffers": [{"uri": "gone.bin", "byteLength": 4}]}), "…"),
    cloth("mesh too far away", 'mesh = { file = "a.obj", scale = 1e6 }', "cloth.0.mesh: a.obj: reaches 1e+06 m from the origin; set mesh.scale", a_obj=f"{TRIANGLE}f 1 2 3\n"),
    cloth("mesh too small", 'mesh = { file = "a.obj", scale = 1e-6 }', "cloth.0.mesh: a.obj: is only 1e-06 m large; set mesh.scale", a_obj=f"{TRIANGLE}f 1 2 3\n"),
]


def run(name: str, answer: str, *options: str, **files: str | bytes | None) -> Case:
    """`weft run s.toml OPTIONS` on a scene that is right."""
    others = {key.replace("_", "."): value for key, value in files.items()}
    return Case(name, ["run", "s.toml", *options], answer, {"s.toml": CLOTH, **others})


OPTIONS = [
    run("--set without =", "--set duration: expected key=value, e.g. cloth.0.fabric=denim", "--set", "duration"),
    run("--set without a key", "--set =3: expected key=value, e.g. cloth.0.fabric=denim", "--set", "=3"),
    run("--set unknown key", "s.toml: fpz: unknown key; did you mean 'fps'?", "--set", "fpz=3"),
    run("--set wrong value", "s.toml: duration: should be a number [s], got 'long'", "--set", "duration=long"),
    run("--set nothing", "s.toml: duration: should be a number [s], got ''", "--set", "duration="),
    run("--set index out of range", "--set cloth.1.fabric=silk: cloth has one entry, 0; to add one, set the whole list: cloth=[...]", "--set", "cloth.1.fabric=silk"),
    run("--set index that is a word", "--set cloth.first.fabric=silk: cloth has one entry, 0; to add one, set the whole list: cloth=[...]", "--set", "cloth.first.fabric=silk"),
    run("--set index that is a power", "--set cloth.².fabric=silk: cloth has one entry, 0; to add one, set the whole list: cloth=[...]", "--set", "cloth.².fabric=silk"),
    run("--set into a list that is not there", "--set cloth.0.pins.0.where=top: there is no cloth.0.pins yet; set the whole list: cloth.0.pins=[...]", "--set", "cloth.0.pins.0.where=top"),
    run("--set into a value", "--set fps.unit=s: fps is 60, not a table; set all of it: fps={ unit = ... }", "--set", "fps=60", "--set", "fps.unit=s"),
    run("--set into a name", "--set cloth.0.fabric.density=1: cloth.0.fabric is 'silk', not a table; set all of it: cloth.0.fabric={ density = ... }", "--set", "cloth.0.fabric=silk", "--set", "cloth.0.fabric.density=1"),
    run("--frames 0", "Invalid value for '--frames': …; see weft run --help", "--frames", "0"),
    run("--frames many", "Invalid value for '--frames': …; see weft run --help", "--frames", "abc"),
    run("--threads 0", "Invalid value for '--threads': …; see weft run --help", "--threads", "0"),
    run("--method unknown", "s.toml: method: unknown method 'provot'; did you mean 'provot1995'?", "--method", "provot"),
    run("--resume with --overwrite", "--resume and --overwrite exclude each other; give one", "--resume", "--overwrite"),
    run("unknown option", "No such option: --frame…; see weft run --help", "--frame", "3"),
    run("two scenes", "Got unexpected extra argument… (b.toml); see weft run --help", "b.toml"),
    run("option without its value", "Option '-o' requires an argument; see weft --help", "-o"),
    run("output is a file", "o: o is a file; choose another folder with -o", "-o", "o", o="x"),
    run("output below a file", "o/r: …o is a file; choose another folder with -o", "-o", "o/r", o="x"),
    run("output is the folder of the scene", ".: is not empty and not a recording; choose another folder with -o", "-o", "."),
    run("output of an endless name", "…File name too long…", "-o", "a" * 300),
    Case(
        "output is a recording",
        ["run", "s.toml", "-o", "r"],
        "r: holds a recording already; add --resume to go on with it or --overwrite to replace it",
        {"s.toml": CLOTH, "r/meta.json": "{}"},
    ),
    run("steps too long for the method", "s.toml: symplectic_euler: a step of 16.7 ms is beyond …", "--method", "provot1995", "--set", "steps_per_frame=1"),
    Case("no scene", ["run"], "Missing argument 'scene'; see weft run --help"),
    Case("unknown command", ["simulate"], "No such command 'simulate'; see weft --help"),
    Case("unknown option of weft", ["--verbose"], "No such option: --verbose; see weft --help"),
    Case("describe nonsense", ["describe", "cottn"], "nothing is called 'cottn'; did you mean 'cotton'?"),
    Case("describe nothing", ["describe"], "Missing argument 'name'; see weft describe --help"),
]

GOOD_META = {
    "n_vertices": 3,
    "fps": 60,
    "cloth": [{"first": 0, "n_vertices": 3}],
    "scene": {"name": "s", "cloth": [{"mesh": "a.obj"}]},
}
FRAME = {"positions.f32": np.eye(3, dtype="<f4").tobytes(), "certificate.jsonl": '{"frame": 0}\n'}


def recording(name: str, meta: object, answer: str, **files: str | bytes | None) -> list[Case]:
    """A folder that both `weft check` and `weft render` must refuse."""
    text = meta if isinstance(meta, str | bytes) else json.dumps(meta)
    inside = {"r/meta.json": text, **{f"r/{key}": value for key, value in files.items() if value is not None}}
    return [
        Case(f"check {name}", ["check", "r"], answer, inside),
        Case(f"render {name}", ["render", "r", "-o", "p.png"], answer, inside),
    ]


DAMAGED = "r/meta.json: damaged; run the scene again"
RECORDINGS = [
    *recording("meta that is not JSON", "hello", DAMAGED),
    *recording("meta of bytes", bytes(range(256)), DAMAGED),
    *recording("meta that is a list", [1], DAMAGED),
    *recording("meta without sizes", {}, DAMAGED),
    *recording("meta without vertices", {**GOOD_META, "n_vertices": 0}, DAMAGED),
    *recording("meta of another cloth", {**GOOD_META, "cloth": [{"first": 0, "n_vertices": 4}]}, DAMAGED),
    *recording("meta with fps 0", {**GOOD_META, "fps": 0}, DAMAGED),
    *recording("meta with a word for the scene", {**GOOD_META, "scene": "tablecloth"}, DAMAGED),
    Case("check a missing path", ["check", "r"], "r: no such recording or mesh"),
    Case("render a missing path", ["render", "r", "-o", "p.png"], "r: no such recording"),
    Case("check a folder", ["check", "r"], "r: not a recording (a folder with meta.json)", {"r": None}),
    Case("render a folder", ["render", "r", "-o", "p.png"], "r: not a recording (a folder with meta.json)", {"r": None}),
    Case("render a file", ["render", "r", "-o", "p.png"], "r: not a recording (a folder with meta.json)", {"r": "x"}),
    Case("check garbage", ["check", "a.obj"], "a.obj: damaged, or not OBJ …", {"a.obj": bytes(range(256))}),
    Case("check text", ["check", "notes.md"], "notes.md: cannot read '.md' files; use …", {"notes.md": "x"}),
    *recording("no frame", GOOD_META, "r: holds no frame yet; run its scene first"),
    *recording("positions cut short", GOOD_META, "r/positions.f32: holds 0 of 1 frames; run the scene again with --resume", **{**FRAME, "positions.f32": b""}),
    recording("no triangles", GOOD_META, "r/triangles.npy: missing or damaged; run the scene again", **FRAME)[0],
    recording("scene with a wrong key", {**GOOD_META, "scene": {"cloths": []}}, "r/meta.json: scene: cloths: unknown key; did you mean 'cloth'?", **FRAME)[0],
    Case("render to no file", ["render", "r"], "Missing option …--output'; see weft render --help"),
    Case("picture of an unknown ending", ["render", "r", "-o", "p.jpg"], "p.jpg: cannot write '.jpg'; use .png for a picture or .webp, .gif for an animation", {"r/meta.json": json.dumps(GOOD_META)}),
    Case("picture without an ending", ["render", "r", "-o", "p"], "p: cannot write …", {"r/meta.json": json.dumps(GOOD_META)}),
    Case("frame that was not recorded", ["render", "r", "-o", "p.png", "--frame", "1"], "--frame 1: the recording has frames 0 to 0", {"r/meta.json": json.dumps(GOOD_META), **{f"r/{name}": contents for name, contents in FRAME.items()}}),
    Case("size of one number", ["render", "r", "-o", "p.png", "--size", "960"], "--size 960: expected WIDTHxHEIGHT, each from 16 to 8192, e.g. 960x720"),
    Case("size 0", ["render", "r", "-o", "p.png", "--size", "0x0"], "--size 0x0: expected WIDTHxHEIGHT, each from 16 to 8192, e.g. 960x720"),
    Case("size of a wall", ["render", "r", "-o", "p.png", "--size", "9000x9000"], "--size 9000x9000: expected WIDTHxHEIGHT, each from 16 to 8192, e.g. 960x720"),
    Case("elevation from below", ["render", "r", "-o", "p.png", "--elevation", "95"], "Invalid value for '--elevation': …; see weft render --help"),
    Case("azimuth nan", ["render", "r", "-o", "p.png", "--azimuth", "nan"], "--azimuth and --elevation must be finite numbers of degrees"),
]

CASES = [*FILES, *KEYS, *VALUES, *CLOTHS, *COLLIDERS, *MESHES, *OPTIONS, *RECORDINGS]
