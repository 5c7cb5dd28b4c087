"""`Batch`: many games as one array, stepped in compiled loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.actions import LABELS, N_ACTIONS, actions_of
from tokaido_env.board import Board
from tokaido_env.game import IllegalMove
from tokaido_env.jit import int64, parallel
from tokaido_env.luck import LUCK, agent_keys, check_seed, key_of_seed, settle
from tokaido_env.observation import N_FEATURES, encode, expand_mask
from tokaido_env.rules import apply, legal, reward
from tokaido_env.state import END_CAP, NOT_ENDED, STATE, start

Games = npt.NDArray[np.int64]


class Batch:
    """N games, each with luck of its own; chance resolves itself.

    Game `i` is the same as `Game(seed=seeds[i])`, whatever N and the number of threads.

    Args:
        seeds: int64 (n,), one for each game.
        board: as for `Game`, the same for all.

    Attributes:
        boards: `BOARD` (1,), shared by all games.
        states: `STATE` (n,), the positions.
        luck: `LUCK` (n,), never handed to agents.
        legal: uint64 (n,), the legal actions as bits; 0 when over.
        seeds: int64 (n,), of the games.
        decisions: int64 (n,), how many decisions each game has seen.
    """

    def __init__(self, seeds: npt.ArrayLike, board: str | Path | Board = "shikoku") -> None:
        self.seeds = np.array(seeds, np.int64)
        for seed in (self.seeds.min(initial=0), self.seeds.max(initial=0)):
            check_seed(seed)
        self.board = Board.load(board)
        self.boards = self.board.record
        n = len(self.seeds)
        self.states = np.zeros(n, STATE)
        self.legal = np.zeros(n, np.uint64)
        self.decisions = np.zeros(n, np.int64)
        self.luck = np.zeros(n, LUCK)
        self._start = start(self.board)
        self.restart(np.arange(n), self.seeds)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def players(self) -> npt.NDArray[np.int8]:
        """Whose decision it is in each game, -1 when over: int8 (n,)."""
        return self.states["player"].copy()

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Which games have ended: bool (n,)."""
        return np.asarray(self.states["end"] != NOT_ENDED)

    @property
    def capped(self) -> npt.NDArray[np.bool_]:
        """Which games have ended at the cap on rounds (R10.1): bool (n,)."""
        return np.asarray(self.states["end"] == END_CAP)

    def restart(self, games: Games, seeds: npt.NDArray[np.int64]) -> None:
        """Begin the given games anew with the luck of the given seeds."""
        self.seeds[games] = seeds
        self.decisions[games] = 0
        _restart(self.boards, games, self.states, self.luck, self.legal, self._start, seeds)

    def step(self, games: Games, actions: npt.NDArray[np.int64]) -> None:
        """Play one decision of each of the given games.

        Raises:
            IllegalMove: naming the first game whose action is not legal; nothing is stepped then.
        """
        self._check(games, actions)
        _step(self.boards, games, self.states, self.luck, self.legal, actions)
        self.decisions[games] += 1

    def keys(self, games: Games) -> npt.NDArray[np.uint64]:
        """Return what an agent draws from for its decision in each of the given games (n,)."""
        out = np.empty(len(games), np.uint64)
        players = self.states["player"][games]
        agent_keys(self.seeds[games], players, self.decisions[games], out)
        return out

    def observe(self, games: Games, seats: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Return what the given seats see in the given games: float32 (len(games), N_FEATURES)."""
        out = np.empty((len(games), N_FEATURES), np.float32)
        _observe(self.boards, games, self.states, seats, out)
        return out

    def masks(self, games: Games) -> npt.NDArray[np.bool_]:
        """Return the legal actions of the given games: bool (len(games), N_ACTIONS)."""
        out = np.empty((len(games), N_ACTIONS), np.int8)
        _expand(self.boards, games, self.legal, out)
        return out.view(np.bool_)

    def rewards(
        self, games: Games, seats: npt.NDArray[np.int8], *, margin: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return the reward of a seat of each of the given games (`rules.reward`)."""
        out = np.empty(len(games), np.float64)
        _reward(self.boards, games, self.states, seats, margin, out)
        return out

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays that make the batch, luck included, for `restore`."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def restore(self, snapshot: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a snapshot of a batch of the same size and board."""
        for name, array in self._arrays().items():
            array[:] = snapshot[name]

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "states": self.states,
            "luck": self.luck,
            "legal": self.legal,
            "seeds": self.seeds,
            "decisions": self.decisions,
        }

    def _check(self, games: Games, actions: npt.NDArray[np.int64]) -> None:
        inside = (actions >= 0) & (actions < N_ACTIONS)
        bits = np.where(inside, actions, 0).astype(np.uint64)
        right = inside & ((self.legal[games] >> bits & np.uint64(1)) == 1)
        if not right.all():
            first = int(np.flatnonzero(~right)[0])
            game, action = int(games[first]), int(actions[first])
            labels = ", ".join(LABELS[a] for a in actions_of(int(self.legal[game])))
            raise IllegalMove(f"game {game}: illegal action {action}: legal are {labels or 'none'}")


@parallel
def _restart(
    boards: Any, games: Any, states: Any, lucks: Any, masks: Any, fresh: Any, seeds: Any
) -> None:
    for j in prange(len(games)):
        i = games[j]
        states[i] = fresh[0]
        lucks[i]["key"] = key_of_seed(seeds[j])
        lucks[i]["drawn"][0] = 0
        lucks[i]["drawn"][1] = 0
        lucks[i]["copies"] = 0
        settle(boards[0], states[i], lucks[i])
        masks[i] = legal(boards[0], states[i])


@parallel
def _step(boards: Any, games: Any, states: Any, lucks: Any, masks: Any, actions: Any) -> None:
    for j in prange(len(games)):
        i = games[j]
        apply(boards[0], states[i], actions[j])
        settle(boards[0], states[i], lucks[i])
        masks[i] = legal(boards[0], states[i])


@parallel
def _observe(boards: Any, games: Any, states: Any, seats: Any, out: Any) -> None:
    for j in prange(len(games)):
        encode(boards[0], states[games[j]], int64(seats[j]), out[j])


@parallel
def _expand(boards: Any, games: Any, masks: Any, out: Any) -> None:
    for j in prange(len(games)):
        expand_mask(masks[games[j]], out[j])


@parallel
def _reward(boards: Any, games: Any, states: Any, seats: Any, margin: bool, out: Any) -> None:
    for j in prange(len(games)):
        out[j] = reward(boards[0], states[games[j]], int64(seats[j]), margin)
