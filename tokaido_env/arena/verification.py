"""Verification of submissions: replay every game, repeat decisions, compute the result again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from tokaido_env.agent import Agent
from tokaido_env.agents.content import difference, entry_of, files_of
from tokaido_env.arena.game_runner import Numbers
from tokaido_env.arena.records import read_records
from tokaido_env.arena.result import Result
from tokaido_env.arena.tournament import MatchState, files_of_matches
from tokaido_env.batch import Batch, advance_checked
from tokaido_env.core.actions import LABELS
from tokaido_env.core.arguments import repr_short, short_path, str_short
from tokaido_env.files import FILE, NOTHING, file_kind, file_sha256

SHARE = 0.05  # of the games, in which decisions are repeated
UNCOMPARED = {"command", "package", "records", "hash", "complete"}
"""Keys of a result that do not follow from its games."""


class SubmissionError(ValueError):
    """A submission cannot be used: the message names the expected content."""


class Claim(NamedTuple):
    """A submitted result, and the matches to compute it from.

    Attributes:
        path: of the submission; its records are in the same folder.
        result: that was submitted.
        match_states: the matches, without games.
        compute: returns the result of the matches when they are finished.
    """

    path: Path
    result: Result
    match_states: list[MatchState]
    compute: Callable[[], Result]


def verify(
    claim: Claim,
    make: Callable[[str], Agent],
    *,
    share: float = SHARE,
    seed: int = 0,
    agent: Agent | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[int, int]:
    """Verify a submission.

    Each game is replayed from its seed: every decision must be legal, every chance outcome that of
    the seed, and the end as recorded. In a sample of games the opponent decides again, and `agent`
    too if given. Without `agent` its decisions are not verified, only that they give the result.

    Args:
        claim: the submission.
        make: returns an opponent by its spec.
        share: of the games of each match in which decisions are repeated, 0 to 1.
        seed: of the sample; nobody can predict a sample of a secret seed.
        agent: the submitted agent.
        progress: called with a description of each next step.

    Returns:
        The number of replayed games, and that of repeated decisions, all as recorded.

    Raises:
        SubmissionError: at the first difference from the submission.
        RecordError: naming line and event of the first game that is none of the matches.
        ValueError: if `share` is out of range.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share: expected a number from 0 to 1, got {share}")
    where, match_states = short_path(claim.path), claim.match_states
    entry = claim.result.records
    if entry is None:
        raise SubmissionError(f"{where}: records: expected a file of all games, got none")
    records = claim.path.parent / entry.file
    for state in match_states:
        state.files = entry_of(claim.result.files, state.a) | entry_of(claim.result.files, state.b)
    progress("replaying the games")
    games = _load_all(records, match_states)
    repeated = 0
    rng = np.random.default_rng(seed)
    for match_state in match_states:
        numbers = np.sort(rng.permutation(len(match_state))[: ceil(share * len(match_state))])
        for side, player in enumerate((agent, make(match_state.b))):
            if player is not None and len(numbers):
                name = (match_state.a, match_state.b)[side]
                claimed = entry_of(match_state.files, name)
                if changed := difference(claimed, files_of(name, name, player.sha256)):
                    raise SubmissionError(f"{where}: {changed}: restore the submitted file")
                progress(f"repeating decisions of {player.spec} on {match_state.pool.name}")
                repeated += _verify_decisions(records, match_state, numbers, player, side)
    found = file_sha256(records)
    if found != entry.sha256:
        raise SubmissionError(
            f"{where}: records: sha256: expected {found} of {str_short(records.name)}, got "
            f"{repr_short(entry.sha256)}: it was changed after it was submitted"
        )
    progress("computing the result")
    computed = replace(claim.compute(), files=files_of_matches(match_states)).to_dict()
    _compare(where, claim.result.to_dict(), computed)
    return games, repeated


def _load_all(path: Path, match_states: Sequence[MatchState]) -> int:
    """Load all games of the matches from a record file; refuse missing and forfeited games."""
    where = short_path(path)
    try:
        if file_kind(path) not in (FILE, NOTHING):
            raise SubmissionError(f"{where}: records: expected a file, got {file_kind(path)}")
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
                f"{where}: holds {games:,} of {total:,} games: expected "
                f"{_place(match_state, int(missing[0]))}"
            )
    return games


def _verify_decisions(
    path: Path, match_state: MatchState, numbers: Numbers, agent: Agent, side: int
) -> int:
    """Repeat decisions; return their number, or refuse the first that differs from the record."""
    decisions, mismatch = repeat_decisions(match_state, numbers, agent, side)
    if mismatch is not None:
        recorded, decided = LABELS[mismatch.recorded], LABELS[mismatch.decided]
        raise SubmissionError(
            f"{short_path(path)}: {_place(match_state, mismatch.game)}, decision "
            f"{mismatch.decision}: {repr_short((match_state.a, match_state.b)[side])} decides "
            f"{decided!r}, the record has {recorded!r}"
        )
    return decisions


def _place(match_state: MatchState, number: int) -> str:
    game = match_state.games[number]
    board = match_state.pool[int(game["board"])].name
    return (
        f"game {number + 1} of {len(match_state)} against {repr_short(match_state.b)} on "
        f"{str_short(board)}, seed {game['seed']}, seat {game['seat_of_a']}"
    )


def _compare(where: str, submitted: dict[str, Any], computed: dict[str, Any]) -> None:
    """Refuse a submitted result that differs from the one computed from the games."""
    for key in (one for one in submitted | computed if one not in UNCOMPARED):
        expected, got, place = computed.get(key), submitted.get(key), key
        if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
            pairs = enumerate(zip(expected, got, strict=True))
            differing = (x for x in pairs if x[1][0] != x[1][1])
            number, (expected, got) = next(differing, (0, (None, None)))
            place = f"{key}[{number}]"
        if got != expected:
            raise SubmissionError(
                f"{where}: {place}: expected {repr_short(expected)} of the games, "
                f"got {repr_short(got)}"
            )


class DecisionMismatch(NamedTuple):
    """A repeated decision that differs from the recorded one.

    Attributes:
        game: its number within the match.
        decision: its number within the game, from 0.
        recorded: the recorded action.
        decided: the repeated action.
    """

    game: int
    decision: int
    recorded: int
    decided: int


def repeat_decisions(
    match_state: MatchState, numbers: Numbers, agent: Agent, side: int
) -> tuple[int, DecisionMismatch | None]:
    """Let an agent decide again in all its positions of some finished games.

    An agent gets only the position and the key of the decision, which the seed of the game
    determines: its decisions must be the same.

    Args:
        match_state: the match.
        numbers: int64 (k,), of the games.
        agent: the agent.
        side: 0 for agent `a` of the match, 1 for `b`.

    Returns:
        The number of decisions, and the first that differs, None if all are equal.
    """
    games = match_state.games[numbers]
    boards = match_state.boards_of(numbers)
    agent.prepare(list({id(board): board for board in boards}.values()))
    batch = Batch(len(numbers), boards, autoreset=False, observation=None)
    batch.begin(np.arange(len(batch)), games["seed"])
    running, decisions = np.arange(len(batch)), 0
    mismatches: list[DecisionMismatch] = []
    while len(running):
        at = batch.episode_info["decisions"][running]
        moves = match_state.actions[numbers[running], at].astype(np.int64)
        own = batch.states["player"][running] == (games["seat_of_a"][running] ^ side)
        if own.any():
            asked = running[own]
            chosen = agent.act(*batch.act_arguments(asked))
            decisions += len(asked)
            for i in np.flatnonzero(chosen != moves[own])[:1].tolist():
                place = int(numbers[asked[i]]), int(at[own][i])
                mismatches.append(DecisionMismatch(*place, int(moves[own][i]), int(chosen[i])))
        advance_checked(batch, running, moves)
        running = running[~batch.over[running]]
    return decisions, min(mismatches, default=None)
