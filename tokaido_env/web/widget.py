"""Play inside a notebook: in Jupyter, VS Code or Colab, the table that `tokaido play` serves.

    from tokaido_env.web.widget import play

    table = play("champion:sims=64", seed=7)
    table

What a page does by requests goes by the messages of a widget: the module that shows it is the same.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tokaido_env.core.optional_deps import extra_error

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    raise extra_error("the table of a notebook needs", error.name, "notebooks") from error

from tokaido_env.agent import Agent
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import Chance, repr_short, str_short
from tokaido_env.game import Game
from tokaido_env.record import Record
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame
from tokaido_env.web.static_files import module_text, sheet_text

_WAIT = 3600.0  # seconds after which it is looked again, whether anything has happened or not


def play(
    against: str | Agent = "champion",
    you: str | Agent = HUMAN,
    *,
    seat: int = 0,
    board: Boards = "shikoku",
    seed: int | None = None,
    chance: Chance = "sampled",
    advisor: str | Agent = "champion:sims=400",
) -> TableWidget:
    """Return a table at which a new game is played; a notebook shows it.

    Args:
        against: an agent, the spec of one, or "human".
        you: who plays the other seat.
        seat: yours, 0 or 1.
        board, seed, chance: as for `Session`.
        advisor: who advises, and judges decisions in a review.

    Raises:
        ValueError: for a seat, an agent or a board that is not.
    """
    if type(seat) is not int or seat not in (0, 1):
        raise ValueError(f"seat: expected 0 or 1, got {repr_short(seat)}")
    seats = (against, you) if seat else (you, against)
    return TableWidget(Session(seats, board, seed, chance), advisor)


def go_on(
    game: Game | Record,
    seats: Sequence[str | Agent] = (HUMAN, HUMAN),
    *,
    board: Boards | None = None,
    advisor: str | Agent = "champion:sims=400",
) -> TableWidget:
    """Return a table at which a game stands: to step through, to review, to play on.

    Args:
        game: one that was played, or the record of one.
        seats: who plays on.
        board: of a record, as for `record.load`.
        advisor: as for `play`.

    Raises:
        RecordError: if the record is not true.
    """
    if isinstance(game, Game):
        game, board = game.record(), game.board
    return TableWidget(Session.resumed(game, seats, board), advisor)


class TableWidget(anywidget.AnyWidget):
    """A table as a widget: `told` is what there is to see, messages are what is done and asked.

    Attributes:
        told: what `Table.look` returns, newest.
    """

    _esm = module_text()
    _css = sheet_text()

    told = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, advisor: str | Agent = "champion:sims=400") -> None:
        self._table = LiveGame(session, advisor=advisor)
        super().__init__(told=self._table.look())
        self.on_msg(self._answer)
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def session(self) -> Session:
        """The game that is played, with all that can be taken back."""
        return self._table.session

    def record(self) -> Record:
        """Return the record of the game so far."""
        return self.session.record()

    def close(self) -> None:
        """Take the table away, and end its threads."""
        self._table.close()
        super().close()

    def _watch(self) -> None:
        """Show what happens, until the table is closed."""
        while not self._table.closed:
            told = self._table.look(self.told["version"], _WAIT)
            if told["version"] != self.told["version"]:
                self.told = told

    def _answer(self, widget: Any, message: Any, buffers: Any) -> None:
        """Do or ask at the table what a message says, and send back what came of it."""
        if not isinstance(message, Mapping):
            return
        answer: dict[str, Any] = {"id": message.get("id")}
        try:
            answer["answer"] = self._asked(message)
        except ValueError as error:
            answer |= {"error": str_short(str(error), 400), "key": getattr(error, "key", "")}
        self.send(answer)

    def _asked(self, message: Mapping[str, Any]) -> Any:
        name, arguments = message.get("name"), message.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise ValueError("expected a name and an object of arguments")
        if message.get("kind") == "do":
            return self._table.do(name, arguments)
        return self._table.ask(name, arguments)
