"""A game on the local page or in a notebook: snapshots, commands, queries, and agents that think.

Agents think in a separate thread without holding the lock, so snapshots return at once. A result
for a position that has changed meanwhile is dropped. Every change raises `version`; a client that
has the current version waits for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.registry import as_agent, policy_path_of, runs_user_code
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import is_family
from tokaido_env.core.arguments import Chance, check_choice, repr_short, str_short
from tokaido_env.core.copying import NotCopied
from tokaido_env.game import Game
from tokaido_env.record import Record, replay, save
from tokaido_env.render.scene import Scene
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review, review
from tokaido_env.web import view_json
from tokaido_env.web.board_form import board_changes, board_form, corrected_board
from tokaido_env.web.exercises import exercises_of
from tokaido_env.web.frames import frame_of, game_of
from tokaido_env.web.game_session import HUMAN, Advice, Session
from tokaido_env.web.opponents import opponents
from tokaido_env.web.position_form import JsonDict, form_data, position_form, position_from_form
from tokaido_env.web.previews import previews_of

_ANIMATED = 16  # newest events of a snapshot with their motions
_PACE = 0.5  # seconds between decisions when two agents play each other
_CHANCE_JUDGE = "champion"  # judges chance in a review

Arguments = Mapping[str, Any]
Task = Literal["", "advise", "review", "coach"]


class LiveGame(NotCopied):
    """A session that several clients watch and control.

    Args:
        session: the game. Clients may choose among its players, `opponents()` and `HUMAN` later.
        file: for the records, written after every change; None writes none.
        advisor: an agent or its spec; it advises, and judges decisions in a review.
        pace: seconds between decisions when two agents play each other.
        is_chosen: whether a person chose this game; otherwise pages first offer a choice.

    Attributes:
        version: number of changes so far; clients wait for the next.
        closed: whether `close` was called.
    """

    copy_remedy = "copy its `session`"

    def __init__(
        self,
        session: Session,
        file: Path | None = None,
        advisor: str | Agent = "champion:sims=400",
        pace: float = _PACE,
        is_chosen: bool = True,
    ) -> None:
        self.session, self._file, self._pace = session, file, pace
        self._is_chosen = is_chosen
        self._boards = {session.game.board.name: session.game.board}  # not built in, by name
        self._judge = advisor if isinstance(advisor, str) else as_agent(advisor)
        self._advisor = self._judge if isinstance(self._judge, str) else self._judge.spec
        self._agents: dict[tuple[str | Agent, bool], Agent] = {}  # those of reviews apart
        # Objects by name; a listed agent of the same name is left out.
        self._objects: dict[Any, Any] = {a.spec: a for a in session.agents if a and not a.source}
        self.version = 1
        self._opponents = [one for one in opponents() if one["spec"] not in self._objects]
        self._allowed = {HUMAN, *session.names, *(one["spec"] for one in self._opponents)}
        self._requested: Task = ""
        self._advice: Advice | None = None
        self._review: Review | None = None
        self._exercises: list[JsonDict] = []  # of the review
        self._was_asked = False  # for the review; otherwise it follows the end of a game
        self._coach: float | None = None  # the loss at which it objects
        self._checked = ""  # the action that the coach checks
        self._objection: JsonDict | None = None
        self._compiled: set[str] = set()  # agents that have decided once
        self.closed = False
        self._agents_running, self._plays_forced = True, True
        self._agent_error = self._save_error = ""
        self._scene: tuple[Scene, int | None] | None = None  # of the last snapshot; who resigned
        self._changed = threading.Condition()
        thread = partial(threading.Thread, target=self._run_tasks, daemon=True)
        self._threads = thread(args=(False,)), thread(args=(True,))  # a review delays no game
        with self._changed:
            self._publish()
        for one in self._threads:
            one.start()

    def close(self) -> None:
        """End the thread, after its current task."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

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
            name: "play" (`move`, a label; `log_length`, the client's; `anyway`, against the
                coach), "undo", "resign", "coach" (`loss` at which it objects, or null),
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
            name: "record" (a line of a record file), "frame" (`at`: the position after as many
                events, as a frame and as the form's data), "exercise" (its `board`, `board_hash`
                and `position`: a frame with its actions), "map" (of a `board`), "position_form" and
                "board_form" (fields and data), "check_board" (`data` and `compared`: the corrected
                board and its changes).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the arguments are invalid.
        """
        check_choice("name", name, tuple(_QUERIES))
        with self._changed:
            return _QUERIES[name](self, arguments)

    # Queries

    def _query_record(self, arguments: Arguments) -> str:
        return self.session.record().to_json() + "\n"

    def _query_frame(self, arguments: Arguments) -> JsonDict:
        at, last = arguments.get("at"), len(self.session.log)
        if type(at) is not int or not 0 <= at <= last:
            raise ValueError(f"at: expected a number from 0 to {last}, got {repr_short(at)}")
        scene = self.session.scenes[at]
        return frame_of(scene) | {"position": form_data(scene.position)}

    def _query_exercise(self, arguments: Arguments) -> JsonDict:
        board = self._board_named(arguments.get("board"))
        game = Game.from_dict(position_from_form(arguments.get("position")), board=board)
        if game.board.hash != arguments.get("board_hash"):
            raise ValueError(f"board: {game.board.name!r} has changed since this exercise")
        previews = {"choices": previews_of(game.board, game.states), "player": game.player}
        return frame_of(game.scene()) | previews

    def _query_map(self, arguments: Arguments) -> str:
        game = Game(self._board_named(arguments.get("board")), chance="explicit")
        return "".join(panels_of(game.scene())["island"].values())

    def _query_position_form(self, arguments: Arguments) -> JsonDict:
        game = self.session.game
        form = position_form(game.board, self.session.scenes[-1].names)
        return {"form": form, "data": form_data(game.to_dict())}

    def _query_board_form(self, arguments: Arguments) -> JsonDict:
        return board_form(self.session.game.board)

    def _query_check_board(self, arguments: Arguments) -> JsonDict:
        board = self._corrected_board(arguments)
        return board_form(board) | board_changes(self.session.game.board, board)

    # Commands

    def _command_play(self, arguments: Arguments) -> None:
        move = arguments.get("move")
        if not isinstance(move, str):
            raise ValueError(f"move: expected a label, got {repr_short(move)}")
        length = len(self.session.log)
        if arguments.get("log_length", length) != length:
            raise ValueError("move: the game has changed in the meantime; choose again")
        session, self._is_chosen, self._objection = self.session, True, None
        checks = self._coach is not None and session.waits_for == "human" and not session.is_forced
        if checks and not arguments.get("anyway") and move in session.game.legal_labels():
            self._requested, self._checked = "coach", move
        else:
            session.play(move)

    def _command_coach(self, arguments: Arguments) -> None:
        loss = arguments.get("loss")
        if loss is not None and not (isinstance(loss, int | float) and 0 < loss < 1):
            raise ValueError(f"loss: expected a number between 0 and 1, got {repr_short(loss)}")
        self._coach, self._objection = loss, None

    def _command_undo(self, arguments: Arguments) -> None:
        if not self.session.undo():
            raise ValueError("undo: there is no decision to undo")

    def _command_resign(self, arguments: Arguments) -> None:
        self.session.resign()

    def _command_set_position(self, arguments: Arguments) -> None:
        self.session.set_position(position_from_form(arguments.get("position")))

    def _corrected_board(self, arguments: Arguments) -> Board:
        board = self.session.game.board
        return corrected_board(board, arguments.get("data"), arguments.get("compared"))

    def _command_set_board(self, arguments: Arguments) -> None:
        board = self._corrected_board(arguments)
        self._boards[board.name] = board
        self.session.restart(board)
        self._clear_results()

    def _command_new_game(self, arguments: Arguments) -> None:
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
        players: list[Any] = [self._objects.get(seat, seat) for seat in seats]
        self._replace_session(Session(players, board, seed, chance))

    def _command_load_record(self, arguments: Arguments) -> None:
        line = arguments.get("record")
        if not isinstance(line, str):
            raise ValueError(f"record: expected a line of a record file, got {repr_short(line)}")
        record = Record.from_json(line)
        self._allowed.update(filter(_is_safe, record.players))
        allowed = [name if name in self._allowed else HUMAN for name in record.players]
        seats = [self._objects.get(name, name) for name in allowed]
        self._replace_session(Session.from_record(record, seats, self._boards.get(record.board)))

    def _replace_session(self, session: Session) -> None:
        session.earlier_records = self.session.records_to_keep()
        self.session, self._is_chosen = session, True
        self._clear_results()

    def _command_advise(self, arguments: Arguments) -> None:
        if self.session.game.player is None:
            raise ValueError("advise: no player is to move")
        self._requested = "advise"

    def _command_review(self, arguments: Arguments) -> None:
        if not self.session.decisions:
            raise ValueError("review: the game has no decisions yet")
        if HUMAN not in self.session.names and self.session.waits_for == "agent":
            self._agents_running = False  # or the review would wait until their game is over
        self._requested, self._was_asked = "review", True

    def _command_run_agents(self, arguments: Arguments) -> None:
        self._agents_running = bool(arguments.get("on"))

    def _command_play_forced(self, arguments: Arguments) -> None:
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
        session, scene = self.session, (self.session.scenes[-1], self.session.resigned)
        if self._scene is None or scene[0] is not self._scene[0] or scene[1:] != self._scene[1:]:
            was_asked = self._requested == "review" and self._was_asked
            self._clear_results()
            is_over = session.waits_for == "nobody" and HUMAN in session.names
            reviews = (was_asked or is_over) and session.decisions > 0
            self._requested, self._was_asked = "review" if reviews else "", was_asked
        self._scene = scene

    def _clear_results(self) -> None:
        self._advice, self._review, self._objection = None, None, None
        self._requested, self._exercises = "", []

    # Agents

    def _run_tasks(self, reviews: bool) -> None:
        """Run reviews, or decisions and advice, until the game is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.closed or self._has_task(reviews))
                if self.closed:
                    return
                if not self._requested and self._pace > 0 and HUMAN not in self.session.names:
                    self._changed.wait(self._pace)
                if not self._has_task(reviews):
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
                    if error:
                        self._fail(task, error)
                    else:
                        self._agent_error = ""
                        self._accept(task, result)
                    self._publish()

    def _fail(self, task: Task, error: str) -> None:
        """Show the error of a task, unless nobody asked for it; without a coach, play the move."""
        self._requested = ""
        if task == "review" and not self._was_asked:
            return
        self._agent_error = error
        if task == "coach":
            self._coach = None
            self.session.play(self._checked)
        elif not task:
            self._agents_running = False

    def _agent_decides(self) -> bool:
        return self._agents_running and self.session.waits_for == "agent"

    def _has_task(self, reviews: bool | None = None) -> bool:
        """Return whether there is a task; `reviews` restricts it to reviews or to others."""
        is_due = bool(self._requested) or self._agent_decides()
        return is_due and reviews in (None, self._task() == "review")

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
            return self.session.advice_task(self._agent(self._judge))
        if task == "review":
            played = replay(self.session.record(), self.session.game.board)
            judge, chance_judge = self._agent(self._judge, True), self._agent(_CHANCE_JUDGE, True)
            humans, resigned = self.session.humans, self.session.resigned

            def reviewed() -> tuple[Review, list[JsonDict]]:
                found = review(played, judge, chance_judge)
                found = found if resigned is None else found.with_forfeit(resigned)
                return found, exercises_of(found, judge, humans)

            return reviewed
        if task == "coach":
            return self.session.check_task(self._agent(self._judge), self._checked)
        return self.session.agent_task()

    def _accept(self, task: Task, result: Any) -> None:
        if task == "advise":
            self._advice, self._requested = result, ""
        elif task == "review":
            (self._review, self._exercises), self._requested = result, ""
        elif task == "coach":
            self._requested = ""
            if result["loss"] > max(result["error"], self._coach or 1):
                self._objection = result
            else:
                self.session.play(self._checked)
        else:
            self.session.apply(result)

    def _agent(self, agent: str | Agent, reviews: bool = False) -> Agent:
        if (agent, reviews) not in self._agents:
            self._agents[agent, reviews] = as_agent(agent)
        return self._agents[agent, reviews]

    # The snapshot

    def _new_snapshot(self) -> JsonDict:
        session, game, scene = self.session, self.session.game, self.session.scenes[-1]
        thinking = self._has_task()
        agent = self._task_agent() if thinking else ""
        shown = game_of(
            *(session.scenes, session.log),
            review=self._review,
            players=session.humans,
            animated=_ANIMATED,
        )
        return (
            frame_of(scene, view_json.status_of(session))
            | shown
            | {
                "version": self.version,
                "waits_for": session.waits_for,
                "player": game.player,
                "seats": list(session.names),
                "seed": game.seed,
                "board": game.board.name,
                "chance": game.chance,
                "enters_roll": session.waits_for == "chance" and game.phase.name == "ROLL",
                "choices": view_json.choices(session),
                "probabilities": view_json.probabilities(scene),
                "winner": game.winner() if session.resigned is None else 1 - session.resigned,
                "advice": None if self._advice is None else view_json.advice_json(self._advice),
                "exercises": self._exercises,
                "coach": self._coach,
                "objection": self._objection,
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
                "is_chosen": self._is_chosen,
                "opponents": self._opponents,
                "boards": list(dict.fromkeys([*built_in_boards(), *self._boards])),
            }
        )


def _methods(prefix: str) -> dict[str, Callable[[LiveGame, Arguments], Any]]:
    """Return the methods whose names begin with a prefix, by the rest of their names."""
    found = (one for one in vars(LiveGame).items() if one[0].startswith(prefix))
    return {name.removeprefix(prefix): method for name, method in found}


_COMMANDS, _QUERIES = _methods("_command_"), _methods("_query_")


def _is_safe(spec: str) -> bool:
    """Return whether a spec names an agent of this package, without a file or other code."""
    try:
        return policy_path_of(spec) is None and not runs_user_code(spec)
    except AgentError:
        return False
