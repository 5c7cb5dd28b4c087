"""The search that knows its opponent: its replies are the opponent's own, and it uses them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from networks import decisions, random_policy
from solved import best, last_positions, solve

from tokaido_env import Game
from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents import make, search as searches
from tokaido_env.agents.baselines import GreedyAgent
from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.inference import Network, PositionBatch
from tokaido_env.agents.opponent_model import OpponentModel, make_opponent_model
from tokaido_env.agents.policy import PolicyAgent
from tokaido_env.agents.registry import check_spec_in_file, cost_of, policy_path_of
from tokaido_env.agents.search import SearchResult
from tokaido_env.agents.search_config import network_search_config
from tokaido_env.agents.search_tree import Tree, make_trees
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import CHANCE_PHASES

Keys = npt.NDArray[np.uint64]

NETWORK = random_policy().network()
POLICY = random_policy(seed=5)
SEEING = random_policy(seed=5, uses_board_features=True)


def model(agent: Agent) -> OpponentModel:
    known = make_opponent_model(agent)
    assert known is not None
    return known


def respond(network: Network, agent: Agent, sims: int, arrays: Any, keys: Keys) -> SearchResult:
    """What the search that knows an agent tells of n positions: boards, states, legal."""
    boards, states, legal = arrays
    positions = PositionBatch(boards, eval_tables_of(boards), states, legal)
    return searches.search(network, network_search_config(sims), positions, keys, model(agent))


def respond_in(game: Game, network: Network, agent: Agent, sims: int) -> SearchResult:
    arrays = game.boards, game.state, np.array([game.legal_mask], np.uint64)
    return respond(network, agent, sims, arrays, np.array([7], np.uint64))


def frequencies(agent: Agent, boards: Any, state: Any, legal: Any, n: int) -> Any:
    """How often an agent takes each action of a position, by n keys."""
    keys = np.random.default_rng(2).integers(2**64, size=n, dtype=np.uint64)
    actions = agent.act(boards, np.repeat(state, n), np.full(n, legal, np.uint64), keys)
    return np.bincount(actions, minlength=N_ACTIONS) / n


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Tree]:
    """The trees that were searched in, in order."""
    trees: list[Tree] = []

    def kept(threads: int, nodes: int, *, priors: bool) -> Tree:
        trees.append(make_trees(threads, nodes, priors=priors))
        return trees[-1]

    monkeypatch.setattr(searches, "cached_trees", kept)
    return trees


def opponents_nodes(tree: Tree) -> list[tuple[Any, Any, Any, Any]]:
    """Of each node where the opponent decided: its state (1,), mask, odds and visits by action."""
    nodes, edges = tree.nodes[0][: int(tree.size["nodes"][0, 0])], tree.edges[0]
    found = []
    for at, node in enumerate(nodes):
        if node["player"] == 1 - nodes[0]["player"] and node["visits"] > 0:
            own = slice(node["first"], node["first"] + node["edges"])
            moves = edges["move"][own]
            odds, visits = np.zeros(N_ACTIONS), np.zeros(N_ACTIONS)
            odds[moves], visits[moves] = tree.priors[0][own], edges["visits"][own]
            mask = np.uint64(sum(1 << int(move) for move in moves))
            found.append((tree.states[0][at : at + 1].copy(), mask, odds, visits))
    return found


# The opponent's own replies


@pytest.mark.parametrize(
    "victim",
    [
        make("heuristic"),
        PolicyAgent.from_policy(POLICY, "p"),
        PolicyAgent.from_policy(SEEING, "seeing"),
    ],
)
def test_what_the_opponent_would_do_is_what_is_followed(victim: Agent, made: list[Tree]) -> None:
    arrays = decisions(("shikoku", "shikoku_ring"), most=3)
    seen = 0
    for i in range(len(arrays[1])):
        one = tuple(array[i : i + 1] for array in arrays)
        respond(NETWORK, victim, 60, one, np.array([i], np.uint64))
        for state, mask, odds, visits in opponents_nodes(made.pop()):
            answer = victim.act(one[0], state, np.array([mask]), np.array([seen], np.uint64))
            assert np.flatnonzero(odds).tolist() == answer.tolist()
            assert odds[answer] == 1
            assert set(np.flatnonzero(visits)) <= set(answer)
            seen += 1
    assert seen > 200


@pytest.mark.parametrize("agent", ["greedy", "greedy:epsilon=0.3", "random", "policy"])
def test_what_the_opponent_draws_is_met_as_often_as_it_draws_it(
    agent: str, made: list[Tree]
) -> None:
    victim = make(agent) if agent != "policy" else PolicyAgent.from_policy(POLICY, "victim", 0.7)
    arrays, seen = decisions(most=4), 0
    for i in range(len(arrays[1])):
        one = tuple(array[i : i + 1] for array in arrays)
        respond(NETWORK, victim, 100, one, np.array([i], np.uint64))
        nodes = sorted(opponents_nodes(made.pop()), key=lambda node: -node[3].sum())
        for state, mask, odds, visits in nodes[:8]:
            assert odds.sum() == pytest.approx(1)
            often = frequencies(victim, one[0], state, mask, 2000)
            assert odds == pytest.approx(often, abs=0.06)  # five standard errors
            assert visits == pytest.approx(odds * visits.sum(), abs=2)
            seen += len(np.flatnonzero(odds)) > 1
    assert seen > 10


def test_what_overrides_an_agents_play_is_not_taken_for_the_agent() -> None:
    class Lazy(GreedyAgent):
        """Plays otherwise than its kernel."""

    assert make_opponent_model(GreedyAgent()) is not None
    assert make_opponent_model(Lazy()) is None


# Right where the truth can be computed


def replied(game: Game, seat: int, victim: Agent) -> float:
    """The result that player_0 can expect if `seat` plays its best, and the other is the victim."""
    if game.is_over:
        return {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
    if game.phase in CHANCE_PHASES:
        odds = dict(game.outcomes())
    elif game.player == seat:
        return best(game, responses(game, victim))
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
        total += chance * replied(after, seat, victim)
    return total


def responses(game: Game, victim: Agent) -> dict[int, float]:
    """The result that player_0 can expect after each action, against the victim's own replies."""
    values = {}
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        values[action] = replied(after, int(game.player or 0), victim)
    return values


@pytest.mark.parametrize("spec", ["heuristic", "random"])
def test_it_finds_the_best_response_and_its_value(spec: str) -> None:
    victim, network, solved, gained = make(spec), NETWORK, 0, 0
    for game in last_positions(dice=2):
        values = responses(game, victim)
        truth = best(game, values)
        actions, expected, visits = respond_in(game, network, victim, 4000)
        assert visits.sum() == 4000
        assert values[int(actions[0])] == pytest.approx(truth, abs=0.05)
        assert expected[0] == pytest.approx(truth, abs=0.2)  # a mean over all that was tried
        solved += 1
        gained += abs(truth - best(game, solve(game))) > 0.05
        if solved >= 9 and gained >= 2:
            break
    assert solved >= 9
    assert gained >= 2  # against best play the position is worth less


# Repeatable, and blind to luck


def test_many_positions_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a network of its own for each board, which have rows of their own."""
    network, victim = (
        random_policy(uses_board_features=True).network(),
        PolicyAgent.from_policy(SEEING, "victim"),
    )
    arrays = decisions(("shikoku", "shikoku_market"), most=4)
    keys = np.random.default_rng(1).integers(2**64, size=len(arrays[1]), dtype=np.uint64)
    whole = respond(network, victim, 30, arrays, keys)
    monkeypatch.setattr(searches, "_NETWORK_SIMS_PER_CALL", 40)
    for one, other in zip(whole, respond(network, victim, 30, arrays, keys), strict=True):
        assert (one == other).all()


def test_the_fewest_nodes_are_memory_enough(
    made: list[Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no room to go on behind a reply, simulations end there."""
    monkeypatch.setattr(searches, "_NODES_PER_RESPONSE_SIM", 2)
    arrays, victim = decisions(most=10), make("heuristic")
    for i in range(len(arrays[1])):
        one, sims = [array[i : i + 1] for array in arrays], 2 + i % 3
        found = respond(NETWORK, victim, sims, one, np.array([i], np.uint64))
        assert found.visits.sum() == sims
        assert made.pop().size["nodes"][0, 0] <= 2 * sims + 2


# Spec strings


def test_its_spec_makes_it_again(tmp_path: Path) -> None:
    random_policy().save(tmp_path / "p,q")
    victim = f"policy:{json.dumps(str(tmp_path / 'p,q'))},temperature=0.5"
    for text, spec in (
        ("champion", "champion,sims=400"),
        ("victim=champion,sims=8", "champion,sims=8"),
        ("greedy:epsilon=0.5", "greedy:epsilon=0.5,sims=400"),
        (f"{json.dumps(victim)},sims=8", f"{json.dumps(victim)},sims=8"),
    ):
        agent = make(f"exploiter:{text}")
        assert agent.spec == f"exploiter:{spec}"
        assert make(agent.spec).spec == agent.spec
        assert cost_of(agent.spec) == agent.cost > 0
    assert policy_path_of(agent.spec) == tmp_path / "p,q"
    assert policy_path_of("exploiter:champion") is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("exploiter", "expected exploiter:VICTIM[,sims=N]"),
        ("exploiter:sims=8", "expected exploiter:VICTIM[,sims=N]"),
        ("exploiter:champion,5", "expected exploiter:VICTIM[,sims=N], a VICTIM with a comma in do"),
        ("exploiter:mcts:sims=9", "victim: expected an agent whose replies need no search: random"),
        ("exploiter:champion:sims=9", "got 'champion:sims=9'"),
        ("exploiter:exploiter:greedy", "got 'exploiter:greedy,sims=400'"),
        ("exploiter:python:outsiders:Dice", "got 'python:outsiders:Dice'"),
    ],
)
def test_a_victim_that_will_not_do_is_refused_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(AgentError) as error:
        make(spec)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_file_may_name_no_victim_that_it_may_not_name_as_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    random_policy().save(folder / "p")
    monkeypatch.chdir(tmp_path)
    assert (
        check_spec_in_file("exploiter:champion,sims=9", "x", folder) == "exploiter:champion,sims=9"
    )
    spec = check_spec_in_file("exploiter:sims=9,victim=policy:p", "x", folder)
    assert spec == f"exploiter:policy:{folder}/p,sims=9"
    for victim in ("python:outsiders:Dice", "policy:../mine", f"policy:{tmp_path}/mine"):
        for spec in (f"exploiter:{victim}", f"exploiter:exploiter:{victim}"):
            with pytest.raises(AgentError, match=r"^x: '.*': a file may n"):
                check_spec_in_file(spec, "x", folder)
            assert check_spec_in_file(spec, "x", folder, [spec]) == spec
