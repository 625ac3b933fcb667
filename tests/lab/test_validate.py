"""What `make validate` writes: figures, tables and pictures."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from weft.errors import WeftError
from weft.lab.experiments import Drape
from weft.lab.figures import FIGURES
from weft.lab.pictures import SIZE, write_drapes
from weft.lab.plot import Figure, Series, draw
from weft.lab.samples import build_polar
from weft.lab.tables import cusick_table
from weft.lab.validate import NAMES, main


def test_a_figure_is_written_and_says_how_far_it_is_off(tmp_path, capsys):
    main(tmp_path, ["shear"])
    root = ElementTree.fromstring((tmp_path / "shear.svg").read_text(encoding="utf-8"))
    dots = [part for part in root.iter() if part.tag.endswith("circle")]
    assert len(dots) == 6
    assert "Picture frame: within 0.000 %" in capsys.readouterr().out


def test_dots_lie_where_their_values_are():
    series = [Series("line", [(0.0, 0.0), (10.0, 1.0)], False), Series("dots", [(5.0, 0.5)], True)]
    root = ElementTree.fromstring(draw(Figure("title", "x", "y", series, "none")))
    line = next(part for part in root.iter() if part.tag.endswith("polyline")).attrib["points"]
    ends = np.array([[float(v) for v in point.split(",")] for point in line.split()])
    dot = next(part for part in root.iter() if part.tag.endswith("circle")).attrib
    np.testing.assert_allclose([float(dot["cx"]), float(dot["cy"])], ends.mean(axis=0), atol=0.11)


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(WeftError, match="did you mean 'swing'"):
        main(tmp_path, ["swings"])
    assert set(FIGURES) < set(NAMES)


def test_drapes_become_a_table_and_a_picture(tmp_path):
    mesh = build_polar(0.09, 0.15, 2, 12)
    drapes = {"denim": Drape(mesh, mesh.positions, 0.5, 6, 0.7), "silk": Drape(mesh, mesh.positions, 0.4, 7, 0.8)}
    rows = cusick_table(drapes).markdown().splitlines()
    assert [row.split(" | ")[0] for row in rows[-2:]] == ["| denim", "| silk"]
    assert " | 50 | " in rows[-2]
    write_drapes(tmp_path / "drapes.png", drapes)
    with Image.open(tmp_path / "drapes.png") as picture:
        assert picture.size == (2 * SIZE[0], SIZE[1])
        assert len(picture.getcolors(1 << 20)) > 100
