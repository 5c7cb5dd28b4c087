"""`TokaidoVecEnv`: the games of `TokaidoDuoVectorEnv` as a Stable-Baselines3 VecEnv."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.core.optional_deps import extra_error

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise extra_error("TokaidoVecEnv needs", error.name, "train") from error

from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import IllegalMove, check_choice
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import game_seeds
from tokaido_env.gym import Seating, TokaidoDuoVectorEnv, When
from tokaido_env.observers import ObservationFormat, observation_at
from tokaido_env.opponents import Opponents
from tokaido_env.render.modes import RENDER_FPS

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
        opponents: agents or spec strings; game `i` plays against `opponents[i % len(opponents)]`,
            with a list of boards every opponent meets every board. `set_opponents` or
            `set_attr("opponent", agent, indices)` replaces them: running games keep theirs.
        seed: game `i` plays the episodes of seed `game_seed(seed, i)`.
        board: a name, path, `Board`, a list, or a pool from which each episode's seed draws.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        seat: the learner's seat: 0, 1, or "random" (drawn from the seed of each episode).
        observation: "float32", "uint8", "geometry" or "afterstates", as for `Batch`; the last is a
            dict of arrays, for `MultiInputPolicy`.
        see_board: append the board features to each observation.
        render_mode: None, or "rgb_array" for `render` and `VecVideoRecorder`.

    Attributes:
        games: the `TokaidoDuoVectorEnv`.

    Raises:
        AgentError: for an unknown spec string, or an object that is no agent.
        BoardError: for an unknown board.
        SeedError: for a seed that is not a non-negative integer.
        ValueError: for another argument that is not allowed.
    """

    metadata: dict[str, Any]
    _new_seed: int | None

    def __init__(
        self,
        n: int,
        opponents: Opponents,
        seed: int,
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        seat: Seating = "random",
        observation: ObservationFormat = "float32",
        see_board: bool = False,
        render_mode: str | None = None,
    ) -> None:
        check_choice("render_mode", render_mode, (None, "rgb_array"))
        form: Any = {"observation": observation, "see_board": see_board}
        self.games = TokaidoDuoVectorEnv(
            n, opponents, seat, board, reward, render_mode=render_mode, illegal="raise", **form
        )
        self.render_mode = render_mode
        super().__init__(n, self.games.single_observation_space, self.games.single_action_space)
        self.metadata["render_fps"] = RENDER_FPS
        self.seed(seed)
        self._actions = np.zeros(n, np.int64)
        self._start_time = time.time()

    def reset(self) -> Any:
        """Start each game's next episode, the first of a new seed; return observations (n, …).

        After `set_options({"state": position})` all games start from a position, once.
        """
        options, *others = self._options
        if any(one != options for one in others) or not options.keys() <= {"state"}:
            raise ValueError('set_options: expected {"state": position}, the same for all games')
        self._reset_options()
        self.games.reset(seed=self._new_seed, options=options)
        self._new_seed = None
        return self.observe()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next reset; return the seeds of the first episodes of all games."""
        if seed is not None:
            self._base_seeds = game_seeds(seed, self.games.batch.all_games)
            self._new_seed = seed
        seeds: list[int | None] = self._base_seeds.tolist()
        return seeds

    def observe(self) -> Any:
        """Return the learner's current observations, one row per game."""
        return self.games.observe()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the learner's legal actions: bool (n, N_ACTIONS)."""
        return self.games.action_masks()

    def set_opponents(
        self, opponents: Opponents, indices: Any = None, when: When = "next game"
    ) -> None:
        """Set the opponents of some games, by index, as `TokaidoDuoVectorEnv.set_opponents`."""
        self.games.set_opponents(opponents, self._indices(indices), when)

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Store the learner's actions, integers (n,), for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play the stored actions, then the opponents until the learner decides again.

        Returns:
            Observations, rewards float32 (n,), dones bool (n,) and infos.

        Raises:
            IllegalMove: for an action of the learner, naming the games and the algorithms that
                apply masks; nothing is played then. Also for an action of an opponent.
        """
        games = self.games
        try:
            rewards, ended = games.play(self._actions)
        except IllegalMove as error:
            if games.done.any():
                raise  # of an opponent
            raise IllegalMove(f"{error}; {REMEDY}") from None
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if ended.any():
            self._finish(np.flatnonzero(ended), rewards, infos)
        return self.observe(), rewards.astype(np.float32), ended, infos

    def _finish(
        self, ended: npt.NDArray[np.int64], rewards: npt.NDArray[Any], infos: list[dict[str, Any]]
    ) -> None:
        """Write the infos of ended games, and begin their next episodes."""
        games, facts = self.games, self.games.batch.episode_info
        last = games.batch.observe(ended, games.seats[ended])
        elapsed = round(time.time() - self._start_time, 6)
        for j, game in enumerate(ended.tolist()):
            length = int(games.lengths[game])
            infos[game] = {
                "terminal_observation": observation_at(last, j),
                "TimeLimit.truncated": False,
                "episode": {"r": float(rewards[game]), "l": length, "t": elapsed},
                "seed": int(facts["seed"][game]),
                "board": int(facts["board"][game]),
                "seat": int(games.seats[game]),
            }
        games.begin(ended)

    def get_images(self) -> Sequence[Any]:
        """Return a picture of each game, uint8 (height, width, 3); () without a render mode."""
        return self.games.render() or ()

    # The rest of the VecEnv interface. There are no single environments: only "opponent" and "seat"
    # exist per game.

    def close(self) -> None:
        """Do nothing: no resources are open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute per game: "opponent", "seat", or one of this environment.

        Raises:
            AttributeError: for an unknown one.
        """
        if attr_name == "opponent":
            values = self.games.opponents
        elif attr_name == "seat":
            values = self.games.seats.tolist()
        else:
            values = [getattr(self, attr_name)] * self.num_envs
        return [values[game] for game in self._indices(indices).tolist()]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set "opponent" of some games, or an attribute of this environment.

        Raises:
            AttributeError: for an unknown one, or "seat", an argument of `TokaidoVecEnv`.
        """
        if attr_name == "opponent":
            self.set_opponents(value, indices)
        elif attr_name == "seat":
            raise AttributeError("attr_name: seats cannot be set; pass `seat` to TokaidoVecEnv")
        elif not hasattr(self, attr_name):
            raise AttributeError(f"attr_name: unknown {attr_name!r}; for opponents: set_opponents")
        else:
            setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call `action_masks`, the only supported method, for some games.

        Raises:
            ValueError: for another method.
        """
        check_choice("method_name", method_name, ("action_masks",))
        return list(self.action_masks()[self._indices(indices)])

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return for each index whether the class is `Monitor`: infos have its statistics."""
        return [wrapper_class is Monitor for _ in self._indices(indices)]

    def _indices(self, indices: Any) -> npt.NDArray[np.int64]:
        """Return the indices of games that an index, a sequence of indices or None (all) names."""
        every = self.games.batch.all_games
        return every if indices is None else np.atleast_1d(every[indices])
