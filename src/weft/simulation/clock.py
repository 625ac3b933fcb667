"""Time spent, by stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StageClock:
    """Adds up time by the name of a stage: wall time, or what `now` tells."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._now = now

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = self._now()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + self._now() - start

    def take(self) -> dict[str, float]:
        """The times since the last call, and start again."""
        seconds, self.seconds = self.seconds, {}
        return seconds
