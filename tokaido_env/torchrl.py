"""TorchRL environment: many games as one batched environment.

    from tokaido_env.torchrl import TokaidoDuoEnv

    env = TokaidoDuoEnv(1024)
    env.set_seed(7)
    data = env.rollout(100, break_when_any_done=False)

| | |
|---|---|
| batch size | (n,), the games; no worker processes are needed |
| `observation` | float32 (n, N_FEATURES) in [0, 1], from the view of the player to decide |
| `action_mask` | bool (n, 49), True = legal; the action spec uses it for random actions |
| `player` | int64 (n, 1), the player to decide, -1 at the end |
| `action` | int64 (n,), the table of `tokaido_env.core.actions` |
| `reward` | float32 (n, 1), the reward of the step for the player who acted |
| `done` | the game ended by a trigger (`terminated`) or at the cap on rounds (`truncated`) |

A player may decide several times in a row. The value of the next state therefore keeps its sign if
`("next", "player")` equals `player`, and changes it otherwise: see `value_sign`.
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
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.observers import observation_size
from tokaido_env.timestep import TimeStep


class TokaidoDuoEnv(CopiedWhole, EnvBase):
    """N games, each observed by the player to decide.

    A seed `s` starts game `i` with the first episode of `s + i`. Later resets, which rollouts and
    collectors make themselves, start the next episode of each game.

    Args:
        n: number of games.
        board: as for `Batch`.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        see_board: append the board features to each observation.

    Attributes:
        games: the `Batch` being played.
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
        self._base_seed: int | None = None
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
        self._base_seed = None if seed is None else check_seed(seed)

    def _reset(self, tensordict: TensorDictBase | None = None, **options: Any) -> TensorDict:
        games = self.games.all_games
        if tensordict is not None and "_reset" in tensordict.keys():  # noqa: SIM118
            games = np.flatnonzero(tensordict["_reset"].reshape(-1).numpy())
        self.games.begin(games, None if self._base_seed is None else self._base_seed + games)
        self._base_seed = None
        no_end = np.zeros(len(self.games), np.bool_)
        return self._time_step(self.games.timestep(), no_end, no_end)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        timestep = self.games.step(tensordict["action"].numpy())
        reward = timestep.reward[self.games.all_games, timestep.player]
        data = self._time_step(timestep, timestep.terminated, timestep.truncated)
        data["reward"] = torch.from_numpy(reward)[:, None]
        return data

    def _time_step(
        self,
        timestep: TimeStep,
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
    ) -> TensorDict:
        mask = torch.from_numpy(timestep.mask.astype(np.bool_))
        mask[~mask.any(dim=1)] = True  # at the end; TorchRL masks must allow an action
        self.action_spec.update_mask(mask)
        ended = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
        return TensorDict(
            {
                "observation": torch.from_numpy(timestep.observation),
                "action_mask": mask,
                "player": torch.from_numpy(timestep.mover.astype(np.int64))[:, None],
                **{name: torch.from_numpy(flags)[:, None] for name, flags in ended.items()},
            },
            batch_size=self.batch_size,
        )


def value_sign(data: TensorDictBase) -> torch.Tensor:
    """Return the factor of the next state's value, float32 with the reward's shape.

    It is 1 if the same player decides again, -1 if the other decides, and 0 at the end.

    Args:
        data: data of a rollout, with `player`, `("next", "player")` and `("next", "done")`.
    """
    signs = torch.where(data["player"] == data["next", "player"], 1.0, -1.0)
    return torch.where(data["next", "done"], 0.0, signs)
