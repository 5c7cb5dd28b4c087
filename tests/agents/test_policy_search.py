"""Search by a network: right where the truth can be computed, repeatable, and blind to luck."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from evaluated import swapped
from networks import SMALL, counting_policy, decisions, random_policy
from solved import best, decides_twice, last_positions, positions_behind, solve

from tokaido_env import Game
from tokaido_env.agents import make, search as searches
from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.inference import Network, PositionBatch
from tokaido_env.agents.policy import Policy, PolicyAgent, tensor_shapes
from tokaido_env.agents.search import PolicySearchAgent, SearchResult
from tokaido_env.agents.search_config import network_search_config
from tokaido_env.agents.search_tree import Tree, make_trees
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import FEATURES
from tokaido_env.core.state import CHANCE_PHASES

KEY = 7
BOARDS = ("shikoku", "shikoku_ring", "shikoku_dice", "shikoku_remix")
DECIDES = next(feature.start for feature in FEATURES if feature.name == "decides")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "search.json"


def search(
    network: Network, sims: int, boards: Any, states: Any, legal: Any, keys: Any
) -> SearchResult:
    """What the search by a network tells of n positions, as agents search by default."""
    positions = PositionBatch(boards, eval_tables_of(boards), states, legal)
    return searches.search(network, network_search_config(sims), positions, keys)


def searched(policy: Policy, sims: int, game: Game, states: Any = None) -> SearchResult:
    """What the search tells of one game."""
    legal, key = np.array([game.legal_mask], np.uint64), np.array([KEY], np.uint64)
    states = game.state if states is None else states
    return search(policy.network(), sims, game.boards, states, legal, key)


def same(one: SearchResult, other: SearchResult) -> bool:
    return all((a == b).all() for a, b in zip(one, other, strict=True))


def keys_of(states: npt.NDArray[np.void]) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(1).integers(2**64, size=len(states), dtype=np.uint64)


# Right where the truth can be computed


def test_it_finds_the_best_end_and_its_value_whatever_the_network() -> None:
    blind, counting, solved, twice = random_policy(), counting_policy(), 0, 0
    for game in last_positions():
        values = solve(game)
        truth = best(game, values)
        actions, _, _ = searched(blind, 2000, game)
        assert values[int(actions[0])] == pytest.approx(truth, abs=0.05)
        actions, expected, _ = searched(counting, 2000, game)
        assert values[int(actions[0])] == pytest.approx(truth, abs=0.05)
        assert expected[0] == pytest.approx(truth, abs=0.2)  # a mean over all that was tried
        solved += 1
        twice += decides_twice(game)
        if solved >= 9 and twice >= 1:
            break
    assert solved >= 9
    assert twice >= 1  # the same player decides again, so the sign must not flip


def test_visits_are_of_legal_actions_and_sum_to_the_simulations() -> None:
    boards, states, legal = decisions(("shikoku", "shikoku_ring"), most=12)
    network = random_policy().network()
    actions, values, visits = search(network, 50, boards, states, legal, keys_of(states))
    allowed = legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64) & np.uint64(1)
    assert (visits.sum(axis=1) == 50).all()
    assert (visits[allowed == 0] == 0).all()
    assert (visits[np.arange(len(states)), actions] == visits.max(axis=1)).all()
    assert (np.abs(values) <= 1).all()


def test_a_single_legal_action_is_not_searched() -> None:
    boards, states, legal = decisions(most=200)
    single = legal & (legal - np.uint64(1)) == 0
    boards, states, legal = boards[single], states[single], legal[single]
    assert len(states) > 5
    policy = random_policy()
    actions, values, visits = search(policy.network(), 30, boards, states, legal, keys_of(states))
    _, own = policy.evaluate(boards, states, legal)
    assert (np.uint64(1) << actions.astype(np.uint64) == legal).all()
    assert (visits[np.arange(len(states)), actions] == 30).all()
    assert values == pytest.approx(own * (1 - 2 * states["player"]))  # nothing behind it was seen


def test_one_simulation_takes_the_likeliest_action() -> None:
    boards, states, legal = decisions(most=12)
    policy = random_policy()
    actions, _, _ = search(policy.network(), 1, boards, states, legal, keys_of(states))
    logits, _ = policy.evaluate(boards, states, legal)
    assert (actions == logits.argmax(axis=1)).all()


def test_nothing_is_read_of_actions_that_are_not_legal() -> None:
    policy, blinded = random_policy(), random_policy()
    for _, game in zip(range(4), last_positions(), strict=False):
        behind = [one for one in positions_behind(game) if one.phase not in CHANCE_PHASES]
        legal = {action for one in behind if not one.is_over for action in one.legal_actions()}
        others = sorted(set(range(N_ACTIONS)) - legal)
        blinded.tensors["action.bias"][:] = policy.tensors["action.bias"]
        blinded.tensors["action.bias"][others] = np.nan
        blinded.tensors["move.bias"][:] = policy.tensors["move.bias"]
        blinded.tensors["move.bias"][others] = np.nan
        assert same(searched(policy, 200, game), searched(blinded, 200, game))


def test_players_exchanged_the_value_is_the_opposite() -> None:
    """By a network that does not look at the seat, where nothing is left to chance."""
    policy, seat = random_policy(), next(f.start for f in FEATURES if f.name == "seat")
    policy.tensors["trunk.0.weight"][:, seat] = 0.0
    players = []
    for game in last_positions():
        if any(one.phase in CHANCE_PHASES for one in positions_behind(game)):
            continue
        action, value, visits = searched(policy, 60, game)
        other_action, other, other_visits = searched(policy, 60, game, swapped(game.state))
        assert (action == other_action).all()
        assert value == pytest.approx(-other, abs=1e-4)
        assert (visits == other_visits).all()
        players.append(game.player)
        if len(players) == 6:
            break
    assert set(players) == {0, 1}


# How it proposes and how it samples chance


@pytest.mark.parametrize("board", ["shikoku", "family:7"])
def test_as_it_was_before_dice_were_stratified(board: str) -> None:
    """By plain priors and drawn dice the actions of that version: what has changed is those two."""
    boards, states, legal = decisions((board,), games=16, most=8)
    keys = np.random.default_rng(14).integers(2**64, size=len(states), dtype=np.uint64)
    agent = PolicySearchAgent.from_policy(
        random_policy(), "p", network_search_config(100, temperature=1, dice="drawn")
    )
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert agent.act(boards, states, legal, keys).tolist() == golden[f"random_policy {board}"]


def test_the_temperature_divides_the_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Tree] = []

    def kept(threads: int, nodes: int, *, priors: bool) -> Tree:
        made.append(make_trees(threads, nodes, priors=priors))
        return made[-1]

    monkeypatch.setattr(searches, "cached_trees", kept)
    (boards, states, legal), policy = decisions(most=4), random_policy()
    logits, _ = policy.evaluate(boards, states, legal)
    for i in range(len(states)):
        one = slice(i, i + 1)
        for temperature in (0.5, 1.0, 1.5):
            agent = PolicySearchAgent.from_policy(
                policy, "p", network_search_config(1, temperature)
            )
            agent.act(boards[one], states[one], legal[one], np.array([3], np.uint64))
            tree = made.pop()
            moves = tree.edges["move"][0][: tree.nodes["edges"][0, 0]]
            odds = np.exp(logits[i][moves] / temperature)
            assert tree.priors[0][: len(moves)] == pytest.approx(odds / odds.sum(), rel=1e-4)


def telling(decision: float, chance: float) -> Policy:
    """A policy whose value is one number at decisions, another at chance."""
    tensors = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(SMALL).items()}
    tensors["trunk.0.weight"][SMALL.first, DECIDES] = 1.0
    tensors["value.0.weight"][0, 0] = 1.0
    tensors["value.1.bias"][0] = np.arctanh(chance)
    tensors["value.1.weight"][0, 0] = np.arctanh(decision) - np.arctanh(chance)
    return Policy(tensors)


@pytest.mark.parametrize(("chance", "wanted"), [("judged", 0.7), ("sampled", 0.2)])
def test_a_simulation_ends_at_chance_or_behind_it(chance: str, wanted: float) -> None:
    network, seen = telling(decision=0.2, chance=0.7).network(), 0
    for seed in range(40):
        game, rng = Game(seed=seed, chance="explicit"), np.random.default_rng(seed)
        while not game.is_over:
            if game.phase in CHANCE_PHASES:
                labels, odds = zip(*game.outcomes(), strict=True)
                game.play(labels[rng.choice(len(labels), p=odds)])
                continue
            actions = game.legal_actions()
            after = game.copy()
            after.play(actions[0])  # that of equal odds which is tried first
            if len(actions) > 1 and after.phase in CHANCE_PHASES:
                legal = np.array([game.legal_mask], np.uint64)
                position = PositionBatch(
                    game.boards, eval_tables_of(game.boards), game.state, legal
                )
                plan = network_search_config(1, chance=chance)
                found = searches.search(network, plan, position, np.ones(1, np.uint64))
                assert found.actions[0] == actions[0]
                assert abs(found.values[0]) == pytest.approx(wanted, abs=1e-6)
                seen += 1
            game.play(actions[rng.integers(len(actions))])
    assert seen > 20


def test_the_choice_stands_in_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    random_policy().save(path)
    spec = f"policy_search:{path},sims=20"
    assert make(f"{spec},chance=sampled").spec == f"{spec},chance=sampled"
    assert make(f"{spec},chance=judged").spec == spec


@pytest.mark.parametrize(
    ("spec", "digest"),
    [
        ("champion", "2179941a066176c9"),
        ("champion:sims=30", "fbcff1eb987a47ff"),
        ("champion:sims=30,temperature=1,dice=drawn", "7fdad77e3e4e27bc"),
        ("generalist", "6131d5ab00178c1b"),
        ("generalist:sims=30", "f011fe10380c7b34"),
    ],
)
def test_the_shipped_networks_play_what_they_played_when_they_were_made(
    spec: str, digest: str
) -> None:
    boards, states, legal = decisions(BOARDS)
    keys = np.arange(len(states), dtype=np.uint64)
    actions = make(spec).act(boards, states, legal, keys)
    assert hashlib.sha256(actions.astype("<i8").tobytes()).hexdigest()[:16] == digest


# Repeatable, and blind to luck


def test_the_luck_of_the_search_is_of_its_key_and_not_of_the_game() -> None:
    game = Game(seed=5)
    agent = PolicySearchAgent.from_policy(random_policy(), "p", 60)
    first, second = game.copy(luck="fresh", seed=1), game.copy(luck="fresh", seed=2)
    keys = np.arange(40, dtype=np.uint64)
    legal = np.full(40, game.legal_mask, np.uint64)
    told = [agent.act(one.boards, np.repeat(one.state, 40), legal, keys) for one in (first, second)]
    assert (told[0] == told[1]).all()
    network = random_policy().network()
    _, values, _ = search(network, 60, game.boards, np.repeat(game.state, 40), legal, keys)
    assert len(set(values.tolist())) > 20  # other keys, other dice
    for one in (first, second):
        while one.rounds < 4 and not one.is_over:
            one.play(one.legal_actions()[0])
    assert first.to_dict() != second.to_dict()  # their luck did differ


def test_positions_are_not_changed() -> None:
    boards, states, legal = decisions(games=8, most=8)
    before = states.copy()
    search(random_policy().network(), 40, boards, states, legal, keys_of(states))
    assert (states == before).all()


def test_many_simulations_of_one_position_stay_within_their_memory() -> None:
    game, policy = Game(seed=1), random_policy()
    for sims in (1, 2, 3, 10_000):
        actions, values, visits = searched(policy, sims, game)
        assert int(actions[0]) in game.legal_actions()
        assert -1 <= values[0] <= 1
        assert visits.sum() == sims


def test_two_nodes_for_each_simulation_are_memory_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the fewest nodes that do, the tree stays within them and every simulation is made."""
    made: list[Tree] = []

    def guarded(threads: int, nodes: int, *, priors: bool) -> Tree:
        whole = make_trees(threads, 2 * nodes, priors=priors)
        made.append(whole)
        for array in whole[2:]:
            array.view(np.uint8)[:] = 0
        return Tree(
            whole.size, whole.luck, *(array[:, : array.shape[1] // 2] for array in whole[2:])
        )

    monkeypatch.setattr(searches, "cached_trees", guarded)
    monkeypatch.setattr(searches, "_NODES_PER_NETWORK_SIM", 2)
    network = random_policy().network()
    boards, states, legal = decisions(most=40)
    for i in range(len(states)):
        one, sims = slice(i, i + 1), 2 + i % 3
        _, _, visits = search(
            network, sims, boards[one], states[one], legal[one], keys_of(states[one])
        )
        assert visits.sum() == sims
        tree = made.pop()
        assert tree.size["nodes"][0, 0] <= 2 * sims + 2
        assert not any(array[:, array.shape[1] // 2 :].view(np.uint8).any() for array in tree[2:])


# Strength


def test_it_beats_the_policy_that_leads_it() -> None:
    """One to which all actions are alike: what the search adds is its own."""
    policy = counting_policy(outlook=0.0)
    search_by, alone = (
        PolicySearchAgent.from_policy(policy, "search", 32),
        PolicyAgent.from_policy(policy, "policy"),
    )
    assert play_match(search_by, alone, 20, seed=1).score > 0.9
