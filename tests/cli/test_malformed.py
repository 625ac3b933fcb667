"""Bad input is answered by exit code 2 and one line that names the file and the key; nothing is written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.cli.malformed_cases import CASES, CLOTH, Case

from weft.cli import main


def fill(folder: Path, case: Case) -> None:
    for name, contents in case.files.items():
        path = folder / name
        if contents is None:
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)


def matches(line: str, answer: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in answer.split("…")), line) is not None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_refused_with_one_line(case, tmp_path, monkeypatch, capfd):
    fill(tmp_path, case)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["weft", *case.arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capfd.readouterr()
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert matches(err.removesuffix("\n"), f"weft: {case.answer}"), err
    assert stopped.value.code == 2
    assert out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["run", "s.toml"], "WEFT_THREADS: expected a whole number from 1 to 256, got 'abc'"),
        (["run", "s.toml", "--set", "fps=0"], "s.toml: fps: should be at least 0.1 [1/s], got 0"),
        (["check", "gone"], "gone: no such recording or mesh"),
        (["describe", "cottn"], "nothing is called 'cottn'; did you mean 'cotton'?"),
    ],
    ids=["WEFT_THREADS", "value", "path", "name"],
)
def test_refused_in_a_process_of_its_own(arguments, answer, tmp_path, weft_command):
    (tmp_path / "s.toml").write_text(CLOTH)
    done = weft_command(*arguments, cwd=tmp_path, WEFT_THREADS="abc")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"weft: {answer}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_old_recording_survives_a_scene_that_cannot_be_stepped(tmp_path, weft_command):
    (tmp_path / "s.toml").write_text(CLOTH)
    (tmp_path / "out" / "s").mkdir(parents=True)
    (tmp_path / "out" / "s" / "meta.json").write_text("precious")
    unstable = ["--method", "provot1995", "--set", "steps_per_frame=1"]
    done = weft_command("run", "s.toml", "--overwrite", *unstable, cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "out" / "s" / "meta.json").read_text() == "precious"
    assert len(list((tmp_path / "out" / "s").iterdir())) == 1
