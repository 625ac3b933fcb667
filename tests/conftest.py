"""Shared by all tests: where sample data lies, and one kernel cache for the whole run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import weft

settings.register_profile("weft", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("weft")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of sample meshes; skips where it is not."""
    folder = Path(os.environ.get("WEFT_DATA") or Path(__file__).parents[1] / ".." / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no sample data at {folder}; set WEFT_DATA")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def weft_command():
    """Run the command line in a process of its own; returns the finished process."""
    source = str(Path(weft.__file__).parents[1])  # the weft that is tested, wherever the process runs

    def run(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from weft.cli import main; main()", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": source, "COLUMNS": "140", **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run
