"""Matches: paired games between agents, played in large batches by any executor.

The two games of a pair have the same seed with seats swapped, so that neither dice nor seat favour
an agent. The seeds are derived in a domain of their own: no agent has trained on them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.agents.content import files_of_agents
from tokaido_env.agents.registry import as_agent, as_agents, cost_of, sha256_of
from tokaido_env.arena.executors.base import (
    CallTask,
    Executor,
    ProcessExecutor,
    SerialExecutor,
    chunked,
    split_work,
    task_agent,
)
from tokaido_env.arena.game_runner import (
    FinishedGames,
    Forfeits,
    GameBatchSpec,
    pad_columns,
    play_games,
)
from tokaido_env.arena.match import GAME, MAX_GAMES, Match, match_seed
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.rng import arena_seed
from tokaido_env.record import Files

BATCH_SIZE = 4096  # games at once
_SEARCHES = 100_000  # simulations a decision times games of a task of a worker: about a second

OnProgress = Callable[[int], None]
"""Called with each number of newly finished games."""

Seeds = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def play_match(
    a: object,
    b: object,
    games: int,
    seed: int,
    board: Boards = "shikoku",
    *,
    executor: Executor | None = None,
) -> Match:
    """Play paired games between two agents.

    Args:
        a: one agent: a spec string, an `Agent`, or an object with `act` or `choose`.
        b: the other; two objects are two agents, named `Net` and `Net 2` if both are `Net`.
        games: how many, even and positive.
        seed: of the match, an integer from 0; it gives any two agents the same dice and draws.
        board: a name, a path, a `Board`, or a pool, from which the seed of each pair draws.
        executor: runs the games; None chooses one (`games_as_completed`): an agent of `make` with
            `choose` is then made again in other processes, without your later changes.

    Raises:
        IllegalMove: if an agent chose an illegal action, naming it, the game and the decision.
        AgentFailed: if an agent failed in another way, naming the same.
    """
    one, other = as_agents(a, b)
    match_state = MatchState(one.spec, other.spec, games, seed, board)
    for _ in games_as_completed(match_state, one, other, executor=executor):
        pass  # each game is stored
    return match_state.to_match()


class MatchState:
    """The games of a match, finished or still to be played.

    Game number 2 p + s is the game of pair p with seats swapped s times, 0 or 1.

    Args:
        a: spec of one agent.
        b: spec of the other.
        games: number of games, even and positive.
        seed: of the match.
        board: a board or a pool; of a pool the seed of each pair draws its board.

    Attributes:
        a: spec of one agent.
        b: spec of the other.
        pool: the boards; `games["board"]` are indices into it.
        games: `GAME` (games,); unfinished ones have a seed, a board and a seat only.
        actions: int8 (games, longest), as in `Match`; -1 throughout for unfinished games.
        forfeits: of the forfeited games, by number.
        files: of the agents, by default for names that are specs.
        with_events: whether finished games come with their events, for records.
        with_luck: whether the luck of the games is computed.
    """

    with_events = False
    with_luck = False

    def __init__(self, a: str, b: str, games: int, seed: int, board: Boards) -> None:
        if not 2 <= games <= MAX_GAMES or games % 2:
            raise ValueError(
                f"games: expected an even number from 2 to {MAX_GAMES:,} (each pair swaps seats), "
                f"got {games}"
            )
        seed = check_seed(seed)
        pool = BoardPool.load(board)
        seeds = pair_seeds(seed, games // 2)
        self._set_pairs(a, b, pool, seeds, pool.indices_of_seeds(seeds))

    @classmethod
    def from_pairs(
        cls, a: str, b: str, pool: BoardPool, seeds: Seeds, board_index: npt.NDArray[np.int64]
    ) -> MatchState:
        """Return a match of pairs with given seeds and boards.

        Args:
            a: spec of one agent.
            b: spec of the other.
            pool: the boards.
            seeds: int64 (pairs,).
            board_index: int64 (pairs,), the index of the board of each pair.
        """
        match_state = cls.__new__(cls)
        match_state._set_pairs(a, b, pool, seeds, board_index)
        return match_state

    @classmethod
    def for_boards(
        cls, a: str, b: str, pool: BoardPool, pairs: int, seed: int, *names: str
    ) -> MatchState:
        """Return a match with the same number of pairs on each board, board after board.

        The seeds on a board do not depend on the other boards: more boards only add games.

        Args:
            a: spec of one agent.
            b: spec of the other.
            pool: the boards.
            pairs: on each board.
            seed: with `names` and the board, it determines the seeds of the games.
            names: of the measurement.
        """
        boards = pool.names.tolist()
        seeds = [pair_seeds(match_seed(seed, *names, board), pairs) for board in boards]
        board_index = np.repeat(np.arange(len(pool)), pairs)
        return cls.from_pairs(a, b, pool, np.concatenate(seeds), board_index)

    def _set_pairs(
        self, a: str, b: str, pool: BoardPool, seeds: Seeds, board_index: npt.NDArray[np.int64]
    ) -> None:
        self.a, self.b, self.pool = a, b, pool
        seats = np.arange(2 * len(seeds)) % 2
        self.games = np.zeros(len(seats), GAME)
        self.games["seed"], self.games["seat_of_a"] = np.repeat(seeds, 2), seats
        self.games["board"] = np.repeat(board_index, 2)
        self.actions = np.full((len(self.games), 0), -1, np.int8)
        self.forfeits: Forfeits = {}
        self.files: Files = {spec: found for spec in (a, b) if (found := sha256_of(spec))}

    def __len__(self) -> int:
        return len(self.games)

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which games are finished, by their numbers: bool (games,)."""
        return np.asarray((self.games["decisions"] > 0) | (self.games["forfeit"] > 0))

    def add(self, finished: FinishedGames) -> None:
        """Store finished games in the arrays, by their numbers."""
        numbers, actions = finished.numbers, finished.actions
        self.actions = pad_columns(self.actions, actions.shape[1])
        self.actions[numbers, : actions.shape[1]] = actions
        self.games[numbers] = finished.games
        self.forfeits |= finished.forfeits

    def to_match(self, games: int | None = None) -> Match:
        """Return the pairs with both games finished, of all or the first `games`, as a match."""
        pairs = self.finished[:games:2] & self.finished[1:games:2]
        played = self.games[:games].reshape(-1, 2)[pairs]
        longest = int(played["decisions"].max(initial=0))
        actions = self.actions[:games].reshape(len(pairs), 2, -1)[pairs, :, :longest]
        return Match(self.a, self.b, played, actions)


def files_of_matches(match_states: Iterable[MatchState]) -> Files:
    """Return the SHA-256 of the files of the agents of some matches, by `NAME=SPEC` or spec."""
    return {typed: sha256 for state in match_states for typed, sha256 in state.files.items()}


def games_as_completed(
    match_state: MatchState,
    a: Agent,
    b: Agent,
    *,
    games: int | None = None,
    executor: Executor | None = None,
) -> Iterator[FinishedGames]:
    """Play the unfinished games of a match; yield each when it is finished and stored.

    If an agent fails or Ctrl-C comes, the games that have finished until then are stored and
    yielded. Ctrl-C waits until the caller has processed the yielded games.

    Args:
        match_state: the match.
        a: the agent `match_state.a`.
        b: the agent `match_state.b`.
        games: play only this number of games from the start of the match.
        executor: runs the games; all executors give the same games. None: this process, or one
            process for each processor if an agent plays one game at a time, which batches do not
            speed up. Other processes make agents from their `source`; one without plays here.

    Raises:
        AgentError: if other processes cannot make an agent.
        IllegalMove: if an agent chose an illegal action, naming it, the game and the decision.
        AgentFailed: if an agent failed in another way, naming the same.
    """
    a, b = as_agent(a), as_agent(b)
    if not match_state.finished.any():  # a file may have changed since its agent was made
        made = files_of_agents((a, b))
        match_state.files = {spec: made.get(spec, x) for spec, x in match_state.files.items()}
    with executor_for(a, b, executor) as chosen:
        for _, finished in chosen.map(_tasks(match_state, a, b, games, chosen)):
            match_state.add(finished)
            yield finished


def executor_for(
    a: Agent, b: Agent, executor: Executor | None = None
) -> AbstractContextManager[Executor]:
    """Return a context manager of `executor`, or of a temporary one that suits two agents."""
    if executor is not None:
        return nullcontext(executor)
    is_daemon = multiprocessing.current_process().daemon  # which may not start processes
    stays = is_daemon or (a.batched and b.batched) or not (a.source and b.source)
    return SerialExecutor() if stays else ProcessExecutor()


def _tasks(
    match_state: MatchState, a: Agent, b: Agent, games: int | None, executor: Executor
) -> list[CallTask]:
    """Split the unfinished games among the first `games` into tasks, a batch each."""
    missing = np.flatnonzero(~match_state.finished[:games])
    at_once = min(BATCH_SIZE, a.games_at_once, b.games_at_once)
    if executor.workers > 1:  # a stop loses the tasks that run
        cost = max(cost_of(a.source), cost_of(b.source), 1)
        at_once = min(at_once, max(_SEARCHES // cost, 8) if a.batched and b.batched else 8)
    agents, total = (task_agent(a, executor), task_agent(b, executor)), len(match_state)
    tasks = []
    for part in split_work(missing, executor.workers):
        for numbers in chunked(part, at_once):
            played = match_state.games[numbers]
            used, board_index = np.unique(played["board"], return_inverse=True)
            boards = [match_state.pool[board] for board in used.tolist()]
            spec = GameBatchSpec(
                *(numbers, played, boards, board_index, total),
                *(match_state.with_events, match_state.with_luck),
            )
            text = f"game {numbers[0] + 1} of {total} and {len(numbers) - 1} more"
            tasks.append(CallTask(play_games, agents, (spec,), text))
    return tasks


def pair_seeds(seed: int, pairs: int) -> Seeds:
    """Return the seeds of the pairs of a match with a seed: int64 (pairs,)."""
    return np.array([arena_seed(seed, pair) for pair in range(pairs)], np.int64)
