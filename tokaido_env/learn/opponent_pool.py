"""Opponent pool with prioritised fictitious self-play.

The learner plays against itself, its snapshots and other agents. Its games are dealt into equal
slots, game i to slot i % slots. All games of a slot have the same opponent, so that one batch
decides them. Now and then every slot draws a new opponent.

Opponents have names: `latest` is the learner with its newest weights, a number of steps is a
snapshot, anything else is the spec of an agent. Snapshots that win more are drawn more often
(Vinyals et al. 2019, "Grandmaster level in StarCraft II using multi-agent reinforcement learning").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from tokaido_env.core.arguments import MAX_SEED, repr_short
from tokaido_env.decoding import Struct
from tokaido_env.learn.settings import PpoSettings, split_specs

LATEST = "latest"
_SNAPSHOT = r"^[0-9]{1,18}\Z"

# Not tuned.
PRIOR_GAMES = 10.0  # of each opponent, half of them won by the learner
DECAY = 0.9  # of results at each draw, so that old opponents are tried again


class PoolState(Struct, frozen=True):
    """The state of a pool in a checkpoint.

    Attributes:
        snapshots: names of the snapshots; they are file names, so that no other name is accepted.
        slot_opponents: name of the opponent of each slot.
        results: points and games by opponent.
    """

    snapshots: list[Annotated[str, Meta(pattern=_SNAPSHOT)]]
    slot_opponents: list[str]
    results: dict[
        str,
        tuple[Annotated[float, Meta(ge=0, le=MAX_SEED)], Annotated[float, Meta(gt=0, le=MAX_SEED)]],
    ]


class OpponentPool:
    """The learner's opponents, its results against them, and the opponent of each slot.

    Args:
        settings: the run's settings.

    Attributes:
        snapshots: names of the snapshots, oldest first.
        slot_opponents: name of the opponent of each slot.
        same_opponent: bool (games,), whether each game has had one opponent since its start. Only
            such games count as results: a draw changes the opponent of running games.
    """

    def __init__(self, settings: PpoSettings) -> None:
        self._shares = (settings.share_latest, settings.share_past, settings.share_agents)
        self._size = settings.pool_size
        self._agents = split_specs(settings.agents)
        self._results: dict[str, tuple[float, float]] = {}  # points and games, both decayed
        self.snapshots: list[str] = []
        self.slot_opponents = [LATEST] * settings.opponent_slots
        self.same_opponent = np.ones(settings.games, np.bool_)

    def add(self, steps: int) -> str:
        """Add a snapshot of the learner after so many steps; return its name.

        A full pool loses the snapshot with the closest neighbours, the older of equals, never the
        first or the new one: the pool stays spread over the whole training.
        """
        name = f"{steps:09d}"
        self.snapshots.append(name)
        if len(self.snapshots) > self._size:
            del self.snapshots[_most_crowded([int(old) for old in self.snapshots])]
        return name

    def resample(self, rng: np.random.Generator) -> None:
        """Draw the opponents of all slots; an opponent that is drawn again keeps its slots."""
        known = {LATEST, *self.snapshots, *self._agents}
        self._results = {
            name: (DECAY * points, DECAY * games)
            for name, (points, games) in self._results.items()
            if name in known
        }
        names = draw(self.probabilities(), len(self.slot_opponents), rng)
        opponents = _keep_slots(self.slot_opponents, names)
        changed = [new != old for new, old in zip(opponents, self.slot_opponents, strict=True)]
        slot_of_game = np.arange(len(self.same_opponent)) % len(opponents)
        self.same_opponent[np.array(changed)[slot_of_game]] = False
        self.slot_opponents = opponents

    def probabilities(self) -> dict[str, float]:
        """Return the probability of each opponent, summing to 1.

        That of a snapshot is proportional to (1 - p)², where p is the learner's win rate.
        """
        latest, past, agents = self._shares
        hardness = {name: (1 - self.win_rate(name)) ** 2 for name in self.snapshots}
        total = sum(hardness.values())
        found = {LATEST: latest}
        found |= {name: past * hard / total for name, hard in hardness.items()}
        return found | {name: agents / len(self._agents) for name in self._agents}

    def count(self, games: npt.NDArray[np.int64], rewards: npt.NDArray[np.floating]) -> None:
        """Count the results of finished games.

        Args:
            games: int64 (k,), their indices.
            rewards: float (k,), the learner's.
        """
        for game, reward in zip(games.tolist(), rewards.tolist(), strict=True):
            if self.same_opponent[game]:
                name = self.slot_opponents[game % len(self.slot_opponents)]
                points, played = self._results.get(name, (0.0, 0.0))
                self._results[name] = points + (reward + 1) / 2, played + 1
        self.same_opponent[games] = True  # these slots begin their next games

    def win_rate(self, name: str) -> float:
        """Return the learner's mean score against an opponent with the prior; draws are 0.5."""
        points, games = self._results.get(name, (0.0, 0.0))
        return (points + PRIOR_GAMES / 2) / (games + PRIOR_GAMES)

    def win_rates(self) -> dict[str, float]:
        """Return the learner's mean scores without the prior; recent games weigh more.

        Keys are names of opponents, `past` for all snapshots and `agents` for all agents, as far
        as there are games.
        """
        groups = {name: [name] for name in self._results}
        groups |= {"past": self.snapshots, "agents": self._agents}
        rates = {}
        for group, names in groups.items():
            results = [self._results[name] for name in names if name in self._results]
            games = sum(played for _, played in results)
            if games:
                rates[group] = sum(points for points, _ in results) / games
        return rates

    def state(self) -> PoolState:
        """Return all but `same_opponent`, for `restore`."""
        return PoolState(list(self.snapshots), list(self.slot_opponents), dict(self._results))

    def restore(self, state: PoolState) -> None:
        """Restore what `state` of a pool with the same settings returned.

        Raises:
            ValueError: if the state is of other settings, or its results are not possible.
        """
        known, n_slots = (LATEST, *self._agents), len(self.slot_opponents)
        if len(state.slot_opponents) != n_slots:
            raise ValueError(
                f"pool: slot_opponents: expected {n_slots} names, got {len(state.slot_opponents)}"
            )
        for name in state.slot_opponents:
            if name not in known and not re.search(_SNAPSHOT, name):
                expected = " or ".join(["the number of a snapshot", *known])
                raise ValueError(
                    f"pool: slot_opponents: expected {expected}, got {repr_short(name)}"
                )
        if any(points > games for points, games in state.results.values()):
            raise ValueError("pool: results: expected at least as many games as points")
        self.snapshots, self.slot_opponents = list(state.snapshots), list(state.slot_opponents)
        self._results = dict(state.results)


def draw(probabilities: Mapping[str, float], n: int, rng: np.random.Generator) -> list[str]:
    """Draw n names, each as often as n times its probability, rounded down or up.

    Systematic sampling (Madow and Madow 1944): the expected counts are exact.

    Args:
        probabilities: by name, summing to 1.
        n: the number of names.
        rng: one number is drawn from it.
    """
    possible = {name: probability for name, probability in probabilities.items() if probability > 0}
    names, bounds = list(possible), np.cumsum(list(possible.values()))
    points = (rng.random() + np.arange(n)) / n
    # Rounding can make the last bound less than 1.
    drawn = np.minimum(np.searchsorted(bounds, points, side="right"), len(names) - 1)
    return [names[i] for i in drawn]


def _keep_slots(before: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """Return the drawn names in an order that keeps as many slots as possible unchanged."""
    left = Counter(drawn)
    kept = []
    for name in before:
        kept.append(left[name] > 0)
        left[name] -= kept[-1]
    new = left.elements()
    return [name if keeps else next(new) for name, keeps in zip(before, kept, strict=True)]


def _most_crowded(steps: list[int]) -> int:
    """Return the index, neither first nor last, with the smallest gap between its neighbours."""
    return min(range(1, len(steps) - 1), key=lambda i: steps[i + 1] - steps[i - 1])
