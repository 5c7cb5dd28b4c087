"""A game on the local page or in a notebook: its state, commands, queries, and agents that think.

Agents think in threads of their game, without the lock, so no request waits for them. A result is
dropped if its position or game has changed meanwhile. Each change publishes one new state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.core.arguments import str_short
from tokaido_env.core.copying import NotCopied
from tokaido_env.game import Game
from tokaido_env.record import replay
from tokaido_env.render.svg import panels_of
from tokaido_env.study.review import Review, review
from tokaido_env.web.advice import Advice
from tokaido_env.web.frames import frame_of
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import Session
from tokaido_env.web.offers import Offers
from tokaido_env.web.page_state import PageState, advice_json, session_state

_MOVING = ("play", "undo", "resign", "new_game", "load_record", "continue_from")  # commands
_PACE = 0.5  # seconds between decisions when two agents play each other
_CHANCE_JUDGE = "champion"  # judges chance in a review

Arguments = Mapping[str, Any]
Task = Literal["move", "advice", "review"]


class Job(NamedTuple):
    """What an agent is to compute.

    Attributes:
        task: the kind of the result.
        agent: its spec.
        compute: returns the result, without reading the game.
    """

    task: Task
    agent: str
    compute: Callable[[], Any]


class Worker:
    """A thread that runs jobs one after another, until it is stopped.

    The program does not wait for it at its end.

    Args:
        run: runs a job.
    """

    def __init__(self, run: Callable[[Job], None]) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._run = run
        threading.Thread(target=self._run_all, daemon=True).start()

    def start(self, job: Job) -> None:
        """Run a job after the ones before."""
        self._jobs.put(job)

    def stop(self) -> None:
        """End the thread after the jobs before."""
        self._jobs.put(None)

    def _run_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._run(job)


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
        self._workers: list[Worker] = []
        self._plays_forced = True
        self.version, self.closed = 0, False
        self._changed = threading.Condition()
        with self._changed:
            self._set_session(session)
            self._publish(moved=True)

    def close(self) -> None:
        """End waiting requests, and the threads after what they compute now."""
        with self._changed:
            self.closed = True
            self._jobs.clear()
            self._stop_workers()
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
            name: "play" (`move`, a label; `log_length`, the client's), "undo", "resign", "new_game"
                (`seats`, `board`, `seed`, `chance`), "load_record" (`record`, a line),
                "continue_from" (`at`, from the position after as many events), "advise", "review",
                "run_agents" (`on`), "play_forced" (`on`: play forced moves automatically).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the command is not possible; the game is unchanged then.
        """
        with self._changed:
            match name, arguments:
                case "play", {"move": str(move), "log_length": int(length)}:
                    self._play(move, length)
                case "undo", _:
                    self.session.undo()
                case "resign", _:
                    self.session.resign()
                case "new_game", _:
                    self._new_game(arguments)
                case "load_record", {"record": str(line)}:
                    self._replace_session(self._offers.recorded(line))
                case "continue_from", {"at": int(at)}:
                    self._continue_from(at)
                case "advise" | "review", _:
                    self._ask(name)
                case "run_agents", {"on": bool(on)}:
                    self._agents_running = on
                case "play_forced", {"on": bool(on)}:
                    self._plays_forced = on
                case _:
                    raise ValueError(f"{str_short(name)}: not a command with these arguments")
            self._publish(name in _MOVING)
            return self.version

    def query(self, name: str, arguments: Arguments) -> Any:
        """Return information about the game as JSON types, without changing it.

        Args:
            name: "record" (a line of a record file), "frame" (`at`: the frame after as many
                events), "map" (of a `board`).
            arguments: JSON types; not trusted.

        Raises:
            ValueError: if the arguments are invalid.
        """
        with self._changed:
            match name, arguments:
                case "record", _:
                    return self.session.record().to_json() + "\n"
                case "frame", {"at": int(at)}:
                    return frame_of(self.session.scenes[at])
                case "map", {"board": str(board)}:
                    game = Game(self._offers.board(board), chance="explicit")
                    return "".join(panels_of(game.scene())["island"].values())
                case _:
                    raise ValueError(f"{str_short(name)}: not a query with these arguments")

    # Commands

    def _play(self, move: str, log_length: int) -> None:
        if log_length != len(self.session.log):
            raise ValueError("move: the game has changed in the meantime; choose again")
        self.session.play(move)
        self._is_chosen = True

    def _new_game(self, arguments: Arguments) -> None:
        players = self._offers.players(arguments.get("seats", self.session.names))
        name, chance = arguments.get("board"), arguments.get("chance", "sampled")
        board = self.session.game.board if name is None else self._offers.board(name)
        self._replace_session(Session(players, board, arguments.get("seed"), chance))

    def _continue_from(self, at: int) -> None:
        """Start a game from an earlier position of this one."""
        session, game = self.session, self.session.game
        position = session.scenes[at].position
        then = Game.from_dict(position, board=game.board, seed=game.seed, chance=game.chance)
        players = self._offers.players(session.names)
        self._replace_session(Session.from_record(then.record(), players, game.board))

    def _replace_session(self, session: Session) -> None:
        """Replace the game; it keeps its line of the file if it has decisions that go on."""
        before = self.session.game.events()
        goes_on = session.game.events()[: len(before)] == before
        if self._file is not None and self.session.decisions and not goes_on:
            self._file.start_game()
        self._is_chosen = True
        self._set_session(session)

    def _set_session(self, session: Session) -> None:
        """Show another game: nothing of the game before stays."""
        self._stop_workers()
        self.session = session
        self._thinker, self._reviewer = self._workers = [Worker(self._run), Worker(self._run)]
        self._jobs: dict[Task, Job] = {}
        self._pause = 0.0 if session.humans else self._pace
        self._advice: Advice | None = None
        self._review: Review | None = None
        self._wants_review = self._asked_for_review = False
        self._agents_running, self._agent_error, self._save_error = True, "", ""

    def _stop_workers(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _ask(self, name: str) -> None:
        """Start an advice or a review; a review of two agents' game pauses it."""
        session = self.session
        if name == "advise":
            self._start("advice", self._advisor, session.advice_task(self._judge))
        elif not session.decisions:
            raise ValueError("review: the game has no decisions yet")
        else:
            self._agents_running &= bool(session.humans) or session.waits_for != "agent"
            self._wants_review = self._asked_for_review = True

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
        self._advice, self._review = None, None
        self._jobs.clear()
        wanted = self._asked_for_review or (session.waits_for == "nobody" and session.humans)
        self._wants_review = bool(wanted and session.decisions)

    def _start_due_jobs(self) -> None:
        session = self.session
        moves = self._agents_running and session.waits_for == "agent"
        if not moves:
            self._jobs.pop("move", None)
        elif "move" not in self._jobs:
            self._start("move", session.names[session.game.player or 0], session.agent_task())
        if self._wants_review and not moves and "review" not in self._jobs:
            self._start("review", self._advisor, self._review_task())

    def _start(self, task: Task, agent: str, compute: Callable[[], Any]) -> None:
        job = self._jobs[task] = Job(task, agent, compute)
        worker = self._reviewer if task == "review" else self._thinker  # no move waits for a review
        worker.start(job)

    def _review_task(self) -> Callable[[], Review]:
        played = replay(self.session.record(), self.session.game.board)
        judge, resigned = self._judge, self.session.resigned

        def reviewed() -> Review:
            found = review(played, as_agent(judge), as_agent(_CHANCE_JUDGE))
            return found if resigned is None else found.with_forfeit(resigned)

        return reviewed

    def _run(self, job: Job) -> None:
        """Compute a job in a thread, and publish its result if the job still counts."""
        if job.task == "move":
            time.sleep(self._pause)
        if self._jobs.get(job.task) is not job:
            return
        try:
            result, error = job.compute(), ""
        except Exception as raised:  # by an agent: the page shows it
            result, error = None, f"{type(raised).__name__}: {str_short(str(raised), 200)}"
        with self._changed:
            if self._jobs.get(job.task) is not job:
                return
            del self._jobs[job.task]
            self._compiled.add(job.agent)
            self._accept(job.task, result, error)
            self._publish(moved=job.task == "move" and not error)

    def _accept(self, task: Task, result: Any, error: str) -> None:
        if task != "review" or self._asked_for_review:
            self._agent_error = error
        if task == "move":
            self._agents_running = not error
            if not error:
                self.session.apply(result)
        elif task == "advice":
            self._advice = result
        else:
            self._review, self._wants_review, self._asked_for_review = result, False, False

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
            "advice": None if self._advice is None else advice_json(self._advice),
            "advisor": self._advisor,
            "jobs": [
                {"task": one.task, "agent": one.agent, "compiling": one.agent not in self._compiled}
                for one in self._jobs.values()
            ],
            "agents_running": self._agents_running,
            "plays_forced": self._plays_forced,
            "error": self._agent_error or self._save_error,
            "is_chosen": self._is_chosen,
            "opponents": self._offers.opponents,
            "boards": self._offers.boards,
        }
