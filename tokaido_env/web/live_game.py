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
from tokaido_env.core.copying import NotCopied
from tokaido_env.game import Game
from tokaido_env.record import Record
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review
from tokaido_env.web.advice import Advice, failure_text
from tokaido_env.web.frames import frame_of
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import Session
from tokaido_env.web.jobs import Job, Jobs
from tokaido_env.web.offers import Offers
from tokaido_env.web.page_state import Failure, PageState, advice_json, session_state

_PACE = 0.5  # seconds between decisions when two agents play each other

Arguments = Mapping[str, Any]


class LiveGame(NotCopied):
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

    copy_remedy = "copy its `session`"

    def __init__(
        self,
        session: Session,
        file: GameFile | None = None,
        advisor: str | Agent = "champion:sims=400",
        pace: float = _PACE,
        is_chosen: bool = True,
    ) -> None:
        self._file, self._pace, self._is_chosen = file, pace, is_chosen
        self._offers = Offers(session)
        self._judge = advisor if isinstance(advisor, str) else as_agent(advisor)
        self._advisor = self._judge if isinstance(self._judge, str) else self._judge.spec
        self._compiled: set[str] = set()  # agents that have computed a result
        self._failure: Failure | None = None
        self._plays_forced = True
        self.version, self.closed = 0, False
        self._changed = threading.Condition()
        self.session, self._jobs = session, Jobs(self._run)
        with self._changed:
            self._set_session(session)
            self._publish(moved=True)

    def close(self) -> None:
        """End waiting requests, and the threads after what they compute now."""
        with self._changed:
            self.closed = True
            self._leave_game()
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
            self._check_is_meant(arguments)
            moved = True
            match name, arguments:
                case "play", {"move": str(move)}:
                    self.session.play(move)
                    self._is_chosen = True
                case "undo", _:
                    moved = self.session.undo()
                case "resign", _:
                    self.session.resign()
                case "new_game", _:
                    self._new_game(arguments)
                case "load_record", {"record": str(line), **options}:
                    self._load_record(line, options)
                case "continue_from", {"at": int(at)}:
                    self._continue_from(at)
                case "change_player", {"seat": 0 | 1 as seat, "player": str(player)}:
                    self._change_player(seat, player)
                case _:
                    self._ask(name, arguments)
                    moved = False
            self._publish(moved)
            return self.version

    def query(self, name: str, arguments: Arguments) -> Any:
        """Return information about the game as JSON types, without changing it.

        Args:
            name: "record" (a line of a record file), "frame" (`at`: the frame after as many
                events), "map" (of a `board`), "missing" (the players of a `record` that this page
                does not offer).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the arguments are invalid.
        """
        with self._changed:
            match name, arguments:
                case "record", _:
                    return self.session.record().to_json() + "\n"
                case "frame", {"at": int(at)} if 0 <= at < len(self.session.scenes):
                    return frame_of(self.session.scenes[at])
                case "missing", {"record": str(line)}:
                    return self._offers.missing(Record.from_json(line))
                case "map", {"board": str(board)}:
                    game = Game(self._offers.board(board), chance="explicit")
                    return "".join(panels_of(game.scene())["island"].values())
                case _:
                    raise ValueError(f"{str_short(name)}: not a query with these arguments")

    # Commands

    def _check_is_meant(self, arguments: Arguments) -> None:
        """Raise `ValueError` if a command means another game or position."""
        game, length = arguments.get("game"), arguments.get("log_length")
        if game not in (None, self._game) or length not in (None, len(self.session.log)):
            raise ValueError("the game has changed in the meantime: choose again")

    def _new_game(self, arguments: Arguments) -> None:
        players = self._offers.players(arguments.get("seats", self.session.seats))
        name, chance = arguments.get("board"), arguments.get("chance", "sampled")
        board = self.session.game.board if name is None else self._offers.board(name)
        seed = arguments.get("seed")
        if isinstance(seed, str) and seed.isdecimal():  # numbers of JavaScript end at 2^53
            seed = int(seed)
        self._replace_session(Session(players, board, seed, chance))

    def _load_record(self, line: str, options: Arguments) -> None:
        plays_both = options.get("plays_both") is True
        session = self._offers.recorded(Record.from_json(line), plays_both=plays_both)
        self._replace_session(session, str_short(options.get("id") or ""))

    def _change_player(self, seat: int, player: str) -> None:
        """Let another player continue this game."""
        session, seats, names = self.session, self.session.seats, [*self.session.names]
        seats[seat] = names[seat] = player
        players, board = self._offers.players(seats), session.game.board
        self._replace_session(
            Session.from_record(session.record(), players, board, names), self._game
        )

    def _continue_from(self, at: int) -> None:
        """Start a game from an earlier position of this one."""
        session, game = self.session, self.session.game
        position = session.scenes[at].position
        then = Game.from_dict(position, board=game.board, seed=game.seed, chance=game.chance)
        players = self._offers.players(session.seats)
        self._replace_session(
            Session.from_record(then.record(), players, game.board, session.names)
        )

    def _replace_session(self, session: Session, game: str = "") -> None:
        """Replace the game; it keeps its line of the file if it has decisions that go on.

        Args:
            session: the next game.
            game: its id, "" for a new one.
        """
        before = self.session.game.events()
        goes_on = session.game.events()[: len(before)] == before
        if self._file is not None and self.session.decisions and not goes_on:
            self._file.start_game()
        self._is_chosen = True
        self._set_session(session, game)

    def _set_session(self, session: Session, game: str = "") -> None:
        """Show another game: nothing of the game before stays."""
        self._leave_game()
        self.session, self._game = session, game or secrets.token_hex(8)
        self._jobs = Jobs(self._run)
        self._pause = 0.0 if session.humans else self._pace
        self._advice: Advice | None = None
        self._review: Review | None = None
        self._wants_review = self._asked_for_review = False
        self._agents_running, self._failure, self._save_error = True, None, ""

    def _leave_game(self) -> None:
        """End the threads of the game and the programs of its agents."""
        self._jobs.stop()
        self.session.close()

    def _ask(self, name: str, arguments: Arguments) -> None:
        """Run a command that leaves the position as it is."""
        session = self.session
        match name, arguments:
            case "advise", _ if session.waits_for != "human":
                raise ValueError("advise: no person is to move")
            case "advise", _:
                self._failure = None
                task = session.advice_task(self._judge)
                self._jobs.start("advice", self._advisor, lambda: [task()])
            case "review", _ if not session.decisions:
                raise ValueError("review: the game has no decisions yet")
            case "review", _:  # pauses two agents
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
        if moved:
            self._leave_position()
        self._start_due_jobs()
        self._save()
        self.version += 1
        self._state = self._new_state()
        self._changed.notify_all()

    def _leave_position(self) -> None:
        """Drop the results and jobs about the position before; a game that ends is reviewed."""
        session = self.session
        self._advice, self._review, self._failure = None, None, None
        self._jobs.now.clear()
        wanted = self._asked_for_review or (session.waits_for == "nobody" and session.humans)
        self._wants_review = bool(wanted and session.decisions)

    def _start_due_jobs(self) -> None:
        session = self.session
        now = self._jobs.now
        if session.waits_for == "agent" and self._agents_running and "move" not in now:
            seat, task = session.game.player or 0, session.agent_task()
            self._jobs.start("move", session.names[seat], lambda: [task()], seat)
        is_quiet = "move" not in now or not self._agents_running
        if self._wants_review and is_quiet and "review" not in now:
            self._jobs.start("review", self._advisor, session.review_task(self._judge))

    def _run(self, job: Job) -> None:
        """Compute a job in a thread, and publish its results while the job counts."""
        if job.task == "move":
            time.sleep(self._pause)
        if not self._jobs.counts(job):
            return
        try:
            for result in job.results():
                if not self._accept(job, result):
                    return
        except BaseException as error:  # SystemExit, too: the page shows it, and the thread goes on
            self._fail(job, error)
        else:
            self._finish(job)

    def _accept(self, job: Job, result: Any) -> bool:
        """Publish a result; return whether the job still counts."""
        with self._changed:
            if job.task == "move":  # a pause keeps what the agent has decided
                self._changed.wait_for(lambda: self._agents_running or not self._jobs.counts(job))
            if not self._jobs.counts(job):
                return False
            self._compiled.add(job.agent)
            if job.task == "review":
                self._review = result
            else:
                del self._jobs.now[job.task]
                if job.task == "advice":
                    self._advice = result
                else:
                    self.session.apply(result)
            self._publish(moved=job.task == "move")
            return True

    def _finish(self, job: Job) -> None:
        """Publish that a review is complete; other jobs ended with their result."""
        with self._changed:
            if self._jobs.counts(job):
                del self._jobs.now[job.task]
                self._wants_review = self._asked_for_review = False
                self._publish(moved=False)

    def _fail(self, job: Job, error: BaseException) -> None:
        with self._changed:
            if not self._jobs.counts(job):
                return
            del self._jobs.now[job.task]
            if job.task != "review" or self._asked_for_review:
                self._failure = {"task": job.task, "text": failure_text(job.agent, error)}
            if job.task == "move":
                self._agents_running = False
            elif job.task == "review":
                self._wants_review = self._asked_for_review = False
            self._publish(moved=False)

    def _save(self) -> None:
        if self._file is None:
            return
        try:
            self._file.save(self.session.record())
            self._save_error = ""
        except OSError as error:  # the game continues, and the page shows the error
            self._save_error = f"not saved: {str_short(str(error), 200)}"

    def _new_state(self) -> PageState:
        return {
            **session_state(self.session, self._review),
            "version": self.version,
            "game": self._game,
            "advice": None if self._advice is None else advice_json(self._advice),
            "advisor": self._advisor,
            "jobs": [
                {"task": one.task, "agent": one.agent, "compiling": one.agent not in self._compiled}
                for one in self._jobs.now.values()
            ],
            "agents_running": self._agents_running,
            "plays_forced": self._plays_forced,
            "failure": self._failure,
            "save_error": self._save_error,
            "review_progress": None if self._review is None else self._review.progress(),
            "is_chosen": self._is_chosen,
            "opponents": self._offers.opponents,
            "boards": self._offers.boards,
        }
