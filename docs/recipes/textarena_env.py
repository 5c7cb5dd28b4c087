"""TextArena game `TokaidoDuo-v0`, registered by importing a copy of this file.

    import textarena
    import textarena_env

    env = textarena.make("TokaidoDuo-v0", board="shikoku")
    env.reset(num_players=2, seed=7)
    player, prompt = env.get_observation()
    done, info = env.step('{"action": "merchant:stay"}')

| | |
|---|---|
| players | 0 and 1; a player may decide several times in a row |
| observation | first the rules; at each decision the position, the question and label forms |
| action | text ending in a JSON block, as `tokaido_env.text.parse_answer` reads it |
| illegal action | an error message and up to `retries` further tries, then a loss |
| rewards | 1 to the winner, -1 to the other, 0 to both if shared |

`TokaidoDuo-v0` shows the rules, the events and the current position. `-full` shows all earlier
observations, as other games of TextArena do by default; with the board at each of 150 decisions
that is some 300,000 characters. `-raw` returns single messages. Forced moves are played
automatically.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import textarena
from textarena import ObservationType
from textarena.envs.registration import ENV_REGISTRY, register_with_versions
from textarena.wrappers import (
    GameMessagesAndCurrentBoardObservationWrapper,
    LLMObservationWrapper,
)

from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.game import Game
from tokaido_env.text import TextFormat, history_lines, make_prompt, parse_answer
from tokaido_env.text_rules import rules_text

NAME = "TokaidoDuo-v0"
PLAYERS = 2


class TokaidoDuoTextEnv(CopiedWhole, textarena.Env):
    """A game of two text players.

    Args:
        board: as for `Game`.
        form: contents of prompts; its `retries` limit further tries after an illegal action.

    Attributes:
        game: the `Game` being played, None before `reset`.
        state: TextArena's state.
    """

    def __init__(self, board: Boards = "shikoku", form: TextFormat | None = None) -> None:
        self.board, self.form = board, form or TextFormat()
        self.game: Game | None = None

    def reset(self, num_players: int = PLAYERS, seed: int | None = None) -> None:
        """Start a game.

        Args:
            num_players: must be 2.
            seed: random seed of the game, as for `Game`.

        Raises:
            ValueError: for another number of players.
        """
        if num_players != PLAYERS:
            raise ValueError(f"num_players: expected {PLAYERS}, got {num_players!r}")
        self.game = Game(self.board, seed)
        # TextArena's state gets no seed, because it would seed Python's global `random` with it.
        self.state = textarena.TwoPlayerState(PLAYERS, error_allowance=self.form.retries)
        self.state.reset(game_state={}, player_prompt_function=self._prompt)
        self._advance(since=0)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Play the action of an answer, or refuse it; return whether the game is over, and infos.

        Raises:
            RuntimeError: before `reset` and after the end.
        """
        game = self._playing()
        text = action if isinstance(action, str) else ""
        player = self.state.current_player_id
        self.state.add_observation(text, ObservationType.PLAYER_ACTION, from_id=player)
        parsed = parse_answer(action, game.legal_labels())
        if parsed.label is None:
            self.state.set_invalid_move(f"{parsed.error}.")
            if not self.state.done:
                self._ask(text)
        else:
            since = len(game.events())
            game.play(parsed.label)
        done, info = self.state.step(rotate_player=False)  # counts a turn of this player
        if parsed.label is not None:
            self._advance(since)
            done = self.state.done
        return done, info

    def _playing(self) -> Game:
        if self.game is None or self.state.done:
            raise RuntimeError("no game is in progress: call reset first")
        return self.game

    def _advance(self, since: int) -> None:
        """Play forced moves, report the events from number `since` on, and ask or end the game."""
        game = self._playing()
        while game.player is not None and len(game.legal_actions()) == 1:
            game.play(game.legal_actions()[0])
        for line in history_lines(game, len(game.events()) - since):
            self.state.add_observation(line, ObservationType.GAME_ACTION_DESCRIPTION)
        if game.player is not None:
            self.state.manually_set_current_player_id(game.player)
            self._ask()
            return
        totals = " to ".join(str(points["total"]) for points in game.scores())
        winner = game.winner()
        if winner is None:
            self.state.set_draw(f"{totals} points, shared.")
        else:
            self.state.set_winner(winner, f"{totals} points.")

    def _ask(self, refused: str | None = None) -> None:
        form = replace(self.form, rules=False, history=0)
        game = self._playing()
        message = make_prompt(game, form, refused)
        self.state.add_observation(message, ObservationType.GAME_BOARD, to_id=game.player)

    def _prompt(self, player_id: int, game_state: dict[str, Any]) -> str:
        you = f"You are player_{player_id} of Tokaido Duo."
        if self.game is None or not self.form.rules:
            return you
        return f"{rules_text(self.game.board, self.form.retries)}\n\n{you}"


class _OfOneGame:
    """Forgets at a reset the observations of earlier games, which TextArena's wrappers keep."""

    def reset(self, *args: Any, **kwargs: Any) -> Any:
        self.full_observations: dict[int, Any] = {}
        return super().reset(*args, **kwargs)  # type: ignore[misc]


class CurrentBoard(_OfOneGame, GameMessagesAndCurrentBoardObservationWrapper):
    """The rules, the events and the current position."""


class AllObservations(_OfOneGame, LLMObservationWrapper):
    """All earlier observations of the game."""


_WRAPPERS = {
    "default": [CurrentBoard],
    "-train": [CurrentBoard],  # TextArena's name of the default form
    "-full": [AllObservations],
}
if NAME not in ENV_REGISTRY:
    register_with_versions(NAME, TokaidoDuoTextEnv, _WRAPPERS)
