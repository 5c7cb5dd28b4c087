"""The tables of a board file, and a name for each single value in them.

A table holds one main value besides its labels: `culture` the list `points`, `mountains` the table
`numbers`, `starts` a table for each seat. A single value is named by its table and its key, of
lists its place from 0: `culture.6`, `mountains.M1`, `starts.player_0.pilgrim`, `dice.pilgrim.0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokaido_env.core.box import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS

UNKNOWN = "reconstruction"
"""Where a table comes from that does not say."""


def tables_of(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables of a board file without their labels, in plain JSON types.

    Args:
        fields: of a `Board`.
    """
    dice = {
        f"dice.{character}": {"faces": faces}
        for character, faces in zip(CHARACTERS, fields["faces"], strict=True)
    }
    mountains = zip(MOUNTAIN_TOWNS, fields["mountain_numbers"], strict=True)
    tables: dict[str, Any] = {
        **dice,
        "ring": {"stations": fields["stations"]},
        "routes": {"pairs": fields["routes"]},
        "mountains": {"numbers": dict(mountains)},
        "areas": {"icons": dict(zip(AREAS, fields["area_icons"], strict=True))},
        "starts": {
            f"player_{seat}": dict(zip(CHARACTERS, _start(fields, start), strict=True))
            for seat, start in enumerate(fields["starts"])
        },
        "boutiques": {"tokens": fields["boutiques"]},
        "commerce": {"points": fields["commerce"]},
        "culture": {"points": fields["culture"]},
        "temple": {"numbers": fields["temple"]},
        "garden": {"numbers": fields["garden"]},
    }
    return {entry: plain_data(table) for entry, table in tables.items()}


def single_values(entry: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single values of a table without labels, by their names in it."""
    if entry == "starts":
        seats = table.items()
        return {f"{seat}.{who}": space for seat, start in seats for who, space in start.items()}
    (main,) = table.values()
    items: Iterable[tuple[Any, Any]] = main.items() if isinstance(main, dict) else enumerate(main)
    return {str(key): value for key, value in items}


def values_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single values of all tables by their whole names, in plain JSON types."""
    return {
        f"{entry}.{name}": value
        for entry, table in tables_of(fields).items()
        for name, value in single_values(entry, table).items()
    }


def table_of(name: str) -> str:
    """Return the table in which a single value stands."""
    return ".".join(name.split(".")[: 2 if name.startswith("dice.") else 1])


def plain_data(value: Any) -> Any:
    """Return a value of tuples, tables, words and whole numbers in plain JSON types."""
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence):
        return [plain_data(item) for item in value]
    return int(value)


def _start(fields: Mapping[str, Any], start: tuple[int, str, str]) -> tuple[int | str, str, str]:
    """Name a coastal town at which a pilgrim starts: that holds when stations come or go."""
    pilgrim, merchant, artist = start
    station = fields["stations"][pilgrim]
    return (station if station in COASTAL_TOWNS else pilgrim), merchant, artist
