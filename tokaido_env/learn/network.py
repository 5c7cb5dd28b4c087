"""The policy network in PyTorch, and its conversion from and to policy files.

`agents.policy` documents its layers. Two more parts are for training only and in no policy file:
auxiliary predictions (`AUXILIARY`), which teach the value's layers how a game will end, and the
value of games against other opponents (`VALUE_AGAINST`).
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

from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_blocks
from tokaido_env.features.network_inputs import AFTERSTATE_VALUES, N_AFTERSTATE, N_INPUTS
from tokaido_env.learn.settings_schema import RunError

# Initial values: an untrained policy samples like the heuristic, with some noise. Not tuned.
INITIAL_OUTLOOK = 50.0
MOVE_BIAS_STD = 0.1

AUXILIARY = 13
"""Number of auxiliary predictions, for the player to decide: margin, own final tracks (3), the
opponent's (3), rounds left, and logits of the end trigger (5: none, then the four)."""

VALUE_AGAINST = {"against.weight": "value.1.weight", "against.bias": "value.1.bias"}
"""Tensors of the value against other opponents, with the policy tensors that initialise them."""

_TRAINING_ONLY = ("auxiliary.", "against.")  # prefixes of tensors that no policy file has


class Moves(NamedTuple):
    """The legal actions of n positions, k in all, in order of position."""

    results: torch.Tensor
    """(k, N_AFTERSTATE), afterstate features."""
    position: torch.Tensor
    """int64 (k,), index of the position."""
    action: torch.Tensor
    """int64 (k,), action id."""


class PolicyNetwork(nn.Module):
    """The trainable network of a policy, with the same tensor names.

    Args:
        sizes: widths of the layers.
        boards: `BOARD` (b,), the training boards, if the network gets board features; not saved.
        dtype: number format of the layers; weights and outputs are float32.
        against_others: whether to add a second value, for games against other opponents.
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
        self._caching = False
        self._cache: dict[str, torch.Tensor] = {}  # tensors derived from the weights
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
                "bias": torch.randn(N_ACTIONS, sizes.move) * MOVE_BIAS_STD,
                "weight": (torch.rand(sizes.move) * 2 - 1) / sizes.move**0.5,
            }
        )
        self.outlook = nn.ParameterDict({"weight": torch.full((1,), INITIAL_OUTLOOK)})
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
        """Return copies of the policy's tensors by name, under the key "".

        A network with a second value has a second entry, with that value in place of the first.
        """
        own = {name: t.detach().cpu().numpy().copy() for name, t in self.state_dict().items()}
        extra = {name: own.pop(name) for name in list(own) if name.startswith(_TRAINING_ONLY)}
        found = {"": own}
        if self.against is not None:
            second = {value: extra[name] for name, value in VALUE_AGAINST.items()}
            found[": against others"] = own | second
        return found

    def tensor(self, array: npt.NDArray[Any], dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return an array as a tensor on the network's device."""
        weight: torch.Tensor = self.outlook["weight"]
        return torch.from_numpy(array).to(weight.device, dtype)

    def forward(
        self,
        inputs: torch.Tensor,
        moves: Moves,
        board: torch.Tensor | None = None,
        self_play: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the scores (k,) of the legal actions, and `values` of the positions.

        Args:
            inputs: (n, N_INPUTS).
            moves: the legal actions of these positions.
            board: int64 (n,), index into `boards`; unused without board features.
            self_play: bool (n,), whether each game is self-play; the others get the second value,
                if the network has one.
        """
        first = torch.relu(self._first(inputs, board, slice(None)))
        of_policy, of_value = torch.split(first, [self.sizes.first, self.sizes.value_first], 1)
        return self._scores(inputs, of_policy, moves), *self._values(of_value, self_play)

    def values(
        self, inputs: torch.Tensor, board: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values as log odds / 2 (n,) and the auxiliary predictions (n, AUXILIARY).

        The positions may be at decisions or at chance nodes.
        """
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
        afterstate_values = inputs[position, AFTERSTATE_VALUES + action].float()
        return torch.add(scores, self.outlook["weight"] * afterstate_values)

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
        """Return the contribution of each board to the first layer, (b, units)."""

        def make() -> torch.Tensor:
            weight: Any = self.board
            return linear(self.blocks.to(self.dtype), self._cast(weight["weight"]))

        return self._cached("boards", make)

    def _through(self, layer: Any, units: torch.Tensor) -> torch.Tensor:
        return linear(units, self._cast(layer.weight), self._cast(layer.bias))

    def _cast(self, weight: torch.Tensor) -> torch.Tensor:
        return self._cached(str(id(weight)), lambda: weight.to(self.dtype))

    def _cached(self, name: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return a tensor derived from the weights; within `inference` it is made once."""
        if not self._caching:
            return make()
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Disable gradients and cache tensors derived from the weights, which must not change."""
        self._caching = True
        try:
            with torch.no_grad():
                yield
        finally:
            self._caching = False
            self._cache.clear()

    def to_policy(self, training: dict[str, Any] | None = None) -> Policy:
        """Return a copy as a policy; its value is that of self-play.

        Args:
            training: a summary of the training, for the header of the policy file.
        """
        return Policy(self.policies()[""], training or {})


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
    torch.use_deterministic_algorithms(True)
    options.fill_uninitialized_memory = False  # nothing reads uninitialised memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        options.fill_uninitialized_memory = before[1]


def take_step(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, max_grad_norm: float, where: str
) -> None:
    """Take a step of an optimizer, with the gradient scaled down to a norm if it is larger.

    Raises:
        FloatingPointError: beginning with `where`, if the loss or the norm is not finite; the
            weights stay as they are.
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
    """Return a 32-bit seed, as NumPy and Stable-Baselines3 need, from any seed."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def load_weights(network: PolicyNetwork, policy: Policy) -> None:
    """Load a policy's weights into a network; parameters that the policy lacks stay as they are.

    The network's layers may be wider: new units start with zero outgoing weights, so that the
    network plays like the policy.

    Raises:
        RunError: if a layer of the policy is wider, or only the policy uses board features; the
            network stays as it is.
    """
    if any(own < theirs for own, theirs in zip(network.sizes, policy.sizes, strict=True)):
        own, theirs = (", ".join(map(str, sizes)) for sizes in (network.sizes, policy.sizes))
        raise RunError(
            f"start_from: expected layers of at most {own} units, got {theirs}: raise width, "
            "second_width and move_width"
        )
    if network.board is None and policy.uses_board_features:
        raise RunError(
            "start_from: expected a policy without board features, got one with them: set "
            "see_board = yes, or choose another policy"
        )
    state = network.state_dict()
    tensors = {name: torch.from_numpy(tensor) for name, tensor in policy.tensors.items()}
    if network.against is not None:
        tensors |= {name: tensors[value] for name, value in VALUE_AGAINST.items()}
    for name, tensor in tensors.items():
        _copy_into_wider(state[name], tensor, name, network.sizes.first, policy.sizes.first)


def _copy_into_wider(
    wide: torch.Tensor, narrow: torch.Tensor, name: str, first: int, narrow_first: int
) -> None:
    """Copy a layer into a wider one; its new units get zero outgoing weights."""
    if name.startswith(("trunk.0.", "board.")):  # units of the policy, then those of the value
        wide[:narrow_first] = narrow[:narrow_first]
        wide[first : first + len(narrow) - narrow_first] = narrow[narrow_first:]
    elif narrow.dim() == 2:
        rows, columns = narrow.shape
        wide[:rows, columns:] = 0.0
        wide[:rows, :columns] = narrow
    else:
        wide[: len(narrow)] = narrow
        if name == "move.weight":
            wide[len(narrow) :] = 0.0
