"""The exploiter: its opponent's replies are the opponent's own, and it plays a best response."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import decisions, random_policy
from solved import best, last_positions, solve

from tokaido_env import Game
from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents import make, search as search_module
from tokaido_env.agents.baselines import GreedyAgent
from tokaido_env.agents.opponent_model import make_opponent_model, new_opponent
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.registry import cost_of, policy_path_of
from tokaido_env.agents.search import Job, SearchResult, _search
from tokaido_env.agents.search_config import network_search_config
from tokaido_env.agents.search_tree import Tree, new_tree
from tokaido_env.agents.weights import Weights, thread_copy
from tokaido_env.agents.workspaces import PositionBatch, PositionRow, new_workspace
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.jit import entry
from tokaido_env.core.state import CHANCE_PHASES

Keys = npt.NDArray[np.uint64]

NETWORK = random_policy(seed=1).network()
POLICY = random_policy(seed=5)


def search(network: Weights, victim: Agent, sims: int, arrays: Any, keys: Keys) -> SearchResult:
    """Search n positions, boards, states and legal, with a model of the victim."""
    boards, states, legal = arrays
    positions = PositionBatch(boards, states, legal)
    model = make_opponent_model(victim)
    assert model is not None
    config = network_search_config(sims, temperature=1.5, c_puct=0.6)
    return search_module.search(network, config, positions, keys, model)


@entry
def _searched_tree(
    network: Any,
    model: Any,
    config: Any,
    nodes: int,
    boards: Any,
    states: Any,
    legal: Any,
    key: Any,
) -> Any:
    own, opponent = thread_copy(network, 0), new_opponent(model, 0)
    workspace = new_workspace(own)
    tree, visits = new_tree(nodes, True), np.zeros(N_ACTIONS, np.int32)
    position = PositionRow(boards[0], states[0], legal[0])
    _search(own, opponent, Job(config, position, np.uint64(key), tree, workspace), visits)
    return tree


def searches(
    victim: Agent, sims: int, most: int, boards: Any = ("shikoku",), nodes_per_sim: int = 6
) -> Iterator[tuple[Any, Tree]]:
    """Search positions one by one; yield the board and the tree of each."""
    arrays, model = decisions(boards, most=most), make_opponent_model(victim)
    config, nodes = network_search_config(sims, 1.5, 0.6), nodes_per_sim * sims + 2
    for i in range(len(arrays[1])):
        one = [array[i : i + 1] for array in arrays]
        yield one[0], _searched_tree(NETWORK, model, config, nodes, *one, i)


def frequencies(agent: Agent, boards: Any, state: Any, legal: Any, n: int) -> Any:
    """Return how often an agent takes each action of a position with n keys, as shares."""
    keys = np.random.default_rng(2).integers(2**64, size=n, dtype=np.uint64)
    actions = agent.act(boards, np.repeat(state, n), np.full(n, legal, np.uint64), keys)
    return np.bincount(actions, minlength=N_ACTIONS) / n


def opponent_nodes(tree: Tree) -> list[tuple[Any, Any, Any, Any]]:
    """Return the state (1,), mask, odds and visits by action of each node of the opponent."""
    nodes, edges = tree.nodes[: int(tree.size["nodes"][0])], tree.edges
    found = []
    for at, node in enumerate(nodes):
        if node["player"] == 1 - nodes[0]["player"] and node["visits"] > 0:
            own = slice(node["first"], node["first"] + node["edges"])
            moves = edges["move"][own]
            odds, visits = np.zeros(N_ACTIONS), np.zeros(N_ACTIONS)
            odds[moves], visits[moves] = tree.priors[own], edges["visits"][own]
            mask = np.uint64(sum(1 << int(move) for move in moves))
            found.append((tree.states[at : at + 1].copy(), mask, odds, visits))
    return found


# Replies of the opponent


@pytest.mark.parametrize(
    "victim",
    [
        make("heuristic"),
        PolicyAgent.from_policy(POLICY, "policy"),
    ],
)
def test_opponent_model__follows_the_victims_only_action(victim: Agent) -> None:
    checked = 0
    for board, tree in searches(victim, 60, most=3, boards=("shikoku", "shikoku_ring")):
        for state, mask, odds, visits in opponent_nodes(tree):
            answer = victim.act(board, state, np.array([mask]), np.array([checked], np.uint64))
            assert np.flatnonzero(odds).tolist() == answer.tolist()
            assert odds[answer] == 1
            assert set(np.flatnonzero(visits)) <= set(answer)
            checked += 1
    assert checked > 200


@pytest.mark.parametrize("spec", ["greedy", "greedy:epsilon=0.3", "random", "policy"])
def test_opponent_model__takes_random_actions_as_often_as_the_victim(spec: str) -> None:
    victim = make(spec) if spec != "policy" else PolicyAgent.from_policy(POLICY, "victim", 0.7)
    checked = 0
    for board, tree in searches(victim, 100, most=5):
        nodes = sorted(opponent_nodes(tree), key=lambda node: -node[3].sum())
        for state, mask, odds, visits in nodes[:8]:
            assert odds.sum() == pytest.approx(1)
            often = frequencies(victim, board, state, mask, 2000)
            assert odds == pytest.approx(often, abs=0.06)  # five standard errors
            assert visits == pytest.approx(odds * visits.sum(), abs=2)
            checked += len(np.flatnonzero(odds)) > 1
    assert checked > 10


def test_opponent_model__is_none_for_a_subclass() -> None:
    class Lazy(GreedyAgent):
        """May override the kernel's play."""

    assert make_opponent_model(GreedyAgent()) is not None
    assert make_opponent_model(Lazy()) is None


# Exact results


def value_against(game: Game, seat: int, victim: Agent) -> float:
    """Return the expected result of player_0 if `seat` plays its best against the victim."""
    if game.is_over:
        return {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
    if game.phase in CHANCE_PHASES:
        odds = dict(game.outcomes())
    elif game.player == seat:
        return best(game, values_against(game, victim))
    else:
        legal = np.uint64(game.legal_mask)
        often = frequencies(victim, game.boards, game.state, legal, 1)
        odds = {int(a): 1.0 for a in np.flatnonzero(often)}
        if victim.spec == "random":
            odds = {action: 1 / len(game.legal_actions()) for action in game.legal_actions()}
    total = 0.0
    for move, chance in odds.items():
        after = game.copy()
        after.play(move)
        total += chance * value_against(after, seat, victim)
    return total


def values_against(game: Game, victim: Agent) -> dict[int, float]:
    """Return the expected result of player_0 after each action, against the victim's replies."""
    values = {}
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        values[action] = value_against(after, int(game.player or 0), victim)
    return values


@pytest.mark.parametrize("spec", ["heuristic", "random"])
def test_exploiter__finds_the_best_response_and_its_value(spec: str) -> None:
    victim, solved, gained = make(spec), 0, 0
    for game in last_positions(dice=2):
        values = values_against(game, victim)
        truth = best(game, values)
        arrays = game.boards, game.state, np.array([game.legal_mask], np.uint64)
        found = search(NETWORK, victim, 4000, arrays, np.array([7], np.uint64))
        assert found.visits.sum() == 4000
        assert values[int(found.actions[0])] == pytest.approx(truth, abs=0.05)
        assert found.values[0] == pytest.approx(truth, abs=0.2)  # a mean over all tried actions
        solved += 1
        gained += abs(truth - best(game, solve(game))) > 0.05  # more than against best play
        if solved >= 6 and gained:
            return
    pytest.fail(f"{solved} positions, of which {gained} gain")


# Parts and memory


def test_exploiter__searches_many_positions_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    victim = PolicyAgent.from_policy(POLICY, "victim")
    arrays = decisions(("shikoku", "shikoku_market"), most=4)
    keys = np.random.default_rng(1).integers(2**64, size=len(arrays[1]), dtype=np.uint64)
    whole = search(NETWORK, victim, 30, arrays, keys)
    monkeypatch.setattr(search_module, "_NETWORK_SIMS_PER_CALL", 40)
    for one, other in zip(whole, search(NETWORK, victim, 30, arrays, keys), strict=True):
        assert (one == other).all()


def test_exploiter__ends_simulations_where_memory_ends() -> None:
    for sims in (2, 3, 4):
        for _, tree in searches(make("heuristic"), sims, most=10, nodes_per_sim=2):
            first, edges = tree.nodes[0]["first"], tree.nodes[0]["edges"]
            assert edges == 1 or tree.edges["visits"][first : first + edges].sum() == sims
            assert tree.size["nodes"][0] <= 2 * sims + 2


# Spec strings


def test_exploiter__is_remade_from_its_spec(tmp_path: Path) -> None:
    random_policy().save(tmp_path / "p,q")
    victim = f"policy:{tmp_path / 'p,q'}"
    for text, spec in (
        ("champion", "champion,sims=400"),
        ("greedy:epsilon=0.5", "greedy:epsilon=0.5,sims=400"),
        (f"{victim},sims=8", f"{victim},sims=8"),
    ):
        agent = make(f"exploiter:{text}")
        assert agent.spec == f"exploiter:{spec}"
        assert make(agent.spec).spec == agent.spec
        assert cost_of(agent.spec) > 0
    assert policy_path_of(agent.spec) == tmp_path / "p,q"
    assert policy_path_of("exploiter:champion") is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("exploiter", "expected exploiter:VICTIM[,sims=N]"),
        ("exploiter:mcts:sims=9", "victim: expected an agent that does not search: random"),
        ("exploiter:python:custom_agents:Dice", "got 'python:custom_agents:Dice'"),
    ],
)
def test_exploiter__refuses_other_victims(spec: str, message: str) -> None:
    with pytest.raises(AgentError) as error:
        make(spec)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
