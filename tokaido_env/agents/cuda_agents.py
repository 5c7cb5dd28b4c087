"""The heuristic and networks on a GPU, as opponents for `CudaBatch`.

    from tokaido_env.agents.cuda_agents import CudaHeuristic, CudaPolicy

    batch = CudaBatch(65_536, observation=None)
    opponent = CudaPolicy(batch, Policy.load("champion.safetensors"))
    batch.reset(seed=0)
    batch.step(opponent.decide())

The functions are those for a CPU, with one thread for each position. A GPU rounds fused products
once, so that evaluations differ from a CPU's in their last bits, and with them the choice between
actions that are equally good.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda
from numpy.lib.recfunctions import repack_fields

from tokaido_env.agents.inference import choose_action, forward
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.weights import Weights
from tokaido_env.agents.workspaces import MAX_CHANGES, PositionRow, Workspace
from tokaido_env.core.actions import N_ACTIONS, NO_ACTION
from tokaido_env.core.aligned_dtypes import aligned
from tokaido_env.core.stepping import decision_key
from tokaido_env.cuda import CudaBatch, launch
from tokaido_env.cuda_kernels import Games
from tokaido_env.features.evaluation import SCRATCH, best_action
from tokaido_env.features.network_inputs import N_INPUTS
from tokaido_env.features.terms import WEIGHTS

CHUNK = 16_384
"""Positions that a network evaluates at once; each takes about 30 KB of GPU memory."""

_SCRATCH = aligned(SCRATCH)
# Of the heuristic alone, because each thread keeps it in its own memory.
_HEURISTIC_SCRATCH = aligned(repack_fields(SCRATCH[["states", "terms"]]))


class CudaHeuristic:
    """`heuristic` for the games of a batch on a GPU.

    Args:
        batch: the batch of the games.
    """

    def __init__(self, batch: CudaBatch) -> None:
        self._batch = batch
        self._moves = cuda.device_array(len(batch), np.int64)

    def decide(self) -> Any:
        """Return an action for each game, int64 (n,) on the GPU; NO_ACTION where none is legal."""
        launch(choose_by_heuristic, len(self._batch), self._batch.games, self._moves)
        return self._moves


class CudaPolicy:
    """A network for the games of a batch on a GPU.

    Args:
        batch: the batch of the games.
        policy: the network; its action is always taken, as with `endings=network`.
        temperature: 0 takes the best action; above, a softmax of logits / temperature samples.

    Attributes:
        logits: float32 (n, N_ACTIONS) on the GPU, from the last `decide`; -inf where illegal.
        values: float32 (n,) on the GPU, for the player to decide; 0 where nothing is legal.
    """

    def __init__(self, batch: CudaBatch, policy: Policy, temperature: float = 0.0) -> None:
        self._batch, self.temperature = batch, float(temperature)
        weights: Any = policy.network()
        self._weights = Weights(*(cuda.to_device(array[0].copy()) for array in weights))
        self._workspaces = _workspaces(weights, min(CHUNK, len(batch)))
        self.logits = cuda.device_array((len(batch), N_ACTIONS), np.float32)
        self.values = cuda.device_array(len(batch), np.float32)
        self._moves = cuda.device_array(len(batch), np.int64)

    def decide(self) -> Any:
        """Return an action for each game, int64 (n,) on the GPU; NO_ACTION where none is legal."""
        n, chunk = len(self._batch), len(self._workspaces.units)
        for first in range(0, n, chunk):
            launch(
                *(choose_by_network, min(chunk, n - first), self._batch.games),
                *(self._weights, self._workspaces, first, self.temperature),
                *(self.logits, self.values, self._moves),
            )
        return self._moves


def choose_by_heuristic(games: Games, moves: Any) -> None:
    """Write the heuristic's action in each game; NO_ACTION where none is legal.

    Args:
        games: the games of the batch.
        moves: int64 (n,), written.
    """
    i = cuda.grid(1)
    if i < len(games.states):
        moves[i] = NO_ACTION
        if games.masks[i] != np.uint64(0):
            scratch = cuda.local.array(1, _HEURISTIC_SCRATCH)
            k = games.episode_info[i]["board"]
            moves[i] = best_action(
                games.boards[k], games.states[i], games.masks[i], WEIGHTS, scratch[0]
            )


def choose_by_network(
    games: Games,
    network: Any,
    workspaces: Any,
    first: int,
    temperature: float,
    logits: Any,
    values: Any,
    moves: Any,
) -> None:
    """Evaluate as many games as there are workspaces, from `first` on, and choose actions.

    Args:
        games: the games of the batch.
        network: `Weights` without the axis of copies.
        workspaces: `Workspace` with one more axis, first.
        first: the first game.
        temperature: 0 takes the best action; above, a softmax of logits / temperature samples.
        logits: float32 (n, N_ACTIONS), written.
        values: float32 (n,), written.
        moves: int64 (n,), written.
    """
    w = cuda.grid(1)
    i = first + w
    if w < len(workspaces.units) and i < len(games.states):
        moves[i] = NO_ACTION
        values[i] = 0.0
        logits[i, :] = -np.inf
        if games.masks[i] != np.uint64(0):
            k = games.episode_info[i]["board"]
            position = PositionRow(games.boards[k], games.states[i], games.masks[i])
            workspace = Workspace(
                *(workspaces.scratch[w : w + 1], workspaces.layers[w], workspaces.changed[w]),
                *(workspaces.changes[w], workspaces.whole[w], workspaces.sums[w]),
                *(workspaces.units[w], workspaces.values[w], workspaces.logits[w]),
            )
            values[i] = forward(network, position, workspace, logits[i])
            key = decision_key(games.states[i], games.episode_info[i])
            moves[i] = choose_action(logits[i], games.masks[i], key, temperature)


def _workspaces(weights: Weights, n: int) -> Workspace:
    """Return workspaces for n positions on the GPU."""
    _, units, second = weights.second.shape
    new = cuda.device_array
    return Workspace(
        scratch=new(n, _SCRATCH),
        layers=new((n, N_INPUTS + second), np.float32),
        changed=new((n, MAX_CHANGES), np.int64),
        changes=new((n, MAX_CHANGES), np.int16),
        whole=cuda.to_device(np.zeros((n, 2, N_INPUTS), np.int16)),
        sums=cuda.to_device(np.zeros((n, 2, units), np.int16)),
        units=new((n, units), np.int64),
        values=new((n, units), np.float32),
        logits=new((n, N_ACTIONS), np.float32),
    )
