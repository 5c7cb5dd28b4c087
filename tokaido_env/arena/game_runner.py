"""Games between two agents, played at once to the end; an agent that fails is named."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, States
from tokaido_env.arena.match import store_ends
from tokaido_env.arena.sandbox import ActArguments, SandboxedAgent, SandboxFailure
from tokaido_env.arena.variance_reduction import store_luck
from tokaido_env.batch import Batch
from tokaido_env.batch_validation import checked_moves
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import LABELS, N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import IllegalMove, format_error, repr_short, str_short
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.state import copy_rows
from tokaido_env.core.threads import single_thread
from tokaido_env.record import MOST_DETAIL, REASONS, Forfeit
from tokaido_env.trajectory import replay_chunks

Numbers = npt.NDArray[np.int64]
Forfeits = dict[int, Forfeit]
"""How games were forfeited, by their numbers."""

SECONDS = 1.0  # between two times that a batch hands over what has finished


class AgentFailed(RuntimeError):  # noqa: N818  says who
    """An agent raised an error or returned what is no action: the message says which and where."""


class GameBatchSpec(NamedTuple):
    """Games of a match to be played at once.

    Attributes:
        numbers: int64 (k,), of the games within the match.
        games: `GAME` (k,), as `games_to_play` returns them.
        boards: one or more.
        which: int64 (k,), on which of these each game is played.
        total: how many games the match has, for messages.
        states: `STATE` (k,), the positions that they begin from; None: the set-up.
        with_events: whether finished games come with their events.
        with_luck: whether their luck is counted.
    """

    numbers: Numbers
    games: npt.NDArray[np.void]
    boards: Sequence[Board]
    which: npt.NDArray[np.int64]
    total: int
    states: States | None = None
    with_events: bool = False
    with_luck: bool = False


class FinishedGames(NamedTuple):
    """Games of a match that have finished, k of them.

    Attributes:
        numbers: int64 (k,), of the games within the match.
        games: `GAME` (k,); their luck is 0 where the job does not ask for it.
        actions: int8 (k, longest), as in `Match`.
        events: int16 (k, longest), the codes of all that happened (`core.events`), -1 after the
            last; None where the job does not ask for them.
        forfeits: of those that were forfeited, by number.
    """

    numbers: Numbers
    games: npt.NDArray[np.void]
    actions: npt.NDArray[np.int8]
    events: npt.NDArray[np.int16] | None
    forfeits: Forfeits

    @classmethod
    def forfeited(
        cls,
        numbers: Numbers,
        games: npt.NDArray[np.void],
        actions: npt.NDArray[np.int8],
        events: npt.NDArray[np.int16] | None,
        forfeits: Forfeits,
    ) -> FinishedGames:
        """Return games, in which it is noted who lost them by a forfeit."""
        for i, number in enumerate(numbers.tolist() if forfeits else ()):
            if number in forfeits:
                forfeit = forfeits[number]
                games["result"][i] = float(forfeit.seat != games["seat_of_a"][i])
                games["forfeit"][i] = 1 + REASONS.index(forfeit.reason)
        return cls(numbers, games, actions, events, forfeits)

    def part(self, chosen: npt.NDArray[np.bool_]) -> FinishedGames:
        """Return some of the games: `chosen` is bool (k,)."""
        events = None if self.events is None else self.events[chosen]
        columns = self.numbers[chosen], self.games[chosen], self.actions[chosen], events
        return FinishedGames(
            *columns, {n: self.forfeits[n] for n in self.forfeits if n in columns[0]}
        )


def pad_columns(rows: npt.NDArray[Any], columns: int) -> npt.NDArray[Any]:
    """Return rows with at least so many columns, the new ones -1."""
    more = max(columns - rows.shape[1], 0)
    return np.pad(rows, ((0, 0), (0, more)), constant_values=-1) if more else rows


def play_games(a: Agent, b: Agent, job: GameBatchSpec) -> Iterator[FinishedGames]:
    """Play games to the end; yield those that have finished about once a second and at the end.

    Where playing stops early, by an error or Ctrl-C, what has finished by then is yielded first. A
    `SandboxedAgent` forfeits the games in which it fails.

    Args:
        a: one agent.
        b: the other.
        job: the games.

    Raises:
        IllegalMove, AgentFailed: if another agent failed, naming it, the game and the decision.
    """
    for agent in (a, b):
        agent.prepare(list(job.boards))
    table = _Table(job)
    given_at = time.monotonic()
    try:
        table.batch.begin(table.batch.all_games, job.games["seed"], job.states)
        running = np.flatnonzero(~table.over)
        while len(running):
            movers = table.batch.states["player"][running] == job.games["seat_of_a"][running]
            movers |= a is b  # one call for both seats
            for agent, games in ((a, running[movers]), (b, running[~movers])):
                if len(games):
                    table.play(agent, games)
            running = running[~table.over[running]]
            if time.monotonic() - given_at > SECONDS:
                yield from table.finished()
                given_at = time.monotonic()
        yield from table.finished()
    except (Exception, KeyboardInterrupt, SystemExit):
        yield from table.finished()
        raise


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let Ctrl-C wait to the end: what is yielded within is taken whole by whoever iterates."""
    before, came = signal.getsignal(signal.SIGINT), []
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        before(signal.SIGINT, None)


class _Table:
    """The games of a job while they are played.

    Args:
        job: the games.

    Attributes:
        batch: their positions.
    """

    def __init__(self, job: GameBatchSpec) -> None:
        self.batch = Batch(len(job.numbers), job.boards, autoreset=False, observation=None)
        self.batch.episode_info["board"] = job.which
        self._job = job
        self._actions = np.full((len(self.batch), 256), -1, np.int8)
        self._given = np.zeros(len(self.batch), np.bool_)
        self._forfeits: Forfeits = {}  # by place in the batch

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Which games have finished: bool (k,)."""
        over = self.batch.over
        over[list(self._forfeits)] = True
        return over

    def play(self, agent: Agent, games: Numbers) -> None:
        """Let an agent play a decision of each of the given games."""
        at = self.batch.episode_info["decisions"][games]
        self._actions = pad_columns(self._actions, int(at.max()) + 1)
        moves = _moves(agent, self.batch, games, self._job, self._forfeits)
        played = moves >= 0
        if not played.all():
            games, at, moves = games[played], at[played], moves[played]
        with single_thread():
            self.batch.advance(games, moves, check=False)
        self._actions[games, at] = moves

    def finished(self) -> Iterator[FinishedGames]:
        """Yield the games that have finished and have not been taken yet, if there are any.

        Where Ctrl-C came between a decision and its note, the game is not finished.
        """
        noted = (self._actions >= 0).sum(axis=1) == self.batch.episode_info["decisions"]
        places = np.flatnonzero(self.over & noted & ~self._given)
        if len(places):
            finished = self._finished(places)
            with interrupts_deferred():
                yield finished
                self._given[places] = True

    def _finished(self, places: Numbers) -> FinishedGames:
        job, decisions = self._job, self.batch.episode_info["decisions"][places]
        games, which, numbers = job.games[places], job.which[places], job.numbers[places]
        actions = self._actions[places, : int(decisions.max())]
        games["decisions"] = decisions
        store_ends(games, self.batch.boards, which, copy_rows(self.batch.states, places))
        events = (
            self._passed_through(games, which, actions)
            if job.with_events or job.with_luck
            else None
        )
        each = zip(numbers.tolist(), places.tolist(), strict=True)
        forfeits = {n: self._forfeits[place] for n, place in each if place in self._forfeits}
        return FinishedGames.forfeited(
            *(numbers, games, actions, events if job.with_events else None, forfeits)
        )

    def _passed_through(
        self, games: npt.NDArray[np.void], which: Numbers, actions: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int16]:
        """Pass once through played games, for what a batch does not keep: note luck, return events.

        Keeping it while playing would take a batch with a log; the pass takes some microseconds a
        game.
        """
        events = np.full((len(games), 0), NO_ACTION, np.int16)
        for some, played in replay_chunks(self.batch.pool, games["seed"], actions, which):
            found = played.events_by_game
            events = pad_columns(events, found.shape[1])
            events[some, : found.shape[1]] = found
            if self._job.with_luck:
                store_luck(games, some, played)
        return events


def _moves(
    agent: Agent, batch: Batch, games: Numbers, job: GameBatchSpec, forfeits: Forfeits
) -> npt.NDArray[np.int64]:
    """Return what an agent plays in each of the given games, int64 (k,), -1 where it forfeits."""
    if isinstance(agent, SandboxedAgent):
        return _moves_or_forfeits(agent, batch, games, forfeits)
    try:
        moves = _asked(agent, batch, games)
    except (Exception, SystemExit) as error:
        raise AgentFailed(_failure(agent, batch, games, job, error)) from error
    wrong = _illegal_among(batch, games, moves)
    if len(wrong):
        game = int(games[wrong[0]])
        illegal = _illegal(batch, game, int(moves[wrong[0]]))
        raise IllegalMove(f"{_place(agent, batch, game, job)}: {illegal}")
    return moves


def _moves_or_forfeits(
    agent: SandboxedAgent, batch: Batch, games: Numbers, forfeits: Forfeits
) -> npt.NDArray[np.int64]:
    """As `_moves`, of an agent that loses a game in which it fails."""
    decided = agent.decide(*_question(batch, games))
    moves = np.array([-1 if isinstance(one, SandboxFailure) else one for one in decided], np.int64)
    for place in _illegal_among(batch, games, moves).tolist():
        game, failure = int(games[place]), decided[place]
        if not isinstance(failure, SandboxFailure):
            failure = SandboxFailure("illegal", _illegal(batch, game, failure))
        seat, detail = int(batch.states["player"][game]), str_short(failure.detail, MOST_DETAIL)
        forfeits[game] = Forfeit(seat, failure.reason, detail)
        moves[place] = -1
    return moves


def _asked(agent: Agent, batch: Batch, games: Numbers) -> npt.NDArray[np.int64]:
    return checked_moves(agent.act(*_question(batch, games)), len(games))


def _question(batch: Batch, games: Numbers) -> ActArguments:
    """Return the arguments of `Agent.act` for some games."""
    with single_thread():
        states = copy_rows(batch.states, games)
        return batch.boards_of(games), states, batch.legal[games], batch.keys(games)


def _illegal_among(batch: Batch, games: Numbers, moves: Numbers) -> Numbers:
    """Return the places of the moves that are not on offer."""
    with single_thread():
        return np.flatnonzero(batch.find_illegal(games, moves))


def _failure(
    agent: Agent, batch: Batch, games: Numbers, job: GameBatchSpec, error: BaseException
) -> str:
    """Say where an agent failed: asked about each game alone, it should fail in one again."""
    for game in games.tolist():
        alone = error if len(games) == 1 else _error_alone(agent, batch, game)
        if alone is not None:
            where = _place(agent, batch, game, job)
            return f"{where}: {format_error(alone)}: {_legal(batch, game)}"
    asked = f"asked about {len(games)} games at once"
    return f"agent {repr_short(agent.spec)}: {asked}: {format_error(error)}"


def _error_alone(agent: Agent, batch: Batch, game: int) -> BaseException | None:
    try:
        _asked(agent, batch, np.array([game]))
    except (Exception, SystemExit) as error:
        return error
    return None


def _place(agent: Agent, batch: Batch, game: int, job: GameBatchSpec) -> str:
    seed = job.games["seed"][game]
    where = f"game {job.numbers[game] + 1} of {job.total}, seed {seed}"
    seat, decision = batch.states["player"][game], batch.episode_info["decisions"][game]
    return f"agent {repr_short(agent.spec)}: {where}, seat {seat}, decision {decision}"


def _illegal(batch: Batch, game: int, move: int) -> str:
    name = f" ({LABELS[move]})" if 0 <= move < N_ACTIONS else ""
    return f"illegal action {move}{name}: {_legal(batch, game)}"


def _legal(batch: Batch, game: int) -> str:
    legal = actions_of(int(batch.legal[game]))
    return "legal are " + ", ".join(f"{LABELS[action]} ({action})" for action in legal)


@contextmanager
def naming_agent(agent: Agent) -> Iterator[None]:
    """Let an error of an agent's code name the agent."""
    try:
        yield
    except (AgentFailed, IllegalMove, OSError):
        raise
    except (Exception, SystemExit) as error:
        text = str_short(" ".join(str(error).split()), 200)
        raise AgentFailed(
            f"agent {repr_short(agent.spec)}: {type(error).__name__}: {text}"
        ) from error
