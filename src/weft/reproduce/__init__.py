"""Papers, reproduced: their experiments run anew, their tables beside ours.

A member runs its cases into a folder, keeps what it measured of each as JSON, so that a run that was stopped goes on
with the next case, and returns a `Report`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from weft.registry import Family

if TYPE_CHECKING:
    from weft.reproduce.report import Report


class Reproduction(Protocol):
    """One paper."""

    @staticmethod
    def n_parts(quick: bool) -> int:
        """How many parts `run` counts."""

    def __init__(self, folder: Path, *, quick: bool = False, overwrite: bool = False) -> None: ...

    def run(self, advance: Callable[[int], None]) -> Report:
        """Run all cases, write the report into the folder, and return it. `advance` takes the number of parts done."""


PAPERS = Family("paper", __name__, {"liu1998": "Liu1998", "silva": "Silva"})
