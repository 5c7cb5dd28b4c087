"""Gymnasium environments: one learner against opponents, single and vectorised.

| | |
|---|---|
| id | `tokaido_env:TokaidoDuo-v0`, for `make` and `make_vec`, also in worker processes |
| actions | Discrete(49), the table of `tokaido_env.core.actions` |
| observation | float32 (N_FEATURES,) in [0, 1], or uint8 with `observation="uint8"` |
| board features | with `see_board=True`, appended to the observation |
| afterstates | with `observation="afterstates"`, the inputs of the networks, and `actions` |
| mask | `info["action_mask"]`, int8 (49,), 1 = legal; `action_masks()` for maskable learners |
| reward | at the end: +1 for a win, -1 for a loss, 0 for a shared victory |
| step | one decision of the learner, then the opponent's until the learner decides again |
| render modes | `tokaido_env.render.modes`: text, pixels |

The vector environment is the implementation; the single one has one of its games. The learner has
one seat of each game. Between its decisions the opponents play, in batches or inside the kernel.
Rewards and next observations are therefore the learner's own, also when a player decides twice in a
row or has to discard during the opponent's turn.
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

from tokaido_env.batch import Batch, advance_checked
from tokaido_env.batch_validation import Games, Positions, Seeds
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.arguments import check_choice, check_seed, describe_array
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import seats_of_seeds
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.observers import ObservationFormat, observation_at
from tokaido_env.opponents import GameOpponents, Opponents
from tokaido_env.position import PositionError
from tokaido_env.render.modes import RENDER_FPS, RENDER_MODES, render
from tokaido_env.spaces import action_space, observation_space

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels
    from tokaido_env.render.scene import Scene

Seating = Literal[0, 1, "random"]
SEATS: tuple[Seating, ...] = (0, 1, "random")
When = Literal["next game", "now"]
LOSS = -1.0
_AUTORESET_MODES = (*AutoresetMode, *(mode.value for mode in AutoresetMode))


class TokaidoDuoVectorEnv(CopiedWhole, VectorEnv[Any, Any, npt.NDArray[Any]]):
    """Many games of one learner in one process, for `gymnasium.make_vec`.

    Environment `i` of seed `s` equals `TokaidoDuoEnv` with seed `game_seed(s, i)`.
    `metadata["autoreset_mode"]` has the autoreset mode.

    An error of an opponent ends all games: the next call has to be `reset`.

    Args:
        num_envs: number of games.
        opponent: a spec string such as "greedy" or "policy:runs/a/best", an agent, an object with
            `act` or `choose`, or a list of these: environment `i` plays against opponent
            `i % len(opponent)`; with a list of boards too, every opponent meets every board.
        autoreset_mode: "SameStep" starts the next episode in the step that ends a game, with the
            final observation and info in `infos["final_obs"]` and `infos["final_info"]`;
            "NextStep" starts it in the following step, which ignores the game's action, so the
            mask of an ended game is empty; "Disabled" waits for
            `reset(options={"reset_mask": …})`.
        seat: the learner's seat: 0, 1, or "random" (drawn from the seed of each episode).
        board: a name, a path, a `Board`, or a pool from which each episode's seed draws.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "float32", "uint8", "geometry" or "afterstates", as for `Batch`.
        see_board: append the board features to the observation, as for `Batch`.
        illegal: "terminate" ends a game on an illegal action, with reward -1; "raise" raises
            `IllegalMove` and plays nothing.
        render_mode: None, "ansi" or "rgb_array".

    Attributes:
        batch: the `Batch` of the games.
        seats: int8 (num_envs,), the learner's seats.
        lengths: int64 (num_envs,), the learner's decisions in each current episode.
        player: int8 (num_envs,), the learner's seat if it decided in the last step, -1 after a
            reset.
        done: bool (num_envs,), whether a game has ended or not begun.

    Raises:
        AgentError: for an unknown spec string, or an object that is no agent.
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  as Gymnasium declares it
        "render_modes": [*RENDER_MODES],
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
        illegal: Literal["terminate", "raise"] = "terminate",
    ) -> None:
        check_choice("seat", seat, SEATS)
        check_choice("illegal", illegal, ("terminate", "raise"))
        check_choice("autoreset_mode", autoreset_mode, _AUTORESET_MODES)
        form: Any = {"observation": observation, "see_board": see_board}
        self.batch = Batch(num_envs, board, autoreset=False, reward=reward, **form)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self.render_mode = render_mode
        self._seating, self._raises_illegal = seat, illegal == "raise"
        self.num_envs = num_envs
        self.single_observation_space = observation_space(**form)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.seats = np.zeros(num_envs, np.int8)
        self.lengths = np.zeros(num_envs, np.int64)
        self.player = np.full(num_envs, NO_PLAYER, np.int8)
        self.done = np.ones(num_envs, np.bool_)
        self._needs_reset = np.ones(num_envs, np.bool_)
        self._opponents = GameOpponents(self.batch, self.seats, opponent)

    @property
    def boards(self) -> BoardPool:
        """The boards in use; `info["board"]` has the index of a game's board."""
        return self.batch.pool

    @property
    def opponents(self) -> list[Any]:
        """The opponent in each current game: an object as passed, or the agent of a spec string."""
        agents = self._opponents.agents
        return [one if one.source else getattr(one, "wrapped", one) for one in agents]

    def set_opponents(
        self, opponents: Opponents, games: Games | None = None, when: When = "next game"
    ) -> None:
        """Set the opponents of some games.

        Args:
            opponents: one for all games, or a sequence to repeat over the games.
            games: indices (k,) (default: all).
            when: "next game": a running game keeps its opponent to its end. "now": from the
                learner's next decision on, so that a result may depend on two opponents.

        Raises:
            AgentError: for an unknown spec string, or an object that is no agent.
            ValueError: for an unknown `when`, or no opponents.
        """
        check_choice("when", when, ("next game", "now"))
        games = self.batch.all_games if games is None else self.batch.all_games[games]
        self._opponents.assign(opponents, games)
        self._opponents.take(games if when == "now" else games[self.done[games]])

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | npt.NDArray[Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes, each up to the learner's first decision.

        Args:
            seed: environment `i` gets `game_seed(seed, i)`, or `seed[i]` of a sequence; None
                continues with its next episode.
            options: `{"reset_mask": bool (num_envs,)}` resets only these environments;
                `{"state": position}` starts all from one position.

        Returns:
            Observations and infos; see `TokaidoDuoEnv.reset`.

        Raises:
            SeedError: for a seed that is not a non-negative integer; no game changes then.
            PositionError: for a position that no game can reach; no game changes then. Also if the
                opponent plays to the end of a game, which then needs another reset.
        """
        given = options or {}
        flags = self._reset_mask(given)
        games = np.flatnonzero(flags)
        seeds = self._seeds_of(games, seed)
        self.begin(games, seeds, given.get("state"))
        super().reset(seed=None if np.ndim(seeds) else seeds)
        return self.observe(), _flagged(self._info(), flags)

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Play an action in every game, then the opponents until the learner decides again.

        Args:
            actions: integers (num_envs,); with `illegal="terminate"`, an illegal one ends its game
                with reward -1.

        Returns:
            Observations, rewards float64 (num_envs,), terminated and truncated bool (num_envs,),
            and infos. No game is truncated.

        Raises:
            IllegalMove: for an illegal action of an opponent, or with `illegal="raise"` of the
                learner, naming the game.
            RuntimeError: if a game has ended and was not reset (with autoreset disabled).
        """
        rewards, terminated = self.play(actions)
        infos: dict[str, Any] = {}
        ended = np.flatnonzero(terminated)
        if len(ended) and self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos = self._final(ended, terminated)
            self.begin(ended)
        infos = _flagged(self._info(), np.ones(self.num_envs, np.bool_)) | infos
        return self.observe(), rewards, terminated, np.zeros_like(terminated), infos

    def observe(self) -> Any:
        """Return the learner's current observations, (num_envs, …) as from `reset`."""
        return self.batch.observe(self.batch.all_games, self.seats)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the learner's legal actions, bool (num_envs, N_ACTIONS); all False at the end."""
        masks = self.batch.masks(self.batch.all_games)
        masks[self.done] = False
        return masks

    def render(self) -> tuple[Any, ...] | None:
        """Return each game's frame, text or uint8 (height, width, 3); None without render mode."""
        return tuple(map(self._frame, range(self.num_envs))) if self.render_mode else self._frame(0)

    def scene(self, game: int) -> Scene:
        """Return the position of a game for `render`, with the opponent's spec as its name."""
        from tokaido_env.render.scene import scene_of

        opponent = self._opponents.agents[game].spec
        names = (opponent, "learner") if self.seats[game] else ("learner", opponent)
        board = self.boards[int(self.batch.episode_info["board"][game])]
        return scene_of(board, self.batch.states[game : game + 1], names=names)

    # Parts of a step, for `TokaidoDuoEnv` and `TokaidoVecEnv`

    def play(self, actions: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Play a step without the next episodes of mode "SameStep".

        Args:
            actions: integers (num_envs,), with the errors of `step`.

        Returns:
            Rewards and whether games have ended, float64 and bool (num_envs,).
        """
        batch, resets = self.batch, self._games_to_begin()
        moves, wrong = batch.check_moves(batch.all_games, actions)
        wrong[resets] = False
        lost = np.flatnonzero(wrong)
        if len(lost) and self._raises_illegal:
            raise batch.illegal_moves_error(lost, moves[lost])
        played = batch.all_games
        if len(lost) or len(resets):
            played = np.flatnonzero(~(wrong | self.done))
        advance_checked(batch, played, moves[played])
        self.lengths += 1
        self.player[:] = self.seats
        if len(resets):
            self.begin(resets)
        self._play_opponents(played)
        ended = batch.over | wrong
        rewards = np.zeros(self.num_envs)
        if ended.any():
            games = np.flatnonzero(ended)
            rewards[games] = batch.episode_info["reward"][games, self.seats[games]]
            rewards[lost] = LOSS
            self._end(games)
        return rewards, ended

    def begin(self, games: Games, seed: Seeds = None, positions: Positions | None = None) -> None:
        """Start an episode of some games and play to the learner's first decision.

        Args:
            games: indices (k,).
            seed: an integer, integers (k,) or None, as for `Batch.reset`.
            positions: one for all games or k of them; None: the set-up.

        Raises:
            PositionError: also for a position that the opponent plays to the end of the game.
        """
        self.batch.initialize(games, seed, positions)
        info = self.batch.episode_info
        if self._seating == "random":
            drawn = np.empty(len(games), np.int8)
            seats_of_seeds(info["seed"][games], drawn)
            self.seats[games] = drawn
        else:
            self.seats[games] = self._seating
        self.lengths[games] = 0
        self.done[games] = self._needs_reset[games] = False
        self.player[games] = NO_PLAYER
        self._opponents.take(games)
        self.batch.advance_to_decision(games)
        self._play_opponents(games)
        ended = games[self.batch.over[games]]
        if len(ended):
            self._needs_reset[ended] = self.done[ended] = True
            raise PositionError(
                f"state: game {ended[0]} ends before the learner decides: choose another one"
            )

    # Internals

    def _games_to_begin(self) -> Games:
        """Return the games that the step begins, or raise `RuntimeError` if one needs a reset."""
        if self._needs_reset.any():
            game = int(self._needs_reset.argmax())
            raise RuntimeError(f"game {game} has ended or not begun: call reset first")
        return np.flatnonzero(self.done)

    def _end(self, games: Games) -> None:
        self.done[games] = True
        self._needs_reset[games] = self.autoreset_mode != AutoresetMode.NEXT_STEP

    def _play_opponents(self, games: Games) -> None:
        """Let Python opponents play; an error of one ends all games."""
        try:
            self._opponents.decide(games)
        except BaseException:
            self.done[:] = self._needs_reset[:] = True
            raise

    def _frame(self, game: int) -> Any:
        return render(self.render_mode, partial(self.scene, game))

    def _info(self) -> dict[str, npt.NDArray[Any]]:
        """Return the info of every game, one array per key.

        `player` decided in the step (-1 after a reset), and `next_player` decides next (-1 at the
        end). Both are the learner, so value estimates keep their sign.
        """
        info = self.batch.episode_info
        return {
            "action_mask": self.action_masks().view(np.int8),
            "seed": info["seed"].copy(),
            "board": info["board"].astype(np.int64),
            "seat": self.seats.astype(np.int64),
            "player": self.player.astype(np.int64),
            "next_player": np.where(self.done, NO_PLAYER, self.seats).astype(np.int64),
        }

    def _final(self, ended: Games, flags: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return the final observations and infos of games, in the form of `SyncVectorEnv`."""
        last = np.full(self.num_envs, None, object)
        seen = self.batch.observe(ended, self.seats[ended])
        for j, game in enumerate(ended.tolist()):
            last[game] = observation_at(seen, j)
        info = self._info()
        for values in info.values():
            values[~flags] = 0
        return _flagged({"final_obs": last, "final_info": _flagged(info, flags)}, flags)

    def _seeds_of(self, games: Games, seed: Any) -> Any:
        """Return a seed for all games, or one for each of some; the batch checks the latter."""
        if np.ndim(seed) == 0:
            return None if seed is None else check_seed(seed)
        each = np.asarray(seed, object)
        if len(each) != self.num_envs:
            raise ValueError(f"seed: expected {self.num_envs} of them, got {len(each)}")
        return each[games]

    def _reset_mask(self, options: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Return which environments to reset (default: all), bool (num_envs,)."""
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(
                f"reset_mask: expected bool of shape ({self.num_envs},), got {describe_array(mask)}"
            )
        return mask


class TokaidoDuoEnv(CopiedWhole, gymnasium.Env[Any, Any]):
    """A game of the learner against an opponent.

    Args:
        opponent: a spec string such as "greedy", an agent, or an object with `act` or `choose`.
        seat: the learner's seat: 0, 1 or "random", as for `TokaidoDuoVectorEnv`.
        render_mode: None, "ansi" or "rgb_array"; see `tokaido_env.render.modes`.
        options: `board`, `reward`, `observation`, `see_board` and `illegal`, as for
            `TokaidoDuoVectorEnv`.

    Attributes:
        games: the `TokaidoDuoVectorEnv` of one game.

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
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        if isinstance(opponent, Sequence) and not isinstance(opponent, str) and len(opponent) > 1:
            raise ValueError(f"opponent: expected one, got {len(opponent)}")
        BoardPool.load(options.get("board", "shikoku")).check_drawn()
        self.render_mode = render_mode
        self.games = TokaidoDuoVectorEnv(
            1, opponent, seat, autoreset_mode=AutoresetMode.DISABLED, **options
        )
        self.observation_space = self.games.single_observation_space
        self.action_space = self.games.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: random seed, an integer from 0; None continues with the next episode of the
                last seed.
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
        one: Any = [seed]
        self.games.begin(self.games.batch.all_games, one, (options or {}).get("state"))
        super().reset(seed=seed)
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action of the learner, then the opponent until the learner decides again.

        Args:
            action: id of an action; with `illegal="terminate"`, an illegal one ends the game with
                reward -1.

        Returns:
            Observation, reward, terminated, truncated (always False) and infos.

        Raises:
            ValueError: for an action that is no integer.
            IllegalMove: for an illegal action of the opponent, or with `illegal="raise"` of the
                learner.
            RuntimeError: after the end of the game: reset first.
        """
        rewards, ended = self.games.play(np.asarray(action).reshape(1))
        seen, info = self._seen()
        return seen, rewards.item(), ended.item(), False, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, bool (N_ACTIONS,); all False after the end."""
        masks: npt.NDArray[np.bool_] = self.games.action_masks()[0]
        return masks

    def render(self) -> str | Pixels | None:
        """Return the position as text or pixels, uint8 (height, width, 3), by the render mode."""
        return render(self.render_mode, partial(self.games.scene, 0))

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        """Return the observation and the info."""
        games, info = self.games, self.games.batch.episode_info
        seat = games.seats.item()
        return observation_at(games.observe(), 0), {
            "action_mask": games.action_masks()[0].view(np.int8),
            "seed": info["seed"].item(),
            "board": info["board"].item(),
            "seat": seat,
            "player": games.player.item(),
            "next_player": NO_PLAYER if games.done[0] else seat,
        }


def _flagged(infos: dict[str, Any], flags: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Add Gymnasium's `_KEY` entries: which environments each entry belongs to."""
    return infos | {f"_{key}": flags.copy() for key in infos}
