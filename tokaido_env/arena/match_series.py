"""A series of matches, one after another, each played to its end or until it is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, NamedTuple

from tokaido_env.agent import Agent
from tokaido_env.arena.executors.base import Executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match import Match
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.sequential_test import better_agent, interim_looks
from tokaido_env.arena.tournament import MatchState, OnProgress, games_as_completed
from tokaido_env.core.arguments import IllegalMove

Monitor = Callable[[MatchState, int], AbstractContextManager[OnProgress]]
"""Returns the progress callback of a match, given its number in the series, from 1."""


class MatchResult(NamedTuple):
    """A match, and the better agent if a sequential test has found it.

    Attributes:
        match: the games.
        decided: "a", "b", or None.
    """

    match: Match
    decided: Literal["a", "b"] | None


def play_series(
    pairs: Sequence[tuple[Agent, Agent]],
    match_states: Sequence[MatchState],
    *,
    error: float | None = None,
    records: RecordFile | None = None,
    monitor: Monitor = lambda match_state, number: nullcontext(lambda games: None),
    executor: Executor | None = None,
) -> tuple[list[MatchResult], BaseException | None]:
    """Play matches in order; Ctrl-C or a failing agent ends the series and is returned.

    Args:
        pairs: the two agents of each match.
        match_states: the matches; their finished games are not played again.
        error: stop a match when a sequential test finds the better agent with at most this error
            probability; None: play all games.
        records: of these matches; games are appended as they finish.
        monitor: see `Monitor`.
        executor: as for `tournament.play_remaining`.

    Returns:
        The results of all matches with a whole pair of games, and the error that has stopped the
        series, None if it was played to its end.
    """
    results: list[MatchResult] = []
    stopped: BaseException | None = None
    try:
        for number, ((a, b), match_state) in enumerate(
            zip(pairs, match_states, strict=True), start=1
        ):
            with monitor(match_state, number) as progress:
                results.append(_play_one(a, b, match_state, error, records, progress, executor))
    except (KeyboardInterrupt, IllegalMove, AgentFailed) as reason:
        stopped = reason
        rest = (match_state.to_match() for match_state in match_states[len(results) :])
        results += [MatchResult(match, None) for match in rest if len(match.games)]
    return results, stopped


def _play_one(
    a: Agent,
    b: Agent,
    match_state: MatchState,
    error: float | None,
    records: RecordFile | None,
    progress: OnProgress,
    executor: Executor | None,
) -> MatchResult:
    decided: Literal["a", "b"] | None = None
    games = len(match_state)
    for pairs in (games // 2,) if error is None else interim_looks(games // 2):
        games = 2 * pairs
        for finished in games_as_completed(match_state, a, b, games=games, executor=executor):
            if records is not None:
                records.append(match_state, finished)
            progress(len(finished.numbers))
        if error is not None:
            results = match_state.games["result"][:games].reshape(-1, 2)
            decided = better_agent(results.mean(axis=1), error)
        if decided is not None:
            break
    return MatchResult(match_state.to_match(games), decided)
