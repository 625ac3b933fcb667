"""From pydantic's errors to the one line that a person mends first, and the words for types and values in it.

Pydantic reports every alternative of a union and speaks of Python ("Input should be a valid tuple"). A scene file is
TOML, and its author wants the key, what belongs there, and what was given instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from weft.errors import nearest

NAME, TABLE = "<name>", "<table>"  # tags of `NameOr` in pydantic's paths; no key of a file looks like this
MAX_SHOWN = 60  # characters of a value in an error
MAX_HOMES = 3  # tables that are named where a key is in the wrong one


class Problem(NamedTuple):
    """One thing to mend."""

    path: list[str | int]
    """keys and indices from the root to the value; empty for the root itself"""
    text: str

    def __str__(self) -> str:
        return ": ".join([".".join(map(str, self.path)), self.text] if self.path else [self.text])


def problem_at(text: str, *path: str | int) -> PydanticCustomError:
    """What a validator raises to say `text` about the value that `path` leads to, from where the validator stands."""
    return PydanticCustomError("weft", "{text}", {"text": text, "path": list(path)})


def explain(error: ValidationError, model: type[BaseModel]) -> Problem:
    """The problem to mend first. Unknown keys come first: a misspelled key is also a missing one."""
    problems = error.errors(include_url=False)
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = _find(model, problem["loc"])
    if problem["type"] == "extra_forbidden":
        return Problem(place.path, _unknown_key(model, place.path))
    if problem["type"] == "weft":
        return Problem([*place.path, *problem["ctx"]["path"]], problem["ctx"]["text"])
    if problem["type"] == "missing" and isinstance(place.path[-1], int):  # a tuple that is too short
        place = _find(model, problem["loc"][:-1])
        return Problem(place.path, _wrong_type(place, problem["input"]))
    return Problem(place.path, _text(place, problem))


class _Place(NamedTuple):
    """Where a path leads in a model."""

    path: list[str | int]
    annotation: Any
    unit: str


def _find(model: type[BaseModel], loc: tuple[str | int, ...]) -> _Place:
    annotation: Any = model
    unit = ""
    path: list[str | int] = []
    for part in loc:
        annotation = _bare(annotation)
        if part in (NAME, TABLE):
            annotation = next(a for a in map(_bare, get_args(annotation)) if (a is str) == (part == NAME))
            continue
        path.append(part)
        args = get_args(annotation)
        if _is_model(annotation) and part in annotation.model_fields:
            field = annotation.model_fields[part]
            annotation, unit = field.annotation, unit_of(field)
        elif isinstance(part, int) and args:
            annotation = args[part] if get_origin(annotation) is tuple and part < len(args) else args[0]
        else:
            annotation = Any
    return _Place(path, _bare(annotation), unit)


def _text(place: _Place, problem: ErrorDetails) -> str:
    kind, given = problem["type"], problem["input"]
    if kind == "missing":
        if type_name(place.annotation) == "list of tables":
            return f"missing; add [[{place.path[-1]}]]"
        return f"missing; add {_with_article(type_name(place.annotation))}{_in_unit(place.unit)}"
    if kind.endswith("_type") or kind == "name_or_table" or (kind == "too_long" and isinstance(given, tuple)):
        return _wrong_type(place, given)
    if kind == "too_short" and not given:
        return "empty; it needs at least one entry"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"should be {words} {spell(float(problem['ctx'][key]))}{_in_unit(place.unit)}, got {show(given)}"
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return message if kind == "value_error" else f"{message}, got {show(given)}"


_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def _wrong_type(place: _Place, given: Any) -> str:
    noun = type_name(place.annotation)
    key = str(place.path[-1]) if place.path else ""
    header = len(place.path) == 1
    got, advice = show(given), ""
    if noun == "list of tables" and isinstance(given, dict):
        got = "one table"
        advice = f"; write [[{key}]] instead of [{key}]" if header else "; put [ ] around it"
    elif noun.endswith("table") and isinstance(given, list | tuple):
        got = "a list"
        advice = f"; write [{key}] instead of [[{key}]]" if header else "; give one table, without [ ]"
    elif noun.endswith("number") and isinstance(given, str):
        if re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", given):
            advice = "; leave out the quotes"
        elif re.match(r"\s*[-+]?[\d.]+", given):
            advice = "; leave out the unit"
    elif noun == "text" and isinstance(given, int | float):
        advice = "; put it in quotes"
    return f"should be {_with_article(noun)}{_in_unit(place.unit)}, got {got}{advice}"


def _unknown_key(model: type[BaseModel], path: list[str | int]) -> str:
    *table, key = (part for part in path if isinstance(part, str))
    here = {name for home, m in tables_in(model) if home == table for name in keys_of(m)}
    homes = [home for home, m in tables_in(model) if key in keys_of(m)]
    if len(homes) > MAX_HOMES:
        homes = [home for home in homes if home[: len(table)] == table]
    if [] in homes:
        return "unknown key here; put it at the top of the file, above the first [table]"
    if 0 < len(homes) <= MAX_HOMES:
        return f"unknown key here; it belongs in {' or '.join('.'.join(home) for home in homes)}"
    return f"unknown key{nearest(key, here)}"


def tables_in(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[tuple[list[str], type[BaseModel]]]:
    """Every table under `model`, itself included, with the keys that lead there."""
    yield list(prefix), model
    for name in keys_of(model):
        for inner in models_in(model.model_fields[name].annotation):
            yield from tables_in(inner, (*prefix, name))


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys that a file may set."""
    return [name for name, field in model.model_fields.items() if not field.exclude]


def unit_of(field: FieldInfo) -> str:
    """The unit that `quantity` was given."""
    extra = field.json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The tables among the alternatives of a type, or in its lists."""
    annotation = _bare(annotation)
    if _is_model(annotation):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in(part)]


def type_name(annotation: Any) -> str:
    """A type in the words of a scene file's author: "3 numbers", "list of tables", "name or table"."""
    annotation = _bare(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if _is_model(annotation) or dict in (annotation, origin):
        return "table"
    if origin is Literal:
        return "choice"
    if origin is list:
        return f"list of {_plural(type_name(args[0]))}"
    if origin is tuple:
        inner = type_name(args[0])
        return f"{len(args)} {'x ' if inner[0].isdigit() else ''}{_plural(inner)}"
    if origin in (Union, UnionType):
        return "name or table" if str in map(_bare, args) else " or ".join(type_name(part) for part in args)
    return {float: "number", int: "whole number", str: "text", bool: "true or false"}.get(annotation, "value")


def _plural(noun: str) -> str:
    return noun if noun.endswith(("s", "text")) else f"{noun}s"


def _with_article(noun: str) -> str:
    return noun if noun[0].isdigit() or noun in ("text", "true or false") else f"a {noun}"


def _in_unit(unit: str) -> str:
    return f" [{unit}]" if unit else ""


def choices_in(annotation: Any) -> tuple[str, ...]:
    """The words that a Literal, or a list of it, allows."""
    annotation = _bare(annotation)
    if get_origin(annotation) is list:
        annotation = _bare(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _bare(annotation: Any) -> Any:
    """A type without its annotations and without None."""
    while True:
        args = get_args(annotation)
        if get_origin(annotation) is Annotated:
            annotation = args[0]
        elif get_origin(annotation) in (Union, UnionType) and type(None) in args:
            annotation = Union[tuple(part for part in args if part is not type(None))]  # noqa: UP007
        else:
            return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def show(value: Any) -> str:
    """A value as `spell` does, cut where it gets long."""
    text = spell(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def spell(value: Any) -> str:
    """A value as a scene file would spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return re.sub(r"e([-+])0*", lambda m: "e-" if m[1] == "-" else "e", f"{value:.6g}")
    if isinstance(value, list | tuple):
        return f"[{', '.join(spell(item) for item in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {spell(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return repr(value) if isinstance(value, str) else _digits(value) if isinstance(value, int) else str(value)


def _digits(value: int) -> str:
    return str(value) if abs(value) < 10**MAX_SHOWN else "a number of too many digits"
