"""Tests of printed tables: every name and number is whole, however narrow the terminal is."""

import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pseudo_terminal
import pytest
from networks import random_policy
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.__main__ import COMMANDS, COMPLETION, load, main as command
from tokaido_env.arena.result import Measure
from tokaido_env.report import tables
from tokaido_env.report.result_tables import elo_cells
from tokaido_env.report.tables import Table, html, markdown, print_table, table_text

WIDE = Table(
    "Two agents",
    ("agent", "games", "score"),
    [("a", "10", "5.0 %"), ("policy:[/x]", "2", "")],
    note="A note.",
)


def test_table_text__aligns_columns_or_stacks_rows() -> None:
    assert table_text(WIDE, 80).splitlines() == [
        *("Two agents", ""),
        *("agent        games  score", "a               10  5.0 %", "policy:[/x]      2"),
        "A note.",
    ]
    assert table_text(WIDE, 24).splitlines() == [
        *("Two agents", ""),
        *("a", "  games 10, score 5.0 %", "policy:[/x]", "  games 2", "A note."),
    ]


def test_print_table__is_wide_where_output_is_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    print_table(WIDE)
    assert capsys.readouterr().out.rstrip("\n") == table_text(WIDE, 120).rstrip("\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(WIDE)
    assert capsys.readouterr().out.rstrip("\n") == table_text(WIDE, 24).rstrip("\n")


def test_markdown_and_html__escape_cells() -> None:
    table = Table("<t>", ("agent", "x"), [("a|b`", "<i>"), ("c", "1")], note="&")
    assert markdown(table).splitlines()[2] == "| a/b' | <i> |"
    assert markdown(table, code=True).splitlines()[3] == "| `c` | 1 |"
    assert "&lt;t&gt;" in html(table)
    assert '<td role="cell" data-name="x">&lt;i&gt;</td>' in html(table)
    assert html(table).endswith("<p>&amp;</p>")


def test_elo_cells__of_the_reference_have_no_interval() -> None:
    assert elo_cells(Measure(0.0, 0.0, 0.0, "Elo", "a")) == ("0", "reference")
    assert elo_cells(Measure(-0.4, -10.6, 8.0, "Elo", "a")) == ("0", "−11 – 8")


# All commands


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """The tables that all commands print, for agents with a long name."""
    folder = tmp_path_factory.mktemp("tables")
    policy = f"policy:{folder / 'a-policy-with-quite-a-long-name'}"
    random_policy().save(policy.removeprefix("policy:"))
    rng, regret_set = np.random.default_rng(0), small_set(most=4)
    sums = drawn_sums(regret_set, truth_of(regret_set, rng, 0.3), rng)
    regret_set.sums[:] = sums
    regret_set.save(folder / "set.npz")
    ladder, result = ["--ladder", str(folder / "ladder.json")], str(folder / "g.json")
    games = str(folder / "games.jsonl")
    files = ["--json", result, "--records", str(folder / "g.jsonl")]
    small = ["--boards", "2", "--pairs", "1", "--opponent", "random"]
    commands = (
        ("evaluate", "greedy", policy, "random", "--games", "20", "--luck-adjusted"),
        ("evaluate", "greedy", policy, "--games", "2", "--records", games),
        ("ladder", "random", "greedy:epsilon=0.5", "greedy", "--games", "10", "--out", ladder[1]),
        ("rate", policy, "--games", "10", *ladder, "--board", "shikoku"),
        ("generalise", policy, "--opponents", "greedy", *small, *files),
        ("generalise", "--compare", result),
        ("regret", policy, "greedy", "--set", str(folder / "set.npz")),
    )
    found: list[Table] = []
    with pytest.MonkeyPatch.context() as patch:
        whole = tables.table_text

        def recorded(table: Table, width: int) -> str:
            found.append(table)
            return whole(table, width)

        patch.setattr(tables, "table_text", recorded)
        for words in commands:
            assert command([*words]) == 0, words
        assert command(["replay", games, "--summary"]) == 0
        assert command(["review", games, "--judge", "champion"]) == 0
        assert len(found) > 25
    return found


def test_table_text__keeps_names_and_numbers_whole_at_any_width(printed: list[Table]) -> None:
    rng = random.Random(0)
    for table in printed:
        for width in (40, 80, 120, *(rng.randint(40, 120) for _ in range(12))):
            check_whole(table, width)


SOME = random.Random(1).sample(range(40, 80), 2)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    "widths", [[40, *SOME, 100], pytest.param(range(40, 121), marks=pytest.mark.slow)]
)
def test_terminal__shows_names_and_numbers_whole_at_any_width(
    printed: list[Table], tmp_path: Path, widths: Sequence[int]
) -> None:
    """Tables, help of every command, and progress, in a real terminal of each width."""
    shown, options = pseudo_terminal.printed(tmp_path, printed, widths), known_options()
    for width in widths:
        for number, table in enumerate(printed):
            check_whole(table, width, shown[width, str(number)])
        words = [*pseudo_terminal.TITLE.split(), "3,456 of 12,000 games", "51.25 %", "53.75)"]
        check_words(words, shown[width, "bar"], width)
        words = ["1,234,567 of 4,000,000 steps", "value loss 0.125 · Elo -12 (-30 – 5)"]
        check_words(words, shown[width, "run"], width)
    assert {"tokaido", *COMMANDS} <= {name for _, name in shown}
    for (width, name), text in shown.items():
        if name in ("tokaido", *COMMANDS):
            assert max(map(len, text.splitlines())) <= width
            own = options.get(name, {"--help", "--version", *COMMANDS})
            assert own <= set(re.findall(r"(?m)^│ (?:\* )? *([\w-]+)", text)), (width, name)
            named = set(re.findall(r"(?<![\w-])--[\w-]*", text))
            assert named <= set().union(*options.values(), {"--help", "--version", COMPLETION})


def known_options() -> dict[str, set[str]]:
    """The options of each command, by name."""
    found = {}
    for name in COMMANDS:
        arguments = load(name).app().assemble_argument_collection(parse_docstring=True)
        found[name] = {one.name for one in arguments if one.parameter.show is not False}
    return found


def check_words(words: Sequence[str], text: str, width: int) -> None:
    for word in " ".join(words).split():
        assert re.search(rf"(?<!\S){re.escape(word)}(?!\w)", text), (width, word, text)


def check_whole(table: Table, width: int, text: str | None = None) -> None:
    text = table_text(table, width) if text is None else text
    lines: list[Any] = text.splitlines()
    for row in table.rows:
        for cell in row:
            assert any(cell in line for line in lines), (width, cell)
    atoms = {row[table.left] for row in table.rows} | {*table.title.split(), *table.note.split()}
    atoms |= {f"{h} {c}" for row in table.rows for h, c in zip(table.headers, row, strict=True)}
    atoms = {atom.strip(" ,") for atom in atoms}
    for line in lines:
        assert len(line) <= width or line.strip(" ,") in atoms, (width, line)


def test_check_whole__detects_a_cut_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = table_text(WIDE, 80).replace("policy:[/x]", "policy:[/\nx]")
    monkeypatch.setitem(globals(), "table_text", lambda table, width: cut)
    with pytest.raises(AssertionError):
        check_whole(WIDE, 80)


def test_table_text__has_short_printable_lines(tmp_path: Path) -> None:
    text = table_text(Table("t", ("a", "b"), [("\x1b[31m", "x" * 10**5)]), 60)
    assert all(line.isprintable() and len(line) < 400 for line in text.splitlines())
