"""Policies: trained networks in files that hold numbers only, and the agent that plays one.

A network gives the value of a position, -1 to 1, for `network_inputs.active_seat`. It has a layer
that reads the position (`network_inputs`), a second layer, and the value. Layers are followed by
max(0, x), the value by tanh. It plays the action with the best value of the position after it (the
afterstate; Tesauro 1995).

The forward pass is compiled (`inference`), so that playing needs no PyTorch.

A policy file is in safetensors format: float32 tensors with the names and shapes of
`tensor_shapes`, and a header of strings with the versions of inputs, actions and rules. Loading a
file never executes code from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokaido_env.agent import (
    Actions,
    Agent,
    AgentError,
    BoardRows,
    Keys,
    Legal,
    States,
    check_agent_arguments,
)
from tokaido_env.agents.ending_actions import EXACT, NETWORK, improve_endings, solve_endings
from tokaido_env.agents.inference import choose_actions, evaluate_all
from tokaido_env.agents.weights import Floats, Weights, weights_of
from tokaido_env.core.actions import ACTION_TABLE_VERSION, N_ACTIONS
from tokaido_env.core.arguments import check_choice, escape_text, repr_short, short_path
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.features.network_inputs import INPUTS_HASH, N_INPUTS
from tokaido_env.files import is_file, parse_json
from tokaido_env.tensor_file import TensorFile, read_tensors, write_tensors

FORMAT = "tokaido-duo-policy"
VERSION = 5

MAX_FILE_BYTES = 96 << 20  # bytes: layers of 4096 units, copied for every thread


class PolicyError(AgentError):
    """A policy file is missing, damaged, or made for other inputs or rules."""


class LayerSizes(NamedTuple):
    """The numbers of units of the two hidden layers of a network, `first` and `second`."""

    first: int
    second: int


def tensor_shapes(sizes: LayerSizes) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor by its name; matrices are (outputs, inputs)."""
    return {
        "first.weight": (sizes.first, N_INPUTS),
        "first.bias": (sizes.first,),
        "second.weight": (sizes.second, sizes.first),
        "second.bias": (sizes.second,),
        "value.weight": (1, sizes.second),
        "value.bias": (1,),
    }


@dataclass(frozen=True)
class Policy:
    """A network and its origin.

    Attributes:
        tensors: float32, with the names and shapes of `tensor_shapes`.
        training: facts about its training, such as steps and settings, in JSON types.
    """

    tensors: dict[str, Floats]
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> LayerSizes:
        """The numbers of units of its hidden layers."""
        return _sizes_of(self.tensors)

    def network(self) -> Weights:
        """Return the network as the kernels read it, with a copy for each thread."""
        check_tensors("policy", self.tensors)
        return weights_of(self.tensors)

    def evaluate(self, boards: BoardRows, states: States, legal: Legal) -> tuple[Floats, Floats]:
        """Return the logits and values of n positions.

        Args:
            boards: `BOARD` (1,) for all positions, or (n,).
            states: `STATE` (n,), at decisions.
            legal: uint64 (n,), the legal actions as bits, not 0.

        Returns:
            Logits, float32 (n, N_ACTIONS), -inf where illegal; and values for the player to decide,
            float32 (n,) in [-1, 1].
        """
        boards, states, legal, _ = check_agent_arguments(boards, states, legal, legal)
        return evaluate_all(self.network(), boards, states, legal)

    def save(self, path: str | Path) -> None:
        """Write the policy file; a failure leaves no part of it.

        Raises:
            OSError: if the file cannot be written.
            InUseError: if another process writes it.
        """
        header = _header() | {"training": json.dumps(self.training)}
        write_tensors(Path(path), self.tensors, header)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file, or the best policy of a run folder.

        Raises:
            PolicyError: if the file is missing, damaged, or made for other inputs or rules.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "best"
        where = short_path(path)
        header, tensors = _read_file(path, where)
        training = _check_header(where, header)
        check_tensors(where, tensors)
        return cls(tensors, training)


class PolicyAgent(Agent):
    """Plays a policy: the action with the best afterstate value.

    Args:
        path: a policy file, or a run folder for its best policy.
        temperature: 0 takes the best action; above, actions are sampled from
            softmax(logits / temperature).
        endings: "exact" to take a better action where exact results show one (`endings`), or
            "network"; with a temperature always "network".

    Attributes:
        policy: the policy.
        network: its network, for the kernels.
        temperature: the temperature.
        exact_endings: whether it takes better actions by exact results.
    """

    may_fail = False

    def __init__(self, path: str, temperature: float = 0.0, endings: str = EXACT) -> None:
        self._begin(Policy.load(path), temperature, endings)
        suffix = f",temperature={str(temperature).removesuffix('.0')}" if temperature else ""
        suffix += f",endings={endings}" if endings != EXACT else ""
        self.spec = f"policy:{path}{suffix}"

    @classmethod
    def from_policy(
        cls, policy: Policy, spec: str, temperature: float = 0.0, endings: str = EXACT
    ) -> PolicyAgent:
        """Make an agent from a policy in memory.

        Args:
            policy: the policy.
            spec: the agent's spec or name.
            temperature: 0 takes the best action; above, a softmax samples one. Not checked here.
            endings: "exact" or "network", as for `PolicyAgent`.
        """
        agent = cls.__new__(cls)
        agent._begin(policy, temperature, endings)
        agent.spec = spec
        return agent

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return action ids, int64 (n,); arguments and errors are those of `Agent.act`."""
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        logits, _ = evaluate_all(self.network, boards, states, legal)
        actions = np.empty(len(states), np.int64)
        choose_actions(actions, logits, legal, keys, self.temperature)
        if self.exact_endings:
            improve_endings(actions, boards, states, legal, logits)
        return actions

    def judge(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> tuple[Floats, Floats]:
        """Return the policy at temperature 1, and the values; arrays as for `Agent.judge`.

        With exact endings a better action by exact results has probability 1, and values in the
        last round are exact where `ending_actions.LIMIT` positions solve it.
        """
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        logits, values = evaluate_all(self.network, boards, states, legal)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        values *= 1 - 2 * states["player"].astype(np.float32)
        if self.exact_endings:
            actions = odds.argmax(axis=1)
            improve_endings(actions, boards, states, legal, logits)
            rows = np.flatnonzero(actions != odds.argmax(axis=1))
            odds[rows] = np.eye(N_ACTIONS, dtype=odds.dtype)[actions[rows]]
            solve_endings(values, boards, states, legal)
        return odds / odds.sum(axis=1, keepdims=True), values

    def _begin(self, policy: Policy, temperature: float, endings: str) -> None:
        check_choice("policy: endings", endings, (EXACT, NETWORK))
        self.exact_endings = endings == EXACT and not temperature
        self.policy = policy
        self.temperature = temperature
        self.network = policy.network()


# The file


def _header() -> dict[str, str]:
    """Return the header of a policy file, without its training."""
    known: dict[str, str | int] = {
        "format": FORMAT,
        "version": VERSION,
        "rules": RULES_VERSION,
        "actions": ACTION_TABLE_VERSION,
        "inputs": INPUTS_HASH,
    }
    return {key: str(value) for key, value in known.items()}


def _read_file(path: Path, where: str) -> TensorFile:
    if not is_file(path):
        raise PolicyError(f"{where}: no such policy file; tokaido train --run FOLDER makes one")
    try:
        return read_tensors(path, MAX_FILE_BYTES)
    except ModuleNotFoundError as error:
        raise PolicyError(str(error)) from None
    except ValueError as error:
        raise PolicyError(f"{where}: not a policy file: {error}") from None


def _check_header(where: str, header: dict[str, str]) -> dict[str, Any]:
    """Check the versions of a header; return the facts about the training."""
    if header.get("format") != FORMAT:
        raise PolicyError(f"{where}: not a policy of this project: no header {FORMAT!r}")
    known = _header()
    for key, value in known.items():
        if header.get(key) != value:
            raise PolicyError(
                f"{where}: made for {key} {repr_short(header.get(key))}, this version has "
                f"{value!r}: train it again, or use the version it was made with"
            )
    if more := sorted(header.keys() - {*known, "training"}):
        raise PolicyError(f"{where}: header: expected no key {repr_short(more[0])}")
    try:
        training = parse_json(header.get("training", "{}"))
    except ValueError as error:
        raise PolicyError(f"{where}: training: expected JSON: {error}") from None
    if not isinstance(training, dict):
        raise PolicyError(f"{where}: training: expected an object")
    return training


def check_tensors(where: str, tensors: dict[str, Floats]) -> None:
    """Check the names, shapes and values of tensors.

    Args:
        where: the file or key, for the message.
        tensors: the tensors by name.

    Raises:
        PolicyError: if a tensor is wrong.
    """
    wrong = set(tensors) ^ set(tensor_shapes(LayerSizes(1, 1)))
    if wrong:
        names = escape_text(", ".join(sorted(wrong)), 200)
        raise PolicyError(f"{where}: tensors missing or unknown: {names}")
    sizes = _sizes_of(tensors)
    if min(sizes) < 1:
        raise PolicyError(f"{where}: expected layers of one unit or more, got {tuple(sizes)}")
    for name, shape in tensor_shapes(sizes).items():
        tensor = tensors[name]
        if tensor.shape != shape or tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            got = f"{tensor.dtype} of shape {tensor.shape}, "
            got += f"{int((~np.isfinite(tensor)).sum())} not finite"
            raise PolicyError(
                f"{where}: {name}: expected finite float32 numbers of shape {shape}, got {got}"
            )


def _sizes_of(tensors: dict[str, Floats]) -> LayerSizes:
    """Return the sizes by the lengths of biases, which may not fit the other tensors."""
    return LayerSizes(tensors["first.bias"].size, tensors["second.bias"].size)
