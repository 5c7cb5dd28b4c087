"""A series of matches, one after another: each played to its end, or until it is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, NamedTuple

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import Executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match import Match
from tokaido_env.arena.records import Records
from tokaido_env.arena.sequential_test import better, looks
from tokaido_env.arena.tournament import MatchState, Report, finished_games
from tokaido_env.core.arguments import IllegalMove

Watch = Callable[[MatchState, int], AbstractContextManager[Report]]
"""Watches a match, given with its number from 1: what is entered is told of finished games."""


class Result(NamedTuple):
    """A match, and who is better if that was to be decided: "a", "b", or None for not yet."""

    match: Match
    decided: Literal["a", "b"] | None


def _watch_nothing(sheet: MatchState, number: int) -> AbstractContextManager[Report]:
    return nullcontext(lambda games: None)


def play_series(
    pairs: Sequence[tuple[Agent, Agent]],
    sheets: Sequence[MatchState],
    *,
    error: float | None = None,
    records: Records | None = None,
    watch: Watch = _watch_nothing,
    executor: Executor | None = None,
) -> tuple[list[Result], BaseException | None]:
    """Play matches in order; Ctrl-C or an agent that fails ends the series, not the caller.

    Args:
        pairs: the two agents of each match.
        sheets: of the matches; games that are filled in already are not played again.
        error: stop a match when it tells who is better, wrong at most so often; None: play all.
        records: of these matches; games are appended as they finish.
        watch: see `Watch`.
        executor: as for `tournament.play`.

    Returns:
        The results of all matches with a whole pair of games, and what has stopped the series:
        a `KeyboardInterrupt`, an `IllegalMove` or `AgentFailed`, None if it was played to its end.
    """
    results: list[Result] = []
    stopped: BaseException | None = None
    try:
        for number, ((a, b), sheet) in enumerate(zip(pairs, sheets, strict=True), start=1):
            with watch(sheet, number) as progress:
                results.append(_play_one(a, b, sheet, error, records, progress, executor))
    except (KeyboardInterrupt, IllegalMove, AgentFailed) as reason:
        stopped = reason
        rest = (sheet.match() for sheet in sheets[len(results) :])
        results += [Result(match, None) for match in rest if len(match.games)]
    return results, stopped


def _play_one(
    a: Agent,
    b: Agent,
    sheet: MatchState,
    error: float | None,
    records: Records | None,
    progress: Report,
    executor: Executor | None,
) -> Result:
    decided: Literal["a", "b"] | None = None
    games = len(sheet)
    for pairs in (games // 2,) if error is None else looks(games // 2):
        games = 2 * pairs
        for finished in finished_games(sheet, a, b, games=games, executor=executor):
            if records is not None:
                records.append(sheet, finished)
            progress(len(finished.numbers))
        if error is not None:
            results = sheet.games["result"][:games].reshape(-1, 2)
            decided = better(results.mean(axis=1), error)
        if decided is not None:
            break
    return Result(sheet.match(games), decided)
