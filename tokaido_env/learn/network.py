"""The learner's network in PyTorch, and how it becomes a policy file.

No trainer is needed here, and nothing else in training knows what the network is made of; `policy`
tells what its parts are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tokaido_env.agents.heuristic import N_TERMS
from tokaido_env.agents.inputs import MOST_LEGAL, N_TRUNK, OUTLOOK
from tokaido_env.agents.policy import BOARD, Policy, Sizes
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.learn.declared import RunError

FIRST_OUTLOOK = 50.0  # at first: the untrained policy draws by the heuristic, with some noise
MOVE_BIAS = 0.1  # standard deviation, at first

AGAINST = {"against.weight": "value.weight", "against.bias": "value.bias"}
"""Tensors of the second value, and those of a policy that they begin as."""


class MoveNetwork(nn.Module):
    """The network of `policy` in PyTorch: what is trained, with the same names of tensors.

    Args:
        sizes: how wide its layers are.
        boards: `BOARD` (b,), the boards that it will be trained on, if it reads them.
        against_others: whether it has a second value, of games against others than itself: what a
            trainer needs there, and no part of a policy.
    """

    def __init__(
        self,
        sizes: Sizes,
        boards: npt.NDArray[np.void] | None = None,
        *,
        against_others: bool = False,
    ) -> None:
        super().__init__()
        self.trunk = nn.ModuleList(
            [nn.Linear(N_TRUNK, sizes.first), nn.Linear(sizes.first, sizes.second)]
        )
        self.action = nn.Linear(sizes.second, N_ACTIONS)
        self.result = nn.Linear(N_TERMS, sizes.move, bias=False)
        self.context = nn.Linear(sizes.second, sizes.move, bias=False)
        self.move = _Moves(sizes.move)
        self.outlook = _Factor()
        self.value = nn.Linear(sizes.second, 1)
        self.board = None if boards is None else _Boards(sizes.first, boards)
        self.against = nn.Linear(sizes.second, 1) if against_others else None

    def forward(
        self,
        inputs: torch.Tensor,
        legal: torch.Tensor,
        board: torch.Tensor | None = None,
        self_play: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, N_ACTIONS), 0 where illegal, and values (n, 1).

        Args:
            inputs: float32 (n, N_INPUTS), by `inputs.read_positions`.
            legal: bool (n, N_ACTIONS).
            board: int64 (n,), which of its boards each position is on, if it reads them.
            self_play: bool (n,), whether the game is against itself; of the others the value is
                the second one, if there is one.
        """
        layer: Any = self.trunk[0]
        trunk = inputs[:, :N_TRUNK]
        if self.board is None:
            first = layer(trunk)
        else:
            first = torch.addmm(self.board(board, layer.bias), trunk, layer.weight.T)
        hidden = torch.relu(self.trunk[1](torch.relu(first)))
        game, action = legal.nonzero(as_tuple=True)
        rows = torch.arange(MOST_LEGAL) < legal.sum(dim=1, keepdim=True)
        result = inputs[:, N_TRUNK:].reshape(-1, MOST_LEGAL, N_TERMS)[rows]
        context = self.context(hidden)[game]
        scores = self.move(self.result(result) + context, action)
        scores = scores + self.action(hidden)[game, action]
        scores = scores + self.outlook.weight * inputs[game, OUTLOOK + action]
        logits = torch.zeros_like(legal, dtype=scores.dtype)
        return logits.index_put((game, action), scores), self._values(hidden, self_play)

    def _values(self, hidden: torch.Tensor, self_play: torch.Tensor | None) -> torch.Tensor:
        values = self.value(hidden)
        if self.against is not None and self_play is not None:
            values = torch.where(self_play[:, None], values, self.against(hidden))
        return torch.tanh(values)


class _Boards(nn.Module):
    """What boards add to the first layer: nothing at first, so that what is never seen never does.

    The boards are data, not weights: they are not saved.
    """

    blocks: torch.Tensor

    def __init__(self, size: int, boards: npt.NDArray[np.void]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size, N_BOARD_FEATURES))
        self.register_buffer("blocks", torch.from_numpy(board_blocks(boards)), persistent=False)
        self._biases = torch.empty(len(boards), size)  # by `_versions` of the weights
        self._known = torch.zeros(len(boards), dtype=torch.bool)
        self._versions = (-1, -1)

    def forward(self, board: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return the bias of the first layer (n, size) on boards (n,), made once for each board."""
        if not torch.is_grad_enabled():
            return self._kept(board, bias)
        different, which = torch.unique(board, return_inverse=True)
        return self._bias_on(different, bias).index_select(0, which)

    def _bias_on(self, boards: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.blocks.index_select(0, boards), self.weight, bias)

    def _kept(self, board: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return the same as `forward`: while games are played, weights and boards stay."""
        if self._versions != (self.weight._version, bias._version):
            self._known[:] = False
            self._versions = (self.weight._version, bias._version)
        new = board[~self._known[board]]
        if len(new):
            new = torch.unique(new)
            self._biases[new] = self._bias_on(new, bias)
            self._known[new] = True
        return self._biases.index_select(0, board)


class _Moves(nn.Module):
    """Scores moves: a bias for each action in the hidden layer, and what its units weigh."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(N_ACTIONS, size) * MOVE_BIAS)
        self.weight = nn.Parameter((torch.rand(size) * 2 - 1) / size**0.5)

    def forward(self, hidden: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Return the scores (k,) of hidden layers (k, size) of actions (k,)."""
        return torch.relu(hidden + self.bias[action]) @ self.weight


class _Factor(nn.Module):
    """One number that is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((1,), FIRST_OUTLOOK))


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Let PyTorch learn by so many threads: how many changes what sums are rounded to.

    OpenMP keeps that number for each thread that asks, and Numba changes it too: two threads of a
    process would differ, as would two machines.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def repeatable() -> Iterator[None]:
    """Let PyTorch compute the same bytes each time; otherwise its threads add in any order."""
    options: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), options.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    options.fill_uninitialized_memory = False  # none is read
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        options.fill_uninitialized_memory = before[1]


def seed32(seed: int) -> int:
    """Return a seed of 32 bits, which is what PyTorch's users take, from any seed."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def frozen(network: MoveNetwork, training: dict[str, Any] | None = None) -> Policy:
    """Return a copy of a network as a policy: its value is that of games against itself."""
    tensors = {
        name: tensor.detach().numpy().copy()
        for name, tensor in network.state_dict().items()
        if name not in AGAINST
    }
    return Policy(tensors, training or {})


def load_weights(network: MoveNetwork, policy: Policy) -> None:
    """Give a network the weights of a policy; if only the network reads the board, 0 for it.

    Raises:
        RunError: if its layers have other sizes, or only the policy reads the board; the network
            is as before then.
    """
    tensors = {name: torch.from_numpy(t) for name, t in policy.tensors.items()}
    if network.board is not None and not policy.sees_board:
        tensors[BOARD] = torch.zeros_like(network.board.weight)
    if network.against is not None:
        tensors |= {name: tensors[value] for name, value in AGAINST.items()}
    if network.board is None and policy.sees_board:
        raise RunError(
            "start_from: the policy reads the board, this run does not: expected see_board = yes, "
            "or another policy"
        )
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != expected:
        own = (expected["trunk.0.bias"][0], expected["trunk.1.bias"][0], expected["move.weight"][0])
        raise RunError(f"start_from: expected {Sizes(*own)}, the policy has {policy.sizes}")
    network.load_state_dict(tensors)
