"""`TokaidoVecEnv`: a Stable-Baselines3 VecEnv of many games in one process.

The games are those of `tokaido_env.single_agent`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.core.optional_deps import extra_error

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise extra_error("TokaidoVecEnv needs", error.name, "train") from error

from tokaido_env.batch_validation import checked_games
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import IllegalMove, as_integer, repr_short
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import game_seeds
from tokaido_env.observers import ObservationFormat, observation_at
from tokaido_env.render.modes import RENDER_FPS, Renderer
from tokaido_env.single_agent import EndedGames, Opponents, Seating, SingleAgentBatch, When
from tokaido_env.spaces import action_space, observation_space

REMEDY = (
    "PPO, A2C, DQN and EvalCallback do not mask: use MaskablePPO, MaskableEvalCallback and "
    "evaluate_policy of sb3_contrib, pass action_masks=env.action_masks() to predict, and draw "
    "random actions by env.action_space.sample(mask), a row of these masks as int8"
)


class TokaidoVecEnv(CopiedWhole, VecEnv):
    """N games of a learner against opponents.

    A finished game starts its next episode in the same step. Its info then has the last observation
    as `terminal_observation` and the statistics `episode`, as `VecMonitor` provides them.

    Args:
        n: number of games.
        opponents: agents or spec strings; game `i` plays against `opponents[i % len(opponents)]`.
            `set_opponents` or `set_attr("opponent", agent, indices)` replaces them during
            training: a running game keeps its opponent.
        seed: game `i` plays the episodes of seed `game_seed(seed, i)`.
        board: as for `Batch`.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        seat: the learner's seat: 0, 1, "alternate" (game + episode, modulo 2) or "random".
        observation: "float32", "uint8", "entities" or "afterstates", as for `Batch`; the last two
            are dicts of arrays, for `MultiInputPolicy`.
        see_board: as for `Batch`.
        render_mode: None, or "rgb_array" for `render` and `VecVideoRecorder`.

    Raises:
        AgentError: for an unknown spec string, or an object that is no agent.
        BoardError: for an unknown board.
        SeedError: for a seed that is not a non-negative integer.
        ValueError: for another argument that is not allowed.
    """

    metadata: dict[str, Any]
    _new_seeds: npt.NDArray[np.int64] | None

    def __init__(
        self,
        n: int,
        opponents: Opponents,
        seed: int,
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        seat: Seating = "alternate",
        observation: ObservationFormat = "float32",
        see_board: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self._renderer = Renderer(render_mode, ("rgb_array",))
        self.games = SingleAgentBatch(
            n,
            opponents,
            seat=seat,
            board=board,
            reward=reward,
            observation=observation,
            see_board=see_board,
        )
        self.render_mode = render_mode
        super().__init__(n, observation_space(observation, see_board), action_space())
        self.metadata["render_fps"] = RENDER_FPS
        self.seed(seed)
        self._actions = np.zeros(n, np.int64)
        self._start_time = time.time()

    def reset(self) -> Any:
        """Start each game's next episode, the first of a new seed; return observations (n, …)."""
        self.games.reset(self._new_seeds)
        self._new_seeds = None
        return self.observe()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next reset; return the seeds of the first episodes of all games."""
        if seed is not None:
            self._base_seeds = self._new_seeds = game_seeds(seed, self.games.batch.all_games)
        seeds: list[int | None] = self._base_seeds.tolist()
        return seeds

    def observe(self) -> Any:
        """Return the learner's current observations, one row per game."""
        return self.games.observe()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the learner's legal actions: bool (n, N_ACTIONS)."""
        return self.games.masks()

    def set_opponents(
        self, opponents: Opponents, indices: Any = None, when: When = "next game"
    ) -> None:
        """Set the opponents of some games; see `SingleAgentBatch.set_opponents`."""
        self.games.set_opponents(opponents, self._games(indices), when)

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Store the learner's actions, integers (n,), for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play the stored actions, then the opponents until the learner decides again.

        Returns:
            Observations, rewards float32 (n,), dones bool (n,) and infos.

        Raises:
            IllegalMove: naming the games and, for an action of the learner, the algorithms that
                apply masks; nothing is played then.
        """
        games = self.games
        try:
            ended = games.step(self._actions)
        except IllegalMove as error:
            _, illegal = games.batch.check_moves(games.batch.all_games, self._actions)
            if not illegal.any():
                raise  # of an opponent
            raise IllegalMove(f"{error}; {REMEDY}") from None
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for j, game in enumerate(ended.games.tolist()):
            infos[game] = self._final(ended, j, game)
        return self.observe(), games.reward.copy(), games.terminated.copy(), infos

    def get_images(self) -> Sequence[Any]:
        """Return a picture of each game, uint8 (height, width, 3)."""
        scenes = (partial(self.games.scene, game) for game in range(self.num_envs))
        return [self._renderer.render(scene, RENDER_FPS) for scene in scenes]

    def _final(self, ended: EndedGames, j: int, game: int) -> dict[str, Any]:
        elapsed = round(time.time() - self._start_time, 6)
        result = float(self.games.reward[game])
        return {
            "terminal_observation": observation_at(ended.observation, j),
            "TimeLimit.truncated": False,
            "episode": {"r": result, "l": int(ended.length[j]), "t": elapsed},
            "seed": int(ended.seed[j]),
            "board": int(ended.board[j]),
            "seat": int(ended.seat[j]),
        }

    # The rest of the VecEnv interface. There are no single environments: only "opponent" and "seat"
    # exist per game.

    def close(self) -> None:
        """Do nothing: no resources are open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute per game: "opponent", "seat", or one of this environment.

        Raises:
            AttributeError: for an unknown one.
        """
        _check_name("attr_name", attr_name)
        games = self._games(indices).tolist()
        if attr_name == "opponent":
            return [self.games.opponents[game] for game in games]
        if attr_name == "seat":
            return [int(self.games.seats[game]) for game in games]
        try:
            return [getattr(self, attr_name) for _ in games]
        except AttributeError:
            raise AttributeError(
                f"attr_name: expected an attribute of TokaidoVecEnv, got {repr_short(attr_name)}"
            ) from None

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set "opponent" of some games, or an attribute of this environment.

        Raises:
            AttributeError: for "seat", which `TokaidoVecEnv` takes as an argument.
        """
        _check_name("attr_name", attr_name)
        if attr_name == "opponent":
            self.set_opponents(value, indices)
        elif attr_name == "seat":
            raise AttributeError("attr_name: seats cannot be set; pass `seat` to TokaidoVecEnv")
        else:
            setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call `action_masks`, the only supported method, for some games.

        Raises:
            AttributeError: for another method.
        """
        if not isinstance(method_name, str) or method_name != "action_masks":
            raise AttributeError(
                f"method_name: expected 'action_masks', got {repr_short(method_name)}"
            )
        masks = self.action_masks()
        return list(masks if indices is None else masks[self._games(indices)])

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return for each index whether the class is `Monitor`: infos have its statistics."""
        return [wrapper_class is Monitor for _ in self._games(indices)]

    def _games(self, indices: Any) -> npt.NDArray[np.int64]:
        if indices is None:
            return self.games.batch.all_games
        one = as_integer(indices)
        return checked_games(indices if one is None else [one], self.num_envs)


def _check_name(argument: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{argument}: expected a name, got {repr_short(name)}")
