"""States as plain JSON types, for positions, drawings and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, ICONS, SIDES, TOWNS, WARES
from tokaido_env.core.rules import scores_of, winner_of
from tokaido_env.core.state import ENDS, NO_PLAYER, UNSET, Phase, easel

POINTS = ("faith", "commerce", "culture")


def state_to_dict(name: str, board: np.void, row: np.void) -> dict[str, Any]:
    """Return a state as plain JSON types: the position of `Game.to_dict`.

    Args:
        name: the board's name.
        board: a row of `BOARD`.
        row: a row of `STATE`.
    """
    return {
        "board": name,
        "phase": Phase(row["phase"]).name,
        "player": seat_or_none(row["player"]),
        "lead": int(row["lead"]),
        "round": int(row["round"]),
        "dice": _counts(CHARACTERS, row["dice"]) if row["dice"].any() else None,
        "dice_left": [c for i, c in enumerate(CHARACTERS) if row["dice_left"] >> i & 1],
        "die": name_or_none(CHARACTERS, row["die"]),
        "origin": name_or_none(AREAS, row["origin"]),
        "pending": int(row["pending"]),
        "end_triggered": bool(row["end_triggered"]),
        "end": ENDS[row["end"]],
        "boutiques": {
            town: None if kind == UNSET else _token(board, kind)
            for town, kind in zip(COASTAL_TOWNS, row["boutiques"], strict=True)
        },
        "bag": _counts(WARES, row["bag"]),
        "hot_spring": seat_or_none(row["hot_spring"]),
        "waves": {
            character: {
                "side": name_or_none(SIDES[i], row["wave_side"][i]),
                "owner": seat_or_none(row["wave_owner"][i]),
            }
            for i, character in enumerate(CHARACTERS)
        },
        "players": [_player(row, seat) for seat in range(2)],
    }


def points_of(
    boards: npt.NDArray[np.void], states: npt.NDArray[np.void], i: int = 0
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the present points of both seats of game `i` by the names of `POINTS` (R9.2).

    Args:
        boards: `BOARD` (n,).
        states: `STATE` (n,).
        i: index of the game.
    """
    first, second = scores_of(boards, states, i)
    return _counts(POINTS, first), _counts(POINTS, second)


def result_of(
    boards: npt.NDArray[np.void], states: npt.NDArray[np.void], i: int = 0
) -> dict[str, Any]:
    """Return `scores` with totals, `winner`, `end` and `rounds` of game `i`, as in a `Record`.

    `boards` is `BOARD` (n,), the board of each game, and `states` is `STATE` (n,).
    """
    return {
        "scores": tuple(p | {"total": sum(p.values())} for p in points_of(boards, states, i)),
        "winner": seat_or_none(winner_of(boards, states, i)),
        "end": ENDS[states["end"][i]],
        "rounds": int(states["round"][i]),
    }


def seat_or_none(value: int) -> int | None:
    """Return a seat, 0 or 1, as an int, or None for NO_PLAYER (-1)."""
    return None if value == NO_PLAYER else int(value)


def name_or_none(names: Sequence[str], value: int) -> str | None:
    """Return `names[value]`, or None if the value is UNSET (-1)."""
    return None if value == UNSET else names[value]


def _token(board: np.void, kind: int) -> list[str | int]:
    return [WARES[board["kind_ware"][kind]], int(board["kind_price"][kind])]


def _player(row: np.void, seat: int) -> dict[str, Any]:
    return {
        "pilgrim": int(row["pilgrim"][seat]),
        "merchant": TOWNS[row["merchant"][seat]],
        "artist": AREAS[row["artist"][seat]],
        "temple": int(row["temple"][seat]),
        "garden": int(row["garden"][seat]),
        "coins": int(row["coins"][seat]),
        "gold": int(row["gold"][seat]),
        "wares": _counts(WARES, row["wares"][seat]),
        "easel": [ICONS[icon] for icon in easel(row, seat)],
        "hidden": _counts(ICONS, row["hidden"][seat]),
        "gifted": int(row["gifted"][seat]),
    }


def _counts(names: Sequence[str], values: Sequence[int]) -> dict[str, int]:
    return {name: int(value) for name, value in zip(names, values, strict=True)}
