"""The compiled forward pass, against PyTorch and a network built by hand."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from evaluated import terms_of
from networks import SMALL, counting_policy, decisions, inputs_of, random_policy

from tokaido_env.agents.champion import CHAMPION
from tokaido_env.agents.first_layer import quantize, whole_bias
from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import Phase
from tokaido_env.features.eval_tables import eval_tables_of, load_weights
from tokaido_env.features.network_inputs import AFTERSTATE_VALUES, INPUT_UNITS, encode_positions
from tokaido_env.learn.network import Moves, PolicyNetwork, load_weights as copy_weights, moves_of
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.observers import masks

POOL = BoardPool.load("family:train/12")
TINY = LayerSizes(7, 3, 1, 5, 2)


@pytest.fixture(scope="module")
def positions() -> Any:
    """Decisions on all boards of the pool: boards, states, legal, and the indices of the boards."""
    boards, states, legal = decisions([*POOL], games=48)
    indices = {record.tobytes(): i for i, record in enumerate(POOL.records)}
    which = np.array([indices[board.tobytes()] for board in boards])
    assert set(which.tolist()) == set(range(len(POOL)))
    assert set(states["phase"]) == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
    assert set(states["player"]) == {0, 1}
    return boards, states, legal, which


def legal_mask(legal: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    return masks(legal).astype(bool)


def by_torch(
    network: PolicyNetwork,
    which: npt.NDArray[np.int64],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores of legal actions, and values as log-odds / 2, of positions on the pool."""
    tables = eval_tables_of(POOL.records)
    inputs, afterstates = encode_positions(POOL.records, tables, which, states, legal)
    position, action = map(torch.from_numpy, moves_of(legal))
    moves = Moves(torch.from_numpy(afterstates), position, action)
    rounded = np.floor(inputs / INPUT_UNITS + 0.5).astype(np.float32) * INPUT_UNITS
    scores, values = network(torch.from_numpy(rounded), moves, torch.from_numpy(which))
    # The afterstate values that add to the scores are not rounded.
    difference = torch.from_numpy(inputs - rounded)[position, AFTERSTATE_VALUES + action]
    return scores + network.outlook["weight"] * difference, values


def rounded(policy: Policy) -> Policy:
    """Return a policy with the weights of the first layer that the integers stand for."""
    tensors = dict(policy.tensors)
    weight, bias = tensors["trunk.0.weight"], tensors["trunk.0.bias"]
    board = tensors.get("board.weight")
    layer = quantize(weight.T, bias, None if board is None else board.T)
    tensors["trunk.0.weight"] = (layer.weights * layer.scale / INPUT_UNITS[:, None]).T.copy()
    if board is None:
        tensors["trunk.0.bias"] = whole_bias(bias, layer.scale) * layer.scale
    return Policy(tensors)


@pytest.mark.parametrize("uses_board_features", [False, True])
@pytest.mark.parametrize("sizes", [LayerSizes(), SMALL, TINY])
def test_forward__computes_the_same_as_torch(
    sizes: LayerSizes, uses_board_features: bool, positions: Any
) -> None:
    boards, states, legal, which = positions
    policy = random_policy(sizes, uses_board_features=uses_board_features)
    network = PolicyNetwork(sizes, POOL.records if uses_board_features else None)
    copy_weights(network, rounded(policy))
    logits, values = policy.evaluate(boards, states, legal)
    with torch.no_grad():
        scores, expected = by_torch(network, which, states, legal)
    # The bias with a board is rounded for each board, so that it differs by up to half a step.
    closest = {"atol": 2e-3} if uses_board_features else {"atol": 2e-5}
    np.testing.assert_allclose(values, torch.tanh(expected).numpy(), **closest)
    np.testing.assert_allclose(logits[legal_mask(legal)], scores.numpy(), **closest)
    assert (logits[~legal_mask(legal)] == -np.inf).all()


def test_forward__computes_a_network_built_by_hand() -> None:
    boards, states, legal = decisions(games=8, most=12)
    logits, values = counting_policy(afterstate_factor=3.0).evaluate(boards, states, legal)
    afterstate_values = inputs_of(boards, states, legal)[0][:, AFTERSTATE_VALUES:][:, :N_ACTIONS]
    mask = legal_mask(legal)
    assert logits[mask] == pytest.approx(3.0 * afterstate_values[mask])
    weights = load_weights().mean(axis=0)
    for i, player in enumerate(states["player"]):
        terms, _ = terms_of(states[i : i + 1])
        ahead = terms[player].astype(int) - terms[1 - player]
        # A term's weight is rounded to a part in thousands.
        assert values[i] == pytest.approx(np.tanh(ahead @ weights / 20), abs=1e-3)


def test_first_layer__keeps_sums_within_16_bits(positions: Any) -> None:
    boards, states, legal, _ = positions
    inputs, _ = inputs_of(boards, states, legal)
    for policy in (random_policy(), Policy.load(CHAMPION)):
        weight, bias = policy.tensors["trunk.0.weight"], policy.tensors["trunk.0.bias"]
        layer = quantize(weight.T, bias, None)
        sums = np.floor(inputs / INPUT_UNITS + 0.5) @ layer.weights.astype(float)
        assert np.abs(sums + bias / layer.scale).max() < 2**14
        assert np.abs(layer.weights).max() < 2**15 - 1


def test_new_network__follows_the_heuristic() -> None:
    torch.manual_seed(0)
    boards, states, legal = decisions(games=16)
    logits, _ = PolicyNetwork(LayerSizes()).to_policy().evaluate(boards, states, legal)
    afterstate_values = inputs_of(boards, states, legal)[0][:, AFTERSTATE_VALUES:][:, :N_ACTIONS]
    chosen = afterstate_values[np.arange(len(states)), logits.argmax(axis=1)]
    assert chosen.mean() > 0.5 * afterstate_values[np.isfinite(logits)].mean()


@pytest.mark.parametrize("uses_board_features", [False, True])
def test_wider_network__starts_as_the_policy_and_can_learn(
    uses_board_features: bool, positions: Any
) -> None:
    *columns, which = positions
    policy = random_policy(TINY, uses_board_features=uses_board_features)
    torch.manual_seed(0)
    records = POOL.records if uses_board_features else None
    network = PolicyNetwork(LayerSizes(12, 8, 4, 9, 6), records)
    copy_weights(network, policy)
    both = network.to_policy().evaluate(*columns), policy.evaluate(*columns)
    for wide, narrow in zip(*both, strict=True):
        np.testing.assert_allclose(wide, narrow, atol=1e-5)
    scores, values = by_torch(network, which, *columns[1:])
    (scores.square().sum() + values.square().sum()).backward()
    for name, first_new in (("move.weight", 1), ("value.1.weight", 2), ("context.weight", 3)):
        gradient = network.get_parameter(name).grad
        assert gradient is not None
        assert (gradient[..., first_new:] != 0).any(), name


def test_copy_weights__refuses_a_wider_policy() -> None:
    network = PolicyNetwork(SMALL)
    for layer in range(len(SMALL)):
        wider = LayerSizes(*(units + (i == layer) for i, units in enumerate(SMALL)))
        with pytest.raises(RunError, match="at most 24, 10, 6, 16, 8 units, got"):
            copy_weights(network, random_policy(wider))
    with pytest.raises(RunError, match="expected a policy without board features"):
        copy_weights(network, random_policy(uses_board_features=True))
