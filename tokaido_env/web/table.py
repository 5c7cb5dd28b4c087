"""A table at which a game is played: what all pages that look at it see, and what they may do.

Agents think in one thread, which does not hold the table meanwhile: whoever looks is answered at
once, and what was thought about a position that is gone is thrown away. Everything that happens
raises `version`; who has seen one waits for the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agents.arena.ladder import Ladder, ladder_for
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.family import is_family
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.box import CHARACTERS
from tokaido_env.core.checks import Chance, brief, check_choice, shown
from tokaido_env.record import read_line, save
from tokaido_env.render.scene import story_of
from tokaido_env.render.svg import panels_of
from tokaido_env.web.session import HUMAN, Advice, Happened, Session

Told = dict[str, Any]

UNRATED = ("challenger", "generalist")  # agents that the ladder does not have
_PACE = 0.5  # seconds between two decisions of agents that play each other
_MOST_ODDS = 24  # outcomes of chance that are listed, the likeliest


class TableError(ValueError):
    """What cannot be done at the table: the message says what was expected."""


class Level(NamedTuple):
    """An agent to play against, with its Elo on the ladder of the default board, if it has one."""

    spec: str
    elo: int | None


def levels() -> list[Level]:
    """Return the agents to play against, the weakest first, those without a rating last."""
    pool = BoardPool.load()
    ratings = Ladder.load(ladder_for(pool), pool).agents  # the best first
    rated = [Level(rating.agent, round(rating.elo)) for rating in reversed(ratings)]
    return [*rated, *(Level(spec, None) for spec in UNRATED)]


class Table:
    """A game, and who looks at it.

    Args:
        session: to play.
        file: of its record, written whenever something has happened; None: none.
        named: agents that the user has named, beside `levels`: others cannot be asked for.
        advisor: spec of the agent that advises.
        pace: seconds between two decisions of agents that play each other.

    Attributes:
        version: of what there is to see.
    """

    def __init__(
        self,
        session: Session,
        file: Path | None = None,
        named: Sequence[str] = (),
        advisor: str = "champion:sims=400",
        pace: float = _PACE,
    ) -> None:
        self.session, self._file, self._pace = session, file, pace
        self._advisor, self._first = advisor, session.game.board
        self.version = 1
        self._levels = levels()
        self._allowed = {HUMAN, *named, *(level.spec for level in self._levels)}
        self._advice: Advice | None = None
        self._asked = self._closed = False
        self._runs, self._skips = True, True
        self._failed = ""
        self._log: list[Happened] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._think, daemon=True)
        self._do: dict[str, Callable[[Mapping[str, Any]], None]] = {
            **{"play": self._play, "undo": self._undo, "new": self._new, "load": self._load},
            **{"advise": self._advise, "run": self._run, "skip": self._skip},
        }
        with self._changed:
            self._happened()
        self._thread.start()

    def close(self) -> None:
        """End the thread, once it has thought its thought."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def look(self, seen: int = 0, seconds: float = 0.0) -> Told:
        """Return what there is to see, as JSON types: newer than what was seen, or after a time."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != seen or self._closed, seconds)
            return self._told()

    def do(self, name: str, arguments: Mapping[str, Any]) -> Told:
        """Do something at the table; return what there is to see then.

        Args:
            name: "play" (`move`, and `events`, how many were seen), "undo" (`outcome`: of chance),
                "new" (`seats`, `board`, `seed`, `chance`), "load" (`record`), "advise", "run"
                (`on`: agents decide), "skip" (`on`: decisions without a choice are made).
            arguments: JSON types, from anywhere.

        Raises:
            ValueError: if it cannot be done; nothing has changed then.
        """
        check_choice("name", name, tuple(self._do))
        with self._changed:
            self._do[name](arguments)
            self._happened()
            return self._told()

    def record(self) -> str:
        """Return the record of the game, as a line of a file."""
        with self._changed:
            return self.session.record().to_json() + "\n"

    # What may be done

    def _play(self, arguments: Mapping[str, Any]) -> None:
        move = arguments.get("move")
        if not isinstance(move, str):
            raise TableError(f"move: expected a label, got {shown(move)}")
        if arguments.get("events", len(self._log)) != len(self._log):
            raise TableError("the game has gone on since: look again")
        self.session.play(move)

    def _undo(self, arguments: Mapping[str, Any]) -> None:
        session = self.session
        undone = session.undo_outcome() if arguments.get("outcome") else session.undo()
        if not undone:
            raise TableError("there is nothing to take back")

    def _new(self, arguments: Mapping[str, Any]) -> None:
        seats = arguments.get("seats", self.session.names)
        board, seed = arguments.get("board"), arguments.get("seed")
        if not isinstance(seats, Sequence) or isinstance(seats, str) or len(seats) != 2:
            raise TableError(f"seats: expected two, got {shown(seats)}")
        for seat in seats:
            self._check_allowed(seat)
        chance: Chance = "explicit" if arguments.get("chance") == "explicit" else "sampled"
        where = self.session.game.board if board is None else self._board_named(board)
        self._sit(Session(tuple(seats), where, seed, chance))

    def _load(self, arguments: Mapping[str, Any]) -> None:
        line = arguments.get("record")
        if not isinstance(line, str):
            raise TableError(f"record: expected a line of a record file, got {shown(line)}")
        record = read_line(line)
        seats = [name if name in self._allowed else HUMAN for name in record.players]
        self._sit(Session.resumed(record, seats))

    def _sit(self, session: Session) -> None:
        """Play another game from now on."""
        self.session, self._advice, self._asked = session, None, False
        self._log.clear()

    def _advise(self, arguments: Mapping[str, Any]) -> None:
        if self.session.game.player is None:
            raise TableError("nobody is to decide: advice is for decisions")
        self._asked = True

    def _run(self, arguments: Mapping[str, Any]) -> None:
        self._runs = bool(arguments.get("on"))

    def _skip(self, arguments: Mapping[str, Any]) -> None:
        self._skips = bool(arguments.get("on"))

    def _board_named(self, name: Any) -> BoardPool | Board:
        """Return a board that is no file, or the one that the user began with."""
        if name == self._first.name:
            return self._first
        known = name in built_in_boards() or (isinstance(name, str) and is_family(name))
        if not known:
            raise TableError(
                f"board: expected {', '.join(built_in_boards())} or one of the family, "
                f"got {shown(name)}: name a file with --board when you begin"
            )
        return BoardPool.load(name)

    def _check_allowed(self, seat: Any) -> None:
        if not isinstance(seat, str) or seat not in self._allowed:
            raise TableError(
                f"expected human or an agent of the list, got {shown(seat)}: name others with "
                "--against when you begin"
            )

    # What happens then

    def _happened(self) -> None:
        """Note that something has changed: whoever waits is told, and the record is written."""
        session = self.session
        while self._skips and session.waits_for == "human" and session.is_forced:
            session.play(session.game.legal_labels()[0])
        self._note_log()
        self.version += 1
        if self._file is not None:
            try:
                save([session.record()], self._file)
            except OSError as error:  # the game goes on, and whoever looks is told
                self._failed = f"not saved: {brief(str(error), 200)}"
        self._changed.notify_all()

    def _note_log(self) -> None:
        events = self.session.game.events()
        same = 0
        while same < min(len(events), len(self._log)) and self._log[same].event == events[same]:
            same += 1
        if same < len(self._log) or same < len(events):
            self._advice, self._asked = None, False
        self._log[same:] = self.session.happened(same)

    def _think(self) -> None:
        """Let agents decide and advise, until the table is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._has_work())
                if self._closed:
                    return
                if self._plays_itself():
                    self._changed.wait(self._pace)
                if not self._has_work():
                    continue
                version, note, think = self.version, *self._work()
            try:
                thought, failed = think(), ""
            except Exception as error:  # an agent's: whoever looks is told
                thought, failed = None, f"{type(error).__name__}: {brief(str(error), 200)}"
            with self._changed:
                if self.version == version:
                    self._failed = failed
                    if failed:
                        self._runs = self._asked = False
                    else:
                        note(thought)
                    self._happened()

    def _has_work(self) -> bool:
        return self._asked or (self._runs and self.session.waits_for == "agent")

    def _plays_itself(self) -> bool:
        return self._pace > 0 and HUMAN not in self.session.names

    def _work(self) -> tuple[Callable[[Any], None], Callable[[], Any]]:
        """Return what notes the next thought, and what thinks it."""
        if not self._asked:
            return self.session.play_for_agent, self.session.deciding()

        def note(advice: Advice) -> None:
            self._advice, self._asked = advice, False

        return note, self.session.advising(self._advisor)

    # What there is to see

    def _told(self) -> Told:
        session, game = self.session, self.session.game
        scene = session.scenes(len(self._log))[0]
        panels = {name: "".join(parts.values()) for name, parts in panels_of(scene).items()}
        return {
            "version": self.version,
            **{"waits_for": session.waits_for, "player": game.player, "story": story_of(scene)},
            **{"names": list(scene.names), "seats": list(session.names), "seed": session.seed},
            **{"board": game.board.name, "chance": game.chance, "panels": panels},
            "choices": self._choices(),
            "log": [[one.round, one.seat, one.sentence] for one in self._log],
            "points": [dict(points) for points in game.scores()],
            "faces": dict(zip(CHARACTERS, map(list, game.board.faces), strict=True)),
            "advice": None if self._advice is None else self._advice._asdict(),
            **{"advisor": self._advisor, "advises": self._asked},
            "thinks": session.waits_for == "agent" and self._runs,
            **{"runs": self._runs, "skips": self._skips, "failed": self._failed},
            "can_undo": session.can_undo,
            "levels": [list(level) for level in self._levels],
        }

    def _choices(self) -> list[Told]:
        game = self.session.game
        if self.session.waits_for == "human":
            labels = game.legal_labels()
            return [{"label": label, "words": self.session.meaning(label)} for label in labels]
        if self.session.waits_for == "chance":
            likely = sorted(game.outcomes(), key=lambda one: -one[1])[:_MOST_ODDS]
            return [{"label": label, "words": f"{odds:.1%}"} for label, odds in likely]
        return []
