"""What the commands print, their exit codes, and that the quick ones stay quick."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.malformed_cases import CLOTH

import weft
from weft.cli import app, main
from weft.explain import tables_in
from weft.methods import METHODS, PARTS, part_choice
from weft.models.fabrics import fabric_names, load_fabric
from weft.models.sheets import SHEETS
from weft.scene.files import gallery_names
from weft.scene.schema import Scene

COMMANDS = ["run", "scenes", "methods", "describe", "check", "render", "reproduce"]
TABLES = [*(home[-1] if home else "scene" for home, _ in tables_in(Scene)), *SHEETS]
PART_NAMES = [part for family in PARTS.values() for part in family]
DESCRIBED = list(dict.fromkeys([*fabric_names(), *gallery_names(), *METHODS, *PART_NAMES, *TABLES]))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(weft.__file__).parents[1])}
APART = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nv 0 0 1\nv 1 0 1\nv 0 1 1\nf 4 5 6\n"
CROSSING = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nv 0.2 0.2 -1\nv 0.2 0.2 1\nv 0.3 0.2 1\nf 4 5 6\n"


@pytest.fixture
def command_line(monkeypatch, capfd, tmp_path):
    """Run a command line in this process, in an empty folder; returns its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["weft", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, *capfd.readouterr()

    return run


def test_the_list_of_commands_is_whole():
    assert [command.callback.__name__ for command in app.registered_commands] == COMMANDS


@pytest.mark.parametrize("option", ["--help", "-h", None])
def test_help_lists_every_command(command_line, option):
    code, out, err = command_line(*([option] if option else []))
    assert (code, err) == (0, "")
    assert all(f" {command} " in out for command in COMMANDS)
    assert "Start with: weft run tablecloth" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(command_line, command):
    code, out, err = command_line(command, "--help")
    assert (code, err) == (0, "")
    assert f"Usage: weft {command}" in out
    assert f"Example: weft {command}" in out


def test_scenes(command_line):
    code, out, err = command_line("scenes")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == gallery_names()
    as_json = json.loads(command_line("scenes", "--json")[1])
    assert list(as_json) == gallery_names()
    assert all(as_json.values())


def test_methods(command_line):
    code, out, err = command_line("methods")
    assert (code, err) == (0, "")
    assert all(name in out for name in [*METHODS, *PARTS, *PART_NAMES])
    as_json = json.loads(command_line("methods", "--json")[1])
    assert list(as_json["methods"]) == list(METHODS)
    assert as_json["parts"] == {kind: list(family) for kind, family in PARTS.items()}


@pytest.mark.parametrize("name", DESCRIBED)
def test_describe(command_line, name):
    code, out, err = command_line("describe", name)
    assert (code, err) == (0, "")
    answer = json.loads(command_line("describe", name, "--json")[1])
    assert answer["name"] == name
    assert answer["description"] in out
    assert answer["hint"] in out
    assert answer["parameters"] or "no parameters" in out
    for row in answer["parameters"]:
        assert row["name"] in out
        assert row["meaning"]
    for python in ("None", "Grid(", "(0.0", "[]}", "='"):
        assert python not in out


def test_describe_fabric_shows_measured_values_with_units_and_source(command_line):
    rows = command_line("describe", "cotton")[1].splitlines()
    assert rows[0] == f"fabric cotton: {load_fabric('cotton').source}"
    assert rows[2].split() == ["name", "value", "unit", "range", "meaning"]
    assert rows[3].split() == ["density", "0.15", "kg/m2", ">", "0,", "<=", "10", "mass", "per", "area"]
    answer = json.loads(command_line("describe", "cotton", "--json")[1])
    assert answer["values"] == load_fabric("cotton").model_dump()


def test_describe_scene_shows_keys_that_set_takes(command_line):
    for name in gallery_names():
        answer = json.loads(command_line("describe", name, "--json")[1])
        code, out, _ = command_line("describe", name)
        assert code == 0
        for row in answer["parameters"]:
            assert row["value"].split()[0] in out
            value: object = answer["values"]
            for part in row["name"].split("."):
                value = value[int(part)] if isinstance(value, list) else value[part]


def test_describe_part_names_its_paper_and_how_to_use_it(command_line):
    out = command_line("describe", "mass_spring")[1]
    assert "Graphics Interface 1995" in out
    assert 'In a scene: method = { model = { name = "mass_spring", structural = 1 } }' in out


@pytest.mark.parametrize("name", PART_NAMES)
def test_describe_part_shows_a_line_that_a_scene_takes(command_line, tmp_path, name):
    line = json.loads(command_line("describe", name, "--json")[1])["hint"].removeprefix("In a scene: ")
    (tmp_path / "s.toml").write_text(f"{line}\n{CLOTH}")
    method = weft.load_scene(tmp_path / "s.toml").parts
    assert name in [part_choice(getattr(method, kind), kind)[0] for kind in PARTS]


QUICK = [
    [],
    ["--help"],
    ["run", "--help"],
    ["scenes"],
    ["methods"],
    ["describe", "cotton"],
    ["describe", "tablecloth"],
    ["describe", "scene"],
    ["describe", "engine"],
    ["run", "nonsense"],
    ["run", "tablecloth", "--set", "fps=0"],
    ["run", "tablecloth", "-o", "/dev/null"],
    ["check", "gone"],
    ["render", "gone", "-o", "x.png"],
]


def test_quick_commands_do_not_import_numba():
    """Numba takes a second to import. One process runs them all: none of them may have imported it."""
    script = f"""
import sys
from weft.cli import main
for arguments in {QUICK!r}:
    sys.argv = ["weft", *arguments]
    try:
        main()
    except SystemExit:
        pass
    for slow in ("numba", "trimesh", "PIL"):
        assert slow not in sys.modules, (slow, arguments)
"""
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_reader_that_stops_early_is_no_error():
    pipe = subprocess.Popen(
        [sys.executable, "-c", "from weft.cli import main; main()", "describe", "scene"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert pipe.stdout is not None
    pipe.stdout.close()
    assert pipe.stderr is not None
    assert pipe.stderr.read() == b""
    pipe.stderr.close()
    assert pipe.wait() == -signal.SIGPIPE


def test_ctrl_c_keeps_the_recording(tmp_path):
    (tmp_path / "s.toml").write_text(f"duration = 3000\n{CLOTH}")
    process = subprocess.Popen(
        [sys.executable, "-c", "from weft.cli import main; main()", "run", "s.toml"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = tmp_path / "out" / "s" / "certificate.jsonl"
    while process.poll() is None and not (lines.exists() and lines.read_text().count("\n") > 5):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "weft: stopped; what was recorded is kept, --resume goes on\n")
    assert len(weft.Recording(tmp_path / "out" / "s")) > 5


@pytest.mark.parametrize(("text", "code"), [(APART, 0), (CROSSING, 1)], ids=["apart", "crossing"])
def test_check_of_a_mesh_exits_with_1_where_it_crosses(command_line, tmp_path, text, code):
    (tmp_path / "a.obj").write_text(text)
    stopped, out, err = command_line("check", "a.obj")
    assert (stopped, err) == (code, "")
    assert out.endswith(
        "1 frame checked, no intersection\n" if code == 0 else "1 frame checked, 1 with intersections\n"
    )
    answer = json.loads(command_line("check", "a.obj", "--json")[1])
    assert answer == {"source": "a.obj", "frames": [{"itself": code, "bodies": 0}]}


def test_what_is_set_of_a_method_comes_after_the_method(command_line):
    code, _, err = command_line("run", "flag", "--set", "method.integrator.max_sweeps=0", "--method", "liu1998")
    assert code == 2
    assert "method.integrator.max_sweeps: should be at least 1" in err


def test_run_records_certifies_and_is_checked(command_line, tmp_path):
    (tmp_path / "s.toml").write_text(f"fps = 10\n{CLOTH}[[collider]]\nplane = {{ center = [0, 0, -1] }}\n")
    code, out, err = command_line("run", "s.toml", "--frames", "2", "--profile")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "out/s: 3 frames, certified free of intersections"
    assert "ms a frame" in out
    code, out, err = command_line("check", "out/s")
    assert (code, out, err) == (0, "out/s: 3 frames checked, no intersection\n", "")
    code, out, err = command_line("run", "s.toml", "--frames", "3", "--resume", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["frames"] == 4
    code, out, err = command_line(
        "run", "s.toml", "--frames", "1", "-o", "deep/er/r", "--set", "fps=20", "--threads", "2"
    )
    assert code == 0
    assert (tmp_path / "deep" / "er" / "r" / "meta.json").exists()
    code, out, err = command_line("run", "s.toml", "--set", "fps=30", "--resume")
    assert (code, out) == (2, "")
    assert err == "weft: out/s: was recorded with another fps; resume with the same scene, or use --overwrite\n"


def test_run_says_what_it_untangled_and_so_does_check(command_line, tmp_path):
    (tmp_path / "s.toml").write_text(f"fps = 10\n{CLOTH}{CLOTH}")
    line = "untangled the start: 298 crossings, 192 touching pairs; moved vertices by up to 2.8 mm"
    code, out, err = command_line("run", "s.toml", "--frames", "1")
    assert (code, err) == (0, "")
    assert out.splitlines() == [line, "out/s: 2 frames, certified free of intersections"]
    code, out, err = command_line("check", "out/s")
    assert (code, out.splitlines()[0], err) == (0, line, "")
    code, out, err = command_line("run", "s.toml", "--frames", "1", "--overwrite", "--json")
    assert json.loads(out)["untangled"]["crossings"] == 298


def test_a_ctrl_c_that_python_drops_stops_at_the_next_item():
    """An exception in a callback of the compiler is printed and forgotten; the one who asked to stop is not."""
    from weft.cli import progress

    try:
        with pytest.raises(KeyboardInterrupt):
            progress.stop()
        with pytest.raises(KeyboardInterrupt), progress.progress("test", 3, quiet=True) as advance:
            advance(1)
    finally:
        progress._stop.clear()
