"""Form to correct a board by comparison with the printed one.

The form shows each table of the board file with its provenance and notes. The user marks a table as
matching or differing, and corrects single values. Compared values get the provenance "box".
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tokaido_env.boards.board import Board, Difference, built_in_boards, difference
from tokaido_env.boards.procedural import is_family
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import MAX_NAME_CHARS, repr_short
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    MAX_DIE,
    MOUNTAIN_TOWNS,
    RING_SIZES,
    STATIONS,
    TOWNS,
    WARES,
)
from tokaido_env.core.state import initial_states
from tokaido_env.render.elements import box, text_at
from tokaido_env.render.scene import SEATS, scene_of
from tokaido_env.render.svg import panels_of, token_of
from tokaido_env.web.position_form import Field, Group, JsonDict, choice, number, place_fields

MATCHES, DIFFERS = "matches", "differs"
"""The results of comparing a table; a table without one was not checked."""

_PRICES = (2, 3, 4)
_MAX_POINTS = 255


def board_form(board: Board) -> JsonDict:
    """Return the form, its data and a drawing of the island at the start, as JSON types."""
    data = board.to_dict()
    if _is_taken(board.name):
        data["name"] = f"my_{board.name.replace(':', '_')}"
    island = panels_of(scene_of(board, initial_states(board.record)))["island"]
    return {"form": _groups(board), "data": data, "island": "".join(island.values())}


def corrected_board(first: Board, data: Any, compared: Any) -> Board:
    """Return the board of a filled-in form.

    Args:
        first: the board before the corrections.
        data: as `Board.from_dict` takes it.
        compared: by table, such as "mountains" or "dice.pilgrim", `MATCHES` or `DIFFERS`.

    Raises:
        BoardError: if the data are no board; `key` is the field.
    """
    data = _without_outdated_provenance(first, data)
    board = replace(Board.from_dict(data, "the board"), source=first.name)
    if _is_taken(board.name):
        raise BoardError(
            f"name: {repr_short(board.name)} is a built-in or generated board; choose another name",
            "name",
        )
    known = isinstance(compared, Mapping)
    if not known or any(found not in (MATCHES, DIFFERS) for found in compared.values()):
        raise BoardError(f"compared: expected {MATCHES} or {DIFFERS} by table")
    checked = [table for table, found in compared.items() if found == MATCHES]
    checked += [one.name for one in corrected_values(first, board) if one.name in board.values()]
    return board.with_provenance(checked)


def corrected_values(first: Board, board: Board) -> list[Difference]:
    """Return the printed values that differ between two boards."""
    return [one for one in difference(first, board) if one.name not in ("name", "max_rounds")]


def board_changes(first: Board, board: Board) -> JsonDict:
    """Return a corrected board's file, its diff and its changed values, as JSON types."""
    lines = difflib.unified_diff(_lines(first), _lines(board), first.name, board.name)
    changes = [[one.name, one.before, one.after] for one in corrected_values(first, board)]
    return {"toml": board.to_toml(), "difference": "".join(lines), "changes": changes}


def _lines(board: Board) -> list[str]:
    """Return the lines of a board's file without the first, which may contain a path."""
    return board.to_toml().splitlines(keepends=True)[1:]


def _is_taken(name: str) -> bool:
    return name in built_in_boards() or is_family(name)


def _without_outdated_provenance(first: Board, data: Any) -> Any:
    """Return data without the provenance of single stations and routes if the lists changed."""
    if not isinstance(data, Mapping):
        return data
    before, kept = first.to_dict(), dict(data)
    for name in ("ring", "routes"):
        table = kept.get(name)
        if isinstance(table, Mapping) and table != before[name]:
            kept[name] = {key: value for key, value in table.items() if key != "provenance_of"}
    return kept


# The fields


def _groups(board: Board) -> list[Group]:
    name = {"key": "name", "label": "name", "kind": "text", "max": MAX_NAME_CHARS}
    routes = {"key": "routes.pairs", "label": "routes", "kind": "routes", "towns": list(TOWNS)}
    stations = [*COASTAL_TOWNS, *STATIONS[1:]]
    ring = choice("ring.stations", "station", stations, kind="list", most=RING_SIZES[1])
    mountains = [choice(f"mountains.numbers.{town}", town, (2, 3, 4)) for town in MOUNTAIN_TOWNS]
    areas = [choice(f"areas.icons.{area}", area, ICONS) for area in AREAS]
    tables = [
        *((f"dice.{name}", f"{name.capitalize()}'s die", _die(name)) for name in CHARACTERS),
        ("ring", "Coastal road, clockwise from C1", [ring]),
        ("routes", "Trade routes", [routes]),
        ("mountains", "Wares drawn at mountain towns", mountains),
        ("areas", "Area icons", areas),
        ("starts", "Starting places", _starts(board)),
        ("boutiques", "Boutique tokens", _tokens()),
        ("commerce", "Commerce: points by gold slabs", _track(board, "commerce")),
        ("culture", "Culture: points by paintings given", _track(board, "culture")),
        ("temple", "Temple slots", _track(board, "temple", "numbers", 1)),
        ("garden", "Garden slots", _track(board, "garden", "numbers", 1)),
    ]
    return [{"title": "Your board", "fields": [name]}, *(_group(board, *table) for table in tables)]


def _group(board: Board, table: str, title: str, fields: list[Field]) -> Group:
    labels = {_value_name(table, field["key"]): field["label"] for field in fields}
    single = {name: one for name, one in board.provenance.items() if name.startswith(f"{table}.")}
    return {
        "title": title,
        "table": table,
        "fields": fields,
        "picture": _picture(board, table),
        "provenance": board.provenance_of(table),
        "note": board.notes.get(table, ""),
        "provenance_of": [[labels.get(name, name), one] for name, one in single.items()],
    }


def _value_name(table: str, key: str) -> str:
    """Return the name that `Board.provenance_of` uses for the value at a key of the data."""
    inner = key.removeprefix(f"{table}.")
    return key if table == "starts" else f"{table}.{inner.partition('.')[2]}"


def _picture(board: Board, table: str) -> JsonDict | None:
    """Return a drawing of a table's printed values, or None if the island shows them."""
    name, _, character = table.partition(".")
    if name == "boutiques":
        pieces = [token_of(*token) for token in board.boutiques]
    elif name in ("dice", "commerce", "culture", "temple", "garden"):
        values = board.faces[CHARACTERS.index(character)] if character else getattr(board, name)
        square = box(-18, -16, 36, 32, "spot", 6)
        pieces = [square + text_at(0, 6, value, "mid bold big") for value in values]
    else:
        return None
    placed = (
        f'<g transform="translate({24 + 48 * i} 20)">{one}</g>' for i, one in enumerate(pieces)
    )
    return {"width": 48 * len(pieces), "height": 40, "markup": "".join(placed)}


def _die(character: str) -> list[Field]:
    faces = range(1, MAX_DIE + 1)
    return [choice(f"dice.{character}.faces.{at}", f"face {at + 1}", faces) for at in range(6)]


def _starts(board: Board) -> list[Field]:
    spaces = [name if name in COASTAL_TOWNS else i for i, name in enumerate(board.stations)]
    both = (place_fields(board, f"starts.{name}", spaces, f"{name}'s ") for name in SEATS)
    return list(itertools.chain(*both))


def _tokens() -> list[Field]:
    kinds = [[ware, price] for ware in WARES for price in _PRICES]
    texts = [f"{ware}, {price}" for ware, price in kinds]
    return [
        choice(f"boutiques.tokens.{at}", f"token {at + 1}", kinds, texts)
        for at in range(len(COASTAL_TOWNS))
    ]


def _track(board: Board, table: str, key: str = "points", first: int = 0) -> list[Field]:
    return [
        number(f"{table}.{key}.{at}", str(at + first), 0, _MAX_POINTS)
        for at in range(len(getattr(board, table)))
    ]
