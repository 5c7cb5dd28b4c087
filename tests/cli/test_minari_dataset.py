"""Tests of Minari datasets against `TokaidoDuo-v0`."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("minari")
pytest.importorskip("h5py")
import minari

import tokaido_env  # noqa: F401  registers the environment
from tokaido_env import Board, Game
from tokaido_env.__main__ import main
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.record import Forfeit, load, save


@pytest.fixture(autouse=True)
def _datasets_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))


@pytest.fixture
def match(tmp_path: Path) -> Path:
    """Record games of `random` against the default opponent of `TokaidoDuo-v0`; return the path."""
    path = tmp_path / "games.jsonl"
    assert main(["evaluate", "random", "greedy", "--games", "8", "--records", str(path)]) == 0
    return path


def test_minari__episodes_equal_the_environment(match: Path) -> None:
    assert main(["export", str(match), "minari:tokaido/random-v0"]) == 0
    dataset = minari.load_dataset("tokaido/random-v0")
    records = load(match)
    assert dataset.total_episodes == 2 * len(records)
    assert dataset.total_steps == sum(e in IDS for record in records for e in record.events)
    recovered = dataset.recover_environment()
    assert recovered.spec is not None
    assert recovered.spec.kwargs == {"board": "shikoku"}
    played = 0
    for episode in dataset:
        seat, game = int(episode.infos["seat"][0]), int(episode.infos["game"][0])
        record = records[game - 1]
        if record.players[seat] != "random":
            continue
        env = gymnasium.make("TokaidoDuo-v0", opponent="greedy", seat=seat)
        seen, info = env.reset(seed=record.seed)
        for t, action in enumerate(episode.actions.tolist()):
            assert np.array_equal(episode.observations[t], seen)
            assert np.array_equal(episode.infos["action_mask"][t], info["action_mask"])
            seen, *step, info = env.step(action)
            assert step == [episode.rewards[t], episode.terminations[t], episode.truncations[t]]
        assert np.array_equal(episode.observations[-1], seen)
        assert not episode.infos["action_mask"][-1].any()
        assert episode.observations.shape[0] == len(episode.actions) + 1
        played += 1
    assert played == len(records)


def test_minari__has_the_result_of_a_forfeit_and_equal_games_once(tmp_path: Path) -> None:
    path, won = tmp_path / "games.jsonl", []
    records = []
    for moves in range(20, 28):
        game = Game(seed=moves)
        for _ in range(moves):
            game.play(game.legal_actions()[-1])
        seat = game.player
        assert seat is not None
        lost = replace(game.record(("a", "b")), winner=1 - seat, end="forfeit")
        records.append(replace(lost, forfeit=Forfeit(seat, "crash")))
        won.append(1 - seat)
    save([*records, records[0]], path)
    assert main(["export", str(path), "minari:tokaido/forfeits-v0"]) == 0
    dataset = minari.load_dataset("tokaido/forfeits-v0")
    assert dataset.total_episodes == 2 * len(records)
    assert set(won) == {0, 1}
    for episode in dataset:
        seat, game_number = int(episode.infos["seat"][0]), int(episode.infos["game"][0])
        assert sum(episode.rewards) == (1 if won[game_number - 1] == seat else -1)
        assert episode.terminations.tolist() == [False] * (len(episode.actions) - 1) + [True]
        assert not episode.truncations.any()


def test_minari__metadata_names_players_and_boards(match: Path) -> None:
    assert main(["export", str(match), "minari:tokaido/raw-v3", "--uint8"]) == 0
    dataset = minari.load_dataset("tokaido/raw-v3")
    assert dataset.storage.metadata["algorithm_name"] == "random, greedy"
    about = json.loads(dataset.storage.metadata["description"].partition(". ")[2])
    assert about["players"] == ["random", "greedy"]
    assert about["boards"] == ["shikoku"]
    assert dataset.observation_space.dtype == np.uint8
    assert isinstance(dataset.action_space, gymnasium.spaces.Discrete)
    assert dataset.action_space.n == N_ACTIONS
    assert dataset[0].observations.dtype == np.uint8


def test_minari__refuses_wrong_and_existing_names(
    match: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(match), "minari:../outside-v0"]) == 1
    assert "Malformed dataset ID" in capsys.readouterr().err
    for name in ("x", "x-v", "x-vb", "", "a/x", "x-v0 "):
        assert main(["export", str(match), f"minari:{name}"]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"export: minari:{name}: expected a name that ends in its version")
        assert error.endswith("-v0\n")
        assert error.count("\n") == 1
    assert minari.list_local_datasets() == {}
    assert main(["export", str(match), "minari:mine-v0"]) == 0
    assert main(["export", str(match), "minari:mine-v0"]) == 1
    assert "expected a new name" in capsys.readouterr().err
    assert minari.load_dataset("mine-v0").total_episodes == 16


def test_minari__damaged_records_leave_no_dataset(
    tmp_path: Path, match: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[Any] = match.read_text().splitlines()
    damaged = json.loads(lines[5])
    damaged["events"][40] = "merchant:M1"
    damaged["events"][41] = "merchant:M1"
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines[:5], json.dumps(damaged)]) + "\n")
    assert main(["export", str(tmp_path / "bad.jsonl"), "minari:bad-v0"]) == 1
    assert "line 6" in capsys.readouterr().err
    assert minari.list_local_datasets() == {}
    assert main(["export", str(tmp_path / "none.jsonl"), "minari:bad-v0"]) == 1


def test_minari__opens_no_path_from_a_record(match: Path, tmp_path: Path) -> None:
    own, path = tmp_path / "own.toml", tmp_path / "hostile.jsonl"
    Board.load().save(own)
    events = json.loads(match.read_text().splitlines()[0])
    path.write_text(json.dumps(events | {"board": str(own)}) + "\n")
    opened: list[str] = []
    sys.addaudithook(
        lambda event, values: opened.append(str(values[0])) if event == "open" else None
    )
    assert main(["export", str(path), "minari:tokaido/random-v0"]) == 1
    assert str(path) in opened
    assert str(own) not in opened


def test_minari__makes_no_agent_from_a_record(match: Path, tmp_path: Path) -> None:
    text = match.read_text().replace('"greedy"', '"python:os:abort"')
    (tmp_path / "named.jsonl").write_text(text)
    assert main(["export", str(tmp_path / "named.jsonl"), "minari:named-v0"]) == 0
    dataset = minari.load_dataset("named-v0")
    assert "python:os:abort" in dataset.storage.metadata["algorithm_name"]
    assert "python" not in str(dataset.env_spec)
    dataset.recover_environment()


def test_minari__environment_has_no_board_for_several_boards(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    arguments = ["evaluate", "random", "greedy", "--games", "4", "--board", "family:valid/2"]
    assert main([*arguments, "--records", str(path)]) == 0
    assert main(["export", str(path), "minari:family-v0"]) == 0
    spec = minari.load_dataset("family-v0").env_spec
    assert spec is not None
    assert "board" not in spec.kwargs
