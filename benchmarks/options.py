"""Command-line options that these programs share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path


def parser_of(
    doc: str | None, results: str, names: Iterable[str] | None = None
) -> argparse.ArgumentParser:
    """Return a parser with the options --results, --only and --docs.

    Args:
        doc: docstring of the program; its first line is the description.
        results: default of --results.
        names: that --only takes; None for words of names.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    add = parser.add_argument
    folder = "folder of all results (default: %(default)s)"
    add("--results", type=Path, default=Path(results), help=folder)
    if names is None:
        only = "only agents with one of these words in their names (default: all)"
        add("--only", nargs="+", default=[], metavar="WORD", help=only)
    else:
        choices = list(names)
        only = f"of {', '.join(choices)} (default: all)"
        add("--only", nargs="+", choices=choices, default=choices, metavar="NAME", help=only)
    add("--docs", action="store_true", help="write the results to the docs (default: off)")
    return parser
