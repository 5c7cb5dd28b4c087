"""Write the generated parts of the reference pages: actions, observation and command line.

python benchmarks/reference_pages.py
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from cyclopts import App
from pages import fill

from tokaido_env.__main__ import COMMANDS, app
from tokaido_env.cli import actions
from tokaido_env.cli.features import index_formula
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.core.observation import FEATURES, Feature, width

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def contents() -> dict[Path, str]:
    """Return the generated part of each page."""
    return {
        FOLDER / "actions.md": action_tables(),
        FOLDER / "observation.md": observation_tables(),
        FOLDER / "cli.md": command_sections(),
    }


def action_tables() -> str:
    """Return the tables of actions and of outcomes; labels of one meaning share a row."""
    rows = []
    for meaning, group in groupby(actions.LABELS, partial(actions.meaning_of, general=True)):
        labels = list(group)
        rows.append([_span([str(actions.IDS[one]) for one in labels]), _codes(labels), meaning])
    outcomes = []
    for (phase, meaning), each in groupby(actions.OUTCOMES, lambda one: (one.phase, one.meaning)):
        same = list(each)
        labels = _codes([one.label for one in same])
        outcomes.append([phase, _span([one.ids for one in same]), labels, meaning])
    head = ("phase", "ids", "outcomes", "meaning")
    return (
        f"## Actions\n\n{_table(('ids', 'actions', 'meaning'), rows)}\n"
        f"## Chance outcomes\n\n{_table(head, outcomes)}"
    )


def _span(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"


def _codes(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def observation_tables() -> str:
    """Return the layouts of the observation and the board features."""
    layouts = {
        f"Observation: {width(FEATURES)} numbers": FEATURES,
        f"Board features: {width(BOARD_FEATURES)} numbers": BOARD_FEATURES,
    }
    explained: set[str] = set()
    parts = {title: _layout(rows_of(layout, explained)) for title, layout in layouts.items()}
    return "\n".join(f"## {title}\n\n{part}" for title, part in parts.items())


def rows_of(features: Sequence[Feature], explained: set[str]) -> list[list[str]]:
    """Return a row for each entry of a layout: slice, name, scale and meaning.

    Args:
        features: of the layout.
        explained: the rows so far, without their slices; the meaning of what occurs again is "".
    """
    rows = []
    for feature in features:
        name, meaning = feature.name, feature.meaning + _index_of(feature)
        key = f"{name.replace('their_', 'my_', 1)} {feature.scale} {meaning}"
        text = "" if key in explained else meaning
        explained.add(key)
        where = f"`{feature.start}:{feature.start + feature.size}`"
        rows.append([where, f"`{name}`", str(feature.scale), text])
    return rows


def _layout(rows: Iterable[Sequence[str]]) -> str:
    """Return a table of the new entries of a layout; below it, a list of those that occur again."""
    rows = list(rows)
    new = [
        [where, name, _scaled(meaning, scale)] for where, name, scale, meaning in rows if meaning
    ]
    table = _table(("slice", "name", "meaning"), new)
    again = ", ".join(f"{name} {where}" for where, name, _, text in rows if not text)
    return table + (f"\nAs above: {again}.\n" if again else "")


def _scaled(meaning: str, scale: str) -> str:
    return meaning if scale == "1" else f"{meaning}; scale {scale}"


def _index_of(feature: Feature) -> str:
    """Return the formula of an entry of two axes as code; its comment stays text."""
    formula, colon, comment = index_formula(feature).partition(":")
    return f"; index `{formula}`{colon}{comment}" if formula else ""


@dataclass(frozen=True)
class Option:
    """An option of a command's help.

    Attributes:
        name: such as `--seed`.
        text: all but the default, as an item of a list.
        default: without brackets, "" for none.
    """

    name: str
    text: str
    default: str

    @property
    def line(self) -> str:
        """The item of a list; a flag is off by default, which the page says once."""
        return self.text + (f" (default: {self.default})" if self.default != "off" else "")


def command_sections() -> str:
    """Return a section for the options that several commands share, and one for each command."""
    sections = {name: section(app()[name]) for name in COMMANDS}
    shared = shared_options(sections.values())
    items = "\n".join(option.line for option in shared.values())
    return "\n".join(
        [
            f"## Options that several commands share\n\n{items}\n",
            *(_command(name, text, shared) for name, text in sections.items()),
        ]
    )


def shared_options(sections: Iterable[str]) -> dict[str, Option]:
    """Return the options that several commands have, by their texts, with the usual default.

    Of options of one name with different texts, the text of most commands is shared.
    """
    lines = [line for text in sections for line in text.splitlines()]
    found = [option for line in lines if (option := _option(line))]
    often = Counter(option.text for option in found).most_common()
    texts = {}
    for text, count in often:
        options = [option for option in found if option.text == text]
        if count > 1 and options[0].name not in {one.name for one in texts.values()}:
            ((usual, _),) = Counter(options).most_common(1)
            texts[text] = usual
    return texts


def _option(line: str) -> Option | None:
    """Return the option of a line of the help; None if it has none."""
    found = re.fullmatch(r"(\* `(--[\w-]+)[^`]*`: .*?)(?: \*?\[default: ([^]]*)\]\*?)?", line)
    return Option(found[2], found[1], found[3] or "off") if found else None


def _command(name: str, text: str, shared: Mapping[str, Option]) -> str:
    """Return the section of a command, which only names its shared options."""
    lines, named = [], []
    for line in text.splitlines():
        option = _option(line)
        if option is None or option.text not in shared:
            lines.append(option.line if option else line)
        elif option == shared[option.text]:
            named.append(f"`{option.name}`")
        else:
            named.append(f"`{option.name}` (default: {option.default})")
    text, _, _ = "\n".join(lines).partition("**Examples**")  # of `--help` only
    own = "\n\n".join([text.rstrip(), *([f"**Shared**: {', '.join(named)}"] if named else [])])
    # Without a group of which all options are shared.
    return re.sub(r"\*\*[^*\n]+\*\*:\n+(?=\*\*)", "", own) + "\n"


def section(parser: App) -> str:
    """Return the help of a command as Markdown, with its examples as code."""
    text = parser.generate_docs(heading_level=2).replace("## ", "## tokaido ", 1)
    text = re.sub(r"\n {2,}", " ", text).replace("; tokaido agents lists all", "")
    examples = textwrap.dedent((parser.help_epilogue or "").removeprefix("Examples:\n\n"))
    text = re.sub(r"```.*?```\n\n", "", text, flags=re.DOTALL)  # how it is called
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
