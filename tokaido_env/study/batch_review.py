"""Reviews of many games by an executor, and their totals by player name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent
from tokaido_env.arena.executors.base import CallTask, Executor, SerialExecutor, task_agent
from tokaido_env.arena.intervals import clustered_mean
from tokaido_env.core.arguments import repr_short
from tokaido_env.study.agent_values import check_has_values
from tokaido_env.study.review import CHANCE_SAMPLES, MARKS, PlayerTotals, Review, review
from tokaido_env.trajectory import Trajectory


def review_games(
    games: Sequence[Trajectory],
    judge: Agent,
    value_agent: Agent,
    chance_samples: int = CHANCE_SAMPLES,
    seed: int = 0,
    executor: Executor | None = None,
) -> Iterator[Review]:
    """Review games, one each; yield the reviews in their order.

    The reviews do not depend on the executor or on the other games.

    Args:
        games: one each.
        judge: judges decisions; an agent that gives values, best one that searches.
        value_agent: values chance; a fast agent that gives values.
        chance_samples: after each of two compared actions, from 4.
        seed: of these samples and of the agents' random bits.
        executor: runs the reviews. None: this process.

    Raises:
        ValueError: for fewer samples, or an agent that gives no values.
        AgentFailed: if an agent fails; in other processes also instead of ValueError.
    """
    executor = executor or SerialExecutor()
    judge, value_agent = as_agent(judge), as_agent(value_agent)
    for game in games[:1]:  # in this process, so that it raises ValueError
        check_has_values(judge, game.board)
        check_has_values(value_agent, game.board)
    agents = task_agent(judge, executor), task_agent(value_agent, executor)
    text = f"a game reviewed by {repr_short(judge.spec)}"
    tasks = (CallTask(_review_task, agents, (game, chance_samples, seed), text) for game in games)
    waiting: dict[int, Review] = {}
    ready = 0
    for number, found in executor.map(tasks):
        waiting[number] = found
        while ready in waiting:
            yield waiting.pop(ready)
            ready += 1


def _review_task(
    judge: Agent, value_agent: Agent, game: Trajectory, chance_samples: int, seed: int
) -> Iterator[Review]:
    yield review(game, judge, value_agent, chance_samples, seed)


def totals_by_name(
    reviewed: Iterable[tuple[Sequence[str], Review]],
) -> dict[str, dict[str, Any]]:
    """Return the totals of reviews by player name, in order of first appearance.

    Each has "games", "choices", the number of each of `MARKS`, and as estimates, None without
    values: "loss", "open_loss" and "agreed" of choices, "luck", "result" and "result_less_luck" of
    games. Intervals treat games as independent. Where both players have one name, both count.

    Args:
        reviewed: the names of the two players and the review of each game.
    """
    parts: dict[str, list[tuple[int, PlayerTotals]]] = defaultdict(list)
    for game, (names, found) in enumerate(reviewed):
        for name, totals in zip(names, found.player_totals(), strict=True):
            parts[name].append((game, totals))
    return {name: _summarize(own) for name, own in parts.items()}


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
