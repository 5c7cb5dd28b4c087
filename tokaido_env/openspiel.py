"""OpenSpiel game `tokaido_duo`, registered by importing this module.

    import pyspiel
    import tokaido_env.openspiel

    options = {"board": "my_board.toml", "reward": "margin"}
    game = pyspiel.load_game("tokaido_duo", options)

| | |
|---|---|
| dynamics | sequential, explicit stochastic, perfect information, zero-sum, terminal reward |
| actions | 49, the table of `tokaido_env.core.actions` |
| chance outcomes | at most 216, the ids of `rules.outcome_weights` |
| returns | +1 to the winner, -1 to the other, 0 to both if shared |
| observation | float32 (N_FEATURES,) in [0, 1], the table of `tokaido_env.core.observation` |
| board features | with `see_board`, appended (`tokaido_env.core.board_features`) |

OpenSpiel's tensors are one array each, with legal actions apart, so there are no
afterstates: `state.game.afterstates()` returns the positions after each action.

Parameters: `board`, the name of a built-in board, the path of a board file or `family:NUMBER`, but
no pool, because OpenSpiel games have no seed to draw a board; `reward`, "win", or "margin" for the
score margin / 100, clipped to [-1, 1]; `see_board`, True or False.

`new_initial_state(position)` starts from a position, a dict of `Game.to_dict`. `str(state)` is the
position in JSON.

OpenSpiel serialises states of Python games as pickles: load only trusted ones. It finds the game
again by its string, in which a path must not contain a comma, `=` or a bracket.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tokaido_env.core.optional_deps import extra_error

try:
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ModuleNotFoundError as error:
    raise extra_error("OpenSpiel's games need", error.name, "openspiel") from error

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import LABELS, N_ACTIONS
from tokaido_env.core.arguments import check_choice
from tokaido_env.core.constants import CHARACTERS, COASTAL_TOWNS, PAINTINGS
from tokaido_env.core.rules import MAX_OUTCOMES, rewards_of
from tokaido_env.core.state import MAX_PENDING
from tokaido_env.core.stepping import weights_of
from tokaido_env.game import Game
from tokaido_env.observers import GameObserver

SHORT_NAME = "tokaido_duo"
REWARDS = ("win", "margin")
SEATS = (0, 1)

# A round has at most 24 decisions: three picks of a move, an effect, a repeat and its effect; ten
# wares returned after two draws of five (R4.3), two after lost tiles (R7.4). 40 leaves a margin.
MAX_DECISIONS_PER_ROUND = 40

_DEFAULTS = {"board": "shikoku", "reward": "win", "see_board": False}

_TYPE = pyspiel.GameType(
    short_name=SHORT_NAME,
    long_name="Tokaido Duo",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=len(SEATS),
    min_num_players=len(SEATS),
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification=_DEFAULTS,
)


class TokaidoDuoGame(pyspiel.Game):
    """The game on one board, as `pyspiel.load_game("tokaido_duo", {"board": …})` returns it.

    Further parameters are `reward`, "win" or "margin", and `see_board`, False or True.

    Attributes:
        board: the `Board`.
        margin: whether returns are score margins.
        see_board: whether observers append the board features.
        start: the `Game` at the start of every state; do not play it.

    Raises:
        BoardError: for an unknown board.
        ValueError: for an unknown reward.
    """

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        values: dict[str, Any] = {**_DEFAULTS, **(params or {})}
        check_choice("reward", values["reward"], REWARDS)
        check_choice("see_board", values["see_board"], (True, False))
        self.board = Board.load(values["board"])
        self.margin = values["reward"] == "margin"
        self.see_board = bool(values["see_board"])
        # Chance is explicit, so the seed has no effect.
        self.start = Game(self.board, seed=0, chance="explicit")
        info = pyspiel.GameInfo(
            num_distinct_actions=N_ACTIONS,
            max_chance_outcomes=MAX_OUTCOMES,
            num_players=len(SEATS),
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=MAX_DECISIONS_PER_ROUND * self.board.max_rounds,
        )
        if not self.see_board:  # keeps the default game's string without this parameter
            del values["see_board"]
        super().__init__(_TYPE, info, values)

    def new_initial_state(self, position: Mapping[str, Any] | None = None) -> TokaidoDuoState:
        """Return the state before the set-up, or at a position.

        Args:
            position: a position on the game's board, as `state.game.to_dict` returns it.

        Raises:
            PositionError: for a position that no game can reach, or on another board.
        """
        state = TokaidoDuoState(self)
        if position is not None:
            state.game = Game.from_dict(position, board=self.board, seed=0, chance="explicit")
        return state

    def max_chance_nodes_in_history(self) -> int:
        """Return a bound: set-up, a reveal per painting, and a roll and two draws per round."""
        setup = len(COASTAL_TOWNS) + len(CHARACTERS)
        return setup + len(SEATS) * PAINTINGS + self.board.max_rounds * (1 + 2 * MAX_PENDING)

    def make_py_observer(
        self, iig_obs_type: Any = None, params: Mapping[str, Any] | None = None
    ) -> Any:
        """Return an observer of the position, or of the history for perfect recall.

        Args:
            iig_obs_type: a `pyspiel.IIGObservationType`; None for the position.
            params: none are supported.
        """
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return TokaidoDuoObserver(params, see_board=self.see_board)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters only: OpenSpiel restores games without their Python attributes."""
        return type(self), (self.get_parameters(),)


class TokaidoDuoState(pyspiel.State):
    """A state with its history; `game.new_initial_state()` returns the first.

    Attributes:
        game: the explicit-chance `Game` being played; read its scores, record and position.
    """

    def __init__(self, game: TokaidoDuoGame) -> None:
        super().__init__(game)
        self.game = game.start.copy(luck="same")

    def current_player(self) -> Any:
        """Return the seat that decides, `PlayerId.CHANCE` or `PlayerId.TERMINAL`."""
        player = self.game.player
        if player is not None:
            return player
        return pyspiel.PlayerId.TERMINAL if self.game.is_over else pyspiel.PlayerId.CHANCE

    def _legal_actions(self, player: int) -> list[int]:
        """Return the legal actions, ascending. OpenSpiel asks for the player to decide only."""
        return self.game.legal_actions()

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the possible outcomes as (id, probability), ascending; empty at a decision."""
        weights = np.zeros(MAX_OUTCOMES, np.int64)
        weights_of(self.game.boards, self.game.states, 0, weights)
        possible = np.flatnonzero(weights)
        odds = weights[possible] / weights.sum()
        return list(zip(possible.tolist(), odds.tolist(), strict=True))

    def _apply_action(self, action: int) -> None:
        """Play an action or an outcome.

        Raises:
            IllegalMove: naming the legal moves; the state is unchanged.
        """
        self.game.play(action)

    def _action_to_string(self, player: int, action: int) -> str:
        """Return the label of an action or, for the chance player, of an outcome."""
        if player == pyspiel.PlayerId.CHANCE:
            return self.game.label(action)
        if not 0 <= action < N_ACTIONS:
            raise ValueError(f"action: expected 0 to {N_ACTIONS - 1}, got {action}")
        return LABELS[action]

    def is_terminal(self) -> bool:
        """Return whether the game has ended, by a trigger or the cap on rounds."""
        return self.game.is_over

    def returns(self) -> list[float]:
        """Return the rewards of both seats, 1, -1 or 0, or score margins; zeros before the end."""
        game = self.game
        return list(rewards_of(game.boards, game.states, 0, self.get_game().margin))

    def __str__(self) -> str:
        """Return the position as one line of JSON, which `Game.from_dict` reads."""
        return json.dumps(self.game.to_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> TokaidoDuoState:
        """Return a clone; OpenSpiel's own deep copy goes through a pickle."""
        return self.clone()


class TokaidoDuoObserver:
    """Observer of the position from either seat, at any node.

    Attributes:
        tensor: float32 (N_FEATURES,), N_BOARD_FEATURES longer with `see_board`; `set_from` writes
            it.
        dict: the same array as "observation"; FEATURES and BOARD_FEATURES list the slices.
    """

    def __init__(self, params: Mapping[str, Any] | None = None, *, see_board: bool = False) -> None:
        if params:
            raise ValueError(f"params: expected none for an observer, got {params}")
        self._observer = GameObserver("float32", see_board)
        self.tensor = self._observer.new_row()
        # One entry, because OpenSpiel copies each separately, which is slow for all of FEATURES.
        self.dict = {"observation": self.tensor}

    def set_from(self, state: TokaidoDuoState, player: int) -> None:
        """Write the observation of a seat to `tensor`; raise `ValueError` for another player."""
        check_choice("player", player, SEATS)
        self._observer.write(state.game, player, self.tensor)

    def string_from(self, state: TokaidoDuoState, player: int) -> str:
        """Return the position as one line of JSON, the same for both seats."""
        return str(state)


pyspiel.register_game(_TYPE, TokaidoDuoGame)
