"""The terms of the hand-written evaluation, their weights, and tables of the board for it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.core.arguments import escape_text, repr_short
from tokaido_env.core.constants import (
    AREAS,
    ARTIST,
    CAPACITY,
    COASTAL_TOWNS,
    ICONS,
    MAX_DIE,
    MERCHANT,
    MOUNTAIN_TOWNS,
    TOWNS,
    Row,
)
from tokaido_env.core.jit import entry, int64, kernel
from tokaido_env.core.state import copy_rows
from tokaido_env.features.board_cache import BoardCache
from tokaido_env.files import read_toml

# The terms of one player; the evaluation weighs how far player_0 is ahead in each. "Now" counts the
# dice left in the round, times the share of them that the player will pick, in sixths. "Next"
# counts the next roll, in faces of the die.
TERMS = (
    ("faith", "points of faith"),
    ("commerce", "points of commerce"),
    ("culture", "points of culture"),
    ("temple", "temple peg: progress to an end trigger"),
    ("garden", "garden peg: progress to an end trigger"),
    ("gold", "slabs: progress to an end trigger"),
    ("gifted", "paintings given: progress to an end trigger"),
    ("coins", "coins towards the next slab"),
    ("wares", "coins that the wares held would bring at the best boutiques"),
    ("held", "wares held, which take the room of others"),
    ("easel", "revealed paintings that wait to be given"),
    ("temple_now", "points of a temple that the pilgrim reaches now"),
    ("garden_now", "points of a garden that the pilgrim reaches now"),
    ("seashore_now", "a seashore that the pilgrim reaches now"),
    ("spring_now", "a hot spring that the pilgrim reaches now"),
    ("sale_now", "coins of the best sale that the merchant reaches now"),
    ("draw_now", "wares of the best draw that the merchant reaches now"),
    ("draw_next", "wares of the best draw that the merchant reaches next"),
    ("gift_now", "points of the front painting, if the artist reaches its icon now"),
    ("gift_next", "points of the front painting, if the artist reaches its icon next"),
    ("second_next", "points of the second painting, if the artist reaches its icon next"),
    ("paint_now", "paintings that the artist can reveal now"),
    ("tranquil", "this wave is held"),
    ("hasty", "this wave is held"),
    ("crafty", "this wave is held"),
    ("robust", "this wave is held"),
    ("proficient", "this wave is held"),
    ("inspired", "this wave is held"),
    ("hot_spring", "the hot spring token is held"),
    ("picks", "picks left in the round, or in the next one if it is about to begin: tempo"),
    ("drawing", "wares about to be drawn"),
    ("revealing", "paintings about to be revealed"),
)
N_TERMS = len(TERMS)
WEIGHTS_FILE = Path(__file__).resolve().parent / "heuristic.toml"

EVAL_TABLES = np.dtype(
    [
        ("weights", "<i2", (2, N_TERMS)),  # opening, ending, in WEIGHT_UNIT
        ("gift_faces", "i1", (2, MAX_DIE + 1, 8, 4)),  # [inspired, die, area, icon]: 6 if in reach
        ("most_drawn", "i1", (MAX_DIE + 1, 12)),  # [die, town]: largest mountain number in reach
        ("draw_faces", "i1", (CAPACITY + 1, 12)),  # [room, town]: wares by all faces together
        ("best_price", "i1", 4),  # of a ware, at any boutique
    ]
)
"""The weights of the evaluation, and tables that follow from a board."""

WEIGHT_UNIT = 1 / 4096
"""Weights are multiples of this log-odds."""
_MAX_WEIGHT = 7.99  # the largest that 16 bits hold in this unit

# Row 0 of `gift_faces` counts the faces of the die with a move that reaches the icon.
ANY_DIE = 0
SIXTHS = 6

_FIRST_MOUNTAIN_BIT = len(COASTAL_TOWNS)

_NAMES = [name for name, _ in TERMS]


class Style(NamedTuple):
    """Changes of the shipped weights.

    Attributes:
        factors: of the weights of some terms, by name.
        factor: of all other weights; below 1 where others grow, or expected results saturate.
        pairs: new weights, opening and ending, of some terms by name.
    """

    factors: dict[str, float]
    factor: float
    pairs: dict[str, tuple[float, float]]


STYLES = {
    "heuristic": Style({}, 1.0, {}),
    "rusher": Style(
        dict(gift_now=2.4, gift_next=2.4, second_next=2.4, easel=1.5, paint_now=1.8)
        | dict(revealing=1.2, proficient=1.8, inspired=1.2),
        *(0.6, {"gifted": (0.72, 0.72)}),
    ),
    "hoarder": Style(
        dict(coins=0.91, wares=0.91, crafty=1.4, robust=1.4, draw_now=1.4, draw_next=1.4)
        | dict(temple=0.35, garden=0.35, gifted=0.28),
        *(0.7, {"gold": (1.4, 1.05)}),
    ),
}
"""Agents by name that play by these weights; tuned by hand to differ in style."""


def load_weights(path: Path = WEIGHTS_FILE) -> npt.NDArray[np.float32]:
    """Return the weights of a file, float32 (2, N_TERMS): opening, ending.

    Raises:
        ValueError: if the file does not contain two numbers from -7.99 to 7.99 for each term.
    """
    table = read_toml(path).get("weights")
    if not isinstance(table, dict):
        raise ValueError(f"{path}: expected a table [weights]")
    if sorted(table) != sorted(_NAMES):
        wrong = ", ".join(sorted(set(table) ^ set(_NAMES)))
        raise ValueError(f"{path}: weights: missing or unknown: {escape_text(wrong, 200)}")
    for name, pair in table.items():
        right = isinstance(pair, list) and len(pair) == 2
        if not right or not all(type(x) in (int, float) and abs(x) <= _MAX_WEIGHT for x in pair):
            raise ValueError(
                f"{path}: weights: {name}: expected two numbers from {-_MAX_WEIGHT} to "
                f"{_MAX_WEIGHT}, got {repr_short(pair)}"
            )
    return np.array([table[name] for name in _NAMES], np.float32).T.copy()


def styled_weights(style: str) -> npt.NDArray[np.float32]:
    """Return the weights of one of `STYLES`, float32 (2, N_TERMS): opening, ending."""
    factors, factor, pairs = STYLES[style]
    weights = load_weights() * np.array([factors.get(name, factor) for name in _NAMES], np.float32)
    for name, pair in pairs.items():
        weights[:, _NAMES.index(name)] = pair
    return weights


def eval_tables_of(boards: npt.NDArray[np.void], style: str = "heuristic") -> npt.NDArray[np.void]:
    """Return the tables of boards for the evaluation, `EVAL_TABLES` (b,).

    Args:
        boards: `BOARD` (b,).
        style: of the weights: "heuristic" for the shipped ones, or one of `STYLES`.
    """
    table, which = _TABLES_BY_BOARD[style].rows(boards)
    return table[which[0] :][:1] if len(which) == 1 else copy_rows(table, which)


def eval_tables_with_weights(
    boards: npt.NDArray[np.void], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.void]:
    """Return the tables of boards for the evaluation, `EVAL_TABLES` (b,).

    Args:
        boards: `BOARD` (b,).
        weights: float32 (2, N_TERMS): opening, ending.
    """
    tables = np.zeros(len(boards), EVAL_TABLES)
    _fill_tables(boards, tables)
    tables["weights"] = np.rint(weights / WEIGHT_UNIT)
    return tables


def _styled_tables(style: str, boards: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    return eval_tables_with_weights(boards, styled_weights(style))


_TABLES_BY_BOARD = {
    style: BoardCache(partial(_styled_tables, style), EVAL_TABLES) for style in STYLES
}


@entry
def _fill_tables(boards: Any, eval_tables: Any) -> None:
    """Fill the tables of boards, `BOARD` (b,); `eval_tables` is `EVAL_TABLES` (b,) of zeros."""
    for i in range(len(boards)):
        board, tables = boards[i], eval_tables[i]
        for kind in range(int(board["kinds"])):
            ware, price = int64(board["kind_ware"][kind]), board["kind_price"][kind]
            tables["best_price"][ware] = max(tables["best_price"][ware], price)
        for die in range(1, MAX_DIE + 1):
            for area in range(len(AREAS)):
                _fill_gift_faces(board, die, area, tables["gift_faces"])
            for town in range(len(TOWNS)):
                _fill_draws(board, die, town, tables)


@kernel
def _fill_gift_faces(board: Row, die: int, area: int, faces: Any) -> None:
    """Add the icons that an artist in an area can match with a die, without and with inspired."""
    face_count = board["face_count"][ARTIST, die]
    ordinary, inspired = _icons_in_reach(board, die, area)
    for icon in range(len(ICONS)):
        for side in range(2):
            reached = (inspired if side else ordinary) >> icon & 1
            faces[side, die, area, icon] = SIXTHS * reached
            faces[side, ANY_DIE, area, icon] += face_count * reached


@kernel
def _icons_in_reach(board: Row, die: int, area: int) -> tuple[int, int]:
    """Return the icons, as bits, that a gift can match after a move, without and with inspired."""
    ordinary, inspired = int64(0), int64(0)
    for arrival in range(len(AREAS)):
        if int64(board["area_reach"][die, area]) >> arrival & 1:
            ordinary |= int64(1) << int64(board["area_icon"][arrival])
            inspired |= int64(board["icons_touched"][die, area, arrival])
    return ordinary, inspired


@kernel
def _fill_draws(board: Row, die: int, town: int, tables: Row) -> None:
    """Add the wares that a merchant in a town can draw after a move with a die."""
    mountains = int64(board["town_reach"][die, town]) >> _FIRST_MOUNTAIN_BIT
    most = int64(0)
    for mountain in range(len(MOUNTAIN_TOWNS)):
        if mountains >> mountain & 1:
            most = max(most, int64(board["mountain_number"][mountain]))
    tables["most_drawn"][die, town] = most
    for room in range(CAPACITY + 1):
        drawn = int64(board["face_count"][MERCHANT, die]) * min(most, room)
        tables["draw_faces"][room, town] += drawn
