"""The board as a form: for its owner, who has the printed one on the table.

The form goes through the tables of the board file, each with what is known of it and where that
comes from. Of each the owner says that it is the same as printed, or different, and then corrects
single values; what was compared so comes from the box, value by value.
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
from tokaido_env.web.position_form import Field, Group, choice, number, place_fields

SAME, DIFFERENT = "same", "different"
"""What the owner says of a table; of others nothing is known."""

Told = dict[str, Any]

_PRICES = (2, 3, 4)
_MOST_POINTS = 255


def board_form(board: Board) -> Told:
    """Return the form of a board, what stands in it, and how the island looks, as JSON types."""
    data = board.to_dict()
    if _is_taken(board.name):
        data["name"] = f"my_{board.name.replace(':', '_')}"
    island = panels_of(scene_of(board, initial_states(board.record)))[
        "island"
    ]  # with all at their starts
    return {"form": _groups(board), "data": data, "island": "".join(island.values())}


def corrected(first: Board, data: Any, compared: Any) -> Board:
    """Return the board that a form was filled in with.

    Args:
        first: that the form began with.
        data: as `Board.from_dict` takes it.
        compared: tables by name, such as "mountains" or "dice.pilgrim", each `SAME` or `DIFFERENT`.

    Raises:
        BoardError: if it is no board; `key` is the field.
    """
    board = replace(Board.from_dict(_without_places(first, data), "the board"), source=first.name)
    if _is_taken(board.name):
        raise BoardError(
            f"name: {repr_short(board.name)} is a built-in board; choose another name",
            "name",
        )
    known = isinstance(compared, Mapping)
    if not known or any(found not in (SAME, DIFFERENT) for found in compared.values()):
        raise BoardError(f"what was compared: expected tables, {SAME} or {DIFFERENT}")
    seen = [table for table, found in compared.items() if found == SAME]
    seen += [one.name for one in changes(first, board) if one.name in board.values()]
    return board.marked(seen)


def changes(first: Board, board: Board) -> list[Difference]:
    """Return the values printed on a board that were corrected."""
    own = ("name", "max_rounds")
    return [change for change in difference(first, board) if change.name not in own]


def described(first: Board, board: Board) -> Told:
    """Return what a corrected board comes to, as JSON types: its file, and what to send in."""
    after = board.to_toml()
    lines = difflib.unified_diff(_lines(first), _lines(board), first.name, board.name)
    listed = [[one.name, one.before, one.after] for one in changes(first, board)]
    return {"toml": after, "difference": "".join(lines), "changes": listed}


def _lines(board: Board) -> list[str]:
    """Return the lines of a board's file, without the first, which may tell a path."""
    return board.to_toml().splitlines(keepends=True)[1:]


def _is_taken(name: str) -> bool:
    return name in built_in_boards() or is_family(name)


def _without_places(first: Board, data: Any) -> Any:
    """Leave out where single stations and routes come from, if there are others now."""
    if not isinstance(data, Mapping):
        return data
    before, kept = first.to_dict(), dict(data)
    for table in ("ring", "routes"):
        own, old = kept.get(table), before[table]
        if isinstance(own, Mapping) and own != old:
            kept[table] = {key: value for key, value in own.items() if key != "provenance_of"}
    return kept


# The fields


def _groups(board: Board) -> list[Group]:
    """Return the groups: the name, then the tables of the file."""
    name = {"key": "name", "label": "name", "kind": "word", "max": MAX_NAME_CHARS}
    routes = {"key": "routes.pairs", "label": "routes", "kind": "routes", "towns": list(TOWNS)}
    stations = [*COASTAL_TOWNS, *STATIONS[1:]]
    ring = choice("ring.stations", "station", stations, kind="list", most=RING_SIZES[1])
    mountains = [choice(f"mountains.numbers.{town}", town, (2, 3, 4)) for town in MOUNTAIN_TOWNS]
    areas = [choice(f"areas.icons.{area}", area, ICONS) for area in AREAS]
    tables = [
        *((f"dice.{who}", f"{who.capitalize()}'s die", _die(who)) for who in CHARACTERS),
        ("ring", "Coastal road, clockwise from C1", [ring]),
        ("routes", "Trade routes", [routes]),
        ("mountains", "Wares drawn at mountain towns", mountains),
        ("areas", "Icons of the areas", areas),
        ("starts", "Where the characters start", _starts(board)),
        ("boutiques", "Boutique tokens", _tokens()),
        ("commerce", "Commerce: points by gold slabs", _track(board, "commerce")),
        ("culture", "Culture: points by paintings given", _track(board, "culture")),
        ("temple", "Temple slots", _track(board, "temple", "numbers", 1)),
        ("garden", "Garden slots", _track(board, "garden", "numbers", 1)),
    ]
    return [{"title": "Your board", "fields": [name]}, *(_group(board, *table) for table in tables)]


def _group(board: Board, table: str, title: str, fields: list[Field]) -> Group:
    labels = {_name_of(table, field["key"]): field["label"] for field in fields}
    known = {name: one for name, one in board.provenance.items() if name.startswith(f"{table}.")}
    return {
        **{"title": title, "table": table, "fields": fields, "picture": _picture(board, table)},
        **{"provenance": board.provenance_of(table), "note": board.notes.get(table, "")},
        "surer": [[labels.get(name, name), one] for name, one in known.items()],
    }


def _name_of(table: str, key: str) -> str:
    """Return how `Board.provenance_of` calls the value that stands at a key of the data."""
    inner = key.removeprefix(f"{table}.")
    return key if table == "starts" else f"{table}.{inner.partition('.')[2]}"


def _picture(board: Board, table: str) -> Told | None:
    """Return what the island does not show, as it is printed; None for the rest."""
    name, _, who = table.partition(".")
    if name == "boutiques":
        pieces = [token_of(*token) for token in board.boutiques]
    elif name in ("dice", "commerce", "culture", "temple", "garden"):
        values = board.faces[CHARACTERS.index(who)] if who else getattr(board, name)
        square = box(-18, -16, 36, 32, "spot", 6)
        pieces = [square + text_at(0, 6, value, "mid bold big") for value in values]
    else:
        return None
    placed = (
        f'<g transform="translate({24 + 48 * i} 20)">{one}</g>' for i, one in enumerate(pieces)
    )
    return {"width": 48 * len(pieces), "height": 40, "markup": "".join(placed)}


def _die(who: str) -> list[Field]:
    faces = range(1, MAX_DIE + 1)
    return [choice(f"dice.{who}.faces.{at}", f"face {at + 1}", faces) for at in range(6)]


def _starts(board: Board) -> list[Field]:
    spaces = [name if name in COASTAL_TOWNS else i for i, name in enumerate(board.stations)]
    both = (place_fields(board, f"starts.{name}", spaces, f"{name}'s ") for name in SEATS)
    return list(itertools.chain(*both))


def _tokens() -> list[Field]:
    kinds = [[ware, price] for ware in WARES for price in _PRICES]
    words = [f"{ware}, {price}" for ware, price in kinds]
    return [
        choice(f"boutiques.tokens.{at}", f"token {at + 1}", kinds, words)
        for at in range(len(COASTAL_TOWNS))
    ]


def _track(board: Board, table: str, key: str = "points", first: int = 0) -> list[Field]:
    return [
        number(f"{table}.{key}.{at}", str(at + first), 0, _MOST_POINTS)
        for at in range(len(getattr(board, table)))
    ]
