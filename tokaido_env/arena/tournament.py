"""Matches: paired games between agents, played as big batches, by any executor.

Each pair is the same luck twice with seats swapped, so that neither dice nor seat favour anyone.
The seeds of the pairs lie in a domain of their own: no agent has trained on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, States, as_agent
from tokaido_env.arena.executors import (
    AgentFactory,
    Executor,
    ProcessExecutor,
    SerialExecutor,
    agent_spec_of,
    chunked,
    split_work,
)
from tokaido_env.arena.game_runner import (
    FinishedGames,
    Forfeits,
    GameBatchSpec,
    Numbers,
    pad_columns,
    play_games,
)
from tokaido_env.arena.match import MAX_GAMES, Match, unplayed_games
from tokaido_env.arena.sandbox import Limits
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import copy_rows

CHUNK = 4096  # games at once

OnProgress = Callable[[int], None]
Seeds = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def play_match(
    a: Agent,
    b: Agent,
    games: int,
    seed: int,
    board: Boards = "shikoku",
    *,
    progress: OnProgress = lambda games: None,
    executor: Executor | None = None,
) -> Match:
    """Play paired games between two agents.

    Args:
        a: one agent.
        b: the other.
        games: how many, even and positive.
        seed: of the match, 0 to 2**53 - 1; the same seed gives the same games to any two agents.
        board: as for `Game`; of a pool each pair is played on the board that its seed draws.
        progress: called with the number of games finished now and then.
        executor: as for `play`.

    Raises:
        IllegalMove, AgentFailed: if an agent failed, naming it, the game and the decision.
    """
    a, b = as_agent(a), as_agent(b)
    match_state = MatchState(a.spec, b.spec, games, seed, board)
    play_remaining(match_state, a, b, progress=progress, executor=executor)
    return match_state.to_match()


class MatchState:
    """The games of a match as they are filled in while it is played.

    Games have numbers: number 2 p + s is pair p with seats swapped s times, 0 or 1.

    Args:
        a: spec of one agent.
        b: spec of the other.
        games: how many there will be, even and positive.
        seed: of the match.
        board: as for `play_match`.

    Attributes:
        a: spec of one agent.
        b: spec of the other.
        pool: the boards; `games["board"]` are indices into it.
        games: `GAME` (games,); of those that are not finished only seed, board and seat.
        actions: int8 (games, longest), as in `Match`; -1 throughout where not finished.
        forfeits: of those that were forfeited, by number.
        states: `STATE` (games,), the positions that they begin from; None: the set-up.
        with_events: whether whoever plays hands over the events of games too, for records.
        with_luck: whether whoever plays counts the luck of games.
    """

    states: States | None = None
    with_events = False
    with_luck = False

    def __init__(self, a: str, b: str, games: int, seed: int, board: Boards) -> None:
        if not 2 <= games <= MAX_GAMES or games % 2:
            raise ValueError(
                f"games: expected an even number from 2 to {MAX_GAMES:,}, seats are swapped; "
                f"got {games}"
            )
        check_seed(seed)
        pool = BoardPool.load(board)
        seeds = pair_seeds(seed, games // 2)
        self._begin(a, b, pool, seeds, pool.indices(seeds))

    @classmethod
    def from_pairs(
        cls,
        a: str,
        b: str,
        pool: BoardPool,
        seeds: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
    ) -> MatchState:
        """Return a match of pairs with given seeds and boards.

        Args:
            a: spec of one agent.
            b: spec of the other.
            pool: the boards.
            seeds: int64 (pairs,).
            which: int64 (pairs,), indices into the pool.
        """
        match_state = cls.__new__(cls)
        match_state._begin(a, b, pool, seeds, which)
        return match_state

    @classmethod
    def for_selfplay(
        cls, agent: str, board: Board, seeds: Seeds, states: States | None = None
    ) -> MatchState:
        """Make the match_state of games of an agent against itself, each with luck of its own.

        A pair of such games with swapped seats would be the same game twice.

        Args:
            agent: spec of who plays both seats.
            board: of all games.
            seeds: int64 (games,).
            states: `STATE` (games,), to begin from; None: the set-up.
        """
        match_state = cls.from_pairs(agent, agent, BoardPool.load(board), seeds[:0], seeds[:0])
        match_state.games, match_state.states = unplayed_games(seeds, 0, 0), states
        match_state.actions = np.full((len(seeds), 0), -1, np.int8)
        return match_state

    @classmethod
    def for_boards(
        cls, a: str, b: str, pool: BoardPool, pairs: int, seed_of: Callable[[str], int]
    ) -> MatchState:
        """Return a match with as many pairs on each board, board after board.

        Args:
            a: spec of one agent.
            b: spec of the other.
            pool: the boards.
            pairs: on each of them.
            seed_of: returns the seed of the games on a board, by its name.
        """
        seeds = [pair_seeds(seed_of(name), pairs) for name in pool.names.tolist()]
        which = np.repeat(np.arange(len(pool)), pairs)
        return cls.from_pairs(a, b, pool, np.concatenate(seeds), which)

    def _begin(
        self,
        a: str,
        b: str,
        pool: BoardPool,
        seeds: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
    ) -> None:
        self.a, self.b, self.pool = a, b, pool
        seats = np.arange(2 * len(seeds)) % 2
        self.games = unplayed_games(np.repeat(seeds, 2), seats, np.repeat(which, 2))
        self.actions = np.full((len(self.games), 0), -1, np.int8)
        self.forfeits: Forfeits = {}

    def __len__(self) -> int:
        return len(self.games)

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which games are finished: bool (games,)."""
        return np.asarray((self.games["decisions"] > 0) | (self.games["forfeit"] > 0))

    def put(self, finished: FinishedGames) -> None:
        """Fill in finished games."""
        numbers, actions = finished.numbers, finished.actions
        self.actions = pad_columns(self.actions, actions.shape[1])
        self.actions[numbers, : actions.shape[1]] = actions
        self.games[numbers] = finished.games
        self.forfeits |= finished.forfeits

    def boards_of(self, numbers: Numbers) -> Sequence[Board]:
        """Return the boards of some games: one if there is but one in the pool, else of each."""
        if len(self.pool) == 1:
            return [self.pool[0]]
        return [self.pool[which] for which in self.games["board"][numbers].tolist()]

    def to_match(self, games: int | None = None) -> Match:
        """Return the match of all finished pairs, among the first `games` if given."""
        pairs = self.finished[:games:2] & self.finished[1:games:2]
        played = self.games[:games].reshape(-1, 2)[pairs]
        longest = int(played["decisions"].max(initial=0))
        actions = self.actions[:games].reshape(len(pairs), 2, -1)[pairs, :, :longest]
        return Match(self.a, self.b, played, actions)


def play_remaining(
    match_state: MatchState,
    a: Agent,
    b: Agent,
    *,
    games: int | None = None,
    progress: OnProgress = lambda games: None,
    executor: Executor | None = None,
) -> None:
    """Play the games of a match_state that are not finished, and fill them in.

    When an agent fails or Ctrl-C comes, what was finished until then is filled in.

    Args:
        match_state: of the match.
        a: the agent `match_state.a`.
        b: the agent `match_state.b`.
        games: play only the first so many.
        progress: called with the number of games finished now and then.
        executor: runs the games, which are the same by any. None: this process, or one for each
            processor if an agent plays one game at a time, which no batch makes faster. Other
            processes make the agents again from their specs.

    Raises:
        IllegalMove, AgentFailed: if an agent failed, naming it, the game and the decision.
    """
    for finished in games_as_completed(match_state, a, b, games=games, executor=executor):
        progress(len(finished.numbers))


def games_as_completed(
    match_state: MatchState,
    a: Agent,
    b: Agent,
    *,
    games: int | None = None,
    executor: Executor | None = None,
) -> Iterator[FinishedGames]:
    """Play as `play` does; yield games as they have finished and are filled in, each once.

    Ctrl-C waits until what was yielded is done with.
    """
    a, b = as_agent(a), as_agent(b)
    with executor_for(a, b, executor) as chosen:
        for _, finished in chosen.map(_tasks(match_state, a, b, games, chosen.workers), (a, b)):
            new = finished.part(~match_state.finished[finished.numbers])
            if len(new.numbers):
                match_state.put(new)
                yield new


def executor_for(
    a: Agent, b: Agent, executor: Executor | None = None
) -> AbstractContextManager[Executor]:
    """Give the chosen executor, or one that suits two agents, which is shut down in the end."""
    if executor is not None:
        return nullcontext(executor)
    return SerialExecutor() if a.batched and b.batched else ProcessExecutor()


class GamesTask(NamedTuple):
    """Games of a match, as a task for an executor: its results are `Finished`.

    Attributes:
        agents: the arguments of `AgentFactory` for each of the two.
        jobs: the games, those of each played at once.
    """

    agents: tuple[tuple[str, str, Limits | None], ...]
    jobs: tuple[GameBatchSpec, ...]

    def run(self, make: AgentFactory) -> Iterator[FinishedGames]:
        """Play the games: see `Task.run`."""
        a, b = (make(*agent) for agent in self.agents)
        for job in self.jobs:
            yield from play_games(a, b, job)

    def __str__(self) -> str:
        first, more = self.jobs[0], sum(len(job.numbers) for job in self.jobs) - 1
        return f"game {first.numbers[0] + 1} of {first.total} and {more} more"


def _tasks(
    match_state: MatchState, a: Agent, b: Agent, games: int | None, workers: int
) -> list[GamesTask]:
    """Split the unfinished games among the first `games` into tasks."""
    missing = np.flatnonzero(~match_state.finished[:games])
    at_once = max(min(CHUNK, a.games_at_once, b.games_at_once), 1)
    agents = agent_spec_of(a), agent_spec_of(b)
    return [
        GamesTask(agents, tuple(_job(match_state, part) for part in chunked(some, at_once)))
        for some in split_work(missing, workers)
    ]


def _job(match_state: MatchState, numbers: Numbers) -> GameBatchSpec:
    games = match_state.games[numbers]
    used, which = np.unique(games["board"], return_inverse=True)
    boards = [match_state.pool[number] for number in used.tolist()]
    states = None if match_state.states is None else copy_rows(match_state.states, numbers)
    return GameBatchSpec(
        numbers,
        games,
        boards,
        which,
        len(match_state),
        states,
        match_state.with_events,
        match_state.with_luck,
    )


def play_selfplay(
    agent: Agent,
    board: Board,
    seeds: Seeds,
    progress: OnProgress = lambda games: None,
    executor: Executor | None = None,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int8]]:
    """Play whole games of an agent against itself.

    Args:
        agent: plays both seats.
        board: of all games.
        seeds: int64 (n,), of the games, one or more.
        progress: called with the number of games finished now and then.
        executor: runs the games, which are the same by any; None: this process.

    Returns:
        `GAME` (n,), and int8 (n, longest), the decisions of each game, -1 after its last.
    """
    match_state = MatchState.for_selfplay(agent.spec, board, seeds)
    play_remaining(
        match_state, agent, agent, progress=progress, executor=executor or SerialExecutor()
    )
    return match_state.games, match_state.actions


def rollout_positions(
    agent: Agent,
    board: Board,
    states: States,
    seeds: Seeds,
    progress: OnProgress = lambda games: None,
    executor: Executor | None = None,
) -> tuple[Floats, Floats]:
    """Let an agent play positions to the end, on both seats: arguments as for `play_alone`.

    Args:
        states: `STATE` (n,), to begin from.
        seeds: int64 (n,), of the luck from there on.

    Returns:
        The results of player_0, 1, 0.5 or 0, and its lead in points: float64 (n,) each.
    """
    match_state = MatchState.for_selfplay(agent.spec, board, seeds, states)
    play_remaining(
        match_state, agent, agent, progress=progress, executor=executor or SerialExecutor()
    )
    points = match_state.games["points"].sum(axis=2, dtype=np.float64)
    return match_state.games["result"], points[:, 0] - points[:, 1]


def pair_seeds(seed: int, pairs: int) -> npt.NDArray[np.int64]:
    """Return the seeds of the pairs of a match, int64 (pairs,)."""
    return np.array([arena_seed(seed, pair) for pair in range(pairs)], np.int64)
