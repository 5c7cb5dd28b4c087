"""Tree search: exact where the truth can be computed, repeatable, and blind to the game's luck."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import counting_policy, decisions, random_policy
from solved import best, decides_twice, last_positions, solve

from tokaido_env import Game
from tokaido_env.agents import make
from tokaido_env.agents.ending_actions import solve_endings
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.search import (
    MctsAgent,
    PolicySearchAgent,
    SearchAgent,
    SearchResult,
    search,
)
from tokaido_env.agents.search_config import network_search_config
from tokaido_env.agents.selection import BOUND_SHARE
from tokaido_env.agents.workspaces import PositionBatch
from tokaido_env.arena.tournament import play_match
from tokaido_env.observers import masks

BOARDS = ("shikoku", "shikoku_ring", "shikoku_dice", "shikoku_remix")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "search.json"


def mcts(sims: int) -> SearchAgent:
    return MctsAgent(sims)


def by_network(sims: int, policy: Policy | None = None, **settings: Any) -> SearchAgent:
    config = network_search_config(sims, **settings)
    return PolicySearchAgent.from_policy(policy or random_policy(), "test", config)


AGENTS = [mcts, by_network]
PLAIN = {"c_puct": 0.6, "endings": "network"}


def search_by(agent: SearchAgent, boards: Any, states: Any, legal: Any, keys: Any) -> SearchResult:
    return search(agent.network, agent.config, PositionBatch(boards, states, legal), keys)


def search_game(agent: SearchAgent, game: Game, state: Any = None) -> SearchResult:
    """Search the position of one game, or another state with the same legal actions."""
    legal, key = np.array([game.legal_mask], np.uint64), np.array([7], np.uint64)
    return search_by(agent, game.boards, game.state if state is None else state, legal, key)


def keys_of(states: npt.NDArray[np.void], seed: int = 1) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(2**64, size=len(states), dtype=np.uint64)


# Unchanged play


@pytest.mark.parametrize("board", ["shikoku", "family:7"])
@pytest.mark.parametrize("name", ["mcts:sims=100", "mcts:sims=400", "random_policy"])
def test_search__plays_as_the_golden_file(name: str, board: str) -> None:
    """Published tables rest on these actions; the policy searches with plain priors."""
    boards, states, legal = decisions((board,), games=16, most=8)
    policy_agent = by_network(100, temperature=1, **PLAIN)
    agent = policy_agent if name == "random_policy" else make(name)
    actions = agent.act(boards, states, legal, keys_of(states, 14)).tolist()
    assert actions == json.loads(GOLDEN.read_text(encoding="utf-8"))[f"{name} {board}"]


@pytest.mark.parametrize(
    ("spec", "digest"),
    [
        ("champion", "db6c01ecbd5854c5"),
        ("champion:sims=30", "1cef5805e83bd643"),
        ("generalist", "b8c84e58d8caf0c6"),
        ("generalist:sims=30", "0429a5e75bed6c8e"),
    ],
)
def test_shipped_networks__play_as_when_they_were_made(spec: str, digest: str) -> None:
    boards, states, legal = decisions(BOARDS)
    actions = make(spec).act(boards, states, legal, np.arange(len(states), dtype=np.uint64))
    assert hashlib.sha256(actions.astype("<i8").tobytes()).hexdigest()[:16] == digest


# Exact results


@pytest.mark.parametrize(
    ("agent", "tolerance"),
    [
        (mcts(2000), 0.4),
        (by_network(2000, counting_policy()), 0.2),
        (by_network(2000), None),  # random values, so that the mean is far off
    ],
)
def test_search__finds_the_best_action_and_its_value(
    agent: SearchAgent, tolerance: float | None
) -> None:
    solved = twice = 0
    for game in last_positions():
        values = solve(game)
        actions, expected, _ = search_game(agent, game)
        assert values[int(actions[0])] == pytest.approx(best(game, values), abs=0.05)
        if tolerance is not None:
            assert expected[0] == pytest.approx(best(game, values), abs=tolerance)
        solved += 1
        twice += decides_twice(game)  # the same player decides again, so the sign must not flip
        if solved >= 12 and twice >= 4:
            return
    pytest.fail(f"{solved} positions, of which {twice} with two decisions of one player")


@pytest.mark.parametrize("make_agent", AGENTS)
def test_search__visits_legal_actions_as_often_as_there_are_simulations(make_agent: Any) -> None:
    boards, states, legal = decisions(("shikoku", "shikoku_ring"), most=12)
    before = states.copy()
    settings = PLAIN if make_agent is by_network else {}
    agent = make_agent(50, **settings)
    actions, values, visits = search_by(agent, boards, states, legal, keys_of(states))
    assert (visits.sum(axis=1) == 50).all()
    assert (visits[~masks(legal).astype(bool)] == 0).all()
    chosen, most = visits[np.arange(len(states)), actions], visits.max(axis=1)
    least = 1 if make_agent is mcts else BOUND_SHARE
    assert (chosen >= least * most).all()
    assert (np.abs(values) <= 1).all()
    assert (states == before).all()


@pytest.mark.parametrize("make_agent", AGENTS)
def test_search__gives_a_single_legal_action_all_visits(make_agent: Any) -> None:
    boards, states, legal = decisions(most=200)
    single = legal & (legal - np.uint64(1)) == 0
    boards, states, legal = boards[single], states[single], legal[single]
    states["end_triggered"] = 1  # so that many of them can be solved
    assert len(states) > 5
    agent = make_agent(9)
    actions, values, visits = search_by(agent, boards, states, legal, keys_of(states))
    assert (np.uint64(1) << actions.astype(np.uint64) == legal).all()
    assert (visits[np.arange(len(states)), actions] == 9).all()
    assert (visits.sum(axis=1) == 9).all()
    exact = np.full(len(states), np.nan, np.float32)
    solve_endings(exact, boards, states, legal)
    known = ~np.isnan(exact) if agent.network is not None else np.zeros(len(states), bool)
    assert values[known] == pytest.approx(exact[known], abs=1e-6)
    assert known.any() == (agent.network is not None)


# Keys, threads and memory


@pytest.mark.parametrize("make_agent", AGENTS)
def test_search__takes_its_luck_from_the_key_and_not_from_the_game(make_agent: Any) -> None:
    game, agent = Game(seed=5), make_agent(60)
    first, second = game.copy(luck="fresh", seed=1), game.copy(luck="fresh", seed=2)
    keys = np.arange(40, dtype=np.uint64)
    legal = np.full(40, game.legal_mask, np.uint64)
    results = [
        search_by(agent, each.boards, np.repeat(each.state, 40), legal, keys)
        for each in (first, second)
    ]
    assert all((a == b).all() for a, b in zip(*results, strict=True))
    assert len(set(results[0].values.tolist())) > 20  # other keys, other dice
    for each in (first, second):
        while each.rounds < 4 and not each.is_over:
            each.play(each.legal_actions()[0])
    assert first.to_dict() != second.to_dict()  # the games' luck did differ


@pytest.mark.parametrize("make_agent", AGENTS)
def test_act__stops_early_and_takes_the_action_of_the_whole_search(make_agent: Any) -> None:
    """With a network the action of the highest bound may change in the simulations left."""
    agent, positions = make_agent(50), decisions(most=60)
    keys = keys_of(positions[1])
    same = agent.act(*positions, keys) == search_by(agent, *positions, keys).actions
    assert same.mean() >= (1.0 if make_agent is mcts else 0.9)
    agent.config = agent.config._replace(stops_early=True)
    visits = search_by(agent, *positions, keys).visits.sum(axis=1)
    assert visits.min() < 40 < visits.max()


@pytest.mark.parametrize(("make_agent", "most"), [(mcts, 30_000), (by_network, 10_000)])
def test_search__of_many_simulations_stays_within_its_memory(make_agent: Any, most: int) -> None:
    for sims in (1, 2, 3, most):
        actions, values, visits = search_game(make_agent(sims), Game(seed=1))
        assert int(actions[0]) in Game(seed=1).legal_actions()
        assert -1 <= values[0] <= 1
        assert visits.sum() == sims


# Strength


def test_mcts__with_rollouts_beats_random() -> None:
    assert play_match(make("mcts:sims=30,rollout=full"), make("random"), 20, 2).score > 0.7
    with pytest.raises(ValueError, match="mcts: rollout: expected one of 'full', got '2'"):
        MctsAgent(30, "2")
