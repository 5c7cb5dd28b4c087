"""Tests of printed tables: every name and number is whole, however narrow the terminal is."""

import re
from typing import Any

import numpy as np
import pytest
from networks import random_policy
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.__main__ import main as command
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
    assert "<td>&lt;i&gt;</td>" in html(table)
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
        assert command(["review", games, "--judge", "champion"]) == 0
        assert len(found) > 20
    return found


def test_table_text__keeps_names_and_numbers_whole_at_any_width(printed: list[Table]) -> None:
    for table in printed:
        for width in (40, 67, 80, 120):
            check_whole(table, width)


def check_whole(table: Table, width: int) -> None:
    lines: list[Any] = table_text(table, width).splitlines()
    for row in table.rows:
        for cell in row:
            assert any(cell in line for line in lines), (width, cell)
    atoms = {row[table.left] for row in table.rows} | {*table.title.split(), *table.note.split()}
    atoms |= {f"{h} {c}" for row in table.rows for h, c in zip(table.headers, row, strict=True)}
    atoms = {atom.strip(" ,") for atom in atoms}
    for line in lines:
        assert len(line) <= width or line.strip(" ,") in atoms, (width, line)


def test_intervals__contain_their_values(printed: list[Table]) -> None:
    number, seen = r"([+−]?[\d,]+(?:\.\d+)?)", 0
    for table in printed:
        for row in table.rows:
            found = [
                one
                for cell in row
                for one in re.findall(rf"{number}(?: %)? \({number} to {number}\)", cell)
            ]
            for at, header in enumerate(table.headers):
                if header == "95 % interval" and "–" in row[at][1:]:
                    ends = re.findall(number, row[at])
                    found.append((*re.findall(number, row[at - 1]), *ends))
            for value, low, high in ([as_float(text) for text in one] for one in found):
                assert low <= value <= high, (table.title, row)
                seen += 1
    assert seen > 40


def as_float(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def test_table_text__has_short_printable_lines() -> None:
    text = table_text(Table("t", ("a", "b"), [("\x1b[31m", "x" * 10**5)]), 60)
    assert all(line.isprintable() and len(line) < 400 for line in text.splitlines())
