"""Tokaido Duo for Stable-Baselines3: many games of one learner as a VecEnv, in one process.

The learner sits at alternating seats; between its decisions the opponents play, batched. A
transition runs from one decision of the learner to its next, so both its reward and its next
observation are its own, also when a player moves twice in a row or has to discard inside the
other's pick.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from tokaido_env.actions import N_ACTIONS
from tokaido_env.batch import Batch
from tokaido_env.board import Board
from tokaido_env.luck import check_seed, episode_seeds
from tokaido_env.observation import N_FEATURES


class Opponent(Protocol):
    """What plays against the learner: any `tokaido_env.agents.Agent`."""

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return a legal action for each game."""
        ...


class TokaidoVecEnv(VecEnv):
    """N games against a list of opponents.

    Args:
        n: games side by side.
        opponents: game `i` is played against opponent `i % len(opponents)`. Replace the list's
            entries while training runs (`env.opponents[0] = …`): the change holds from the next
            decision.
        seed: game `i` has the episodes of seed `seed + i`.
        board: as for `Game`.
        reward: "win", or "margin" (`rules.reward`).
    """

    def __init__(
        self,
        n: int,
        opponents: Sequence[Opponent],
        seed: int,
        board: str | Path | Board = "shikoku",
        reward: Literal["win", "margin"] = "win",
    ) -> None:
        if n < 1 or not opponents:
            raise ValueError(f"expected one game or more and opponents, got {n}, {opponents}")
        if reward not in ("win", "margin"):
            raise ValueError(f"reward: expected one of 'win', 'margin', got {reward!r}")
        check_seed(check_seed(seed) + n - 1)
        self.render_mode = None
        super().__init__(
            n, spaces.Box(0.0, 1.0, (N_FEATURES,), np.float32), spaces.Discrete(N_ACTIONS)
        )
        self.opponents = list(opponents)
        self._margin = reward == "margin"
        self._base = np.arange(n, dtype=np.int64) + seed
        self._games = np.arange(n)
        self._episodes = np.zeros(n, np.int64)
        self._lengths = np.zeros(n, np.int64)
        self._batch = Batch(self._base, board)
        self._actions = np.zeros(n, np.int64)
        self._began = time.time()

    @property
    def seats(self) -> npt.NDArray[np.int8]:
        """The learner's seat in each game: int8 (n,)."""
        return ((self._games + self._episodes) % 2).astype(np.int8)

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin the first episode of every game; return the learner's observations."""
        self._episodes[:] = 0
        self._begin(self._games)
        self._play_opponents(np.zeros(self.num_envs, np.float32), {})
        return self.observe()

    def observe(self) -> npt.NDArray[np.float32]:
        """Return what the learner sees now: float32 (n, N_FEATURES)."""
        return self._batch.observe(self._games, self.seats)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the learner's legal actions: bool (n, N_ACTIONS)."""
        return self._batch.masks(self._games)

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Take the learner's actions, int (n,)."""
        self._actions = np.asarray(actions, np.int64)

    def step_wait(self) -> Any:
        """Play them and the opponents' answers.

        Returns:
            Observations, rewards float32 (n,), dones bool (n,) and infos. A finished game has begun
            anew; its last observation is in its info as `terminal_observation`.
        """
        self._batch.step(self._games, self._actions)
        self._lengths += 1
        rewards = np.zeros(self.num_envs, np.float32)
        finished: dict[int, dict[str, Any]] = {}
        self._play_opponents(rewards, finished)
        infos = [finished.get(i, {}) for i in range(self.num_envs)]
        dones = np.zeros(self.num_envs, np.bool_)
        dones[list(finished)] = True
        return self.observe(), rewards, dones, infos

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays from which `restore` continues identically."""
        own = {"episodes": self._episodes.copy(), "lengths": self._lengths.copy()}
        return self._batch.snapshot() | own

    def restore(self, snapshot: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a snapshot of an environment of the same size, seed and board."""
        self._batch.restore(snapshot)
        self._episodes[:] = snapshot["episodes"]
        self._lengths[:] = snapshot["lengths"]

    def _begin(self, games: npt.NDArray[np.int64]) -> None:
        seeds = np.empty(len(games), np.int64)
        episode_seeds(self._base[games], self._episodes[games], seeds)
        self._batch.restart(games, seeds)
        self._lengths[games] = 0

    def _play_opponents(
        self, rewards: npt.NDArray[np.float32], finished: dict[int, dict[str, Any]]
    ) -> None:
        """Play until every game waits for the learner, beginning finished ones anew."""
        games = self._games
        while len(games):
            over = games[self._batch.over[games]]
            if len(over):
                self._finish(over, rewards, finished)
            games = games[self._batch.states["player"][games] != self.seats[games]]
            for slot, opponent in enumerate(self.opponents):
                mine = games[games % len(self.opponents) == slot]
                if len(mine):
                    self._decide(opponent, mine)

    def _decide(self, opponent: Opponent, games: npt.NDArray[np.int64]) -> None:
        batch = self._batch
        states, legal = batch.states[games], batch.legal[games]
        batch.step(games, opponent.act(batch.boards, states, legal, batch.keys(games)))

    def _finish(
        self,
        games: npt.NDArray[np.int64],
        rewards: npt.NDArray[np.float32],
        finished: dict[int, dict[str, Any]],
    ) -> None:
        seats = self.seats[games]
        rewards[games] = self._batch.rewards(games, seats, margin=self._margin)
        last = self._batch.observe(games, seats)
        capped = self._batch.capped[games]
        for j, game in enumerate(games.tolist()):
            episode = {
                "r": float(rewards[game]),
                "l": int(self._lengths[game]),
                "t": round(time.time() - self._began, 6),
            }
            finished[game] = {
                "terminal_observation": last[j],
                "TimeLimit.truncated": bool(capped[j]),
                "episode": episode,
                "seed": int(self._batch.seeds[game]),
            }
        self._episodes[games] += 1
        self._begin(games)

    # What remains of VecEnv: there are no single environments behind this one.

    def close(self) -> None:
        """Nothing is held open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of this environment, once for each index."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of this environment: of all games, since they share it."""
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call `action_masks`, the one method that single environments of this kind have."""
        if method_name != "action_masks":
            raise AttributeError(f"env_method: expected 'action_masks', got {method_name!r}")
        return list(self.action_masks()[list(self._get_indices(indices))])

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return False for each index."""
        return [False for _ in self._get_indices(indices)]

    def _get_indices(self, indices: int | Iterable[int] | None) -> Iterable[int]:
        return super()._get_indices(indices)
