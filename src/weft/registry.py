"""Families of exchangeable parts.

A family is a folder: one Protocol in its `__init__`, one `Family`, one file a member. The name in the scene file is
the module's name and the registry's key, so adding a member costs one file and one line. Members are imported only
when they are asked for: listing names must not load numba.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from weft.errors import WeftError, nearest


class Family:
    """The members of one folder, by name.

    Parameters
    ----------
    noun : what one member is called in an error, e.g. "model"
    package : the folder, as a module name
    members : member name -> class name; the module is `package.name`
    """

    def __init__(self, noun: str, package: str, members: Mapping[str, str]) -> None:
        self.noun = noun
        self.package = package
        self._members = dict(members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def load(self, name: str) -> Any:
        """Import and return the class of member `name`."""
        if name not in self._members:
            raise WeftError(f"unknown {self.noun} {name!r}{nearest(name, self._members)}")
        return getattr(importlib.import_module(f"{self.package}.{name}"), self._members[name])
