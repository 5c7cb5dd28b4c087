"""Executor task that plays whole games of search against itself and returns training samples.

Games are played to their end: dropping long games would bias the samples towards short ones. With
playout cap randomization (Wu 2019, "Accelerating self-play learning in Go") only some decisions
get a full search, and train the policy; the others get few simulations, so that the same time
makes more games for the value.
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
    """Self-play games of a search, as an executor task with one result, their `Samples`.

    Attributes:
        search: spec of the search agent.
        sha256: of its policy file, as `policy_sha256`.
        pool: the boards; a game's seed chooses its board.
        games: number of games.
        seed: of the first game, with the others following, and of the exploration.
        visit_sampling: share of actions drawn in proportion to visit counts.
        uniform_sampling: share of actions drawn uniformly from the legal ones.
        full_search_share: share of decisions with a full search, if `cheap_sims` is not 0.
        cheap_sims: playout cap of the other decisions; 0: full searches only. A full search
            follows if the cheap one prefers another action than the network.
    """

    search: str
    sha256: str
    pool: BoardPool
    games: int
    seed: int
    visit_sampling: float
    uniform_sampling: float
    full_search_share: float = 1.0
    cheap_sims: int = 0

    def run(self, make: AgentFactory) -> Iterator[Samples]:
        """Play the games: see `Task.run`."""
        agent = make(self.search, self.sha256)
        if not isinstance(agent, SearchAgent):
            raise AgentFailed(f"search: expected mcts or policy_search, got {self.search!r}")
        yield self.samples(agent)

    def samples(self, agent: SearchAgent) -> Samples:
        """Play the games; return their samples in the order of play."""
        batch = Batch(self.games, self.pool, observation=None, autoreset=False, copy=False)
        batch.reset(seed=self.seed)
        rng = np.random.Generator(np.random.PCG64(self.seed))
        buffer, rewards = ReplayBuffer(self.games), np.zeros((self.games, 2), np.float32)
        running = np.flatnonzero(~batch.over)
        while len(running):
            boards, states = batch.boards_of(running), copy_rows(batch.states, running)
            legal, keys = batch.legal[running], batch.keys(running)
            positions = PositionBatch(boards, eval_tables_of(boards), states, legal)
            found, is_full = self._search(agent, positions, keys, rng)
            visits = np.where(is_full[:, None], found.visits, 0)
            which = batch.episode_info["board"][running]
            actions = self._explore(found, legal, rng)
            buffer.add(states, legal, visits, found.values, actions, which, running)
            batch.advance(running, actions, check=False)
            over = batch.over[running]
            rewards[running[over]] = batch.rewards(running[over])
            buffer.end(running[over], rewards)
            running = running[~over]
        return buffer.samples()

    def _search(
        self,
        agent: SearchAgent,
        positions: PositionBatch,
        keys: npt.NDArray[np.uint64],
        rng: np.random.Generator,
    ) -> tuple[SearchResult, npt.NDArray[np.bool_]]:
        """Search positions; return the results, and which are of a full search."""
        network, config, model = agent.network, agent.config, agent.opponent
        if not self.cheap_sims:
            found = search(network, config, positions, keys, model)
            return found, np.ones(len(keys), np.bool_)
        is_full = rng.random(len(keys)) < self.full_search_share
        found = search(network, config._replace(sims=self.cheap_sims), positions, keys, model)
        if network is not None:
            logits, _ = evaluate_all(network, positions.boards, positions.states, positions.legal)
            is_full |= found.actions != logits.argmax(axis=1)
        rows = np.flatnonzero(is_full)
        if len(rows):
            full = search(network, config, positions.part(rows), keys[rows], model)
            for column, values in zip(found, full, strict=True):
                np.asarray(column)[rows] = values
        return found, is_full

    def _explore(
        self, found: SearchResult, legal: npt.NDArray[np.uint64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Return the search's actions, int64 (n,), some of them replaced by random ones."""
        kind, number = rng.random((2, len(legal)))
        by_visits = sample_rows(found.visits, number)
        uniform = sample_rows(masks(legal), number)
        is_random = kind < self.visit_sampling + self.uniform_sampling
        actions = np.where(is_random, by_visits, found.actions)
        return np.where(kind < self.uniform_sampling, uniform, actions)

    def __str__(self) -> str:
        return f"{self.games} games of {repr_short(self.search)} against itself, seed {self.seed}"


def sample_rows(
    weights: npt.NDArray[Any], number: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return an index per row, sampled by the row's weights with a number in [0, 1)."""
    bounds = np.cumsum(weights, axis=1, dtype=np.float64)
    return np.asarray((bounds <= (number * bounds[:, -1])[:, None]).sum(axis=1))
