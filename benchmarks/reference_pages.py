"""Write the generated parts of the reference pages: actions, observation and command line.

python benchmarks/reference_pages.py
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partialmethod
from pathlib import Path
from unittest.mock import patch

from pages import fill

from tokaido_env.__main__ import COMMANDS, main as run_command
from tokaido_env.cli import actions, evaluate, text
from tokaido_env.cli.command import CommandParser
from tokaido_env.cli.features import index_formula
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.core.entities import ENTITY_FEATURES, ENTITY_SHAPES
from tokaido_env.core.observation import FEATURES, Feature, width
from tokaido_env.learn.settings import METHODS

SUBCOMMANDS = {"evaluate": evaluate.SUBCOMMANDS, "text": text.SUBCOMMANDS}
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def contents() -> dict[Path, str]:
    """Return the generated part of each page."""
    return {
        FOLDER / "actions.md": "```\n" + "\n\n".join(actions.tables()) + "\n```\n",
        FOLDER / "observation.md": observation_tables(),
        FOLDER / "cli.md": command_sections(),
    }


def observation_tables() -> str:
    """Return the layouts of the observation, the board features and entities."""
    layouts = {
        f"Observation: {width(FEATURES)} numbers": FEATURES,
        f"Board features: {width(BOARD_FEATURES)} numbers": BOARD_FEATURES,
    }
    for name, features in ENTITY_FEATURES.items():
        shape = " × ".join(map(str, ENTITY_SHAPES[name]))
        layouts[f"Entities, `{name}`: {shape}"] = features
    explained: set[str] = set()
    tables = {
        title: _table(("slice", "name", "scale", "meaning"), rows_of(layout, explained))
        for title, layout in layouts.items()
    }
    return "\n".join(f"## {title}\n\n{table}" for title, table in tables.items())


def rows_of(features: Sequence[Feature], explained: set[str]) -> list[list[str]]:
    """Return a row for each entry of a layout.

    Args:
        features: of the layout.
        explained: the rows so far, without their slices; what occurs again is "as above".
    """
    rows = []
    for feature in features:
        name, meaning = feature.name, feature.meaning + _index_of(feature)
        own = name.replace("their_", "my_", 1)
        key = f"{own} {feature.scale} {meaning}"
        text = meaning
        if key in explained:
            text = f"as `{own}`" if own != name else "as above"
        explained.add(key)
        where = f"`{feature.start}:{feature.start + feature.size}`"
        rows.append([where, f"`{name}`", str(feature.scale), text])
    return rows


def _index_of(feature: Feature) -> str:
    """Return the formula of an entry of two axes as code; its comment stays text."""
    formula, colon, comment = index_formula(feature).partition(":")
    return f"; index `{formula}`{colon}{comment}" if formula else ""


def command_sections() -> str:
    """Return a section for each command and subcommand with its options."""
    sections = []
    for command in COMMANDS:
        parser, rows = parser_of(command), options_of(parser_of(command))
        if command != "train":
            sections.append(f"## `tokaido {command}`\n\n{_description(parser)}\n{_options(rows)}")
            for name in SUBCOMMANDS.get(command, ()):
                parser = parser_of(f"{command} {name}")
                title = f"### `tokaido {command} {name}`\n\n{_description(parser)}\n"
                sections.append(title + _options(options_of(parser)))
            continue
        methods = {name: options_of(parser_of(f"train --method {name}")) for name in METHODS}
        shared = [row for row in rows if all(row in own for own in methods.values())]
        sections.append(f"## `tokaido train`\n\n{_description(parser)}\n{_options(shared)}")
        for name, own in methods.items():
            only = _options([row for row in own if row not in shared])
            sections.append(f"### `tokaido train --method {name}`\n\n{only}")
    return "\n".join(sections)


def parser_of(command: str) -> CommandParser:
    """Return the parser of which a command would print the help."""
    parsers: list[CommandParser] = []
    keep = partialmethod(parsers.append)
    with patch.object(CommandParser, "print_help", keep), suppress(SystemExit):
        run_command([*command.split(), "--help"])
    return parsers[0]


def options_of(parser: CommandParser) -> list[list[str]]:
    """Return a row for each argument and option, except --help."""
    formatter = parser._get_formatter()
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        names = ", ".join(action.option_strings)
        metavar = action.dest.upper() if names else action.dest
        values = "" if action.nargs == 0 else formatter._format_args(action, metavar)
        rows.append([f"`{f'{names} {values}'.strip()}`", _prose(formatter._expand_help(action))])
    return rows


def _options(rows: Sequence[Sequence[str]]) -> str:
    return _table(("argument", "meaning"), rows) if rows else "It has no options.\n"


def _description(parser: CommandParser) -> str:
    """Return the description as Markdown, with its commands as code."""
    blocks = (parser.description or "").split("\n\n")
    return "".join(
        f"```\n{block}\n```\n\n" if block.startswith("tokaido ") else f"{_prose(block)}\n\n"
        for block in blocks
    ).removesuffix("\n")


def _prose(text: str) -> str:
    """Return text with its options as code and its signs escaped."""
    text = re.sub(r"([*<|])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--\w[\w-]*)", r"`\1`", text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    return "".join([lines[0], f"|{'---|' * len(head)}\n", *lines[1:]])


def main() -> int:
    """Write the pages; return 0."""
    for page, content in contents().items():
        fill(page, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
