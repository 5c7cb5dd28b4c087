"""The compiled forward pass against PyTorch, and an untrained network against the heuristic."""

from typing import Any

import numpy as np
import pytest
import torch
from evaluated import terms_of
from networks import SMALL, counting_policy, decisions, inputs_of, random_policy

from tokaido_env import Batch
from tokaido_env.agents.champion import CHAMPION
from tokaido_env.agents.inference import AFTERSTATE_LOGIT
from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.state import STATE, Phase
from tokaido_env.features.afterstates import CHANCE, DECISION, END, Afterstates, afterstates_of
from tokaido_env.features.network_inputs import INPUT_UNITS
from tokaido_env.features.terms import LOG_ODDS
from tokaido_env.learn.network import ValueNetwork, load_policy
from tokaido_env.learn.settings import RunError
from tokaido_env.observers import masks

POOL = BoardPool.load("family:train/12")
TINY = LayerSizes(7, 3)


@pytest.fixture(scope="module")
def positions() -> Any:
    """Decisions of whole games on all boards: states, legal, and the indices of the boards."""
    batch = Batch(36, POOL, observation=None, autoreset=False)
    batch.reset(seed=3)
    rows = []
    while not batch.over.all():
        at = np.flatnonzero(~batch.over)
        rows.append((batch.states[at], batch.legal[at], batch.episode_info["board"][at]))
        for _ in range(7):
            batch.play("greedy")
    states, legal, which = (np.concatenate(column) for column in zip(*rows, strict=True))
    assert set(which.tolist()) == set(range(len(POOL)))
    assert set(states["phase"]) == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
    return states.astype(STATE), legal, which.astype(np.int64)


def after_each(positions: Any) -> Afterstates:
    """The afterstates of positions, with chance, decisions of both players, and ends."""
    states, legal, which = positions
    found = afterstates_of(POOL.records, which, states, legal, inputs="afterstates", margin=False)
    assert set(found.kind.tolist()) == {CHANCE, DECISION, END}
    return found


def by_torch(network: ValueNetwork, positions: Any) -> torch.Tensor:
    """Return the values of all afterstates for the player who moved, with rounded inputs."""
    states = positions[0]
    after = after_each(positions)
    rounded = np.floor(after.inputs / INPUT_UNITS + 0.5).astype(np.float32) * INPUT_UNITS
    values = torch.tanh(network(torch.from_numpy(rounded)))
    own = np.where(after.viewer == states["player"][after.game], 1, -1)
    is_over, result = torch.from_numpy(after.kind == END), torch.from_numpy(after.result)
    return torch.where(is_over, result, values * torch.from_numpy(own))


def rounded(policy: Policy) -> Policy:
    """Return a policy with the weights of the first layer that the integers stand for."""
    tensors = dict(policy.tensors)
    weights = policy.network()
    scale = weights.first_scale[0]
    tensors["first.weight"] = (weights.first[0] * scale / INPUT_UNITS[:, None]).T.copy()
    tensors["first.bias"] = weights.first_bias[0] * scale
    return Policy(tensors)


@pytest.mark.parametrize("sizes", [LayerSizes(256, 64), SMALL, TINY])
def test_forward__computes_the_afterstate_values_of_torch(
    sizes: LayerSizes, positions: Any
) -> None:
    states, legal, which = positions
    policy = random_policy(sizes)
    network = ValueNetwork(sizes)
    load_policy(network, rounded(policy))
    logits, values = policy.evaluate(POOL.records[which], states, legal)
    with torch.no_grad():
        expected = by_torch(network, positions).numpy()
    is_legal = masks(legal).astype(bool)
    np.testing.assert_allclose(logits[is_legal] / AFTERSTATE_LOGIT, expected, atol=2e-5)
    assert (logits[~is_legal] == -np.inf).all()
    assert (logits.max(axis=1) == AFTERSTATE_LOGIT * values).all()


def test_evaluate__has_the_terms_of_the_heuristic_as_inputs() -> None:
    """A policy that adds them up has the values that follow from `terms_of`."""
    boards, states, legal = decisions(games=8, most=12)
    board, which = boards[:1], np.zeros(len(states), np.int64)
    logits, _ = counting_policy().evaluate(board, states, legal)
    weights = LOG_ODDS.mean(axis=0)
    after = afterstates_of(board, which, states, legal, inputs=None, margin=False)
    for i, (game, action) in enumerate(zip(after.game, after.action, strict=True)):
        terms, _ = terms_of(after.states[i : i + 1])
        player = states["player"][game]
        ahead = terms[player].astype(int) - terms[1 - player]
        # A term's weight is rounded to a part in thousands.
        expected = AFTERSTATE_LOGIT * np.tanh(ahead @ weights / 20)
        assert logits[game, action] == pytest.approx(expected, abs=0.1)
    assert after.kind.max() < END


def test_first_layer__keeps_sums_within_16_bits(positions: Any) -> None:
    states, _, which = positions
    inputs = inputs_of(POOL.records[which], states)
    for policy in (random_policy(), Policy.load(CHAMPION)):
        weights = policy.network()
        sums = np.floor(inputs / INPUT_UNITS + 0.5) @ weights.first[0].astype(float)
        assert np.abs(sums + weights.first_bias[0]).max() < 2**14
        assert np.abs(weights.first).max() < 2**15 - 1


def test_wider_network__starts_as_the_policy_and_can_learn(positions: Any) -> None:
    states, legal, which = positions
    policy = random_policy(TINY)
    torch.manual_seed(0)
    network = ValueNetwork(LayerSizes(12, 8))
    load_policy(network, policy)
    columns = POOL.records[which], states, legal
    both = network.to_policy().evaluate(*columns), policy.evaluate(*columns)
    for wide, narrow in zip(*both, strict=True):
        np.testing.assert_allclose(wide, narrow, atol=1e-5)
    by_torch(network, positions).square().sum().backward()  # type: ignore[no-untyped-call]
    for name, first_new in (("value.weight", 3), ("second.weight", 7)):
        gradient = network.get_parameter(name).grad
        assert gradient is not None
        assert (gradient[..., first_new:] != 0).any(), name


def test_load_policy__refuses_a_wider_policy() -> None:
    network = ValueNetwork(SMALL)
    for layer in range(len(SMALL)):
        wider = LayerSizes(*(units + (i == layer) for i, units in enumerate(SMALL)))
        with pytest.raises(RunError, match="at most 24, 10 units, got"):
            load_policy(network, random_policy(wider))
