"""Games between two agents, played at once to the end; an agent that fails is named."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import LABELS, N_ACTIONS
from tokaido_env.core.bits import actions_of
from tokaido_env.core.checks import IllegalMove, brief, shown
from tokaido_env.core.state import copy_rows
from tokaido_env.validity import checked_moves

Numbers = npt.NDArray[np.int64]
Finish = Callable[[Numbers, npt.NDArray[np.int8]], None]
"""Called with the numbers of games that have finished and their actions as in `Match`, int8
(k, longest): with every game, and a second time where the first call was interrupted."""

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

    Args:
        a: one agent.
        b: the other.
        job: the games.
        finish: see `Finish`; called about once a second, at the end, and when playing stops early,
            by an error or Ctrl-C.
        progress: called with the number of games finished now and then.

    Raises:
        IllegalMove, AgentFailed: naming agent, game and decision.
    """
    for agent in (a, b):
        agent.prepare(list({id(board): board for board in job.boards}.values()))
    batch = Batch(len(job.numbers), job.boards, autoreset=False, observation=None)
    actions = np.full((len(batch), 256), -1, np.int8)
    given, given_at = np.zeros(len(batch), np.bool_), time.monotonic()
    try:
        batch.begin(np.arange(len(batch)), job.seeds)
        running = np.arange(len(batch))
        while len(running):
            movers = batch.states["player"][running] == job.seats_of_a[running]
            for agent, games in ((a, running[movers]), (b, running[~movers])):
                if len(games):
                    decisions = batch.slots["decisions"][games]
                    if int(decisions.max()) >= actions.shape[1]:
                        actions = np.pad(actions, ((0, 0), (0, 256)), constant_values=-1)
                    actions[games, decisions] = _decide(agent, batch, games, job)
            before = len(running)
            running = running[~batch.over[running]]
            if len(running) < before:
                progress(before - len(running))
            if not len(running) or time.monotonic() - given_at > SECONDS:
                _hand_over(batch, actions, given, job, finish)
                given_at = time.monotonic()
    finally:  # what is left where playing, or handing over, was stopped
        _hand_over(batch, actions, given, job, finish)


def _hand_over(
    batch: Batch,
    actions: npt.NDArray[np.int8],
    given: npt.NDArray[np.bool_],
    job: Job,
    finish: Finish,
) -> None:
    """Hand over the games that have finished and are not among those given, then note them there.

    Where Ctrl-C came between a decision and its note, the game is not finished.
    """
    noted = (actions >= 0).sum(axis=1) == batch.slots["decisions"]
    finished = np.flatnonzero(batch.over & noted & ~given)
    if len(finished):
        longest = int(batch.slots["decisions"][finished].max())
        finish(job.numbers[finished], actions[finished, :longest])
        given[finished] = True


def _decide(agent: Agent, batch: Batch, games: Numbers, job: Job) -> npt.NDArray[np.int64]:
    """Let an agent play a decision of each of the given games; return them, int64 (k,)."""
    try:
        moves = _asked(agent, batch, games)
    except (Exception, SystemExit) as error:
        raise AgentFailed(_failure(agent, batch, games, job, error)) from error
    wrong = np.flatnonzero(batch.illegal(games, moves))
    if len(wrong):
        game, move = int(games[wrong[0]]), int(moves[wrong[0]])
        name = f" ({LABELS[move]})" if 0 <= move < N_ACTIONS else ""
        where = f"{_place(agent, batch, game, job)}: illegal action {move}{name}"
        raise IllegalMove(f"{where}: {_legal(batch, game)}")
    batch.advance(games, moves, check=False)
    return moves


def _asked(agent: Agent, batch: Batch, games: Numbers) -> npt.NDArray[np.int64]:
    states = copy_rows(batch.states, games)
    actions = agent.act(batch.boards_of(games), states, batch.legal[games], batch.keys(games))
    return checked_moves(actions, len(games))


def _failure(agent: Agent, batch: Batch, games: Numbers, job: Job, error: BaseException) -> str:
    """Say where an agent failed: asked about each game alone, it should fail in one again."""
    for game in games.tolist():
        alone = error if len(games) == 1 else _error_alone(agent, batch, game)
        if alone is not None:
            where = _place(agent, batch, game, job)
            return f"{where}: {_told(alone)}: {_legal(batch, game)}"
    return f"agent {shown(agent.spec)}: asked about {len(games)} games at once: {_told(error)}"


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
        told = f"{type(error).__name__}: {text}"
        raise AgentFailed(f"agent {shown(agent.spec)}: {told}") from error


def _told(error: BaseException) -> str:
    """Return an error in one line, with the place in the code where it came up.

    `SystemExit` is one too: an agent may not end the command.
    """
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = brief(" ".join(str(error).split()), 200)
    return f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"
