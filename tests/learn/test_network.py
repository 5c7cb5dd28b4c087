"""The learner's network: what is trained is what is exported."""

from collections.abc import Callable

import numpy as np
import torch
from networks import SMALL, decisions, inputs_of, random_policy

from tokaido_env.agents.policy import LayerSizes, tensor_shapes
from tokaido_env.learn.network import (
    VALUE_AGAINST,
    Moves,
    PolicyNetwork,
    deterministic,
    load_weights,
)
from tokaido_env.learn.rollouts import moves_of


def asked(games: int, most: int = 40) -> Callable[[PolicyNetwork], tuple[torch.Tensor, ...]]:
    """A function that asks a network about positions: scores, values, auxiliary."""
    boards, states, legal = decisions(games=games, most=most)
    inputs, results = map(torch.from_numpy, inputs_of(boards, states, legal))
    moves = Moves(results, *map(torch.from_numpy, moves_of(legal)))
    return lambda network: network(inputs, moves)


def test_an_exported_network_comes_back_with_the_same_outputs() -> None:
    torch.manual_seed(0)
    network, other = PolicyNetwork(SMALL), PolicyNetwork(SMALL)
    policy = network.to_policy({"steps": 3})
    assert policy.training == {"steps": 3}
    assert {name: t.shape for name, t in policy.tensors.items()} == tensor_shapes(SMALL)
    ask = asked(games=8)
    with torch.no_grad():
        before = [part.clone() for part in ask(network)[:2]]
        assert not torch.equal(ask(other)[0], before[0])
        load_weights(other, policy)
        assert all(torch.equal(a, b) for a, b in zip(ask(other), before, strict=False))


def test_an_exported_policy_does_not_change_with_the_network() -> None:
    network = PolicyNetwork(SMALL)
    policy = network.to_policy()
    kept = policy.tensors["value.0.bias"].copy()
    with torch.no_grad():
        for weight in network.parameters():
            weight += 1.0
    assert (policy.tensors["value.0.bias"] == kept).all()


def test_many_positions_give_the_same_gradients_each_time() -> None:
    """More than PyTorch leaves to one thread; without `repeatable` some of ten would differ."""
    ask = asked(games=64, most=2000)
    torch.manual_seed(0)
    network = PolicyNetwork(LayerSizes())

    def gradients() -> list[bytes]:
        network.zero_grad()
        scores, values, auxiliary = ask(network)
        (scores.square().sum() + values.sum() + auxiliary.sum()).backward()
        return [np.asarray(weight.grad).tobytes() for weight in network.parameters()]

    with deterministic():
        assert torch.are_deterministic_algorithms_enabled()
        first = gradients()
        assert all(gradients() == first for _ in range(9))
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_second_value_begins_as_a_policys_and_is_no_part_of_one() -> None:
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
