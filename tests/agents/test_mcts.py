"""Tree search: right where the truth can be computed, repeatable, and worth its simulations."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import decisions
from solved import best, decides_twice, last_positions, solve

from tokaido_env import Batch, Game
from tokaido_env.agents import make
from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.search import MctsAgent
from tokaido_env.agents.search_tree import cached_trees
from tokaido_env.arena.tournament import play_match

Actions = npt.NDArray[np.int64]

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "search.json"


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


def searched(agent: MctsAgent, game: Game) -> tuple[Actions, Any, Any]:
    """What `agent.search` tells of one game."""
    legal, key = np.array([game.legal_mask], np.uint64), np.array([7], np.uint64)
    return agent.search(game.boards, eval_tables_of(game.boards), game.state, legal, key)


# The same play as ever


@pytest.mark.parametrize("board", ["shikoku", "family:7"])
@pytest.mark.parametrize("spec", ["mcts:sims=100", "mcts:sims=400"])
def test_a_yardstick_does_not_move(spec: str, board: str) -> None:
    """Tables of results rest on it: the actions of the version that they were measured with."""
    boards, states, legal = decisions((board,), games=16, most=8)
    keys = np.random.default_rng(14).integers(2**64, size=len(states), dtype=np.uint64)
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert make(spec).act(boards, states, legal, keys).tolist() == golden[f"{spec} {board}"]


# Right where the truth can be computed


def test_it_finds_the_best_end_and_its_value() -> None:
    agent, solved, twice = MctsAgent(sims=2000), 0, 0
    for game in last_positions():
        values = solve(game)
        actions, expected, _ = searched(agent, game)
        assert values[int(actions[0])] == pytest.approx(best(game, values), abs=0.05)
        assert expected[0] == pytest.approx(best(game, values), abs=0.4)  # a mean over all tried
        solved += 1
        twice += decides_twice(game)
        if solved >= 12 and twice >= 4:
            break
    assert solved >= 12
    assert twice >= 4  # the same player decides again, so the sign must not flip


def test_visits_are_of_legal_actions_and_sum_to_the_simulations() -> None:
    agent, batch = MctsAgent(sims=70), middle_games(24, 20)
    games = np.flatnonzero(batch.legal)
    actions, _, visits = agent.search(
        batch.boards,
        eval_tables_of(batch.boards),
        batch.states[games],
        batch.legal[games],
        batch.keys(games),
    )
    assert (visits.sum(axis=1) == 70).all()
    assert (visits[~batch.masks(games)] == 0).all()
    assert (visits[np.arange(len(games)), actions] == visits.max(axis=1)).all()


def test_a_single_legal_action_has_all_visits() -> None:
    boards, states, legal = decisions(games=12)
    single = legal & (legal - np.uint64(1)) == 0
    boards, states, legal = boards[single], states[single], legal[single]
    assert len(states) > 5
    keys = np.zeros(len(states), np.uint64)
    actions, _, visits = MctsAgent(9).search(boards, eval_tables_of(boards), states, legal, keys)
    assert (np.uint64(1) << actions.astype(np.uint64) == legal).all()
    assert (visits[np.arange(len(states)), actions] == 9).all()
    assert (visits.sum(axis=1) == 9).all()


# Repeatable, whatever the batch and the threads


def test_the_key_is_what_chance_in_the_search_comes_from() -> None:
    agent, (boards, states, legal) = make("mcts:sims=20"), decisions(games=12)
    first, other = (
        agent.act(boards, states, legal, np.full(len(states), k, np.uint64)) for k in (0, 1)
    )
    assert (first != other).any()


def test_searches_in_several_threads_of_python_do_not_meet() -> None:
    """Each has its own memory, although memory is kept from one search to the next."""
    agent, batch = make("mcts:sims=400"), middle_games(16, 30)
    games = np.flatnonzero(batch.legal)
    alone = [chosen(agent, batch, games[i::4]) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: chosen(agent, batch, games[i % 4 :: 4]), range(16)))
    for i, actions in enumerate(together):
        assert (actions == alone[i % 4]).all()


def test_memory_is_kept_for_the_next_search() -> None:
    trees = cached_trees(2, 50, priors=True)
    again = cached_trees(2, 50, priors=True)
    assert all(one is other for one, other in zip(trees, again, strict=True))
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(cached_trees, 2, 50, priors=True).result()
    assert not any(np.shares_memory(a, b) for a, b in zip(trees, elsewhere, strict=True))


def test_many_simulations_of_one_position_stay_within_their_memory() -> None:
    game = Game(seed=1)
    for sims in (1, 2, 3, 30_000):
        actions, values, visits = searched(MctsAgent(sims), game)
        assert int(actions[0]) in game.legal_actions()
        assert visits.sum() == sims
        assert -1 <= values[0] <= 1


# Strength


def test_it_beats_greedy_and_more_simulations_beat_fewer() -> None:
    assert play_match(make("mcts:sims=100"), make("greedy"), 60, seed=1).score > 0.8
    assert play_match(make("mcts:sims=200"), make("mcts:sims=10"), 60, seed=1).score > 0.6


@pytest.mark.parametrize("rollout", ["2", "full"])
def test_playouts_beat_random(rollout: str) -> None:
    agent = make(f"mcts:sims=30,rollout={rollout}")
    assert agent.spec == f"mcts:sims=30,rollout={rollout}"
    assert play_match(agent, make("random"), 20, seed=2).score > 0.7
