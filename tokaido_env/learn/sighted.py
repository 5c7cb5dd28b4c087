"""The network with sight in PyTorch, and how it becomes a policy file.

`policy` tells what its parts are for. The first layer's units are in two parts: some the policy
reads, the others the value, which has a trunk of its own from there on. What is learnt beside them
(`AUXILIARY`) makes the value's trunk see how a game will end; no policy file has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import linear

from tokaido_env.agents.inputs import N_RESULT, N_SIGHTED, OUTLOOK
from tokaido_env.agents.policy import Policy, SightedSizes
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.network import FIRST_OUTLOOK, MOVE_BIAS

AUXILIARY = 13
"""Numbers that are learnt beside the value: the margin, my and their final tracks, rounds left, and
which end trigger it will be, of none or four."""


class Moves(NamedTuple):
    """The legal actions of n positions, k in all, in their order."""

    results: torch.Tensor
    """(k, N_RESULT), what each leads to."""
    position: torch.Tensor
    """int64 (k,), whose it is."""
    action: torch.Tensor
    """int64 (k,), its number."""


class SightedNetwork(nn.Module):
    """The network of a policy with sight: what is trained, with the same names of tensors.

    Args:
        sizes: how wide its layers are.
        boards: `BOARD` (b,), the boards that it will be trained on, if it reads them.
        dtype: what its layers compute in; the weights and what comes out are float32.
    """

    blocks: torch.Tensor

    def __init__(
        self,
        sizes: SightedSizes,
        boards: npt.NDArray[np.void] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.sizes, self.dtype = sizes, dtype
        self._playing = False
        self._kept: dict[str, torch.Tensor] = {}  # what follows from weights that stay as they are
        self.trunk = nn.ModuleList(
            [
                nn.Linear(N_SIGHTED, sizes.first + sizes.value_first),
                nn.Linear(sizes.first, sizes.second),
            ]
        )
        self.action = nn.Linear(sizes.second, N_ACTIONS)
        self.result = nn.Linear(N_RESULT, sizes.move, bias=False)
        self.context = nn.Linear(sizes.second, sizes.move, bias=False)
        self.move = nn.ParameterDict(
            {
                "bias": torch.randn(N_ACTIONS, sizes.move) * MOVE_BIAS,
                "weight": (torch.rand(sizes.move) * 2 - 1) / sizes.move**0.5,
            }
        )
        self.outlook = nn.ParameterDict({"weight": torch.full((1,), FIRST_OUTLOOK)})
        self.value = nn.ModuleList(
            [nn.Linear(sizes.value_first, sizes.value_second), nn.Linear(sizes.value_second, 1)]
        )
        self.auxiliary = nn.Linear(sizes.value_second, AUXILIARY)
        self.board = None
        if boards is not None:
            weight = torch.zeros(sizes.first + sizes.value_first, N_BOARD_FEATURES)
            self.board = nn.ParameterDict({"weight": weight})
            self.register_buffer("blocks", torch.from_numpy(board_blocks(boards)), persistent=False)

    def tensor(self, array: npt.NDArray[Any], dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return an array as a tensor where the network is, of a dtype if one is given."""
        weight: torch.Tensor = self.outlook["weight"]
        return torch.from_numpy(array).to(weight.device, dtype)

    def forward(
        self, inputs: torch.Tensor, moves: Moves, board: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the scores (k,) of legal actions, and `values` of the positions.

        Args:
            inputs: (n, N_SIGHTED).
            moves: of these positions.
            board: int64 (n,), which of its boards each position is on, if it reads them.
        """
        first = torch.relu(self._first(inputs, board, slice(None)))
        of_policy, of_value = torch.split(first, [self.sizes.first, self.sizes.value_first], 1)
        return self._scores(inputs, of_policy, moves), *self._judged(of_value)

    def values(
        self, inputs: torch.Tensor, board: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return of positions, also at chance, the value as log odds / 2 (n,), and `AUXILIARY`."""
        return self._judged(torch.relu(self._first(inputs, board, slice(self.sizes.first, None))))

    def _judged(self, first: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self._through(self.value[0], first)).float()
        return self.value[1](hidden)[:, 0], self.auxiliary(hidden)

    def _scores(self, inputs: torch.Tensor, first: torch.Tensor, moves: Moves) -> torch.Tensor:
        hidden = torch.relu(self._through(self.trunk[1], first))
        context = linear(hidden, self._cast(self.context.weight))
        result = linear(moves.results.to(self.dtype), self._cast(self.result.weight))
        position, action = moves.position, moves.action
        bias = self._cast(self.move["bias"])
        unit = result + context.index_select(0, position) + bias.index_select(0, action)
        scores: torch.Tensor = torch.relu(unit).float() @ self.move["weight"]
        of_actions = self._through(self.action, hidden).float()
        scores = scores + of_actions[position, action]
        outlook = inputs[position, OUTLOOK + action].float()
        return torch.add(scores, self.outlook["weight"] * outlook)

    def _first(
        self, inputs: torch.Tensor, board: torch.Tensor | None, units: slice
    ) -> torch.Tensor:
        layer: Any = self.trunk[0]
        weight, bias = self._cast(layer.weight), self._cast(layer.bias)
        first = linear(inputs.to(self.dtype), weight[units], bias[units])
        if self.board is None or board is None:
            return first
        return first + self._of_boards()[:, units].index_select(0, board)

    def _of_boards(self) -> torch.Tensor:
        """Return what each board adds to the first layer."""

        def make() -> torch.Tensor:
            weight: Any = self.board
            return linear(self.blocks.to(self.dtype), self._cast(weight["weight"]))

        return self._keep("boards", make)

    def _through(self, layer: Any, units: torch.Tensor) -> torch.Tensor:
        return linear(units, self._cast(layer.weight), self._cast(layer.bias))

    def _cast(self, weight: torch.Tensor) -> torch.Tensor:
        return self._keep(str(id(weight)), lambda: weight.to(self.dtype))

    def _keep(self, name: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return what follows from the weights, in `playing` made once."""
        if not self._playing:
            return make()
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Keep what follows from the weights: they do not change while games are played."""
        self._playing = True
        try:
            with torch.no_grad():
                yield
        finally:
            self._playing = False
            self._kept.clear()


def frozen(network: SightedNetwork, training: dict[str, Any] | None = None) -> Policy:
    """Return a copy of a network as a policy."""
    tensors = {
        name: tensor.detach().cpu().numpy().copy()
        for name, tensor in network.state_dict().items()
        if not name.startswith("auxiliary.")
    }
    return Policy(tensors, training or {})


def load_weights(network: SightedNetwork, policy: Policy) -> None:
    """Give a network the weights of a policy; what the policy has not stays as it is.

    The network's layers may be wider: then units that the policy has not begin unheard, and the
    network plays as the policy does.

    Raises:
        RunError: if the policy has no sight, a layer of it is wider, or only it reads the board;
            the network is as before then.
    """
    if not isinstance(policy.sizes, SightedSizes):
        raise RunError("start_from: expected a policy with sight, as --method scale makes them")
    if any(own < theirs for own, theirs in zip(network.sizes, policy.sizes, strict=True)):
        raise RunError(
            f"start_from: expected at most {network.sizes}, the policy has {policy.sizes}"
        )
    if network.board is None and policy.sees_board:
        raise RunError(
            "start_from: the policy reads the board, this run does not: expected see_board = yes, "
            "or another policy"
        )
    state = network.state_dict()
    for name, tensor in policy.tensors.items():
        _give(state[name], torch.from_numpy(tensor), name, network.sizes.first, policy.sizes.first)


def _give(own: torch.Tensor, theirs: torch.Tensor, name: str, first: int, their_first: int) -> None:
    """Write the weights of a narrower layer into a wider one, whose other units say nothing yet."""
    if name.startswith(("trunk.0.", "board.")):  # units of the policy, then those of the value
        own[:their_first] = theirs[:their_first]
        own[first : first + len(theirs) - their_first] = theirs[their_first:]
    elif theirs.dim() == 2:
        rows, columns = theirs.shape
        own[:rows, columns:] = 0.0
        own[:rows, :columns] = theirs
    else:
        own[: len(theirs)] = theirs
        if name == "move.weight":
            own[len(theirs) :] = 0.0
