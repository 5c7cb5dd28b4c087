"""Tests of the tables of decisions and games against games replayed in the environment."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq
import pytest
from positions import other_board_data, position, write_board
from refusals import check_refused

from tokaido_env import Game, raw_env
from tokaido_env.__main__ import main
from tokaido_env.cli import dataset
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.observation import LAYOUT_HASH, N_FEATURES, SCALES, encode_game
from tokaido_env.features.afterstate_observation import AFTERSTATE_LAYOUT_HASH, GEOMETRY_LAYOUT_HASH
from tokaido_env.record import Forfeit, Record, RecordError, load, save

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "file-formats.md"

Row = dict[str, Any]
Output = pytest.CaptureFixture[str]


def naive_rows(number: int, record: Record) -> list[Row]:
    """Return the rows of a recorded game from the environment with its seed."""
    env = raw_env(board=record.board)
    env.reset(seed=record.seed)
    rows: list[Row] = []
    for event in record.events:
        if event not in IDS:
            if rows:
                rows[-1]["chance"].append(event)
            continue
        agent = env.agent_selection
        seen = env.observe(agent)
        row = {"game": number, "seed": record.seed, "step": len(rows), "action": IDS[event]}
        row |= {"seat": int(agent[-1]), "player": record.players[int(agent[-1])], "chance": []}
        row |= {"board": record.board, "board_hash": record.board_hash}
        row |= {"observation": seen["observation"].copy(), "mask": seen["action_mask"].copy()}
        if rows:
            rows[-1]["next_player"] = row["seat"]
        rows.append(row)
        env.step(IDS[event])
    rows[-1]["next_player"] = -1
    waiting = {0, 1}
    for row in reversed(rows):
        agent, last = f"player_{row['seat']}", row["seat"] in waiting
        waiting -= {row["seat"]}
        row["return"] = env.rewards[agent]
        row["reward"] = row["return"] * last
        row["terminated"] = last and env.terminations[agent]
        row["truncated"] = last and env.truncations[agent]
    return rows


def finished(seed: int, choose: Callable[[list[int]], int], board: str = "shikoku") -> Record:
    game = Game(board, seed=seed)
    while not game.is_over:
        game.play(choose(game.legal_actions()))
    return game.record(["first", "second"])


def seen_by(game: Game, seat: int) -> npt.NDArray[np.float32]:
    out = np.empty(N_FEATURES, np.float32)
    encode_game(game.boards, game.states, 0, seat, out)
    return out


def check_rows(rows: list[Row], expected: list[Row]) -> None:
    assert len(rows) == len(expected)
    for row, right in zip(rows, expected, strict=True):
        for name in ("observation", "mask"):
            assert np.array_equal(row.pop(name), right.pop(name)), (name, row)
        row["chance"] = list(row["chance"])
        assert row == right


def rows_of(path: Path) -> list[Row]:
    rows: list[Row] = pd.read_parquet(path).to_dict("records")
    return rows


# Rows


def test_export__rows_equal_the_environment(tmp_path: Path) -> None:
    rng = random.Random(0)
    choosers: list[Callable[[list[int]], int]] = [rng.choice] * 3 + [min]
    records = [finished(seed, choose) for seed, choose in enumerate(choosers, start=5)]
    records.append(finished(3, choosers[0], "family:7"))
    save(records, tmp_path / "games.jsonl")
    out = tmp_path / "games.parquet"
    expected = [
        row for number, record in enumerate(records, start=1) for row in naive_rows(number, record)
    ]
    assert {row["return"] for row in expected} == {-1, 0, 1}
    assert not any(row["truncated"] for row in expected)
    assert sum(row["terminated"] for row in expected) == 10
    assert dataset.export(tmp_path / "games.jsonl", out) == (len(expected), 5)
    check_rows(rows_of(out), expected)


def test_export__uint8_observations_divide_to_float32(tmp_path: Path) -> None:
    raw, out = tmp_path / "raw.parquet", tmp_path / "games.parquet"
    dataset.export(GOLDEN, raw, observation="uint8")
    dataset.export(GOLDEN, out)
    for row, right in zip(rows_of(raw), rows_of(out), strict=True):
        assert row["observation"].dtype == np.uint8
        observation = row["observation"] / SCALES
        assert np.allclose(observation, right["observation"], rtol=0, atol=1e-7)
    for path, dtype in ((raw, "uint8"), (out, "float32")):
        metadata = json.loads(pq.read_schema(path).metadata[b"tokaido_env"])
        assert (metadata["layout"], metadata["observation"]) == (LAYOUT_HASH, dtype)


@pytest.mark.parametrize("observation", ["geometry", "afterstates"])
def test_export__observations_equal_those_of_the_environment(
    observation: Any, tmp_path: Path
) -> None:
    path, out, choose = (
        tmp_path / "games.jsonl",
        tmp_path / "games.parquet",
        random.Random(0).choice,
    )
    records = [finished(5, choose), finished(3, choose, "family:7")]
    save([records[0], unfinished(0), records[1]], path)
    dataset.export(path, out, observation=observation)
    rows = rows_of(out)
    for record, (_, group) in zip(records, groupby(rows, itemgetter("game")), strict=True):
        env = raw_env(board=record.board, observation=observation)
        env.reset(seed=record.seed)
        for row in group:
            seen = env.observe(env.agent_selection)
            assert np.array_equal(row["observation"], seen["observation"])
            if observation == "afterstates":
                assert np.array_equal(row["actions"].reshape(49, 49), seen["actions"])
            assert np.array_equal(row["mask"], seen["action_mask"])
            env.step(row["action"])
    metadata = json.loads(pq.read_schema(out).metadata[b"tokaido_env"])
    hashes = {"geometry": GEOMETRY_LAYOUT_HASH, "afterstates": AFTERSTATE_LAYOUT_HASH}
    assert metadata["layout"] == hashes[observation]


def test_export__distinct_keeps_the_first_row_of_each_position(tmp_path: Path) -> None:
    rng, path = random.Random(0), tmp_path / "games.jsonl"
    boards = ["shikoku"] * 4 + ["family:7"] * 2
    games = [finished(seed % 2, rng.choice, board) for seed, board in enumerate(boards)]
    save([replace(game, players=("a", "ab"[i % 2])) for i, game in enumerate(games)], path)
    first: dict[tuple[Any, ...], Row] = {}
    dataset.export(path, tmp_path / "all.parquet")
    for row in rows_of(tmp_path / "all.parquet"):
        key = row["player"], row["board_hash"], *row["observation"], *row["mask"]
        first.setdefault(key, row)
    out = tmp_path / "games.parquet"
    assert dataset.export(path, out, distinct=True) == (len(first), 6)
    assert len(first) < len(rows_of(tmp_path / "all.parquet"))
    check_rows(rows_of(out), [row | {"chance": list(row["chance"])} for row in first.values()])


# Unfinished games, positions, boards


def unfinished(moves: int) -> Record:
    game = Game(seed=4)
    for _ in range(moves):
        game.play(game.legal_actions()[-1])
    return game.record(["a", "b"])


def test_export__truncates_an_unfinished_game(tmp_path: Path) -> None:
    save([unfinished(0), unfinished(1), unfinished(9)], tmp_path / "games.jsonl")
    out = tmp_path / "games.parquet"
    assert dataset.export(tmp_path / "games.jsonl", out) == (10, 3)
    rows = rows_of(out)
    assert [row["game"] for row in rows] == [2] + [3] * 9
    assert all(np.isnan(row["return"]) and row["reward"] == 0 for row in rows)
    assert not any(row["terminated"] for row in rows)
    seats = [row["seat"] for row in rows]
    assert [row["truncated"] for row in rows[1:]] == [
        seat not in seats[i + 1 :] for i, seat in enumerate(seats) if i
    ]
    game = Game(seed=4)
    for row in rows[1:]:
        assert row["seat"] == game.player
        game.play(int(row["action"]))
        assert row["next_player"] == game.player


def test_export__accepts_a_game_from_a_position(tmp_path: Path) -> None:
    game = Game.from_dict(position(left=["pilgrim"]), chance="explicit")
    before = seen_by(game, 0)
    while game.player is not None:
        game.play("pass" if "pass" in game.legal_labels() else game.legal_actions()[0])
    save([game.record()], tmp_path / "games.jsonl")
    dataset.export(tmp_path / "games.jsonl", tmp_path / "games.parquet")
    rows = rows_of(tmp_path / "games.parquet")
    assert np.array_equal(rows[0]["observation"], before)
    assert (rows[0]["seed"], rows[0]["player"], rows[-1]["next_player"]) == (-1, "?", -1)
    assert [LABELS[row["action"]] for row in rows] == list(game.record().events)
    assert [list(row["chance"]) for row in rows] == [[]] * len(rows)


def test_export__takes_a_board_file(tmp_path: Path) -> None:
    board = write_board(tmp_path / "other.toml", other_board_data())
    game = Game(board, seed=1)
    game.play(game.legal_actions()[0])
    save([game.record()], tmp_path / "games.jsonl")
    with pytest.raises(RecordError, match="line 1: board: unknown board 'other'"):
        dataset.export(tmp_path / "games.jsonl", tmp_path / "games.parquet")
    assert dataset.export(tmp_path / "games.jsonl", tmp_path / "games.parquet", board) == (1, 1)


# Files


def test_export__is_reproducible(tmp_path: Path) -> None:
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    for out in (first, second):
        dataset.export(GOLDEN, out)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


@pytest.mark.parametrize(
    ("records", "out", "message"),
    [
        (GOLDEN, "games.csv", "expected a name that ends in .parquet"),
        (GOLDEN, "nowhere/games.parquet", "there is no folder"),
        (Path(__file__), "games.parquet", "line 1: not a whole line of JSON"),
        ("empty", "games.parquet", "expected decisions, found none"),
        ("bytes.parquet", "games.parquet", "not a text file"),
        ("bytes.parquet", "bytes.parquet", "is read too: expected another file to write"),
    ],
)
def test_export__refuses_wrong_files_in_one_line(
    tmp_path: Path, capsys: Output, records: str | Path, out: str, message: str
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "bytes.parquet").write_bytes(b"\xff\xfe{}\n")
    check_refused(capsys, ["export", str(tmp_path / records), str(tmp_path / out)], message)
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "bytes.parquet"}
    assert (tmp_path / "bytes.parquet").read_bytes() == b"\xff\xfe{}\n"


def forfeited(moves: int, seed: int = 4) -> Record:
    """A game that the player to decide forfeits after some decisions."""
    game = Game(seed=seed)
    for _ in range(moves):
        game.play(game.legal_actions()[-1])
    seat = game.player
    assert seat is not None
    record = replace(game.record(["a", "b"]), winner=1 - seat, end="forfeit")
    return replace(record, forfeit=Forfeit(seat, "illegal"))


@pytest.mark.parametrize("moves", [1, 31, 32])
def test_export__of_a_forfeit_has_its_result(moves: int, tmp_path: Path) -> None:
    record = forfeited(moves)
    save([record], tmp_path / "games.jsonl")
    dataset.export(tmp_path / "games.jsonl", tmp_path / "games.parquet")
    rows = rows_of(tmp_path / "games.parquet")
    assert len(rows) == moves
    for row in rows:
        later = [other["seat"] for other in rows[row["step"] + 1 :]]
        last = row["seat"] not in later
        result = 1 if row["seat"] == record.winner else -1
        assert (row["return"], row["reward"]) == (result, result * last)
        assert (row["terminated"], row["truncated"]) == (last, False)
        assert row["next_player"] == (later[0] if later else -1)


def test_export__writes_equal_games_once(tmp_path: Path, capsys: Output) -> None:
    path, out = tmp_path / "games.jsonl", tmp_path / "games.parquet"
    same = forfeited(9)
    slower = replace(
        same, forfeit=Forfeit(same.forfeit.seat if same.forfeit else 0, "illegal", "x")
    )
    renamed = replace(same, players=("a", "c"))
    save([same, unfinished(9), same, slower, renamed, forfeited(9, 5)], path)
    for rows in ("decisions", "games"):
        assert main(["export", str(path), str(out), "--rows", rows]) == 0
        assert sorted({row["game"] for row in rows_of(out)}) == [1, 2, 5, 6]
        assert "2 left out" in capsys.readouterr().err


# A row per game

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
    assert list(table) == list(dataset.GAME_COLUMNS)
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


def test_games_table__has_forfeits(tmp_path: Path) -> None:
    record = forfeited(9)
    save([record], tmp_path / "f.jsonl")
    dataset.export(tmp_path / "f.jsonl", tmp_path / "f.parquet", rows="games")
    (row,) = rows_of(tmp_path / "f.parquet")
    seat = 1 - (record.winner or 0)
    assert (row["end"], row["forfeit_seat"], row["forfeit_reason"]) == ("forfeit", seat, "illegal")
    assert row["trigger"] == ""


def test_docs__list_all_columns() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in (*dataset.columns("afterstates"), *dataset.GAME_COLUMNS):
        root, _, seat = name.rpartition("_")
        assert f"`{name}`" in page or (seat == "1" and f"`{root}_0`" in page)
