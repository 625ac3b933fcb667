"""Laboratory sheets: from the units of KES-F and FAST to a fabric in SI units.

In a scene, `fabric = { kes = { ... } }` or `fabric = { fast = { ... } }`, with any key of a fabric beside it (friction,
damping, drag). In Python, `from_kes(...)` and `from_fast(...)`.

KES-F (Kawabata 1980): bending B [gf cm2/cm] with 1 gf cm2/cm = 9.807e-5 N m; shear G [gf/(cm deg)] with
1 gf/(cm deg) = 56.19 N/m; weight W [mg/cm2] = 0.01 kg/m2. A tensile test runs to F = 500 gf/cm = 490.3 N/m, where EMT
[%] is the extension e and LT = W_T / (F e / 2) the linearity: the straight line with the same energy has the slope
LT F / e. B is the slope of the moment over the curvature between 0.5 and 1.5 /cm. Cloth that is bent for the first time
works against the friction of its yarns, too: half the hysteresis 2HB [gf cm/cm], at any curvature. Elastic cloth has no
friction; with 2HB given, its rigidity is the moment HB + B k over the curvature k = 0.5 /cm, where folds of drapes are:
B + 2HB x 1 cm. Cotton broadcloth, whose 2HB / B is 1 /cm, drapes 20 points too low without it.

FAST (CSIRO, Report WT92.02, 1994): E100 [%] is the extension at 100 gf/cm = 98.07 N/m; the bias extension EB5 [%] at
5 gf/cm gives the shear rigidity 123 / EB5 [N/m]; the bending length c [mm] and the weight W [g/m2] give the bending
rigidity 9.81e-6 W c^3 [uN m], friction and all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.parameters import Parameters, check, quantity

if TYPE_CHECKING:
    from weft.models.fabrics import Fabric

GRAM_FORCE = 9.80665e-3  # [N]
DEGREES_IN_RADIAN = 57.29577951308232
KES_LOAD = 500.0 * GRAM_FORCE / 1e-2  # [N/m]
FAST_LOAD = 100.0 * GRAM_FORCE / 1e-2  # [N/m]
FOLDS = 0.5  # curvature of folds [1/cm]


def _measured(
    source: str,
    density: float,
    millimetres: float,
    stretch: tuple[float, float],
    shear: float,
    bending: tuple[float, float],
) -> dict[str, Any]:
    """The keys of a fabric that a sheet gives, in SI units but for the thickness; warp first."""
    return {
        "source": source,
        "density": density,
        "thickness": 1e-3 * millimetres,
        "stretch_warp": stretch[0],
        "stretch_weft": stretch[1],
        "shear": shear,
        "bending_warp": bending[0],
        "bending_weft": bending[1],
    }


class KesSheet(Parameters):
    """A KES-F sheet, by its own symbols and in its own units.

    [[cloth]]
    grid = { size = [1, 1], vertices = [51, 51] }

    [cloth.fabric]
    kes = { weight = 12, thickness = 0.4, emt_warp = 4, emt_weft = 8, g = 0.7, b_warp = 0.08, b_weft = 0.05 }
    friction = 0.3
    """

    weight: float = quantity("W, mass per area", unit="mg/cm2", gt=0, le=1000)
    thickness: float = quantity("T0, thickness at 0.5 gf/cm2", unit="mm", gt=0, le=1000)
    emt_warp: float = quantity("EMT, extension at 500 gf/cm, along the warp", unit="%", gt=0, le=1000)
    emt_weft: float = quantity("the same along the weft", unit="%", gt=0, le=1000)
    lt_warp: float = quantity("LT, linearity, along the warp", default=1.0, gt=0, le=2)
    lt_weft: float = quantity("the same along the weft", default=1.0, gt=0, le=2)
    g: float = quantity("G, shear stiffness, mean of both directions", unit="gf/(cm deg)", ge=0, le=1e5)
    b_warp: float = quantity("B, bending rigidity, along the warp", unit="gf cm2/cm", ge=0, le=1e4)
    b_weft: float = quantity("the same along the weft", unit="gf cm2/cm", ge=0, le=1e4)
    hysteresis_warp: float = quantity(
        "2HB, hysteresis of the bending moment", default=0.0, unit="gf cm/cm", ge=0, le=1e4
    )
    hysteresis_weft: float = quantity("the same along the weft", default=0.0, unit="gf cm/cm", ge=0, le=1e4)

    def fabric(self) -> dict[str, Any]:
        """The keys of a fabric that follow."""
        warp = self.b_warp + 0.5 * self.hysteresis_warp / FOLDS
        weft = self.b_weft + 0.5 * self.hysteresis_weft / FOLDS
        return _measured(
            "KES-F sheet",
            1e-2 * self.weight,
            self.thickness,
            (self.lt_warp * KES_LOAD / (1e-2 * self.emt_warp), self.lt_weft * KES_LOAD / (1e-2 * self.emt_weft)),
            self.g * GRAM_FORCE / 1e-2 * DEGREES_IN_RADIAN,
            (warp * GRAM_FORCE * 1e-4 / 1e-2, weft * GRAM_FORCE * 1e-4 / 1e-2),
        )


class FastSheet(Parameters):
    """A FAST sheet, by its own symbols and in its own units.

    [[cloth]]
    grid = { size = [1, 1], vertices = [51, 51] }

    [cloth.fabric]
    fast = { weight = 150, thickness = 0.4, e100_warp = 1, e100_weft = 2, eb5 = 3, c_warp = 18, c_weft = 16 }
    friction = 0.3
    """

    weight: float = quantity("W, mass per area", unit="g/m2", gt=0, le=10000)
    thickness: float = quantity("T2, thickness at 2 gf/cm2", unit="mm", gt=0, le=1000)
    e100_warp: float = quantity("E100-1, extension at 100 gf/cm, along the warp", unit="%", gt=0, le=1000)
    e100_weft: float = quantity("E100-2, along the weft", unit="%", gt=0, le=1000)
    eb5: float = quantity("EB5, extension at 5 gf/cm on the bias", unit="%", gt=0, le=1000)
    c_warp: float = quantity("C-1, bending length along the warp", unit="mm", gt=0, le=1000)
    c_weft: float = quantity("C-2, along the weft", unit="mm", gt=0, le=1000)

    def fabric(self) -> dict[str, Any]:
        """The keys of a fabric that follow."""
        return _measured(
            "FAST sheet",
            1e-3 * self.weight,
            self.thickness,
            (FAST_LOAD / (1e-2 * self.e100_warp), FAST_LOAD / (1e-2 * self.e100_weft)),
            123.0 / self.eb5,
            (1e-6 * 9.81e-6 * self.weight * self.c_warp**3, 1e-6 * 9.81e-6 * self.weight * self.c_weft**3),
        )


SHEETS: dict[str, type[KesSheet | FastSheet]] = {"kes": KesSheet, "fast": FastSheet}


def from_kes(**values: float) -> Fabric:
    """A fabric from a KES-F sheet: the keys of `KesSheet`, and any of `Fabric` that the sheet does not give."""
    return _from_sheet("kes", values)


def from_fast(**values: float) -> Fabric:
    """A fabric from a FAST sheet: the keys of `FastSheet`, and any of `Fabric` that the sheet does not give."""
    return _from_sheet("fast", values)


def _from_sheet(kind: str, values: dict[str, float]) -> Fabric:
    from weft.models.fabrics import Fabric

    sheet = {key: value for key, value in values.items() if key in SHEETS[kind].model_fields}
    rest = {key: value for key, value in values.items() if key not in sheet}
    fabric: Fabric = check(Fabric, {kind: sheet, **rest}, f"from_{kind}")
    return fabric
