"""Tests of arena/variance_reduction.py: luck has mean zero and reduces the variance of scores."""

from typing import Any

import numpy as np
import pytest
from matches import match_with_luck

from tokaido_env import Board, Game
from tokaido_env.arena.variance_reduction import _outcome_luck
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import MAX_OUTCOMES
from tokaido_env.core.state import CHANCE_PHASES, Phase
from tokaido_env.features.evaluation import SCRATCH

BOARD = Board.load()


@entry
def outcome_luck(boards: Any, states: Any, outcome: int, buffers: Any, scratch: Any) -> float:
    return _outcome_luck(boards[0], states[0], outcome, buffers[:2], buffers[2], scratch[0])


def outcome_id(game: Game, label: str) -> int:
    """Return an outcome's id: 36(p-1) + 6(m-1) + (a-1) of a roll, else the index of its kind."""
    name, _, value = label.partition(":")
    if name == "roll":
        pilgrim, merchant, artist = (int(face) for face in value.split("/"))
        return 36 * (pilgrim - 1) + 6 * (merchant - 1) + artist - 1
    kinds = ("kimono", "pottery", "doll", "fan"), ("moon", "waterfall", "mountain", "bamboo")
    return kinds[game.phase == Phase.REVEAL].index(value)


def test_outcome_luck__has_expectation_zero_by_the_odds_of_the_rules() -> None:
    odds, values = np.zeros(MAX_OUTCOMES, np.int64), np.zeros(MAX_OUTCOMES, np.float32)
    buffers, scratch = (odds, values, np.zeros((2, 6), np.int64)), np.zeros(1, SCRATCH)
    seen = set()
    for seed in range(4):
        game, rng = Game(seed=seed, chance="explicit"), np.random.default_rng(seed)
        while not game.is_over:
            if game.phase not in CHANCE_PHASES:
                game.play(int(rng.choice(game.legal_actions())))
                continue
            labels, chances = zip(*game.outcomes(), strict=True)
            if game.phase != Phase.SETUP and rng.random() < 0.2:
                expectation = 0.0
                for label, chance in game.outcomes():
                    outcome = outcome_id(game, label)
                    luck = outcome_luck(BOARD.record, game.state, outcome, buffers, scratch)
                    expectation += chance * luck
                assert expectation == pytest.approx(0, abs=1e-6)
                seen.add(game.phase)
            game.play(labels[rng.choice(len(labels), p=chances)])
    assert seen == {Phase.ROLL, Phase.DRAW, Phase.REVEAL}


def test_luck__has_mean_zero_over_many_games() -> None:
    match = match_with_luck("greedy", "heuristic", 1000, 4)
    luck = match.games["luck"].mean(axis=1)
    assert abs(luck.mean()) < 4 * luck.std() / np.sqrt(len(luck))
    assert luck.std() > 0.01


def test_luck__changes_sign_with_the_agents() -> None:
    match = match_with_luck("greedy", "heuristic", 40, 1)
    reversed_match = match_with_luck("heuristic", "greedy", 40, 1)
    assert np.allclose(match.games["luck"], -reversed_match.games["luck"][:, ::-1])
    same_agent = match_with_luck("greedy", "greedy", 20, 1)
    assert np.allclose(same_agent.games["luck"].sum(axis=1), 0)
    assert same_agent.adjusted is None


def test_luck__reduces_the_variance_of_a_score() -> None:
    match = match_with_luck("mcts:sims=60", "mcts:sims=50", 200, 3)
    assert match.adjusted is not None
    assert match.adjusted[1] > 1.1
