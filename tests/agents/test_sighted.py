"""Networks with sight: what they compute, their files, and a value that is defined at chance."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from networks import SIGHTED, decisions, random_policy
from safetensors import safe_open
from safetensors.numpy import save_file
from solved import best, last_positions, solve

from tokaido_env import Batch, Game
from tokaido_env.agents import PolicyError, make, search as searches
from tokaido_env.agents.heuristic import guides_of
from tokaido_env.agents.inference import Positions
from tokaido_env.agents.inputs import OUTLOOK, read_moves, read_positions
from tokaido_env.agents.plan import led_plan
from tokaido_env.agents.policy import Policy, SightedSizes, shapes_of
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import FEATURES
from tokaido_env.core.state import CHANCE_PHASES
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.games import moves_of, spread
from tokaido_env.learn.sighted import Moves, SightedNetwork, frozen, load_weights

DECIDES = next(feature.start for feature in FEATURES if feature.name == "decides")


def computed_by_torch(
    policy: Policy, pool: BoardPool, states: npt.NDArray[np.void], legal: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Logits and values of positions, the i-th on the i-th board."""
    assert isinstance(policy.sizes, SightedSizes)
    network = SightedNetwork(policy.sizes, pool.records if policy.sees_board else None)
    load_weights(network, policy)
    with torch.no_grad():
        scores, values = ask(network, pool, np.arange(len(states)) % len(pool), states, legal)
    position, action = map(torch.from_numpy, moves_of(legal))
    return spread(scores, position, action, len(legal)).numpy(), torch.tanh(values).numpy()


def ask(
    network: SightedNetwork,
    pool: BoardPool,
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of legal actions, and values as log odds / 2, of positions on such boards."""
    inputs, results = read_moves(pool.records, guides_of(pool.records), which, states, legal)
    position, action = map(torch.from_numpy, moves_of(legal))
    moves = Moves(torch.from_numpy(results), position, action)
    scores, values, _ = network(torch.from_numpy(inputs), moves, torch.from_numpy(which))
    return scores, values


@pytest.mark.parametrize("sees_board", [False, True])
@pytest.mark.parametrize("sizes", [SIGHTED, SightedSizes(), SightedSizes(7, 3, 1, 5, 2)])
def test_the_compiled_network_computes_what_torch_computes(
    sizes: SightedSizes, sees_board: bool
) -> None:
    pool = BoardPool.load("family:train/6")
    batch = Batch(60, pool, observation=None)
    batch.reset(seed=1)
    which = batch.slots["board"]
    for _ in range(50):
        batch.play("random")
    order = (
        np.concatenate([np.flatnonzero(which == i)[:4] for i in range(6)]).reshape(6, 4).T.ravel()
    )
    states, legal = batch.states[order], batch.legal[order]
    policy = random_policy(sizes, sees_board=sees_board)
    wanted, wanted_values = computed_by_torch(policy, pool, states, legal)
    logits, values = policy.evaluate(batch.boards_of(order), states, legal)
    np.testing.assert_allclose(values, wanted_values, atol=1e-5)
    there = np.isfinite(logits)
    np.testing.assert_allclose(logits[there], wanted[there], atol=5e-5)
    assert (there == (legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64) & np.uint64(1))).all()


def test_an_untrained_network_leans_on_the_heuristic() -> None:
    torch.manual_seed(0)
    boards, states, legal = decisions(games=16)
    logits, _ = frozen(SightedNetwork(SightedSizes())).evaluate(boards, states, legal)
    outlook = read_positions(boards, states, legal)[:, OUTLOOK : OUTLOOK + N_ACTIONS]
    chosen = outlook[np.arange(len(states)), logits.argmax(axis=1)]
    assert chosen.mean() > 0.5 * outlook[np.isfinite(logits)].mean()


def test_weights_of_another_network_are_refused() -> None:
    network = SightedNetwork(SIGHTED)
    with pytest.raises(RunError, match="expected a policy with sight"):
        load_weights(network, random_policy())
    for layer in range(len(SIGHTED)):
        wider = SightedSizes(*(units + (i == layer) for i, units in enumerate(SIGHTED)))
        with pytest.raises(RunError, match=r"expected at most SightedSizes\(first=24.*has Sighted"):
            load_weights(network, random_policy(wider))
    with pytest.raises(RunError, match="the policy reads the board, this run does not"):
        load_weights(network, random_policy(SIGHTED, sees_board=True))


@pytest.mark.parametrize("sees_board", [False, True])
def test_a_wider_network_begins_as_the_policy_plays(sees_board: bool) -> None:
    pool = BoardPool.load("family:train/3")
    policy = random_policy(SightedSizes(7, 3, 1, 5, 2), sees_board=sees_board)
    torch.manual_seed(0)
    network = SightedNetwork(SightedSizes(12, 8, 4, 9, 6), pool.records if sees_board else None)
    load_weights(network, policy)
    batch = Batch(30, pool, observation=None)
    batch.reset(seed=1)
    for _ in range(40):
        batch.play("random")
    seen = batch.boards_of(np.arange(30)), batch.states, batch.legal
    for own, theirs in zip(frozen(network).evaluate(*seen), policy.evaluate(*seen), strict=True):
        np.testing.assert_allclose(own, theirs, atol=1e-5)
    which = batch.slots["board"].astype(np.int64)
    scores, values = ask(network, pool, which, batch.states, batch.legal)
    (scores.square().sum() + values.square().sum()).backward()  # and what is new can learn
    for name, first_new in (("move.weight", 1), ("value.1.weight", 2), ("context.weight", 3)):
        gradient = network.get_parameter(name).grad
        assert gradient is not None
        assert (gradient[..., first_new:] != 0).any(), name


# Files


@pytest.mark.parametrize("sees_board", [False, True])
def test_a_policy_file_comes_back_as_it_was(tmp_path: Path, sees_board: bool) -> None:
    policy = random_policy(SIGHTED, sees_board=sees_board)
    policy.save(tmp_path / "policy")
    again = Policy.load(tmp_path / "policy")
    assert again.sizes == SIGHTED
    assert (again.has_sight, again.sees_board) == (True, sees_board)
    assert {name: t.shape for name, t in again.tensors.items()} == shapes_of(SIGHTED, sees_board)
    assert all((again.tensors[name] == t).all() for name, t in policy.tensors.items())
    with safe_open(tmp_path / "policy", framework="numpy") as file:
        assert file.metadata()["version"] == "4"
    game = Game(seed=1)
    agent = make(f"policy:{tmp_path / 'policy'}")
    legal = np.array([game.legal_mask], np.uint64)
    actions = agent.act(game.boards, game.state, legal, np.zeros(1, np.uint64))
    assert actions[0] in game.legal_actions()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("inputs", "0123456789abcdef", r"made for inputs '0123456789abcdef', this version has '"),
        ("version", "5", r"made for version '5', this version has '2', '3', '4'"),
        ("version", "2", r"made for inputs"),
        ("board", "0123456789abcdef", r"made for board '0123456789abcdef', this version has '"),
    ],
)
def test_a_file_for_other_inputs_is_refused(
    tmp_path: Path, key: str, value: str, message: str
) -> None:
    path = tmp_path / "policy"
    random_policy(SIGHTED, sees_board=key == "board").save(path)
    with safe_open(path, framework="numpy") as file:
        header = file.metadata() | {key: value}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, header)
    with pytest.raises(PolicyError, match=message):
        Policy.load(path)


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("value.0.weight", None, "tensors missing or unknown"),
        ("value.0.weight", (10, 30), r"trunk.1.weight|trunk.0.weight|expected finite float32"),
        (
            "value.1.weight",
            (2, 10),
            r"value.1.weight: expected finite float32 numbers of shape \(1",
        ),
        (
            "result.weight",
            (6, 32),
            r"result.weight: expected finite float32 numbers of shape \(6, 49",
        ),
    ],
)
def test_broken_tensors_are_told(tmp_path: Path, name: str, tensor: Any, message: str) -> None:
    policy = random_policy(SIGHTED)
    if tensor is None:
        del policy.tensors[name]
    else:
        policy.tensors[name] = np.zeros(tensor, np.float32)
    policy.save(tmp_path / "policy")
    with pytest.raises(PolicyError, match=message):
        Policy.load(tmp_path / "policy")


# A value at chance


def telling(decision: float, chance: float) -> Policy:
    """A policy whose value is one number at decisions, another at chance."""
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes_of(SIGHTED).items()}
    tensors["trunk.0.weight"][SIGHTED.first, DECIDES] = 1.0
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
                position = Positions(game.boards, guides_of(game.boards), game.state, legal)
                plan = led_plan(1, chance=chance)
                found = searches.search(network, plan, position, np.ones(1, np.uint64))
                assert found.actions[0] == actions[0]
                assert abs(found.values[0]) == pytest.approx(wanted, abs=1e-6)
                seen += 1
            game.play(actions[rng.integers(len(actions))])
    assert seen > 20


def test_with_a_value_at_chance_the_search_finds_the_best_end() -> None:
    """A random network's value counts less the more is searched: chance is played out there."""
    policy, found = random_policy(SIGHTED), 0
    for game in last_positions():
        values = solve(game)
        legal, key = np.array([game.legal_mask], np.uint64), np.array([7], np.uint64)
        position = Positions(game.boards, guides_of(game.boards), game.state, legal)
        actions, _, _ = searches.search(policy.network(), led_plan(2000), position, key)
        assert values[int(actions[0])] == pytest.approx(best(game, values), abs=0.05)
        found += 1
        if found == 9:
            break
    assert found == 9


def test_the_choice_stands_in_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    random_policy(SIGHTED).save(path)
    spec = f"policy_search:{path},sims=20,chance=sampled"
    assert make(spec).spec == spec
    assert (
        make(f"policy_search:{path},sims=20,chance=judged").spec == f"policy_search:{path},sims=20"
    )
