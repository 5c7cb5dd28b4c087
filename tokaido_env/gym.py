"""Gymnasium environments: one learner against opponents, single and vectorised.

| | |
|---|---|
| id | `tokaido_env:TokaidoDuo-v0`, for `make` and `make_vec`, also in worker processes |
| actions | Discrete(49), the table of `tokaido_env.core.actions` |
| observation | float32 (N_FEATURES,) in [0, 1], or uint8 with `observation="uint8"` |
| board features | with `see_board=True`, appended to the observation |
| entities | with `observation="entities"`, a dict of arrays instead of the vector |
| afterstates | with `observation="afterstates"`, the inputs of the networks, and `actions` |
| mask | `info["action_mask"]`, int8 (49,), 1 = legal; `action_masks()` for maskable learners |
| reward | at the end: +1 for a win, -1 for a loss, 0 for a shared victory |
| step | one decision of the learner, then the opponent's until the learner decides again |
| render modes | `tokaido_env.render.modes`: text, pixels, a window |

An illegal action ends the game as a loss. The games are those of `tokaido_env.single_agent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import as_array, check_choice, check_seed, describe_array
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.observers import ObservationFormat, observation_at
from tokaido_env.render.modes import RENDER_FPS, RENDER_MODES, Renderer
from tokaido_env.single_agent import EndedGames, Opponents, Seating, SingleAgentBatch
from tokaido_env.spaces import action_space, checked_limit, observation_space, options_of

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels

_AUTORESET_MODES = (*AutoresetMode, *(mode.value for mode in AutoresetMode))
_VECTOR_RENDER_MODES = ("ansi", "rgb_array", "ansi_list", "rgb_array_list")


class TokaidoDuoEnv(CopiedWhole, gymnasium.Env[Any, Any]):
    """A game of the learner against an opponent.

    Args:
        opponent: a spec string such as "greedy" or "policy:runs/a/best", an agent, or an object
            with `choose(game, rng)`.
        seat: the learner's seat: 0, 1, "random" (drawn from each episode's seed) or "alternate".
        board: as for `Game`.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "float32", "uint8", "entities" or "afterstates", as for `Batch`.
        see_board: append the board features to the observation, as for `Batch`.
        render_mode: None, "ansi", "rgb_array" or "human"; see `tokaido_env.render.modes`.

    Raises:
        AgentError: for an unknown spec string, or an object that is no agent.
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  as Gymnasium declares it
        "render_modes": [*RENDER_MODES],
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        opponent: Opponents = "greedy",
        seat: Seating = "random",
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        observation: ObservationFormat = "float32",
        render_mode: str | None = None,
        see_board: bool = False,
    ) -> None:
        self._renderer = Renderer(render_mode)
        self.observation_space = observation_space(observation, see_board)
        self.action_space = action_space()
        self.render_mode = render_mode
        self.games = SingleAgentBatch(
            1,
            opponent,
            seat=seat,
            board=board,
            reward=reward,
            observation=observation,
            see_board=see_board,
            autoreset=AutoresetMode.DISABLED,
            illegal="terminate",
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: random seed, as for `Game`; None continues with the next episode of the last
                seed.
            options: `{"state": position}` starts from a position as `Game.to_dict` returns it.

        Returns:
            The learner's first observation, and infos: `action_mask`, `seed` (that of a `Game`
            with the same dice and draws), `board` (its index in `games.boards`), `seat`, `player`
            and `next_player`. All are numbers.

        Raises:
            SeedError: for anything else than a non-negative integer.
            PositionError: for a position that no game can reach.
        """
        seed = None if seed is None else check_seed(seed)
        self.games.reset(np.array([seed]), options_of(options).get("state"))
        super().reset(seed=seed)
        if self.render_mode == "human":
            self.render()
        return observation_at(self.games.observe(), 0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action of the learner, then the opponent until the learner decides again.

        Args:
            action: id of an action; an illegal one ends the game with reward -1.

        Returns:
            Observation, reward, terminated, truncated (by `max_episode_steps`), and infos.

        Raises:
            ValueError: for an action that is no integer.
            IllegalMove: for an illegal action of the opponent.
            RuntimeError: after the end of the game: reset first.
        """
        games = self.games
        move = as_array("action", action)
        if move.size != 1:
            raise ValueError(f"action: expected an integer, got {describe_array(move)}")
        games.step(move.reshape(1))
        if self.render_mode == "human":
            self.render()
        ends = bool(games.terminated[0]), bool(games.truncated[0])
        return observation_at(games.observe(), 0), float(games.reward[0]), *ends, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, bool (N_ACTIONS,); all False after the end."""
        masks: npt.NDArray[np.bool_] = self.games.masks()[0]
        return masks

    def render(self) -> str | Pixels | None:
        """Return the position as text or pixels, or show it, depending on the render mode.

        `tokaido_env.render.modes` has the types and shapes.
        """
        return self._renderer.render(partial(self.games.scene, 0), self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window, if one is open."""
        self._renderer.close()

    def _info(self) -> dict[str, Any]:
        return {
            key: values[0] if values.ndim > 1 else values.tolist()[0]
            for key, values in _info_of(self.games).items()
        }


class TokaidoDuoVectorEnv(CopiedWhole, VectorEnv[Any, Any, npt.NDArray[Any]]):
    """Many games of one learner in one process, for `gymnasium.make_vec`.

    Environment `i` of seed `s` equals `TokaidoDuoEnv` with seed `game_seed(s, i)`, but with seats
    "alternate" its first seat is `i % 2`. `metadata["autoreset_mode"]` has the autoreset mode.

    Args:
        num_envs: number of games.
        opponent: as for `TokaidoDuoEnv`, or a list: environment `i` plays against opponent
            `i % len(opponent)`.
        autoreset_mode: "SameStep" starts the next episode in the step that ends a game, with the
            final observation and info in `infos["final_obs"]` and `infos["final_info"]`;
            "NextStep" starts it in the following step, which ignores the game's action, so the
            mask of an ended game is empty; "Disabled" waits for
            `reset(options={"reset_mask": …})`.
        seat: as for `TokaidoDuoEnv`.
        board: as for `TokaidoDuoEnv`.
        reward: as for `TokaidoDuoEnv`.
        observation: as for `TokaidoDuoEnv`.
        see_board: as for `TokaidoDuoEnv`.
        render_mode: None, "ansi" or "rgb_array", also with "_list", as in `gymnasium.make`.
        max_episode_steps: truncate episodes after this many steps; None or -1 for no limit.
        disable_env_checker: ignored, for calls that `gymnasium.make` takes.

    Raises:
        AgentError: for an unknown spec string, or an object that is no agent.
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  as Gymnasium declares it
        "render_modes": [*_VECTOR_RENDER_MODES],
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        opponent: Opponents = "greedy",
        seat: Seating = "random",
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        observation: ObservationFormat = "float32",
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
        see_board: bool = False,
        max_episode_steps: int | None = None,
        disable_env_checker: bool | None = None,
    ) -> None:
        self._renderer = Renderer(render_mode, _VECTOR_RENDER_MODES)
        self.render_mode = render_mode
        check_choice("autoreset_mode", autoreset_mode, _AUTORESET_MODES)
        self.autoreset_mode = mode = AutoresetMode(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": mode}
        self.num_envs = num_envs
        self.games = SingleAgentBatch(
            num_envs,
            opponent,
            seat=seat,
            board=board,
            reward=reward,
            observation=observation,
            see_board=see_board,
            autoreset=mode,
            illegal="terminate",
            max_decisions=checked_limit(max_episode_steps),
        )
        self._frames: list[list[Any]] = [[] for _ in range(num_envs)]
        self.single_observation_space = observation_space(observation, see_board)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | npt.NDArray[Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: environment `i` gets `game_seed(seed, i)`, or `seed[i]` of a sequence; None
                continues with its next episode.
            options: `{"reset_mask": bool (num_envs,)}` resets only these environments;
                `{"state": position}` starts all from one position.

        Returns:
            Observations and infos; see `TokaidoDuoEnv.reset`.
        """
        reset_options = options_of(options)
        flags = self._reset_mask(reset_options)
        games = np.flatnonzero(flags)
        seeds: Any = seed
        is_one = seeds is not None and as_array("seed", seeds).ndim == 0
        chosen = seeds if seeds is None or is_one else self._seeds_of(games, seeds)
        self.games.reset(chosen, reset_options.get("state"), games)
        super().reset(seed=check_seed(seeds) if is_one else None)
        self._collect(games)
        return self.games.observe(), _flagged(_info_of(self.games), flags)

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Play an action in every game, then the opponents until the learner decides again.

        Args:
            actions: integers (num_envs,); an illegal one ends its game with reward -1.

        Returns:
            Observations, rewards float64 (num_envs,), terminated and truncated bool (num_envs,),
            and infos.

        Raises:
            RuntimeError: if a game has ended and was not reset (with autoreset disabled).
        """
        games = self.games
        ended = games.step(actions)
        info = _info_of(games)
        infos = _flagged(info, np.ones(self.num_envs, np.bool_))
        if len(ended.games) and self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos |= _final(ended, info)
        self._collect(games.batch.all_games)
        results = games.reward.astype(np.float64), games.terminated.copy(), games.truncated.copy()
        return games.observe(), *results, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions of every game: bool (num_envs, N_ACTIONS)."""
        return self.games.masks()

    def render(self) -> tuple[Any, ...] | None:
        """Return the frames of all games, text or uint8 (height, width, 3) each.

        With a render mode "…_list", a list per game: the frames since the last call, or since its
        episode began.
        """
        if self.render_mode and self.render_mode.endswith("_list"):
            frames, self._frames = self._frames, [[] for _ in self._frames]
            return tuple(frames)
        return tuple(map(self._frame, range(self.num_envs))) if self.render_mode else self._frame(0)

    def _frame(self, game: int) -> Any:
        return self._renderer.render(partial(self.games.scene, game), self.metadata["render_fps"])

    def _collect(self, games: npt.NDArray[np.int64]) -> None:
        """Collect a frame of each of the given games, if the render mode collects frames."""
        if not self.render_mode or not self.render_mode.endswith("_list"):
            return
        for game in games.tolist():
            if self.games.player[game] == NO_PLAYER:  # a new episode
                self._frames[game] = []
            self._frames[game].append(self._frame(game))

    def _seeds_of(self, games: npt.NDArray[np.int64], seeds: Any) -> npt.NDArray[Any]:
        """Return the seeds of some games, which the batch then checks."""
        each = np.asarray(seeds, object)
        if len(each) != self.num_envs:
            raise ValueError(
                f"seed: expected {self.num_envs}, one per environment, got {len(each)}"
            )
        return each[games]

    def _reset_mask(self, options: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Return which environments to reset (default: all), bool (num_envs,)."""
        if "reset_mask" not in options:
            return np.ones(self.num_envs, np.bool_)
        mask = as_array("reset_mask", options["reset_mask"])
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(
                f"reset_mask: expected bool of shape ({self.num_envs},), got {describe_array(mask)}"
            )
        return mask


def _info_of(games: SingleAgentBatch) -> dict[str, npt.NDArray[Any]]:
    """Return the info of every game, one array per key.

    `player` decided in the step (-1 after a reset), and `next_player` decides next (-1 at the end).
    Both are the learner, so value estimates keep their sign.
    """
    return {
        "action_mask": games.masks().view(np.int8),
        "seed": games.batch.episode_info["seed"].copy(),
        "board": games.batch.episode_info["board"].astype(np.int64),
        "seat": games.seats.astype(np.int64),
        "player": games.player.astype(np.int64),
        "next_player": np.where(games.over, NO_PLAYER, games.seats).astype(np.int64),
    }


def _final(ended: EndedGames, info: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return the final observations and infos of ended games, in the form of `SyncVectorEnv`."""
    final_info: dict[str, Any] = {"action_mask": ended.mask, "seed": ended.seed}
    final_info |= {"board": ended.board, "seat": ended.seat, "player": ended.seat}
    final_info["next_player"] = np.where(ended.mask.any(axis=1), ended.seat, NO_PLAYER)
    flags = np.zeros(len(info["seed"]), np.bool_)
    flags[ended.games] = True
    last = np.full(len(flags), None, object)
    for j, game in enumerate(ended.games.tolist()):
        last[game] = observation_at(ended.observation, j)
    final = {}
    for key, values in info.items():
        final[key] = np.zeros_like(values)
        final[key][ended.games] = final_info[key]
    return _flagged({"final_obs": last, "final_info": _flagged(final, flags)}, flags)


def _flagged(infos: dict[str, Any], flags: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Add Gymnasium's `_KEY` entries: which environments each entry belongs to."""
    return infos | {f"_{key}": flags.copy() for key in infos}
