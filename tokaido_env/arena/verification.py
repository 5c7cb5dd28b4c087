"""Verify submissions: replay every game, ask opponents again, compute the numbers again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.arena.game_runner import Numbers
from tokaido_env.arena.records import read_records
from tokaido_env.arena.suite import Submission, SubmissionError, Suite, SuiteResult, file_sha256
from tokaido_env.arena.tournament import MatchState
from tokaido_env.batch import Batch
from tokaido_env.core.actions import LABELS
from tokaido_env.core.arguments import MAX_PATH_CHARS, repr_short, str_short
from tokaido_env.core.state import copy_rows
from tokaido_env.files import FILE, NOTHING, file_kind

SHARE = 0.05  # of the games, in which opponents are asked again
REPEATS = 5
"""How often decisions are timed; the median counts."""


class VerifiedSubmission(NamedTuple):
    """A submission that is what it says.

    Attributes:
        result: of the suite, made anew from the games.
        games: how many were replayed.
        repeated: how many decisions were asked for again and were as recorded.
    """

    result: SuiteResult
    games: int
    repeated: int


def verify(
    path: Path,
    suite: Suite,
    make: Callable[[str], Agent],
    *,
    share: float = SHARE,
    seed: int = 0,
    agent: Agent | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> VerifiedSubmission:
    """Verify a submission.

    Each game is replayed from its seed: every decision legal, every outcome of chance that of the
    seed, its end as told. In some games the opponent decides again, and `agent`, if one is given.
    Without it the agent's decisions are free: what is verified is that they make these numbers.

    Args:
        path: of the submission; its records lie beside it.
        suite: it has to be of.
        make: returns an opponent of the suite by its spec.
        share: of the games of each match, in which decisions are asked for again, 0 to 1.
        seed: draws these games: with one of your own nobody can know which.
        agent: the agent itself, to decide again too.
        progress: called with what is done next, in words.

    Raises:
        SubmissionError: at the first thing that is not as the submission says.
        RecordError: naming line and event of the first that is no game of the suite.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share: expected a number from 0 to 1, got {share}")
    submitted = Submission.load(path, suite)
    where = str_short(path, MAX_PATH_CHARS)
    if submitted.records is None:
        raise SubmissionError(f"{where}: records: expected a file of all games, it names none")
    match_states = suite.match_states(submitted.agent)
    records = path.parent / submitted.records.file
    progress("games are replayed")
    games = _replayed(records, match_states)
    repeated = 0
    rng = np.random.default_rng(seed)
    for match_state in match_states:
        numbers = np.sort(rng.permutation(len(match_state))[: ceil(share * len(match_state))])
        for side, player in enumerate((agent, make(match_state.b))):
            if player is not None and len(numbers):
                progress(f"{player.spec} decides again, on {match_state.pool.name}")
                repeated += _repeated(records, match_state, numbers, player, side)
    found = file_sha256(records)
    if found != submitted.records.sha256:
        raise SubmissionError(
            f"{where}: records: sha256: expected {found} of {str_short(records.name)}, got "
            f"{repr_short(submitted.records.sha256)}: it was changed after it was submitted"
        )
    progress("the numbers are made anew")
    result = suite.result(match_states)
    _compare(where, submitted, result)
    return VerifiedSubmission(result, games, repeated)


def _replayed(path: Path, match_states: Sequence[MatchState]) -> int:
    """Fill all games of a record file into the match_states; refuse one that lacks games."""
    where = str_short(path, MAX_PATH_CHARS)
    try:
        if file_kind(path) not in (FILE, NOTHING):
            raise SubmissionError(f"{where}: records: expected a file, it is {file_kind(path)}")
        games = read_records(path, match_states)
    except OSError as error:
        raise SubmissionError(f"{where}: records: cannot be read: {error.strerror}") from None
    for match_state in match_states:
        if match_state.forfeits:
            game = _place(match_state, min(match_state.forfeits))
            raise SubmissionError(
                f"{where}: {game} was forfeited: expected games that were played to their end, "
                "since a failure cannot be verified"
            )
        missing = np.flatnonzero(~match_state.finished)
        if len(missing):
            total = sum(map(len, match_states))
            raise SubmissionError(
                f"{str_short(path, MAX_PATH_CHARS)}: holds {games:,} of {total:,} games: expected "
                f"{_place(match_state, int(missing[0]))}"
            )
    return games


def _repeated(
    path: Path, match_state: MatchState, numbers: Numbers, agent: Agent, side: int
) -> int:
    again = repeat_decisions(match_state, numbers, agent, side)
    if again.different is not None:
        raise SubmissionError(
            f"{str_short(path, MAX_PATH_CHARS)}: "
            + _told(match_state, again.different, (match_state.a, match_state.b)[side])
        )
    return again.decisions


def _told(match_state: MatchState, different: DecisionMismatch, agent: str) -> str:
    recorded, decided = (LABELS[i] for i in (different.recorded, different.decided))
    where = f"{_place(match_state, different.game)}, decision {different.decision}"
    return f"{where}: {repr_short(agent)} decides {decided!r}, the record has {recorded!r}"


def _place(match_state: MatchState, number: int) -> str:
    game = match_state.games[number]
    board = match_state.pool[int(game["board"])].name
    return (
        f"game {number + 1} of {len(match_state)} against {repr_short(match_state.b)} on "
        f"{str_short(board)}, seed {game['seed']}, seat {game['seat_of_a']}"
    )


def _compare(where: str, submitted: SuiteResult, found: SuiteResult) -> None:
    """Refuse numbers that do not follow from the games."""
    theirs, ours = submitted.to_dict(), found.to_dict()
    for key, value in ours.items():
        if theirs[key] != value:
            raise SubmissionError(
                f"{where}: {key}: expected {repr_short(value)} of the games, "
                f"got {repr_short(theirs[key])}"
            )


class DecisionMismatch(NamedTuple):
    """A decision that an agent did not repeat.

    Attributes:
        game: its number within the match.
        decision: which of the game, from 0.
        recorded: the action that stands there.
        decided: the action that the agent chooses.
    """

    game: int
    decision: int
    recorded: int
    decided: int


class RepeatedDecisions(NamedTuple):
    """Decisions that were asked for again.

    Attributes:
        decisions: how many.
        seconds: processor time of the agent, of all its threads.
        different: the first that was not repeated, None if all were.
    """

    decisions: int
    seconds: float
    different: DecisionMismatch | None


def repeat_decisions(
    match_state: MatchState, numbers: Numbers, agent: Agent, side: int
) -> RepeatedDecisions:
    """Ask an agent for all its decisions of some finished games, at the positions of these games.

    An agent has nothing but the position and the random number of the decision, which follows from
    the seed of the game: it decides as it did.

    Args:
        match_state: of the match.
        numbers: int64 (k,), of the games.
        agent: the agent.
        side: 0 for agent `a` of the match, 1 for `b`.
    """
    games = match_state.games[numbers]
    boards = match_state.boards_of(numbers)
    agent.prepare(list({id(board): board for board in boards}.values()))
    batch = Batch(len(numbers), boards, autoreset=False, observation=None)
    batch.begin(np.arange(len(batch)), games["seed"])
    running, asked, seconds = np.arange(len(batch)), 0, 0.0
    different: list[DecisionMismatch] = []
    while len(running):
        at = batch.episode_info["decisions"][running]
        moves = match_state.actions[numbers[running], at].astype(np.int64)
        own = batch.states["player"][running] == (games["seat_of_a"][running] ^ side)
        if own.any():
            places = running[own]
            states = copy_rows(batch.states, places)
            began = time.process_time()
            chosen = agent.act(
                batch.boards_of(places), states, batch.legal[places], batch.keys(places)
            )
            seconds += time.process_time() - began
            asked += len(places)
            for i in np.flatnonzero(chosen != moves[own])[:1].tolist():
                game, decision = int(numbers[places[i]]), int(at[own][i])
                different.append(
                    DecisionMismatch(game, decision, int(moves[own][i]), int(chosen[i]))
                )
        batch.advance(running, moves, check=False)
        running = running[~batch.over[running]]
    return RepeatedDecisions(asked, seconds, min(different, default=None))
