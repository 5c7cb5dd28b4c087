"""Executor task that plays self-play games and returns searched positions as training samples.

Games are played to their end: dropping long games would bias the samples towards short ones. A
share of their decisions is searched, and these become samples; the network alone plays the others,
so that the same time gives positions of more games (expert iteration; Anthony et al. 2017).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.inference import choose_actions, evaluate_all
from tokaido_env.agents.search import PolicySearchAgent, SearchResult, search
from tokaido_env.agents.workspaces import PositionBatch
from tokaido_env.batch import Batch, advance_checked
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.state import copy_rows
from tokaido_env.features.network_inputs import apply_actions
from tokaido_env.learn.replay_buffer import ReplayBuffer, Samples
from tokaido_env.observers import masks

_TEMPERATURE = 0.25  # of the logits at decisions without a search; not tuned


class SelfPlayGames(NamedTuple):
    """Self-play games of a search.

    Attributes:
        pool: the boards; a game's seed chooses its board.
        games: number of games.
        seed: of the games and of the exploration.
        visit_sampling: share of actions drawn in proportion to visit counts.
        uniform_sampling: share of actions drawn uniformly from the legal ones; both shares are at
            most 1 together. All other actions are the search's choice.
        search_share: share of the decisions that are searched.
        result_weight: share of the game's result in the value targets; the rest is the search's
            value.
    """

    pool: BoardPool
    games: int
    seed: int
    visit_sampling: float
    uniform_sampling: float
    search_share: float = 1.0
    result_weight: float = 0.5

    def samples(self, agent: PolicySearchAgent) -> Samples:
        """Play the games to their end; return their samples in the order of play.

        Args:
            agent: plays both seats.
        """
        batch = Batch(self.games, self.pool, observation=None, autoreset=False, copy=False)
        batch.reset(seed=self.seed)
        rng = np.random.Generator(np.random.PCG64(self.seed))
        buffer = ReplayBuffer(self.result_weight)
        running = np.flatnonzero(~batch.over)
        while len(running):
            positions = _positions(batch, running)
            keys, which = batch.keys(running), batch.episode_info["board"][running]
            actions = np.empty(len(running), np.int64)
            logits, _ = evaluate_all(
                agent.network, positions.boards, positions.states, positions.legal
            )
            choose_actions(actions, logits, positions.legal, keys, _TEMPERATURE)
            rows = np.flatnonzero(rng.random(len(running)) < self.search_share)
            if len(rows):
                some = positions.part(rows)
                found = search(agent.network, agent.config, some, keys[rows])
                actions[rows] = self._explore(found, some.legal, rng)
                self._record(buffer, some, found, actions[rows], which[rows], running[rows])
            advance_checked(batch, running, actions)
            running = running[~batch.over[running]]
        return buffer.samples(batch.rewards(batch.all_games)[:, 0])

    def _record(
        self,
        buffer: ReplayBuffer,
        positions: PositionBatch,
        found: SearchResult,
        actions: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
        games: npt.NDArray[np.int64],
    ) -> None:
        """Add searched positions, and the chance nodes after their actions."""
        states, legal = positions.states, positions.legal
        k = np.flatnonzero(legal & (legal - np.uint64(1)))
        seats = states["player"]
        own = copy_rows(states, k), found.values[k], seats[k], which[k], games[k]
        buffer.add(*own, found.visits[k])
        after = copy_rows(states)
        viewers = apply_actions(self.pool.records, which.astype(np.int64), after, actions)
        k = np.flatnonzero(viewers >= 0)
        # The search's value is that of its own action.
        values = np.where(actions == found.actions, found.values, np.nan)
        buffer.add(copy_rows(after, k), values[k], viewers[k], which[k], games[k])

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


def selfplay_task(agent: PolicySearchAgent, games: SelfPlayGames) -> Iterator[Samples]:
    """Play games in a task of an executor; yield their samples as its one result."""
    yield games.samples(agent)


def _positions(batch: Batch, games: npt.NDArray[np.int64]) -> PositionBatch:
    """Return the positions of some games of a batch."""
    boards, states = batch.boards_of(games), copy_rows(batch.states, games)
    return PositionBatch(boards, states, batch.legal[games])


def sample_rows(
    weights: npt.NDArray[Any], number: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return an index per row, drawn in proportion to the row's weights: int64 (n,).

    Args:
        weights: (n, m), from 0; each row has a positive one.
        number: float64 (n,), a number in [0, 1) for each row.
    """
    bounds = np.cumsum(weights, axis=1, dtype=np.float64)
    return np.asarray((bounds <= (number * bounds[:, -1])[:, None]).sum(axis=1))
