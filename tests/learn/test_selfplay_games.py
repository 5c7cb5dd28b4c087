"""Self-play tasks of `alphazero`: games, exploration and second searches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import counting_policy

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.agents.search import PolicySearchAgent, search
from tokaido_env.agents.workspaces import PositionBatch
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.rng import agent_keys, game_seed
from tokaido_env.core.state import CHANCE_PHASES
from tokaido_env.learn.replay_buffer import Samples, load_samples, save_samples
from tokaido_env.learn.selfplay_games import SelfPlayGames, sample_rows

POOL = BoardPool.load("shikoku")
POLICY = counting_policy()
Play = Callable[..., Samples]


@pytest.fixture(scope="module")
def samples_of(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """A function that plays six games, or a changed task, and returns their samples."""
    path = tmp_path_factory.mktemp("policies") / "policy"
    POLICY.save(path)
    agent, games = make(f"policy_search:{path},sims=3"), SelfPlayGames(POOL, 6, 50, 0.3, 0.1)

    def play(**changes: Any) -> Samples:
        return games._replace(**changes).samples(agent)

    return play


def at_chance(samples: Samples) -> npt.NDArray[np.bool_]:
    return np.isin(samples.states["phase"], CHANCE_PHASES)


def test_selfplay_games__are_whole_games_with_their_results(samples_of: Play) -> None:
    """Without exploration the search plays as in single games with the games' seeds."""
    samples = samples_of(visit_sampling=0.0, uniform_sampling=0.0, result_weight=1.0)
    known = {row.tobytes(): i for i, row in enumerate(samples.states)}
    agent, found, chances = PolicySearchAgent.from_policy(POLICY, "p", 3), 0, 0
    for number in range(6):
        seed, decisions, key = game_seed(50, number), 0, np.empty(1, np.uint64)
        game, seen = Game(seed=seed), list[tuple[bytes, int]]()
        while not game.is_over:
            legal = np.array([game.legal_mask], np.uint64)
            if len(game.legal_actions()) > 1:
                seen.append((game.state.tobytes(), int(game.player)))
            seats = np.array([game.player], np.int8)
            agent_keys(np.array([seed]), seats, np.array([decisions]), key)
            decisions += 1
            positions = PositionBatch(game.boards, game.state, legal)
            action = int(search(agent.network, agent.config, positions, key).actions[0])
            after = Game.from_dict(game.to_dict(), chance="explicit")
            after.play(action)
            chances += after.phase in CHANCE_PHASES
            game.play(action)
        reward = {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
        for state, player in seen:
            assert samples.targets[known[state]] == (reward if player == 0 else -reward)
        found += len(seen)
    assert (found, chances) == ((~at_chance(samples)).sum(), at_chance(samples).sum())


def test_selfplay_games__depend_on_seed_and_exploration(samples_of: Play) -> None:
    first = samples_of()
    assert all((a == b).all() for a, b in zip(samples_of(), first, strict=True))
    for other in (samples_of(seed=1050), samples_of(uniform_sampling=0.5)):
        assert other.states.tobytes() != first.states.tobytes()


def test_selfplay_games__search_a_share_of_the_decisions(samples_of: Play, tmp_path: Path) -> None:
    whole, part = samples_of(games=24), samples_of(games=24, search_share=0.25)
    assert 0.15 < len(part.targets) / len(whole.targets) < 0.4
    none = samples_of(search_share=1e-9)
    assert [column.dtype for column in none] == [column.dtype for column in whole]
    save_samples(tmp_path / "none", none)
    assert len(load_samples(tmp_path / "none", POOL).targets) == 0


def test_selfplay_games__give_chance_after_explored_actions_the_result(samples_of: Play) -> None:
    """The search's value is that of its own action."""
    for share in (0.0, 1.0):
        samples = samples_of(uniform_sampling=share, visit_sampling=0.0, result_weight=0.0)
        targets = samples.targets[at_chance(samples)]
        assert (np.isin(targets, (-1, 0, 1)).mean() > 0.3) == (share == 1.0)


def test_sample_rows__draws_in_proportion() -> None:
    n = 20_000
    weights = np.zeros((n, N_ACTIONS), np.uint16)
    weights[:, [2, 7, 48]] = 1, 3, 4
    numbers = np.random.default_rng(0).random(n)
    counts = np.bincount(sample_rows(weights, numbers), minlength=N_ACTIONS)
    assert counts[[2, 7, 48]] / n == pytest.approx(np.array([1, 3, 4]) / 8, abs=0.015)
    assert counts.sum() == counts[[2, 7, 48]].sum()
