"""Tests of the table of games against records and replayed games."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tokaido_env import Game
from tokaido_env.__main__ import main
from tokaido_env.cli.games_table import COLUMNS
from tokaido_env.core.actions import IDS
from tokaido_env.record import load

DOCS = Path(__file__).parents[2] / "docs"
GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"
RULEBOOK = {"temple": 9, "garden": 6, "gold": 6, "gifted": 10}


def trigger_of(record: Any) -> tuple[str, int, int]:
    """Return the end trigger of a replayed game, by the rulebook's conditions."""
    game = Game(record.board, record.seed)
    for event in (event for event in record.events if event in IDS):
        game.play(event)
        position = game.to_dict()
        for name, last in RULEBOOK.items():
            for seat, player in enumerate(position["players"]):
                reached = player[name]
                if reached >= last:
                    return name, seat, position["round"]
    return "", -1, 0


@pytest.fixture
def match(tmp_path: Path) -> Path:
    path = tmp_path / "games.jsonl"
    assert main(["evaluate", "heuristic", "greedy", "--games", "40", "--records", str(path)]) == 0
    return path


def test_games_table__rows_equal_the_records(match: Path, tmp_path: Path) -> None:
    out = tmp_path / "games.parquet"
    assert main(["export", str(match), str(out), "--rows", "games"]) == 0
    table, records = pd.read_parquet(out), load(match)
    assert list(table) == list(COLUMNS)
    assert len(table) == len(records) == 40
    for row, record in zip(table.to_dict("records"), records, strict=True):
        assert (row["player_0"], row["player_1"]) == record.players
        assert row["winner"] == (-1 if record.winner is None else record.winner)
        for seat in range(2):
            for name, points in record.scores[seat].items():
                assert row[f"{name}_{seat}"] == points
        assert row["margin"] == row["total_0"] - row["total_1"]
        assert (row["end"], row["rounds"], row["seed"]) == (record.end, record.rounds, record.seed)
        decisions = sum(event in IDS for event in record.events)
        assert row["decisions_0"] + row["decisions_1"] == decisions
        assert (row["trigger"], row["trigger_seat"], row["trigger_round"]) == trigger_of(record)
    assert table["trigger"].nunique() > 1


def test_games_table__joins_the_table_of_decisions(tmp_path: Path) -> None:
    games, decisions = tmp_path / "g.parquet", tmp_path / "d.parquet"
    assert main(["export", str(GOLDEN), str(games), "--rows", "games"]) == 0
    assert main(["export", str(GOLDEN), str(decisions)]) == 0
    counts = pd.read_parquet(decisions).groupby(["game", "seat"]).size().unstack()
    table = pd.read_parquet(games).set_index("game")
    for seat in range(2):
        assert counts[seat].tolist() == table[f"decisions_{seat}"].tolist()


def test_games_table__has_forfeits(match: Path, tmp_path: Path) -> None:
    line = json.loads(match.read_text().splitlines()[0])
    game, events = Game(line["board"], line["seed"]), []
    for event in line["events"][:60]:
        events.append(event)
        if event in IDS:
            game.play(event)
    record = json.loads(game.record(("a", "b")).to_json())
    seat = game.player or 0
    record |= {"winner": 1 - seat, "end": "forfeit"}
    record |= {"forfeit": {"seat": seat, "reason": "time", "detail": "slow"}}
    (tmp_path / "f.jsonl").write_text(json.dumps(record) + "\n")
    assert (
        main(["export", str(tmp_path / "f.jsonl"), str(tmp_path / "f.npz"), "--rows", "games"]) == 0
    )
    with np.load(tmp_path / "f.npz") as arrays:
        assert arrays["end"].tolist() == ["forfeit"]
        assert arrays["forfeit_seat"].tolist() == [seat]
        assert arrays["forfeit_reason"].tolist() == ["time"]
        assert arrays["trigger"].tolist() == [""]


@pytest.mark.parametrize(
    ("records", "out", "error"),
    [
        (GOLDEN, "minari:x-v0", "expected a name that ends in .parquet or .npz"),
        (Path(os.devnull), "games.npz", "expected games, found none"),
    ],
)
def test_games_table__refuses_wrong_files(
    records: Path, out: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(records), str(tmp_path / out), "--rows", "games"]) == 1
    assert error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_docs__list_all_columns_of_games() -> None:
    page = (DOCS / "reference" / "file-formats.md").read_text(encoding="utf-8")
    for name in COLUMNS:
        root, _, seat = name.rpartition("_")
        assert f"`{name}`" in page or (seat == "1" and f"`{root}_0`" in page)
