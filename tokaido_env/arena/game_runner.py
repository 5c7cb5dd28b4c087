"""Play batches of games between two agents; errors name the agent, the game and the decision."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.exec_agent import ProgramAgent
from tokaido_env.agents.line_process import ProcessFailure
from tokaido_env.arena.match import store_ends
from tokaido_env.arena.variance_reduction import store_luck
from tokaido_env.batch import Batch, advance_checked
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import LABELS, N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import IllegalMove, format_error, repr_short, str_short
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.state import copy_rows
from tokaido_env.core.threads import single_thread
from tokaido_env.record import REASONS, Forfeit
from tokaido_env.trajectory import replay_chunks

Numbers = npt.NDArray[np.int64]
Forfeits = dict[int, Forfeit]
"""The forfeits of games, by game number."""

SECONDS = 1.0  # between two yields of finished games


class AgentFailed(RuntimeError):  # noqa: N818  named after the agent that failed
    """An agent raised an error or returned no action: the message names agent, game and reason."""


class GameBatchSpec(NamedTuple):
    """Games of a match to be played at once.

    Attributes:
        numbers: int64 (k,), of the games within the match.
        games: `GAME` (k,), not yet played: with seed, board and seat of `a`.
        boards: one or more.
        board_index: int64 (k,), the index into `boards` of each game.
        total: number of games of the match, for messages.
        with_events: whether finished games have their events.
        with_luck: whether the luck of finished games is computed.
    """

    numbers: Numbers
    games: npt.NDArray[np.void]
    boards: Sequence[Board]
    board_index: npt.NDArray[np.int64]
    total: int
    with_events: bool = False
    with_luck: bool = False


class FinishedGames(NamedTuple):
    """Finished games of a match, k of them.

    Attributes:
        numbers: int64 (k,), of the games within the match.
        games: `GAME` (k,); their luck is 0 unless `GameBatchSpec.with_luck`.
        actions: int8 (k, longest), as in `Match`.
        events: int16 (k, longest), event codes (`core.events`), -1 after the last; None unless
            `GameBatchSpec.with_events`.
        forfeits: of the forfeited games, by number.
    """

    numbers: Numbers
    games: npt.NDArray[np.void]
    actions: npt.NDArray[np.int8]
    events: npt.NDArray[np.int16] | None
    forfeits: Forfeits


def mark_forfeits(games: npt.NDArray[np.void], numbers: Numbers, forfeits: Forfeits) -> None:
    """Write the results and reasons of forfeits to games: a forfeit loses the game.

    Args:
        games: `GAME` (k,), changed in place.
        numbers: int64 (k,), of the games within the match.
        forfeits: by number.
    """
    for i, number in enumerate(numbers.tolist() if forfeits else ()):
        if number in forfeits:
            forfeit = forfeits[number]
            games["result"][i] = float(forfeit.seat != games["seat_of_a"][i])
            games["forfeit"][i] = 1 + REASONS.index(forfeit.reason)


def pad_columns(rows: npt.NDArray[Any], columns: int) -> npt.NDArray[Any]:
    """Return rows, (k, c), with at least `columns` columns; new columns hold -1."""
    more = max(columns - rows.shape[1], 0)
    return np.pad(rows, ((0, 0), (0, more)), constant_values=-1) if more else rows


def play_games(a: Agent, b: Agent, batch_spec: GameBatchSpec) -> Iterator[FinishedGames]:
    """Play games to the end; yield finished games about once a second and at the end.

    If an error or Ctrl-C stops playing, the games that have finished by then are yielded first. A
    `ProgramAgent` forfeits the games in which it fails.

    Args:
        a: agent `a` of the match.
        b: agent `b`.
        batch_spec: the games.

    Raises:
        IllegalMove: if another agent chose an illegal action, naming it, the game and the decision.
        AgentFailed: if another agent failed in another way, naming the same.
    """
    for agent in (a, b):
        agent.prepare(list(batch_spec.boards))
    running_games = _RunningGames(batch_spec)
    batch, seat_of_a = running_games.batch, batch_spec.games["seat_of_a"]
    yielded_at = time.monotonic()
    try:
        batch.begin(batch.all_games, batch_spec.games["seed"])
        running = np.flatnonzero(~running_games.over)
        while len(running):
            a_moves = batch.states["player"][running] == seat_of_a[running]
            a_moves |= a is b  # one call for both seats
            for agent, games in ((a, running[a_moves]), (b, running[~a_moves])):
                if len(games):
                    running_games.play(agent, games)
            running = running[~running_games.over[running]]
            if time.monotonic() - yielded_at > SECONDS:
                yield from running_games.pop_finished()
                yielded_at = time.monotonic()
        yield from running_games.pop_finished()
    except (Exception, KeyboardInterrupt, SystemExit):
        yield from running_games.pop_finished()
        raise


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, so that a caller processes a yielded value whole."""
    handler, received = signal.getsignal(signal.SIGINT), []
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        handler(signal.SIGINT, None)


class _RunningGames:
    """The games of a batch while they are played.

    Attributes:
        batch: their positions.
    """

    def __init__(self, batch_spec: GameBatchSpec) -> None:
        boards = batch_spec.boards
        self.batch = Batch(len(batch_spec.numbers), boards, autoreset=False, observation=None)
        self.batch.episode_info["board"] = batch_spec.board_index
        self._spec = batch_spec
        self._actions = np.full((len(self.batch), 256), -1, np.int8)
        self._yielded = np.zeros(len(self.batch), np.bool_)
        self._forfeits: Forfeits = {}  # by index in the batch

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Which games have finished: bool (k,)."""
        over = self.batch.over
        over[list(self._forfeits)] = True
        return over

    def play(self, agent: Agent, games: Numbers) -> None:
        """Play one decision of an agent in each of the given games."""
        at = self.batch.episode_info["decisions"][games]
        self._actions = pad_columns(self._actions, int(at.max()) + 1)
        if isinstance(agent, ProgramAgent):
            moves = self._moves_or_forfeits(agent, games)
            played = moves >= 0
            games, at, moves = games[played], at[played], moves[played]
        else:
            try:
                with single_thread():
                    arguments = self.batch.act_arguments(games)
                chosen = agent.act(*arguments)
                with single_thread():
                    moves, wrong = self.batch.check_moves(games, chosen)
            except (Exception, SystemExit) as error:
                raise AgentFailed(self._failure(agent, games, error)) from error
            if wrong.any():
                game, move = (int(x[wrong.argmax()]) for x in (games, moves))
                name = f" ({LABELS[move]})" if 0 <= move < N_ACTIONS else ""
                text = f"illegal action {move}{name}: {self._legal(game)}"
                raise IllegalMove(f"{self._place(agent, game)}: {text}")
        with single_thread():
            advance_checked(self.batch, games, moves)
        self._actions[games, at] = moves

    def _moves_or_forfeits(self, agent: ProgramAgent, games: Numbers) -> Numbers:
        """Return the legal actions of an agent, -1 in the games that it forfeits by failing."""
        moves = np.full(len(games), -1)
        for i, game in enumerate(games.tolist()):
            try:
                moves[i] = agent.act(*self.batch.act_arguments(games[i : i + 1]))[0]
            except ProcessFailure as failure:
                seat = int(self.batch.states["player"][game])
                self._forfeits[game] = Forfeit(seat, failure.reason, failure.detail)
            except AgentError as error:  # the program cannot be started
                raise AgentFailed(str(error)) from error
        return moves

    def _failure(self, agent: Agent, games: Numbers, error: BaseException) -> str:
        """Return a message about an error; to find its game, ask the agent about each alone."""
        for game in games.tolist():
            alone = error if len(games) == 1 else self._error_alone(agent, game)
            if alone is not None:
                return f"{self._place(agent, game)}: {format_error(alone)}: {self._legal(game)}"
        asked = f"asked about {len(games)} games at once"
        return f"agent {repr_short(agent.spec)}: {asked}: {format_error(error)}"

    def _error_alone(self, agent: Agent, game: int) -> BaseException | None:
        one = np.array([game])
        try:
            self.batch.check_moves(one, agent.act(*self.batch.act_arguments(one)))
        except (Exception, SystemExit) as error:
            return error
        return None

    def _place(self, agent: Agent, game: int) -> str:
        number, total = self._spec.numbers[game] + 1, self._spec.total
        place = f"game {number} of {total}, seed {self._spec.games['seed'][game]}"
        seat, decision = (
            self.batch.states["player"][game],
            self.batch.episode_info["decisions"][game],
        )
        return f"agent {repr_short(agent.spec)}: {place}, seat {seat}, decision {decision}"

    def _legal(self, game: int) -> str:
        legal = actions_of(int(self.batch.legal[game]))
        return "legal are " + ", ".join(f"{LABELS[action]} ({action})" for action in legal)

    def pop_finished(self) -> Iterator[FinishedGames]:
        """Yield the finished games that were not yielded before, if there are any.

        A game is not finished where Ctrl-C came before its last action was stored.
        """
        stored = (self._actions >= 0).sum(axis=1) == self.batch.episode_info["decisions"]
        indices = np.flatnonzero(self.over & stored & ~self._yielded)
        if len(indices):
            finished = self._finished(indices)
            with interrupts_deferred():
                yield finished
                self._yielded[indices] = True

    def _finished(self, indices: Numbers) -> FinishedGames:
        spec, decisions = self._spec, self.batch.episode_info["decisions"][indices]
        games, numbers = spec.games[indices], spec.numbers[indices]
        board_index = spec.board_index[indices]
        actions = self._actions[indices, : int(decisions.max())]
        games["decisions"] = decisions
        store_ends(games, self.batch.boards, board_index, copy_rows(self.batch.states, indices))
        events = None
        if spec.with_events or spec.with_luck:
            events = self._replay(games, board_index, actions)
        pairs = zip(numbers.tolist(), indices.tolist(), strict=True)
        forfeits = {n: self._forfeits[i] for n, i in pairs if i in self._forfeits}
        mark_forfeits(games, numbers, forfeits)
        return FinishedGames(
            *(numbers, games, actions, events if spec.with_events else None, forfeits)
        )

    def _replay(
        self, games: npt.NDArray[np.void], board_index: Numbers, actions: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.int16]:
        """Replay games once: store their luck, return their events.

        A replay takes some microseconds a game; without it every batch would have to keep a log.
        """
        events = np.full((len(games), 0), NO_ACTION, np.int16)
        for some, played in replay_chunks(self.batch.pool, games["seed"], actions, board_index):
            found = played.events_by_game
            events = pad_columns(events, found.shape[1])
            events[some, : found.shape[1]] = found
            if self._spec.with_luck:
                store_luck(games, some, played)
        return events


@contextmanager
def naming_agent(agent: Agent) -> Iterator[None]:
    """Turn errors of an agent's code in the block into `AgentFailed` with the agent's name."""
    try:
        yield
    except (AgentFailed, IllegalMove, OSError):
        raise
    except (Exception, SystemExit) as error:
        text = str_short(" ".join(str(error).split()), 200)
        raise AgentFailed(
            f"agent {repr_short(agent.spec)}: {type(error).__name__}: {text}"
        ) from error
