"""From names, files and overrides to a checked scene."""

from __future__ import annotations

import copy
import datetime
import tomllib
from pathlib import Path
from typing import Any

import pytest

from weft.errors import WeftError
from weft.parameters import check
from weft.scene.files import _gallery, apply_override, gallery_names, load_scene, scene_summary
from weft.scene.schema import Scene

TOML = "[[cloth]]\ngrid = { size = [1, 1], vertices = [5, 5] }\n"


def test_gallery_starts_with_the_default():
    first, *others = gallery_names()
    assert first == "tablecloth"
    assert others == sorted(others)
    assert {"curtain", "flag", "ground"} < set(others)
    for name in gallery_names():
        assert scene_summary(name) == load_scene(name).description


def test_file_lends_its_name_and_folder(tmp_path):
    path = tmp_path / "napkin.toml"
    path.write_text(TOML)
    scene = load_scene(path)
    assert scene.name == "napkin"
    assert Path(scene.folder) == tmp_path
    assert scene.source == str(path)
    assert load_scene(str(path)) == scene


def test_file_of_windows_is_read(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TOML.replace("\n", "\r\n").encode())
    assert load_scene(path).cloth[0].grid is not None


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("duration=1.5", ["duration"], 1.5),
        ("fps=24", ["fps"], 24),
        ("cloth.0.fabric=denim", ["cloth", 0, "fabric"], "denim"),
        ("cloth.0.fabric = denim", ["cloth", 0, "fabric"], "denim"),
        ('name="a b"', ["name"], "a b"),
        ("name=a b", ["name"], "a b"),
        ("cloth.0.grid.vertices=[21, 31]", ["cloth", 0, "grid", "vertices"], [21, 31]),
        ("cloth.0.grid.size.1=2", ["cloth", 0, "grid", "size"], [1, 2]),
        ("cloth.0.pins=[{ where = 'top' }]", ["cloth", 0, "pins"], [{"where": "top"}]),
        ("wind.velocity=[1, 2, 3]", ["wind"], {"velocity": [1, 2, 3]}),
        ("wind={ gust = 1 }", ["wind"], {"gust": 1}),
        ("method.integrator.name=bdf2", ["method", "integrator"], {"name": "bdf2"}),
        ("collider=[]", ["collider"], []),
        ("description=a = b", ["description"], "a = b"),
        ("flag=true", ["flag"], True),
        ("description=[1,", ["description"], "[1,"),
    ],
)
def test_override(override, path, value):
    values: Any = tomllib.loads(TOML)
    apply_override(values, override)
    for part in path:
        values = values[part]
    assert values == value


def test_overrides_apply_in_order():
    scene = load_scene("tablecloth", ["duration=1", "wind.gust=0.5", "wind.velocity=[1, 0, 0]", "duration=3"])
    assert scene.duration == 3.0
    assert scene.wind.gust == 0.5
    assert scene.wind.velocity == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["engine", "liu1998", "silva_completed"])
def test_a_key_of_a_method_given_by_name_changes_that_alone(name):
    named = load_scene("tablecloth", [f"method={name}"]).parts
    parts = load_scene("tablecloth", [f"method={name}", "method.steps_per_frame=7"]).parts
    assert parts.model_dump() == named.model_dump() | {"steps_per_frame": 7, "description": parts.description}


def test_the_method_that_a_scene_leaves_out_can_be_changed():
    """A part that the scene replaces as a whole keeps nothing of the one before."""
    parts = load_scene("tablecloth", ["method.response.rounds=5", "method.integrator=bdf2"]).parts
    assert parts.response == {"name": "dividing_planes", "rounds": 5}
    assert parts.integrator == "bdf2"
    assert parts.steps_per_frame == load_scene("tablecloth").parts.steps_per_frame == 1


def test_a_part_that_a_method_leaves_out_can_be_changed():
    parts = load_scene("tablecloth", ['method={ integrator = "bdf2" }', "method.response.rounds=5"]).parts
    assert parts.response == {"name": "dividing_planes", "rounds": 5}
    assert parts.integrator == "bdf2"


def test_a_method_that_is_not_one_is_refused_where_a_key_of_it_is_set():
    with pytest.raises(WeftError, match=r"--set method.response.rounds=5: .*'engin'.*engine"):
        load_scene("tablecloth", ["method=engin", "method.response.rounds=5"])


def test_overrides_leave_the_gallery_as_it_was():
    load_scene("tablecloth", ["cloth.0.grid.vertices=[3, 3]"])
    grid = load_scene("tablecloth").cloth[0].grid
    assert grid is not None
    assert grid.vertices == (51, 51)


JUNK = [
    True, -1, 0, 7, 10**30, 10**400, 0.5, 1e300, float("nan"), float("-inf"), "", "x", "2 s", "\0", "a" * 150,
    datetime.date(2020, 1, 1), [], [[]], [{}], [1, 2], ["a", "b", "c"], {}, {"a": 1}, {"": {}}, {"name": []}, [[[[1]]]],
]  # fmt: skip


def places(values: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every value in nested tables and lists, from the root down."""
    inner = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else []
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


@pytest.mark.parametrize("name", ["curtain", "flag"])
def test_whatever_stands_in_place_of_a_value_is_a_scene_or_one_clear_line(name):
    values = tomllib.loads(_gallery()[name].read_text(encoding="utf-8"))
    refused = 0
    for path in places(values)[1:]:
        for junk in JUNK:
            changed: Any = copy.deepcopy(values)
            table = changed
            for part in path[:-1]:
                table = table[part]
            table[path[-1]] = junk
            try:
                check(Scene, changed, "here")
            except WeftError as error:
                refused += 1
                line = str(error)
                assert line.isprintable(), (path, junk)
                assert len(line) < 320, (path, junk)
                common = [str(part) for part in path if isinstance(part, str)]
                assert any(key in line for key in common), (path, junk, line)
                assert not any(word in line for word in ("pydantic", "Input", "dictionary", "tuple")), line
    assert refused > 300
