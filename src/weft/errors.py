"""The one error that Weft raises for bad input, and the nearest-name suggestion it carries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """Input that cannot be simulated. Its text is one line: the file or part, the key or index, and what to do.

    The command line prints it without a traceback and exits with 2.
    """


class UnstableError(WeftError):
    """A step that led nowhere: a shorter one may."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest of `valid`, or the list of all of them."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; choose from {', '.join(names)}" if names else ""
