"""Games of matches as pages to step through, in a folder beside the report that links them."""

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
    from tokaido_env.report.page_tables import Links

FOLDER = "-games"  # what follows the name of the report, without its suffix
USUAL = 2  # games of a match
MOST_EACH = 100  # of one match: as many as a page holds
MOST = 200  # games of all matches that are written unasked: about a minute and 12 MB


def check_replays(each: int | None, report: Path | None) -> None:
    """Refuse a number of games a match, or a report, that pages cannot be made for."""
    if each is not None and report is None:
        raise ValueError("--replays: expected together with --report")
    if each is not None and not 0 <= each <= MOST_EACH:
        raise ValueError(f"--replays: expected 0 to {MOST_EACH} games of a match, got {each}")
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
        matches: finished.
        match_states: of the matches, which may hold more games.
        report: the page that is to link the games; they are written beside it.
        each: how many of a match; None: as many as are written in about a minute.

    Returns:
        For each match, where the games are that were written.
    """
    # Drawings are loaded by who needs them.
    from tokaido_env.web.replay_page import replay_page

    if each is None:
        each = min(USUAL, MOST // len(matches))
    if not each:
        return [{} for _ in matches]
    folder = folder_of(report)
    folder.mkdir(exist_ok=True)
    links: list[Links] = []
    with match_bar("pages", sum(min(each, m.results.size) for m in matches), 0) as progress:
        for number, (match, match_state) in enumerate(
            zip(matches, match_states, strict=True), start=1
        ):
            chosen = choose_games(match, each)
            path = folder / f"match-{number}.html"
            records = records_of(match_state, _numbers(match, match_state)[chosen])
            write_text(path, replay_page(records, match_state.pool, packed=True))
            href = quote(f"{folder.name}/{path.name}")
            links.append({game: f"{href}#game={i}" for i, game in enumerate(chosen, start=1)})
            progress(len(chosen))
    return links


def choose_games(match: Match, count: int) -> list[int]:
    """Return which games of a match to show: the closest, the clearest, then others between.

    Returns:
        Their places among `match.games`, one pair after another, the closest game first.
    """
    points = match.games["points"].reshape(-1, 2, 3).sum(axis=2, dtype=np.int64)
    order = np.argsort(np.abs(points[:, 0] - points[:, 1]), kind="stable")
    places = np.linspace(0, len(order) - 1, min(count, len(order)))
    return [int(order[round(place)]) for place in places]


def _numbers(match: Match, match_state: MatchState) -> Numbers:
    """Return which games of the match_state are those of the match."""
    pairs = match_state.finished.reshape(-1, 2).all(axis=1)
    return np.flatnonzero(np.repeat(pairs, 2))[: match.results.size]
