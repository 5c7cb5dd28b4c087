"""Writer of boards as tables and text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokaido_env.boards.procedural import is_family
from tokaido_env.boards.reader import FORMAT, UNKNOWN
from tokaido_env.core.arguments import MAX_PATH_CHARS, escape_text, plain_data
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS


def tables_of(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables of a board file by name, in JSON types, without provenances and notes.

    Args:
        fields: the fields of a `Board` by name.
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


def _start(fields: Mapping[str, Any], start: tuple[int, str, str]) -> tuple[int | str, str, str]:
    """Return a start with the pilgrim's coastal town by name: its index depends on the stations."""
    pilgrim, merchant, artist = start
    station = fields["stations"][pilgrim]
    return (station if station in COASTAL_TOWNS else pilgrim), merchant, artist


def board_text(fields: Mapping[str, Any]) -> str:
    """Return the TOML text of a board file from the fields of a `Board` by name."""
    source = Path(fields["source"]).name  # the folders are those of one machine
    lines = [f"# Written from {escape_text(source, MAX_PATH_CHARS)}", ""]
    data = board_data(fields)
    lines += [f"{key} = {_value(data.pop(key))}" for key in ("format", "name", "max_rounds")]
    dice = {f"dice.{character}": table for character, table in data.pop("dice").items()}
    for entry, table in (dice | data).items():
        lines += ["", f"[{entry}]", *(f"{_key(key)} = {_value(v)}" for key, v in table.items())]
    return "\n".join(lines) + "\n"


def board_data(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a board file, in JSON types, from the fields of a `Board` by name."""
    dice: dict[str, Any] = {}
    data: dict[str, Any] = {
        "format": FORMAT,
        "name": str(fields["name"]),
        "max_rounds": int(fields["max_rounds"]),
        "dice": dice,
    }
    for entry, table in tables_of(fields).items():
        die = entry.removeprefix("dice.")
        (data if die == entry else dice)[die] = table | _labels(entry, fields)
    return data


def _labels(entry: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenances and the note of a table."""
    provenance = fields["provenance"]
    labels: dict[str, Any] = {"provenance": provenance.get(entry, UNKNOWN)}
    single = {
        name.removeprefix(f"{entry}."): one
        for name, one in provenance.items()
        if name.startswith(f"{entry}.")
    }
    if single:
        labels["provenance_of"] = single
    note = fields["notes"].get(entry)
    if note is None and labels["provenance"] == UNKNOWN and is_family(fields["source"]):
        note = f"drawn at random from what the rulebook leaves open: {fields['source']}"
    return labels if note is None else labels | {"note": note}


def _value(value: Any) -> str:
    """Return a value of JSON types as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return _string(value) if isinstance(value, str) else str(value)


def _key(key: str) -> str:
    """Return a key as TOML, in quotes if it has dots or is a number."""
    return key if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", key) else _string(key)


def _string(string: str) -> str:
    # JSON strings are TOML strings, except for one control character that JSON does not escape.
    return json.dumps(string, ensure_ascii=False).replace("\x7f", "\\u007f")
