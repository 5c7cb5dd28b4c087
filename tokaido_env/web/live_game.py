"""A game on the local page or in a notebook: snapshots, commands, queries, and agents that think.

Agents think in a separate thread without holding the lock, so snapshots return at once. A result
for a position that has changed meanwhile is dropped. Every change raises `version`; a client that
has the current version waits for the next one.
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
from tokaido_env.core.copying import NotCopied
from tokaido_env.record import Record, replay, save
from tokaido_env.render import icons
from tokaido_env.render.elements import glyph_at
from tokaido_env.render.scene import Scene, status_text
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review, review
from tokaido_env.web.board_form import board_changes, board_form, corrected_board
from tokaido_env.web.game_session import HUMAN, Advice, Session
from tokaido_env.web.position_form import JsonDict, form_data, position_form, position_from_form
from tokaido_env.web.review_section import review_json

UNRATED = ("generalist",)
"""Agents that the ladder does not contain."""

_PACE = 0.5  # seconds between decisions when two agents play each other
_CHANCE_JUDGE = "champion"  # judges chance in a review
_MAX_OUTCOMES = 24  # listed chance outcomes, the likeliest first
_ICONS = {**icons.WARES, **icons.ICONS}

Arguments = Mapping[str, Any]
Task = Literal["", "advise", "review"]


class Opponent(NamedTuple):
    """An agent to play against, with its Elo on the default board's ladder, if it has one."""

    spec: str
    elo: int | None


def opponents() -> list[Opponent]:
    """Return the agents to play against: rated ones, weakest first, then those without a rating."""
    pool = BoardPool.load()
    ratings = Ladder.load(ladder_for(pool), pool).agents  # the best first
    rated = [Opponent(rating.agent, round(rating.elo)) for rating in reversed(ratings)]
    return [*rated, *(Opponent(spec, None) for spec in UNRATED)]


class LiveGame(NotCopied):
    """A session that several clients watch and control.

    Args:
        session: the game. Clients may choose among its players, `opponents()` and `HUMAN` later.
        file: for the records, written after every change; None writes none.
        advisor: an agent or its spec; it advises, and judges decisions in a review.
        pace: seconds between decisions when two agents play each other.

    Attributes:
        version: of the snapshot.
        closed: whether `close` was called.
    """

    copy_remedy = "copy its `session`"

    def __init__(
        self,
        session: Session,
        file: Path | None = None,
        advisor: str | Agent = "champion:sims=400",
        pace: float = _PACE,
    ) -> None:
        self.session, self._file, self._pace = session, file, pace
        self._boards = {session.game.board.name: session.game.board}  # not built in, by name
        self._advisor = advisor if isinstance(advisor, str) else advisor.spec
        self._agents: dict[str, Agent] = {}  # advisors and judges, by spec
        if not isinstance(advisor, str):
            self._agents[self._advisor] = advisor
        self.version = 1
        self._opponents = opponents()
        self._allowed = {HUMAN, *session.names, *(one.spec for one in self._opponents)}
        self._requested: Task = ""
        self._advice: Advice | None = None
        self._review: Review | None = None
        self._compiled: set[str] = set()  # agents that have decided once
        self.closed = False
        self._agents_running, self._plays_forced = True, True
        self._agent_error = self._save_error = ""
        self._scene: Scene | None = None  # of the last snapshot
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run_tasks, daemon=True)
        with self._changed:
            self._publish()
        self._thread.start()

    def close(self) -> None:
        """End the thread, after its current task."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._thread.join()

    def snapshot(self, known_version: int = 0, timeout: float = 0.0) -> JsonDict:
        """Return the state of the page as JSON types.

        Args:
            known_version: the client's version; the call waits for another one.
            timeout: the longest wait, in seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.version != known_version or self.closed, timeout)
            return self._snapshot

    def command(self, name: str, arguments: Arguments) -> JsonDict:
        """Change the game; return the new snapshot.

        Args:
            name: "play" (`move`, a label; `log_length`, the client's), "undo", "resign",
                "new_game" (`seats`, `board`, `seed`, `chance`), "load_record" (`record`, a line),
                "set_position" (`position`, the form's data), "set_board" (`data` and `compared`, as
                for `corrected_board`), "advise", "review", "run_agents" (`on`), "play_forced"
                (`on`: play forced moves automatically).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the command is not possible; the game is unchanged then.
        """
        check_choice("name", name, tuple(_COMMANDS))
        with self._changed:
            _COMMANDS[name](self, arguments)
            self._publish()
            return self._snapshot

    def query(self, name: str, arguments: Arguments) -> Any:
        """Return information about the game as JSON types, without changing it.

        Args:
            name: "record" (a line of a record file), "picture" (`event`: the position before that
                event, drawn and as the form's data), "position_form" and "board_form" (fields and
                data), "check_board" (`data` and `compared`: the corrected board and its changes).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the arguments are invalid.
        """
        check_choice("name", name, tuple(_QUERIES))
        with self._changed:
            return _QUERIES[name](self, arguments)

    # Queries

    def _record(self, arguments: Arguments) -> str:
        return self.session.record().to_json() + "\n"

    def _past_picture(self, arguments: Arguments) -> JsonDict:
        event, last = arguments.get("event"), len(self.session.log)
        if type(event) is not int or not 0 <= event <= last:
            raise ValueError(f"event: expected a number from 0 to {last}, got {repr_short(event)}")
        scene = self.session.scenes[event]
        return _picture(scene, status_text(scene)) | {"position": form_data(scene.position)}

    def _position_form(self, arguments: Arguments) -> JsonDict:
        game = self.session.game
        form = position_form(game.board, self.session.scenes[-1].names)
        return {"form": form, "data": form_data(game.to_dict())}

    def _board_form(self, arguments: Arguments) -> JsonDict:
        return board_form(self.session.game.board)

    def _check_board(self, arguments: Arguments) -> JsonDict:
        board = self._corrected_board(arguments)
        return board_form(board) | board_changes(self.session.game.board, board)

    # Commands

    def _play(self, arguments: Arguments) -> None:
        move = arguments.get("move")
        if not isinstance(move, str):
            raise ValueError(f"move: expected a label, got {repr_short(move)}")
        length = len(self.session.log)
        if arguments.get("log_length", length) != length:
            raise ValueError("move: the game has changed in the meantime; choose again")
        self.session.play(move)

    def _undo(self, arguments: Arguments) -> None:
        if not self.session.undo():
            raise ValueError("undo: there is no decision to undo")

    def _resign(self, arguments: Arguments) -> None:
        self.session.resign()

    def _set_position(self, arguments: Arguments) -> None:
        self.session.set_position(position_from_form(arguments.get("position")))

    def _corrected_board(self, arguments: Arguments) -> Board:
        board = self.session.game.board
        return corrected_board(board, arguments.get("data"), arguments.get("compared"))

    def _set_board(self, arguments: Arguments) -> None:
        board = self._corrected_board(arguments)
        self._boards[board.name] = board
        self.session.restart(board)
        self._clear_results()

    def _new_game(self, arguments: Arguments) -> None:
        seats = arguments.get("seats", self.session.names)
        name, seed = arguments.get("board"), arguments.get("seed")
        if not isinstance(seats, Sequence) or isinstance(seats, str) or len(seats) != 2:
            raise ValueError(f"seats: expected two, got {repr_short(seats)}")
        for seat in seats:
            if not isinstance(seat, str) or seat not in self._allowed:
                raise ValueError(
                    f"seats: expected human or a listed agent, got {repr_short(seat)}: start "
                    "tokaido play with --opponent to use another agent"
                )
        chance: Chance = "explicit" if arguments.get("chance") == "explicit" else "sampled"
        board = self.session.game.board if name is None else self._board_named(name)
        self._replace_session(Session(tuple(seats), board, seed, chance))

    def _load_record(self, arguments: Arguments) -> None:
        line = arguments.get("record")
        if not isinstance(line, str):
            raise ValueError(f"record: expected a line of a record file, got {repr_short(line)}")
        record = Record.from_json(line)
        seats = [name if name in self._allowed else HUMAN for name in record.players]
        self._replace_session(Session.from_record(record, seats, self._boards.get(record.board)))

    def _replace_session(self, session: Session) -> None:
        session.earlier_records = self.session.records_to_keep()
        self.session = session
        self._clear_results()

    def _request_advice(self, arguments: Arguments) -> None:
        if self.session.game.player is None:
            raise ValueError("advise: no player is to move")
        self._requested = "advise"

    def _request_review(self, arguments: Arguments) -> None:
        if not self.session.decisions:
            raise ValueError("review: the game has no decisions yet")
        if HUMAN not in self.session.names and self.session.waits_for == "agent":
            self._agents_running = False  # or the review would wait until their game is over
        self._requested = "review"

    def _run_agents(self, arguments: Arguments) -> None:
        self._agents_running = bool(arguments.get("on"))

    def _play_forced(self, arguments: Arguments) -> None:
        self._plays_forced = bool(arguments.get("on"))

    def _board_named(self, name: Any) -> BoardPool | Board:
        """Return a board that needs no file, or one that this game has used."""
        if isinstance(name, str) and name in self._boards:
            return self._boards[name]
        known = name in built_in_boards() or (isinstance(name, str) and is_family(name))
        if not known:
            raise ValueError(
                f"board: expected {', '.join(built_in_boards())} or family:NUMBER, got "
                f"{repr_short(name)}: start tokaido play with --board to use a board file"
            )
        return BoardPool.load(name)

    # Changes

    def _publish(self) -> None:
        """Play forced moves, save the records and wake the clients with a new snapshot."""
        session = self.session
        while self._plays_forced and session.waits_for == "human" and session.is_forced:
            session.play(session.game.legal_labels()[0])
        self._drop_outdated_results()
        self.version += 1
        self._save()
        self._snapshot = self._new_snapshot()
        self._changed.notify_all()

    def _save(self) -> None:
        if self._file is None:
            return
        try:
            save(self.session.records(), self._file)
            self._save_error = ""
        except OSError as error:  # the game continues, and the page shows the error
            self._save_error = f"not saved: {str_short(str(error), 200)}"

    def _drop_outdated_results(self) -> None:
        """Drop results for another position, but keep a request for a review."""
        scene = self.session.scenes[-1]
        if scene is not self._scene:
            reviews = self._requested == "review" and self.session.decisions > 0
            self._clear_results()
            self._requested = "review" if reviews else ""
        self._scene = scene

    def _clear_results(self) -> None:
        self._advice, self._review, self._requested = None, None, ""

    # Agents

    def _run_tasks(self) -> None:
        """Run decisions, advice and reviews until the game is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.closed or self._has_task())
                if self.closed:
                    return
                if not self._requested and self._pace > 0 and HUMAN not in self.session.names:
                    self._changed.wait(self._pace)
                if not self._has_task():
                    continue
                version, agent, task = self.version, self._task_agent(), self._task()
                compute = self._function_of(task)
            try:
                result, error = compute(), ""
            except Exception as raised:  # by an agent: the page shows it
                result, error = None, f"{type(raised).__name__}: {str_short(str(raised), 200)}"
            with self._changed:
                if self.version == version:
                    self._compiled.add(agent)
                    self._agent_error = error
                    if error:
                        self._agents_running, self._requested = False, ""
                    else:
                        self._accept(task, result)
                    self._publish()

    def _agent_decides(self) -> bool:
        return self._agents_running and self.session.waits_for == "agent"

    def _has_task(self) -> bool:
        return bool(self._requested) or self._agent_decides()

    def _task(self) -> Task:
        """Return the next task, "" for a decision; a review waits for an agent's decision."""
        return "" if self._requested == "review" and self._agent_decides() else self._requested

    def _task_agent(self) -> str:
        """Return the spec of the agent that does the next task."""
        player = self.session.game.player
        return self._advisor if self._task() or player is None else self.session.names[player]

    def _function_of(self, task: Task) -> Callable[[], Any]:
        """Return a function that computes the result of a task without reading the session."""
        if task == "advise":
            return self.session.advice_task(self._agent(self._advisor))
        if task == "review":
            played = replay(self.session.record(), self.session.game.board)
            judge, chance_judge = self._agent(self._advisor), self._agent(_CHANCE_JUDGE)
            return lambda: review(played, judge, chance_judge)
        return self.session.agent_task()

    def _accept(self, task: Task, result: Any) -> None:
        if task == "advise":
            self._advice, self._requested = result, ""
        elif task == "review":
            self._review, self._requested = result, ""
        else:
            self.session.apply(result)

    def _agent(self, spec: str) -> Agent:
        if spec not in self._agents:
            self._agents[spec] = as_agent(spec)
        return self._agents[spec]

    # The snapshot

    def _new_snapshot(self) -> JsonDict:
        session, game, scene = self.session, self.session.game, self.session.scenes[-1]
        sentences = [entry.sentence for entry in session.log]
        thinking = self._has_task()
        agent = self._task_agent() if thinking else ""
        found = self._review
        return _picture(scene, session.status_text()) | {
            "version": self.version,
            "waits_for": session.waits_for,
            "player": game.player,
            "names": list(scene.names),
            "seats": list(session.names),
            "seed": game.seed,
            "board": game.board.name,
            "chance": game.chance,
            "enters_roll": session.waits_for == "chance" and game.phase.name == "ROLL",
            "choices": _choices(session),
            "probabilities": _probabilities(scene),
            "log": [[entry.round, entry.seat, entry.sentence] for entry in session.log],
            "points": [dict(points) for points in game.scores()],
            "advice": None if self._advice is None else _advice_json(self._advice),
            "review": None if found is None else review_json(found, scene.names, sentences),
            "advisor": self._advisor,
            "requested": self._requested,
            "thinking": thinking,
            "task": self._task(),
            "task_agent": agent,
            "compiling": thinking and agent not in self._compiled,
            "agents_running": self._agents_running,
            "plays_forced": self._plays_forced,
            "error": self._agent_error or self._save_error,
            "can_undo": session.can_undo,
            "can_review": session.decisions > 0,
            "opponents": [list(one) for one in self._opponents],
        }


_COMMANDS: dict[str, Callable[[LiveGame, Arguments], None]] = {
    "play": LiveGame._play,
    "undo": LiveGame._undo,
    "resign": LiveGame._resign,
    "new_game": LiveGame._new_game,
    "load_record": LiveGame._load_record,
    "set_position": LiveGame._set_position,
    "set_board": LiveGame._set_board,
    "advise": LiveGame._request_advice,
    "review": LiveGame._request_review,
    "run_agents": LiveGame._run_agents,
    "play_forced": LiveGame._play_forced,
}
_QUERIES: dict[str, Callable[[LiveGame, Arguments], Any]] = {
    "record": LiveGame._record,
    "picture": LiveGame._past_picture,
    "position_form": LiveGame._position_form,
    "board_form": LiveGame._board_form,
    "check_board": LiveGame._check_board,
}


def _picture(scene: Scene, status: str) -> JsonDict:
    panels = {name: "".join(parts.values()) for name, parts in panels_of(scene).items()}
    return {"panels": panels, "status": status}


def _choices(session: Session) -> list[JsonDict]:
    """Return a person's legal actions, or the chance outcomes that a person may enter."""
    game = session.game
    if session.waits_for == "human":
        labels = game.legal_labels()
        return [{"label": label, "text": session.describe_action(label)} for label in labels]
    if session.waits_for != "chance":
        return []
    likeliest = sorted(game.outcomes(), key=lambda outcome: -outcome[1])[:_MAX_OUTCOMES]
    return [
        {"label": label, "text": f"{100 * probability:.1f} %", "icon": _icon(label)}
        for label, probability in likeliest
    ]


def _icon(label: str) -> str:
    """Return the icon of the ware or painting of an outcome as markup, or ""."""
    kind = label.partition(":")[2].rpartition("=")[2].partition("/")[0]
    return glyph_at(_ICONS[kind], 24) if kind in _ICONS else ""


def _probabilities(scene: Scene) -> list[JsonDict]:
    """Return the outcome probabilities of each die, the bag and each player's next painting."""
    counts = {
        f"{character}'s die": {str(face): faces.count(face) for face in sorted(set(faces))}
        for character, faces in zip(CHARACTERS, scene.board.faces, strict=True)
    }
    counts["next ware from the bag"] = scene.position["bag"]
    for seat, player in enumerate(scene.position["players"]):
        counts[f"player_{seat}'s next painting"] = player["hidden"]
    return [
        {"title": title, "outcomes": [[key, n / sum(of.values())] for key, n in of.items() if n]}
        for title, of in counts.items()
    ]


def _advice_json(advice: Advice) -> JsonDict:
    moves = [{**move._asdict(), "text": move.describe()} for move in advice.moves]
    return {"moves": moves, "win_probability": advice.win_probability}
