"""TorchRL environment: many games as one batched environment.

    from tokaido_env.torchrl import TokaidoDuoEnv

    env = TokaidoDuoEnv(1024)
    env.set_seed(7)
    data = env.rollout(100, break_when_any_done=False)

| | |
|---|---|
| batch size | (n,), the games; no worker processes are needed |
| `observation` | float32 (n, N_FEATURES) in [0, 1], from the view of the player to decide |
| `actions` | with `observation="afterstates"`, features of the actions, float32 (n, 49, 49) |
| `action_mask` | bool (n, 49), True = legal; the action spec draws random actions from it |
| `player` | int64 (n, 1), the player to decide, -1 at the end |
| `action` | int64 (n,), the table of `tokaido_env.core.actions` |
| `reward` | float32 (n, 1), the reward of the step for the player who acted |
| `done`, `terminated` | the game ended; no game is truncated |

`SerialEnv` and `ParallelEnv` draw random actions without the masks of their environments: use
`random_policy` there.

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
from tokaido_env.core.arguments import IllegalMove, check_seed
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.observers import AFTERSTATES, GEOMETRY, check_observation
from tokaido_env.spaces import observation_space
from tokaido_env.timestep import TimeStep

REMEDY = (
    "apply action_mask: in a policy by MaskedCategorical; for random actions in SerialEnv and "
    "ParallelEnv use the policy tokaido_env.torchrl.random_policy"
)


class TokaidoDuoEnv(CopiedWhole, EnvBase):
    """N games, each observed by the player to decide.

    A seed `s` starts game `i` with the first episode of seed `game_seed(s, i)`. Later resets, which
    rollouts and collectors make themselves, start the next episode of each game.

    Args:
        n: number of games.
        board: a name, a path, a `Board`, or a pool from which each episode's seed draws.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "float32", "geometry", or "afterstates" for the inputs of the networks, and
            `actions`.
        see_board: append the board features to each observation.
        device: of all tensors; games are played on the CPU (default: CPU).

    Attributes:
        games: the `Batch` being played.

    Raises:
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
    """

    def __init__(
        self,
        n: int = 1024,
        *,
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        observation: Literal["float32", "geometry", "afterstates"] = "float32",
        see_board: bool = False,
        device: torch.device | str | int | None = None,
    ) -> None:
        super().__init__(batch_size=[n], device=device)
        check_observation(observation, see_board, ("float32", GEOMETRY, AFTERSTATES))
        form: Any = {"observation": observation, "see_board": see_board}
        self.games = Batch(n, board, autoreset=False, reward=reward, **form)
        self._new_seed: int | None = None
        on = {"device": self.device}
        self.observation_spec = Composite(
            **{name: Bounded(*_bounds(box, n), **on) for name, box in _boxes(**form).items()},
            action_mask=Binary(N_ACTIONS, (n, N_ACTIONS), dtype=torch.bool, **on),
            player=Bounded(-1, 1, (n, 1), dtype=torch.int64, **on),
            shape=(n,),
        )
        self.action_spec = LegalActions(N_ACTIONS, (n,), dtype=torch.int64, **on)
        self.reward_spec = Unbounded((n, 1), dtype=torch.float32, **on)
        ends = ("done", "terminated", "truncated")
        flags = {name: Categorical(2, (n, 1), dtype=torch.bool, **on) for name in ends}
        self.done_spec = Composite(flags, shape=(n,))

    def _set_seed(self, seed: int | None) -> None:
        self._new_seed = None if seed is None else check_seed(seed)

    def _reset(self, tensordict: TensorDictBase | None = None, **options: Any) -> TensorDict:
        games = self._flagged("_reset", tensordict)
        if self._new_seed is not None and len(games) < len(self.games):
            raise RuntimeError("set_seed: seed the environment before you make its collector")
        self.games.begin(games, self._new_seed)
        self._new_seed = None
        no_end = np.zeros(len(self.games), np.bool_)
        return self._time_step(self.games.timestep(), no_end)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        games = self._flagged("_step", tensordict)
        actions = tensordict["action"].numpy(force=True)
        try:
            self.games.advance(games, actions if games is self.games.all_games else actions[games])
        except IllegalMove as error:
            raise IllegalMove(f"{error}; {REMEDY}") from None
        timestep = self.games.timestep()
        reward = timestep.reward[self.games.all_games, timestep.player]
        data = self._time_step(timestep, timestep.terminated)
        data["reward"] = torch.from_numpy(reward)[:, None]
        return data

    def _flagged(self, key: str, tensordict: TensorDictBase | None) -> npt.NDArray[np.int64]:
        """Return the indices of the games that a key flags, of all games without that key."""
        flags = None if tensordict is None else tensordict.get(key, None)
        if flags is None:
            return self.games.all_games
        return np.flatnonzero(flags.reshape(-1).numpy(force=True))

    def _time_step(self, timestep: TimeStep, terminated: npt.NDArray[np.bool_]) -> TensorDict:
        mask = torch.from_numpy(timestep.mask.astype(np.bool_))
        mask[~mask.any(dim=1)] = True  # at the end; TorchRL masks must allow an action
        self.action_spec.update_mask(mask)
        seen = timestep.observation
        if not isinstance(seen, dict):
            seen = {"observation": seen}
        truncated = np.zeros_like(terminated)
        ended = {"terminated": terminated, "truncated": truncated, "done": terminated}
        return TensorDict(
            {
                **{name: torch.from_numpy(each) for name, each in seen.items()},
                "action_mask": mask,
                "player": torch.from_numpy(timestep.mover.astype(np.int64))[:, None],
                **{name: torch.from_numpy(flags)[:, None] for name, flags in ended.items()},
            },
            batch_size=self.batch_size,
            device=self.device,
        )


def _boxes(observation: Any, see_board: bool) -> dict[str, Any]:
    """Return the space of each array of an observation, without the mask."""
    space: Any = observation_space(observation, see_board)
    arrays = getattr(space, "spaces", {"observation": space})
    return {name: box for name, box in arrays.items() if name != "action_mask"}


def _bounds(box: Any, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lowest and the highest values of n arrays, as TorchRL's specs take them."""
    low, high = (torch.from_numpy(each).expand(n, *box.shape) for each in (box.low, box.high))
    return low, high


class LegalActions(Categorical):
    """Action spec that draws legal actions.

    Its clones, from which wrappers and collectors draw, share its mask. A spec of another shape has
    no mask, until `update_mask` sets one.
    """

    @property
    def mask(self) -> torch.Tensor | None:
        """The legal actions, bool (n, N_ACTIONS), or None."""
        return self._shared[0]

    @mask.setter
    def mask(self, mask: torch.Tensor | None) -> None:
        self.__dict__.setdefault("_shared", [None])[0] = mask

    def clone(self) -> LegalActions:
        """Return a copy that shares the mask."""
        copy = type(self)(self.space.n, self.shape, self.device, self.dtype)
        copy._shared = self._shared
        return copy

    def rand(self, shape: Any = None) -> torch.Tensor:
        """Return random legal actions, int64 (n,).

        Args:
            shape: further dimensions before (n,), as for TorchRL's `Categorical.rand`.

        Raises:
            RuntimeError: if there is no mask yet.
        """
        if self.mask is None:
            raise RuntimeError(f"action_spec: expected a mask, got none: reset first; {REMEDY}")
        return super().rand(shape)


def random_policy(tensordict: TensorDictBase) -> TensorDictBase:
    """Set `action`, int64 (n,), to random actions of `action_mask`, bool (n, N_ACTIONS).

    A policy for `rollout` and collectors.
    """
    mask = tensordict["action_mask"]
    drawn = torch.multinomial(mask.reshape(-1, N_ACTIONS).float(), 1)
    return tensordict.set("action", drawn.reshape(mask.shape[:-1]))


def value_sign(data: TensorDictBase) -> torch.Tensor:
    """Return the factor of the next state's value, float32 with the reward's shape.

    It is 1 if the same player decides again, -1 if the other decides, and 0 at the end. A cut by
    `StepCounter(max_steps=…)` is taken for an end: do not cut games.

    Args:
        data: data of a rollout, with `player`, `("next", "player")` and `("next", "done")`.
    """
    signs = torch.where(data["player"] == data["next", "player"], 1.0, -1.0)
    return torch.where(data["next", "done"], 0.0, signs)
