"""A table at which a game is played: what all pages that look at it see, and what they may do.

Agents think in one thread, which does not hold the table meanwhile: whoever looks is answered at
once, and what was thought about a position that is gone is thrown away. Everything that happens
raises `version`; who has seen one waits for the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokaido_env.agent import Agent, as_agent
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import is_family
from tokaido_env.core.arguments import Chance, check_choice, repr_short, str_short
from tokaido_env.core.constants import CHARACTERS
from tokaido_env.record import Record, replay, save
from tokaido_env.render import icons
from tokaido_env.render.elements import glyph_at
from tokaido_env.render.scene import Scene, story_of
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review, review
from tokaido_env.web.board_form import board_form, corrected, described
from tokaido_env.web.game_session import HUMAN, Advice, Session
from tokaido_env.web.position_form import asked, completed, position_form
from tokaido_env.web.review_section import review_of

UNRATED = ("generalist",)  # agents that the ladder does not have

_PACE = 0.5  # seconds between two decisions of agents that play each other
_VALUES_BY = "champion"  # who judges chance in a review
_MOST_ODDS = 24  # outcomes of chance that are listed, the likeliest
_SIGNS = {**icons.WARES, **icons.ICONS}

Told = dict[str, Any]  # JSON types
Work = Literal["", "advise", "review"]


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


class LiveGame:
    """A game, and who looks at it.

    Args:
        session: to play. Its players, and `levels`, are who can be asked for later.
        file: of its record, written whenever something has happened; None: none.
        advisor: spec of the agent that advises, and judges decisions in a review.
        pace: seconds between two decisions of agents that play each other.

    Attributes:
        version: of what there is to see.
        closed: whether the table was taken away.
    """

    def __init__(
        self,
        session: Session,
        file: Path | None = None,
        advisor: str | Agent = "champion:sims=400",
        pace: float = _PACE,
    ) -> None:
        self.session, self._file, self._pace = session, file, pace
        self._boards = {session.game.board.name: session.game.board}  # that are told of, by name
        self._advisor = advisor if isinstance(advisor, str) else advisor.spec
        self._agents: dict[str, Agent] = {}  # that advise and review, by spec
        if not isinstance(advisor, str):
            self._agents[self._advisor] = advisor
        self.version = 1
        self._levels = levels()
        self._allowed = {HUMAN, *session.names, *(level.spec for level in self._levels)}
        self._asked: Work = ""
        self._advice: Advice | None = None
        self._review: Review | None = None
        self._known: set[str] = set()  # agents that have thought, and are compiled
        self.closed = False
        self._runs, self._skips = True, True
        self._failed = self._unsaved = ""
        self._scene: Scene | None = None  # the newest that there was to see
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._think, daemon=True)
        self._do: dict[str, Callable[[Mapping[str, Any]], None]] = {
            **{"play": self._play, "undo": self._undo, "resign": self._resign},
            **{"new": self._new, "load": self._load, "put": self._put, "board": self._correct},
            **{"advise": self._advise, "review": self._ask_review},
            **{"run": self._run, "skip": self._skip},
        }
        self._ask: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            **{"record": self._record, "at": self._at, "position": self._position},
            **{"board": self._board, "check": self._check},
        }
        with self._changed:
            self._happened()
        self._thread.start()

    def close(self) -> None:
        """End the thread, once it has thought its thought."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._thread.join()

    def look(self, seen: int = 0, seconds: float = 0.0) -> Told:
        """Return what there is to see, as JSON types: newer than what was seen, or after a time."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != seen or self.closed, seconds)
            return self._told

    def do(self, name: str, arguments: Mapping[str, Any]) -> Told:
        """Do something at the table; return what there is to see then.

        Args:
            name: "play" (`move`, and `events`, how many were seen), "undo", "resign", "new"
                (`seats`, `board`, `seed`, `chance`), "load" (`record`), "put" (`position`, as the
                form gives it), "board" (`data` and `compared`, as for `corrected`), "advise",
                "review", "run" (`on`: agents decide), "skip" (`on`: decisions without a choice
                are made).
            arguments: JSON types, from anywhere.

        Raises:
            ValueError: if it cannot be done; nothing has changed then.
        """
        check_choice("name", name, tuple(self._do))
        with self._changed:
            self._do[name](arguments)
            self._happened()
            return self._told

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return something of the table, as JSON types; nothing changes.

        Args:
            name: "record" (of the game, a line of a file), "at" (`event`: how it looked before
                it), "position" and "board" (the form of it, and what stands there), "check" (`data`
                and `compared`: what a corrected board comes to).
            arguments: JSON types, from anywhere.

        Raises:
            ValueError: if there is no such thing.
        """
        check_choice("name", name, tuple(self._ask))
        with self._changed:
            return self._ask[name](arguments)

    # What may be asked

    def _record(self, arguments: Mapping[str, Any]) -> str:
        return self.session.record().to_json() + "\n"

    def _at(self, arguments: Mapping[str, Any]) -> Told:
        event, last = arguments.get("event"), len(self.session.happened)
        if type(event) is not int or not 0 <= event <= last:
            raise ValueError(f"event: expected a number from 0 to {last}, got {repr_short(event)}")
        scene = self.session.scenes[event]
        return _picture(scene, story_of(scene))

    def _position(self, arguments: Mapping[str, Any]) -> Told:
        game = self.session.game
        names = self.session.scenes[-1].names
        return {"form": position_form(game.board, names), "data": asked(game.to_dict())}

    def _board(self, arguments: Mapping[str, Any]) -> Told:
        return board_form(self.session.game.board)

    def _check(self, arguments: Mapping[str, Any]) -> Told:
        first = self.session.game.board
        board = corrected(first, arguments.get("data"), arguments.get("compared"))
        return board_form(board) | described(first, board)

    # What may be done

    def _play(self, arguments: Mapping[str, Any]) -> None:
        move = arguments.get("move")
        if not isinstance(move, str):
            raise ValueError(f"move: expected a label, got {repr_short(move)}")
        events = len(self.session.happened)
        if arguments.get("events", events) != events:
            raise ValueError("the game has gone on since: look again")
        self.session.play(move)

    def _undo(self, arguments: Mapping[str, Any]) -> None:
        if not self.session.undo():
            raise ValueError("there is nothing to take back")

    def _resign(self, arguments: Mapping[str, Any]) -> None:
        self.session.resign()

    def _put(self, arguments: Mapping[str, Any]) -> None:
        self.session.put(completed(arguments.get("position")))

    def _correct(self, arguments: Mapping[str, Any]) -> None:
        first = self.session.game.board
        board = corrected(first, arguments.get("data"), arguments.get("compared"))
        self._boards[board.name] = board
        self.session.restart(board)
        self._forget()

    def _new(self, arguments: Mapping[str, Any]) -> None:
        seats = arguments.get("seats", self.session.names)
        board, seed = arguments.get("board"), arguments.get("seed")
        if not isinstance(seats, Sequence) or isinstance(seats, str) or len(seats) != 2:
            raise ValueError(f"seats: expected two, got {repr_short(seats)}")
        for seat in seats:
            if not isinstance(seat, str) or seat not in self._allowed:
                raise ValueError(
                    f"seats: expected human or a listed agent, got {repr_short(seat)}: start "
                    "tokaido play with --opponent to use another agent"
                )
        chance: Chance = "explicit" if arguments.get("chance") == "explicit" else "sampled"
        where = self.session.game.board if board is None else self._board_named(board)
        self._sit(Session(tuple(seats), where, seed, chance))

    def _load(self, arguments: Mapping[str, Any]) -> None:
        line = arguments.get("record")
        if not isinstance(line, str):
            raise ValueError(f"record: expected a line of a record file, got {repr_short(line)}")
        record = Record.from_json(line)
        seats = [name if name in self._allowed else HUMAN for name in record.players]
        self._sit(Session.resumed(record, seats, self._boards.get(record.board)))

    def _sit(self, session: Session) -> None:
        """Play another game from now on."""
        session.earlier = self.session.kept()
        self.session = session
        self._forget()

    def _advise(self, arguments: Mapping[str, Any]) -> None:
        if self.session.game.player is None:
            raise ValueError("nobody is to decide: advice is for decisions")
        self._asked = "advise"

    def _ask_review(self, arguments: Mapping[str, Any]) -> None:
        if not self.session.decisions:
            raise ValueError("nobody has decided anything yet: a review is of decisions")
        if HUMAN not in self.session.names and self.session.waits_for == "agent":
            self._runs = False  # it would have to wait until their game is over
        self._asked = "review"

    def _run(self, arguments: Mapping[str, Any]) -> None:
        self._runs = bool(arguments.get("on"))

    def _skip(self, arguments: Mapping[str, Any]) -> None:
        self._skips = bool(arguments.get("on"))

    def _board_named(self, name: Any) -> BoardPool | Board:
        """Return a board that is no file, or the one that the user began with."""
        if isinstance(name, str) and name in self._boards:
            return self._boards[name]
        known = name in built_in_boards() or (isinstance(name, str) and is_family(name))
        if not known:
            raise ValueError(
                f"board: expected {', '.join(built_in_boards())} or one of the family, "
                f"got {repr_short(name)}: name a file with --board when you begin"
            )
        return BoardPool.load(name)

    # What happens then

    def _happened(self) -> None:
        """Note that something has changed: whoever waits is told, and the record is written."""
        session = self.session
        while self._skips and session.waits_for == "human" and session.is_forced:
            session.play(session.game.legal_labels()[0])
        self._note_position()
        self.version += 1
        self._save()
        self._told = self._described()
        self._changed.notify_all()

    def _save(self) -> None:
        if self._file is None:
            return
        try:
            save(self.session.records(), self._file)
            self._unsaved = ""
        except OSError as error:  # the game goes on, and whoever looks is told
            self._unsaved = f"not saved: {str_short(str(error), 200)}"

    def _note_position(self) -> None:
        """Forget what was thought about another position, but not that a review was asked for."""
        scene = self.session.scenes[-1]
        if scene is not self._scene:
            reviews = self._asked == "review" and self.session.decisions > 0
            self._forget()
            self._asked = "review" if reviews else ""
        self._scene = scene

    def _forget(self) -> None:
        """Forget what was thought, and is to be, about a position that is gone."""
        self._advice, self._review, self._asked = None, None, ""

    def _think(self) -> None:
        """Let agents decide, advise and review, until the table is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.closed or self._has_work())
                if self.closed:
                    return
                if self._plays_itself():
                    self._changed.wait(self._pace)
                if not self._has_work():
                    continue
                version, who, (note, think) = self.version, self._thinker(), self._work()
            try:
                thought, failed = think(), ""
            except Exception as error:  # an agent's: whoever looks is told
                thought, failed = None, f"{type(error).__name__}: {str_short(str(error), 200)}"
            with self._changed:
                if self.version == version:
                    self._known.add(who)
                    self._failed = failed
                    if failed:
                        self._runs, self._asked = False, ""
                    else:
                        note(thought)
                    self._happened()

    def _has_work(self) -> bool:
        return bool(self._asked) or (self._runs and self.session.waits_for == "agent")

    def _plays_itself(self) -> bool:
        return not self._asked and self._pace > 0 and HUMAN not in self.session.names

    def _does(self) -> Work:
        """Return what is thought about next, "" for a decision: a review waits for agents."""
        decides = self._runs and self.session.waits_for == "agent"
        return "" if self._asked == "review" and decides else self._asked

    def _thinker(self) -> str:
        """Return who thinks next."""
        player = self.session.game.player
        return self._advisor if self._does() or player is None else self.session.names[player]

    def _work(self) -> tuple[Callable[[Any], None], Callable[[], Any]]:
        """Return what notes the next thought, and what thinks it."""
        does = self._does()
        if does == "advise":
            return self._note_advice, self.session.advising(self._agent(self._advisor))
        if does == "review":
            played = replay(self.session.record(), self.session.game.board)
            judge, values_by = self._agent(self._advisor), self._agent(_VALUES_BY)
            return self._note_review, lambda: review(played, judge, values_by)
        return self.session.play_for_agent, self.session.deciding()

    def _agent(self, spec: str) -> Agent:
        if spec not in self._agents:
            self._agents[spec] = as_agent(spec)
        return self._agents[spec]

    def _note_advice(self, advice: Advice) -> None:
        self._advice, self._asked = advice, ""

    def _note_review(self, found: Review) -> None:
        self._review, self._asked = found, ""

    # What there is to see

    def _described(self) -> Told:
        session, game, scene = self.session, self.session.game, self.session.scenes[-1]
        sentences = [one.sentence for one in session.happened]
        thinks = self._has_work()
        return _picture(scene, session.story()) | {
            **{"version": self.version, "waits_for": session.waits_for, "player": game.player},
            **{"names": list(scene.names), "seats": list(session.names), "seed": game.seed},
            **{"board": game.board.name, "chance": game.chance, "rolls": game.phase.name == "ROLL"},
            **{"choices": _choices(session), "odds": _odds(scene)},
            "log": [[one.round, one.seat, one.sentence] for one in session.happened],
            "points": [dict(points) for points in game.scores()],
            "advice": None if self._advice is None else _advice_of(self._advice),
            "review": None
            if self._review is None
            else review_of(self._review, scene.names, sentences),
            **{"advisor": self._advisor, "asked": self._asked},
            **{"thinks": thinks, "does": self._does()},
            "thinker": self._thinker() if thinks else "",
            "compiles": thinks and self._thinker() not in self._known,
            **{"runs": self._runs, "skips": self._skips, "failed": self._failed or self._unsaved},
            **{"can_undo": session.can_undo, "can_review": session.decisions > 0},
            "levels": [list(level) for level in self._levels],
        }


def _picture(scene: Scene, story: str) -> Told:
    """Return how a position looks: the markup of each panel, and what happens there."""
    panels = {name: "".join(parts.values()) for name, parts in panels_of(scene).items()}
    return {"panels": panels, "story": story}


def _choices(session: Session) -> list[Told]:
    """Return what a person may choose, or what chance may bring a person tells of."""
    game = session.game
    if session.waits_for == "human":
        labels = game.legal_labels()
        return [{"label": label, "words": session.meaning(label)} for label in labels]
    if session.waits_for != "chance":
        return []
    likely = sorted(game.outcomes(), key=lambda one: -one[1])[:_MOST_ODDS]
    return [{"label": one, "words": f"{odds:.1%}", "sign": _sign(one)} for one, odds in likely]


def _sign(label: str) -> str:
    """Return the sign of the ware or the icon that an outcome brings, as markup; "": none."""
    thing = label.partition(":")[2].rpartition("=")[2].partition("/")[0]
    return glyph_at(_SIGNS[thing], 24) if thing in _SIGNS else ""


def _odds(scene: Scene) -> list[Told]:
    """Return the odds of each die, of the next ware and of each player's next painting."""
    counts = {
        f"{character}'s die": {str(face): faces.count(face) for face in sorted(set(faces))}
        for character, faces in zip(CHARACTERS, scene.board.faces, strict=True)
    }
    counts["the next ware of the bag"] = scene.position["bag"]
    for seat, player in enumerate(scene.position["players"]):
        counts[f"player_{seat}'s next painting"] = player["hidden"]
    return [
        {
            "title": title,
            "shares": [[thing, n / sum(of.values())] for thing, n in of.items() if n],
        }
        for title, of in counts.items()
    ]


def _advice_of(advice: Advice) -> Told:
    moves = [{**move._asdict(), "words": move.words()} for move in advice.moves]
    return {"moves": moves, "wins": advice.wins}
