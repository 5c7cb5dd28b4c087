"""Tests of the table of decisions against games replayed in the environment."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq
import pytest
from positions import other_board_data, position, shikoku_data, write_board
from refusals import check_refused

from tokaido_env import Game, raw_env
from tokaido_env.cli import dataset, tabular_io
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.observation import LAYOUT_HASH, N_FEATURES, SCALES, encode_game
from tokaido_env.record import Record, RecordError, load, replay, save

GOLDEN = Path(__file__).parents[1] / "golden" / "games.jsonl"
ROWS = sum(sum(event in IDS for event in record.events) for record in load(GOLDEN))

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


STEP_ARRAYS = {"step": "steps", "observation": "observations", "mask": "action_masks"}
STEP_ARRAYS |= {"action": "actions", "reward": "rewards", "return": "returns"}
STEP_ARRAYS |= {"terminated": "terminations", "truncated": "truncations"}
STEP_ARRAYS |= {"next_player": "next_players"}
EPISODE_COLUMNS = ("game", "seed", "seat", "player", "board")


def rows_of_npz(path: Path) -> list[Row]:
    """Return the rows of an npz file by column, in the order of decisions."""
    a = arrays_of(path)
    rows = []
    for episode, first in enumerate(a["episode_starts"][:-1]):
        shared = {name: a[f"episode_{name}s"][episode] for name in EPISODE_COLUMNS}
        shared["board_hash"] = a["episode_board_hashes"][episode]
        for i in range(first, a["episode_starts"][episode + 1]):
            labels = a["chance"][a["chance_starts"][i] : a["chance_starts"][i + 1]]
            row = {name: a[array][i] for name, array in STEP_ARRAYS.items()}
            chance = [str(a["chance_labels"][label]) for label in labels]
            rows.append(shared | row | {"chance": chance})
    return sorted(rows, key=lambda row: (row["game"], row["step"]))


def rows_of(path: Path) -> list[Row]:
    if path.suffix == ".npz":
        return rows_of_npz(path)
    rows: list[Row] = pd.read_parquet(path).to_dict("records")
    return rows


def arrays_of(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path) as arrays:
        return dict(arrays)


# Rows


@pytest.mark.parametrize("suffix", tabular_io.SUFFIXES)
def test_export__rows_equal_the_environment(tmp_path: Path, suffix: str) -> None:
    rng = random.Random(0)
    choosers: list[Callable[[list[int]], int]] = [rng.choice] * 3 + [min]
    records = [finished(seed, choose) for seed, choose in enumerate(choosers, start=5)]
    records.append(finished(3, choosers[0], "family:7"))
    save(records, tmp_path / "games.jsonl")
    out = tmp_path / f"games{suffix}"
    expected = [
        row for number, record in enumerate(records, start=1) for row in naive_rows(number, record)
    ]
    assert {row["return"] for row in expected} == {-1, 0, 1}
    assert sum(row["truncated"] for row in expected) == 2  # the cap
    assert sum(row["terminated"] for row in expected) == 8
    assert dataset.export(tmp_path / "games.jsonl", out) == (len(expected), 5)
    check_rows(rows_of(out), expected)


def test_docs__list_the_columns_of_decisions() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "file-formats.md"
    section = page.read_text(encoding="utf-8").partition("\n## Decisions\n")[2]
    table = section.partition("|---|---|---|\n")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()]
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert names == list(dataset.columns("float32"))


def test_export__archive_has_episodes_with_final_observations(tmp_path: Path) -> None:
    dataset.export(GOLDEN, tmp_path / "games.npz")
    a = arrays_of(tmp_path / "games.npz")
    assert a["episode_seats"].tolist() == [0, 1] * 6
    # The one flag of an episode is in its last row.
    ends = np.flatnonzero(a["terminations"] | a["truncations"])
    assert ends.tolist() == (a["episode_starts"][1:] - 1).tolist()
    records = load(GOLDEN)
    for episode, seen in enumerate(a["final_observations"]):
        played = replay(records[a["episode_games"][episode] - 1])
        game = Game.from_dict(played.position(len(played.states) - 1))
        assert np.array_equal(seen, seen_by(game, int(a["episode_seats"][episode])))


@pytest.mark.parametrize("suffix", tabular_io.SUFFIXES)
def test_export__uint8_observations_divide_to_float32(tmp_path: Path, suffix: str) -> None:
    raw, out = tmp_path / f"raw{suffix}", tmp_path / f"games{suffix}"
    dataset.export(GOLDEN, raw, dtype="uint8")
    dataset.export(GOLDEN, out)
    for row, right in zip(rows_of(raw), rows_of(out), strict=True):
        assert row["observation"].dtype == np.uint8
        observation = row["observation"] / SCALES
        assert np.allclose(observation, right["observation"], rtol=0, atol=1e-7)
    for path, dtype in ((raw, "uint8"), (out, "float32")):
        if suffix == ".npz":
            metadata = json.loads(str(arrays_of(path)["metadata"]))
        else:
            metadata = json.loads(pq.read_schema(path).metadata[b"tokaido_env"])
        assert (metadata["layout"], metadata["observation"]) == (LAYOUT_HASH, dtype)


# Unfinished games, positions, boards


def unfinished(moves: int) -> Record:
    game = Game(seed=4)
    for _ in range(moves):
        game.play(game.legal_actions()[-1])
    return game.record(["a", "b"])


@pytest.mark.parametrize("suffix", tabular_io.SUFFIXES)
def test_export__truncates_an_unfinished_game(tmp_path: Path, suffix: str) -> None:
    save([unfinished(0), unfinished(1), unfinished(9)], tmp_path / "games.jsonl")
    out = tmp_path / f"games{suffix}"
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
    if suffix == ".npz":  # a seat that decided nothing has no episode
        arrays = arrays_of(out)
        assert arrays["episode_starts"].tolist()[:2] == [0, 1]
        assert arrays["episode_players"].tolist()[0] == "a"
        assert len(arrays["final_observations"]) == len(arrays["episode_starts"]) - 1


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
        dataset.export(tmp_path / "games.jsonl", tmp_path / "games.npz")
    assert dataset.export(tmp_path / "games.jsonl", tmp_path / "games.npz", board) == (1, 1)


# Files


@pytest.mark.parametrize("suffix", tabular_io.SUFFIXES)
def test_export__is_reproducible(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    for out in (first, second):
        dataset.export(GOLDEN, out)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


def broken(path: Path) -> Path:
    """Write a record file with a wrong event in its second line; return its path."""
    first, second = GOLDEN.read_text(encoding="utf-8").splitlines()[:2]
    wrong = json.loads(second)
    wrong["events"][100] = "pilgrim:swim"
    path.write_text(f"{first}\n{json.dumps(wrong)}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", tabular_io.SUFFIXES)
def test_export__keeps_the_old_file_on_a_broken_record(tmp_path: Path, suffix: str) -> None:
    records, out = broken(tmp_path / "games.jsonl"), tmp_path / f"games{suffix}"
    out.write_text("old", encoding="utf-8")
    with pytest.raises(RecordError, match=r"games.jsonl, line 2: event 101 of .*pilgrim:swim"):
        dataset.export(records, out)
    assert out.read_text(encoding="utf-8") == "old"
    assert sorted(tmp_path.iterdir()) == sorted([records, out])


def test_export__refuses_values_too_large_for_uint8(tmp_path: Path) -> None:
    board = write_board(tmp_path / "long.toml", shikoku_data() | {"max_rounds": 300})
    game = Game(board, seed=1)
    game.play(game.legal_actions()[0])
    save([game.record()], tmp_path / "games.jsonl")
    with pytest.raises(ValueError, match="expected max_rounds of at most 255 for 'uint8', got 300"):
        dataset.export(tmp_path / "games.jsonl", tmp_path / "games.npz", board, "uint8")


@pytest.mark.parametrize(
    ("records", "out", "message"),
    [
        (GOLDEN, "games.csv", "expected a name that ends in .parquet or .npz"),
        (GOLDEN, "nowhere/games.npz", "there is no folder"),
        (GOLDEN.with_name("nowhere.jsonl"), "games.npz", "nowhere.jsonl"),
        (Path(__file__), "games.npz", "line 1: not a whole line of JSON"),
        ("empty", "games.npz", "expected games with decisions, found none"),
        ("bytes.npz", "games.parquet", "not a text file"),
        ("bytes.npz", "bytes.npz", "is read too: expected another file to write"),
    ],
)
def test_export__refuses_wrong_files_in_one_line(
    tmp_path: Path, capsys: Output, records: str | Path, out: str, message: str
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "bytes.npz").write_bytes(b"\xff\xfe{}\n")
    check_refused(capsys, ["export", str(tmp_path / records), str(tmp_path / out)], message)
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "bytes.npz"}
    assert (tmp_path / "bytes.npz").read_bytes() == b"\xff\xfe{}\n"


def test_export__refuses_a_name_of_a_megabyte(tmp_path: Path) -> None:
    """Otherwise each row of a table would contain it: 11 GiB for 1,400 games."""
    record = json.loads(GOLDEN.read_text(encoding="utf-8").splitlines()[0])
    record["players"][1] = "x" * 10**6
    (tmp_path / "games.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    message = "players: expected names of at most 1000 characters, got one of 1000000$"
    with pytest.raises(RecordError, match=f"line 1: record: {message}"):
        dataset.export(tmp_path / "games.jsonl", tmp_path / "games.npz")
    with pytest.raises(RecordError, match=message):
        Game(seed=1).record(["a", "x" * 10**6])


def test_export__refuses_a_file_that_grows_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "count_decisions", lambda path: ROWS - 1)
    with pytest.raises(ValueError, match=f"expected {ROWS - 1} decisions"):
        dataset.export(GOLDEN, tmp_path / "games.npz")
    assert not list(tmp_path.iterdir())
