"""`GameOpponents`: the opponents of one learner in the games of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.batch import Batch
from tokaido_env.batch_validation import Games
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.state import NO_PLAYER

Opponents = object
"""An agent, a spec string, an object with `act` or `choose`, or a sequence of these."""


class GameOpponents:
    """The opponent of each game: compiled bots play inside the kernel, others in batches.

    Args:
        batch: the games.
        seats: int8 (n,), the learner's seats, which the caller sets.
        opponents: one for all games, or a sequence to repeat over the games.

    Attributes:
        agents: the opponent of each current game.
    """

    def __init__(self, batch: Batch, seats: npt.NDArray[np.int8], opponents: Opponents) -> None:
        self._batch, self._seats = batch, seats
        self._next: dict[int, Agent] = {}  # of the next episode, if it differs
        self.agents: list[Agent] = []
        self.assign(opponents, batch.all_games)
        self.agents = [self._next[game] for game in range(len(batch))]
        self.take(batch.all_games)

    def assign(self, opponents: Opponents, games: Games) -> None:
        """Set the opponents of the next episodes of some games.

        Args:
            opponents: one for all games, or a sequence to repeat over the games.
            games: int64 (k,), indices.

        Raises:
            AgentError: for an unknown spec string, or an object that is no agent.
            ValueError: for no opponents.
        """
        if isinstance(opponents, str) or not isinstance(opponents, Sequence):
            opponents = [opponents]
        if not opponents:
            raise ValueError("opponents: expected at least one, got none")
        by_id = {id(one): as_agent(one) for one in opponents}  # one agent per object
        pool: Any = self._batch.pool
        for agent in by_id.values():
            agent.prepare(pool)
        agents = [by_id[id(one)] for one in opponents]
        # Boards of a list are handed out in turn too: a shift lets every opponent meet every board.
        boards = 1 if pool.drawn else len(pool)
        common = gcd(boards, len(agents))
        for j, game in enumerate(games.tolist()):
            shift = j * common // (boards * len(agents)) % common
            self._next[game] = agents[(j + shift) % len(agents)]

    def take(self, games: Games) -> None:
        """Let the opponents that `assign` has set play from now on in games, int64 (k,)."""
        if self._next:
            for game in games.tolist():
                self.agents[game] = self._next.pop(game, self.agents[game])
            self._group()
        bots = np.full((len(games), 2), NO_BOT, np.int8)
        bots[np.arange(len(games)), 1 - self._seats[games]] = self._bots[games]
        self._batch.set_bots(games, bots)

    def decide(self, games: Games) -> None:
        """Let agents, but no bots, play until the learner decides or a game ends.

        An agent's errors pass through; the moves before them stay played.

        Args:
            games: int64 (k,), indices of games in ascending order.
        """
        states = self._batch.states
        while self._others:
            players = states["player"][games]
            games = games[(players != self._seats[games]) & (players != NO_PLAYER)]
            if not len(games):
                return
            for agent, own_games in self._others:
                due = np.intersect1d(games, own_games, assume_unique=True)
                if len(due):
                    self._batch.decide(agent, due)

    def _group(self) -> None:
        """Set the bot of each game, and the games of each opponent that is no bot."""
        self._bots = np.array([agent.bot for agent in self.agents], np.int8)
        games_of: dict[int, list[int]] = {}
        for game in np.flatnonzero(self._bots == NO_BOT).tolist():
            games_of.setdefault(id(self.agents[game]), []).append(game)
        self._others = [(self.agents[games[0]], np.array(games)) for games in games_of.values()]
