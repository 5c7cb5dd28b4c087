"""Gymnasium environments: one learner against opponents, single and vectorised.

| | |
|---|---|
| id | `TokaidoDuo-v0`, registered by `import tokaido_env`; `make` and `make_vec` |
| actions | Discrete(49), the table of `tokaido_env.core.actions` |
| observation | float32 (N_FEATURES,) in [0, 1], or uint8 with `observation="uint8"` |
| board features | with `see_board=True`, appended to the observation |
| entities | with `observation="entities"`, a dict of arrays instead of the vector |
| mask | `info["action_mask"]`, int8 (49,), 1 = legal; `action_masks()` for maskable learners |
| reward | at the end: +1 for a win, -1 for a loss, 0 for a shared victory |
| step | one decision of the learner, then the opponent's until the learner decides again |
| render modes | `tokaido_env.render.modes`: text, pixels, a window |

An illegal action ends the game as a loss. The games are those of `tokaido_env.single_agent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tokaido_env.agent import as_agent
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import as_array, check_choice, check_seed, describe_array
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.observers import ObservationFormat, observation_at
from tokaido_env.render.modes import RENDER_FPS, RENDER_MODES, Renderer
from tokaido_env.single_agent import EndedGames, Opponents, Seating, SingleAgentBatch
from tokaido_env.spaces import action_space, observation_space, options_of

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels
    from tokaido_env.render.scene import Scene

_AUTORESET_MODES = (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED, "SameStep", "Disabled")


class TokaidoDuoEnv(CopiedWhole, gymnasium.Env[Any, Any]):
    """A game of the learner against an opponent.

    Args:
        opponent: a spec string such as "greedy" or "policy:runs/a/best", or an agent.
        seat: the learner's seat: 0, 1, "random" (drawn from each episode's seed) or "alternate".
        board: as for `Game`.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "float32", "uint8" or "entities", as for `Batch`.
        see_board: append the board features to the observation, as for `Batch`.
        render_mode: None, "ansi", "rgb_array" or "human"; see `tokaido_env.render.modes`.
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
            autoreset=False,
            illegal="terminate",
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: random seed, 0 to 2**53 - 1; None continues with the next episode of the last
                seed.
            options: `{"state": position}` starts from a position as `Game.to_dict` returns it.

        Returns:
            The learner's first observation, and infos: `action_mask`, `seed` (that of a `Game`
            with the same dice and draws), `board` (its index in `games.boards`), `seat`, `player`
            and `next_player`. All are numbers.

        Raises:
            SeedError: for a seed out of range.
            PositionError: for a position that no game can reach.
        """
        seed = None if seed is None else check_seed(seed)
        self.games.reset(seed, options_of(options).get("state"))
        super().reset(seed=seed)
        if self.render_mode == "human":
            self.render()
        return observation_at(self.games.observe(), 0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action of the learner, then the opponent until the learner decides again.

        Args:
            action: id of an action; an illegal one ends the game with reward -1.

        Returns:
            Observation, reward, terminated, truncated (at the cap on rounds), and infos.
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
        """Return the position as text or pixels, or show it, depending on the render mode."""
        return self._renderer.render(self._scene, self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window, if one is open."""
        self._renderer.close()

    def _scene(self) -> Scene:
        from tokaido_env.render.scene import scene_of

        batch, seat = self.games.batch, int(self.games.seats[0])
        opponent = as_agent(self.games.opponents[0]).spec
        names = (opponent, "learner") if seat else ("learner", opponent)
        return scene_of(batch.pool[int(batch.episode_info["board"][0])], batch.states, names=names)

    def _info(self) -> dict[str, Any]:
        return {
            key: values[0] if values.ndim > 1 else values.tolist()[0]
            for key, values in _info_of(self.games).items()
        }


class TokaidoDuoVectorEnv(CopiedWhole, VectorEnv[Any, Any, npt.NDArray[Any]]):
    """Many games of one learner in one process, for `gymnasium.make_vec`.

    Environment `i` of seed `s` equals `TokaidoDuoEnv` with seed `s + i`, except that with the seats
    "alternate" its first seat is `i % 2`. `metadata["autoreset_mode"]` has the autoreset mode.

    Args:
        num_envs: number of games.
        opponent: as for `TokaidoDuoEnv`, or a list: environment `i` plays against opponent
            `i % len(opponent)`.
        autoreset_mode: "SameStep" starts the next episode in the step that ends a game, with the
            final observation and info in `infos["final_obs"]` and `infos["final_info"]`;
            "Disabled" waits for `reset(options={"reset_mask": …})`.
        seat, board, reward, observation, see_board: as for `TokaidoDuoEnv`.
        render_mode: None only.
    """

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
    ) -> None:
        check_choice("render_mode", render_mode, (None,))
        check_choice("autoreset_mode", autoreset_mode, _AUTORESET_MODES)
        self.autoreset_mode = mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self.num_envs = num_envs
        self.games = SingleAgentBatch(
            num_envs,
            opponent,
            seat=seat,
            board=board,
            reward=reward,
            observation=observation,
            see_board=see_board,
            autoreset=mode == AutoresetMode.SAME_STEP,
            illegal="terminate",
        )
        self.single_observation_space = observation_space(observation, see_board)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | list[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: environment `i` gets `seed + i`, or `seed[i]`; None continues with the next
                episode of each.
            options: `{"reset_mask": bool (num_envs,)}` resets only these environments;
                `{"state": position}` starts all from one position.

        Returns:
            Observations and infos; see `TokaidoDuoEnv.reset`.
        """
        if isinstance(seed, list) and len(seed) != self.num_envs:
            raise ValueError(
                f"seed: expected {self.num_envs}, one per environment, got {len(seed)}"
            )
        if seed is not None and not isinstance(seed, list):
            seed = check_seed(seed)
        reset_options = options_of(options)
        flags = self._reset_mask(reset_options)
        games = np.flatnonzero(flags)
        chosen = as_array("seed", seed)[games] if isinstance(seed, list) else seed
        self.games.reset(chosen, reset_options.get("state"), games)
        super().reset(seed=seed if isinstance(seed, int) else None)
        return self.games.observe(), _flagged(_info_of(self.games), flags)

    def step(
        self, actions: Any
    ) -> tuple[
        Any,
        npt.NDArray[Any],
        npt.NDArray[Any],
        npt.NDArray[Any],
        dict[str, Any],
    ]:
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
        results = games.reward.astype(np.float64), games.terminated.copy(), games.truncated.copy()
        return games.observe(), *results, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions of every game: bool (num_envs, N_ACTIONS)."""
        return self.games.masks()

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
        "board": games.board_indices(),
        "seat": games.seats.astype(np.int64),
        "player": games.player.astype(np.int64),
        "next_player": np.where(games.done, NO_PLAYER, games.seats).astype(np.int64),
    }


def _final(ended: EndedGames, info: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return the final observations and infos of ended games, in the form of `SyncVectorEnv`."""
    final_info: dict[str, Any] = {"action_mask": 0, "seed": ended.seed, "board": ended.board}
    final_info |= {"seat": ended.seat, "player": ended.seat, "next_player": NO_PLAYER}
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
