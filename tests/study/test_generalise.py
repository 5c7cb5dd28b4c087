"""Generalisation tests: boards, matches, scores, result files and refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matches import play_remaining
from networks import random_policy

from tokaido_env import Board
from tokaido_env.agents import Agent, make
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.arena.match import match_seed
from tokaido_env.arena.result import Result
from tokaido_env.arena.tournament import MatchState, play_match
from tokaido_env.boards.board import built_in_boards
from tokaido_env.core.rng import arena_seed
from tokaido_env.report.comparison import worst_opponent
from tokaido_env.study.generalise import (
    GeneralisationTest,
    also_trained_on,
    generalisation_test,
    trained_on,
)


def learner(training: Any) -> Agent:
    """A policy with this training entry in its header."""
    return PolicyAgent.from_policy(replace(random_policy(), training=training), "learner")


def trained_on_board(name: str) -> Agent:
    return learner({"board": {"name": name}})


def measured(**options: Any) -> tuple[GeneralisationTest, list[MatchState], Result]:
    test = generalisation_test(make("greedy"), "random", **{"boards": 3, "pairs": 4} | options)
    matches = test.matches()
    for match in matches:
        play_remaining(match, make("greedy"), make("random"))
    return test, matches, test.result(matches)


# Boards and matches


def test_generalisation_test__defaults_are_tokaido_100() -> None:
    test = generalisation_test(make("greedy"))
    assert (test.opponents, test.seed, test.pairs) == (("mcts:sims=400",), 0, 40)
    assert (test.test.name, len(test.test)) == ("family:test", 100)
    assert test.train is not None
    assert (test.train.name, len(test.train)) == ("family:train/100", 100)
    assert [len(match) for match in test.matches()] == [8000, 8000]
    assert test.trained_on is None


def test_matches__have_games_that_follow_from_seed_and_board() -> None:
    """They do not depend on agents and on other boards; no two boards share luck."""
    few, many = (
        generalisation_test(make("greedy"), boards=2, pairs=3),
        generalisation_test(make("random"), boards=5, pairs=4),
    )
    for one, other in zip(few.matches(), many.matches(), strict=True):
        theirs = other.games["seed"].reshape(5, 4, 2)[:2, :3]
        assert (one.games["seed"].reshape(2, 3, 2) == theirs).all()
        assert (one.games["board"].reshape(2, 3, 2) == np.array([0, 1])[:, None, None]).all()
        assert len(np.unique(other.games["seed"])) == 20
    first = match_seed(0, "generalise", "family:2000000")
    assert many.matches()[0].games["seed"][0] == arena_seed(first, 0)
    again = (
        generalisation_test(make("greedy"), boards=2, pairs=3, seed=1).matches()[0].games["seed"]
    )
    assert not set(again) & set(few.matches()[0].games["seed"])


def test_result__has_the_scores_of_single_matches_on_each_board() -> None:
    test, matches, found = measured()
    for pool, match in zip((test.test, test.train), matches, strict=True):
        assert pool is not None
        scores = found.scores_of(pool.name)
        for number, one in enumerate(scores):
            board = Board.load(one.board)
            assert pool[number].hash == board.hash
            seed = match_seed(0, "generalise", board.name)
            single = play_match(make("greedy"), make("random"), 8, seed, board)
            assert [one.value, *one.interval] == pytest.approx(
                [single.score, *single.interval], abs=1e-6
            )
            theirs = match.games.reshape(3, 4, 2)[number]
            assert (theirs["result"] == single.results).all()
        mean = found.estimate("mean score", other="random", group=pool.name)
        assert mean.value == pytest.approx(np.mean([one.value for one in scores]), abs=1e-6)
    (gap,), (test_mean, train_mean) = (found.estimates_of(x) for x in ("gap", "mean score"))
    assert gap.value == pytest.approx(test_mean.value - train_mean.value, abs=1e-6)


# Boards of the training


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
def test_generalisation_test__plays_as_many_games_on_training_boards(
    name: str, boards: int, pool: str, pairs: int, drawn: bool
) -> None:
    test = generalisation_test(trained_on_board(name), boards=boards, pairs=5)
    assert test.train is not None
    assert test.trained_on == name
    found = (test.train.name, test.train_pairs, test.train_drawn)
    assert found == (pool, pairs, drawn)
    by_number = generalisation_test(make("greedy"), boards=boards, pairs=5, train=3)
    assert by_number.train is not None
    assert (by_number.trained_on, by_number.train.name) == ("family:train/3", "family:train/3")


@pytest.mark.parametrize(
    ("training", "found"),
    [
        ({"board": {"name": "family:train/10", "hash": "x"}}, "family:train/10"),
        ({}, None),
        ({"board": 5}, None),
        ({"board": {"name": ["family:1"]}}, None),
    ],
)
def test_trained_on__reads_the_policy_header(training: Any, found: str | None) -> None:
    assert trained_on(learner(training)) == found
    assert trained_on(make("greedy")) is None


def test_generalisation_test__counts_the_training_of_the_start_policy() -> None:
    board = {"name": "family:train/9", "splits": ["train", "test"]}
    with pytest.raises(
        ValueError, match="got family:test/2: it started from a policy of these boards"
    ):
        generalisation_test(learner({"board": board}), boards=2)
    test = generalisation_test(learner({"board": board}), boards=2, split="valid")
    assert test.trained_on == "family:train/9"


def test_result__on_hand_made_boards_resamples_games_only() -> None:
    """The six boards are all there are; an agent that was trained on one of them is refused."""
    test, matches, found = measured(split="handmade", boards=None)
    boards = found.boards[0]
    assert (boards.name, boards.count, boards.drawn) == ("handmade", 6, False)
    assert [one.board for one in found.scores_of("handmade")] == [
        name for name in built_in_boards() if name != "shikoku"
    ]
    assert [len(match) for match in matches] == [48, 48]
    assert test.train is not None
    assert test.train.name == "family:train/6"
    with pytest.raises(ValueError, match="got handmade: one of them is that of its training"):
        generalisation_test(trained_on_board("shikoku_art"), split="handmade")


def test_also_trained_on__counts_extra_boards_of_the_test() -> None:
    handmade = generalisation_test(make("greedy"), split="handmade").test
    assert also_trained_on(make("generalist"), handmade) == 6
    assert also_trained_on(make("champion"), handmade) == 0
    assert also_trained_on(make("greedy"), handmade) == 0
    extra = {"extra_boards": "shikoku,shikoku_art,shikoku_art,shikoku_dice"}
    assert also_trained_on(learner({"settings": extra}), handmade) == 2
    for untrusted in ({"settings": []}, {"settings": {"extra_boards": ["shikoku_art"]}}):
        assert also_trained_on(learner(untrusted), handmade) == 0


def test_result__names_the_worst_of_several_opponents() -> None:
    agents = {spec: make(spec) for spec in ("random", "greedy", "rusher")}
    test = generalisation_test(make("heuristic"), [*agents], boards=3, pairs=4)
    matches = test.matches()
    for match in matches:
        play_remaining(match, make("heuristic"), agents[match.b])
    found = test.result(matches)
    assert [match.b for match in matches] == ["random", "random", "greedy", "rusher"]
    group = found.boards[0].name
    means = [found.estimate("mean score", other=spec, group=group) for spec in agents]
    for match, one in zip(matches[:1] + matches[2:], means, strict=True):
        assert one.value == pytest.approx(match.to_match().score, abs=1e-6)
        assert (match.games["seed"] == matches[0].games["seed"]).all()  # the same luck
    worst = worst_opponent(found)
    assert worst == means[int(np.argmin([one.value for one in means]))]
    mean = found.estimate("mean score", group=group)
    assert mean.value == pytest.approx(np.mean([one.value for one in means]), abs=1e-5)
    assert 0 < mean.low < mean.value < mean.high < 1
    assert worst_opponent(measured(boards=2)[2]) is None


@pytest.mark.parametrize(
    ("agent", "options", "message"),
    [
        ("family:test", {}, "split: .*'learner' was not trained on, got family:test"),
        ("family:2000001", {}, "got family:test/2: 1 of them are in family:2000001"),
        ("family:train/9", {"train": 8}, "train: expected 'family:train/9'"),
        ("shikoku", {"boards": 1}, "boards: expected 2 to 100"),
        ("shikoku", {"boards": 101, "split": "valid"}, "boards: expected 2 to 100"),
        ("shikoku", {"pairs": 0}, "pairs: "),
        ("shikoku", {"split": "tset"}, "split: "),
    ],
)
def test_generalisation_test__refuses_bad_arguments(
    agent: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        generalisation_test(trained_on_board(agent), **{"boards": 2, **options})
