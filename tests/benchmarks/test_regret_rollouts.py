"""Rollouts of regret sets against games played one by one."""

import sys

import numba
import numpy as np
import pytest
from networks import decisions
from processes import ROOT

from tokaido_env import Board, Game
from tokaido_env.agents import Agent, make
from tokaido_env.agents.workspaces import PositionBatch
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.serialization import state_to_dict
from tokaido_env.study.regret_set import BLOCK

sys.path.insert(0, str(ROOT / "benchmarks"))

from regret_making import network_of
from regret_rollouts import Blocks, roll_out

BOARDS = ("shikoku", "family:2000003")
ROLLOUTS = 40  # purpose of their random numbers
MASK = 2**64 - 1


def hashed(key: int, counter: int) -> int:
    """SplitMix64's (Steele, Lea, Flood 2014), in Python's integers."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def positions(most: int = 2) -> tuple[PositionBatch, list[str]]:
    boards, states, legal = decisions(BOARDS, games=8, moves=40, most=most)
    known = {Board.load(name).record[0].tobytes(): name for name in BOARDS}
    names = [known[board.tobytes()] for board in boards]
    return PositionBatch(boards, states, legal), names


def keys_for(n: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(3).integers(2**63, size=n).astype(np.uint64)


def rollout_game(
    sample: PositionBatch, name: str, i: int, action: int, key: int, agent: Agent
) -> Game:
    """The game of one rollout, played with `Game`."""
    board = Board.load(name)
    game = Game.from_dict(state_to_dict(name, board.record[0], sample.states[i]), chance="sampled")
    game._luck["key"], game._luck["drawn"] = key, 0
    game.play(action)
    while not game.is_over:
        mask = np.array([game.legal_mask], np.uint64)
        chosen = agent.act(board.record, game.states, mask, np.zeros(1, np.uint64))
        game.play(int(chosen[0]))
    return game


def result(game: Game, seat: int) -> int:
    winner = game.winner()
    return 0 if winner is None else 1 if winner == seat else -1


@pytest.fixture(scope="module")
def sample() -> tuple[PositionBatch, list[str]]:
    return positions()


@pytest.mark.parametrize("spec", ["heuristic", "champion:endings=network"])
def test_roll_out__sums_the_results_of_single_games(
    spec: str, sample: tuple[PositionBatch, list[str]]
) -> None:
    given, names = sample
    agent, keys = make(spec), keys_for(len(names))
    for i in range(0, len(names), 8 if INTERPRETED else 3):
        seat = int(given.states["player"][i])
        actions = actions_of(int(given.legal[i]))
        action, number = actions[-1], i % 2
        own = Blocks(np.array([i]), np.array([action]), np.array([number]))
        total = 0
        for rollout in range(BLOCK * number, BLOCK * (number + 1)):
            key = hashed(int(keys[i]), ROLLOUTS << 56 | rollout)
            total += result(rollout_game(given, names[i], i, action, key, agent), seat)
        assert roll_out(network_of(make(spec)), given, keys, own).tolist() == [total]


def test_roll_out__is_the_same_for_any_threads_and_order(
    sample: tuple[PositionBatch, list[str]],
) -> None:
    given, names = sample
    keys, rng = keys_for(len(names)), np.random.default_rng(0)
    which = rng.integers(len(names), size=12)
    actions = np.array([actions_of(int(given.legal[i]))[0] for i in which])
    blocks = Blocks(which, actions, rng.integers(4, size=12))
    sums = roll_out(None, given, keys, blocks)
    order = rng.permutation(12)
    again = Blocks(*(column[order] for column in blocks))
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert (roll_out(None, given, keys, again) == sums[order]).all()
    finally:
        numba.set_num_threads(threads)
    assert (np.abs(sums) <= BLOCK).all()
    assert len(set(sums.tolist())) > 2


def test_network_of__refuses_agents_that_draw_random_numbers() -> None:
    for spec in ("greedy", "mcts:sims=10"):
        with pytest.raises(ValueError, match="expected heuristic or a network without temperature"):
            network_of(make(spec))
