"""Policies: trained networks as files that hold numbers only, and the agent that plays one.

A policy file is in safetensors format: float32 weights `policy.0.weight`, `policy.0.bias`, … and
`value.0.weight`, …, and a header of strings that says for which features, actions and rules it was
trained. Loading one runs no code. The forward pass is NumPy's, so playing needs no PyTorch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.actions import ACTION_TABLE_VERSION, N_ACTIONS
from tokaido_env.agents.base import AgentError
from tokaido_env.jit import entry, int64
from tokaido_env.luck import hash_bits
from tokaido_env.observation import FEATURES, FLOAT_UNITS, N_FEATURES, encode
from tokaido_env.rules import RULES_VERSION

FORMAT = "tokaido-duo-policy"
VERSION = 1

Layers = list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]
Sizes = tuple[tuple[str, int], ...]

ALL_FEATURES: Sizes = tuple((feature.name, feature.size) for feature in FEATURES)


class PolicyError(AgentError):
    """A policy file that cannot be used here: the message says what was expected."""


@dataclass(frozen=True)
class Policy:
    """A network: from observations to action logits and a value.

    Attributes:
        policy, value: (weight (out, in), bias (out,)) of each layer, tanh between layers.
        features: (name, size) of each feature that it reads, in order.
    """

    policy: Layers
    value: Layers
    features: Sizes = ALL_FEATURES

    def logits(self, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return action logits (n, N_ACTIONS) for observations (n, N_FEATURES)."""
        return _forward(self.policy, self._select(observations))

    def values(self, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the expected final reward of the observing seat, (n,)."""
        return _forward(self.value, self._select(observations))[:, 0]

    def save(self, path: str | Path) -> None:
        """Write the policy file: whole or not at all."""
        from safetensors.numpy import save

        path = Path(path)
        tensors = {}
        for name, layers in (("policy", self.policy), ("value", self.value)):
            for i, (weight, bias) in enumerate(layers):
                tensors[f"{name}.{i}.weight"] = np.ascontiguousarray(weight)
                tensors[f"{name}.{i}.bias"] = np.ascontiguousarray(bias)
        unfinished = path.with_name(path.name + ".tmp")
        unfinished.write_bytes(_in_order(save(tensors, self._header())))
        unfinished.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file, or the best policy of a run folder.

        Raises:
            PolicyError: if the file is none, is broken, or was made for other features or rules.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "best"
        header, tensors = _read(path)
        features = _check_header(path, header)
        width = sum(size for _, size in features)
        policy = _layers(path, tensors, "policy", width, N_ACTIONS)
        return cls(policy, _layers(path, tensors, "value", width, 1), features)

    def _header(self) -> dict[str, str]:
        return {
            "format": FORMAT,
            "version": str(VERSION),
            "rules": str(RULES_VERSION),
            "actions": str(ACTION_TABLE_VERSION),
            "activation": "tanh",
            "features": json.dumps(self.features),
        }

    def _select(self, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Pick the policy's features: those appended since it was trained are left out."""
        if self.features == ALL_FEATURES:
            return observations
        known = {feature.name: feature for feature in FEATURES}
        columns = [np.r_[known[name].slice] for name, _ in self.features]
        return observations[:, np.concatenate(columns)]


class PolicyAgent:
    """Plays a policy.

    Args:
        path: a policy file, or a run folder for its best.
        temperature: 0 takes the likeliest action; above, actions are drawn from
            softmax(logits / temperature).
    """

    def __init__(self, path: str, temperature: float = 0.0) -> None:
        if not 0.0 <= temperature <= 10.0:
            raise AgentError(f"policy: temperature: expected 0 to 10, got {temperature}")
        self.policy = Policy.load(path)
        self.temperature = temperature
        suffix = f",temperature={str(temperature).removesuffix('.0')}" if temperature else ""
        self.spec = f"policy:{path}{suffix}"

    @classmethod
    def of(cls, policy: Policy, spec: str, temperature: float = 0.0) -> PolicyAgent:
        """Make an agent from a policy in memory."""
        agent = cls.__new__(cls)
        agent.policy, agent.temperature, agent.spec = policy, temperature, spec
        return agent

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        observations = np.empty((len(states), N_FEATURES), np.float32)
        _observe_movers(boards, states, observations)
        actions = np.empty(len(states), np.int64)
        _choose(self.policy.logits(observations), legal, keys, self.temperature, actions)
        return actions


@entry
def _observe_movers(boards: Any, states: Any, out: Any) -> None:
    for i in range(len(states)):
        board = boards[i if len(boards) > 1 else 0]
        encode(board, states[i], int64(states[i]["player"]), FLOAT_UNITS, out[i])


@entry
def _choose(logits: Any, legal: Any, keys: Any, temperature: float, out: Any) -> None:
    """Pick the best legal action; Gumbel noise makes it a draw from the softmax (Gumbel 1954)."""
    for i in range(len(out)):
        best = -np.inf
        for action in range(N_ACTIONS):
            if legal[i] >> np.uint64(action) & np.uint64(1):
                value = float(logits[i, action])
                if temperature > 0:
                    bits = hash_bits(keys[i], 0, 0, action)
                    uniform = (float(bits >> np.uint64(11)) + 0.5) / 2.0**53
                    value = value / temperature - np.log(-np.log(uniform))
                if value > best:
                    best = value
                    out[i] = action


def _forward(layers: Layers, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    for weight, bias in layers[:-1]:
        x = np.tanh(x @ weight.T + bias)
    weight, bias = layers[-1]
    return x @ weight.T + bias


def _read(path: Path) -> tuple[dict[str, str], dict[str, npt.NDArray[np.float32]]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError:
        raise PolicyError("policies need safetensors: pip install 'tokaido-env[train]'") from None
    if not path.is_file():
        raise PolicyError(f"{path}: no such policy file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise PolicyError(f"{path}: not a policy file: {error}") from None


def _check_header(path: Path, header: dict[str, str]) -> tuple[tuple[str, int], ...]:
    """Check for whom the policy was trained; return its features."""
    if header.get("format") != FORMAT:
        raise PolicyError(f"{path}: not a policy of this project: no header {FORMAT!r}")
    expected = (
        *(("version", VERSION), ("rules", RULES_VERSION)),
        *(("actions", ACTION_TABLE_VERSION), ("activation", "tanh")),
    )
    for key, known in expected:
        if header.get(key) != str(known):
            raise PolicyError(
                f"{path}: made for {key} {header.get(key)!r}, this version has {str(known)!r}: "
                "train it again, or use the version it was made with"
            )
    try:
        features = tuple((str(name), int(size)) for name, size in json.loads(header["features"]))
    except (KeyError, ValueError, TypeError) as error:
        raise PolicyError(f"{path}: features: expected a list of [name, size]: {error}") from None
    known_sizes = {feature.name: feature.size for feature in FEATURES}
    wrong = [name for name, size in features if known_sizes.get(name) != size]
    if wrong:
        names = ", ".join(wrong)
        raise PolicyError(f"{path}: made for another observation, with other features: {names}")
    return features


def _layers(path: Path, tensors: dict[str, Any], name: str, width: int, last: int) -> Layers:
    """Return the layers of a network that leads from `width` inputs to `last` outputs."""
    count = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in tensors)
    layers: Layers = []
    for i in range(count):
        bias = tensors.get(f"{name}.{i}.bias", np.zeros(0))
        outputs = last if i == count - 1 else len(bias)
        weight = _tensor(path, tensors, f"{name}.{i}.weight", (outputs, width))
        layers.append((weight, _tensor(path, tensors, f"{name}.{i}.bias", (outputs,))))
        width = outputs
    if not layers:
        raise PolicyError(f"{path}: no layers {name}.0.weight, {name}.0.bias, …")
    return layers


def _tensor(
    path: Path, tensors: dict[str, Any], name: str, shape: tuple[int, ...]
) -> npt.NDArray[np.float32]:
    tensor = tensors.get(name, np.zeros(0))
    if tensor.shape != shape or tensor.dtype != np.float32 or not np.isfinite(tensor).all():
        raise PolicyError(f"{path}: {name}: expected finite float32 numbers of shape {shape}")
    return np.asarray(tensor, np.float32)


def _in_order(file: bytes) -> bytes:
    """Sort the header of a safetensors file, whose writer leaves the order to chance.

    The format: the header's length in eight bytes, the header as JSON, the tensors.
    """
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.dumps(json.loads(file[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + file[end:]
