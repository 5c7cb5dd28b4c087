"""Form to edit a position, for physical games that differ from the page.

A form is a list of groups of fields. A field has the "key" of its value in the data (dotted, as in
error messages), a "label" and a "kind":

    choice  one of "options", pairs of a value and its text
    number  a whole number from "min" to "max"
    flags   a list of any of "options"
    list    an ordered list of at most "most" of "options"
    text    at most "max" characters
    routes  pairs of "towns"

`position_from_form` computes the values that follow from others (the bag, paintings given, whether
the end is triggered). `Game.from_dict` checks whether a game can reach the position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokaido_env.boards.board import Board
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    PAINTING_COUNTS,
    PAINTINGS,
    SIDES,
    TOWNS,
    TRIGGER_LEVELS,
    WARE_COUNTS,
    WARES,
)
from tokaido_env.core.state import ENDS, MAX_COINS, MAX_PENDING, Phase
from tokaido_env.position import PositionError
from tokaido_env.render.scene import SEATS

JsonDict = dict[str, Any]
"""JSON types, as clients get them."""

Field = JsonDict
Group = JsonDict


def position_form(board: Board, names: Sequence[str]) -> list[Group]:
    """Return the groups of fields for positions on a board, as JSON types.

    Args:
        board: of the positions.
        names: of the players.
    """
    players = [
        {"title": name, "fields": _player_fields(board, f"players[{seat}]", seat)}
        for seat, name in enumerate(names)
    ]
    return [
        *players,
        {"title": "Boutiques and tokens", "fields": _token_fields(board)},
        {"title": "Turn", "fields": _turn_fields(board)},
    ]


def form_data(position: Mapping[str, Any]) -> JsonDict:
    """Return the data of the form for a position from `Game.to_dict`."""
    dice = position["dice"] or dict.fromkeys(CHARACTERS)
    return {**position, "dice": dice}


def position_from_form(data: Any) -> JsonDict:
    """Return the position of a filled-in form, as `Game.from_dict` takes it.

    Raises:
        PositionError: if a value is missing that determines others.
    """
    try:
        return _with_computed_values(data)
    except (TypeError, KeyError, AttributeError, IndexError):
        raise PositionError("position: expected the fields of the form") from None


def _with_computed_values(data: Mapping[str, Any]) -> JsonDict:
    players = [dict(player) for player in data["players"]]
    for player in players:
        player["gifted"] = PAINTINGS - len(player["easel"]) - sum(player["hidden"].values())
    bag = {
        ware: count - sum(player["wares"][ware] for player in players)
        for ware, count in zip(WARES, WARE_COUNTS, strict=True)
    }
    triggered = any(
        player[key] == most for player in players for key, most in TRIGGER_LEVELS.items()
    )
    rolled = any(face is not None for face in data["dice"].values())
    return {
        **data,
        **{"players": players, "bag": bag, "end_triggered": triggered},
        "dice": data["dice"] if rolled else None,
    }


def choice(
    key: str,
    label: str,
    options: Sequence[Any],
    texts: Sequence[str] = (),
    *,
    kind: str = "choice",
    **limits: int,
) -> Field:
    """Return a field for one option or, by its kind, for flags or a list of options."""
    texts = texts or ["–" if option is None else str(option) for option in options]
    pairs = [list(pair) for pair in zip(options, texts, strict=True)]
    return {"key": key, "label": label, "kind": kind, "options": pairs, **limits}


def number(key: str, label: str, low: int, high: int) -> Field:
    """Return a field for a whole number."""
    return {"key": key, "label": label, "kind": "number", "min": low, "max": high}


def _player_fields(board: Board, key: str, seat: int) -> list[Field]:
    return [
        *place_fields(board, key, range(len(board.stations))),
        number(f"{key}.temple", "temple slot", 1, LAST_TEMPLE),
        number(f"{key}.garden", "garden slot", 1, LAST_GARDEN),
        number(f"{key}.coins", "coins", 0, MAX_COINS),
        number(f"{key}.gold", "gold slabs", 0, LAST_SLAB),
        *(
            number(f"{key}.wares.{ware}", ware, 0, count)
            for ware, count in zip(WARES, WARE_COUNTS, strict=True)
        ),
        choice(f"{key}.easel", "easel", ICONS, kind="list", most=PAINTINGS),
        *(
            number(f"{key}.hidden.{icon}", f"hidden: {icon}", 0, count)
            for icon, count in zip(ICONS, PAINTING_COUNTS[seat], strict=True)
        ),
    ]


def place_fields(board: Board, key: str, spaces: Sequence[Any], prefix: str = "") -> list[Field]:
    """Return the fields for the places of a player's characters."""
    texts = [f"{name}, space {index}" for index, name in enumerate(board.stations)]
    return [
        choice(f"{key}.pilgrim", f"{prefix}pilgrim", spaces, texts),
        choice(f"{key}.merchant", f"{prefix}merchant", TOWNS),
        choice(f"{key}.artist", f"{prefix}artist", AREAS),
    ]


def _token_fields(board: Board) -> list[Field]:
    kinds = [list(kind) for kind in board.kinds]
    texts = ["–", *(f"{ware}, {price}" for ware, price in board.kinds)]
    boutiques = [choice(f"boutiques.{town}", town, [None, *kinds], texts) for town in COASTAL_TOWNS]
    waves = []
    for character, sides in zip(CHARACTERS, SIDES, strict=True):
        key, label = f"waves.{character}", f"{character}'s wave"
        waves += [
            choice(f"{key}.side", label, [None, *sides]),
            _seat(f"{key}.owner", f"owner of the {label}"),
        ]
    return [*boutiques, *waves, _seat("hot_spring", "owner of the hot spring token")]


def _turn_fields(board: Board) -> list[Field]:
    dice = [
        choice(f"dice.{character}", f"{character}'s die", [None, *sorted(set(faces))])
        for character, faces in zip(CHARACTERS, board.faces, strict=True)
    ]
    return [
        number("round", "round", 0, board.max_rounds),
        choice("phase", "phase", [phase.name for phase in Phase]),
        _seat("player", "player to move"),
        choice("lead", "round leader", (0, 1), SEATS),
        *dice,
        choice("dice_left", "dice left", CHARACTERS, kind="flags"),
        choice("die", "selected die", [None, *CHARACTERS]),
        choice("origin", "artist's previous area", [None, *AREAS]),
        number("pending", "pending draws", 0, MAX_PENDING),
        choice("end", "end reason", ENDS),
    ]


def _seat(key: str, label: str) -> Field:
    return choice(key, label, (None, 0, 1), ("–", *SEATS))
