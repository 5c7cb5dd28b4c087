"""Luck taken off a score: of mean zero by the rules' odds, unbiased, and worth games."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matches import lucky

from tokaido_env import Board, Game
from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.heuristic import SCRATCH
from tokaido_env.arena.match import adjusted_score
from tokaido_env.arena.variance_reduction import _outcome_luck
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import MAX_OUTCOMES
from tokaido_env.core.state import CHANCE_PHASES, Phase

BOARD = Board.load()


@entry
def surprise(
    boards: Any, eval_tables: Any, states: Any, outcome: int, room: Any, scratch: Any
) -> float:
    return _outcome_luck(
        boards[0], eval_tables[0], states[0], outcome, room[:2], room[2], scratch[0]
    )


def test_the_surprises_of_an_outcome_cancel_by_its_odds() -> None:
    room = np.zeros(MAX_OUTCOMES, np.int64), np.zeros(MAX_OUTCOMES, np.float32)
    room, scratch = (*room, np.zeros((2, 6), np.int64)), np.zeros(1, SCRATCH)
    eval_tables, seen = eval_tables_of(BOARD.record), set()
    for seed in range(4):
        game, rng = Game(seed=seed, chance="explicit"), np.random.default_rng(seed)
        while not game.is_over:
            if game.phase not in CHANCE_PHASES:
                game.play(int(rng.choice(game.legal_actions())))
                continue
            labels, chances = zip(*game.outcomes(), strict=True)
            if game.phase != Phase.SETUP and rng.random() < 0.2:
                total = 0.0
                for label, chance in game.outcomes():
                    outcome = outcome_of(game, label)
                    each = surprise(BOARD.record, eval_tables, game.state, outcome, room, scratch)
                    total += chance * each
                assert total == pytest.approx(0, abs=1e-6)
                seen.add(game.phase)
            game.play(labels[rng.choice(len(labels), p=chances)])
    assert seen == {Phase.ROLL, Phase.DRAW, Phase.REVEAL}


def outcome_of(game: Game, label: str) -> int:
    """The id of an outcome: 36(p-1) + 6(m-1) + (a-1) of a roll, else the place of its kind."""
    name, _, what = label.partition(":")
    if name == "roll":
        pilgrim, merchant, artist = (int(value) for value in what.split("/"))
        return 36 * (pilgrim - 1) + 6 * (merchant - 1) + artist - 1
    kinds = ("kimono", "pottery", "doll", "fan"), ("moon", "waterfall", "mountain", "bamboo")
    return kinds[game.phase == Phase.REVEAL].index(what)


def test_luck_has_mean_zero() -> None:
    match = lucky("greedy", "heuristic", 2000, 4)
    luck = match.games["luck"].mean(axis=1)
    assert abs(luck.mean()) < 4 * luck.std() / np.sqrt(len(luck))
    assert luck.std() > 0.01


def test_luck_is_of_the_agent_whatever_its_seat() -> None:
    there = lucky("greedy", "heuristic", 40, 1)
    back = lucky("heuristic", "greedy", 40, 1)
    assert np.allclose(there.games["luck"], -back.games["luck"][:, ::-1])


def test_an_agent_has_no_luck_against_itself_in_a_pair() -> None:
    match = lucky("greedy", "greedy", 20, 1)
    assert np.allclose(match.games["luck"].sum(axis=1), 0)
    assert match.adjusted is None


def simulated(rng: np.random.Generator, pairs: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Results whose chance of a win is 0.55 plus luck that is known."""
    luck = rng.uniform(-0.4, 0.4, (pairs, 2))
    return (rng.random((pairs, 2)) < 0.55 + luck).astype(float), luck


def test_the_adjusted_score_is_right_on_average_and_so_is_its_interval() -> None:
    rng = np.random.default_rng(0)
    scores, factors, held = [], [], 0
    for _ in range(2000):
        adjusted = adjusted_score(*simulated(rng, 50))
        assert adjusted is not None
        low, high = adjusted.interval
        scores.append(adjusted.score)
        factors.append(adjusted.factor)
        held += low <= 0.55 <= high
    assert abs(np.mean(scores) - 0.55) < 4 * np.std(scores) / np.sqrt(len(scores))
    assert 0.93 <= held / 2000 <= 0.965
    # What is left of the variance p(1-p) = 0.2475 of a game without luck's 0.8²/12 = 0.0533.
    assert np.mean(factors) == pytest.approx(0.2475 / (0.2475 - 0.0533), rel=0.08)


def test_luck_that_says_nothing_does_no_harm() -> None:
    rng = np.random.default_rng(1)
    results = (rng.random((500, 2)) < 0.5).astype(float)
    adjusted = adjusted_score(results, rng.normal(size=(500, 2)))
    assert adjusted is not None
    assert adjusted.factor == pytest.approx(1, abs=0.03)
    assert adjusted_score(results, np.zeros((500, 2))) is None
    assert adjusted_score(np.ones((500, 2)), rng.normal(size=(500, 2))) is None


def test_luck_is_worth_games() -> None:
    match = lucky("mcts:sims=60", "mcts:sims=50", 400, 3)
    assert match.adjusted is not None
    assert match.adjusted.factor > 1.1
