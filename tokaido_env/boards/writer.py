"""Boards as files say them: tables, text, and a name for each single value.

A table holds one main value besides its labels: `culture` the list `points`, `mountains` the table
`numbers`, `starts` a table for each seat. A single value is named by its table and its key, of
lists its place from 0: `culture.6`, `mountains.M1`, `starts.player_0.pilgrim`, `dice.pilgrim.0`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tokaido_env.boards.procedural import is_family
from tokaido_env.boards.reader import UNKNOWN, single_values
from tokaido_env.core.arguments import MAX_PATH_CHARS, escape_text
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS
from tokaido_env.files import MAX_DEPTH


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


def values_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single values of all tables by their whole names, in plain JSON types."""
    return {
        f"{entry}.{name}": value
        for entry, table in tables_of(fields).items()
        for name, value in single_values(entry, table).items()
    }


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


def board_text(fields: Mapping[str, Any]) -> str:
    """Return a board file with the fields of a `Board`."""
    lines = [f"# Written from {escape_text(fields['source'], MAX_PATH_CHARS)}", ""]
    data = board_data(fields)
    lines += [f"{key} = {_value(data.pop(key))}" for key in ("format", "name", "max_rounds")]
    dice = {f"dice.{character}": table for character, table in data.pop("dice").items()}
    for entry, table in (dice | data).items():
        lines += ["", f"[{entry}]", *(f"{_key(key)} = {_value(v)}" for key, v in table.items())]
    return "\n".join(lines) + "\n"


def board_data(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a board file with the fields of a `Board` says, in plain JSON types."""
    dice: dict[str, Any] = {}
    data: dict[str, Any] = {
        "format": 1,
        "name": str(fields["name"]),
        "max_rounds": int(fields["max_rounds"]),
        "dice": dice,
    }
    for entry, table in tables_of(fields).items():
        labels = _labels(entry, table, fields)
        if "provenance_of" in labels:
            data["format"] = 2  # older readers take no such key
        die = entry.removeprefix("dice.")
        (data if die == entry else dice)[die] = table | labels
    return data


def _labels(entry: str, table: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return where an entry and its values come from, and what else is to be said of it."""
    provenance = fields["provenance"]
    labels: dict[str, Any] = {"provenance": provenance.get(entry, UNKNOWN)}
    names = single_values(entry, table)
    single = {n: provenance[f"{entry}.{n}"] for n in names if f"{entry}.{n}" in provenance}
    if single:
        labels["provenance_of"] = single
    note = fields["notes"].get(entry)
    if note is None and labels["provenance"] == UNKNOWN and is_family(fields["source"]):
        note = f"drawn at random from what the rulebook leaves open: {fields['source']}"
    return labels if note is None else labels | {"note": note}


def _value(value: Any) -> str:
    """Write a value of plain JSON types as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return _word(value) if isinstance(value, str) else str(value)


def _key(key: str) -> str:
    """Write a key: in quotes what TOML would take for keys within each other, and places."""
    return key if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key) else _word(key)


def _word(word: str) -> str:
    # JSON's words are TOML's, but for the one control character that JSON lets stand.
    text = json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
    # With so many dots it might be read as a key of too many parts.
    return text.replace(".", "\\u002e") if text.count(".") >= MAX_DEPTH else text
