"""A series of matches, one after another, each played to its end or until it is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

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


def play_series(
    pairs: Sequence[tuple[Agent, Agent]],
    match_states: Sequence[MatchState],
    *,
    error: float | None = None,
    records: RecordFile | None = None,
    monitor: Monitor = lambda match_state, number: nullcontext(lambda games: None),
    executor: Executor | None = None,
) -> tuple[list[Match], BaseException | None]:
    """Play matches in order; Ctrl-C or a failing agent ends the series and is returned.

    Args:
        pairs: the two agents of each match.
        match_states: the matches; their finished games are not played again.
        error: stop a match when a sequential test finds the better agent with at most this error
            probability; None: play all games.
        records: of these matches; games are appended as they finish, and sorted at the end.
        monitor: see `Monitor`.
        executor: runs the games; None chooses one (`tournament.games_as_completed`).

    Returns:
        All matches that were played to their ends, and the error that has stopped the series, or
        None. The rest of a stopped match would be missed: its long games are not finished.
    """
    matches: list[Match] = []
    try:
        for number, ((a, b), state) in enumerate(zip(pairs, match_states, strict=True), start=1):
            most, decided = len(state) // 2, None
            with monitor(state, number) as progress:
                for played in (most,) if error is None else interim_looks(most):
                    games = 2 * played
                    for finished in games_as_completed(state, a, b, games=games, executor=executor):
                        if records is not None:
                            records.append(state, finished)
                        progress(len(finished.numbers))
                    if error is not None:
                        scores = state.games["result"][:games].reshape(-1, 2).mean(axis=1)
                        decided = better_agent(scores, error)
                    if decided is not None:
                        break
            matches.append(replace(state.to_match(games), decided=decided))
    except (KeyboardInterrupt, IllegalMove, AgentFailed) as stopped:
        rest = (state for state in match_states[len(matches) :] if state.finished.all())
        return [*matches, *(state.to_match() for state in rest)], stopped
    if records is not None:
        records.sort()
    return matches, None
