"""Writes boards as files that `reader` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokaido_env.boards.family import is_family
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.box import AREAS, CHARACTERS, MOUNTAIN_TOWNS
from tokaido_env.core.checks import MOST_PATH, brief, plain
from tokaido_env.files import write_text

_UNKNOWN = "reconstruction"  # where an entry comes from that does not say


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
    lines = [
        f"# Written from {plain(fields['source'], MOST_PATH)}",
        "",
        "format = 1",
        f"name = {_value(fields['name'])}",
        f"max_rounds = {_value(fields['max_rounds'])}",
    ]
    for entry, values in _entries(fields).items():
        lines += ["", f"[{entry}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
        lines += _labels(entry, fields)
    return "\n".join(lines) + "\n"


def _entries(fields: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the values of each table of the file."""
    dice = {
        f"dice.{character}": {"faces": faces}
        for character, faces in zip(CHARACTERS, fields["faces"], strict=True)
    }
    mountains = zip(MOUNTAIN_TOWNS, fields["mountain_numbers"], strict=True)
    return {
        **dice,
        "ring": {"stations": fields["stations"]},
        "routes": {"pairs": fields["routes"]},
        "mountains": {"numbers": dict(mountains)},
        "areas": {"icons": dict(zip(AREAS, fields["area_icons"], strict=True))},
        "starts": {
            f"player_{seat}": dict(zip(CHARACTERS, start, strict=True))
            for seat, start in enumerate(fields["starts"])
        },
        "boutiques": {"tokens": fields["boutiques"]},
        "commerce": {"points": fields["commerce"]},
        "culture": {"points": fields["culture"]},
        "temple": {"numbers": fields["temple"]},
        "garden": {"numbers": fields["garden"]},
    }


def _labels(entry: str, fields: Mapping[str, Any]) -> list[str]:
    """Return where an entry comes from, and for those drawn at random that they were."""
    provenance = fields["provenance"].get(entry, _UNKNOWN)
    labels = [f"provenance = {_value(provenance)}"]
    if provenance == _UNKNOWN and is_family(fields["source"]):
        note = f"drawn at random from what the rulebook leaves open: {fields['source']}"
        labels.append(f"note = {_value(note)}")
    return labels


def _value(value: Any) -> str:
    """Write a value of tuples, tables, words and whole numbers as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, str):
        # JSON's words are TOML's, but for the one control character that JSON lets stand.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return str(int(value))
