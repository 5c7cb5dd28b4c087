"""A game in a terminal: the board as text, choices by number, advice when asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from tokaido_env.agent import Agent, as_agent
from tokaido_env.core.arguments import IllegalMove, escape_text
from tokaido_env.core.constants import CHARACTERS
from tokaido_env.record import save
from tokaido_env.render.ansi import draw, has_colors
from tokaido_env.render.scene import story_of
from tokaido_env.web.game_session import Session

_MOST_LISTED = 30  # outcomes of chance
_ELSEWHERE = ("u", "n", "resign")  # commands after which the game stands elsewhere

_HELP = """\
  a number or a label   decide so
  ?                     advice
  o                     what chance may bring next
  u                     take back your last choice
  b                     the board again
  resign                give the game up
  n                     a new game
  q                     stop"""


class Terminal:
    """Shows a session, asks, and saves after every move.

    Args:
        session: to play.
        file: of the record; None keeps none.
        advisor: spec of the agent that advises.
        ask_forced: whether to ask for decisions with a single legal action.
        out: where to write.
        read: returns a line that was typed, as `input`, which it is by default.
    """

    def __init__(
        self,
        session: Session,
        file: str | Path | None = None,
        advisor: str = "champion:sims=400",
        *,
        ask_forced: bool = False,
        out: TextIO | None = None,
        read: Callable[[str], str] | None = None,
    ) -> None:
        self.session, self._ask_forced = session, ask_forced
        self._file = None if file is None else Path(file)
        self._advisor: str | Agent = advisor
        self._out, self._read = out or sys.stdout, read or input
        self._told = len(session.happened)  # events that were told

    def run(self) -> int:
        """Play until the game is over or its players stop; return the exit status."""
        self._board()
        try:
            while self.session.waits_for != "nobody":
                if not self._go_on():
                    break
        except (EOFError, KeyboardInterrupt):
            self._print()
        self._save()
        if self.session.waits_for == "nobody":
            self._board()
            self._print(self.session.story())
        elif self._file is not None:
            self._print(f"saved in {self._file}: the same command goes on")
        return 0

    def _go_on(self) -> bool:
        """Let whoever is to go on do so; return False to stop."""
        session = self.session
        if session.waits_for == "agent":
            session.reply()
        elif session.waits_for == "human" and session.is_forced and not self._ask_forced:
            session.play(session.game.legal_labels()[0])
        else:
            return self._ask(self._choices())
        self._tell()
        return True

    def _ask(self, labels: list[str]) -> bool:
        """Ask for a decision or an outcome until there is one; return False to stop."""
        while (line := self._read("> ").strip()) != "q":
            if self._answer(line, labels):
                return True
        return False

    def _answer(self, line: str, labels: list[str]) -> bool:
        """Do what was typed; return whether the game stands elsewhere now."""
        commands = {"u": self._undo, "n": self._anew, "?": self._advise, "o": self._odds}
        commands |= {"resign": self.session.resign, "b": self._board}
        commands |= dict.fromkeys(("h", ""), lambda: self._print(_HELP))
        numbers = {str(number): label for number, label in enumerate(labels, start=1)}
        try:
            if line in commands:
                commands[line]()
            else:
                self.session.play(numbers.get(line, line))
                self._tell()
        except IllegalMove as error:
            self._print(f"  {error}")
            return False
        return line in _ELSEWHERE or line not in commands

    def _choices(self) -> list[str]:
        """Print what there is to choose from; return the labels."""
        game = self.session.game
        if self.session.waits_for == "chance":
            labels = [label for label, _ in game.outcomes()]
            self._print(f"What did chance bring? ({game.phase.name.lower()})")
            if len(labels) > _MOST_LISTED:
                self._print(f"  such as {labels[0]}")
                return labels
        else:
            labels = game.legal_labels()
            self._print(story_of(self.session.scenes[-1]))
        for number, label in enumerate(labels, start=1):
            meaning = "" if game.player is None else self.session.meaning(label)
            self._print(f"  {number:>2}  {label:<16}{meaning}".rstrip())
        return labels

    def _board(self) -> None:
        self._print(draw(self.session.scenes[-1], color=has_colors(self._out)))

    def _tell(self) -> None:
        """Tell in words what has happened since the last time; save."""
        for happened in self.session.happened[self._told :]:
            self._print(f"  {happened.sentence}")
            if happened.event.startswith("roll") and self.session.waits_for != "agent":
                self._board()
        self._told = len(self.session.happened)
        self._save()

    def _undo(self) -> None:
        if not self.session.undo():
            raise IllegalMove("there is nothing to take back")
        self._show_anew()

    def _anew(self) -> None:
        self.session.restart()
        self._show_anew()

    def _show_anew(self) -> None:
        self._told = len(self.session.happened)
        self._save()
        self._board()

    def _advise(self) -> None:
        self._advisor = as_agent(self._advisor)
        advice = self.session.advise(self._advisor)
        wins = "" if advice.wins is None else f": you win {advice.wins:.0%}"
        self._print(f"  {escape_text(self._advisor.spec)}{wins}")
        for move in advice.moves:
            self._print(f"  {move.words()}")

    def _odds(self) -> None:
        """Print what chance may bring here or, at a decision, in the next roll."""
        outcomes = self.session.game.outcomes()
        if not outcomes:
            self._print("  the faces of the dice, of which the next roll shows one each:")
            for character, faces in zip(CHARACTERS, self.session.game.board.faces, strict=True):
                self._print(f"  {character:<10}{' '.join(map(str, faces))}")
        for label, odds in sorted(outcomes, key=lambda one: -one[1])[:_MOST_LISTED]:
            self._print(f"  {odds:>6.1%}  {label}")

    def _save(self) -> None:
        if self._file is not None:
            save(self.session.records(), self._file)

    def _print(self, text: str = "") -> None:
        print(text, file=self._out, flush=True)
