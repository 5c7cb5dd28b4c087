"""Checks of options that several commands share, their matches, and their result files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.arena.executors import check_executor, open_executor
from tokaido_env.arena.executors.base import Executor
from tokaido_env.arena.match import Match
from tokaido_env.arena.rating_model import RatingError
from tokaido_env.arena.ratings import anchor_of, in_order, rate_matches
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.result import BoardsEntry, Measure, Result, Score
from tokaido_env.arena.tournament import MatchState, OnProgress
from tokaido_env.boards.board_pool import BoardPool, list_name
from tokaido_env.cli.command import INTERRUPTED, note, running
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs
from tokaido_env.record import MAX_DETAIL_CHARS
from tokaido_env.report.progress import match_bar
from tokaido_env.report.result_tables import tables_of
from tokaido_env.report.tables import print_table


def chosen_executor(text: str | None) -> AbstractContextManager[Executor | None]:
    """Return the executor that the text of `--executor` names; None: a context of None."""
    return nullcontext() if text is None else open_executor(text)


def check_run(
    options: Any,
    *outputs: Path | None,
    read: Sequence[str | Path | None] = (),
    folder: Path | None = None,
) -> None:
    """Check executor, outputs and figures, before work is done for them.

    Args:
        options: of the command, with `executor`.
        outputs: files to write.
        read: files that are read, which no output may replace.
        folder: of figures, which need Matplotlib.

    Raises:
        ValueError: if the executor is unknown or an output cannot be written.
        ModuleNotFoundError: if Matplotlib is missing.
    """
    check_executor(options.executor)
    check_outputs(*outputs, folder=folder, read=read)
    if folder is not None:
        require_extra("figures need", "plots", "matplotlib")


def resolved_records(options: Any) -> Path | None:
    """Return the path of `--records` without symbolic links, which stay when the file is written.

    Without the option it is None.

    Args:
        options: of a command, with the fields `records` and `json`.

    Raises:
        ValueError: if the file is not in the folder of `--json`, which names it.
    """
    if options.records is None:
        return None
    records: Path = options.records.resolve()
    if options.json and options.json.resolve().parent != records.parent:
        expected = f"expected a file in the folder of {options.json}"
        raise ValueError(f"--records: {expected}, got {options.records}")
    return records


_FILES_ALONE = (
    *("--json", "--records", "--report", "--plots", "--markdown", "--run", "--out"),
    "--executor",
)
"""Options with one value that name files or machines, and change no result."""


def measuring_command() -> str:
    """Return the command line that runs, as for a shell, without options that change no result."""
    command, arguments = running()
    kept, skip = [], False
    for word in arguments:
        name, equals, _ = word.partition("=")
        if not skip and name not in _FILES_ALONE:
            kept.append(word)
        skip = not skip and name in _FILES_ALONE and not equals
    return shlex.join(["tokaido", command, *kept])


def save_result(result: Result, options: Any) -> None:
    """Write a result to the file of `--json`, if given: without clock or machine."""
    if options.json is not None:
        result.save(options.json)


def print_result(result: Result) -> None:
    """Print the tables of a result, as wide as the terminal."""
    for table in tables_of(result):
        print_table(table)


def show_result(result: Result, options: Any) -> None:
    """Write a result to the file of `--json`, if given, and print its tables."""
    save_result(result, options)
    print_result(result)


def matches_result(
    matches: Sequence[Match],
    board: BoardPool,
    seed: int | None,
    command: str,
    *,
    luck: bool = False,
    whole: bool = True,
) -> Result:
    """Return the result of matches, with ratings.

    Args:
        matches: all of them.
        board: board or pool of the games.
        seed: of the matches; None if they have several.
        command: that measures again.
        luck: include luck-adjusted scores.
        whole: refuse matches that determine no ratings, instead of leaving these out.
    """
    # Neither the order of agents nor the seed changes ratings: records have neither.
    different = in_order(match for match in matches if match.a != match.b)
    ratings: list[Measure] = []
    try:
        ratings = rate_matches(different) if different else []
    except RatingError:
        if whole:
            raise
    adjusted = [_adjusted(match) for match in matches] if luck else []
    return Result.made(
        *("matches", command),
        agents=tuple(dict.fromkeys(name for match in matches for name in (match.a, match.b))),
        boards=(BoardsEntry.of(board),),
        seed=seed,
        scores=tuple(Score.of(match, _boards_of(match, board), seed) for match in matches),
        estimates=(*(x.rounded(2) for x in ratings), *(x for x in adjusted if x is not None)),
        anchor=anchor_of(different) if ratings else "",
    )


def _boards_of(match: Match | MatchState, pool: BoardPool) -> str:
    """Return the name of a match's boards: of the pool, or, of a list, of those in use."""
    if pool.drawn:
        return pool.name
    return list_name(pool.names[np.unique(match.games["board"])].tolist())


def _adjusted(match: Match) -> Measure | None:
    """Return the luck-adjusted score of a match, None if it was not computed.

    Its `n` is the number of games that would be as certain without the adjustment.
    """
    if match.adjusted is None:
        return None
    found, factor = match.adjusted
    ends = found.value, found.low, found.high
    games = round(factor * match.results.size)
    return Measure(*ends, "luck-adjusted score", match.a, games, other=match.b)


def match_state_bar(
    state: MatchState, number: str, title: str = ""
) -> AbstractContextManager[OnProgress]:
    """Return `match_bar` of a match: a context with a function that takes newly finished games.

    Args:
        state: of the match.
        number: stands before the title.
        title: "" for the two agents.
    """
    title = f"{number} {title or f'{state.a} – {state.b}'}"
    return match_bar(title, len(state), int(state.finished.sum()))


def opened_records(path: Path | None, states: Sequence[MatchState]) -> RecordFile | None:
    """Return the record file of matches, and print how many games it held; None without a path."""
    if path is None:
        return None
    records = RecordFile(path, states)
    if records.dropped_bytes:
        note("dropped the last line of the records: it is incomplete")
    if records.loaded:
        note(f"resumed from {records.loaded:,} recorded games")
    return records


def note_equal_games(count: int) -> None:
    """Print on standard error how many games are left out as equal to others; nothing for 0."""
    if count:
        note(f"equal games count once: {count:,} left out (same board, seed, players and events)")


def print_forfeits(states: Sequence[MatchState]) -> None:
    """Print the number of forfeits in each match, and the reason of the first."""
    for state in states:
        for _, first in sorted(state.forfeits.items())[:1]:
            players = f"{state.a} against {state.b} on {_boards_of(state, state.pool)}"
            number = f"{len(state.forfeits):,} of {state.finished.sum():,} games of {players}"
            why = f"{first.reason}: {escape_text(first.detail, MAX_DETAIL_CHARS)}"
            note(f"{number} ended by forfeit, the first by {why}")


def print_stopped(
    stopped: BaseException, states: Sequence[MatchState], records: Path | None
) -> int:
    """Print why matches stopped and how many games were played; return the exit status."""
    played, total = sum(int(s.finished.sum()) for s in states), sum(map(len, states))
    interrupted = isinstance(stopped, KeyboardInterrupt)
    kept = "" if records is None else f" and saved in {records}: the same command resumes"
    note("interrupted" if interrupted else str(stopped))
    note(f"{played:,} of {total:,} games are played{kept}")
    note("matches that were not played to their end have no score: long games finish last")
    return INTERRUPTED if interrupted else 1
