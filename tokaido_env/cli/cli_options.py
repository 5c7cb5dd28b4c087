"""Checks of options that several commands share, their matches, and their result files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import Executor, check_executor, open_executor
from tokaido_env.arena.match import Match
from tokaido_env.arena.match_series import MatchResult, Monitor, play_series
from tokaido_env.arena.rating_model import PROBIT
from tokaido_env.arena.ratings import Rating
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.tournament import MatchState, OnProgress
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.command import INTERRUPTED, note, write_json
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs
from tokaido_env.record import MAX_DETAIL_CHARS, REASONS, Forfeit
from tokaido_env.report.progress import match_bar
from tokaido_env.report.standings import Standing

VERSION = 2  # of the results as JSON


def chosen_executor(text: str | None) -> AbstractContextManager[Executor | None]:
    """Return the executor of an option's text as a context manager; None for None."""
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
    """Return the record file, which is the one that a symbolic link names; the link stays.

    Raises:
        ValueError: if it is not in the folder of the results, which name it.
    """
    if options.records is None:
        return None
    records: Path = options.records.resolve()
    if options.json and options.json.resolve().parent != records.parent:
        expected = f"expected a file in the folder of {options.json}"
        raise ValueError(f"--records: {expected}, got {options.records}")
    return records


def save_results(
    options: Any,
    board: BoardPool,
    agents: list[str],
    results: list[MatchResult],
    ratings: list[Rating],
    anchor: str | None,
    ranked: Sequence[Standing] | None,
    extra: Mapping[str, Any],
) -> None:
    """Write results as JSON without clock or machine, whole or not at all.

    Args:
        options: of the command: the file, and the figures to include.
        board: board or pool of the games.
        agents: specs as the user gave them.
        results: of all matches.
        ratings: best first.
        anchor: the agent rated 0, None without ratings.
        ranked: the standings, None to leave them out.
        extra: more keys of these results.
    """
    decided, luck = (getattr(options, name, False) for name in ("until_decided", "luck_adjusted"))
    data = {
        "version": VERSION,
        "seed": None if getattr(options, "from_records", None) else options.seed,
        "board": board.name,
        "link": PROBIT,
        "anchor": anchor,
        "agents": agents,
        **extra,
        **({} if ranked is None else {"standings": [row.to_dict() for row in ranked]}),
        "matches": [
            result.match.to_dict()
            | ({"decided": result.decided} if decided else {})
            | ({"adjusted": _adjusted(result.match)} if luck else {})
            for result in results
        ],
        "ratings": [rating.to_dict() for rating in ratings],
    }
    write_json(options.json, data)


def _adjusted(match: Match) -> dict[str, Any] | None:
    return None if match.adjusted is None else match.adjusted.to_dict()


def match_state_bar(
    state: MatchState, number: str, title: str = "", suffix: Callable[[], str] = str
) -> AbstractContextManager[OnProgress]:
    """Return the progress bar of a match.

    Args:
        state: of the match.
        number: stands before the title.
        title: "" for the two agents.
        suffix: as `note` of `match_bar`.
    """
    title = f"{number} {title or f'{state.a} – {state.b}'}"
    return match_bar(title, len(state), int(state.finished.sum()), suffix)


def play_matches(
    pairs: Sequence[tuple[Agent, Agent]],
    states: Sequence[MatchState],
    records: RecordFile | None,
    *,
    executor: str | None,
    monitor: Monitor,
    error: float | None = None,
) -> tuple[list[MatchResult], BaseException | None]:
    """Play matches to their end, or until they are decided, on top of the games of records.

    Args:
        pairs: the two agents of each match.
        states: of the matches; this fills them in.
        records: appends games as they finish, and sorts them when all are finished.
        executor: as for `chosen_executor`.
        monitor: shows the progress of each match.
        error: as for `play_series`, which describes what this returns.
    """
    if records is not None:
        print_resumed(records)
    with chosen_executor(executor) as chosen:
        results, stopped = play_series(
            *(pairs, states), error=error, records=records, monitor=monitor, executor=chosen
        )
    if stopped is None and records is not None:
        records.sort()
    return results, stopped


def print_resumed(records: RecordFile) -> None:
    """Print the number of games that a record file held, and those of others."""
    if records.dropped_bytes:
        note("dropped the last line of the records: it is incomplete")
    if records.loaded:
        note(f"resumed from {records.loaded:,} recorded games")


def print_forfeits(states: Sequence[MatchState]) -> None:
    """Print the number of forfeits of each agent, and the reason of its first."""
    found: dict[str, list[Forfeit]] = defaultdict(list)
    for state in states:
        for number, forfeit in sorted(state.forfeits.items()):
            own = forfeit.seat == state.games["seat_of_a"][number]
            found[state.a if own else state.b].append(forfeit)
    for name, forfeits in found.items():
        counts = Counter(forfeit.reason for forfeit in forfeits)
        why = ", ".join(f"{reason} {counts[reason]:,}" for reason in REASONS if counts[reason])
        first = escape_text(forfeits[0].detail, MAX_DETAIL_CHARS)
        games = "1 game" if len(forfeits) == 1 else f"{len(forfeits):,} games"
        note(f"{escape_text(name)} forfeits {games} ({why}): {first}")


def print_stopped(
    stopped: BaseException, states: Sequence[MatchState], records: Path | None
) -> int:
    """Print the reason of a stop and the number of played games; return the exit status."""
    played, total = sum(int(s.finished.sum()) for s in states), sum(map(len, states))
    return print_stop(stopped, f"{played:,} of {total:,} games are played", records)


def print_stop(stopped: BaseException, done: str, saved: Path | None) -> int:
    """Print the reason of a stop, what is done, and the file it is in; return the exit status."""
    interrupted = isinstance(stopped, KeyboardInterrupt)
    kept = "" if saved is None else f" and saved in {saved}: the same command resumes"
    note("interrupted" if interrupted else str(stopped))
    note(f"{done}{kept}")
    return INTERRUPTED if interrupted else 1
