"""Games between two agents, played at once to the end; an agent that fails is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.agents.arena.apart import Apart, Failure, Question
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import LABELS, N_ACTIONS
from tokaido_env.core.bits import actions_of
from tokaido_env.core.checks import IllegalMove, brief, shown, told
from tokaido_env.core.state import copy_rows
from tokaido_env.record import MOST_DETAIL, Forfeit
from tokaido_env.validity import checked_moves

Numbers = npt.NDArray[np.int64]
Forfeits = dict[int, Forfeit]
"""How games were forfeited, by their numbers."""

Finish = Callable[[Numbers, npt.NDArray[np.int8], Forfeits], None]
"""Called with the numbers of games that have finished, their actions as in `Match`, int8
(k, longest), and those of them that were forfeited: with every game, and a second time where the
first call was interrupted."""

SECONDS = 1.0  # between two times that a batch hands over what has finished


class AgentFailed(RuntimeError):  # noqa: N818  says who
    """An agent raised an error or returned what is no action: the message says which and where."""


class Job(NamedTuple):
    """Games of a match to be played at once.

    Attributes:
        numbers: int64 (k,), of the games within the match.
        seeds: int64 (k,).
        seats_of_a: int8 (k,), where agent `a` sits.
        boards: one for all games, or one for each.
        total: how many games the match has, for messages.
    """

    numbers: Numbers
    seeds: npt.NDArray[np.int64]
    seats_of_a: npt.NDArray[np.int8]
    boards: Sequence[Board]
    total: int


def play_games(
    a: Agent,
    b: Agent,
    job: Job,
    finish: Finish,
    progress: Callable[[int], None] = lambda games: None,
) -> None:
    """Play games to the end.

    An agent that plays in a process of its own (`Apart`) forfeits the games in which it fails.

    Args:
        a: one agent.
        b: the other.
        job: the games.
        finish: see `Finish`; called about once a second, at the end, and when playing stops early,
            by an error or Ctrl-C.
        progress: called with the number of games finished now and then.

    Raises:
        IllegalMove, AgentFailed: if another agent failed, naming it, the game and the decision.
    """
    for agent in (a, b):
        agent.prepare(list({id(board): board for board in job.boards}.values()))
    table = _Table(job)
    given_at = time.monotonic()
    try:
        table.batch.begin(np.arange(len(table.batch)), job.seeds)
        running = np.arange(len(table.batch))
        while len(running):
            movers = table.batch.states["player"][running] == job.seats_of_a[running]
            for agent, games in ((a, running[movers]), (b, running[~movers])):
                if len(games):
                    table.play(agent, games)
            before = len(running)
            running = running[~table.over[running]]
            if len(running) < before:
                progress(before - len(running))
            if not len(running) or time.monotonic() - given_at > SECONDS:
                table.hand_over(finish)
                given_at = time.monotonic()
    finally:  # what is left where playing, or handing over, was stopped
        table.hand_over(finish)


class _Table:
    """The games of a job while they are played.

    Args:
        job: the games.

    Attributes:
        batch: their positions.
        over: bool (k,), which have finished.
    """

    def __init__(self, job: Job) -> None:
        self.batch = Batch(len(job.numbers), job.boards, autoreset=False, observation=None)
        self._job = job
        self._actions = np.full((len(self.batch), 256), -1, np.int8)
        self._given = np.zeros(len(self.batch), np.bool_)
        self._forfeits: Forfeits = {}  # by place in the batch

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        over = self.batch.over
        over[list(self._forfeits)] = True
        return over

    def play(self, agent: Agent, games: Numbers) -> None:
        """Let an agent play a decision of each of the given games."""
        at = self.batch.slots["decisions"][games]
        if int(at.max()) >= self._actions.shape[1]:
            self._actions = np.pad(self._actions, ((0, 0), (0, 256)), constant_values=-1)
        moves = _moves(agent, self.batch, games, self._job, self._forfeits)
        played = moves >= 0
        if not played.all():
            games, at, moves = games[played], at[played], moves[played]
        self.batch.advance(games, moves, check=False)
        self._actions[games, at] = moves

    def hand_over(self, finish: Finish) -> None:
        """Hand over the games that have finished and have not been handed over yet.

        Where Ctrl-C came between a decision and its note, the game is not finished.
        """
        noted = (self._actions >= 0).sum(axis=1) == self.batch.slots["decisions"]
        finished = np.flatnonzero(self.over & noted & ~self._given)
        if not len(finished):
            return
        longest = int(self.batch.slots["decisions"][finished].max())
        numbers = self._job.numbers[finished]
        forfeits = {
            int(number): self._forfeits[place]
            for number, place in zip(numbers, finished.tolist(), strict=True)
            if place in self._forfeits
        }
        finish(numbers, self._actions[finished, :longest], forfeits)
        self._given[finished] = True


def _moves(
    agent: Agent, batch: Batch, games: Numbers, job: Job, forfeits: Forfeits
) -> npt.NDArray[np.int64]:
    """Return what an agent plays in each of the given games, int64 (k,), -1 where it forfeits."""
    if isinstance(agent, Apart):
        return _moves_or_forfeits(agent, batch, games, forfeits)
    try:
        moves = _asked(agent, batch, games)
    except (Exception, SystemExit) as error:
        raise AgentFailed(_failure(agent, batch, games, job, error)) from error
    wrong = np.flatnonzero(batch.illegal(games, moves))
    if len(wrong):
        game = int(games[wrong[0]])
        illegal = _illegal(batch, game, int(moves[wrong[0]]))
        raise IllegalMove(f"{_place(agent, batch, game, job)}: {illegal}")
    return moves


def _moves_or_forfeits(
    agent: Apart, batch: Batch, games: Numbers, forfeits: Forfeits
) -> npt.NDArray[np.int64]:
    """As `_moves`, of an agent that loses a game in which it fails."""
    decided = agent.decide(*_question(batch, games))
    moves = np.array([-1 if isinstance(one, Failure) else one for one in decided], np.int64)
    for place in np.flatnonzero(batch.illegal(games, moves)).tolist():
        game, failure = int(games[place]), decided[place]
        if not isinstance(failure, Failure):
            failure = Failure("illegal", _illegal(batch, game, failure))
        seat, detail = int(batch.states["player"][game]), brief(failure.detail, MOST_DETAIL)
        forfeits[game] = Forfeit(seat, failure.reason, detail)
        moves[place] = -1
    return moves


def _asked(agent: Agent, batch: Batch, games: Numbers) -> npt.NDArray[np.int64]:
    return checked_moves(agent.act(*_question(batch, games)), len(games))


def _question(batch: Batch, games: Numbers) -> Question:
    """Return the arguments of `Agent.act` for some games."""
    states = copy_rows(batch.states, games)
    return batch.boards_of(games), states, batch.legal[games], batch.keys(games)


def _failure(agent: Agent, batch: Batch, games: Numbers, job: Job, error: BaseException) -> str:
    """Say where an agent failed: asked about each game alone, it should fail in one again."""
    for game in games.tolist():
        alone = error if len(games) == 1 else _error_alone(agent, batch, game)
        if alone is not None:
            where = _place(agent, batch, game, job)
            return f"{where}: {told(alone)}: {_legal(batch, game)}"
    return f"agent {shown(agent.spec)}: asked about {len(games)} games at once: {told(error)}"


def _error_alone(agent: Agent, batch: Batch, game: int) -> BaseException | None:
    try:
        _asked(agent, batch, np.array([game]))
    except (Exception, SystemExit) as error:
        return error
    return None


def _place(agent: Agent, batch: Batch, game: int, job: Job) -> str:
    where = f"game {job.numbers[game] + 1} of {job.total}, seed {job.seeds[game]}"
    seat, decision = batch.states["player"][game], batch.slots["decisions"][game]
    return f"agent {shown(agent.spec)}: {where}, seat {seat}, decision {decision}"


def _illegal(batch: Batch, game: int, move: int) -> str:
    name = f" ({LABELS[move]})" if 0 <= move < N_ACTIONS else ""
    return f"illegal action {move}{name}: {_legal(batch, game)}"


def _legal(batch: Batch, game: int) -> str:
    legal = actions_of(int(batch.legal[game]))
    return "legal are " + ", ".join(f"{LABELS[action]} ({action})" for action in legal)


@contextmanager
def named(agent: Agent) -> Iterator[None]:
    """Let an error of an agent's code name the agent."""
    try:
        yield
    except (AgentFailed, IllegalMove, OSError):
        raise
    except (Exception, SystemExit) as error:
        text = brief(" ".join(str(error).split()), 200)
        raise AgentFailed(f"agent {shown(agent.spec)}: {type(error).__name__}: {text}") from error
