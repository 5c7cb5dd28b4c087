"""Jupyter widget of a live game, for Jupyter, VS Code and Colab.

    from tokaido_env.web.widget import play

    game = play("champion:sims=64", seed=7)
    game

The widget runs the same JavaScript module as the page of `tokaido play`. Widget messages replace
its requests.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from tokaido_env.core.optional_deps import extra_error

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    raise extra_error("the play widget needs", error.name, "notebooks") from error

from tokaido_env.agent import Agent
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import Chance, repr_short, str_short
from tokaido_env.game import Game
from tokaido_env.record import Record
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.static_files import css_text, module_text

_TIMEOUT = 3600.0  # seconds for which one call waits for a new state


def play(
    opponent: str | Agent = "champion",
    player: str | Agent = HUMAN,
    *,
    seat: int = 0,
    board: Boards = "shikoku",
    seed: int | None = None,
    chance: Chance = "sampled",
    advisor: str | Agent = "champion:sims=400",
) -> LiveGameWidget:
    """Return a widget with a new game.

    Args:
        opponent: an agent, the spec of one, or "human".
        player: plays your seat; "human" or an agent.
        seat: your seat, 0 or 1.
        board: a name, a path, a `Board`, or a pool from which the seed draws.
        seed: an integer from 0; None takes one from the operating system.
        chance: "sampled", or "explicit" if people enter rolls and draws.
        advisor: advises, and judges decisions in a review.

    Raises:
        ValueError: for an invalid seat, agent or board.
    """
    if type(seat) is not int or seat not in (0, 1):
        raise ValueError(f"seat: expected 0 or 1, got {repr_short(seat)}")
    seats = (opponent, player) if seat else (player, opponent)
    return LiveGameWidget(Session(seats, board, seed, chance), advisor)


def resume(
    game: Game | Record,
    seats: Sequence[str | Agent] = (HUMAN, HUMAN),
    *,
    board: Boards | None = None,
    advisor: str | Agent = "champion:sims=400",
) -> LiveGameWidget:
    """Return a widget that shows a game, to step through, review or continue it.

    Args:
        game: a game or a record.
        seats: the players that continue it, "human", an agent or its spec each.
        board: of a record, required if it is neither built in nor of the family.
        advisor: an agent or its spec; it advises, and judges decisions in a review.

    Raises:
        RecordError: if an event or the result of the record is wrong.
    """
    if isinstance(game, Game):
        game, board = game.record(), game.board
    names = game.players if list(seats) == [HUMAN, HUMAN] else None
    return LiveGameWidget(Session.from_record(game, seats, board, names), advisor)


class LiveGameWidget(anywidget.AnyWidget):
    """A live game as a widget.

    Attributes:
        state: the newest `LiveGame.state`.
    """

    _esm = module_text()
    _css = css_text()

    state = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, advisor: str | Agent = "champion:sims=400") -> None:
        self._live_game = LiveGame(session, advisor=advisor)
        super().__init__(state=self._live_game.state())
        self.on_msg(self._answer)
        threading.Thread(target=self._update, daemon=True).start()

    @property
    def session(self) -> Session:
        """The game with its undo history."""
        return self._live_game.session

    def record(self) -> Record:
        """Return the record of the game so far, to save or replay."""
        return self.session.record()

    def close(self) -> None:
        """Close the widget and end its threads."""
        self._live_game.close()
        super().close()

    def _update(self) -> None:
        """Pass new states to the views until the game is closed."""
        while not self._live_game.closed:
            newest = self._live_game.state(self.state["version"], _TIMEOUT)
            if newest["version"] != self.state["version"]:
                self.state = dict(newest)

    def _answer(self, widget: Any, message: Any, buffers: Any) -> None:
        """Handle the command or query in a message, and send its answer or error."""
        game, answer = self._live_game, {"id": message["id"]}
        handle = game.command if message["kind"] == "command" else game.query
        try:
            answer["answer"] = handle(message["name"], message["arguments"])
        except ValueError as error:
            answer["error"] = str_short(str(error), 400)
        self.send(answer)
