"""Tree search: right where the truth can be computed, repeatable, and worth its simulations."""

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env import Batch, Game
from tokaido_env.agents import make
from tokaido_env.agents.arena import play_match
from tokaido_env.agents.heuristic import guides_of
from tokaido_env.agents.mcts import MctsAgent
from tokaido_env.state import CHANCE_PHASES, NOBODY

Actions = npt.NDArray[np.int64]


def middle_games(n: int, moves: int) -> Batch:
    batch = Batch(n, observation=None, autoreset=False)
    batch.reset(seed=5)
    for _ in range(moves):
        batch.play("greedy")
    return batch


def chosen(agent: Any, batch: Batch, games: Actions) -> Actions:
    states, legal = batch.states[games], batch.legal[games]
    actions: Actions = agent.act(batch.boards, states, legal, batch.keys(games))
    return actions


# Positions that can be solved: the last picks of the last round, no chance before the end.


def last_positions() -> Iterator[Game]:
    """The last picks of the last round, scores level, where not every action is as good."""
    for seed in range(200):
        game, rng = Game(seed=seed, chance="explicit"), np.random.default_rng(seed)
        while not game.is_over and game.rounds < 30:
            if game.phase in CHANCE_PHASES:
                labels, odds = zip(*game.outcomes(), strict=True)
                game.play(labels[rng.choice(len(labels), p=odds)])
                continue
            if len(game.to_dict()["dice_left"]) < 2 and len(game.legal_actions()) > 1:
                level = game.copy()
                for name in ("temple", "garden", "gold", "gifted", "coins"):
                    level.states[name] = level.states[name][:, :1]
                level.states["end_triggered"] = 1
                if len({round(value, 6) for value in solve(level).values()}) > 1:
                    yield level
            labels = [label for label in game.legal_labels() if label != "pass"]
            game.play(labels[rng.integers(len(labels))] if labels else "pass")


def solve(game: Game) -> dict[int, float]:
    """The result that player_0 can expect under best play after each legal action."""
    values = {}
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        values[action] = expected_result(after)
    return values


def expected_result(game: Game) -> float:
    if game.is_over:
        return {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
    if game.phase in CHANCE_PHASES:
        total = 0.0
        for label, chance in game.outcomes():
            after = game.copy()
            after.play(label)
            total += chance * expected_result(after)
        return total
    values = solve(game).values()
    return max(values) if game.player == 0 else min(values)


def test_it_finds_the_best_end_and_its_value() -> None:
    agent, solved, twice = MctsAgent(sims=2000), 0, 0
    for game in last_positions():
        values = solve(game)
        best = (max if game.player == 0 else min)(values.values())
        legal, key = np.array([game.legal_mask], np.uint64), np.array([7], np.uint64)
        guides = guides_of(game.boards)
        actions, expected = agent.search(game.boards, guides, game.state, legal, key)
        assert values[int(actions[0])] == pytest.approx(best, abs=0.05)
        assert expected[0] == pytest.approx(best, abs=0.4)  # a mean over all that was tried
        solved += 1
        twice += decides_twice(game)
        if solved >= 12 and twice >= 4:
            break
    assert solved >= 12
    assert twice >= 4  # the same player decides again, so the sign must not flip


def decides_twice(game: Game) -> bool:
    player = game.player
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        if not after.is_over and after.player == player:
            return True
    return False


# Repeatable, whatever the batch and the threads


@pytest.mark.parametrize("spec", ["mcts:sims=60", "mcts:sims=30,rollout=2"])
def test_a_batch_is_as_each_game_alone(spec: str) -> None:
    agent, batch = make(spec), middle_games(24, 20)
    games = np.flatnonzero(batch.legal)
    together = chosen(agent, batch, games)
    assert (together == chosen(agent, batch, games)).all()
    for j, game in enumerate(games):
        assert together[j] == chosen(agent, batch, np.array([game]))[0]


def test_the_number_of_threads_makes_no_difference() -> None:
    agent, batch = make("mcts:sims=80"), middle_games(16, 30)
    games, threads = np.flatnonzero(batch.legal), numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = chosen(agent, batch, games)
    finally:
        numba.set_num_threads(threads)
    assert (alone == chosen(agent, batch, games)).all()


def test_boards_of_their_own_are_used() -> None:
    agent, batch = make("mcts:sims=50"), middle_games(8, 20)
    games = np.flatnonzero(batch.legal)
    states, legal, keys = batch.states[games], batch.legal[games], batch.keys(games)
    boards = np.repeat(batch.boards, len(games))
    assert (agent.act(boards, states, legal, keys) == chosen(agent, batch, games)).all()


def test_the_key_is_what_chance_in_the_search_comes_from() -> None:
    agent, batch = make("mcts:sims=20"), middle_games(64, 12)
    games = np.flatnonzero(batch.legal)
    states, legal, keys = batch.states[games], batch.legal[games], batch.keys(games)
    there = agent.act(batch.boards, states, legal, keys)
    assert (there != agent.act(batch.boards, states, legal, keys + np.uint64(1))).any()


def test_many_simulations_of_one_position_stay_within_their_memory() -> None:
    game = Game(seed=1)
    legal, key = np.array([game.legal_mask], np.uint64), np.array([3], np.uint64)
    guides = guides_of(game.boards)
    for sims in (1, 2, 3, 30_000):
        actions, values = MctsAgent(sims).search(game.boards, guides, game.state, legal, key)
        assert int(actions[0]) in game.legal_actions()
        assert -1 <= values[0] <= 1


def test_positions_are_not_changed() -> None:
    batch = middle_games(8, 20)
    before = batch.states.copy()
    chosen(make("mcts:sims=50"), batch, np.flatnonzero(batch.legal))
    assert (batch.states == before).all()
    assert (batch.states["player"][batch.legal == 0] == NOBODY).all()


# Strength


def test_it_beats_greedy_and_more_simulations_beat_fewer() -> None:
    assert play_match(make("mcts:sims=100"), make("greedy"), 60, seed=1).score > 0.8
    assert play_match(make("mcts:sims=200"), make("mcts:sims=10"), 60, seed=1).score > 0.6


@pytest.mark.parametrize("rollout", ["2", "full"])
def test_playouts_beat_random(rollout: str) -> None:
    agent = make(f"mcts:sims=30,rollout={rollout}")
    assert agent.spec == f"mcts:sims=30,rollout={rollout}"
    assert play_match(agent, make("random"), 20, seed=2).score > 0.7
