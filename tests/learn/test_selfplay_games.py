"""Self-play tasks of `alphazero`: games, exploration and second searches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import random_policy

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.arena.executors.base import AgentCache
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.rng import agent_keys, episode_seed
from tokaido_env.core.state import CHANCE_PHASES
from tokaido_env.learn.replay_buffer import Samples
from tokaido_env.learn.selfplay_games import SelfPlayGames, sample_rows

POOL = BoardPool.load("shikoku")


def samples_of(search: str = "mcts:sims=3", **changes: Any) -> Samples:
    """Play six games, or a changed task; return their samples."""
    task = SelfPlayGames(search, "", POOL, 6, 50, 0.3, 0.1)._replace(**changes)
    (samples,) = task.run(AgentCache())
    return samples


def test_selfplay_games__are_whole_games_with_their_results() -> None:
    """Without exploration the search plays as in single games with the seeds that follow."""
    samples = samples_of(visit_sampling=0.0, uniform_sampling=0.0, result_weight=1.0)
    known = {row.tobytes(): i for i, row in enumerate(samples.states)}
    search, found, chances = make("mcts:sims=3"), 0, 0
    for number in range(50, 56):
        seed, decisions, key = episode_seed(number, 0), 0, np.empty(1, np.uint64)
        game, seen = Game(seed=seed), list[tuple[bytes, int]]()
        while not game.is_over:
            legal = np.array([game.legal_mask], np.uint64)
            if len(game.legal_actions()) > 1:
                seen.append((game.state.tobytes(), int(game.player)))
            seats = np.array([game.player], np.int8)
            agent_keys(np.array([seed]), seats, np.array([decisions]), key)
            decisions += 1
            action = int(search.act(game.boards, game.state, legal, key)[0])
            after = Game.from_dict(game.to_dict(), chance="explicit")
            after.play(action)
            chances += after.phase in CHANCE_PHASES
            game.play(action)
        reward = {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
        for state, player in seen:
            assert samples.targets[known[state]] == (reward if player == 0 else -reward)
        found += len(seen)
    assert (found, chances) == ((samples.legal != 0).sum(), (samples.legal == 0).sum())


def test_selfplay_games__depend_on_seed_and_exploration() -> None:
    first = samples_of()
    assert all((a == b).all() for a, b in zip(samples_of(), first, strict=True))
    for other in (samples_of(seed=1050), samples_of(uniform_sampling=0.5)):
        assert other.states.tobytes() != first.states.tobytes()


def test_selfplay_games__search_a_share_of_the_networks_games(tmp_path: Path) -> None:
    random_policy().save(tmp_path / "policy")
    search = f"policy_search:{tmp_path / 'policy'},sims=4"
    whole = samples_of(search, games=24)
    part = samples_of(search, games=24, search_share=0.25)
    assert 0.15 < len(part.legal) / len(whole.legal) < 0.4
    assert len(samples_of(search_share=0.25).legal) == len(samples_of().legal)  # no network


def test_selfplay_games__search_after_other_actions() -> None:
    """The positions of second searches, and the chance before them, have the search's value."""
    without = samples_of(uniform_sampling=0.0, visit_sampling=0.0, result_weight=1.0)
    both = samples_of(uniform_sampling=0.0, visit_sampling=0.0, result_weight=1.0, side_share=1.0)
    known = {row.tobytes() for row in without.states}
    new = np.array([row.tobytes() not in known for row in both.states])
    assert len(without.legal) < len(both.legal) < 3.2 * len(without.legal)
    assert np.isin(both.targets[~new], (-1, 0, 1)).mean() > 0.9
    for at_chance in (False, True):
        targets = both.targets[new & ((both.legal == 0) == at_chance)]
        assert len(targets) > 50
        assert np.isin(targets, (-1, 0, 1)).mean() < 0.2


def test_selfplay_games__give_chance_after_explored_actions_the_result() -> None:
    """The search's value is that of its own action."""
    for share in (0.0, 1.0):
        samples = samples_of(uniform_sampling=share, visit_sampling=0.0, result_weight=0.0)
        targets = samples.targets[samples.legal == 0]
        assert (np.isin(targets, (-1, 0, 1)).mean() > 0.3) == (share == 1.0)


def test_selfplay_games__refuse_agents_without_search() -> None:
    with pytest.raises(AgentFailed, match="search: expected mcts or policy_search, got 'greedy'"):
        samples_of("greedy")


def test_selfplay_games__sample_decisions_with_several_actions() -> None:
    samples = samples_of(uniform_sampling=0.5)
    for mask, visits in zip(samples.legal.tolist(), samples.visits, strict=True):
        assert (mask & (mask - 1) != 0) == (mask != 0)
        assert visits.sum() == (3 if mask else 0)


def test_sample_rows__draws_in_proportion() -> None:
    n = 20_000
    weights = np.zeros((n, N_ACTIONS), np.uint16)
    weights[:, [2, 7, 48]] = 1, 3, 4
    numbers = np.random.default_rng(0).random(n)
    counts = np.bincount(sample_rows(weights, numbers), minlength=N_ACTIONS)
    assert counts[[2, 7, 48]] / n == pytest.approx(np.array([1, 3, 4]) / 8, abs=0.015)
    assert counts.sum() == counts[[2, 7, 48]].sum()
