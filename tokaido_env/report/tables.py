"""Tables of text for terminals, Markdown and HTML."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tokaido_env.core.arguments import escape_text

MOST = 300  # printed characters of a title or a cell
PIPED_WIDTH = 120  # at least, where standard output is no terminal
_GAP = 2  # spaces between columns


class Table(NamedTuple):
    """A table of text.

    Attributes:
        title: above the table.
        headers: of the columns.
        rows: cells of each row.
        left: the left-aligned column, which names a row; the others are right-aligned.
        note: line below the table.
    """

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: int = 0
    note: str = ""


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal: see `table_text`."""
    width = shutil.get_terminal_size().columns
    print(
        table_text(table, width if sys.stdout and sys.stdout.isatty() else max(width, PIPED_WIDTH))
    )


def table_text(table: Table, width: int) -> str:
    """Return a table as lines of text, with every name and number in one piece.

    A table that is wider than the terminal has its rows stacked: the name of a row on a line of its
    own, then header and value of each other column. Only a name that is longer than a line is wider
    than the terminal. Specs and board names may be foreign: control characters are escaped.
    """
    table = _printable(table)
    lines = [table.headers, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + _GAP * (len(widths) - 1) <= width:
        body = [_aligned(line, widths, table.left) for line in lines]
    else:
        body = [text for row in table.rows for text in _stacked(table, row, width)]
    head, note = _wrapped(table.title.split(), width), _wrapped(table.note.split(), width)
    return "\n".join([*head, "", *body, *note, ""])


def _printable(table: Table) -> Table:
    """Return a table with short, escaped texts of one line."""
    rows = [tuple(escape_text(cell, MOST) for cell in row) for row in table.rows]
    title, note = escape_text(table.title, MOST), escape_text(table.note, 2 * MOST)
    return table._replace(title=title, rows=rows, note=note)


def _aligned(line: Sequence[str], widths: Sequence[int], left: int) -> str:
    cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
    cells[left] = line[left].ljust(widths[left])
    return (" " * _GAP).join(cells).rstrip()


def _stacked(table: Table, row: Sequence[str], width: int) -> list[str]:
    """Return the lines of a row: its name, then the other columns, indented."""
    named = [
        f"{header} {cell}".strip()
        for i, (header, cell) in enumerate(zip(table.headers, row, strict=True))
        if i != table.left and cell
    ]
    lines = _wrapped([f"{one}," for one in named[:-1]] + named[-1:], width - _GAP)
    return [row[table.left], *(" " * _GAP + line for line in lines)]


def _wrapped(words: Sequence[str], width: int) -> list[str]:
    """Return words in lines of at most a width; a longer word has a line of its own."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def markdown(table: Table, *, code: bool = False) -> str:
    """Return a table in Markdown without its title and note.

    Args:
        table: its cells may contain foreign text.
        code: format the first column as code.
    """
    cells = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    if code:
        cells = [[f"`{first}`", *others] for first, *others in cells]
    lines = [[*map(_markdown_cell, table.headers)], ["---"] * len(table.headers), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown_page(tables: Sequence[Table]) -> str:
    """Return tables in Markdown, each with its title and note."""
    texts = [(_markdown_cell(x.title), markdown(x), _markdown_cell(x.note)) for x in tables]
    return "\n\n".join(text.strip() for each in texts for text in each if text) + "\n"


def _markdown_cell(text: str) -> str:
    return escape_text(text).translate({ord("|"): "/", ord("`"): "'"})


def html(table: Table) -> str:
    """Return a table as HTML with its title and note; untrusted text is escaped."""
    table = _printable(table)
    rows = []
    for row in table.rows:
        cells = [
            f'<th scope="row">{escape(cell)}</th>'
            if i == table.left
            else f"<td>{escape(cell)}</td>"
            for i, cell in enumerate(row)
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    top = "".join(f'<th scope="col">{escape(header)}</th>' for header in table.headers)
    body, note = "\n".join(rows), f"\n<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f"<h3>{escape(table.title)}</h3>\n<table>\n<thead><tr>{top}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>{note}"
    )


# Numbers


def with_interval(
    value: float, interval: Sequence[float], form: str, scale: float = 1.0, unit: str = ""
) -> str:
    """Return as text a value and its interval, times `scale`, in a format such as ".1f"."""
    value_text, low, high = (f"{scale * x:{form}}" for x in (value, *interval))
    return true_minus(f"{value_text}{unit} ({low} to {high})")


def percentages(low: float, high: float) -> str:
    """Return the ends of an interval of shares, 0 to 1, as text in percent."""
    return f"{low:.1%} – {high:.1%}"


def whole(value: float) -> str:
    """Return a number rounded to an integer as text, with a true minus sign."""
    return true_minus(f"{value:.0f}")


def true_minus(text: str) -> str:
    """Return text with true minus signs for hyphens, and 0 for -0."""
    return re.sub(r"-(0(?:\.0+)?)(?![.\d])", r"\1", text).replace("-", "−")
