"""What others have measured of draping cloth.

Drape coefficients vary by ten points between tests of one cloth, and so do nodes: both depend on how the cloth is laid
down (Y. J. Jeong, "A study of fabric-drape behaviour with image analysis, part I", J. Textile Inst. 89(1), 59, 1998).
"""

from __future__ import annotations

from typing import NamedTuple


class Measured(NamedTuple):
    """A cloth whose sheet and whose drape were both measured."""

    fabric: str
    """the preset with its density and bending"""
    coefficient: float
    """[%]"""
    nodes: int


# M. Matsudaira, T. Masuda, M. Wada, H. Yokura, "Shape factor of flared skirts compared with that of circular fabrics",
# J. Textile Engineering 61(6), 69 (2015), tables 1 and 2, as transcribed in public. The discs are taken as those of JIS
# L 1096, 25.4 cm on a stand of 12.7 cm: the transcription does not say.
MATSUDAIRA = (
    Measured("cotton_poplin", 82.9, 2),
    Measured("wool_tropical", 49.8, 5),
    Measured("polyester_tropical", 50.7, 5),
    Measured("polyester_faille", 28.3, 7),
)
JIS_STAND, JIS_RADIUS = 0.0635, 0.127  # [m]


class Range(NamedTuple):
    """Drape coefficients [%], by Cusick's test, 30 cm on 18 cm, unless it says otherwise."""

    low: float
    high: float
    of: str
    """which cloths"""


# "Analysis of a fabric drape profile", Fibres and Textiles 1/2018, 37 woven cloths, as summarised in public.
_PLAIN = Range(48.0, 80.0, "plain weaves, Fibres and Textiles 1/2018")
_HEAVY = Range(76.6, 89.0, "plain, panama and rib weaves of 221 to 242 g/m2, Fibres and Textiles 1/2018")
_TWILL = Range(58.0, 85.0, "twills, Fibres and Textiles 1/2018")
_SILK = Range(20.0, 40.0, "light woven silk, in a public calibration that goes by Matsudaira and Yang 2003")
_JERSEY = Range(18.0, 31.0, "single jersey of 97 to 209 g/m2, discs of 25 cm, in a public summary that names no study")
_LEATHER = Range(47.0, 70.0, "sheep garment leather, Materials 14, 4553 (2021)")
WOVEN = Range(28.0, 89.0, "all woven cloths, Fibres and Textiles 1/2018 and Matsudaira 2015")
NODES = (2, 8)  # of the same cloths; the first study saw 5 to 8
BETWEEN_TESTS = 10.0  # points by which tests of one cloth differ, see above

_OF_CLASS = {
    "cotton": _PLAIN,
    "muslin": _PLAIN,
    "linen": _PLAIN,
    "canvas": _HEAVY,
    "denim": _TWILL,
    "silk": _SILK,
    "chiffon": _SILK,
    "jersey": _JERSEY,
    "leather": _LEATHER,
} | {
    own.fabric: Range(own.coefficient - BETWEEN_TESTS, own.coefficient + BETWEEN_TESTS, "this cloth, Matsudaira 2015")
    for own in MATSUDAIRA
}


def drape_range(name: str) -> Range:
    """The measured drape coefficients nearest to a preset: of its cloth, of its class, of all woven cloths."""
    return _OF_CLASS.get(name, WOVEN)
