"""Options that several commands share, the matches behind them, and their result files."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import EXECUTORS, Executor, check_executor, open_executor
from tokaido_env.arena.match import Match
from tokaido_env.arena.match_series import MatchResult, Monitor, play_series
from tokaido_env.arena.rating_model import RatingError
from tokaido_env.arena.ratings import anchor_of, in_order, rate_matches
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.result import BoardsEntry, Measure, Result, Score
from tokaido_env.arena.tournament import MatchState, OnProgress
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.command import INTERRUPTED, CommandParser, program
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import check_outputs
from tokaido_env.record import MAX_DETAIL_CHARS, REASONS, Forfeit
from tokaido_env.report.progress import match_bar
from tokaido_env.report.result_tables import tables_of
from tokaido_env.report.tables import print_table

_MATCH_EXECUTOR = "serial; for agents that play one game at a time, processes"

_SHARED: dict[str, dict[str, Any]] = {
    "--seed": {"type": "seed", "default": 0, "help": "random seed, an integer from 0"},
    "--board": {"type": "board", "default": "shikoku", "help": "a built-in board or a board file"},
    "--json": {
        "type": "output",
        "metavar": "FILE",
        "help": "write the results to this file as JSON (default: none)",
    },
    "--markdown": {
        "type": "output",
        "metavar": "FILE",
        "help": "write the tables to this file as Markdown (default: none)",
    },
    "--plots": {
        "type": "path",
        "metavar": "DIR",
        "help": "write figures to this folder (default: none)",
    },
    "--records": {
        "type": "file",
        "metavar": "FILE",
        "help": "append every game to this record file, and resume from its games (default: none)",
    },
    "--ladder": {
        "type": "input",
        "metavar": "FILE",
        "help": "ladder file (default: the ladder of the package for the board)",
    },
    "--allow-agents": {
        "nargs": "+",
        "default": [],
        "metavar": "AGENT",
        "help": "agents of the ladder that may run code, or load policies outside its folder",
    },
}


def evaluate_parser(subcommand: str, run: Callable[..., int]) -> CommandParser:
    """Return a parser of a subcommand of `evaluate`, described by the docstring of its function."""
    return CommandParser(f"evaluate {subcommand}", run.__doc__)


def add_agents(parser: argparse.ArgumentParser, name: str = "agent", **options: Any) -> None:
    """Add a positional argument that takes agents."""
    listed = f"agent to measure; {program('evaluate')} --list lists all"
    parser.add_argument(name, metavar="AGENT", help=listed, **options)


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that mean the same in each command that has them."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def add_executor(parser: argparse.ArgumentParser, default: str = _MATCH_EXECUTOR) -> None:
    """Add `--executor`, with the text of its default."""
    parser.add_argument(
        "--executor", help=f"where to run the work: {EXECUTORS} (default: {default})"
    )


def add_match_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the commands that play matches."""
    help_games = "number of games per pair of agents, even"
    parser.add_argument("--games", type=int, default=1000, help=help_games)
    add_shared(parser, "--seed")
    boards = "a built-in board, a board file or a pool of boards"
    parser.add_argument("--board", type="board", default="shikoku", help=boards)
    add_shared(parser, "--json")
    add_executor(parser)


def chosen_executor(text: str | None) -> AbstractContextManager[Executor | None]:
    """Return the executor of an option's text as a context manager; None for None."""
    return nullcontext() if text is None else open_executor(text)


def check_run(
    options: argparse.Namespace,
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


def resolved_records(options: argparse.Namespace) -> Path | None:
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


_FILES_ALONE = ("--json", "--records", "--report", "--plots", "--markdown", "--executor", "--run")
"""Options with one value that name files or machines, and change no result."""


def command_text(subcommand: str, arguments: Sequence[str]) -> str:
    """Return the command that measures again, without the options that change no result."""
    kept, skip = [], False
    for word in arguments:
        name, equals, _ = word.partition("=")
        if not skip and name not in _FILES_ALONE:
            kept.append(word)
        skip = not skip and name in _FILES_ALONE and not equals
    return shlex.join(["tokaido", "evaluate", *([subcommand] if subcommand else []), *kept])


def save_result(result: Result, options: argparse.Namespace) -> None:
    """Write a result to the file of `--json`, if given: without clock or machine."""
    if options.json is not None:
        result.save(options.json)


def print_result(result: Result) -> None:
    """Print the tables of a result."""
    for table in tables_of(result):
        print_table(table)


def show_result(result: Result, options: argparse.Namespace) -> None:
    """Write a result to the file of `--json`, if given, and print its tables."""
    save_result(result, options)
    print_result(result)


def matches_result(
    results: Sequence[MatchResult],
    board: BoardPool,
    seed: int | None,
    command: str,
    *,
    luck: bool = False,
    whole: bool = True,
) -> Result:
    """Return the result of matches, with ratings.

    Args:
        results: of all matches.
        board: board or pool of the games.
        seed: of the matches; None if they have several.
        command: that measures again.
        luck: include luck-adjusted scores.
        whole: refuse matches that determine no ratings, instead of leaving these out.
    """
    # A match of an agent with itself, or of the same two agents again, would count games twice.
    once = {frozenset((m.a, m.b)): m for m, _ in results if m.a != m.b}
    # Neither the order of agents nor the seed changes ratings: records have neither.
    different = in_order(once.values())
    ratings: list[Measure] = []
    try:
        ratings = rate_matches(different) if different else []
    except RatingError:
        if whole:
            raise
    adjusted = [_adjusted(match) for match, _ in results] if luck else []
    return Result.made(
        *("matches", command),
        agents=tuple(dict.fromkeys(name for match, _ in results for name in (match.a, match.b))),
        boards=(BoardsEntry.of(board),),
        seed=seed,
        scores=tuple(Score.of(match, board.name, seed, decided=to) for match, to in results),
        estimates=(*(x.rounded(2) for x in ratings), *(x for x in adjusted if x is not None)),
        anchor=anchor_of(different) if ratings else "",
    )


def _adjusted(match: Match) -> Measure | None:
    """Return the luck-adjusted score, with the number of games that would be as certain."""
    if match.adjusted is None:
        return None
    found, factor = match.adjusted
    ends = found.value, found.low, found.high
    games = round(factor * match.results.size)
    return Measure(*ends, "luck-adjusted score", match.a, games, other=match.b)


def match_state_bar(
    state: MatchState, number: str, title: str = "", note: Callable[[], str] = str
) -> AbstractContextManager[OnProgress]:
    """Return the progress bar of a match.

    Args:
        state: of the match.
        number: stands before the title.
        title: "" for the two agents.
        note: as for `match_bar`.
    """
    title = f"{number} {title or f'{state.a} – {state.b}'}"
    return match_bar(title, len(state), int(state.finished.sum()), note)


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
        print("evaluate: dropped the last line of the records: it is incomplete", file=sys.stderr)
    if records.loaded:
        print(f"evaluate: resumed from {records.loaded:,} recorded games", file=sys.stderr)


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
        print(f"evaluate: {escape_text(name)} forfeits {games} ({why}): {first}", file=sys.stderr)


def print_stopped(
    stopped: BaseException,
    states: Sequence[MatchState],
    records: Path | None,
    command: str = "evaluate",
) -> int:
    """Print the reason of a stop and the number of played games; return the exit status."""
    played, total = sum(int(s.finished.sum()) for s in states), sum(map(len, states))
    return print_stop(command, stopped, f"{played:,} of {total:,} games are played", records)


def print_stop(command: str, stopped: BaseException, done: str, saved: Path | None) -> int:
    """Print the reason of a stop, what is done, and the file it is in; return the exit status."""
    interrupted = isinstance(stopped, KeyboardInterrupt)
    kept = "" if saved is None else f" and saved in {saved}: the same command resumes"
    print(f"{command}: {'interrupted' if interrupted else stopped}", file=sys.stderr)
    print(f"{command}: {done}{kept}", file=sys.stderr)
    return INTERRUPTED if interrupted else 1
