"""Families and parameters: names, suggestions, tables."""

from __future__ import annotations

import pytest

from weft.errors import WeftError, nearest
from weft.methods import METHODS, PARTS, part_choice
from weft.parameters import Parameters, check, parameter_table, quantity

MEMBERS = [(kind, name) for kind, family in PARTS.items() for name in family]


class Example(Parameters):
    stiffness: float = quantity("how stiff", default=2.0, unit="N/m", gt=0, le=10)
    count: int = quantity("how many")


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_every_member_loads_and_documents_itself(kind, name):
    member = PARTS[kind].load(name)
    assert member.__module__.endswith(f".{name}")
    assert member.__doc__
    for row in parameter_table(member.Parameters):
        assert row.meaning


def test_unknown_member_names_the_nearest():
    with pytest.raises(WeftError, match="did you mean 'mass_spring'"):
        PARTS["model"].load("mass_sprung")


def test_every_method_names_known_parts():
    for method in METHODS.values():
        for kind in PARTS:
            name, _ = part_choice(getattr(method, kind), kind)
            assert name in PARTS[kind]


def test_part_without_a_name_is_refused():
    with pytest.raises(WeftError, match="needs a name"):
        part_choice({"tolerance": 1.0}, "integrator")


def test_table_shows_unit_default_and_range():
    rows = parameter_table(Example)
    assert rows[0] == ("stiffness", "number", "N/m", "2", "> 0, <= 10", "how stiff")
    assert rows[1].default == "required"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"count": 1, "stifness": 3.0}, "stifness: unknown key; did you mean 'stiffness'"),
        ({"count": 1, "stiffness": -1.0}, "stiffness: should be greater than 0 [N/m], got -1"),
        ({"count": 1, "stiffness": float("nan")}, "stiffness: should be a finite number, got nan"),
        ({}, "count: missing; add a whole number"),
        ({"count": "three"}, "count: should be a whole number, got 'three'"),
    ],
)
def test_check_names_the_key(values, text):
    with pytest.raises(WeftError) as caught:
        check(Example, values, "here")
    assert str(caught.value).startswith(f"here: {text}")


def test_nearest_lists_all_when_none_is_close():
    assert nearest("zzz", ["a", "b"]) == "; choose from a, b"
