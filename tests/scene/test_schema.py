"""The scene file's keys: what ships and what is documented is valid, and a scene survives JSON."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from weft.bodies.shapes import Box
from weft.errors import WeftError
from weft.explain import keys_of, tables_in
from weft.methods import METHODS, PARTS, Method
from weft.models.fabrics import Fabric, fabric_names, load_fabric
from weft.models.sheets import SHEETS
from weft.parameters import check, parameter_table
from weft.scene.files import gallery_names, load_scene
from weft.scene.schema import Cloth, Collider, Grid, Pin, Scene

README = Path(__file__).parents[2] / "README.md"
TABLES = {".".join(home) or "scene": model for home, model in tables_in(Scene)} | SHEETS
CLOTH = {"grid": {"size": [1, 1], "vertices": [5, 5]}}


def parse(text: str) -> Scene:
    """A Scene from a fragment of a file; one cloth is added where there is none."""
    return check(Scene, {"cloth": [CLOTH], **tomllib.loads(text)}, "fragment")


@pytest.mark.parametrize("name", gallery_names())
def test_gallery_scene_survives_json(name):
    scene = load_scene(name)
    values = json.loads(scene.model_dump_json())
    again = check(Scene, {**values, "folder": scene.folder, "source": scene.source}, name)
    assert again == scene
    assert scene.name == name
    assert scene.description


def test_scene_of_the_readme_is_valid():
    blocks = re.findall(r"```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    scenes = [parse(block) for block in blocks]
    assert len(scenes) == 1
    scene = scenes[0]
    assert scene.name == "napkin"
    assert scene.cloth[0].grid is not None
    assert scene.cloth[0].grid.vertices == (31, 31)
    assert scene.collider[0].motion is not None
    assert scene.wind.velocity == (2.0, 0.0, 0.0)


@pytest.mark.parametrize("name", TABLES)
def test_example_in_the_docstring_of_every_table_is_valid(name):
    lines = (inspect.getdoc(TABLES[name]) or "").splitlines()
    first = next(k for k, line in enumerate(lines) if re.match(r"\s*(\[|\w+ = )", line))
    text = "\n".join(lines[first:])
    scene = parse(text)
    used = set(re.findall(r"\w+", text))
    assert name.split(".")[-1] in used or name == "scene"
    assert isinstance(scene, Scene)


@pytest.mark.parametrize("name", TABLES)
def test_every_key_says_what_it_means(name):
    for row in parameter_table(TABLES[name]):
        assert row.meaning
        assert row.type != "value"
    assert [row.name for row in parameter_table(TABLES[name])] == keys_of(TABLES[name])


@pytest.mark.parametrize("name", [*TABLES, *(part for family in PARTS.values() for part in family)])
def test_every_number_has_an_upper_bound(name):
    """Beyond all bounds, numbers overflow somewhere on their way to a kernel."""
    families = [family for family in PARTS.values() if name in family]
    for row in parameter_table(families[0].load(name).Parameters if families else TABLES[name]):
        if "number" in row.type and row.name != "vertices":  # those are checked against the mesh
            assert re.search(r"(<|<=|to) \S+$", row.range), row


def test_lists_and_tuples_are_one():
    assert Box(size=[1, 2, 3]) == Box(size=(1.0, 2.0, 3.0))
    pin = Pin(box=[[0, 0, 0], [1, 1, 1]])
    assert pin.box == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def test_a_fabric_is_a_name_a_table_or_an_object():
    silk = load_fabric("silk")
    grid = Grid(size=(1, 1), vertices=(2, 2))
    assert Cloth(grid=grid, fabric="silk").fabric == "silk"
    assert Cloth(grid=grid, fabric=silk.model_dump()).fabric == silk
    assert Cloth(grid=grid, fabric=silk).fabric == silk


def test_a_method_is_a_name_or_a_table():
    assert parse('method = "provot1995"').parts is METHODS["provot1995"]
    parts = parse('method.integrator = { name = "implicit_euler", tolerance = 1e-6 }').parts
    assert parts == Method(integrator={"name": "implicit_euler", "tolerance": 1e-6})
    assert parts.model == "shell"


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_what_a_scene_could_say(name):
    assert Method.model_validate(METHODS[name].model_dump()) == METHODS[name]


@pytest.mark.parametrize("name", fabric_names())
def test_fabric_presets_are_plausible(name):
    fabric = load_fabric(name)
    assert fabric.stretch_warp >= fabric.stretch_weft > fabric.shear
    assert fabric.bending_warp >= fabric.bending_weft > 0
    assert fabric.source != Fabric.model_fields["source"].default


@pytest.mark.parametrize(("text", "frames"), [("", 120), ("duration = 1\nfps = 24", 24), ("duration = 0.001", 1)])
def test_number_of_frames(text, frames):
    assert parse(text).n_frames == frames


def test_unknown_key_is_named_before_what_it_leaves_missing():
    with pytest.raises(WeftError, match=r"^fragment: cloth.0.grid.siz: unknown key; did you mean 'size'\?$"):
        parse("fps = -1\ncloth = [{ grid = { siz = [1, 1] } }]")


def test_nothing_changes_once_checked():
    scene = load_scene("flag")
    with pytest.raises(ValidationError, match="frozen"):
        scene.fps = 30.0  # type: ignore[misc]


def test_every_shape_of_a_collider():
    for kind, values in {
        "plane": {"normal": [0, 0, 1]},
        "box": {"size": [1, 1, 1]},
        "sphere": {"radius": 1},
        "capsule": {"radius": 1, "length": 1},
        "cylinder": {"radius": 1, "length": 1},
    }.items():
        collider = Collider.model_validate({kind: values})
        assert collider.shape is getattr(collider, kind)
