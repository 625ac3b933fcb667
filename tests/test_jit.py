"""The kernel decorator, its cache and the number of threads."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from weft import jit
from weft.arrays import Floats
from weft.errors import WeftError


def test_cache_folder_follows_the_kernel_sources(monkeypatch, tmp_path):
    package = tmp_path / "weft"
    package.mkdir()
    (package / "plain.py").write_text("x = 1\n")
    (package / "kernels.py").write_text("@kernel\n")
    monkeypatch.setattr(jit, "__file__", str(package / "jit.py"))
    before = jit._source_hash()
    (package / "plain.py").write_text("x = 2\n")
    assert jit._source_hash() == before
    (package / "kernels.py").write_text("@kernel  # edited\n")
    assert jit._source_hash() != before


def test_unwritable_cache_falls_back_to_a_temporary_one(monkeypatch, tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(blocked))
    folder = jit._cache_folder()
    assert folder.is_dir()
    assert "WEFT_CACHE_DIR" in capsys.readouterr().err


def test_stale_cache_folders_are_removed(monkeypatch, tmp_path):
    old, recent = tmp_path / "kernels-old", tmp_path / "kernels-recent"
    old.mkdir()
    recent.mkdir()
    long_ago = time.time() - (jit.STALE_CACHE_DAYS + 1) * 86400
    os.utime(old, (long_ago, long_ago))
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    assert jit._cache_folder().parent == tmp_path
    assert not old.exists()
    assert recent.exists()


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1000"])
def test_bad_thread_count_is_refused(monkeypatch, text):
    monkeypatch.setenv("WEFT_THREADS", text)
    with pytest.raises(WeftError, match="WEFT_THREADS"):
        jit.requested_threads()


def test_threads_for_little_work_is_one_and_is_undone():
    before = jit.threads()
    with jit.threads_for(10):
        assert jit.threads() == 1
    assert jit.threads() == before


def test_a_crew_that_waits_for_a_busy_machine_works_alone_for_a_while(monkeypatch):
    """Two threads get as much processor time as one would, then both get all of theirs."""
    clock = {"wall": 0.0, "cpu": 0.0}
    monkeypatch.setattr(jit.time, "perf_counter", lambda: clock["wall"])
    monkeypatch.setattr(jit.time, "process_time", lambda: clock["cpu"])
    monkeypatch.setattr(jit, "threads", lambda: clock["threads"])
    crew, used = jit.Crew(), []

    def work(share):
        with crew.at_work(10_000):
            used.append(clock["threads"])
            clock["wall"] += 1.0
            clock["cpu"] += share * clock["threads"]

    def one_or_two(rows):
        clock["threads"] = 2 if rows else 1
        return nullcontext()

    monkeypatch.setattr(jit, "threads_for", one_or_two)
    busy = [2] * jit.SLOW_STEPS + [1] * jit.STEPS_ALONE + [2] + [1] * (2 * jit.STEPS_ALONE)
    for _ in busy:
        work(0.5)
    assert used == busy
    for _ in range(2 * jit.STEPS_ALONE):
        work(1.0)
    assert set(used[len(busy) :]) == {2}
    for _ in busy:
        work(0.5)
    assert used[-len(busy) :] == busy


def test_too_many_threads_are_refused():
    with pytest.raises(WeftError, match="threads"):
        jit.set_threads(10_000)


def test_a_child_may_have_more_threads_than_its_parent():
    """What jit sets for numba passes to child processes."""
    code = "import os, weft.jit; print(weft.jit.threads())"
    child = f"subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    nested = f"import subprocess, sys; {code}; os.environ['WEFT_THREADS'] = '7'; {child}"
    environment = {**os.environ, "WEFT_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-u", "-c", nested], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "7"], done.stderr


def test_compilation_line_counts_and_clears(monkeypatch, capsys):
    class Event:
        def __init__(self, dispatcher):
            self.data = {"dispatcher": dispatcher}

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = jit._CompilationLine()
    outer, inner = object(), object()
    line.on_start(Event(outer))
    line.on_start(Event(inner))
    line.on_end(Event(inner))
    line.on_end(Event(outer))
    shown = capsys.readouterr().err
    assert "compiling kernels, once: 1/" in shown
    assert "compiling kernels, once: 2/" in shown
    assert shown.endswith("\r\033[K")


def test_kernels_have_no_fastmath():
    """NaN checks and error bounds must survive compilation."""

    @jit.kernel
    def is_nan(x):
        return x != x

    assert is_nan(np.nan)
    assert not is_nan(1.0)


def test_a_kernel_that_returns_an_array_must_say_that_it_allocates():
    """One that does not count who refers to an array would give away one that others may free."""

    def first(x: Floats) -> Floats:
        return x[:1]

    with pytest.raises(TypeError, match="first returns an array"):
        jit.kernel(first)
    np.testing.assert_array_equal(jit.kernel(allocates=True)(first)(np.arange(3.0)), [0.0])


def test_no_kernel_that_does_not_count_calls_one_that_returns_an_array():
    """Nobody would free that array."""
    counting, others = set(), []
    for path in sorted(Path(jit.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            marks = [ast.unparse(mark) for mark in node.decorator_list if ast.unparse(mark).startswith("kernel")]
            if not marks:
                continue
            if "allocates=True" not in marks[0] and "parallel=True" not in marks[0]:
                others.append((path.name, node))
            elif jit._ARRAY.search(ast.unparse(node.returns)):
                counting.add(node.name)
    assert "build_limbs" in counting
    assert len(others) > 200
    for name, node in others:
        called = {
            call.func.id for call in ast.walk(node) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        }
        assert not called & counting, f"{name}: {node.name} must say allocates=True"
