"""Tokaido Duo for TorchRL: many games side by side as one batched environment.

    from tokaido_env.torchrl import TokaidoDuoEnv

    env = TokaidoDuoEnv(1024)
    env.set_seed(7)
    data = env.rollout(100, break_when_any_done=False)

| | |
|---|---|
| batch size | (n,), the games: no workers are needed |
| `observation` | float32 (n, N_FEATURES) in [0, 1], as whoever decides sees it |
| `action_mask` | bool (n, 49), True = legal, as the action spec has it for random actions |
| `player` | int64 (n, 1), who decides, -1 at the end |
| `action` | int64 (n,), the table of `tokaido_env.core.actions` |
| `reward` | float32 (n, 1), of the step, for who decided in it |
| `done` | a trigger has ended the game (`terminated`), or the cap on rounds (`truncated`) |

The same player may decide several times in a row. So a value estimate of the next state keeps its
sign where `("next", "player")` is `player`, and is taken with the other sign where it is not: see
`turning`. `tokaido_env.batch` plays the games; this translates.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.core.optional_deps import extra_error

try:
    import torch
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
    from torchrl.envs import EnvBase
except ModuleNotFoundError as error:
    raise extra_error("TokaidoDuoEnv needs", error.name, "torchrl") from error

from tokaido_env.batch import Batch
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import check_seed
from tokaido_env.observers import observation_size
from tokaido_env.timestep import TimeStep


class TokaidoDuoEnv(EnvBase):
    """N games, each row seen by whoever is to decide.

    A seed `s` begins game `i` with the first episode of `s + i`; games that end and are reset, as
    rollouts and collectors do by themselves, go on to the next of theirs.

    Args:
        n: how many games.
        board: as for `Batch`.
        reward: "win", or "margin" for the score margin / 100, clipped to [-1, 1].
        see_board: the block of its board stands behind each observation.

    Attributes:
        games: the batch that is played.
    """

    def __init__(
        self,
        n: int = 1024,
        *,
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        see_board: bool = False,
    ) -> None:
        super().__init__(batch_size=[n])
        self.games = Batch(n, board, autoreset=False, reward=reward, see_board=see_board)
        self._base: int | None = None
        width = observation_size("float32", see_board)
        self.observation_spec = Composite(
            observation=Bounded(0, 1, (n, width), dtype=torch.float32),
            action_mask=Binary(N_ACTIONS, (n, N_ACTIONS), dtype=torch.bool),
            player=Bounded(-1, 1, (n, 1), dtype=torch.int64),
            shape=(n,),
        )
        self.action_spec = Categorical(N_ACTIONS, (n,), dtype=torch.int64)
        self.reward_spec = Unbounded((n, 1), dtype=torch.float32)
        ends = ("done", "terminated", "truncated")
        flags = {name: Categorical(2, (n, 1), dtype=torch.bool) for name in ends}
        self.done_spec = Composite(flags, shape=(n,))

    def _set_seed(self, seed: int | None) -> None:
        self._base = None if seed is None else check_seed(seed)

    def _reset(self, tensordict: TensorDictBase | None = None, **options: Any) -> TensorDict:
        games = self.games.all_games
        if tensordict is not None and "_reset" in tensordict.keys():  # noqa: SIM118
            games = np.flatnonzero(tensordict["_reset"].reshape(-1).numpy())
        self.games.begin(games, None if self._base is None else self._base + games)
        self._base = None
        nothing = np.zeros(len(self.games), np.bool_)
        return self._told(self.games.timestep(), nothing, nothing)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        turn = self.games.step(tensordict["action"].numpy())
        own = turn.reward[self.games.all_games, turn.player]
        told = self._told(turn, turn.terminated, turn.truncated)
        told["reward"] = torch.from_numpy(own)[:, None]
        return told

    def _told(
        self, turn: TimeStep, terminated: npt.NDArray[np.bool_], truncated: npt.NDArray[np.bool_]
    ) -> TensorDict:
        mask = torch.from_numpy(turn.mask.astype(np.bool_))
        mask[~mask.any(dim=1)] = True  # at the end, where nothing is played: a mask has to allow
        self.action_spec.update_mask(mask)
        ended = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        return TensorDict(
            {
                "observation": torch.from_numpy(turn.observation),
                "action_mask": mask,
                "player": torch.from_numpy(turn.mover.astype(np.int64))[:, None],
                **{name: torch.from_numpy(flags)[:, None] for name, flags in ended.items()},
            },
            batch_size=self.batch_size,
        )


def turning(data: TensorDictBase) -> torch.Tensor:
    """Return what a value of the next state is multiplied by, float32 as the reward's shape.

    1 where the same player decides again, -1 where the other does, 0 at the end.

    Args:
        data: of a rollout: has `player` and `("next", "player")`.
    """
    signs = torch.where(data["player"] == data["next", "player"], 1.0, -1.0)
    return torch.where(data["next", "done"], 0.0, signs)
