"""Fabrics in measured SI units, and the presets in `fabrics.toml`."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from pydantic import model_validator

from weft.errors import WeftError, nearest
from weft.models.sheets import SHEETS
from weft.parameters import Parameters, check, check_inside, quantity


class Fabric(Parameters):
    """What a textile laboratory measures of a cloth. No model redefines these: each derives its own constants.

    Stretch and shear are membrane stiffnesses per unit width (Young's modulus times thickness), bending is the
    flexural rigidity per unit width. Warp runs along the material v axis, weft along u. A laboratory sheet may stand
    for the measured keys: `kes = { ... }` or `fast = { ... }`.

        [[cloth]]
        grid = { size = [1, 1], vertices = [51, 51] }

        [cloth.fabric]
        density = 0.12
        stretch_warp = 3000
        stretch_weft = 2500
        shear = 40
        bending_warp = 6e-6
        bending_weft = 4e-6
        thickness = 0.0003
    """

    density: float = quantity("mass per area", unit="kg/m2", gt=0, le=10)
    stretch_warp: float = quantity("membrane stiffness along the warp", unit="N/m", gt=0, le=1e7)
    stretch_weft: float = quantity("membrane stiffness along the weft", unit="N/m", gt=0, le=1e7)
    shear: float = quantity("in-plane shear stiffness", unit="N/m", ge=0, le=1e7)
    poisson: float = quantity(
        "contraction across a pull, as a share of the stretch: mean of both directions", default=0.2, ge=0, lt=0.9
    )
    bending_warp: float = quantity("flexural rigidity along the warp", unit="N m", ge=0, le=1)
    bending_weft: float = quantity("flexural rigidity along the weft", unit="N m", ge=0, le=1)
    thickness: float = quantity("thickness", unit="m", gt=0, le=0.05)
    friction: float = quantity("Coulomb friction coefficient", default=0.3, ge=0, le=10)
    damping: float = quantity(
        "internal damping: this time times stiffness is the damping coefficient", default=0.002, unit="s", ge=0, le=1
    )
    drag: float = quantity("air drag coefficient of a plate across the flow", default=1.2, ge=0, le=10)
    source: str = quantity("where the figures come from", default="given in the scene")

    @model_validator(mode="before")
    @classmethod
    def _read_sheet(cls, values: Any) -> Any:
        for kind, sheet in SHEETS.items():
            if isinstance(values, dict) and kind in values:
                own = {key: value for key, value in values.items() if key != kind}
                return check_inside(sheet, values[kind], kind).fabric() | own
        return values


def _presets() -> dict[str, Any]:
    return tomllib.loads(files("weft.models").joinpath("fabrics.toml").read_text(encoding="utf-8"))


def fabric_names() -> list[str]:
    """Names of the presets."""
    return list(_presets())


def load_fabric(name: str) -> Fabric:
    """The preset of that name."""
    presets = _presets()
    if name not in presets:
        shown = name if len(name) <= 60 else f"{name[:57]}..."
        raise WeftError(f"unknown fabric {shown!r}{nearest(name, presets)}")
    fabric: Fabric = check(Fabric, presets[name], f"fabrics.toml: {name}")
    return fabric
