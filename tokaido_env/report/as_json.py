"""Results as plain data, as `tokaido evaluate --json` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokaido_env.arena.match import Match
from tokaido_env.arena.ratings import Rating
from tokaido_env.arena.series import Result
from tokaido_env.report.standings import Standing

VERSION = 2


def results_to_dict(
    results: Sequence[Result],
    ratings: Sequence[Rating],
    agents: Sequence[str],
    *,
    seed: int | None,
    board: str,
    link: str,
    anchor: str | None,
    decided: bool = False,
    adjusted: bool = False,
    ranked: Sequence[Standing] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return results as plain JSON types, with no clock and no machine in them.

    Args:
        results: of all matches.
        ratings: best first.
        agents: specs as they were asked for.
        seed: of the games, None if they are of several files.
        board: its name.
        link: of the ratings.
        anchor: the agent at 0, None if there are no ratings.
        decided: tell of each match who is better.
        adjusted: tell the scores with luck taken off, of matches whose luck is counted.
        ranked: the standings, None to tell none.
        extra: more keys, for what is so of these results alone.
    """
    return {
        "version": VERSION,
        "seed": seed,
        "board": board,
        "link": link,
        "anchor": anchor,
        "agents": list(agents),
        **(extra or {}),
        **({} if ranked is None else {"standings": [row.to_dict() for row in ranked]}),
        "matches": [
            result.match.to_dict()
            | ({"decided": result.decided} if decided else {})
            | ({"adjusted": _adjusted(result.match)} if adjusted else {})
            for result in results
        ],
        "ratings": [rating.to_dict() for rating in ratings],
    }


def _adjusted(match: Match) -> dict[str, Any] | None:
    return None if match.adjusted is None else match.adjusted.to_dict()
