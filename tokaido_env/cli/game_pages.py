"""Pages to step through games of matches, in a folder next to the report that links them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from tokaido_env.arena.game_runner import Numbers
from tokaido_env.arena.match import Match
from tokaido_env.arena.records import records_of
from tokaido_env.arena.tournament import MatchState
from tokaido_env.files import check_outputs, write_text
from tokaido_env.report.progress import match_bar

if TYPE_CHECKING:
    from tokaido_env.report.page import Links

FOLDER = "-games"  # suffix of the folder, after the report's name
DEFAULT_GAMES = 2  # of a match
MOST_PER_MATCH = 100  # a page contains no more games
MOST_BY_DEFAULT = 200  # games of all matches: about a minute and 12 MB


def check_replays(each: int | None, report: Path | None) -> None:
    """Check the number of games per match, and that the pages of a report can be written."""
    if each is not None and report is None:
        raise ValueError("--replays: expected together with --report")
    if each is not None and not 0 <= each <= MOST_PER_MATCH:
        raise ValueError(f"--replays: expected 0 to {MOST_PER_MATCH} games of a match, got {each}")
    if report is not None and each != 0:
        check_outputs(folder=folder_of(report))


def folder_of(report: Path) -> Path:
    """Return the folder of the games of a report."""
    return report.with_name(report.stem + FOLDER)


def write_games(
    matches: Sequence[Match],
    match_states: Sequence[MatchState],
    report: Path,
    each: int | None = None,
) -> list[Links]:
    """Write some games of each match as pages.

    Args:
        matches: the finished matches.
        match_states: of the matches, which may hold more games.
        report: page that links the games; they are written to a folder next to it.
        each: number of games per match; None: as many as take about a minute.

    Returns:
        For each match, text and address of the written games.
    """
    # Imported here: other commands need no drawings.
    from tokaido_env.web.replay_page import replay_page

    if each is None:
        each = min(DEFAULT_GAMES, MOST_BY_DEFAULT // len(matches))
    if not each:
        return [() for _ in matches]
    folder = folder_of(report)
    folder.mkdir(exist_ok=True)
    links: list[Links] = []
    with match_bar("pages", sum(min(each, m.results.size) for m in matches), 0) as progress:
        for number, (match, match_state) in enumerate(
            zip(matches, match_states, strict=True), start=1
        ):
            chosen = choose_games(match, each)
            path = folder / f"match-{number}.html"
            records = records_of(match_state, _game_numbers(match, match_state)[chosen])
            write_text(path, replay_page(records, match_state.pool, packed=True))
            href = quote(f"{folder.name}/{path.name}")
            links.append(
                [(_game_text(match, game), f"{href}#game={i}") for i, game in enumerate(chosen, 1)]
            )
            progress(len(chosen))
    return links


def _game_text(match: Match, place: int) -> str:
    """Return players, points and rounds of a game, player_0 first."""
    game = match.games.reshape(-1)[place]
    points = game["points"].sum(axis=1, dtype=np.int64)
    order = (1, 0) if game["seat_of_a"] else (0, 1)
    one, other = (f"{(match.a, match.b)[side]} {points[side]}" for side in order)
    return f"{one} – {other}, {int(game['rounds'])} rounds"


def choose_games(match: Match, count: int) -> list[int]:
    """Return games of a match from the closest to the clearest win, evenly spread.

    Returns:
        Indices into the flattened `match.games`.
    """
    points = match.games["points"].reshape(-1, 2, 3).sum(axis=2, dtype=np.int64)
    order = np.argsort(np.abs(points[:, 0] - points[:, 1]), kind="stable")
    places = np.linspace(0, len(order) - 1, min(count, len(order)))
    return [int(order[round(place)]) for place in places]


def _game_numbers(match: Match, match_state: MatchState) -> Numbers:
    """Return the numbers of the match's games in its state."""
    pairs = match_state.finished.reshape(-1, 2).all(axis=1)
    return np.flatnonzero(np.repeat(pairs, 2))[: match.results.size]
