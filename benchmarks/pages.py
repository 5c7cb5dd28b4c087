"""Pages of the documentation that contain tables of these programs, between two marks."""

from collections.abc import Sequence
from pathlib import Path

from tokaido_env.files import write_text
from tokaido_env.report.tables import Table, markdown

BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def fill(page: Path, content: str, first: str = BEGIN, last: str = END) -> None:
    """Write new content between the two marks of a page."""
    write_text(page, filled(page.read_text(encoding="utf-8"), content, first, last))


def filled(text: str, content: str, first: str = BEGIN, last: str = END) -> str:
    """Return a page's text with new content between two marks."""
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"expected the marks {first} and {last} in the page")
    return f"{before}{first}\n{content}{last}{after}"


def titled(tables: Sequence[Table]) -> str:
    """Return tables as Markdown, each below its title."""
    return "\n".join(f"**{table.title}**\n\n{markdown(table, code=True)}" for table in tables)
