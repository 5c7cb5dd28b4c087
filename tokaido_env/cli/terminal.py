"""Game in a terminal: the board as text, numbered choices, and advice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from tokaido_env.core.arguments import IllegalMove, escape_text
from tokaido_env.render.ansi import draw, has_colors
from tokaido_env.render.scene import status_text
from tokaido_env.web.advice import failure_text
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.previews import previews_of

_MOST_LISTED = 30  # outcomes of chance
_MOVING = ("u", "n", "resign")  # commands that change the position

_HELP = """\
  a number or a label   make this choice
  ?                     advice
  u                     undo your last choice
  b                     show the board
  resign                resign the game
  n                     start a new game
  q                     quit"""


class Terminal:
    """Text interface of a session, which saves after every move.

    Args:
        session: the game to play.
        file: to save to; None saves nothing.
        advisor: spec of the agent that gives advice.
        out: text stream to write to; None is standard output.
        read: takes a prompt and returns a typed line; None is `input`.
    """

    def __init__(
        self,
        session: Session,
        file: GameFile | None = None,
        advisor: str = "champion:sims=400",
        *,
        out: TextIO | None = None,
        read: Callable[[str], str] | None = None,
    ) -> None:
        self.session, self._file = session, file
        self._advisor = advisor
        self._out, self._read = out or sys.stdout, read or input
        self._n_printed = len(session.log)  # events

    def run(self) -> int:
        """Play until the game is over or the user quits; return the exit status, 0."""
        self._board()
        try:
            while self.session.waits_for != "nobody":
                if not self._advance():
                    break
        except (EOFError, KeyboardInterrupt):
            self._print()
        is_saved = self._save()
        if self.session.waits_for == "nobody":
            self._board()
            self._print(self.session.status_text())
        elif self._file is not None and is_saved:
            self._print(f"saved in {self._file.path}: the same command resumes the game")
        return 0

    def _advance(self) -> bool:
        """Make the next move or ask for it; return False to quit."""
        session = self.session
        if session.waits_for == "agent":
            try:
                session.play_agent_move()
            except (Exception, SystemExit) as error:  # by an agent
                what = failure_text(session.names[session.game.player or 0], error)
                self._print(f"  {what}; u takes your move back, q quits")
                return self._ask([])
        elif session.waits_for == "human" and session.is_forced:
            session.play(session.game.legal_labels()[0])
        else:
            return self._ask(self._choices())
        self._print_events()
        return True

    def _ask(self, labels: list[str]) -> bool:
        """Ask until the position changes; return False to quit."""
        while (line := self._read("> ").strip()) != "q":
            if self._answer(line, labels):
                return True
        return False

    def _answer(self, line: str, labels: list[str]) -> bool:
        """Run a typed command or make a typed choice; return whether the position changed."""
        commands = {"u": self._undo, "n": self._new_game, "?": self._advise, "b": self._board}
        commands["resign"] = self.session.resign
        commands |= dict.fromkeys(("h", ""), lambda: self._print(_HELP))
        numbers = {str(number): label for number, label in enumerate(labels, start=1)}
        try:
            if line in commands:
                commands[line]()
            else:
                self.session.play(numbers.get(line, line))
                self._print_events()
        except IllegalMove as error:
            self._print(f"  {error}")
            return False
        return line in _MOVING or line not in commands

    def _choices(self) -> list[str]:
        """Print the legal actions or outcomes; return their labels."""
        game = self.session.game
        meanings = {
            one["label"]: " · ".join(filter(None, (one["name"], one["text"])))
            for one in previews_of(game.board, game.states)
        }
        if self.session.waits_for == "chance":
            labels = [label for label, _ in game.outcomes()]
            self._print(f"Enter the outcome ({game.phase.name.lower()})")
            if len(labels) > _MOST_LISTED:
                self._print(f"  such as {labels[0]}")
                return labels
        else:
            labels = game.legal_labels()
            self._print(status_text(self.session.scenes[-1]))
        for number, label in enumerate(labels, start=1):
            self._print(f"  {number:>2}  {label:<16}{meanings.get(label, '')}".rstrip())
        return labels

    def _board(self) -> None:
        self._print(draw(self.session.scenes[-1], color=has_colors(self._out)))

    def _print_events(self) -> None:
        """Print the events since the last call in words; save."""
        for entry in self.session.log[self._n_printed :]:
            self._print(f"  {entry.sentence}")
            if entry.event.startswith("roll") and self.session.waits_for != "agent":
                self._board()
        self._n_printed = len(self.session.log)
        self._save()

    def _undo(self) -> None:
        if not self.session.undo():
            raise IllegalMove("there is nothing to undo")
        self._show()

    def _new_game(self) -> None:
        playing = self.session.decisions and self.session.waits_for != "nobody"
        if playing and self._read("The game is not over. Leave it? y/n ").strip() != "y":
            raise IllegalMove("the game continues")
        if self._file is not None and self.session.decisions:
            self._file.start_game()
        game, players = self.session.game, [agent or HUMAN for agent in self.session.agents]
        self.session = Session(players, game.board, None, game.chance, self.session.names)
        self._show()

    def _show(self) -> None:
        self._n_printed = len(self.session.log)
        self._save()
        self._board()

    def _advise(self) -> None:
        try:
            advice = self.session.advice_task(self._advisor)()
        except (Exception, SystemExit) as error:  # by the advisor
            self._print(f"  no advice: {failure_text(self._advisor, error)}")
            return
        best = advice[0].win_probability
        wins = "" if best is None else f": you win {best:.0%}"
        self._print(f"  {escape_text(self._advisor)}{wins}")
        for move in advice:
            self._print(f"  {move.describe()}")

    def _save(self) -> bool:
        """Save the game, if to a file; print the error, and return whether there was none."""
        if self._file is not None and (error := self._file.save_error(self.session.record())):
            self._print(f"  {error}")
            return False
        return True

    def _print(self, text: str = "") -> None:
        print(text, file=self._out, flush=True)
