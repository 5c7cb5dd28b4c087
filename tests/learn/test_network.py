"""The learner's network: what is trained is what is exported."""

import numpy as np
import pytest
import torch
from networks import SMALL, decisions, random_policy

from tokaido_env.agents.inputs import N_TRUNK, OUTLOOK, read_positions
from tokaido_env.agents.policy import Sizes, shapes_of
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.network import MoveNetwork, frozen, load_weights, repeatable


def test_an_exported_network_comes_back_with_the_same_outputs() -> None:
    torch.manual_seed(0)
    network, other = MoveNetwork(SMALL), MoveNetwork(SMALL)
    policy = frozen(network, {"steps": 3})
    assert policy.training == {"steps": 3}
    assert {name: t.shape for name, t in policy.tensors.items()} == shapes_of(SMALL)
    boards, states, legal = decisions(games=8)
    inputs = torch.from_numpy(read_positions(boards, states, legal))
    allowed = torch.from_numpy(np.isfinite(policy.evaluate(boards, states, legal)[0]))
    with torch.no_grad():
        before = [part.clone() for part in network(inputs, allowed)]
        assert not torch.equal(other(inputs, allowed)[0], before[0])
        load_weights(other, policy)
        assert all(torch.equal(a, b) for a, b in zip(other(inputs, allowed), before, strict=True))


def test_an_exported_policy_does_not_change_with_the_network() -> None:
    network = MoveNetwork(SMALL)
    policy = frozen(network)
    kept = policy.tensors["value.bias"].copy()
    with torch.no_grad():
        network.value.bias += 1.0
    assert (policy.tensors["value.bias"] == kept).all()


def test_a_policy_of_other_sizes_is_refused_and_nothing_is_changed() -> None:
    network = MoveNetwork(SMALL)
    before = frozen(network)
    message = r"start_from: expected Sizes\(first=24.*the policy has Sizes\(first=16, second=8, mo"
    with pytest.raises(RunError, match=message):
        load_weights(network, random_policy(Sizes(16, 8, 4)))
    after = frozen(network)
    assert all((before.tensors[name] == after.tensors[name]).all() for name in before.tensors)


def test_an_untrained_network_leans_on_the_heuristic() -> None:
    torch.manual_seed(0)
    boards, states, legal = decisions(games=16)
    logits, _ = frozen(MoveNetwork(Sizes())).evaluate(boards, states, legal)
    outlook = read_positions(boards, states, legal)[:, OUTLOOK:N_TRUNK]
    chosen = outlook[np.arange(len(states)), logits.argmax(axis=1)]
    assert chosen.mean() > 0.5 * outlook[np.isfinite(logits)].mean()


def test_many_positions_give_the_same_gradients_each_time() -> None:
    """More than PyTorch leaves to one thread; without `repeatable` some of ten would differ."""
    boards, states, legal = decisions(games=64, moves=60, most=2000)
    inputs = torch.from_numpy(read_positions(boards, states, legal))
    bits = legal[:, None] >> np.arange(N_ACTIONS, dtype=np.uint64) & np.uint64(1)
    allowed = torch.from_numpy(bits.astype(bool))
    assert len(inputs) > 2000
    torch.manual_seed(0)
    network = MoveNetwork(Sizes())

    def gradients() -> list[bytes]:
        network.zero_grad()
        logits, values = network(inputs, allowed)
        (logits.square().sum() + values.sum()).backward()
        return [weight.grad.numpy().tobytes() for weight in network.parameters()]

    with repeatable():
        assert torch.are_deterministic_algorithms_enabled()
        first = gradients()
        assert all(gradients() == first for _ in range(9))
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_second_value_begins_as_a_policys_and_is_no_part_of_one() -> None:
    network, policy = MoveNetwork(SMALL, against_others=True), random_policy()
    load_weights(network, policy)
    assert network.against is not None
    assert (network.against.weight.detach().numpy() == policy.tensors["value.weight"]).all()
    with torch.no_grad():
        network.against.bias += 1.0
    kept = frozen(network).tensors
    assert kept.keys() == policy.tensors.keys()
    assert all((kept[name] == policy.tensors[name]).all() for name in kept)
