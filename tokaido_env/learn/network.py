"""The network in PyTorch, and how it becomes a policy file; nothing here knows a trainer.

`policy` tells what its parts are for. Two parts more are for training, and in no policy file:
auxiliary predictions (`AUXILIARY`), which make the value's layers see how a game will end, and
the value of games against others (`VALUE_AGAINST`).
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

from tokaido_env.agents.network_inputs import AFTERSTATE_VALUES, N_AFTERSTATE, N_INPUTS
from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.learn.settings_schema import RunError

FIRST_OUTLOOK = 50.0  # at first: the untrained policy draws by the heuristic, with some noise
MOVE_BIAS = 0.1  # standard deviation, at first

AUXILIARY = 13
"""Numbers that are learnt beside the value: the margin, my and their final tracks, rounds left, and
which end trigger it will be, of none or four."""

VALUE_AGAINST = {"against.weight": "value.1.weight", "against.bias": "value.1.bias"}
"""Tensors of the value of games against others, and those of a policy that they begin as."""

_NO_POLICY = ("auxiliary.", "against.")  # tensors that are for training only


class Moves(NamedTuple):
    """The legal actions of n positions, k in all, in their order."""

    results: torch.Tensor
    """(k, N_AFTERSTATE), what each leads to."""
    position: torch.Tensor
    """int64 (k,), whose it is."""
    action: torch.Tensor
    """int64 (k,), its number."""


class PolicyNetwork(nn.Module):
    """The network of a policy: what is trained, with the same names of tensors.

    Args:
        sizes: how wide its layers are.
        boards: `BOARD` (b,), the boards that it will be trained on, if it reads them; they are data
            and not saved.
        dtype: what its layers compute in; the weights and what comes out are float32.
        against_others: whether it has a second value, of games against others than itself.
    """

    blocks: torch.Tensor

    def __init__(
        self,
        sizes: LayerSizes,
        boards: npt.NDArray[np.void] | None = None,
        dtype: torch.dtype = torch.float32,
        *,
        against_others: bool = False,
    ) -> None:
        super().__init__()
        self.sizes, self.dtype = sizes, dtype
        self._playing = False
        self._kept: dict[str, torch.Tensor] = {}  # what follows from weights that stay as they are
        self.trunk = nn.ModuleList(
            [
                nn.Linear(N_INPUTS, sizes.first + sizes.value_first),
                nn.Linear(sizes.first, sizes.second),
            ]
        )
        self.action = nn.Linear(sizes.second, N_ACTIONS)
        self.result = nn.Linear(N_AFTERSTATE, sizes.move, bias=False)
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
        self.against = nn.Linear(sizes.value_second, 1) if against_others else None
        self.board = None
        if boards is not None:
            weight = torch.zeros(sizes.first + sizes.value_first, N_BOARD_FEATURES)
            self.board = nn.ParameterDict({"weight": weight})
            self.register_buffer("blocks", torch.from_numpy(board_blocks(boards)), persistent=False)

    def policies(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return copies of the tensors of its policy, by "", and with the second value instead."""
        own = {name: t.detach().cpu().numpy().copy() for name, t in self.state_dict().items()}
        extra = {name: own.pop(name) for name in list(own) if name.startswith(_NO_POLICY)}
        found = {"": own}
        if self.against is not None:
            second = {value: extra[name] for name, value in VALUE_AGAINST.items()}
            found[": against others"] = own | second
        return found

    def tensor(self, array: npt.NDArray[Any], dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return an array as a tensor where the network is, of a dtype if one is given."""
        weight: torch.Tensor = self.outlook["weight"]
        return torch.from_numpy(array).to(weight.device, dtype)

    def forward(
        self,
        inputs: torch.Tensor,
        moves: Moves,
        board: torch.Tensor | None = None,
        self_play: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the scores (k,) of legal actions, and `values` of the positions.

        Args:
            inputs: (n, N_INPUTS).
            moves: of these positions.
            board: int64 (n,), which of its boards each position is on, if it reads them.
            self_play: bool (n,), whether the game is against itself; of the others the value is
                the second one, if there is one.
        """
        first = torch.relu(self._first(inputs, board, slice(None)))
        of_policy, of_value = torch.split(first, [self.sizes.first, self.sizes.value_first], 1)
        return self._scores(inputs, of_policy, moves), *self._values(of_value, self_play)

    def values(
        self, inputs: torch.Tensor, board: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return of positions, also at chance, the value as log odds / 2 (n,), and `AUXILIARY`."""
        return self._values(torch.relu(self._first(inputs, board, slice(self.sizes.first, None))))

    def _values(
        self, first: torch.Tensor, self_play: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self._through(self.value[0], first)).float()
        values = self.value[1](hidden)[:, 0]
        if self.against is not None and self_play is not None:
            values = torch.where(self_play, values, self.against(hidden)[:, 0])
        return values, self.auxiliary(hidden)

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
        outlook = inputs[position, AFTERSTATE_VALUES + action].float()
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


def frozen(network: PolicyNetwork, training: dict[str, Any] | None = None) -> Policy:
    """Return a copy of a network as a policy: its value is that of games against itself."""
    return Policy(network.policies()[""], training or {})


def load_weights(network: PolicyNetwork, policy: Policy) -> None:
    """Give a network the weights of a policy; what the policy has not stays as it is.

    The network's layers may be wider: then units that the policy has not begin unheard, and the
    network plays as the policy does.

    Raises:
        RunError: if a layer of the policy is wider, or only it reads the board; the network is as
            before then.
    """
    if any(own < theirs for own, theirs in zip(network.sizes, policy.sizes, strict=True)):
        raise RunError(
            f"start_from: expected at most {network.sizes}, the policy has {policy.sizes}: make "
            "width, second and move as large"
        )
    if network.board is None and policy.uses_board_features:
        raise RunError(
            "start_from: the policy reads the board, this run does not: expected see_board = yes, "
            "or another policy"
        )
    state = network.state_dict()
    tensors = {name: torch.from_numpy(tensor) for name, tensor in policy.tensors.items()}
    if network.against is not None:
        tensors |= {name: tensors[value] for name, value in VALUE_AGAINST.items()}
    for name, tensor in tensors.items():
        _give(state[name], tensor, name, network.sizes.first, policy.sizes.first)


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
