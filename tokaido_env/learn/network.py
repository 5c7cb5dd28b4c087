"""The value network in PyTorch, its values of positions, and its conversion to policy files.

`agents.policy` documents its layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tokaido_env.agent import Legal, States
from tokaido_env.agents.inference import AFTERSTATE_LOGIT
from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import OVER
from tokaido_env.features.afterstates import afterstates_of
from tokaido_env.features.network_inputs import N_INPUTS, encode_positions
from tokaido_env.learn.settings import RunError
from tokaido_env.observers import masks

ROW_MULTIPLE = 512
"""Matrices are padded to a multiple of this many rows: PyTorch plans the product of each new size.
"""


class ValueNetwork(nn.Module):
    """The trainable network of a policy, with the same tensor names.

    Its weights begin random, and all of its values as 0.

    Args:
        sizes: widths of the layers.
    """

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.first = nn.Linear(N_INPUTS, sizes.first)
        self.second = nn.Linear(sizes.first, sizes.second)
        self.value = nn.Linear(sizes.second, 1)
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the values of positions as log odds / 2, float32 (n,).

        Args:
            inputs: float32 (n, N_INPUTS).
        """
        first = torch.relu(self.first(inputs))
        values: torch.Tensor = self.value(torch.relu(self.second(first)))
        return values[:, 0]

    def to_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return an array as a tensor of its dtype and shape on the network's device."""
        return torch.from_numpy(array).to(self.first.weight.device)

    def to_policy(self, training: dict[str, Any] | None = None) -> Policy:
        """Return a copy of the network as a `Policy`, which agents play and files store.

        Args:
            training: a summary of the training, for the header of the policy file.
        """
        tensors = {name: t.detach().cpu().numpy().copy() for name, t in self.state_dict().items()}
        return Policy(tensors, training or {})


def evaluate_positions(
    network: ValueNetwork,
    boards: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
) -> torch.Tensor:
    """Return the values of positions, as log odds / 2 for `active_seat`: float32 (n,).

    Args:
        network: the network.
        boards: `BOARD` (b,).
        which: int64 (n,), the index of each position's board.
        states: `STATE` (n,), at decisions or at chance.
    """
    inputs = network.to_device(encode_positions(boards, which, states, ROW_MULTIPLE))
    values: torch.Tensor = network(inputs)
    return values[: len(states)]


def action_values(
    network: ValueNetwork,
    boards: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    legal: Legal,
) -> torch.Tensor:
    """Return the values of the actions of n positions for the player to decide.

    They are float32 (n, N_ACTIONS) in [-1, 1], those of afterstates, and 0 where illegal.

    Args:
        network: the network.
        boards: `BOARD` (b,).
        which: int64 (n,), the index of each position's board.
        states: `STATE` (n,), at decisions.
        legal: uint64 (n,), the legal actions as bits.
    """
    after = afterstates_of(boards, which, states, legal, inputs=None, margin=False)
    log_odds = evaluate_positions(network, boards, which[after.game], after.states)
    movers = states["player"][after.game]
    signs = np.where(after.viewer == movers, np.float32(1), np.float32(-1))
    is_over = network.to_device(after.states["phase"] == OVER)
    values = torch.tanh(log_odds) * network.to_device(signs)
    values = torch.where(is_over, network.to_device(after.result), values)
    at = network.to_device(after.game), network.to_device(after.action)
    return values.new_zeros(len(legal), N_ACTIONS).index_put(at, values)


def masked_logits(values: torch.Tensor, legal: Legal) -> torch.Tensor:
    """Return the logits of actions, float32 (n, N_ACTIONS): 16 times the values, -inf if illegal.

    Args:
        values: float32 (n, N_ACTIONS) in [-1, 1], as from `action_values`.
        legal: uint64 (n,), the legal actions as bits.
    """
    illegal = torch.from_numpy(~masks(legal)).to(values.device)
    return (float(AFTERSTATE_LOGIT) * values).masked_fill(illegal, -torch.inf)


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Set the number of PyTorch's threads, which changes how sums are rounded.

    OpenMP keeps one number per calling thread, and Numba changes it too: without this, two threads
    of a process, or two machines, would get different bytes.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def deterministic() -> Iterator[None]:
    """Make PyTorch's results repeatable: by default its threads add in any order."""
    options: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), options.fill_uninitialized_memory
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True)
    options.fill_uninitialized_memory = False  # nothing reads uninitialised memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        options.fill_uninitialized_memory = before[1]
        torch.set_float32_matmul_precision(precision)


def take_step(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, max_grad_norm: float, where: str
) -> None:
    """Take a step of an optimizer, with the gradient scaled down to a norm if it is larger.

    Args:
        optimizer: of the weights.
        loss: a scalar.
        max_grad_norm: that norm.
        where: begins the error.

    Raises:
        FloatingPointError: if the loss or the norm is not finite; the weights stay as they are.
    """
    optimizer.zero_grad()
    if not torch.isfinite(loss):
        raise FloatingPointError(f"{where}: the loss is {loss.item()}")
    loss.backward()  # type: ignore[no-untyped-call]
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
    if not torch.isfinite(norm):
        raise FloatingPointError(f"{where}: the gradient's norm is {norm.item()}")
    optimizer.step()


def seed32(seed: int) -> int:
    """Return a 32-bit seed, as PyTorch and NumPy take, from any seed."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def load_policy(network: ValueNetwork, policy: Policy) -> None:
    """Load a policy's weights into a network.

    The network's layers may be wider: new units start with zero outgoing weights, so that the
    network plays like the policy.

    Raises:
        RunError: if a layer of the policy is wider; the network stays as it is.
    """
    own, theirs = network.sizes, policy.sizes
    if own.first < theirs.first or own.second < theirs.second:
        raise RunError(
            f"start_from: expected layers of at most {own.first}, {own.second} units, got "
            f"{theirs.first}, {theirs.second}: raise width and second_width"
        )
    state = network.state_dict()
    for name, tensor in policy.tensors.items():
        _copy_into_wider(state[name], torch.from_numpy(tensor))


def _copy_into_wider(wide: torch.Tensor, narrow: torch.Tensor) -> None:
    """Copy a layer into a wider one; its new units get zero outgoing weights."""
    rows = len(narrow)
    if narrow.dim() == 1:
        wide[:rows] = narrow
        return
    wide[:rows] = 0.0
    wide[:rows, : narrow.shape[1]] = narrow
