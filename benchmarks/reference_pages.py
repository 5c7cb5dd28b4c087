"""Write the generated parts of the reference pages: actions, observation and command line.

python benchmarks/reference_pages.py
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from cyclopts import App
from pages import fill

from tokaido_env.__main__ import COMMANDS, load
from tokaido_env.cli import actions
from tokaido_env.cli.features import index_formula
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.core.entities import ENTITY_FEATURES, ENTITY_SHAPES
from tokaido_env.core.observation import FEATURES, Feature, width
from tokaido_env.learn.settings import METHODS, TdSettings

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def contents() -> dict[Path, str]:
    """Return the generated part of each page."""
    return {
        FOLDER / "actions.md": action_tables(),
        FOLDER / "observation.md": observation_tables(),
        FOLDER / "cli.md": command_sections(),
    }


def action_tables() -> str:
    """Return the tables of actions and of chance outcomes."""
    acts = [[str(IDS[label]), f"`{label}`", actions.meaning_of(label)] for label in LABELS]
    events = [[o.phase, o.ids, f"`{o.label}`", o.meaning] for o in actions.OUTCOMES]
    return (
        f"## Actions\n\n{_table(('id', 'action', 'meaning'), acts)}\n"
        f"## Chance outcomes\n\n{_table(('phase', 'ids', 'outcome', 'meaning'), events)}"
    )


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
    """Return a section for each command; below train, the settings of the other methods."""
    sections = []
    for name in COMMANDS:
        sections.append(section(load(name).app()))
        if name == "train":  # its section has the settings of td
            sections += [settings_of(method) for method in METHODS if method != TdSettings.METHOD]
    return "\n".join(sections)


def settings_of(method: str) -> str:
    """Return a section with the settings of a method that differ from those of td."""
    whole, default = (
        section(load("train").app(["--method", name])) for name in (method, TdSettings.METHOD)
    )
    _, _, settings = whole.partition(f"**Settings of `--method` {method}**:\n")
    rows = settings.partition("**Examples**")[0].strip().splitlines()
    shared = [row.split()[1].lstrip("`") for row in rows if row in default]
    own = "\n".join(row for row in rows if row not in default)
    text = f"As `td`: {', '.join(f'`{name}`' for name in shared)}. Its own:"
    return f"### Settings of `{method}`\n\n{text}\n\n{own}\n"


def section(parser: App) -> str:
    """Return the help of a command as Markdown, with its examples as code."""
    (called,) = parser.name
    text = parser.generate_docs(heading_level=2).replace(f"{called} {called.split()[1]}", called)
    text = re.sub(r"\n {2,}", " ", text).replace("```console", "```text")
    examples = textwrap.dedent((parser.help_epilogue or "").removeprefix("Examples:\n\n"))
    return _prose(text) + (f"\n**Examples**:\n\n```bash\n{examples}\n```\n" if examples else "")


def _prose(text: str) -> str:
    """Return Markdown with its options as code, outside of code."""
    options = r"(?<![\w`-])(--\w[\w-]*)(?![^`\n]*`:)"
    parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    parts[::2] = [re.sub(options, r"`\1`", part) for part in parts[::2]]
    return "".join(parts)


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
