"""Tests of `tokaido review` for many games: tables, totals, files and Ctrl-C."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from processes import ROOT
from test_review_command import QUICK, Output, recorded, reviewed

from tokaido_env import Game, Record
from tokaido_env.__main__ import main
from tokaido_env.cli import review as command
from tokaido_env.core.actions import LABELS
from tokaido_env.record import save
from tokaido_env.study.review import MARKS

NAMES = [("a", "b"), ("b", "a"), ("", "Søren | x")]


@pytest.fixture
def records() -> list[Record]:
    unfinished = Game("family:7", seed=4)
    for _ in range(30):
        unfinished.play(unfinished.legal_actions()[0])
    whole = [recorded(seed, names) for seed, names in enumerate(NAMES, start=1)]
    return [*whole, unfinished.record(("one", "one"))]


@pytest.fixture
def games(records: list[Record], tmp_path: Path) -> Path:
    file = tmp_path / "games.jsonl"
    save(records, file)
    return file


def read_table(path: Path) -> pd.DataFrame:
    """Return a Parquet file as a table with strings."""
    frame = pq.read_table(path).to_pandas()
    return frame.astype({name: object for name in frame if frame[name].dtype == "category"})


def expected_rows(number: int, record: Record) -> list[dict[str, Any]]:
    """Return the rows of a game from its review and a replayed `Game`."""
    found, game = reviewed(record), Game(record.board, seed=record.seed, chance="explicit")
    rows = []
    for i, label in enumerate(record.events):
        position, best = game.to_dict(), int(found.best[i])
        player, choices = game.player, len(game.legal_actions())
        game.play(label)
        if choices == 1:
            continue
        seat = player or 0
        row = {"game": number, "seed": record.seed, "event": i + 1, "label": label}
        row |= {"board": record.board, "board_hash": record.board_hash, "wins": found.values[i]}
        row |= {"round": position["round"], "phase": position["phase"]}
        row |= {"name": record.players[seat], "opponent": record.players[1 - seat]}
        row |= {"player": -1 if player is None else player, "best": LABELS[best] if choices else ""}
        row |= {"loss": found.loss[i], "error": found.error[i], "luck": found.luck[i]}
        rows.append(row | {"mark": found.mark(i) or "", "result": found.values[-1]})
    return rows


def test_review_data__rows_equal_single_reviews(
    games: Path, records: list[Record], tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    assert main(["review", str(games), *QUICK, "--data", str(out)]) == 0
    expected = pd.DataFrame(
        [row for n, record in enumerate(records, start=1) for row in expected_rows(n, record)]
    )
    table = read_table(out)
    pd.testing.assert_frame_equal(
        table, expected[list(table)], check_dtype=False, rtol=0, atol=1e-6
    )
    kinds = {name: kind for name, kind in command.COLUMNS.items() if kind != "word"}
    assert {name: str(table[name].dtype) for name in kinds} == kinds
    assert set(table["phase"]) >= {"SETUP", "ROLL", "MOVE", "EFFECT", "DRAW", "REVEAL"}
    about = json.loads(pq.read_schema(out).metadata[b"tokaido_env"])
    assert (about["format"], about["version"]) == ("tokaido-duo-review", 1)
    assert (about["judge"], about["values_by"]) == ("mcts:sims=16", "champion")
    assert (about["draws"], about["seed"]) == (4, 0)


def test_review_data__is_the_same_with_any_executor(
    games: Path, records: list[Record], tmp_path: Path
) -> None:
    save([records[-1]] * 3, games)
    out = [tmp_path / f"{name}.parquet" for name in ("serial", "two")]
    for path, executor in zip(out, ("serial", "processes:1"), strict=True):
        options = ["--data", str(path), "--executor", executor]
        assert main(["review", str(games), *QUICK, *options]) == 0
    assert out[0].read_bytes() == out[1].read_bytes()


def test_docs__list_the_columns_of_reviews() -> None:
    page = (ROOT / "docs" / "reference" / "file-formats.md").read_text(encoding="utf-8")
    section = page.partition("\n## Review tables\n")[2]
    printed = section.partition("\n|---|---|---|\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in printed.splitlines()]
    kinds = {name.strip("`"): kind for names, kind in cells for name in names.split(", ")}
    assert kinds == command.COLUMNS


# Many games


def test_review__prints_totals_of_many_games(
    games: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MANY", 3)
    out = tmp_path / "out.parquet"
    assert main(["review", str(games), *QUICK, "--data", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "The worst decisions" not in printed
    assert "4 games" in printed
    own = read_table(out).query("name == 'a' and player >= 0")
    (line, marks, later) = (line for line in printed.splitlines() if line.split()[:1] == ["a"])
    assert line.split()[1:3] == [str(len(own)), f"{own['loss'].mean():.2%}"]
    assert marks.split()[1:] == [str((own["mark"] == mark).sum()) for mark in MARKS]
    assert later.split()[1] == "2"
    assert later.count("±") == 3
    assert len([line for line in printed.splitlines() if line.split()[:1] == ["?"]]) == 3
    monkeypatch.setattr(command, "MANY", 4)
    assert main(["review", str(games), *QUICK]) == 0
    assert "4 games" not in capsys.readouterr().out


def test_review__refuses_a_broken_line_before_any_review(games: Path, capsys: Output) -> None:
    first, *_, last = games.read_text(encoding="utf-8").splitlines()
    games.write_text(f"{first}\n{last[:-1]}\n", encoding="utf-8")
    assert main(["review", str(games), *QUICK]) == 1
    captured = capsys.readouterr()
    assert f"{games}, line 2: not a whole line of JSON" in captured.err
    assert captured.out == ""
