"""What a batch is handed, checked before anything is touched: games, seats, states, snapshots.

Kernels index by what these hold and look at none of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env import position
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import (
    MAX_SEED,
    SeedError,
    as_array,
    as_integer,
    check_seed,
    describe_array,
    repr_short,
)
from tokaido_env.core.bots import BOTS, GREEDY, NO_BOT
from tokaido_env.core.jit import entry
from tokaido_env.core.rules import legal
from tokaido_env.core.state import NO_PLAYER, STATE, copy_rows
from tokaido_env.core.state_validation import NOT_FOUND, first_fault

Games = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]
Positions = Mapping[str, Any] | Sequence[Mapping[str, Any]] | npt.NDArray[np.void]

MOST_GAMES = 2**24  # of a batch, far more than any of ours: 1.5 KB each

_SLOT_LIMITS: dict[str, tuple[Any, Any]] = {
    "base_seed": (NO_PLAYER, MAX_SEED),
    "seed": (0, MAX_SEED),
    "episode": (0, 2**31 - 1),
    "decisions": (0, 2**31 - 1),
    "reward": (-1.0, 1.0),
    "player": (NO_PLAYER, 1),
    "next_player": (NO_PLAYER, 1),
    "terminated": (0, 1),
    "truncated": (0, 1),
    "bot": (NO_BOT, GREEDY),
}


def checked_count(n: object) -> int:
    """Return how many games a batch is to have, or raise `ValueError`."""
    count = as_integer(n)
    if count is None or not 1 <= count <= MOST_GAMES:
        raise ValueError(f"n: expected one game or more, up to {MOST_GAMES}, got {repr_short(n)}")
    return count


def checked_games(games: npt.ArrayLike, n: int, met: npt.NDArray[np.bool_] | None = None) -> Games:
    """Return indices of games of a batch of `n` as kernels take them, int64 (k,).

    Args:
        games: integers (k,).
        n: how many games the batch has.
        met: all False (n,), and left so: then no game may be named twice.

    Raises:
        IndexError: there is no such game.
        ValueError: these are no integers (k,), or a game is named twice.
    """
    chosen = _integers("games", games)
    wrong = first_outside(chosen, 0, n - 1)
    if wrong != NOT_FOUND:
        raise IndexError(f"games: expected 0 to {n - 1}, got {chosen[wrong]}")
    if met is not None:
        again = first_repeated(chosen, met)
        if again != NOT_FOUND:
            raise ValueError(f"games: expected each game once, got {chosen[again]} twice")
    return chosen


def checked_seats(
    seats: npt.ArrayLike, k: int, lowest: int = NO_PLAYER, *, name: str = "seats"
) -> npt.NDArray[np.signedinteger[Any]]:
    """Return seats, from `lowest` to 1, as int8 or int64 (k,), or raise `ValueError`."""
    chosen: npt.NDArray[np.signedinteger[Any]] = as_array(name, seats)
    usual = chosen.dtype == np.int8 and chosen.ndim == 1
    if not (usual and chosen.flags.carray):
        chosen = chosen.astype(np.int8) if usual else _integers(name, seats)
    if len(chosen) != k:
        raise ValueError(f"{name}: expected {k}, one for each game, got {len(chosen)}")
    wrong = first_outside(chosen, lowest, 1)
    if wrong != NOT_FOUND:
        raise ValueError(f"{name}: expected {lowest} to 1, got {chosen[wrong]}")
    return chosen


def checked_moves(moves: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    """Return moves as int64 (n,), or raise `ValueError`."""
    array = as_array("moves", moves)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"moves: expected integers of shape ({n},), one for each game, "
            f"got {describe_array(array)}"
        )
    return _as_int64(array)


def checked_bots(bots: npt.ArrayLike, k: int) -> npt.NDArray[np.signedinteger[Any]]:
    """Return who plays the seats of k games as integers (k, 2), or raise `ValueError`."""
    seated = as_array("bots", bots)
    if seated.shape != (k, 2) or seated.dtype.kind not in "iu":
        raise ValueError(f"bots: expected integers of shape ({k}, 2), got {describe_array(seated)}")
    if not np.isin(seated, (NO_BOT, *BOTS.values())).all():
        raise ValueError(f"bots: expected {NO_BOT} or one of {BOTS}, got {repr_short(bots)}")
    if (seated != NO_BOT).all(axis=-1).any():
        raise ValueError("bots: expected a seat without a bot in each game")
    return seated


def checked_seeds(seeds: npt.ArrayLike, games: Games) -> npt.NDArray[np.int64]:
    """Return a seed for each of the given games, int64 (k,).

    Raises:
        SeedError: naming the game whose seed is none.
        ValueError: these are no integers (k,).
    """
    array = as_array("seed", seeds)
    if array.shape != games.shape or array.dtype.kind not in "iu":
        raise ValueError(
            f"seed: expected an integer or integers of shape {games.shape}, "
            f"got {describe_array(array)}"
        )
    for game, each in zip(games.tolist(), array.tolist(), strict=True):
        try:
            check_seed(each)
        except SeedError as error:
            raise SeedError(f"game {game}: {error}") from None
    return array.astype(np.int64)


def states_from(positions: Positions, boards: BoardPool, which: Games, games: Games) -> Rows:
    """Return the states that games begin from: `STATE` (k,) or (1,).

    Args:
        positions: one for all, or one for each game: as `Game.to_dict` gives it, or `STATE`.
        boards: the boards of a batch.
        which: int64 (k,), the index of the board of each game; of boards that are drawn, that
            which a position names is written there.
        games: (k,), whose states these are, for the error.

    Raises:
        PositionError: naming the game, the key and what was expected.
        ValueError: these are not as many as the games.
    """
    if isinstance(positions, np.ndarray):
        if positions.dtype != STATE or positions.shape not in ((1,), games.shape):
            raise ValueError(
                f"positions: expected STATE of shape ({len(games)},) or (1,), "
                f"got {describe_array(positions)}"
            )
        held = copy_rows(np.require(positions, STATE, ["C", "E"]))
        check_states(boards, boards.records, which, games, held)
        return held
    each = [positions] * len(games) if isinstance(positions, Mapping) else positions
    if not isinstance(each, Sequence) or isinstance(each, str | bytes):
        raise position.PositionError(
            f"positions: expected a position, a sequence of them or STATE, got {repr_short(each)}"
        )
    if len(each) != len(games):
        raise ValueError(f"positions: expected {len(games)}, one for each, got {len(each)}")
    states = np.empty(len(games), STATE)
    for j, (game, one) in enumerate(zip(games.tolist(), each, strict=True)):
        try:
            if boards.drawn:
                which[j] = boards.index(position.board_name(one))
            states[j] = position.from_dict(boards[int(which[j])], one)[0]
        except (position.PositionError, BoardError) as error:
            raise position.PositionError(f"game {game}: {error}", error.key) from None
    return states


def check_states(
    boards: BoardPool | Sequence[Board], records: Rows, which: Games, games: Games, states: Rows
) -> None:
    """Check that games could stand so.

    Args:
        boards: the boards of a batch.
        records: `BOARD` (b,), the same.
        which: integers (k,), the index of the board of each game.
        games: (k,), whose states these are, for the error.
        states: `STATE` (k,) or, one for all, (1,); contiguous.

    Raises:
        PositionError: naming the game, the key and what was expected.
    """
    j, fault = first_fault(records, which, states)
    if fault:
        row = states[j if len(states) > 1 else 0]
        error = position.explained(boards[int(which[j])], row, fault)
        raise position.PositionError(f"game {games[j]}: {error}", error.key)


def checked_arrays(
    snapshot: Mapping[str, Any], like: Mapping[str, npt.NDArray[Any]], k: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a snapshot under the names of others, of the same dtypes.

    Raises:
        ValueError: there is none of that name, dtype and shape: all (k,) or all (1,).
    """
    if not isinstance(snapshot, Mapping):
        raise ValueError(f"snapshot: expected a mapping of arrays, got {type(snapshot).__name__}")
    lengths: tuple[int, ...] = (1, k)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, other in like.items():
        array = snapshot.get(name)
        if not isinstance(array, np.ndarray):
            raise ValueError(f"snapshot: {name}: expected an array, got {type(array).__name__}")
        text = other.dtype.kind == "U"
        if array.dtype.kind != "U" if text else array.dtype != other.dtype:
            kind = "text" if text else "the dtype of a snapshot"
            raise ValueError(f"snapshot: {name}: expected {kind}, got {array.dtype!s:.80}")
        if array.ndim != 1 or len(array) not in lengths:
            held = len(array) if array.ndim == 1 else f"shape {array.shape}"
            expected = f"{lengths[-1]} games or 1" if len(lengths) > 1 else f"{lengths[0]}"
            raise ValueError(f"snapshot: expected {expected}, it holds {held}: {name}")
        lengths = (len(array),)
        arrays[name] = np.require(array, None, ["C", "W", "E"])
    return arrays


def check_slots(boards: Rows, which: Games, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Check the episode infos and the legal masks of a snapshot, whose states are possible.

    Args:
        boards: `BOARD` (b,).
        which: integers (k,), the index of the board of each game.
        arrays: "states", "legal" and "episode_info", (k,) or (1,) each.

    Raises:
        ValueError: naming the place in the snapshot, the field and what was expected.
    """
    n = min(len(arrays["episode_info"]), len(which))
    if n == 0:  # one slot for no game at all is not looked at
        return
    info, masks = arrays["episode_info"][:n], arrays["legal"][:n]
    for name, (low, high) in _SLOT_LIMITS.items():
        values = info[name].reshape(n, -1)
        wrong = np.flatnonzero(~((low <= values) & (values <= high)).all(axis=1))
        if len(wrong):
            got = f"expected {low} to {high}, got {info[name][wrong[0]].tolist()}"
            raise ValueError(f"snapshot: episode_info[{wrong[0]}]: {name}: {got}")
    wrong = np.flatnonzero((info["bot"] != NO_BOT).all(axis=1))
    if len(wrong):
        only = "bot: expected a seat without a bot in each game"
        raise ValueError(f"snapshot: episode_info[{wrong[0]}]: {only}")
    j = first_wrong_mask(boards, which[:n], arrays["states"][:n], masks)
    if j != NOT_FOUND:
        got = f"expected what is legal in its state, got {masks[j]}"
        raise ValueError(f"snapshot: legal[{j}]: {got}")


def _integers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = as_array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected integers of shape (k,), got {describe_array(array)}")
    return _as_int64(array)


def _as_int64(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return integers as kernels are compiled for them: one type, contiguous, to be written to."""
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:  # half of them would turn negative
        array = np.minimum(array, np.iinfo(np.int64).max)
    whole = np.ascontiguousarray(array, np.int64)
    return whole if whole.flags.writeable else whole.copy()


# Kernels


@entry
def first_outside(numbers: Any, low: int, high: int) -> int:
    """Return the place of the first of some integers that is not from `low` to `high`, else -1."""
    for j in range(len(numbers)):
        if not low <= numbers[j] <= high:
            return j
    return NOT_FOUND


@entry
def first_repeated(games: Any, met: Any) -> int:
    """Return the place of the first index that stands there before, else -1.

    Args:
        games: int64 (k,), indices.
        met: bool (n,), all False, and left so.
    """
    again = NOT_FOUND
    for j in range(len(games)):
        if met[games[j]]:
            again = j
            break
        met[games[j]] = True
    for j in range(again if again != NOT_FOUND else len(games)):
        met[games[j]] = False
    return again


@entry
def first_wrong_mask(boards: Any, which: Any, states: Any, masks: Any) -> int:
    """Return the place of the first state whose legal actions are others than its mask's, else -1.

    Args:
        boards: `BOARD` (b,).
        which: integers (n,), the index of the board of each state.
        states: `STATE` (n,), possible ones.
        masks: uint64 (n,).
    """
    for j in range(len(masks)):
        if masks[j] != legal(boards[which[j]], states[j]):
            return j
    return NOT_FOUND
