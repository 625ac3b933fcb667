"""Parameters of parts, fabrics and scenes: checked by pydantic, each with its unit, range and meaning in one place.

`weft describe NAME` prints them; the error text names the key and what it must be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticUndefined

from weft.errors import WeftError, nearest


class Parameters(BaseModel):
    """Base of everything a user can set: frozen, finite numbers only, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def quantity(description: str, *, default: Any = PydanticUndefined, unit: str = "", **bounds: Any) -> Any:
    """A field with its meaning, unit, default and bounds (`gt`, `ge`, `lt`, `le`)."""
    return Field(default=default, description=description, json_schema_extra={"unit": unit}, **bounds)


class Row(NamedTuple):
    """One line of a parameter table."""

    name: str
    unit: str
    default: str
    range: str
    meaning: str


def parameter_table(parameters: type[BaseModel], values: BaseModel | None = None) -> list[Row]:
    """Rows of name, unit, default (or the value in `values`), range and meaning, in the order of the class."""
    rows = []
    for name, field in parameters.model_fields.items():
        extra = field.json_schema_extra
        unit = str(extra.get("unit", "")) if isinstance(extra, dict) else ""
        default = "required" if field.is_required() else _show(field.get_default(call_default_factory=True))
        if values is not None:
            default = _show(getattr(values, name))
        bounds = [
            f"{sign} {_show(getattr(m, key))}" for m in field.metadata for kind, key, sign in _BOUNDS if type(m) is kind
        ]
        rows.append(Row(name, unit, default, ", ".join(bounds), field.description or ""))
    return rows


_BOUNDS = ((Gt, "gt", ">"), (Ge, "ge", ">="), (Lt, "lt", "<"), (Le, "le", "<="))


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem as "key.0.sub: what is wrong"; an unknown key gets the nearest valid one."""
    problems = error.errors()
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    path = [part for part in problem["loc"] if not _is_union_tag(part)]
    key = ".".join(str(part) for part in path)
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown key{nearest(str(path[-1]), _keys_at(model, path[:-1]))}"
    if problem["type"] == "missing":
        return f"{key}: missing; add it"
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    message = message[0].lower() + message[1:]
    given = problem["input"]
    shown = "" if isinstance(given, dict | list | BaseModel) else f" (got {given!r})"
    return f"{key}: {message}{shown}" if key else f"{message}{shown}"


def check(model: type[Any], values: dict[str, Any], where: str) -> Any:
    """Build `model` from `values`; a WeftError that starts with `where` says what is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise WeftError(f"{where}: {explain(error, model)}") from None


def _is_union_tag(part: int | str) -> bool:
    """Pydantic puts the tried alternative of a union into the path, e.g. 'Fabric' or 'str': not a key of the file."""
    return isinstance(part, str) and (part in ("str", "int", "float", "bool") or part[:1].isupper() or "[" in part)


def _keys_at(model: type[BaseModel], path: list[int | str]) -> list[str]:
    """The valid keys of the table that `path` leads to."""
    keys = sorted(model.model_fields)
    current: list[type[BaseModel]] = [model]
    for part in path:
        if isinstance(part, int):
            continue
        fields = [m.model_fields[part] for m in current if part in m.model_fields]
        current = [m for field in fields for m in _models_in(field.annotation)]
        keys = sorted({name for m in current for name in m.model_fields})
    return keys


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _models_in(part)]
