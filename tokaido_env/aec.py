"""Tokaido Duo as a PettingZoo AEC environment: `env` and `raw_env`.

| | |
|---|---|
| agents | `player_0`, `player_1` |
| actions | Discrete(49), the table of `tokaido_env.core.actions` |
| observation | `{"observation": float32 (N_FEATURES,) in [0, 1], "action_mask": int8 (49,)}` |
| board features | with `see_board=True`, appended to the observation |
| afterstates | with `observation="afterstates"`, the inputs of the networks, and `actions` |
| rewards | at the end: +1 to the winner, -1 to the other player, 0 to both for a shared victory |
| step | one decision; a player may decide several times in a row |
| render modes | `tokaido_env.render.modes`: text, pixels, a window |

`env()` checks order, bounds and legality as PettingZoo's usual wrappers do; `raw_env()` is
`env(illegal="raise")`.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pettingzoo
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.env_logger import EnvLogger

from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import IllegalMove, check_choice, check_seed
from tokaido_env.core.copying import CopiedWhole, shallow_copy
from tokaido_env.core.rng import entropy_seed, episode_seed
from tokaido_env.core.rules import rewards_of
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.game import Game
from tokaido_env.observers import AFTERSTATES, GameObserver, check_observation
from tokaido_env.render.modes import RENDER_FPS, RENDER_MODES, close_window, render
from tokaido_env.spaces import action_space, mask_space, observation_space

if TYPE_CHECKING:
    from tokaido_env.render.raster import Pixels

AGENTS = ("player_0", "player_1")
ObservationFormat = Literal["dict", "box", "geometry", "afterstates"]
FORMATS: tuple[ObservationFormat, ...] = ("dict", "box", "geometry", "afterstates")
_VECTORS: dict[str, Any] = {"dict": "float32", "box": "float32"}  # the format of `Batch`
MaskLocation = Literal["both", "observation", "infos"]
MASK_LOCATIONS: tuple[MaskLocation, ...] = ("both", "observation", "infos")
_SEATS: dict[str, int] = {agent: seat for seat, agent in enumerate(AGENTS)}
ILLEGAL_REWARD = -1.0
_REMEDY = "choose by action_mask, for example env.action_space(agent).sample(action_mask)"


class TokaidoEnv(CopiedWhole, AECEnv[str, Any, int | None]):
    """The AEC environment with the checks of PettingZoo's usual wrappers: `env`.

    It behaves like `OrderEnforcing(AssertOutOfBounds(TerminateIllegal(raw_env(), -1)))`. The checks
    are part of this class because each wrapper takes longer than a step of the game.

    Args:
        board: a name, a path, a `Board`, or a pool, from which the seed of each episode draws;
            `infos` contain the index in `boards`.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "dict" for the vector and the mask; "box" for the vector alone, with the mask
            in `infos`; "geometry" for the geometry and the mask; "afterstates" for the inputs of
            the networks, the features of each legal action's afterstate as "actions", and the mask
            (`afterstate_observation.AFTERSTATE_SHAPES`).
        see_board: append the board features to the vector and to `state()` (`board_features`).
        mask: where to put the action mask: "observation" (the default), "infos" (the default for
            a box observation, which never contains it) or "both".
        illegal: "terminate" ends the game on an illegal action, with reward -1 for the offender
            and 0 for the other; "raise" raises `IllegalMove` and changes nothing.
        render_mode: None, "ansi", "rgb_array" or "human"; see `tokaido_env.render.modes`.

    Attributes:
        game: the `Game` being played; read its record and position, but do not play it.
        boards: the `BoardPool`; `infos` have the index of the game's board in it as `board`.

    Raises:
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  PettingZoo declares it as an instance attribute
        "name": "tokaido_duo_v0",
        "render_modes": [*RENDER_MODES, "human"],
        "is_parallelizable": False,
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        board: Boards = "shikoku",
        *,
        reward: Literal["win", "margin"] = "win",
        observation: ObservationFormat = "dict",
        see_board: bool = False,
        mask: MaskLocation | None = None,
        illegal: Literal["terminate", "raise"] = "terminate",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        check_choice("reward", reward, ("win", "margin"))
        check_choice("illegal", illegal, ("terminate", "raise"))
        check_observation(observation, see_board, FORMATS)
        if mask is None:
            mask = "infos" if observation == "box" else "observation"
        check_choice("mask", mask, MASK_LOCATIONS if observation != "box" else ("both", "infos"))
        check_choice("render_mode", render_mode, (None, *RENDER_MODES, "human"))
        self.boards = BoardPool.load(board).check_drawn()
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {
            agent: _observation_space(observation, see_board, mask) for agent in AGENTS
        }
        self.action_spaces = {agent: action_space() for agent in AGENTS}
        self.state_space = observation_space("float32", see_board)
        self._observer = GameObserver(_VECTORS.get(observation, observation), see_board)
        self._state_observer = GameObserver("float32", see_board)
        self._margin = reward == "margin"
        self._raises = illegal == "raise"
        self._as_dict, self._is_whole = observation != "box", observation == AFTERSTATES
        self._mask_in_observation, self._mask_in_infos = mask != "infos", mask != "observation"
        self._seed: int | None = None
        self._episode = 0

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of what `observe` returns, the same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space of an agent, Discrete(49), the same object at each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: random seed of the episode, an integer from 0. None continues with the next
                episode of the last seed, or takes a first seed from the operating system.
                `infos` contain the seed with which `Game(seed=…)` has the same dice and draws.
            options: `{"state": position}` starts from a position as `Game.to_dict` returns it.

        Raises:
            SeedError: for anything else than a non-negative integer.
            PositionError: for a position that no game can reach. The environment is unchanged
                after an error.
        """
        base_seed, episode = self._next_episode(seed)
        game_seed = int(episode_seed(base_seed, episode))
        position = (options or {}).get("state")
        if position is None:
            game = Game(self.boards, seed=game_seed)
        else:
            game = Game.from_dict(position, board=self.boards, seed=game_seed, chance="sampled")
        self._seed, self._episode, self.game = base_seed, episode, game
        self._moved = True  # since `agent_iter` last returned an agent
        self._board = self.boards.index_of_name(game.board.name)
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self._skip_agent_selection = None
        self._update_infos(None)
        if self.render_mode == "human":
            self.render()

    def step(self, action: Any) -> None:
        """Play an action of `agent_selection` after checks of order, bounds and legality.

        Args:
            action: id of an action; None for an agent that is done.

        Raises:
            AssertionError: for an action outside the action space.
            IllegalMove: with `illegal="raise"`, naming the legal actions; nothing changes then.
        """
        game, self._moved = self.game, True
        if not self.agents:
            EnvLogger.warn_step_after_terminated_truncated()
            return
        agent = self.agent_selection
        done = self.terminations[agent] or self.truncations[agent]
        if done and action is None:
            self._was_dead_step(None)
            return
        # The first condition covers the usual case, ten times faster than the second.
        in_range = type(action) is int and 0 <= action < N_ACTIONS
        if not in_range and not self.action_spaces[agent].contains(action):
            raise AssertionError("action is not in action space")  # also with python -O
        if done:
            self._was_dead_step(action)
            return
        player = game.player
        try:
            game.play(action)
        except IllegalMove as error:
            if self._raises:
                raise IllegalMove(f"{error}; {_REMEDY}") from None
            self._terminate_illegal(agent)
            return
        self._cumulative_rewards[agent] = 0.0
        self._update_infos(player)
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> Any:
        """Return the observation of an agent, also while the other decides.

        Returns:
            `{"observation": …, "action_mask": int8 (49,)}`, with afterstates also "actions";
            without the mask for `mask="infos"`, the array alone for `observation="box"`. The mask
            is 0 while the agent cannot act. All arrays are new: the caller may change them.
        """
        seat = _SEATS[agent]
        observation = self._observer.observe(self.game, seat)
        if not self._as_dict:
            return observation
        seen = observation if self._is_whole else {"observation": observation}
        if self._mask_in_observation:
            seen["action_mask"] = self._mask_of(seat)
        elif self._is_whole:
            del seen["action_mask"]
        return seen

    def state(self) -> npt.NDArray[np.float32]:
        """Return the whole position as one vector, player_0's numbers, since nothing is hidden.

        Returns:
            float32 (N_FEATURES,), N_BOARD_FEATURES longer with `see_board`.
        """
        vector: npt.NDArray[np.float32] = self._state_observer.observe(self.game, 0)
        return vector

    def render(self) -> str | Pixels | None:
        """Return text or pixels, uint8 (height, width, 3), or show them, by the render mode."""
        return render(self.render_mode, self.game.scene)

    def close(self) -> None:
        """Close the window, if one is open."""
        close_window()

    def __deepcopy__(self, memo: dict[int, Any]) -> TokaidoEnv:
        """Copy the environment with its random number state; spaces and boards are shared."""
        other = shallow_copy(self)
        if "game" in self.__dict__:
            other.game = copy.deepcopy(self.game, memo)
            other.agents = self.agents.copy()
            other.infos = {agent: _copied(info) for agent, info in self.infos.items()}
            for name in ("rewards", "_cumulative_rewards", "terminations", "truncations"):
                setattr(other, name, getattr(self, name).copy())
        return other

    def agent_iter(self, max_iter: int = 2**63) -> Any:
        """Yield `agent_selection` before each step, at most `max_iter` times, until the end."""
        while self.agents and max_iter > 0:
            max_iter, self._moved = max_iter - 1, False
            yield self.agent_selection
            if not self._moved:
                raise AssertionError("need to call step() or reset() in a loop over `agent_iter`")

    def _next_episode(self, seed: int | None) -> tuple[int, int]:
        if seed is not None:
            return check_seed(seed), 0
        if self._seed is None:
            return entropy_seed(), 0
        return self._seed, self._episode + 1

    def _update_infos(self, player: int | None) -> None:
        """Set infos and the next agent after a decision of `player` (None after a reset)."""
        game = self.game
        next_player = game.player
        info: dict[str, Any] = {
            "player": NO_PLAYER if player is None else player,
            "next_player": NO_PLAYER if next_player is None else next_player,
            "seed": game.seed,
            "board": self._board,
        }
        self.infos = {AGENTS[0]: info, AGENTS[1]: info.copy()}
        if self._mask_in_infos:
            for seat, agent in enumerate(AGENTS):
                self.infos[agent]["action_mask"] = self._mask_of(seat)
        if next_player is None:
            self._finish()
            self.agent_selection = AGENTS[0]
            return
        self.agent_selection = AGENTS[next_player]

    def _mask_of(self, seat: int) -> npt.NDArray[np.int8]:
        return self.game.mask() if seat == self.game.player else np.zeros(N_ACTIONS, np.int8)

    def _finish(self) -> None:
        """Set the final rewards; the game is terminated, also at the cap on rounds (R10.1)."""
        game = self.game
        rewards = rewards_of(game.boards, game.states, 0, self._margin)
        self.rewards = dict(zip(AGENTS, rewards, strict=True))
        self._accumulate_rewards()
        self.terminations = dict.fromkeys(AGENTS, True)

    def _terminate_illegal(self, agent: str) -> None:
        """End the game with reward -1 for the offender, as PettingZoo's wrapper does."""
        EnvLogger.warn_on_illegal_move()
        self._cumulative_rewards[agent] = 0.0
        self.terminations = dict.fromkeys(self.agents, True)
        self.truncations = dict.fromkeys(self.agents, True)
        self.rewards = dict.fromkeys(self.agents, 0.0) | {agent: ILLEGAL_REWARD}
        self._accumulate_rewards()
        self._deads_step_first()


def _copied(info: dict[str, Any]) -> dict[str, Any]:
    """Copy an info with its mask."""
    mask = info.get("action_mask")
    return info.copy() if mask is None else info | {"action_mask": mask.copy()}


def _observation_space(observation: str, see_board: bool, mask: str) -> spaces.Space[Any]:
    space: Any = observation_space(_VECTORS.get(observation, observation), see_board)
    if observation == "box":
        return space
    parts = dict(space.spaces) if observation == AFTERSTATES else {"observation": space}
    parts.pop("action_mask", None)
    return spaces.Dict(parts if mask == "infos" else parts | {"action_mask": mask_space()})


env = TokaidoEnv
raw_env = partial(TokaidoEnv, illegal="raise")
"""The environment for PettingZoo's own wrappers: an illegal action raises `IllegalMove`."""


# PettingZoo has a registry from version 1.27 on.
if "tokaido_duo-v0" not in getattr(pettingzoo, "aec_registry", ("tokaido_duo-v0",)):
    pettingzoo.register("aec", "tokaido_duo_v0", entry_point="tokaido_env.aec:env")
