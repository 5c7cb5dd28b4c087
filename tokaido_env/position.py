"""Positions as plain JSON: conversion of states to dicts and back, with checks of each key.

Types check the kinds of values. `core.state_validation` checks the limits of numbers, and whether a
game can reach the state; `fault_error` says so in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Meta, structs

from tokaido_env.boards.board import Board
from tokaido_env.boards.reader import (
    Area,
    ByCharacter,
    Character,
    Face,
    Icon,
    RingIndex,
    Town,
    size,
)
from tokaido_env.core import serialization, state_validation as reasons
from tokaido_env.core.arguments import plain_data, repr_short
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    MAX_ROUNDS,
    PAINTINGS,
    SIDES,
    TOWNS,
    WARES,
)
from tokaido_env.core.state import ENDS, NO_PLAYER, STATE, UNSET, Phase, initial_states
from tokaido_env.core.state_validation import first_fault
from tokaido_env.decoding import PlacedError, Source, Struct, one_of

_FIRST = np.zeros(1, np.int64)


class PositionError(PlacedError):
    """A position that no game can reach; the message names the key and the expected value.

    Attributes:
        key: the key in the position, such as `players[1].coins` or `waves.pilgrim.side`. If several
            keys contradict each other, one of them; empty for the position as a whole.
    """


# The types of a position

T = TypeVar("T")
Count = Annotated[int, Meta(ge=0, le=127)]
Seat = Annotated[int, Meta(ge=0, le=1)]
Token = tuple[str, int]


class _Wares(Struct, frozen=True):
    kimono: Count
    pottery: Count
    doll: Count
    fan: Count


class _Paintings(Struct, frozen=True):
    moon: Count
    waterfall: Count
    mountain: Count
    bamboo: Count


class _Wave(Struct, Generic[T], frozen=True):
    side: T | None
    owner: Seat | None


class _Waves(Struct, frozen=True):
    pilgrim: _Wave[Annotated[str, one_of(SIDES[0])]]
    merchant: _Wave[Annotated[str, one_of(SIDES[1])]]
    artist: _Wave[Annotated[str, one_of(SIDES[2])]]


class _Boutiques(Struct, frozen=True):
    C1: Token | None
    C2: Token | None
    C3: Token | None
    C4: Token | None
    C5: Token | None
    C6: Token | None
    C7: Token | None
    C8: Token | None


class _Player(Struct, frozen=True):
    pilgrim: RingIndex
    merchant: Town
    artist: Area
    temple: Count
    garden: Count
    coins: Count
    gold: Count
    wares: _Wares
    easel: Annotated[tuple[Icon, ...], size(0, PAINTINGS)]
    hidden: _Paintings
    gifted: Count


class _Position(Struct, frozen=True):
    board: str
    phase: Annotated[str, one_of(Phase.__members__)]
    player: Seat | None
    lead: Seat
    round: Annotated[int, Meta(ge=0, le=MAX_ROUNDS)]
    dice: ByCharacter[Face] | None
    dice_left: Annotated[tuple[Character, ...], size(0, 3)]
    die: Character | None
    origin: Area | None
    pending: Count
    end_triggered: bool
    end: Annotated[str, one_of(ENDS[1:])] | None
    boutiques: _Boutiques
    bag: _Wares
    hot_spring: Seat | None
    waves: _Waves
    players: tuple[_Player, _Player]


def to_dict(board: Board, row: np.void) -> dict[str, Any]:
    """Return a state as plain JSON types."""
    return serialization.state_to_dict(board.name, board.record[0], row)


def board_name(position: Mapping[str, Any]) -> str:
    """Return the board name in a position; raise `PositionError` if there is none."""
    if not isinstance(position, Mapping) or not isinstance(position.get("board"), str):
        raise PositionError(
            "the position: expected an object with the key 'board', the name of a board", "board"
        )
    return str(position["board"])


def from_dict(board: Board, position: Mapping[str, Any]) -> npt.NDArray[np.void]:
    """Return the state of a position, `STATE` (1,).

    Args:
        board: the board of the position.
        position: a position as `to_dict` returns it.

    Raises:
        PositionError: for a missing or unknown key, or a position that no game can reach.
    """
    name = board_name(position)
    source = Source("", plain_data(position), PositionError)
    source.expect(name == board.name, "board", repr(board.name), name)
    given = source.decode(_Position)
    right = len({*given.dice_left}) == len(given.dice_left)
    source.expect(right, "dice_left", "each die once", given.dice_left)
    states = initial_states(board.record)
    _write_turn(states[0], given)
    states["boutiques"] = _kinds(board, source, given)
    for seat, player in enumerate(given.players):
        _write_player(states[0], seat, player)
    _, fault = first_fault(board.record, _FIRST, states)
    if fault:
        raise fault_error(board, states[0], fault)
    return states


def _write_turn(row: np.void, given: _Position) -> None:
    row["phase"] = Phase[given.phase]
    row["player"] = _seat(given.player)
    row["lead"] = given.lead
    row["round"] = given.round
    row["dice"] = 0 if given.dice is None else structs.astuple(given.dice)
    row["dice_left"] = sum(1 << CHARACTERS.index(die) for die in given.dice_left)
    row["die"] = _index(CHARACTERS, given.die)
    row["origin"] = _index(AREAS, given.origin)
    row["pending"] = given.pending
    row["end_triggered"] = given.end_triggered
    row["end"] = ENDS.index(given.end)
    row["bag"] = structs.astuple(given.bag)
    row["hot_spring"] = _seat(given.hot_spring)
    for i, wave in enumerate(structs.astuple(given.waves)):
        row["wave_side"][i] = _index(SIDES[i], wave.side)
        row["wave_owner"][i] = _seat(wave.owner)


def _kinds(board: Board, source: Source, given: _Position) -> list[int]:
    """Return the kind of boutique token of each coastal town."""
    expected = "null or one of " + ", ".join(map(str, board.kinds))
    for town, token in structs.asdict(given.boutiques).items():
        source.expect(token in (None, *board.kinds), f"boutiques.{town}", expected, token)
    return [_index(board.kinds, token) for token in structs.astuple(given.boutiques)]


def _write_player(row: np.void, seat: int, player: _Player) -> None:
    for name in ("pilgrim", "temple", "garden", "coins", "gold", "gifted"):
        row[name][seat] = getattr(player, name)
    row["merchant"][seat] = TOWNS.index(player.merchant)
    row["artist"][seat] = AREAS.index(player.artist)
    row["wares"][seat] = structs.astuple(player.wares)
    row["hidden"][seat] = structs.astuple(player.hidden)
    row["easel_size"][seat] = len(player.easel)
    row["easel"][seat] = sum(ICONS.index(icon) << 2 * i for i, icon in enumerate(player.easel))


def _index(names: Sequence[Any], value: object) -> int:
    return UNSET if value is None else names.index(value)


def _seat(value: int | None) -> int:
    return NO_PLAYER if value is None else value


# Faults in words: the wrong key and the expected value for each reason

_DRAWN = [f"boutiques.{town}" for town in COASTAL_TOWNS] + [f"waves.{c}.side" for c in CHARACTERS]
_PLAYER = "players[{seat}]"
_EXPECTED: dict[int, tuple[str, str, Sequence[str]]] = {
    reasons.EASEL: (f"{_PLAYER}.easel", "no paintings beyond its size", ()),
    reasons.BAG: ("bag.{item}", "the wares of this kind that no player has", WARES),
    reasons.BOUTIQUES: ("boutiques", "each token at most as often as the board has it", ()),
    reasons.GIFTED: (f"{_PLAYER}.gifted", "10 with those hidden and on the easel", ()),
    reasons.HIDDEN: (f"{_PLAYER}.hidden.{{item}}", "fewer: this seat has 2 or 3 of each", ICONS),
    reasons.COINS: (f"{_PLAYER}.coins", "less than 10 before the sixth gold slab", ()),
    reasons.STATION: (f"{_PLAYER}.{{item}}", "no two characters on one station", CHARACTERS),
    reasons.DRAW_ORDER: ("{item}", "a token or side: they are drawn in this order", _DRAWN),
    reasons.SET_UP: ("phase", "SETUP until all tokens and sides are drawn, and only then", ()),
    reasons.ROLLED: ("dice", "null before the first roll, and only then", ()),
    reasons.DIE: ("die", "null, or at {phase} the selected die", ()),
    reasons.DICE_LEFT: ("dice_left", "1 to 3 dice at MOVE, else those after the selected one", ()),
    reasons.ORIGIN: ("origin", "an area in reach of the artist, or null at other effects", ()),
    reasons.TOWN_AT_DRAW: (f"{_PLAYER}.merchant", "a mountain town, and wares to draw", ()),
    reasons.PENDING: ("pending", "0, or at DRAW and REVEAL those that are possible", ()),
    reasons.PLAYER: ("player", "the seat that decides at {phase}, null at chance and OVER", ()),
    reasons.WARES: (f"{_PLAYER}.wares", "at most its capacity, more to return them", ()),
    reasons.TRIGGERED: ("end_triggered", "true just if pegs, slabs or paintings end the game", ()),
    reasons.END: ("end", "null before OVER, then the trigger or the cap", ()),
    reasons.ENDED: ("phase", "OVER once a round ended triggered", ()),
    reasons.ROUND: ("round", "0 at SETUP, {last} at the cap, 1 to {last} between", ()),
    reasons.HOT_SPRING: ("hot_spring", "the picker at REPEAT", ()),
    reasons.CHOICE: ("phase", "something to choose besides pass at {phase}", ()),
}


_ITEMS: dict[str, Sequence[str]] = {
    **{"dice": CHARACTERS, "boutiques": COASTAL_TOWNS, "bag": WARES, "wares": WARES},
    **{"hidden": ICONS, "wave_side": CHARACTERS, "wave_owner": CHARACTERS},
}


def fault_error(board: Board, row: np.void, fault: int) -> PositionError:
    """Return the error that explains why a state is impossible.

    Args:
        board: the board of the game.
        row: a row of `STATE`.
        fault: the reason as `first_fault` returns it.
    """
    reason, seat, item = fault >> 8, fault >> 4 & 1, fault & 15
    if reason == reasons.OUT_OF_LIMITS:
        key, expected, got = _beyond_limits(board, row)
    else:
        *texts, items = _EXPECTED[reason]
        values = {"seat": seat, "last": board.max_rounds, "phase": Phase(row["phase"]).name}
        values["item"] = items[item] if items else ""
        key, expected = (text.format_map(values) for text in texts)
        got = to_dict(board, row)
        for part in re.findall(r"\w+", key):
            got = got[int(part)] if isinstance(got, list) else got[part]
    return PositionError(f"{key}: expected {expected}, got {repr_short(got)}", key)


def _beyond_limits(board: Board, row: np.void) -> tuple[str, str, Any]:
    """Return the key, the limits and the value of the first number beyond its limits."""
    for name, (low, high) in reasons.limits(board.record[0]).items():
        values = row[name]
        for at in np.argwhere((values < low) | (values > high)).tolist():
            ends = (int(np.broadcast_to(end, values.shape)[tuple(at)]) for end in (low, high))
            return _key_of(name, at), "{} to {}".format(*ends), int(values[tuple(at)])
    raise AssertionError("all numbers are within their limits")


def _key_of(name: str, at: Sequence[int]) -> str:
    """Return the key in positions of a number of `STATE`."""
    item = f".{_ITEMS[name][at[-1]]}" if name in _ITEMS else ""
    if name.startswith("wave_"):
        return f"waves{item}.{name.removeprefix('wave_')}"
    seat = f"players[{at[0]}]." if STATE[name].shape[:1] == (2,) else ""
    return f"{seat}{name.removesuffix('_size')}{item}"
