"""Reviews of many games by an executor, and their totals by player name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.executors.base import CallTask, Executor, SerialExecutor, task_agent
from tokaido_env.arena.intervals import clustered_mean
from tokaido_env.core.arguments import repr_short
from tokaido_env.study.agent_values import check_has_values
from tokaido_env.study.review import MARKS, PlayerTotals, Review, review
from tokaido_env.trajectory import Trajectory


class ReviewConfig(NamedTuple):
    """The arguments of `review` that all games share.

    Attributes:
        judge: as for `review`.
        value_agent: as for `review`.
        chance_samples: as for `review`.
        seed: as for `review`.
    """

    judge: Agent
    value_agent: Agent
    chance_samples: int
    seed: int


def review_games(
    games: Iterable[Trajectory],
    config: ReviewConfig,
    on_review: Callable[[Review], None],
    executor: Executor | None = None,
) -> None:
    """Review games one by one; the reviews do not depend on the executor or on the other games.

    Args:
        games: one each; taken from the iterable when a worker is free.
        config: how to review.
        on_review: called with each review, in the order of the games.
        executor: runs the reviews. None: this process.

    Raises:
        ValueError: as `review`; in another process as AgentFailed.
        AgentFailed: as `review`.
    """
    waiting: dict[int, Review] = {}
    ready = 0
    executor = executor or SerialExecutor()
    judge, value_agent = as_agent(config.judge), as_agent(config.value_agent)
    agents = task_agent(judge, executor), task_agent(value_agent, executor)
    text = f"a game reviewed by {repr_short(judge.spec)}"

    def tasks() -> Iterator[CallTask]:
        for number, game in enumerate(games):
            if not number:  # checked in this process, so that it raises ValueError
                check_has_values(judge, game.board)
                check_has_values(value_agent, game.board)
            arguments = game, config.chance_samples, config.seed
            yield CallTask(_review_task, agents, arguments, text)

    for number, found in executor.map(tasks()):
        if number >= ready:  # an executor may repeat a task
            waiting[number] = found
        while ready in waiting:
            on_review(waiting.pop(ready))
            ready += 1


def _review_task(
    judge: Agent, value_agent: Agent, game: Trajectory, chance_samples: int, seed: int
) -> Iterator[Review]:
    yield review(game, judge, value_agent, chance_samples, seed)


class ReviewTotals:
    """Totals of reviews by player name; keeps a few numbers of each game."""

    def __init__(self) -> None:
        self.games = 0
        self._parts: dict[str, list[tuple[int, PlayerTotals]]] = {}

    def add(self, names: Sequence[str], found: Review) -> None:
        """Add the review of one game.

        Args:
            names: of its two players.
            found: the review.
        """
        for name, totals in zip(names, found.player_totals(), strict=True):
            self._parts.setdefault(name, []).append((self.games, totals))
        self.games += 1

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return the totals by name, in order of first appearance.

        Each has "games", "choices", the number of each of `MARKS`, and as estimates, None without
        values: "loss", "open_loss" and "agreed" of choices, "luck", "result" and
        "result_less_luck" of games. Intervals treat games as independent. Where both players have
        one name, both count.
        """
        return {name: _summarize(parts) for name, parts in self._parts.items()}


def _summarize(parts: Sequence[tuple[int, PlayerTotals]]) -> dict[str, Any]:
    games = np.array([game for game, _ in parts])
    choices, loss, open_choices, open_loss, agreed, marks, luck, result = (
        np.array(column) for column in zip(*(totals for _, totals in parts), strict=True)
    )
    means = {
        "loss": clustered_mean(loss, games, choices),
        "open_loss": clustered_mean(open_loss, games, open_choices),
        "agreed": clustered_mean(agreed, games, choices),
        "luck": clustered_mean(luck, games),
        "result": clustered_mean(result, games),
        "result_less_luck": clustered_mean(result - luck, games),
    }
    counts = {"games": len(np.unique(games)), "choices": int(choices.sum())}
    return counts | dict(zip(MARKS, marks.sum(axis=0).tolist(), strict=True)) | means
