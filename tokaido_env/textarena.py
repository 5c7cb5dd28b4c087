"""Tokaido Duo for TextArena: importing this module registers `TokaidoDuo-v0`.

    import textarena
    import tokaido_env.textarena

    env = textarena.make("TokaidoDuo-v0", board="shikoku")
    env.reset(num_players=2, seed=7)
    player, prompt = env.get_observation()
    done, info = env.step('{"action": "merchant:stay"}')

| | |
|---|---|
| players | 0 and 1; the same may act several times in a row |
| observation | at first the rules; at each decision the position, what is asked and what is legal |
| action | text ending in a block of JSON, as `tokaido_env.text.parse_answer` reads it |
| refused | told with the reason, tried again `retries` times, then lost |
| rewards | 1 to the winner, -1 to the other, 0 to both if shared or at the cap (R10.1) |

`TokaidoDuo-v0` shows the rules, what has happened and the position as it is now; `-full` all that
was ever observed, as other games of TextArena do by default: a drawing at each of 150 decisions is
some 600,000 characters; `-raw` hands out single messages. Decisions without a choice are made
without asking.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tokaido_env.core.optional_deps import extra_error

try:
    import textarena
    from textarena import ObservationType
    from textarena.envs.registration import ENV_REGISTRY, register_with_versions
    from textarena.wrappers import (
        GameMessagesAndCurrentBoardObservationWrapper,
        LLMObservationWrapper,
    )
except ModuleNotFoundError as error:
    raise extra_error("games of TextArena need", error.name, "textarena") from error

from tokaido_env.boards.board_pool import Boards
from tokaido_env.game import Game
from tokaido_env.text import RULES, TextFormat, history_lines, make_prompt, parse_answer

NAME = "TokaidoDuo-v0"
PLAYERS = 2


class TokaidoDuoTextEnv(textarena.Env):
    """One game.

    Args:
        board: as for `Game`.
        form: what a prompt holds; `retries` are the further tries after a refused answer.

    Attributes:
        game: the `Game` that is played, None before `reset`.
        state: TextArena's.
    """

    def __init__(self, board: Boards = "shikoku", form: TextFormat | None = None) -> None:
        self.board, self.form = board, form or TextFormat()
        self.game: Game | None = None

    def reset(self, num_players: int = PLAYERS, seed: int | None = None) -> None:
        """Begin a game.

        Args:
            num_players: 2.
            seed: of the game's luck, as for `Game`.

        Raises:
            ValueError: if there are not two players.
        """
        if num_players != PLAYERS:
            raise ValueError(f"num_players: expected {PLAYERS}, got {num_players!r}")
        self.game = Game(self.board, seed)
        # Without the seed: TextArena's state would seed Python's own `random` with it.
        self.state = textarena.TwoPlayerState(PLAYERS, error_allowance=self.form.retries)
        self.state.reset(game_state={}, player_prompt_function=self._prompt)
        self._tell(since=0)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Read an answer and play it, or refuse it; return whether the game is over, and infos.

        Raises:
            RuntimeError: before `reset` or after the end.
        """
        game = self._playing()
        said = action if isinstance(action, str) else ""
        player = self.state.current_player_id
        self.state.add_observation(said, ObservationType.PLAYER_ACTION, from_id=player)
        parsed = parse_answer(action, game.legal_labels())
        if parsed.label is None:
            self.state.set_invalid_move(f"{parsed.error}.")
            if not self.state.done:
                self._ask(parsed.error)
        else:
            since = len(game.events())
            game.play(parsed.label)
            self._tell(since)
        done, info = self.state.step(rotate_player=False)
        return done, info

    def _playing(self) -> Game:
        if self.game is None or self.state.done:
            raise RuntimeError("step: expected a game that goes on: call reset first")
        return self.game

    def _tell(self, since: int) -> None:
        """Play on to the next choice, tell what has happened since an event, and ask or end."""
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

    def _ask(self, error: str = "") -> None:
        form = replace(self.form, rules=False, history=0)
        game = self._playing()
        message = make_prompt(game, form, error)
        self.state.add_observation(message, ObservationType.GAME_BOARD, to_id=game.player)

    def _prompt(self, player_id: int, game_state: dict[str, Any]) -> str:
        you = f"You are player_{player_id} of Tokaido Duo."
        return f"{RULES}\n\n{you}" if self.form.rules else you


_WRAPPERS = {
    "default": [GameMessagesAndCurrentBoardObservationWrapper],
    "-train": [GameMessagesAndCurrentBoardObservationWrapper],  # as TextArena calls that form
    "-full": [LLMObservationWrapper],
}
if NAME not in ENV_REGISTRY:
    register_with_versions(NAME, TokaidoDuoTextEnv, _WRAPPERS)
