"""Positions as plain JSON: conversion of states to dicts and back, with checks of each key.

Types check the kinds of values. `core.state_validation` checks the limits of numbers, and whether a
game can reach the state; `fault_error` says so in words.
"""

from __future__ import annotations

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
from tokaido_env.core.arguments import plain_data
from tokaido_env.core.constants import AREAS, CHARACTERS, ICONS, MAX_ROUNDS, PAINTINGS, SIDES, TOWNS
from tokaido_env.core.state import ENDS, NO_PLAYER, UNSET, Phase, initial_states
from tokaido_env.core.state_validation import first_fault
from tokaido_env.decoding import Source, Struct, one_of

_FIRST = np.zeros(1, np.int64)


class PositionError(ValueError):
    """A position that no game can reach; the message names the key and the expected value."""


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
    """Return a state, a row of `STATE`, as the position of `Game.to_dict`: plain JSON types."""
    return serialization.state_to_dict(board.name, board.record[0], row)


def board_name(position: Mapping[str, Any]) -> str:
    """Return the board name in a position; raise `PositionError` if there is none."""
    if not isinstance(position, Mapping) or not isinstance(position.get("board"), str):
        raise PositionError("board: expected an object with this key, the name of a board")
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

_EXPECTED: dict[int, str] = {
    reasons.EASEL: "players[{seat}].easel: expected no paintings beyond its size",
    reasons.BAG: "bag: expected the wares that no player has",
    reasons.BOUTIQUES: "boutiques: expected each token at most as often as the board has it",
    reasons.GIFTED: "players[{seat}].gifted: expected 10 with those hidden and on the easel",
    reasons.HIDDEN: "players[{seat}].hidden: expected fewer: this seat has 2 or 3 of each",
    reasons.COINS: "players[{seat}].coins: expected less than 10 before the sixth gold slab",
    reasons.STATION: "players[{seat}]: expected no two characters on one station",
    reasons.DRAW_ORDER: "boutiques, waves: expected a token or side: they are drawn in order",
    reasons.SET_UP: "phase: expected SETUP until all tokens and sides are drawn, and only then",
    reasons.ROLLED: "dice: expected null before the first roll, and only then",
    reasons.DIE: "die: expected null, or at {phase} the selected die",
    reasons.DICE_LEFT: "dice_left: expected 1 to 3 at MOVE, else those after the selected one",
    reasons.ORIGIN: "origin: expected an area in reach of the artist, or null at other effects",
    reasons.TOWN_AT_DRAW: "players[{seat}].merchant: expected a mountain town, and wares to draw",
    reasons.PENDING: "pending: expected 0, or at DRAW and REVEAL those that are possible",
    reasons.PLAYER: "player: expected the seat that decides at {phase}, null at chance and OVER",
    reasons.WARES: "players[{seat}].wares: expected at most its capacity, more to return them",
    reasons.TRIGGERED: "end_triggered: expected true just if pegs, slabs or paintings end the game",
    reasons.END: "end: expected null before OVER, then the trigger or the cap",
    reasons.ENDED: "phase: expected OVER once a round ended triggered",
    reasons.ROUND: "round: expected 0 at SETUP, {last} at the cap, 1 to {last} between",
    reasons.HOT_SPRING: "hot_spring: expected the picker at REPEAT",
    reasons.CHOICE: "phase: expected something to choose besides pass at {phase}",
}


def fault_error(board: Board, row: np.void, fault: int) -> PositionError:
    """Return the error that explains why a state is impossible.

    Args:
        board: the board of the game.
        row: a row of `STATE`.
        fault: the reason as `first_fault` returns it.
    """
    reason, seat = fault >> 8, fault >> 4 & 1
    if reason != reasons.OUT_OF_LIMITS:
        phase = Phase(row["phase"]).name
        text = _EXPECTED[reason].format(seat=seat, phase=phase, last=board.max_rounds)
        return PositionError(text)
    for name, (low, high) in reasons.limits(board.record[0]).items():
        if ((row[name] < low) | (row[name] > high)).any():
            text = f"{name}: expected {low} to {high}, got {row[name].tolist()}"
            return PositionError(text)
    raise AssertionError("all numbers are within their limits")
