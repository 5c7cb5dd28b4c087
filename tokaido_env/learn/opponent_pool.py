"""Whom the learner meets: itself, what it once was, and agents it should learn to beat.

The games are dealt into equal slots, game i to slot i % slots, and each slot has one opponent at a
time, so that its games are decided in one batch. Now and then the slots are seated anew. An
opponent is known by its name: `latest` is the learner as it was at its newest update, a number of
steps is a snapshot of it, anything else is the spec of an agent.

Among snapshots the hard ones are met more often: prioritised fictitious self-play (Vinyals et al.
2019, "Grandmaster level in StarCraft II using multi-agent reinforcement learning").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import MAX_SEED, repr_short
from tokaido_env.learn.settings import PpoSettings, split_specs

LATEST = "latest"
_SNAPSHOT = re.compile("[0-9]{1,18}")
PRIOR_GAMES = 10.0  # as if so many games, half of them won, had been played against everyone
FORGET = 0.9  # what results still weigh after a seating: who is not met for long is tried again


class OpponentPool:
    """Opponents, how the learner did against them, and who sits where.

    Args:
        settings: of the run.

    Attributes:
        snapshots: names of the frozen copies, oldest first.
        seated: name of the opponent of each slot.
        whole: bool (games,), whether a game has met nobody but the opponent it meets now. Only
            such games count as results: those that run while their slot is seated anew do not.
    """

    def __init__(self, settings: PpoSettings) -> None:
        self._shares = (settings.share_latest, settings.share_past, settings.share_agents)
        self._size = settings.pool_size
        self._agents = split_specs(settings.agents)
        self._results: dict[str, tuple[float, float]] = {}  # points and games, both forgotten
        self.snapshots: list[str] = []
        self.seated = [LATEST] * settings.opponent_slots
        self.whole = np.ones(settings.games, np.bool_)

    def add(self, steps: int) -> str:
        """Add a snapshot of the learner after so many steps; return its name.

        One too many for the pool, and another goes: the one whose neighbours are closest to each
        other, the older of equals, never the first or the new one. So the pool stays spread over
        the whole of training.
        """
        name = f"{steps:09d}"
        self.snapshots.append(name)
        if len(self.snapshots) > self._size:
            del self.snapshots[_crowded([int(old) for old in self.snapshots])]
        return name

    def seat(self, rng: np.random.Generator) -> None:
        """Draw who sits in each slot; whoever stays keeps a slot."""
        known = {LATEST, *self.snapshots, *self._agents}
        self._results = {
            name: (FORGET * points, FORGET * games)
            for name, (points, games) in self._results.items()
            if name in known
        }
        seats = _keeping_places(self.seated, draw(self.chances(), len(self.seated), rng))
        changed = [new != old for new, old in zip(seats, self.seated, strict=True)]
        slots = np.arange(len(self.whole)) % len(seats)
        self.whole[np.array(changed)[slots]] = False
        self.seated = seats

    def chances(self) -> dict[str, float]:
        """Return the share of games that each opponent is due, summing to 1.

        A snapshot's is in proportion to (1 - p)², with p what the learner scores against it.
        """
        latest, past, agents = self._shares
        hardness = {name: (1 - self.win_rate(name)) ** 2 for name in self.snapshots}
        total = sum(hardness.values())
        chances = {LATEST: latest}
        chances |= {name: past * hard / total for name, hard in hardness.items()}
        return chances | {name: agents / len(self._agents) for name in self._agents}

    def count(self, games: npt.NDArray[np.int64], rewards: npt.NDArray[np.floating]) -> None:
        """Count games that ended: their indices (k,) and the learner's rewards (k,)."""
        for game, reward in zip(games.tolist(), rewards.tolist(), strict=True):
            if self.whole[game]:
                name = self.seated[game % len(self.seated)]
                points, played = self._results.get(name, (0.0, 0.0))
                self._results[name] = points + (reward + 1) / 2, played + 1
        self.whole[games] = True  # the next ones have begun

    def win_rate(self, name: str) -> float:
        """Return what the learner scores against an opponent, a draw as a half; 0.5 if unknown."""
        points, games = self._results.get(name, (0.0, 0.0))
        return (points + PRIOR_GAMES / 2) / (games + PRIOR_GAMES)

    def win_rates(self) -> dict[str, float]:
        """Return what the learner scores, as far as there are games: recent ones weigh more.

        Keys are the names of opponents, `past` for all snapshots and `agents` for all agents.
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

    def to_dict(self) -> dict[str, Any]:
        """Return all but `whole` as plain JSON types; `restore` takes them."""
        return {
            "snapshots": self.snapshots,
            "seated": self.seated,
            "results": {
                name: {"points": points, "games": games, "win_rate": self.win_rate(name)}
                for name, (points, games) in self._results.items()
            },
            "chances": self.chances(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Go back to what `to_dict` told of a pool with the same settings.

        Raises:
            ValueError: if another name than these can have is among them: names are files.
        """
        for key, known in (("snapshots", ()), ("seated", (LATEST, *self._agents))):
            if not isinstance(data[key], list):
                raise ValueError(f"pool: {key}: expected a list, got {repr_short(data[key])}")
            for name in data[key]:
                _check_name(name, known)
        _check_results(data["results"])
        if len(data["seated"]) != len(self.seated):
            raise ValueError(f"seated: expected {len(self.seated)}, got {len(data['seated'])}")
        self.snapshots = list(data["snapshots"])
        self.seated = list(data["seated"])
        self._results = {
            name: (result["points"], result["games"]) for name, result in data["results"].items()
        }


def draw(chances: Mapping[str, float], n: int, rng: np.random.Generator) -> list[str]:
    """Draw n names, each as often as its chance times n says, rounded down or up.

    Systematic sampling (Madow and Madow 1944): the expected number is exact.

    Args:
        chances: of the names, summing to 1.
        n: how many.
        rng: one number is drawn from it.
    """
    possible = {name: chance for name, chance in chances.items() if chance > 0}
    names, bounds = list(possible), np.cumsum(list(possible.values()))
    points = (rng.random() + np.arange(n)) / n
    # The bounds sum to 1 but for rounding.
    drawn = np.minimum(np.searchsorted(bounds, points, side="right"), len(names) - 1)
    return [names[i] for i in drawn]


def _check_name(name: object, known: Sequence[str]) -> None:
    right = isinstance(name, str) and (name in known or bool(_SNAPSHOT.fullmatch(name)))
    if not right:
        expected = ", ".join(["the number of a snapshot", *known])
        raise ValueError(f"pool: expected {expected}, got {repr_short(name)}")


def _check_results(results: object) -> None:
    if not isinstance(results, dict):
        raise ValueError(f"pool: results: expected an object, got {repr_short(results)}")
    for name, result in results.items():
        counts = result if isinstance(result, dict) else {}
        points, games = counts.get("points", ""), counts.get("games", "")
        right = type(points) in (int, float) and type(games) in (int, float)
        if not right or not 0 <= points <= games <= MAX_SEED or not games:
            raise ValueError(
                f"pool: results: {repr_short(name)}: expected points, and at least as many games, "
                f"got {repr_short(result)}"
            )


def _keeping_places(seated: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """Order the names drawn such that as many as possible are where they are seated."""
    left = Counter(drawn)
    staying = []
    for name in seated:
        staying.append(left[name] > 0)
        left[name] -= staying[-1]
    coming = left.elements()
    return [name if stays else next(coming) for name, stays in zip(seated, staying, strict=True)]


def _crowded(steps: list[int]) -> int:
    """Return the index, neither first nor last, whose neighbours are closest to each other."""
    return min(range(1, len(steps) - 1), key=lambda i: steps[i + 1] - steps[i - 1])
