"""The fabric library and the conversion of laboratory sheets."""

from __future__ import annotations

import re

import pytest

from weft.errors import WeftError
from weft.models.fabrics import Fabric, fabric_names, load_fabric
from weft.models.sheets import from_fast, from_kes
from weft.parameters import check

WANTED = [
    "silk",
    "chiffon",
    "cotton_poplin",
    "muslin",
    "linen",
    "wool_flannel",
    "denim",
    "jersey",
    "canvas",
    "leather",
    "cotton",
    "wool_tropical",
    "polyester_tropical",
    "polyester_faille",
]
KES = {
    "weight": 15.0,
    "thickness": 0.4,
    "emt_warp": 5.0,
    "emt_weft": 10.0,
    "lt_warp": 0.7,
    "lt_weft": 0.5,
    "g": 1.0,
    "b_warp": 0.08,
    "b_weft": 0.05,
}
FAST = {
    "weight": 200.0,
    "thickness": 0.6,
    "e100_warp": 2.0,
    "e100_weft": 4.0,
    "eb5": 3.0,
    "c_warp": 20.0,
    "c_weft": 16.0,
}


@pytest.mark.parametrize("name", WANTED)
def test_presets_are_there_described_and_plausible(name):
    fabric = load_fabric(name)
    for quantity in ("density", "stretch", "shear", "bending", "thickness", "friction"):
        assert quantity in fabric.source, "say where every figure comes from"
    if "poisson" in fabric.model_fields_set:
        assert "Poisson's ratio" in fabric.source
    assert ("measured:" in fabric.source) == bool(re.search(r"measured: .*\b20\d\d\b", fabric.source)), "by whom?"
    assert 200 < fabric.density / fabric.thickness < 1000  # kg/m3: fibre and air
    for rigidity in (fabric.bending_warp, fabric.bending_weft):
        bending_length = (rigidity / (9.81 * fabric.density)) ** (1 / 3)
        assert 0.008 < bending_length < 0.04  # m: the limpest knit to stiff canvas
    assert fabric.shear < fabric.stretch_weft <= fabric.stretch_warp


def test_every_preset_is_wanted():
    assert sorted(fabric_names()) == sorted(WANTED)


def test_kes_units():
    """Against factors worked out by hand: 1 gf = 9.80665e-3 N, 1 deg = pi / 180."""
    f = from_kes(**KES)
    assert f.density == pytest.approx(0.15)  # 15 mg over 1e-4 m2
    assert f.thickness == pytest.approx(4e-4)
    assert f.stretch_warp == pytest.approx(0.7 * 490.3325 / 0.05)
    assert f.stretch_weft == pytest.approx(0.5 * 490.3325 / 0.10)
    assert f.shear == pytest.approx(56.188, rel=1e-4)
    assert f.bending_warp == pytest.approx(0.08 * 9.80665e-5)
    assert f.bending_weft == pytest.approx(0.05 * 9.80665e-5)


def test_friction_of_bending_counts_at_the_curvature_of_folds():
    """Cotton broadcloth of Matsudaira 2015: B 0.118 gf cm2/cm and 2HB 0.124 gf cm/cm, so at 0.5 /cm the moment is
    0.062 + 0.059 gf cm/cm, and its ratio to the curvature 0.242 gf cm2/cm."""
    f = from_kes(**KES | {"b_warp": 0.118, "hysteresis_warp": 0.124})
    assert f.bending_warp == pytest.approx(0.242 * 9.80665e-5)
    assert f.bending_warp == pytest.approx(load_fabric("cotton_poplin").bending_warp, rel=2e-3)
    assert f.bending_weft == pytest.approx(0.05 * 9.80665e-5)


def test_fast_units():
    f = from_fast(**FAST)
    assert f.density == pytest.approx(0.2)
    assert f.stretch_warp == pytest.approx(98.0665 / 0.02)
    assert f.stretch_weft == pytest.approx(98.0665 / 0.04)
    assert f.shear == pytest.approx(41.0)
    # a cantilever's definition: rigidity = weight per area times bending length cubed
    assert f.bending_warp == pytest.approx(0.2 * 9.81 * 0.020**3)
    assert f.bending_weft == pytest.approx(0.2 * 9.81 * 0.016**3)


def test_a_scene_may_give_a_sheet():
    fabric = check(Fabric, {"kes": KES, "friction": 0.45}, "cloth.0.fabric")
    assert fabric == from_kes(**KES, friction=0.45)
    assert fabric.source == "KES-F sheet"


def test_a_wrong_sheet_is_refused_by_key():
    wrong = {key: value for key, value in KES.items() if key != "b_warp"} | {"b_wrap": 0.1}
    with pytest.raises(WeftError, match=r"cloth\.0\.fabric: kes\.b_wrap: unknown key; did you mean 'b_warp'"):
        check(Fabric, {"kes": wrong}, "cloth.0.fabric")
    with pytest.raises(WeftError, match=r"from_fast: .*eb5: missing"):
        from_fast(**{key: value for key, value in FAST.items() if key != "eb5"})
