"""Parameters of parts, fabrics and scenes: checked by pydantic, each with its unit, range and meaning in one place.

`weft describe NAME` prints them; the error text names the key and what it must be.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from weft.errors import WeftError
from weft.explain import NAME, TABLE, choices_in, explain, keys_of, models_in, problem_at, spell, type_name, unit_of

LARGEST = 1e4  # of any coordinate, in SI units: beyond it float32 recordings no longer resolve a millimetre

Coordinate = Annotated[float, Ge(-LARGEST), Le(LARGEST)]
Vector = tuple[Coordinate, Coordinate, Coordinate]
Length = Annotated[float, Ge(1e-4), Le(LARGEST)]


def _kind_given(value: Any) -> str | None:
    return NAME if isinstance(value, str) else TABLE if isinstance(value, dict | BaseModel) else None


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
NameOr = Annotated[
    Annotated[str, Tag(NAME)] | Annotated[T, Tag(TABLE)],
    Discriminator(_kind_given, custom_error_type="name_or_table", custom_error_message="name or table"),
]
"""`NameOr[Fabric]`: text, or a table; errors speak of the one that was given."""


class Parameters(BaseModel):
    """Base of everything a user can set: frozen, finite numbers only, no guessing of types, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _lists_as_tuples(cls, value: Any, info: ValidationInfo) -> Any:
        """TOML has one kind of list; strict pydantic would refuse it for a tuple."""
        name = str(info.field_name)
        return _as_tuple(value) if type_name(cls.model_fields[name].annotation)[0].isdigit() else value


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(item) for item in value) if isinstance(value, list) else value


def quantity(description: str, *, default: Any = PydanticUndefined, unit: str = "", **bounds: Any) -> Any:
    """A field with its meaning, unit, default and bounds (`gt`, `ge`, `lt`, `le`)."""
    return Field(default=default, description=description, json_schema_extra={"unit": unit}, **bounds)


def check(model: type[Any], values: dict[str, Any], where: str) -> Any:
    """Build `model` from `values`; a WeftError that starts with `where` says what is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise WeftError(f"{where}: {explain(error, model)}") from None


def check_inside(model: type[M], values: Any, *path: str) -> M:
    """For a validator: build `model` from `values`, which `path` leads to in the table that is being checked."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problem = explain(error, model)
        raise problem_at(problem.text, *path, *problem.path) from None


class Row(NamedTuple):
    """One line of a parameter table."""

    name: str
    type: str
    unit: str
    default: str
    range: str
    meaning: str


def parameter_table(parameters: type[BaseModel]) -> list[Row]:
    """Every key of a table with type, unit, default, range and meaning, in the order of the class."""
    return [_row(name, parameters.model_fields[name]) for name in keys_of(parameters)]


def value_table(values: BaseModel) -> list[Row]:
    """As `parameter_table`, with what `values` holds in place of the defaults."""
    table = zip(keys_of(type(values)), parameter_table(type(values)), strict=True)
    return [row._replace(default=_bare_show(getattr(values, name))) for name, row in table]


def set_values(values: BaseModel, prefix: str = "") -> list[Row]:
    """What was given explicitly, down to single values, under the keys that `--set` takes."""
    rows: list[Row] = []
    for name in keys_of(type(values)):
        if name in values.model_fields_set:
            row = _row(f"{prefix}{name}", type(values).model_fields[name])
            rows.extend(_flattened(getattr(values, name), row))
    return rows


def _flattened(value: Any, row: Row) -> list[Row]:
    if isinstance(value, BaseModel):
        return set_values(value, f"{row.name}.")
    if isinstance(value, list):
        entries = [row._replace(name=f"{row.name}.{k}") for k in range(len(value))]
        if any(isinstance(item, BaseModel) and _holds_tables(item) for item in value):
            return [found for k, item in enumerate(value) for found in _flattened(item, entries[k])]
        return [entry._replace(default=_bare_show(item)) for entry, item in zip(entries, value, strict=True)]
    return [row._replace(default=_bare_show(value))]


def _holds_tables(table: BaseModel) -> bool:
    return any(models_in(field.annotation) for field in type(table).model_fields.values())


def _row(name: str, field: FieldInfo) -> Row:
    default = "required" if field.is_required() else _bare_show(field.get_default(call_default_factory=True))
    return Row(name, type_name(field.annotation), unit_of(field), default, _range(field), field.description or "")


_BOUNDS = ((Gt, "gt", ">"), (Ge, "ge", ">="), (Lt, "lt", "<"), (Le, "le", "<="))


def _range(field: FieldInfo) -> str:
    """Bounds, of each number where there are several, or the words to choose from."""
    metadata = list(field.metadata)
    annotation = field.annotation
    while get_args(annotation):
        if get_origin(annotation) is Annotated:
            metadata += get_args(annotation)[1:]
        annotation = get_args(annotation)[0]
    found = {sign: spell(float(getattr(m, key))) for m in metadata for kind, key, sign in _BOUNDS if type(m) is kind}
    if found.keys() == {">=", "<="}:
        return f"{found['>=']} to {found['<=']}"
    return ", ".join([*(f"{sign} {bound}" for sign, bound in found.items()), *choices_in(field.annotation)])


def _bare_show(value: Any) -> str:
    """As in a scene file, without quotes and without what was not given."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    return spell(value) if value != {} else ""
