"""A report: text, tables and pictures in order, written as Markdown, as one HTML file, and as plain text."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import WeftError

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.8rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; border-radius: 4px; }
figure { margin: 1.5rem 0; } figcaption { color: #555; }
"""


Row = Sequence[str | float | int]


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Table:
    """Rows of cells; numbers are shown to three digits."""

    head: Sequence[str]
    rows: Sequence[Row]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise WeftError(f"table {self.head[0]!r}: a row has {len(row)} cells, its head {len(self.head)}")

    def cells(self) -> list[list[str]]:
        return [list(self.head), *([show(cell) for cell in row] for row in self.rows)]


@dataclass(frozen=True)
class Picture:
    file: str
    """in the folder of the report"""
    caption: str


Block = Heading | Paragraph | Table | Picture


def show(cell: str | float | int) -> str:
    """A cell of a table: whole numbers in full, others to three digits."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.3g}" if abs(cell) < 1000.0 else f"{cell:,.0f}"


@dataclass
class Report:
    """What a reproduction found."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, *blocks: Block) -> None:
        self.blocks.extend(blocks)

    def write(self, folder: Path) -> None:
        """Write report.md, and report.html with the pictures inside."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(self.as_markdown(), encoding="utf-8")
        (folder / "report.html").write_text(self.as_html(folder), encoding="utf-8")

    def as_markdown(self) -> str:
        return "\n\n".join([f"# {self.title}", *(_markdown(block) for block in self.blocks)]) + "\n"

    def as_text(self) -> str:
        """Headings and tables, for a terminal."""
        kept = [block for block in self.blocks if isinstance(block, Heading | Table)]
        followed = [*kept[1:], Heading("")]
        shown = [
            block
            for block, after in zip(kept, followed, strict=True)
            if isinstance(block, Table) or isinstance(after, Table)
        ]
        return "\n\n".join([self.title, *(_text(block) for block in shown)])

    def as_html(self, folder: Path) -> str:
        title = html.escape(self.title)
        body = "\n".join(_html(block, folder) for block in self.blocks)
        head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>{title}</h1>\n{body}\n</body></html>\n'


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Paragraph(text):
            return text
        case Picture(file, caption):
            return f"![{caption}]({file})\n\n*{caption}*"
        case Table():
            head, *rows = [[cell.replace("|", "\\|") for cell in row] for row in block.cells()]
            rule = ["---", *["---:"] * (len(head) - 1)]
            return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def _text(block: Block) -> str:
    match block:
        case Heading(text) | Paragraph(text):
            return text
        case Picture(file, caption):
            return f"{file}: {caption}"
        case Table():
            cells = block.cells()
            widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
            return "\n".join(
                "  ".join(
                    cell.ljust(width) if k == 0 else cell.rjust(width)
                    for k, (cell, width) in enumerate(zip(row, widths, strict=True))
                )
                for row in cells
            )


def _html(block: Block, folder: Path) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Picture(file, caption):
            data = base64.b64encode((folder / file).read_bytes()).decode()
            kind, text = Path(file).suffix[1:], html.escape(caption)
            image = f'<img src="data:image/{kind};base64,{data}" alt="{text}">'
            return f"<figure>{image}<figcaption>{text}</figcaption></figure>"
        case Table():
            head, *rows = [[html.escape(cell) for cell in row] for row in block.cells()]
            top = "".join(f"<th>{cell}</th>" for cell in head)
            body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
            return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
