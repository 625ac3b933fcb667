"""A report in its three forms."""

from __future__ import annotations

import numpy as np
import pytest

from weft.errors import WeftError
from weft.render.animation import write_picture
from weft.reproduce.report import Heading, Paragraph, Picture, Report, Table, show


@pytest.fixture
def report(tmp_path):
    write_picture(tmp_path / "a.png", np.zeros((8, 8, 3), np.uint8))
    report = Report("A < B")
    report.add(Heading("Times"), Paragraph("x < y & z"), Table(["case", "s | ms"], [["one", 0.12345], ["two", 12000]]))
    report.add(Heading("Figures"), Picture("a.png", "black"))
    return report


def test_markdown(report):
    text = report.as_markdown()
    assert text.startswith("# A < B\n")
    assert "| case | s \\| ms |\n| --- | ---: |\n| one | 0.123 |\n| two | 12,000 |" in text
    assert "![black](a.png)" in text


def test_html_is_one_file_and_escaped(report, tmp_path):
    report.write(tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>A &lt; B</h1>" in text
    assert "<p>x &lt; y &amp; z</p>" in text
    assert "<tr><td>one</td><td>0.123</td></tr>" in text
    assert 'src="data:image/png;base64,' in text
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == report.as_markdown()


def test_text_has_the_tables_alone(report):
    assert report.as_text() == "A < B\n\nTimes\n\ncase  s | ms\none    0.123\ntwo   12,000"


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(WeftError, match="3 cells"):
        Table(["a", "b"], [[1, 2, 3]])


@pytest.mark.parametrize(("cell", "text"), [(0.05, "0.05"), (1234.5, "1,234"), (12, "12"), ("-", "-"), (0.0, "0")])
def test_cells(cell, text):
    assert show(cell) == text
