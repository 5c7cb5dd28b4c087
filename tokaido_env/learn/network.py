"""The policy network in PyTorch, its outputs for positions, and its conversion to policy files.

`agents.policy` documents its layers. One more part is for training only and in no policy file: the
value of games against other opponents (`VALUE_AGAINST`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import linear

from tokaido_env.agent import Legal, States
from tokaido_env.agents.policy import LayerSizes, Policy
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.board_features import N_BOARD_FEATURES, board_features_of
from tokaido_env.features.network_inputs import (
    AFTERSTATE_VALUES,
    N_AFTERSTATE,
    N_INPUTS,
    encode_positions,
)
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.observers import masks

# Initial values: an untrained policy samples like the heuristic, with some noise. Not tuned.
INITIAL_OUTLOOK = 50.0
MOVE_BIAS_STD = 0.1

ROW_MULTIPLE = 512
"""Matrices are padded to a multiple of this many rows: PyTorch plans the product of each new size.
"""

ILLEGAL_LOGIT = -1e9

VALUE_AGAINST = {"against.weight": "value.1.weight", "against.bias": "value.1.bias"}
"""Tensors of the value against other opponents, with the policy tensors that initialise them."""


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
        sizes: widths of the layers; without policy layers only `values` can be called.
        boards: `BOARD` (b,), the training boards, if the network gets board features; not saved.
        against_others: whether to add a second value, for games against other opponents.
    """

    blocks: torch.Tensor

    def __init__(
        self,
        sizes: LayerSizes,
        boards: npt.NDArray[np.void] | None = None,
        *,
        against_others: bool = False,
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.trunk = nn.ModuleList([nn.Linear(N_INPUTS, sizes.first + sizes.value_first)])
        if sizes.has_policy:
            self._add_policy(sizes)
        self.value = nn.ModuleList(
            [nn.Linear(sizes.value_first, sizes.value_second), nn.Linear(sizes.value_second, 1)]
        )
        self.against = nn.Linear(sizes.value_second, 1) if against_others else None
        self.board = None
        if boards is not None:
            weight = torch.zeros(sizes.first + sizes.value_first, N_BOARD_FEATURES)
            self.board = nn.ParameterDict({"weight": weight})
            self.register_buffer(
                "blocks", torch.from_numpy(board_features_of(boards)), persistent=False
            )

    def _add_policy(self, sizes: LayerSizes) -> None:
        self.trunk.append(nn.Linear(sizes.first, sizes.second))
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

    def policies(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return copies of the policy's tensors, float32 by name, under the key "".

        A network with a second value has a second entry, with that value in place of the first.
        """
        own = {name: t.detach().cpu().numpy().copy() for name, t in self.state_dict().items()}
        extra = {name: own.pop(name) for name in VALUE_AGAINST if name in own}
        found = {"": own}
        if self.against is not None:
            second = {value: extra[name] for name, value in VALUE_AGAINST.items()}
            found[": against others"] = own | second
        return found

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return an array as a tensor of its dtype and shape on the network's device."""
        weight: Any = self.value[1].weight
        return torch.from_numpy(array).to(weight.device)

    def forward(
        self,
        inputs: torch.Tensor,
        moves: Moves,
        board: torch.Tensor | None = None,
        self_play: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores of the legal actions, and the values as log odds / 2.

        Args:
            inputs: float32 (n, N_INPUTS).
            moves: the k legal actions of these positions.
            board: int64 (n,), index into `boards`; unused without board features.
            self_play: bool (n,), whether each game is self-play; the others get the second value,
                if the network has one.

        Returns:
            float32 (k,) and float32 (n,).
        """
        first = torch.relu(self._first(inputs, board, slice(None)))
        of_policy, of_value = torch.split(first, [self.sizes.first, self.sizes.value_first], 1)
        return self._scores(inputs, of_policy, moves), self._values(of_value, self_play)

    def values(self, inputs: torch.Tensor, board: torch.Tensor | None = None) -> torch.Tensor:
        """Return the values of positions at decisions or at chance, as log odds / 2: float32 (n,).

        Args:
            inputs: float32 (n, N_INPUTS).
            board: as for `forward`.
        """
        return self._values(torch.relu(self._first(inputs, board, slice(self.sizes.first, None))))

    def _values(self, first: torch.Tensor, self_play: torch.Tensor | None = None) -> torch.Tensor:
        hidden = torch.relu(self.value[0](first))
        values: torch.Tensor = self.value[1](hidden)[:, 0]
        if self.against is not None and self_play is not None:
            values = torch.where(self_play, values, self.against(hidden)[:, 0])
        return values

    def _scores(self, inputs: torch.Tensor, first: torch.Tensor, moves: Moves) -> torch.Tensor:
        hidden = torch.relu(self.trunk[1](first))
        context, result = self.context(hidden), self.result(moves.results)
        position, action = moves.position, moves.action
        bias = self.move["bias"].index_select(0, action)
        unit = result + context.index_select(0, position) + bias
        scores: torch.Tensor = torch.relu(unit) @ self.move["weight"]
        scores = scores + self.action(hidden)[position, action]
        afterstate_values = inputs[position, AFTERSTATE_VALUES + action]
        return torch.add(scores, self.outlook["weight"] * afterstate_values)

    def _first(
        self, inputs: torch.Tensor, board: torch.Tensor | None, units: slice
    ) -> torch.Tensor:
        layer: Any = self.trunk[0]
        first = linear(inputs, layer.weight[units], layer.bias[units])
        if self.board is None or board is None:
            return first
        of_boards = linear(self.blocks, self.board["weight"][units])
        return first + of_boards.index_select(0, board)

    def to_policy(self, training: dict[str, Any] | None = None) -> Policy:
        """Return a copy as a policy; its value is that of self-play.

        Args:
            training: a summary of the training, for the header of the policy file.
        """
        return Policy(self.policies()[""], training or {})


def evaluate_decisions(
    network: PolicyNetwork,
    boards: npt.NDArray[np.void],
    tables: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    legal: Legal,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Evaluate decisions with a network.

    Args:
        network: the network.
        boards: as for `encode_positions`.
        tables: the `eval_tables` of `encode_positions`.
        which: as for `encode_positions`.
        states: `STATE` (n,), at decisions.
        legal: as for `encode_positions`.

    Returns:
        Logits float32 (n, N_ACTIONS), `ILLEGAL_LOGIT` where illegal, and values float32 (n,) as log
        odds / 2 for the player to decide.
    """
    trunk, moves = encode_positions(boards, tables, which, states, legal, ROW_MULTIPLE)
    n, k = len(legal), int(np.bitwise_count(legal).sum())
    inputs, results = network.tensor(trunk), network.tensor(moves)
    board = pad_rows(network.tensor(which), len(inputs))
    position, action = (pad_rows(network.tensor(x), len(results)) for x in moves_of(legal))
    scores, values = network(inputs, Moves(results, position, action), board)
    logits = logits_of(scores[:k], position[:k], action[:k], n)
    return logits, values[:n]


def evaluate_values(
    network: PolicyNetwork,
    boards: npt.NDArray[np.void],
    tables: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    legal: Legal,
) -> torch.Tensor:
    """Return the values of positions, as log odds / 2 for the viewer: float32 (n,).

    Args:
        network: the network.
        boards: as for `encode_positions`.
        tables: the `eval_tables` of `encode_positions`.
        which: as for `encode_positions`.
        states: `STATE` (n,), at decisions or at chance.
        legal: as for `encode_positions`.
    """
    inputs, _ = encode_positions(boards, tables, which, states, legal, ROW_MULTIPLE)
    board = pad_rows(network.tensor(which), len(inputs))
    return network.values(network.tensor(inputs), board)[: len(states)]


def moves_of(legal: Legal) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return position index and action id of each legal action, int64 (k,) each.

    Args:
        legal: uint64 (n,), the legal actions as bits.
    """
    position, action = masks(legal).nonzero()
    return position, action


def pad_rows(numbers: torch.Tensor, rows: int) -> torch.Tensor:
    """Return numbers (n,) of any dtype, padded with zeros to (rows,)."""
    return torch.nn.functional.pad(numbers, (0, rows - len(numbers)))


def logits_of(
    scores: torch.Tensor, position: torch.Tensor, action: torch.Tensor, n: int
) -> torch.Tensor:
    """Return the scores of legal actions as logits, `ILLEGAL_LOGIT` where illegal.

    Args:
        scores: float32 (k,).
        position: int64 (k,), the position of each action.
        action: int64 (k,), its id.
        n: number of positions.

    Returns:
        float32 (n, N_ACTIONS).
    """
    logits = torch.full((n, N_ACTIONS), ILLEGAL_LOGIT, device=scores.device)
    return logits.index_put((position, action), scores)


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
    layers = [(own, theirs) for own, theirs in zip(network.sizes, policy.sizes, strict=True) if own]
    if any(own < theirs for own, theirs in layers):
        own, theirs = (", ".join(map(str, sizes)) for sizes in zip(*layers, strict=True))
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
    for name in state.keys() & tensors.keys():
        tensor = tensors[name]
        _copy_into_wider(state[name], tensor, name, network.sizes.first, policy.sizes.first)


def _copy_into_wider(
    wide: torch.Tensor, narrow: torch.Tensor, name: str, first: int, narrow_first: int
) -> None:
    """Copy a layer into a wider one; its new units get zero outgoing weights."""
    if name.startswith(("trunk.0.", "board.")):  # units of the policy, then those of the value
        wide[: min(first, narrow_first)] = narrow[: min(first, narrow_first)]
        wide[first : first + len(narrow) - narrow_first] = narrow[narrow_first:]
    elif narrow.dim() == 2:
        rows, columns = narrow.shape
        wide[:rows, columns:] = 0.0
        wide[:rows, :columns] = narrow
    else:
        wide[: len(narrow)] = narrow
        if name == "move.weight":
            wide[len(narrow) :] = 0.0
