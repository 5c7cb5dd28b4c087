"""Self-play as a task: whole games of a search against itself, noted as samples.

Games are played to their end: what drops games that take long would teach that games are short. A
task may search some decisions in full, for the policy to learn from, and play on by fewer
simulations between them: more games for the value (Wu 2019, "Accelerating self-play learning in
Go").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.inference import PositionBatch, evaluate_all
from tokaido_env.agents.search import SearchAgent, SearchResult, search
from tokaido_env.arena.executors import AgentFactory
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.batch import Batch
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.state import copy_rows
from tokaido_env.learn.replay_buffer import ReplayBuffer, Samples
from tokaido_env.observers import masks


class SelfPlayGames(NamedTuple):
    """Games of a search against itself, a task whose one result is their `Samples`.

    Attributes:
        expert: spec of the search.
        sha256: of its policy file, as `policy_sha256`.
        pool: the boards; that of each game follows from its seed.
        games: how many.
        seed: of the first game, the others follow, and of the other decisions.
        sampled, uniform: shares of decisions drawn by visits, and from all legal actions.
        full: share of decisions that are searched by all simulations, if others are not.
        cheap_sims: simulations for the others, 0 to search all alike. Where so few find another
            action best than the policy does, all are made after all.
    """

    expert: str
    sha256: str
    pool: BoardPool
    games: int
    seed: int
    sampled: float
    uniform: float
    full: float = 1.0
    cheap_sims: int = 0

    def run(self, make: AgentFactory) -> Iterator[Samples]:
        """Play the games: see `Task.run`."""
        expert = make(self.expert, self.sha256)
        if not isinstance(expert, SearchAgent):
            raise AgentFailed(f"expected a search, as mcts or policy_search, got {self.expert!r}")
        yield self.samples(expert)

    def samples(self, expert: SearchAgent) -> Samples:
        """Return the samples of the games, in the order in which they were noted."""
        batch = Batch(self.games, self.pool, observation=None, autoreset=False, copy=False)
        batch.reset(seed=self.seed)
        rng = np.random.Generator(np.random.PCG64(self.seed))
        buffer, rewards = ReplayBuffer(self.games), np.zeros((self.games, 2), np.float32)
        running = np.flatnonzero(~batch.over)
        while len(running):
            boards, states = batch.boards_of(running), copy_rows(batch.states, running)
            legal, keys = batch.legal[running], batch.keys(running)
            positions = PositionBatch(boards, eval_tables_of(boards), states, legal)
            found, is_full = self._searched(expert, positions, keys, rng)
            visits = np.where(is_full[:, None], found.visits, 0)
            which = batch.episode_info["board"][running]
            moves = explored(found.actions, found.visits, legal, rng, self)
            buffer.add(states, legal, visits, found.values, moves, which, running)
            batch.advance(running, moves, check=False)
            over = batch.over[running]
            rewards[running[over]] = batch.rewards(running[over])
            buffer.end(running[over], rewards)
            running = running[~over]
        return buffer.samples()

    def _searched(
        self,
        expert: SearchAgent,
        positions: PositionBatch,
        keys: npt.NDArray[np.uint64],
        rng: np.random.Generator,
    ) -> tuple[SearchResult, npt.NDArray[np.bool_]]:
        """Search positions; return which of them in full (Wu 2019, playout cap randomization)."""
        network, config, theirs = expert.network, expert.config, expert.opponent
        if not self.cheap_sims:
            found = search(network, config, positions, keys, theirs)
            return found, np.ones(len(keys), np.bool_)
        is_full = rng.random(len(keys)) < self.full
        found = search(network, config._replace(sims=self.cheap_sims), positions, keys, theirs)
        if network is not None:
            logits, _ = evaluate_all(network, positions.boards, positions.states, positions.legal)
            is_full |= found.actions != logits.argmax(axis=1)
        rows = np.flatnonzero(is_full)
        if len(rows):
            in_full = search(network, config, positions.part(rows), keys[rows], theirs)
            for column, own in zip(found, in_full, strict=True):
                np.asarray(column)[rows] = own
        return found, is_full

    def __str__(self) -> str:
        return f"{self.games} games of {repr_short(self.expert)} against itself, seed {self.seed}"


def explored(
    actions: npt.NDArray[np.int64],
    visits: npt.NDArray[Any],
    legal: npt.NDArray[np.uint64],
    rng: np.random.Generator,
    task: SelfPlayGames,
) -> npt.NDArray[np.int64]:
    """Replace some of an expert's actions by others, so that games differ.

    Args:
        actions: int64 (n,), of the expert.
        visits: (n, N_ACTIONS), by its search.
        legal: uint64 (n,), the legal actions as bits.
        rng: draws.
        task: tells how many.
    """
    kind, number = rng.random((2, len(actions)))
    by_visits = drawn(visits, number)
    any_legal = drawn(masks(legal), number)
    played = np.where(kind < task.sampled + task.uniform, by_visits, actions)
    return np.where(kind < task.uniform, any_legal, played)


def drawn(weights: npt.NDArray[Any], number: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return for each row an index drawn by the weights with a number from [0, 1)."""
    bounds = np.cumsum(weights, axis=1, dtype=np.float64)
    return np.asarray((bounds <= (number * bounds[:, -1])[:, None]).sum(axis=1))
