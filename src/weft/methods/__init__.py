"""Named sets of parts. A method is data: which parts, with which parameters.

`PARTS` names the family that each part comes from. In a scene, `method` is a name from here or a table with the same
keys; a part is a name, or a table with its name and parameters:
`integrator = { name = "implicit_euler", tolerance = 1e-6 }`.
"""

from __future__ import annotations

from typing import Any

from weft.collision.response import RESPONSES
from weft.errors import WeftError, nearest
from weft.integrators import INTEGRATORS
from weft.models import MODELS
from weft.parameters import Parameters, quantity
from weft.strain import STRAIN_LIMITS

PARTS = {"model": MODELS, "integrator": INTEGRATORS, "response": RESPONSES, "strain": STRAIN_LIMITS}

Part = str | dict[str, Any]


class Method(Parameters):
    """A set of parts that together simulate cloth."""

    description: str = quantity("what it is for, and its paper", default="given in the scene")
    model: Part = quantity("cloth model", default="mass_spring")
    integrator: Part = quantity("time integrator", default="implicit_euler")
    response: Part = quantity("what is done about contacts", default="contact_filter")
    strain: Part = quantity("limit of the strain of springs", default="none")
    steps_per_frame: int = quantity("steps in one frame", default=2, ge=1, le=100000)


METHODS = {
    "engine": Method(
        description="the default: implicit mass-spring cloth with contacts and friction as filtered constraints",
        steps_per_frame=2,
    ),
    "provot1995": Method(
        description="Provot's explicit mass-spring cloth with limited strain (Graphics Interface 1995): small steps",
        integrator="symplectic_euler",
        strain="position_limit",
        steps_per_frame=100,
    ),
    "choi2002": Method(
        description="Choi and Ko's responsive cloth (SIGGRAPH 2002): it buckles instead of shortening, with BDF2",
        model="responsive",
        integrator="bdf2",
        steps_per_frame=2,
    ),
}


def load_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise WeftError(f"unknown method {name!r}{nearest(name, METHODS)}")
    return METHODS[name]


def part_choice(part: Part, kind: str) -> tuple[str, dict[str, Any]]:
    """Split a part into its name and parameters; `kind` is a key of `PARTS`."""
    if isinstance(part, str):
        name, values = part, {}
    else:
        values = dict(part)
        name = values.pop("name", "")
        if not isinstance(name, str) or not name:
            raise WeftError(f"method.{kind}: a table needs a name; choose from {', '.join(PARTS[kind])}")
    if name not in PARTS[kind]:
        raise WeftError(f"method.{kind}: unknown {kind} {name!r}{nearest(name, PARTS[kind])}")
    return name, values
