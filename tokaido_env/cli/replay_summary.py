"""Summary of recorded games: `tokaido replay FILE --summary`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from tokaido_env.arena.match import SCORE_KEYS, TRIGGERS
from tokaido_env.core.constants import TRIGGER_LEVELS
from tokaido_env.report.tables import Table, print_table

_ENDS = {
    "triggers": "ended by a trigger",
    "cap": "reached the cap",
    "forfeit": "forfeited",
    "": "unfinished",
}


def print_summary(rows: Sequence[dict[str, Any]]) -> None:
    """Print how games ended, and rounds, wins, mean scores and triggers of those played to the end.

    Args:
        rows: of the games, as `dataset.game_row` returns them.
    """
    ends = Counter(row["end"] for row in rows)
    counts = ", ".join(f"{ends[end]} {how}" for end, how in _ENDS.items())
    print(f"games: {len(rows)} ({counts})")
    whole = [row for row in rows if row["end"] in ("triggers", "cap")]
    if not whole:
        return
    rounds = [row["rounds"] for row in whole]
    print(f"rounds: {mean(rounds):.1f} on average, {min(rounds)} to {max(rounds)}\n")
    title = f"played to the end: {len(whole)}"
    print_table(Table(title, ("", "player_0", "player_1"), list(_cells(whole))))


def _cells(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table: a name, and a value of each seat."""
    yield "wins", *_shares([row["winner"] for row in rows], len(rows))
    for key in SCORE_KEYS:
        yield key, *(f"{mean(row[f'{key}_{seat}'] for row in rows):.1f}" for seat in range(2))
    for name, field in zip(TRIGGERS, TRIGGER_LEVELS, strict=True):
        seats = [row["trigger_seat"] for row in rows if row["trigger"] == field]
        yield f"{name} trigger", *_shares(seats, len(rows))


def _shares(seats: Sequence[int], games: int) -> Iterator[str]:
    """Yield the count of each seat, with its share of the games."""
    for seat in range(2):
        yield f"{seats.count(seat)} ({seats.count(seat) / games:.0%})"
