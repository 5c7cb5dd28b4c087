"""Reviews of many games: by an executor, game by game, and what they come to for each name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import CallTask, Executor, SerialExecutor, agent_spec_of
from tokaido_env.core.arguments import repr_short
from tokaido_env.study.agent_values import check_tells
from tokaido_env.study.estimates import Figure, mean_of, mean_of_sums
from tokaido_env.study.review import MARKS, Review, Sums, review
from tokaido_env.trajectory import Trajectory


class Asked(NamedTuple):
    """How games are reviewed: arguments as for `review`."""

    judge: Agent
    values_by: Agent
    draws: int
    seed: int


def review_each(
    games: Iterable[Trajectory],
    asked: Asked,
    take: Callable[[Review], None],
    executor: Executor | None = None,
) -> None:
    """Review games one by one; the same is found whoever does it, and whatever stands beside them.

    Args:
        games: one each; asked for when there is somebody to review them.
        asked: how.
        take: called with each review, in the order of the games.
        executor: who reviews; None: this process.

    Raises:
        ValueError, AgentFailed: as `review`; of another process as AgentFailed.
    """
    found: dict[int, Review] = {}
    ready = 0
    judge, values_by = asked.judge, asked.values_by
    agents = agent_spec_of(judge), agent_spec_of(values_by)
    text = f"a game reviewed by {repr_short(judge.spec)}"

    def tasks() -> Iterator[CallTask]:
        known = False
        for played in games:
            if not known:  # here, so that it is told as what it is
                check_tells(judge, played.board)
                check_tells(values_by, played.board)
                known = True
            yield CallTask(_review, agents, (played, asked.draws, asked.seed), text)

    for number, part in (executor or SerialExecutor()).map(tasks(), (judge, values_by)):
        if number >= ready:  # a task may have been done again
            found[number] = part
        while ready in found:
            take(found.pop(ready))
            ready += 1


def _review(
    judge: Agent, values_by: Agent, played: Trajectory, draws: int, seed: int
) -> Iterator[Review]:
    yield review(played, judge, values_by, draws, seed)


class Tally:
    """What reviews of games come to for each name; of each game a few numbers are kept."""

    def __init__(self) -> None:
        self.games = 0
        self._parts: dict[str, list[tuple[int, Sums]]] = {}

    def add(self, names: Sequence[str], found: Review) -> None:
        """Add the review of one game.

        Args:
            names: of its two players.
            found: the review.
        """
        for name, sums in zip(names, found.sums(), strict=True):
            self._parts.setdefault(name, []).append((self.games, sums))
        self.games += 1

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return by name, in the order they came, what the games come to.

        Of each: "games", "choices", how many of each of `MARKS`, and as {"mean", "ci95", "n"}:
        "loss", "open_loss" and "agreed" of choices, "luck", "result" and "result_less_luck" of
        games. Games are what is independent in the intervals; where both players have one name,
        both count.
        """
        return {name: _figures(parts) for name, parts in self._parts.items()}


def _figures(parts: Sequence[tuple[int, Sums]]) -> dict[str, Any]:
    games = np.array([game for game, _ in parts])
    choices, loss, open_choices, open_loss, agreed, marks, luck, result = (
        np.array(column) for column in zip(*(sums for _, sums in parts), strict=True)
    )
    means: dict[str, Figure] = {
        "loss": mean_of_sums(loss, choices, games),
        "open_loss": mean_of_sums(open_loss, open_choices, games),
        "agreed": mean_of_sums(agreed, choices, games),
        "luck": mean_of(luck, games),
        "result": mean_of(result, games),
        "result_less_luck": mean_of(result - luck, games),
    }
    counts = {"games": len(np.unique(games)), "choices": int(choices.sum())}
    return counts | dict(zip(MARKS, marks.sum(axis=0).tolist(), strict=True)) | means
