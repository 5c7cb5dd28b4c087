"""The PyTorch network: export, import, repeatable gradients and the second value."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from networks import SMALL, decisions, inputs_of, random_policy

from tokaido_env.agents.policy import LayerSizes
from tokaido_env.learn.network import (
    VALUE_AGAINST,
    Moves,
    PolicyNetwork,
    deterministic,
    load_weights,
    moves_of,
    take_step,
)


def evaluator(games: int, most: int = 40) -> Callable[[PolicyNetwork], tuple[torch.Tensor, ...]]:
    """Return a function that evaluates a network: scores, values."""
    boards, states, legal = decisions(games=games, most=most)
    inputs, results = map(torch.from_numpy, inputs_of(boards, states, legal))
    moves = Moves(results, *map(torch.from_numpy, moves_of(legal)))
    return lambda network: network(inputs, moves)


def test_deterministic__repeats_gradients_exactly() -> None:
    """Enough positions for several threads; without `deterministic` some of ten runs differ."""
    evaluate = evaluator(games=64, most=2000)
    torch.manual_seed(0)
    network = PolicyNetwork(LayerSizes())

    def gradients() -> list[bytes]:
        network.zero_grad()
        scores, values = evaluate(network)
        (scores.square().sum() + values.sum()).backward()
        return [np.asarray(weight.grad).tobytes() for weight in network.parameters()]

    with deterministic():
        assert torch.are_deterministic_algorithms_enabled()
        first = gradients()
        assert all(gradients() == first for _ in range(9))
    assert not torch.are_deterministic_algorithms_enabled()


def test_second_value__starts_as_the_policys_and_is_not_exported() -> None:
    network, policy = PolicyNetwork(SMALL, against_others=True), random_policy()
    load_weights(network, policy)
    state = network.state_dict()
    for own, theirs in VALUE_AGAINST.items():
        assert (state[own].numpy() == policy.tensors[theirs]).all()
    with torch.no_grad():
        network.get_parameter("against.bias").add_(1.0)
    kept = network.to_policy().tensors
    assert kept.keys() == policy.tensors.keys()
    assert all((kept[name] == policy.tensors[name]).all() for name in kept)


def test_take_step__limits_the_norm_and_refuses_infinite_gradients() -> None:
    """By hand: the gradient (30, 40) has norm 50; that of the root of 0 is infinite."""
    weights = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([weights], lr=1.0)
    take_step(optimizer, weights @ torch.tensor([30.0, 40.0]), 5.0, "step 1")
    assert torch.allclose(weights, torch.tensor([-3.0, -4.0]))
    take_step(optimizer, weights @ torch.tensor([-3.0, -4.0]), 5.0, "step 2")
    assert torch.allclose(weights, torch.zeros(2), atol=1e-5)
    weights.data.zero_()
    with pytest.raises(FloatingPointError, match=r"^step 3: the gradient's norm is inf$"):
        take_step(optimizer, weights.sqrt().sum(), 5.0, "step 3")
    assert not weights.any()
