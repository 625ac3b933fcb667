"""Named sets of parts. A method is data: which parts, with which parameters.

`PARTS` names the family that each part comes from. In a scene, `method` is a name from here or a table with the same
keys; a part is a name, or a table with its name and parameters:
`integrator = { name = "implicit_euler", tolerance = 1e-6 }`.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationInfo, field_validator

from weft.collision.broad import BROAD_PHASES
from weft.collision.response import RESPONSES
from weft.errors import WeftError, nearest
from weft.explain import problem_at
from weft.integrators import INTEGRATORS
from weft.models import MODELS
from weft.parameters import NameOr, Parameters, check_inside, quantity
from weft.strain import STRAIN_LIMITS

PARTS = {
    "model": MODELS,
    "integrator": INTEGRATORS,
    "broad": BROAD_PHASES,
    "response": RESPONSES,
    "strain": STRAIN_LIMITS,
}

Part = NameOr[dict[str, Any]]


def part_choice(part: Part, kind: str) -> tuple[str, dict[str, Any]]:
    """Split a part into its name and parameters; `kind` is a key of `PARTS`."""
    if isinstance(part, str):
        name, values = part, {}
    else:
        values = dict(part)
        name = values.pop("name", "")
        if not isinstance(name, str) or not name:
            raise WeftError(f"the table needs a name; choose from {', '.join(PARTS[kind])}")
    if name not in PARTS[kind]:
        raise WeftError(f"unknown {kind} {name!r}{nearest(name, PARTS[kind])}")
    return name, values


class Method(Parameters):
    """A set of parts that together simulate cloth; a part is a name, or a table with its name and parameters.

    [method]
    integrator = { name = "implicit_euler", tolerance = 1e-4 }
    steps_per_frame = 4
    """

    description: str = quantity("what it is for, and its paper", default="given in the scene")
    model: Part = quantity("cloth model", default="shell")
    integrator: Part = quantity("time integrator", default="implicit_euler")
    broad: Part = quantity("broad phase of collision detection", default="linear_tree")
    response: Part = quantity("what is done about contacts", default="dividing_planes")
    strain: Part = quantity("limit of the strain of springs", default="none")
    steps_per_frame: int = quantity("steps in one frame", default=2, ge=1, le=100000)

    @field_validator(*PARTS)
    @classmethod
    def _known_part(cls, part: Part, info: ValidationInfo) -> Part:
        kind = str(info.field_name)
        try:
            name, values = part_choice(part, kind)
        except WeftError as error:
            raise problem_at(str(error)) from None
        if values:  # importing a part may import numba: only where there is something to check
            check_inside(PARTS[kind].load(name).Parameters, values)
        return part


_LIU: dict[str, Any] = {
    # A tenth of the stiffness against stretch: relaxation needs sweeps in proportion to it, and 1 m of cloth still
    # stretches by less than 1 % under its own weight.
    "model": {"name": "elastic_surface", "stretch": 0.1},
    "integrator": {"name": "gauss_seidel", "tolerance": 1e-3, "max_sweeps": 200},
    "steps_per_frame": 10,
}

# Springs soft enough for explicit steps of 0.28 ms at 20 mm an edge.
_SILVA: dict[str, Any] = {
    "model": {"name": "mass_spring", "structural": 0.02, "damping": 0.02},
    "broad": "aabb_tree",
    "steps_per_frame": 60,
}

# Parameters of a part are checked by its class, which imports numba: a test checks these, not every start of weft.
_unchecked = Method.model_construct

METHODS = {
    "engine": Method(
        description="the default: implicit cloth, contact springs with friction, motion that cannot cross",
        steps_per_frame=1,
    ),
    "provot1995": _unchecked(
        description="Provot's explicit mass-spring cloth (Graphics Interface 1995): soft springs, strain up to 10 %; "
        "bodies hold vertices only, so that their edges show through",
        model={"name": "mass_spring", "structural": 0.02, "damping": 0.02},
        integrator="symplectic_euler",
        response="contact_filter",
        strain="position_limit",
        steps_per_frame=100,
    ),
    "choi2002": Method(
        description="Choi and Ko's responsive cloth (SIGGRAPH 2002): it buckles instead of shortening, with BDF2",
        model="responsive",
        integrator="bdf2",
        steps_per_frame=2,
    ),
    "liu1998": _unchecked(
        description="Liu, Ko and Chang (Computers & Graphics 1998): boxes of triangles may not meet; their S3",
        broad="binary_tree",
        response="box_avoidance",
        **_LIU,
    ),
    "liu1998_s2": _unchecked(
        description="liu1998 without a hierarchy of boxes: their S2",
        response={"name": "box_avoidance", "hierarchy": False},
        **_LIU,
    ),
    "liu1998_s1": _unchecked(
        description="the geometric avoidance that liu1998 was compared with: their S1, vertices fixed for the step",
        broad="all_pairs",
        response="vertex_fixing",
        **_LIU,
    ),
    "silva": _unchecked(
        description="da Silva's cloth as published: soft springs, box trees, impulses in two stages; cloth may cross",
        integrator="symplectic_euler",
        response="impulses",
        **_SILVA,
    ),
    "silva_completed": _unchecked(
        description="da Silva's cloth, its future work done (Bridson et al. 2002): friction, impact zones, no crossing",
        integrator="central",
        response="impact_zones",
        strain={"name": "velocity_limit", "rate": 0.1},
        **_SILVA,
    ),
}


def load_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise WeftError(f"unknown method {name!r}{nearest(name, METHODS)}")
    return METHODS[name]
