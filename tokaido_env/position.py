"""Positions as plain JSON: conversion of states to dicts and back, with checks of each key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.boards.reader import DataReader
from tokaido_env.core import serialization, state_validation as validation
from tokaido_env.core.arguments import plain_data, repr_short, str_short
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
    WARE_COUNTS,
    WARES,
)
from tokaido_env.core.state import (
    ENDS,
    MAX_COINS,
    MAX_PENDING,
    NO_PLAYER,
    UNSET,
    Phase,
    initial_states,
)
from tokaido_env.core.state_validation import first_fault

_FIRST = np.zeros(1, np.int64)

# The wrong key and the expected value for each reason why a state is impossible.
_EXPECTED = {
    validation.WARES_SUM: ("bag.{ware}", "so many that bag and players hold {number}"),
    validation.BOUTIQUES: ("boutiques", "{number} × {token} at most"),
    validation.PAINTINGS_SUM: (
        "players[{seat}].gifted",
        "{number}, so that hidden, easel and gifted make 10",
    ),
    validation.PAINTINGS_OF_ICON: (
        "players[{seat}].hidden.{icon}",
        "{number} at most for this seat, with those on the easel",
    ),
    validation.COINS_FOR_GOLD: ("players[{seat}].coins", "less than 10 before the sixth gold slab"),
    validation.TWO_PILGRIMS: ("players[1].pilgrim", "no two characters on one station"),
    validation.MERCHANT_STATION: ("players[{seat}].merchant", "no two characters on one station"),
    validation.BOUTIQUE_SKIPPED: ("boutiques.{town}", "a token: they are drawn in order C1 … C8"),
    validation.SIDE_SKIPPED: ("waves.{character}.side", "a side: they are drawn in this order"),
    validation.LEFT_TO_DRAW: ("phase", "SETUP until all boutiques and sides are drawn"),
    validation.ALL_DRAWN: ("phase", "no more SETUP once all boutiques and sides are drawn"),
    validation.DICE_ROLLED: ("dice", "null before the first roll, and only then"),
    validation.ROUND_BEGUN: ("round", "1 or more at {phase}"),
    validation.ROUND_AT_SETUP: ("round", "0 at SETUP"),
    validation.DIE_IN_HAND: ("die", "one at {phase}"),
    validation.NO_DIE_IN_HAND: ("die", "null at {phase}"),
    validation.DIE_TAKEN: ("dice_left", "all dice but the selected one"),
    validation.DICE_LEFT: ("dice_left", "1 to 3 dice at MOVE"),
    validation.NO_DICE_LEFT: ("dice_left", "no dice at {phase}"),
    validation.DIE_OF_PHASE: ("die", "{character} at {phase}"),
    validation.ORIGIN: ("origin", "an area at {phase} with the artist selected"),
    validation.NO_ORIGIN: ("origin", "null except with the artist selected at EFFECT and REVEAL"),
    validation.ORIGIN_REACH: ("origin", "an area as far from {area} as the artist's die says"),
    validation.MERCHANT_AT_DRAW: (
        "players[{seat}].merchant",
        "a mountain town, with wares in the bag, at DRAW",
    ),
    validation.PENDING: ("pending", "1 to {number} at {phase}"),
    validation.NO_PENDING: ("pending", "0 at {phase}"),
    validation.PICKER: ("player", "{seat} (the picker) at {phase}"),
    validation.PLAYER_NOT_NONE: ("player", "null at {phase}"),
    validation.PLAYER_AT_DISCARD: (
        "player",
        "the picker after a draw, or the other after losing robust, at DISCARD (R4.3, R7.4)",
    ),
    validation.WARES_TO_RETURN: ("players[{seat}].wares", "more than {number} to return from"),
    validation.WARES_HELD: ("players[{seat}].wares", "{number} at most"),
    validation.TRIGGERED: ("end_triggered", "{flag}, as pegs, slabs and paintings have it (R9.1)"),
    validation.END: ("end", "{end} at {phase}"),
    validation.OVER_WHEN_TRIGGERED: ("phase", "OVER once a round ended triggered"),
    validation.ROUND_AT_ROLL: ("round", "less than {max_rounds} at ROLL"),
    validation.ROUND_AT_CAP: ("round", "{max_rounds} at the cap"),
    validation.HOT_SPRING_AT_REPEAT: ("hot_spring", "{seat} at REPEAT"),
    validation.CHOICE: ("phase", "something to choose besides pass at {phase}"),
}


class PositionError(ValueError):
    """A position that no game can reach; the message names the key and the expected value.

    Attributes:
        key: the key in the position, such as `players[1].coins` or `waves.pilgrim.side`. If several
            keys contradict each other, one of them; empty for the position as a whole.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def to_dict(board: Board, row: np.void) -> dict[str, Any]:
    """Return a state as plain JSON types."""
    return serialization.state_to_dict(board.name, board.record[0], row)


def from_dict(board: Board, position: Mapping[str, Any]) -> npt.NDArray[np.void]:
    """Return the state of a position, `STATE` (1,).

    Args:
        board: the board of the position.
        position: a position as `to_dict` returns it.

    Raises:
        PositionError: for a missing or unknown key, or a position that no game can reach.
    """
    return _PositionReader(board, position).state()


def fault_error(board: Board, row: np.void, fault: int) -> PositionError:
    """Return the error that explains why a state is impossible.

    Args:
        board: the board of the game.
        row: a row of `STATE`.
        fault: the reason as `first_fault` returns it.
    """
    reason = fault >> 8
    if reason == validation.OUT_OF_LIMITS:
        for name, (low, high) in validation.limits(board.record[0]).items():
            value = row[name]
            if ((value < low) | (value > high)).any():
                message = f"{name}: expected {low} to {high}, got {value.tolist()}"
                return PositionError(message, name)
    if reason == validation.EASEL_BEYOND_SIZE:
        sizes, held = row["easel_size"].tolist(), row["easel"].tolist()
        return PositionError(f"easel: expected {sizes} paintings only, got {held}", "easel")
    values = _placeholder_values(board, row, fault)
    key, expected = (text.format_map(values) for text in _EXPECTED[reason])
    got: Any = to_dict(board, row)
    for part in re.findall(r"\w+", key):
        got = got[int(part)] if isinstance(got, list) else got[part]
    return PositionError(f"{key}: expected {expected}, got {str_short(got)}", key)


def _placeholder_values(board: Board, row: np.void, fault: int) -> dict[str, Any]:
    """Return the values of the placeholders in `_EXPECTED`."""
    reason, seat, number = fault >> 8, fault >> 4 & 1, fault & 15
    values = {"phase": Phase(row["phase"]).name, "seat": seat, "max_rounds": board.max_rounds}
    if reason == validation.WARES_SUM:
        return values | {"ware": WARES[number], "number": WARE_COUNTS[number]}
    if reason == validation.PAINTINGS_OF_ICON:
        return values | {"icon": ICONS[number], "number": PAINTING_COUNTS[seat][number]}
    if reason == validation.BOUTIQUES:
        token = board.kinds[number]
        return values | {"token": token, "number": board.boutiques.count(token)}
    names: dict[str, Sequence[Any]] = {"area": AREAS, "town": COASTAL_TOWNS, "end": ENDS}
    names |= {"character": CHARACTERS, "flag": (False, True)}
    named = {name: items[number] for name, items in names.items() if number < len(items)}
    return values | named | {"number": number}


def board_name(position: Mapping[str, Any]) -> str:
    """Return the board name in a position."""
    if not isinstance(position, Mapping) or not isinstance(position.get("board"), str):
        raise PositionError(
            "the position: expected an object with the key 'board', the name of a board", "board"
        )
    return str(position["board"])


class _PositionReader(DataReader):
    """Reads a position key by key, then checks the state as a whole."""

    def __init__(self, board: Board, position: Mapping[str, Any]) -> None:
        super().__init__(PositionError, "", "the position", "an object")
        self.board = board
        self.position: Any = plain_data(position)
        self.states = initial_states(board.record)
        self.row = self.states[0]

    def state(self) -> npt.NDArray[np.void]:
        example = to_dict(self.board, self.row)
        self._expect_keys("", self.position, example)
        self._read_turn()
        self._read_tokens()
        self._expect_length("players", self.position["players"], 2)
        for seat, player in enumerate(self.position["players"]):
            self._expect_keys(f"players[{seat}]", player, example["players"][seat])
            self._read_player(seat, player)
        _, fault = first_fault(self.board.record, _FIRST, self.states)
        if fault:
            raise fault_error(self.board, self.row, fault)
        return self.states

    def _read_turn(self) -> None:
        row, position = self.row, self.position
        name = position["board"]
        right = isinstance(name, str) and name == self.board.name
        self._expect(right, "board", repr_short(self.board.name), name)
        row["phase"] = Phase[self._one_of("phase", position["phase"], Phase.__members__)]
        row["player"] = self._seat_or_null("player", position["player"])
        row["lead"] = self._integer("lead", position["lead"], 0, 1)
        row["round"] = self._integer("round", position["round"], 0, self.board.max_rounds)
        if position["dice"] is not None:
            row["dice"] = self._integers("dice", position["dice"], CHARACTERS, 1, [6] * 3)
        dice = self._list("dice_left", position["dice_left"])
        self._expect(len(dice) <= len(CHARACTERS), "dice_left", "3 dice at most", len(dice))
        for die in dice:
            row["dice_left"] |= 1 << self._index("dice_left", die, CHARACTERS)
        right = len(dice) == int(row["dice_left"]).bit_count()
        self._expect(right, "dice_left", "each die once", dice)
        row["die"] = self._index_or_null("die", position["die"], CHARACTERS)
        row["origin"] = self._index_or_null("origin", position["origin"], AREAS)
        row["pending"] = self._integer("pending", position["pending"], 0, MAX_PENDING)
        triggered = position["end_triggered"]
        self._expect(isinstance(triggered, bool), "end_triggered", "true or false", triggered)
        row["end_triggered"] = triggered
        if position["end"] is not None:
            row["end"] = ENDS.index(self._one_of("end", position["end"], ENDS[1:]))

    def _read_tokens(self) -> None:
        row, position = self.row, self.position
        self._expect_keys("boutiques", position["boutiques"], COASTAL_TOWNS)
        for coast, town in enumerate(COASTAL_TOWNS):
            token = position["boutiques"][town]
            if token is not None:
                row["boutiques"][coast] = self._kind(f"boutiques.{town}", token)
        row["bag"] = self._integers("bag", position["bag"], WARES, 0, WARE_COUNTS)
        row["hot_spring"] = self._seat_or_null("hot_spring", position["hot_spring"])
        self._expect_keys("waves", position["waves"], CHARACTERS)
        for i, character in enumerate(CHARACTERS):
            key, wave = f"waves.{character}", position["waves"][character]
            self._expect_keys(key, wave, ("side", "owner"))
            row["wave_side"][i] = self._index_or_null(f"{key}.side", wave["side"], SIDES[i])
            row["wave_owner"][i] = self._seat_or_null(f"{key}.owner", wave["owner"])

    def _kind(self, key: str, token: Any) -> int:
        given, kinds = tuple(self._list(key, token)), self.board.kinds
        right = [type(part) for part in given] == [str, int] and given in kinds
        self._expect(right, key, "one of " + ", ".join(map(str, kinds)), given)
        return kinds.index(given)

    def _read_player(self, seat: int, player: Mapping[str, Any]) -> None:
        row, key = self.row, f"players[{seat}]"
        last = len(self.board.stations) - 1
        row["pilgrim"][seat] = self._integer(f"{key}.pilgrim", player["pilgrim"], 0, last)
        row["merchant"][seat] = self._index(f"{key}.merchant", player["merchant"], TOWNS)
        row["artist"][seat] = self._index(f"{key}.artist", player["artist"], AREAS)
        limits = (("temple", 1, LAST_TEMPLE), ("garden", 1, LAST_GARDEN), ("coins", 0, MAX_COINS))
        for name, low, high in (*limits, ("gold", 0, LAST_SLAB), ("gifted", 0, PAINTINGS)):
            row[name][seat] = self._integer(f"{key}.{name}", player[name], low, high)
        most = PAINTING_COUNTS[seat]
        row["wares"][seat] = self._integers(f"{key}.wares", player["wares"], WARES, 0, WARE_COUNTS)
        row["hidden"][seat] = self._integers(f"{key}.hidden", player["hidden"], ICONS, 0, most)
        icons = self._list(f"{key}.easel", player["easel"])
        self._expect(len(icons) <= PAINTINGS, f"{key}.easel", "10 paintings at most", len(icons))
        row["easel_size"][seat] = len(icons)
        for i, icon in enumerate(icons):
            row["easel"][seat] |= self._index(f"{key}.easel", icon, ICONS) << 2 * i

    def _expect_length(self, key: str, value: Any, length: int) -> None:
        given = len(self._list(key, value))
        self._expect(given == length, key, f"{length} of them", given)

    def _list(self, key: str, value: Any) -> list[Any]:
        self._expect(isinstance(value, list | tuple), key, "a list", value)
        return list(value)

    def _index(self, key: str, value: Any, names: Sequence[Any]) -> int:
        return names.index(self._one_of(key, value, names))

    def _index_or_null(self, key: str, value: Any, names: Sequence[str]) -> int:
        return UNSET if value is None else self._index(key, value, names)

    def _seat_or_null(self, key: str, value: Any) -> int:
        return NO_PLAYER if value is None else self._integer(key, value, 0, 1)

    def _integers(
        self, key: str, table: Any, names: Sequence[str], low: int, highs: Sequence[int]
    ) -> list[int]:
        self._expect_keys(key, table, names)
        limits = zip(names, highs, strict=True)
        return [self._integer(f"{key}.{name}", table[name], low, high) for name, high in limits]
