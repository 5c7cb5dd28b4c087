"""What the commands that play matches have in common: options, records, what stopped them."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import EXECUTORS, Executor, open_executor
from tokaido_env.arena.match import Match
from tokaido_env.arena.match_series import MatchResult, Monitor, play_series
from tokaido_env.arena.rating_models import RATING_MODELS
from tokaido_env.arena.ratings import DEFAULT_MODEL, Rating
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.tournament import MatchState, OnProgress
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.cli.command import INTERRUPTED
from tokaido_env.core.arguments import escape_text
from tokaido_env.files import write_text
from tokaido_env.record import MOST_DETAIL, REASONS, Forfeit
from tokaido_env.report.progress import match_bar
from tokaido_env.report.standings import Standing

VERSION = 2  # of the results as JSON


def add_common(parser: argparse.ArgumentParser, games: int) -> None:
    """Add the options of all commands that play matches; `games` is the default of one."""
    add = parser.add_argument
    add("--games", type=int, default=games, help=f"for each two agents, even ({games})")
    add("--seed", type=int, default=0, help="of the luck, 0 to 2**53 - 1 (0)")
    add("--board", default="shikoku", help="a built-in board, a file, or a pool (shikoku)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add_executor(parser)


_OF_MATCHES = "serial; for agents that play one game at a time, processes"


def add_executor(parser: argparse.ArgumentParser, usual: str = _OF_MATCHES) -> None:
    """Add the option that chooses what runs games; `usual` says what does without it."""
    parser.add_argument("--executor", help=f"what runs games: {EXECUTORS} (default: {usual})")


def chosen_executor(text: str | None) -> AbstractContextManager[Executor | None]:
    """Return the executor that was chosen by its option, to be entered; of None, None."""
    return nullcontext() if text is None else open_executor(text)


def add_link(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the link of ratings."""
    parser.add_argument(
        "--rating-model",
        choices=tuple(RATING_MODELS),
        default=DEFAULT_MODEL,
        help=f"what share of points a difference in rating is worth ({DEFAULT_MODEL})",
    )


class Scale(NamedTuple):
    """What ratings are on: the link, and the agent at 0, None if there are no ratings."""

    link: str
    anchor: str | None


def save_results(
    options: argparse.Namespace,
    board: BoardPool,
    agents: list[str],
    results: list[MatchResult],
    ratings: list[Rating],
    scale: Scale,
    ranked: Sequence[Standing] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write results as JSON, with no clock and no machine in them: whole or not at all.

    Args:
        options: of the command, among them the file, and what is asked for.
        board: or pool, of the games.
        agents: specs as they were asked for.
        results: of all matches.
        ratings: best first.
        scale: of the ratings.
        ranked: the standings, None to tell none.
        extra: more keys, for what is so of these results alone.
    """
    decided, luck = (getattr(options, name, False) for name in ("until_decided", "luck_adjusted"))
    data = {
        "version": VERSION,
        "seed": None if getattr(options, "from_records", None) else options.seed,
        "board": board.name,
        "link": scale.link,
        "anchor": scale.anchor,
        "agents": agents,
        **(extra or {}),
        **({} if ranked is None else {"standings": [row.to_dict() for row in ranked]}),
        "matches": [
            result.match.to_dict()
            | ({"decided": result.decided} if decided else {})
            | ({"adjusted": _adjusted(result.match)} if luck else {})
            for result in results
        ],
        "ratings": [rating.to_dict() for rating in ratings],
    }
    write_text(options.json, json.dumps(data, indent=1) + "\n")


def _adjusted(match: Match) -> dict[str, Any] | None:
    return None if match.adjusted is None else match.adjusted.to_dict()


def bar(
    match_state: MatchState, number: str, title: str = "", note: Callable[[], str] = str
) -> AbstractContextManager[OnProgress]:
    """Return the bar of a match.

    Args:
        match_state: of the match.
        number: what stands before the title.
        title: "" for the two agents.
        note: as for `match_bar`.
    """
    title = f"{number} {title or f'{match_state.a} – {match_state.b}'}"
    return match_bar(title, len(match_state), int(match_state.finished.sum()), note)


def play_kept(
    pairs: Sequence[tuple[Agent, Agent]],
    match_states: Sequence[MatchState],
    records: RecordFile | None,
    *,
    executor: str | None,
    monitor: Monitor,
    error: float | None = None,
) -> tuple[list[MatchResult], BaseException | None]:
    """Play matches to their end, or until they are decided, with the games of records taken over.

    Args:
        pairs: the two agents of each match.
        match_states: of the matches, which are filled in.
        records: games are appended as they finish, and sorted once all are there.
        executor: as for `chosen_executor`.
        monitor: shows a bar of each match.
        error: as for `play_series`, which also tells of what is returned.
    """
    if records is not None:
        _tell_taken(records)
    with chosen_executor(executor) as chosen:
        results, stopped = play_series(
            *(pairs, match_states), error=error, records=records, monitor=monitor, executor=chosen
        )
    if stopped is None and records is not None:
        records.sort()
    return results, stopped


def _tell_taken(records: RecordFile) -> None:
    """Say how many games a record file held."""
    if records.dropped_bytes:
        print("evaluate: the last line of the records was cut short: dropped", file=sys.stderr)
    if records.other_games:
        print(
            f"evaluate: {records.other_games:,} games of others stay in the file", file=sys.stderr
        )
    if records.loaded:
        print(f"evaluate: {records.loaded:,} games taken over", file=sys.stderr)


def tell_forfeits(match_states: Sequence[MatchState]) -> None:
    """Say who has forfeited games, how many, and why the first."""
    found: dict[str, list[Forfeit]] = defaultdict(list)
    for match_state in match_states:
        for number, forfeit in sorted(match_state.forfeits.items()):
            own = forfeit.seat == match_state.games["seat_of_a"][number]
            found[match_state.a if own else match_state.b].append(forfeit)
    for name, forfeits in found.items():
        counts = Counter(forfeit.reason for forfeit in forfeits)
        why = ", ".join(f"{reason} {counts[reason]:,}" for reason in REASONS if counts[reason])
        first = escape_text(forfeits[0].detail, MOST_DETAIL)
        games = "1 game" if len(forfeits) == 1 else f"{len(forfeits):,} games"
        print(f"evaluate: {escape_text(name)} forfeits {games} ({why}): {first}", file=sys.stderr)


def tell_stopped(
    stopped: BaseException, match_states: Sequence[MatchState], records: Path | None
) -> int:
    """Say what has stopped matches and how far they are; return the exit status."""
    interrupted = isinstance(stopped, KeyboardInterrupt)
    played, total = sum(int(s.finished.sum()) for s in match_states), sum(map(len, match_states))
    kept = "" if records is None else f", all in {records}: call again to go on"
    print(f"evaluate: {'interrupted' if interrupted else stopped}", file=sys.stderr)
    print(f"evaluate: {played:,} of {total:,} games were played{kept}", file=sys.stderr)
    return INTERRUPTED if interrupted else 1
