"""Games of a network against itself, played to their end: what a learner learns from.

Whole games, since what drops games that take long would teach that games are short; both players
are the network, so that every decision is a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tokaido_env.agent import Keys, Legal, States
from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.inference import choose_actions
from tokaido_env.agents.network_inputs import active_seat, encode_positions
from tokaido_env.arena.match import GAME, store_ends
from tokaido_env.batch import Batch
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.jit import entry, index
from tokaido_env.core.rules import apply, is_chance
from tokaido_env.core.state import copy_rows
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.observers import masks

STEP = 512
"""Matrices have a multiple of so many rows: PyTorch plans a product anew for each new size."""

ILLEGAL_LOGIT = -1e9  # the logit of what is illegal


class Decisions(NamedTuple):
    """All decisions of some games, those of a game in their order."""

    inputs: torch.Tensor
    """(n, N_INPUTS)."""
    results: torch.Tensor
    """(k, N_AFTERSTATE), of the legal actions of all, in their order."""
    legal: npt.NDArray[np.uint64]
    """(n,), as bits."""
    board: npt.NDArray[np.int64]
    """(n,), its place in the pool."""
    game: npt.NDArray[np.int64]
    """(n,)."""
    mover: npt.NDArray[np.int8]
    """(n,)."""
    round: npt.NDArray[np.int16]
    """(n,), rolls made."""
    action: npt.NDArray[np.int64]
    """(n,), that was taken."""
    log_odds: npt.NDArray[np.float32]
    """(n,), the logarithm of its probability."""
    value: npt.NDArray[np.float32]
    """(n,), for player_0."""
    chance: npt.NDArray[np.int64]
    """(n,), the row of `ChanceNodes` that it led to, -1 for none."""


class ChanceNodes(NamedTuple):
    """All nodes at chance that a decision of these games led to."""

    inputs: torch.Tensor
    """(m, N_INPUTS)."""
    decision: npt.NDArray[np.int64]
    """(m,), which led there."""
    viewer: npt.NDArray[np.int8]
    """(m,), whom the inputs are seen by."""
    value: npt.NDArray[np.float32]
    """(m,), for player_0."""


@dataclass(frozen=True)
class Rollout:
    """Games that ended.

    Attributes:
        decisions, chances: of all.
        results: float32 (games,), of player_0.
        ends: int16 (games, 8): faith, commerce and culture of player_0, those of player_1, the
            rounds, and which trigger ended it: 0 none, 1 temple, 2 garden, 3 slabs,
            4 gifts.
    """

    decisions: Decisions
    chances: ChanceNodes
    results: npt.NDArray[np.float32]
    ends: npt.NDArray[np.int16]


def play_games(network: PolicyNetwork, pool: BoardPool, games: int, seed: int) -> Rollout:
    """Play games to their end; actions are drawn by the policy.

    Args:
        network: both players.
        pool: the boards; that of each game follows from its seed.
        games: how many.
        seed: of the first game, the others follow.
    """
    batch = Batch(games, pool, observation=None, autoreset=False, copy=False)
    batch.reset(seed=seed)
    which = batch.episode_info["board"].astype(np.int64)
    notes = _Notes(network, pool)
    running = np.flatnonzero(~batch.over)
    with network.playing():
        while len(running):
            states, keys = copy_rows(batch.states, running), batch.keys(running)
            actions = notes.decide(running, which[running], states, batch.legal[running], keys)
            batch.advance(running, actions, check=False)
            running = running[~batch.over[running]]
    ended = np.zeros(games, GAME)
    store_ends(ended, pool.records, which, batch.states)
    return notes.played(batch.rewards(np.arange(games))[:, 0], _ends_of(ended))


def _ends_of(ended: npt.NDArray[np.void]) -> npt.NDArray[np.int16]:
    """Return `Rollout.ends` of games, `GAME` (n,), whose player_0 is agent a."""
    first = 1 + ended["triggers"].argmax(axis=2)
    first[~ended["triggers"].any(axis=2)] = 0
    trigger = np.where(first[:, 1], first[:, 1], first[:, 0])
    columns = ended["points"].reshape(len(ended), 6), ended["rounds"], trigger
    return np.column_stack(columns).astype(np.int16)


class _Notes:
    """Takes decisions by a network, and notes them."""

    def __init__(self, network: PolicyNetwork, pool: BoardPool) -> None:
        self._network = network
        self._boards, self._guides = pool.records, eval_tables_of(pool.records)
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
        """Return the actions (n,) of games with a decision to take."""
        network = self._network
        judged = judge(network, self._boards, self._guides, which, states, legal)
        logits, values, inputs, results = judged
        actions = np.empty(len(legal), np.int64)
        choose_actions(actions, logits.cpu().numpy(), legal, keys, 1.0)
        rows = network.tensor(actions)[:, None]
        log_odds = torch.log_softmax(logits, 1).gather(1, rows)[:, 0].cpu().numpy()
        mover = states["player"].copy()
        own = _for_player_0(values, mover)
        chance = self._look_behind(which, states, actions)
        self._decisions.append(
            Decisions(
                *(inputs, results, legal, which, games, mover, states["round"].copy()),
                *(actions, log_odds, own, chance),
            )
        )
        self._count += len(legal)
        return actions

    def _look_behind(
        self,
        which: npt.NDArray[np.int64],
        states: States,
        actions: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Note the nodes at chance behind actions; return which row each is, or -1."""
        after = copy_rows(states)
        seats = apply_each(self._boards, which, after, actions)
        at = np.flatnonzero(seats >= 0)
        rows = np.full(len(states), -1, np.int64)
        if len(at) == 0:
            return rows
        inputs, values = judge_chance(
            self._network, self._boards, self._guides, which[at], copy_rows(after, at)
        )
        own = _for_player_0(values, seats[at])
        begin = sum(len(one.decision) for one in self._chances)
        rows[at] = begin + np.arange(len(at))
        self._chances.append(ChanceNodes(inputs, self._count + at, seats[at], own))
        return rows

    def played(self, results: npt.NDArray[np.float32], ends: npt.NDArray[np.int16]) -> Rollout:
        """Return what was noted, of games with such ends."""
        decisions = Decisions(*(_joined(column) for column in zip(*self._decisions, strict=True)))
        chances = ChanceNodes(*(_joined(column) for column in zip(*self._chances, strict=True)))
        return Rollout(decisions, chances, results, ends)


class Judged(NamedTuple):
    """What a network says of n positions, and what it was told of them."""

    logits: torch.Tensor
    """(n, N_ACTIONS), `ILLEGAL_LOGIT` where illegal."""
    values: torch.Tensor
    """(n,), as log odds / 2 for who decides."""
    inputs: torch.Tensor
    """(n, N_INPUTS)."""
    results: torch.Tensor
    """(k, N_AFTERSTATE), of the legal actions of all, in their order."""


def judge(
    network: PolicyNetwork,
    boards: npt.NDArray[np.void],
    guides: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    legal: Legal,
) -> Judged:
    """Ask a network what it says of positions; takes what `encode_positions` takes."""
    trunk, moves = encode_positions(boards, guides, which, states, legal, STEP)
    n, k = len(legal), int(np.bitwise_count(legal).sum())
    inputs, results = (network.tensor(array, network.dtype) for array in (trunk, moves))
    board = padded(network.tensor(which), len(inputs))
    position, action = (padded(network.tensor(x), len(results)) for x in moves_of(legal))
    scores, values, _ = network(inputs, Moves(results, position, action), board)
    logits = spread(scores[:k], position[:k], action[:k], n)
    return Judged(logits, values[:n], inputs[:n], results[:k])


def judge_chance(
    network: PolicyNetwork,
    boards: npt.NDArray[np.void],
    guides: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ask a network what positions at chance are worth; takes what `encode_positions` takes.

    Returns:
        The inputs (n, N_INPUTS), and the values (n,), as log odds / 2 for who sees the position.
    """
    n = len(states)
    trunk, _ = encode_positions(boards, guides, which, states, np.zeros(n, np.uint64), STEP)
    inputs = network.tensor(trunk, network.dtype)
    board = padded(network.tensor(which), len(inputs))
    return inputs[:n], network.values(inputs, board)[0][:n]


def _for_player_0(values: torch.Tensor, seats: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Return values that are log odds / 2 for a seat as those in [-1, 1] for player_0."""
    own = torch.tanh(values).cpu().numpy() * (1 - 2 * seats)
    return np.asarray(own, np.float32)


def moves_of(
    legal: Legal,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return of which position each legal action is, and its number: int64 (k,) both."""
    position, action = masks(legal).nonzero()
    return position, action


def padded(numbers: torch.Tensor, rows: int) -> torch.Tensor:
    """Return numbers (n,) with zeros behind them, (rows,)."""
    return torch.nn.functional.pad(numbers, (0, rows - len(numbers)))


def spread(
    scores: torch.Tensor, position: torch.Tensor, action: torch.Tensor, n: int
) -> torch.Tensor:
    """Return scores of legal actions as logits (n, N_ACTIONS), `ILLEGAL_LOGIT` where illegal."""
    logits = torch.full((n, N_ACTIONS), ILLEGAL_LOGIT, device=scores.device)
    return logits.index_put((position, action), scores)


def _joined(parts: Any) -> Any:
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else np.concatenate(parts)


def apply_each(
    boards: npt.NDArray[np.void],
    which: npt.NDArray[np.int64],
    states: States,
    actions: npt.NDArray[np.int64],
) -> npt.NDArray[np.int8]:
    """Carry out actions; return by whom each state is seen if it is at chance then, else -1.

    Args:
        boards: `BOARD` (b,).
        which: int64 (n,), the board of each.
        states: `STATE` (n,), with a decision to take; overwritten.
        actions: int64 (n,), legal ones.
    """
    seats = np.full(len(states), -1, np.int8)
    _apply_each(seats, boards, which, states, actions)
    return seats


@entry
def _apply_each(seats: Any, boards: Any, which: Any, states: Any, actions: Any) -> None:
    for i in range(len(seats)):
        apply(boards[index(which[i])], states[i], actions[i])
        if is_chance(states[i]):
            seats[i] = active_seat(states[i])
