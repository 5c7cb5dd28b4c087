"""Generalisation: what is played on which boards, what is told of it, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from networks import random_policy

from tokaido_env import Board, BoardError, SeedError
from tokaido_env.agents import Agent, make
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.arena.generalisation import Generalisation, ResultsError
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.tournament import MatchState, play_match, play_remaining
from tokaido_env.core.rng import arena_seed
from tokaido_env.study.generalise import Plan, plan, trained_on


def learner(training: Any) -> Agent:
    """A policy whose header says what it was trained on."""
    return PolicyAgent.from_policy(replace(random_policy(), training=training), "learner")


def on(name: str) -> Agent:
    return learner({"board": {"name": name}})


def measured(**options: Any) -> tuple[Plan, list[MatchState], Generalisation]:
    planned = plan(make("greedy"), "random", **{"boards": 3, "pairs": 4} | options)
    match_states = planned.match_states()
    for match_state in match_states:
        play_remaining(match_state, make("greedy"), make("random"))
    return planned, match_states, planned.result(match_states)


# What is played


def test_tokaido_100_is_what_is_played_by_default() -> None:
    planned = plan(make("greedy"))
    assert (planned.opponent, planned.seed, planned.pairs) == ("mcts:sims=400", 0, 40)
    assert (planned.test.name, len(planned.test)) == ("family:test", 100)
    assert planned.train is not None
    assert (planned.train.name, len(planned.train)) == ("family:train/100", 100)
    assert [len(match_state) for match_state in planned.match_states()] == [8000, 8000]
    assert planned.trained_on is None


def test_the_games_on_a_board_follow_from_the_seed_and_the_board_alone() -> None:
    """Whoever plays, on however many boards; and no two boards have the same luck."""
    few, many = plan(make("greedy"), boards=2, pairs=3), plan(make("random"), boards=5, pairs=4)
    for one, other in zip(few.match_states(), many.match_states(), strict=True):
        theirs = other.games["seed"].reshape(5, 4, 2)[:2, :3]
        assert (one.games["seed"].reshape(2, 3, 2) == theirs).all()
        assert (one.games["board"].reshape(2, 3, 2) == np.array([0, 1])[:, None, None]).all()
        assert len(np.unique(other.games["seed"])) == 20
    first = match_seed(0, "generalise", "family:2000000")
    assert many.match_states()[0].games["seed"][0] == arena_seed(first, 0)
    again = plan(make("greedy"), boards=2, pairs=3, seed=1).match_states()[0].games["seed"]
    assert not set(again) & set(few.match_states()[0].games["seed"])


def test_scores_are_those_of_matches_on_each_board() -> None:
    planned, match_states, told = measured()
    sides = (
        (planned.test, match_states[0], told.test),
        (planned.train, match_states[1], told.train),
    )
    for pool, match_state, scores in sides:
        assert pool is not None
        assert scores is not None
        for number, one in enumerate(scores.each):
            board = Board.load(one.board)
            assert pool[number].hash == board.hash
            seed = match_seed(0, "generalise", board.name)
            alone = play_match(make("greedy"), make("random"), 8, seed, board)
            assert [one.value, *one.ci95] == pytest.approx([alone.score, *alone.interval], abs=1e-6)
            theirs = match_state.games.reshape(3, 4, 2)[number]
            assert (theirs["result"] == alone.results).all()
        values = [one.value for one in scores.each]
        assert scores.mean.value == pytest.approx(np.mean(values), abs=1e-6)
    assert told.gap is not None
    assert told.train is not None
    assert told.gap.value == pytest.approx(told.test.mean.value - told.train.mean.value, abs=1e-6)


# Boards trained on


@pytest.mark.parametrize(
    ("name", "boards", "pool", "pairs", "drawn"),
    [
        ("family:train/1000", 4, "family:train/4", 5, True),
        ("family:train/4", 4, "family:train/4", 5, False),
        ("family:train/3", 4, "family:train/3", 7, False),
        ("family:train/1", 4, "family:train/1", 20, False),
        ("family:7", 4, "family:7", 20, False),
        ("family:valid/50", 4, "family:valid/4", 5, True),
    ],
)
def test_as_many_games_on_boards_of_those_it_was_trained_on(
    name: str, boards: int, pool: str, pairs: int, drawn: bool
) -> None:
    planned = plan(on(name), boards=boards, pairs=5)
    assert planned.train is not None
    assert planned.trained_on == name
    told = (planned.train.name, planned.train_pairs, planned.train_drawn)
    assert told == (pool, pairs, drawn)
    by_number = plan(make("greedy"), boards=boards, pairs=5, train=3)
    assert by_number.train is not None
    assert (by_number.trained_on, by_number.train.name) == ("family:train/3", "family:train/3")


@pytest.mark.parametrize(
    ("training", "told"),
    [
        ({"board": {"name": "family:train/10", "hash": "x"}}, "family:train/10"),
        ({}, None),
        ({"board": 5}, None),
        ({"board": {"name": ["family:1"]}}, None),
    ],
)
def test_what_a_policy_says_of_its_training(training: Any, told: str | None) -> None:
    assert trained_on(learner(training)) == told
    assert trained_on(make("greedy")) is None


def test_what_a_policy_was_begun_from_counts_as_its_training() -> None:
    board = {"name": "family:train/9", "splits": ["train", "test"]}
    with pytest.raises(ValueError, match=r"begun from a policy .* on boards of family:test: exp"):
        plan(learner({"board": board}), boards=2)
    planned = plan(learner({"board": board}), boards=2, split="valid")
    assert planned.trained_on == "family:train/9"


def test_on_the_boards_of_train_there_is_no_gap() -> None:
    planned, match_states, told = measured(split="train")
    assert len(match_states) == 1
    assert (planned.train, told.train, told.gap) == (None, None, None)
    assert told.test.pool == "family:train/3"


@pytest.mark.parametrize(
    ("agent", "options", "message"),
    [
        ("family:test", {}, r"split: 'learner' was trained on family:test, which has 2 of the .*t"),
        ("family:2000001", {}, "trained on family:2000001, which has 1 of the boards of family:t"),
        ("family:train/9", {"train": 8}, "'family:train/9', got family:train/8"),
        ("family:train/0", {}, "empty pool"),
        ("shikoku", {"boards": 1}, "boards: expected 2 to 100, as many as family:test has, got 1"),
        ("shikoku", {"boards": 101, "split": "valid"}, "boards: expected 2 to 100, .*valid has"),
        ("shikoku", {"pairs": 0}, "pairs: expected 1 to 2,500,000 on each of 2 boards, got 0"),
        ("shikoku", {"split": "tset"}, "split: expected one of 'train', 'valid', 'test', got 'ts"),
        ("shikoku", {"seed": -1}, "seed: expected an integer from 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    agent: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, BoardError, SeedError), match=message) as error:
        plan(on(agent), **{"boards": 2, **options})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


# The file


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "r.json"
    _, _, told = measured()
    path.write_text(json.dumps(told.to_dict(), indent=1), encoding="utf-8")
    return path


def test_what_is_written_is_read(results: Path) -> None:
    data = json.loads(results.read_text(encoding="utf-8"))
    assert Generalisation.load(results).to_dict() == data
    assert list(data) == [
        *("version", "agent", "opponent", "seed", "trained_on", "test", "train", "gap")
    ]
    assert (data["version"], data["test"]["boards"], data["test"]["pairs"]) == (1, 3, 4)
    _, _, alone = measured(split="train")
    again = results.with_name("alone.json")
    again.write_text(json.dumps(alone.to_dict()), encoding="utf-8")
    assert Generalisation.load(again).train is None


def test_on_how_many_boards_an_agent_was_trained(results: Path) -> None:
    told = Generalisation.load(results)
    numbers = {"family:train/10": 10, "family:7": 1, "shikoku": None, None: None}
    for name, number in numbers.items():
        assert structs.replace(told, trained_on=name).boards_trained_on == number


def changed(place: str, value: Any) -> Callable[[Any], Any]:
    """Put a value into nested results, at a path with dots; numbers are places in lists."""

    def change(data: Any) -> Any:
        *way, last = place.split(".")
        inner = data
        for key in way:
            inner = inner[int(key) if key.isdigit() else key]
        inner[int(last) if last.isdigit() else last] = value
        return data

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: [data], r"version: expected 1, got \[.*: measure anew"),
        (lambda data: data | {"more": 1}, "expected no key more"),
        (changed("version", 2), "version: expected 1, got 2: measure anew"),
        (changed("seed", -1), "seed: expected an integer >= 0, got -1"),
        (changed("trained_on", "family:abc"), "'family:abc': expected family:NUMBER"),
        (changed("gap", None), "gap: expected null where train is, and only there"),
        (changed("gap.value", -1.5), "gap: expected a value and an interval from -1 to 1"),
        (changed("test.boards", 4), "test: boards: expected 3, as in each, got 4"),
        (changed("test.pairs", 0), "test.pairs: expected an integer >= 1"),
        (changed("test.mean.value", 1.01), "test: expected scores from 0 to 1, with intervals"),
        (changed("test.mean.value", float("nan")), "test.mean.value: expected a number"),
        (changed("test.iqm.ci95", [0.1]), "test.iqm.ci95: expected a list of length 2"),
        (changed("train.each.1.board", None), r"train.each\[1\].board: expected a text, got None"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    results: Path, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    path = tmp_path / "other.json"
    data = json.loads(results.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(data)), encoding="utf-8")
    with pytest.raises(ResultsError, match=message) as error:
        Generalisation.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
