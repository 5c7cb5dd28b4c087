"""A game on the local page or in a notebook: its state, commands, queries, and agents that think.

Each agent of a game thinks in a thread of its own, without the lock, so neither a request nor
another game waits for it. A result is dropped if its position or game has changed meanwhile. Each
change publishes one new state.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.core.arguments import str_short
from tokaido_env.record import Record
from tokaido_env.render.svg import panels_of
from tokaido_env.web.advice import failure_text
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import Session
from tokaido_env.web.jobs import Job, Jobs, Task
from tokaido_env.web.offers import Offers
from tokaido_env.web.page_state import PageState, page_state

Arguments = Mapping[str, Any]


class LiveGame:
    """A session that several clients watch and control.

    Args:
        session: the game. Clients may choose other players later: see `Offers`.
        file: to which every change is saved; None saves nothing.
        advisor: an agent or its spec; it advises, and judges decisions in a review.
        pace: seconds between decisions when two agents play each other.
        is_chosen: whether a person chose this game; otherwise pages first offer a choice.

    Attributes:
        version: number of changes so far; clients wait for the next.
        closed: whether `close` was called.
    """

    def __init__(
        self,
        session: Session,
        file: GameFile | None = None,
        advisor: str | Agent = "champion:sims=400",
        pace: float = 0.5,
        is_chosen: bool = True,
    ) -> None:
        self._file, self._pace, self._is_chosen = file, pace, is_chosen
        self._offers = Offers(session)
        self._judge = advisor if isinstance(advisor, str) else as_agent(advisor)
        self._advisor = self._judge if isinstance(self._judge, str) else self._judge.spec
        self._plays_forced = True
        self._results: dict[Task, Any] = {}  # about the position
        self._failure: dict[str, str] | None = None
        self.version, self.closed = 0, False
        self._changed = threading.Condition()
        with self._changed:
            self._set_session(session)
            self._publish(moved=True)

    def close(self) -> None:
        """End waiting requests, and the threads after what they compute now."""
        with self._changed:
            self.closed = True
            self._jobs.now.clear()
            self.session.close()
            self._changed.notify_all()

    def state(self, known_version: int = 0, timeout: float = 0.0) -> PageState:
        """Return the state that pages show, as JSON types.

        Args:
            known_version: the client's version; the call waits for another one.
            timeout: the longest wait, in seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.version != known_version or self.closed, timeout)
            return self._state

    def command(self, name: str, arguments: Arguments) -> int:
        """Change the game; return the version of the state that shows the change.

        Args:
            name: "play" (`move`, a label), "undo", "resign", "new_game" (`seats`, `board`, `seed`,
                `chance`), "load_record" (`record`, a line; `plays_both`, whether a person plays
                both seats; `id`, of the game), "continue_from" (`at`, from the position after as
                many events), "change_player" (`seat`, `player`), "advise", "review", "skip_review",
                "run_agents" (`on`), "play_forced" (`on`: play forced moves automatically).
            arguments: JSON types; not trusted. With `game` and `log_length`, those of a state, the
                command is refused if another game is on, or another position.

        Raises:
            ValueError: if the command is not possible; the game is unchanged then.
        """
        with self._changed:
            session, moved = self.session, True
            meant = arguments.get("game", self._game), arguments.get("log_length", len(session.log))
            if meant != (self._game, len(session.log)):
                raise ValueError("the game has changed in the meantime: choose again")
            match name, arguments:
                case "play", {"move": str(move)}:
                    session.play(move)
                    self._is_chosen = True
                case "undo", _:
                    moved = session.undo()
                case "resign", _:
                    session.resign()
                case "new_game" | "load_record" | "continue_from" | "change_player", _:
                    self._replace_session(*self._next_game(name, arguments))
                case _:
                    self._ask(name, arguments)
                    moved = False
            self._publish(moved)
            return self.version

    def query(self, name: str, arguments: Arguments) -> Any:
        """Return information about the game as JSON types, without changing it.

        Args:
            name: "record" (a line of a record file), "frame" (`at`: the frame after as many
                events), "missing" (the players of a `record` that this page does not offer).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the arguments are invalid.
        """
        with self._changed:
            match name, arguments:
                case "record", _:
                    return self.session.record().to_json() + "\n"
                case "frame", {"at": int(at)} if 0 <= at < len(self.session.scenes):
                    return {"panels": panels_of(self.session.scenes[at])}
                case "missing", {"record": str(line)}:
                    return self._offers.missing(Record.from_json(line))
                case _:
                    raise ValueError(f"{str_short(name)}: not a query with these arguments")

    # Commands

    def _next_game(self, name: str, arguments: Arguments) -> tuple[Session, str]:
        """Return the game of a command that replaces this one, and its id, "" for a new one."""
        session, offers, board = self.session, self._offers, self.session.game.board
        match name, arguments:
            case "new_game", _:
                players = offers.players(arguments.get("seats", session.seats))
                board_name, chance = arguments.get("board"), arguments.get("chance", "sampled")
                on = board if board_name is None else offers.board(board_name)
                seed = arguments.get("seed")
                if isinstance(seed, str) and seed.isdecimal():  # JavaScript's numbers end at 2^53
                    seed = int(seed)
                return Session(players, on, seed, chance), ""
            case "load_record", {"record": str(line), **options}:
                plays_both = options.get("plays_both") is True
                loaded = offers.recorded(Record.from_json(line), plays_both=plays_both)
                return loaded, str_short(options.get("id") or "")
            case "continue_from", {"at": int(at)} if 0 <= at < len(session.scenes):
                game, players = session.game, offers.players(session.seats)
                start = session.scenes[at].position
                return Session(players, board, game.seed, game.chance, session.names, start), ""
            case "change_player", {"seat": 0 | 1 as seat, "player": str(player)}:
                seats, names = session.seats, [*session.names]
                seats[seat] = names[seat] = player
                players, record = offers.players(seats), session.record()
                return Session.from_record(record, players, board, names), self._game
        raise ValueError(f"{str_short(name)}: not a command with these arguments")

    def _replace_session(self, session: Session, game: str) -> None:
        """Replace the game; it keeps its line of the file if it has decisions that go on."""
        before = self.session.game.events()
        goes_on = session.game.events()[: len(before)] == before
        if self._file is not None and self.session.decisions and not goes_on:
            self._file.start_game()
        self._is_chosen = True
        self._jobs.now.clear()
        self.session.close()
        self._set_session(session, game)

    def _set_session(self, session: Session, game: str = "") -> None:
        """Show another game: nothing of the game before stays, and its jobs do not count."""
        self.session, self._game = session, game or secrets.token_hex(8)
        self._jobs = Jobs(self._run)
        self._wants_review = self._asked_for_review = False
        self._agents_running, self._save_error = True, ""

    def _ask(self, name: str, arguments: Arguments) -> None:
        """Run a command that leaves the position as it is."""
        session = self.session
        match name, arguments:
            case "advise", _:  # `IllegalMove` if no player is to move
                self._failure = None
                task = session.advice_task(self._judge)
                self._jobs.start("advice", self._advisor, lambda: [task()])
            case "review", _ if session.decisions:  # pauses two agents
                self._failure = None
                self._agents_running &= bool(session.humans) or session.waits_for != "agent"
                self._wants_review = self._asked_for_review = True
            case "skip_review", _:
                self._jobs.now.pop("review", None)
                self._wants_review = self._asked_for_review = False
            case "run_agents", {"on": bool(on)}:
                self._agents_running, self._failure = on, None
            case "play_forced", {"on": bool(on)}:
                self._plays_forced = on
            case _:
                raise ValueError(f"{str_short(name)}: not a command with these arguments")

    # Changes

    def _publish(self, moved: bool) -> None:
        """Play forced moves, start the jobs that are due, save, and wake the clients."""
        session = self.session
        while self._plays_forced and session.waits_for == "human" and session.is_forced:
            session.play(session.game.legal_labels()[0])
            moved = True
        if moved:  # results and jobs are about the position before; a game that ends is reviewed
            self._results, self._failure = {}, None
            self._jobs.now.clear()
            wanted = self._asked_for_review or (session.waits_for == "nobody" and session.humans)
            self._wants_review = bool(wanted and session.decisions)
        self._start_due_jobs()
        if self._file is not None:
            self._save_error = self._file.save_error(session.record())
        self.version += 1
        self._state = self._new_state()
        self._changed.notify_all()

    def _start_due_jobs(self) -> None:
        session, now = self.session, self._jobs.now
        if session.waits_for == "agent" and self._agents_running and "move" not in now:
            seat, task = session.game.player or 0, session.agent_task()
            self._jobs.start("move", session.names[seat], lambda: [task()], seat)
        is_quiet = "move" not in now or not self._agents_running
        if self._wants_review and is_quiet and "review" not in now:
            self._jobs.start("review", self._advisor, session.review_task(self._judge))

    def _run(self, job: Job) -> None:
        """Compute a job in a thread, and publish its results while the job counts."""
        if job.task == "move" and not self.session.humans:
            time.sleep(self._pace)
        failure = ""
        try:
            for result in job.results():
                self._accept(job, result)
                if not self._jobs.counts(job):
                    return
        except BaseException as error:  # SystemExit, too: the page shows it, and the thread goes on
            failure = failure_text(job.agent, error)
        self._end(job, failure)

    def _accept(self, job: Job, result: Any) -> None:
        """Publish a result; one of an agent that moves waits while agents are paused."""
        with self._changed:
            if job.task == "move":
                self._changed.wait_for(lambda: self._agents_running or not self._jobs.counts(job))
            if not self._jobs.counts(job):
                return
            if job.task == "move":
                self.session.apply(result)
            else:
                self._results[job.task] = result
            if job.task != "review":
                del self._jobs.now[job.task]
            self._publish(moved=job.task == "move")

    def _end(self, job: Job, failure: str) -> None:
        """Publish that a review is complete, or that a job failed."""
        with self._changed:
            if not self._jobs.counts(job):
                return
            del self._jobs.now[job.task]
            if failure and (job.task != "review" or self._asked_for_review):
                self._failure = {"task": job.task, "text": failure}
            self._agents_running &= job.task != "move"
            if job.task == "review":
                self._wants_review = self._asked_for_review = False
            self._publish(moved=False)

    def _new_state(self) -> PageState:
        return page_state(
            self.session,
            self._results,
            version=self.version,
            game=self._game,
            advisor=self._advisor,
            jobs=[{"task": one.task, "agent": one.agent} for one in self._jobs.now.values()],
            agents_running=self._agents_running,
            plays_forced=self._plays_forced,
            failure=self._failure,
            save_error=self._save_error,
            is_chosen=self._is_chosen,
            opponents=self._offers.opponents,
            boards=self._offers.boards,
        )
