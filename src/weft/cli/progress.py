"""The progress bar of every long command, with the time left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_stop = threading.Event()


def stop(*_: Any) -> None:
    """Answer ctrl-c. Python drops an exception that is raised while a kernel compiles, so the next item looks again."""
    _stop.set()
    raise KeyboardInterrupt


@contextmanager
def progress(title: str, total: int, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr while it runs; yields a function that takes the number of items done.

    The bar goes when it ends, well or not, and a stderr that is no terminal stays free of it: an error is one line.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task(title, total=total)

        def advance(done: int) -> None:
            if _stop.is_set():
                raise KeyboardInterrupt
            bar.update(task, completed=done)

        yield advance
