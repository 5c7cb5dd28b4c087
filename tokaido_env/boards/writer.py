"""Writes boards as files that `reader` reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokaido_env.boards.family import is_family
from tokaido_env.boards.reader import BoardError
from tokaido_env.boards.values import UNKNOWN, single_values, tables_of
from tokaido_env.core.checks import MOST_PATH, brief, plain
from tokaido_env.files import MOST_NESTED, write_text


def write_board(path: Path, fields: Mapping[str, Any]) -> None:
    """Write the fields of a `Board` to a TOML file, whole or not at all.

    Raises:
        BoardError: if the path does not end in `.toml`.
        OSError: if the file cannot be written.
    """
    if path.suffix != ".toml":
        raise BoardError(f"path: expected a name that ends in .toml, got {brief(path, MOST_PATH)}")
    write_text(path, board_text(fields))


def board_text(fields: Mapping[str, Any]) -> str:
    """Return a board file with the fields of a `Board`."""
    lines = [f"# Written from {plain(fields['source'], MOST_PATH)}", ""]
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
    return text.replace(".", "\\u002e") if text.count(".") >= MOST_NESTED else text
