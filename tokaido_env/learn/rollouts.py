"""Rollouts of self-play PPO: whole games of the network against itself.

Games are played to their end: dropping long games would bias the rollout towards short ones. The
network plays both seats, so that every decision is a training sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tokaido_env.agent import Keys, Legal, States
from tokaido_env.agents.inference import choose_actions
from tokaido_env.arena.match import GAME, store_ends
from tokaido_env.batch import Batch
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import copy_rows
from tokaido_env.features.eval_tables import eval_tables_of
from tokaido_env.features.network_inputs import apply_actions, encode_positions
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.observers import masks

ROW_MULTIPLE = 512
"""Matrices are padded to a multiple of this many rows: PyTorch plans the product of each new size.
"""

ILLEGAL_LOGIT = -1e9


class Decisions(NamedTuple):
    """All decisions of some games; those of one game are in the order of play."""

    inputs: torch.Tensor
    """(n, N_INPUTS)."""
    results: torch.Tensor
    """(k, N_AFTERSTATE), afterstate features of all legal actions, in order."""
    legal: npt.NDArray[np.uint64]
    """(n,), legal actions as bits."""
    board: npt.NDArray[np.int64]
    """(n,), index in the pool."""
    game: npt.NDArray[np.int64]
    """(n,), index of the game."""
    mover: npt.NDArray[np.int8]
    """(n,), the player to decide."""
    round: npt.NDArray[np.int16]
    """(n,), number of rolls so far."""
    action: npt.NDArray[np.int64]
    """(n,), the sampled action."""
    log_prob: npt.NDArray[np.float32]
    """(n,), log probability of that action."""
    value: npt.NDArray[np.float32]
    """(n,), for player_0, in [-1, 1]."""
    chance: npt.NDArray[np.int64]
    """(n,), row in `ChanceNodes` of the chance node after the action; -1: none."""


class ChanceNodes(NamedTuple):
    """All chance nodes that follow a decision of these games."""

    inputs: torch.Tensor
    """(m, N_INPUTS)."""
    decision: npt.NDArray[np.int64]
    """(m,), index of the decision before."""
    viewer: npt.NDArray[np.int8]
    """(m,), the player that the inputs are for."""
    value: npt.NDArray[np.float32]
    """(m,), for player_0, in [-1, 1]."""


@dataclass(frozen=True)
class Rollout:
    """Finished games.

    Attributes:
        decisions, chances: all decisions and chance nodes.
        results: float32 (games,), of player_0.
        ends: int16 (games, 8): faith, commerce and culture of player_0, then of player_1, the
            number of rounds, and the end trigger: 0 none, 1 temple, 2 garden, 3 slabs, 4 gifts.
    """

    decisions: Decisions
    chances: ChanceNodes
    results: npt.NDArray[np.float32]
    ends: npt.NDArray[np.int16]


def play_games(network: PolicyNetwork, pool: BoardPool, games: int, seed: int) -> Rollout:
    """Play games of a network against itself to their end, sampling its actions.

    Args:
        network: plays both seats.
        pool: the boards; a game's seed chooses its board.
        games: number of games.
        seed: of the first game; the others follow.
    """
    batch = Batch(games, pool, observation=None, autoreset=False, copy=False)
    batch.reset(seed=seed)
    which = batch.episode_info["board"].astype(np.int64)
    recorder = _Recorder(network, pool)
    running = np.flatnonzero(~batch.over)
    with network.inference():
        while len(running):
            states, keys = copy_rows(batch.states, running), batch.keys(running)
            actions = recorder.decide(running, which[running], states, batch.legal[running], keys)
            batch.advance(running, actions, check=False)
            running = running[~batch.over[running]]
    ended = np.zeros(games, GAME)
    store_ends(ended, pool.records, which, batch.states)
    return recorder.rollout(batch.rewards(np.arange(games))[:, 0], _ends_of(ended))


def _ends_of(ended: npt.NDArray[np.void]) -> npt.NDArray[np.int16]:
    """Return `Rollout.ends` of games, `GAME` (n,), in which agent a is player_0."""
    first = 1 + ended["triggers"].argmax(axis=2)
    first[~ended["triggers"].any(axis=2)] = 0
    trigger = np.where(first[:, 1], first[:, 1], first[:, 0])
    columns = ended["points"].reshape(len(ended), 6), ended["rounds"], trigger
    return np.column_stack(columns).astype(np.int16)


class _Recorder:
    """Decides with a network and records the decisions and chance nodes."""

    def __init__(self, network: PolicyNetwork, pool: BoardPool) -> None:
        self._network = network
        self._boards, self._tables = pool.records, eval_tables_of(pool.records)
        self._decisions: list[Decisions] = []
        self._chances: list[ChanceNodes] = []
        self._count = 0

    def decide(
        self,
        games: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
        states: States,
        legal: Legal,
        keys: Keys,
    ) -> npt.NDArray[np.int64]:
        """Sample and record the actions (n,) of games with a decision to take."""
        network = self._network
        outputs = evaluate_decisions(network, self._boards, self._tables, which, states, legal)
        logits, values, inputs, results = outputs
        actions = np.empty(len(legal), np.int64)
        choose_actions(actions, logits.cpu().numpy(), legal, keys, 1.0)
        rows = network.tensor(actions)[:, None]
        log_probs = torch.log_softmax(logits, 1).gather(1, rows)[:, 0].cpu().numpy()
        mover = states["player"].copy()
        chance = self._record_chance(which, states, actions)
        self._decisions.append(
            Decisions(
                *(inputs, results, legal, which, games, mover, states["round"].copy()),
                *(actions, log_probs, _for_player_0(values, mover), chance),
            )
        )
        self._count += len(legal)
        return actions

    def _record_chance(
        self, which: npt.NDArray[np.int64], states: States, actions: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Record the chance nodes after actions; return the row of each action's, or -1."""
        after = copy_rows(states)
        viewers = apply_actions(self._boards, which, after, actions)
        at = np.flatnonzero(viewers >= 0)
        rows = np.full(len(states), -1, np.int64)
        if len(at) == 0:
            return rows
        inputs, values = evaluate_chance(
            self._network, self._boards, self._tables, which[at], copy_rows(after, at)
        )
        begin = sum(len(nodes.decision) for nodes in self._chances)
        rows[at] = begin + np.arange(len(at))
        values_0 = _for_player_0(values, viewers[at])
        self._chances.append(ChanceNodes(inputs, self._count + at, viewers[at], values_0))
        return rows

    def rollout(self, results: npt.NDArray[np.float32], ends: npt.NDArray[np.int16]) -> Rollout:
        """Return the recorded games, given their results and ends."""
        decisions = Decisions(*map(_concatenate, zip(*self._decisions, strict=True)))
        chances = ChanceNodes(*map(_concatenate, zip(*self._chances, strict=True)))
        return Rollout(decisions, chances, results, ends)


class Outputs(NamedTuple):
    """The network's outputs for n positions, and its inputs."""

    logits: torch.Tensor
    """(n, N_ACTIONS), `ILLEGAL_LOGIT` where illegal."""
    values: torch.Tensor
    """(n,), as log odds / 2 for the player to decide."""
    inputs: torch.Tensor
    """(n, N_INPUTS)."""
    results: torch.Tensor
    """(k, N_AFTERSTATE), afterstate features of all legal actions, in order."""


def evaluate_decisions(
    network: PolicyNetwork,
    boards: npt.NDArray[np.void],
    tables: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    legal: Legal,
) -> Outputs:
    """Evaluate decisions with a network; arguments as of `encode_positions`."""
    trunk, moves = encode_positions(boards, tables, which, states, legal, ROW_MULTIPLE)
    n, k = len(legal), int(np.bitwise_count(legal).sum())
    inputs, results = (network.tensor(array, network.dtype) for array in (trunk, moves))
    board = pad_rows(network.tensor(which), len(inputs))
    position, action = (pad_rows(network.tensor(x), len(results)) for x in moves_of(legal))
    scores, values, _ = network(inputs, Moves(results, position, action), board)
    logits = logits_of(scores[:k], position[:k], action[:k], n)
    return Outputs(logits, values[:n], inputs[:n], results[:k])


def evaluate_chance(
    network: PolicyNetwork,
    boards: npt.NDArray[np.void],
    tables: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Evaluate chance nodes with a network; arguments as of `encode_positions`.

    Returns:
        The inputs (n, N_INPUTS), and the values (n,), as log odds / 2 for the viewer.
    """
    n = len(states)
    trunk, _ = encode_positions(boards, tables, which, states, np.zeros(n, np.uint64), ROW_MULTIPLE)
    inputs = network.tensor(trunk, network.dtype)
    board = pad_rows(network.tensor(which), len(inputs))
    return inputs[:n], network.values(inputs, board)[0][:n]


def _for_player_0(values: torch.Tensor, seats: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Convert values from log odds / 2 for a seat to [-1, 1] for player_0."""
    own = torch.tanh(values).cpu().numpy() * (1 - 2 * seats)
    return np.asarray(own, np.float32)


def moves_of(legal: Legal) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return position index and action id of each legal action, int64 (k,) each."""
    position, action = masks(legal).nonzero()
    return position, action


def pad_rows(numbers: torch.Tensor, rows: int) -> torch.Tensor:
    """Return numbers (n,) padded with zeros to (rows,)."""
    return torch.nn.functional.pad(numbers, (0, rows - len(numbers)))


def logits_of(
    scores: torch.Tensor, position: torch.Tensor, action: torch.Tensor, n: int
) -> torch.Tensor:
    """Return scores of legal actions as logits (n, N_ACTIONS), `ILLEGAL_LOGIT` where illegal."""
    logits = torch.full((n, N_ACTIONS), ILLEGAL_LOGIT, device=scores.device)
    return logits.index_put((position, action), scores)


def _concatenate(parts: Any) -> Any:
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else np.concatenate(parts)
