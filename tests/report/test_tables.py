"""Tests of printed tables, with rich and without."""

import sys
from importlib import util

import pytest

from tokaido_env.arena.ratings import Rating
from tokaido_env.report import tables
from tokaido_env.report.tables import Table, plain_table, print_table, ratings_table

RATINGS = [Rating("greedy", 412.4, (380.2, 440.9), 1000), Rating("policy:[/x]", 0.0, (0.0, 0.0), 9)]


def test_plain_table__aligns_columns() -> None:
    table = Table(
        "Two agents", ("agent", "games", "score"), [("a", "10", "5 %"), ("long", "2", "")]
    )
    assert plain_table(table).splitlines() == [
        *("Two agents", ""),
        *("agent  games  score", "a         10    5 %", "long       2"),
    ]


@pytest.mark.parametrize("installed", [True, False])
def test_print_table__prints_markup_as_text(
    installed: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich would read `[/x]` as the end of a style, and fail after all games."""
    if not installed:
        monkeypatch.setattr(tables, "find_spec", lambda name: None)
        monkeypatch.setitem(sys.modules, "rich", None)
    elif util.find_spec("rich") is None:
        pytest.skip("rich is not installed")
    print_table(ratings_table(RATINGS))
    printed = capsys.readouterr().out
    for cell in ("Ratings", "greedy", "412", "380 – 441", "1000", "policy:[/x]"):
        assert cell in printed
