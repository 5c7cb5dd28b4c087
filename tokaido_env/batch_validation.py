"""Checks of the arguments of `Batch`: indices, seats, moves, seeds, positions, snapshots.

Kernels index by these arrays without bounds checks, so everything is checked before a kernel runs.
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
    IllegalMove,
    SeedError,
    as_integer,
    check_seed,
    describe_array,
    join_limited,
    repr_short,
)
from tokaido_env.core.bots import BOTS, GREEDY, NO_BOT
from tokaido_env.core.events import illegal_move_message
from tokaido_env.core.jit import entry
from tokaido_env.core.rng import entropy_seed, game_seeds
from tokaido_env.core.state import NO_PLAYER, STATE, Phase, copy_rows
from tokaido_env.core.state_validation import NOT_FOUND, first_fault, first_wrong_mask

Games = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]
Seeds = int | npt.ArrayLike | None
Positions = Mapping[str, Any] | Sequence[Mapping[str, Any]] | npt.NDArray[np.void]

MAX_GAMES = 2**24  # 1.5 KB each, so 24 GiB

_INFO_LIMITS: tuple[tuple[str, Any, Any], ...] = (
    ("base_seed", NO_PLAYER, MAX_SEED),
    ("seed", 0, MAX_SEED),
    *((name, 0, 2**31 - 1) for name in ("episode", "decisions")),
    ("reward", -1.0, 1.0),
    *((name, NO_PLAYER, 1) for name in ("player", "next_player")),
    ("terminated", 0, 1),
    ("bot", NO_BOT, GREEDY),
)


def checked_count(n: object) -> int:
    """Return a number of games as an int.

    Raises:
        ValueError: for anything else than an integer from 1 to `MAX_GAMES`.
    """
    count = as_integer(n)
    if count is None or not 1 <= count <= MAX_GAMES:
        raise ValueError(f"n: expected 1 to {MAX_GAMES} games, got {repr_short(n)}")
    return count


def checked_games(
    games: npt.ArrayLike, n: int, scratch: npt.NDArray[np.bool_] | None = None
) -> Games:
    """Return indices of games as kernels take them, int64 (k,).

    Args:
        games: integers (k,).
        n: number of games in the batch.
        scratch: False (n,), restored on return; if given, indices may not repeat.

    Raises:
        IndexError: for an index outside 0 to n - 1.
        ValueError: for anything else than integers (k,), or a repeated index.
    """
    chosen = _integers("games", games)
    wrong = first_outside(chosen, 0, n - 1)
    if wrong != NOT_FOUND:
        raise IndexError(f"games: expected 0 to {n - 1}, got {chosen[wrong]}")
    if scratch is not None:
        again = first_repeated(chosen, scratch)
        if again != NOT_FOUND:
            raise ValueError(f"games: expected each game once, got {chosen[again]} twice")
    return chosen


def checked_seats(
    seats: npt.ArrayLike, k: int, lowest: int = NO_PLAYER, *, name: str = "seats"
) -> npt.NDArray[np.int8]:
    """Return seats as int8 (k,).

    Args:
        seats: integers (k,).
        k: number of games.
        lowest: the lowest value allowed; the highest is 1.
        name: of the argument, for errors.

    Raises:
        ValueError: for anything else.
    """
    chosen = _integers(name, seats)
    if len(chosen) != k:
        raise ValueError(f"{name}: expected {k}, one for each game, got {len(chosen)}")
    wrong = first_outside(chosen, lowest, 1)
    if wrong != NOT_FOUND:
        raise ValueError(f"{name}: expected {lowest} to 1, got {chosen[wrong]}")
    return chosen.astype(np.int8)


def checked_moves(moves: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    """Return moves, integers (n,), as int64 (n,).

    Raises:
        ValueError: for anything else than integers (n,); they may be illegal moves.
    """
    return _integers("moves", moves, (n,), ", one for each game")


def checked_bots(bots: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Return the bots of k games, integers (k, 2), as int64 (k, 2).

    Raises:
        ValueError: for an unknown bot, or bots in both seats of a game.
    """
    array = _integers("bots", bots, (k, 2))
    if not np.isin(array, (NO_BOT, *BOTS.values())).all():
        raise ValueError(f"bots: expected {NO_BOT} or one of {BOTS}, got {repr_short(bots)}")
    if (array != NO_BOT).all(axis=-1).any():
        raise ValueError("bots: expected a seat without a bot in each game, got bots in both")
    return array


def base_seeds(
    seed: Seeds, games: Games, previous: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Any]:
    """Return the base seeds (those of episode 0) of games, and which games continue theirs.

    Args:
        seed: an integer, a sequence (k,) of integers and None, or None, as for `Batch.reset`.
        games: (k,), the indices of the games.
        previous: int64 (k,), negative for a game that has not begun; overwritten.
    """
    new = previous < 0
    if new.any():
        previous[new] = game_seeds(entropy_seed(), games[new])
    if seed is None:
        return previous, True
    if np.ndim(seed) == 0:
        return game_seeds(seed, games), False
    return checked_seeds(seed, games, previous)


def illegal_moves_error(
    pool: BoardPool,
    boards: Rows,
    board_index: Games,
    states: Rows,
    games: Games,
    moves: npt.NDArray[np.int64],
) -> IllegalMove:
    """Return the error of illegal moves of a batch, naming the legal ones.

    Args:
        pool: the boards of the batch.
        boards: `BOARD` (b,), the same boards.
        board_index: integers (n,), the board of each game.
        states: `STATE` (n,), of all games.
        games: int64 (k,), the indices of the games with these moves.
        moves: int64 (k,).
    """

    def text(game: int, move: int) -> str:
        board = int(board_index[game])
        position = boards[board:][:1], states[game:][:1], 0
        return f"game {game}: {illegal_move_message(pool[board].kinds, *position, move)}"

    return IllegalMove(join_limited(map(text, games.tolist(), moves.tolist()), len(games), "games"))


def check_deciding(games: Games, legal: npt.NDArray[np.uint64], states: Rows) -> None:
    """Raise `IllegalMove` for a game of a batch that is not at a decision.

    Args:
        games: int64 (k,), indices.
        legal: uint64 (n,), the legal actions of all games as bits.
        states: `STATE` (n,), of all games.
    """
    idle = games[legal[games] == 0]
    if len(idle):
        phase = Phase(states["phase"][idle[0]])
        remedy = "begin its next episode" if phase == Phase.OVER else "play an outcome"
        raise IllegalMove(f"game {idle[0]}: nothing to decide at {phase.name}: {remedy} first")


def checked_seeds(
    seeds: npt.ArrayLike, games: Games, previous: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return one seed per game, as `check_seed`, int64 (k,), and which were None, bool (k,).

    Args:
        seeds: integers or None (k,); a game with None keeps its previous seed.
        games: (k,), the indices of the games, for errors.
        previous: int64 (k,).

    Raises:
        SeedError: for a seed that `check_seed` refuses, naming the game.
        ValueError: for a wrong shape.
    """
    array = np.asarray(seeds)
    if array.shape != games.shape:
        raise ValueError(
            f"seed: expected an integer or integers of shape {games.shape}, "
            f"got {describe_array(array)}"
        )
    checked, follows = previous.copy(), np.zeros(len(games), np.bool_)
    # Not the elements of `array`, which has converted booleans among integers.
    each = seeds.tolist() if hasattr(seeds, "tolist") else seeds
    for i, (game, one) in enumerate(zip(games.tolist(), each, strict=True)):  # type: ignore[arg-type]
        follows[i] = one is None
        try:
            checked[i] = previous[i] if one is None else check_seed(one)
        except SeedError as error:
            raise SeedError(f"game {game}: {error}") from None
    return checked, follows


def states_from(positions: Positions, boards: BoardPool, board_index: Games, games: Games) -> Rows:
    """Return the initial states of games: `STATE` (k,) or (1,).

    Args:
        positions: one for all games or one per game, as dicts of `Game.to_dict` or as `STATE`.
        boards: the boards of the batch.
        board_index: int64 (k,), the board of each game. If boards are drawn from a pool, the board
            that a position names replaces it.
        games: (k,), the indices of the games, for errors.

    Raises:
        PositionError: naming the game, the key and the expected value.
        ValueError: for a wrong number of positions.
    """
    if isinstance(positions, np.ndarray):
        if positions.dtype != STATE or positions.shape not in ((1,), games.shape):
            raise ValueError(
                f"positions: expected STATE of shape ({len(games)},) or (1,), "
                f"got {describe_array(positions)}"
            )
        held = copy_rows(np.require(positions, STATE, ["C", "E"]))
        check_states(boards, boards.records, board_index, games, held)
        return held
    each = [positions] * len(games) if isinstance(positions, Mapping) else positions
    if len(each) != len(games):
        raise ValueError(f"positions: expected {len(games)}, one for each, got {len(each)}")
    states = np.empty(len(games), STATE)
    for j, (game, one) in enumerate(zip(games.tolist(), each, strict=True)):
        try:
            if boards.drawn:
                board_index[j] = boards.index_of_name(position.board_name(one))
            states[j] = position.from_dict(boards[int(board_index[j])], one)[0]
        except (position.PositionError, BoardError) as error:
            raise position.PositionError(f"game {game}: {error}") from None
    return states


def check_states(
    boards: BoardPool | Sequence[Board],
    records: Rows,
    board_index: Games,
    games: Games,
    states: Rows,
) -> None:
    """Check that a game can reach each of the states.

    Args:
        boards: the boards of the batch.
        records: `BOARD` (b,), the same boards.
        board_index: integers (k,), the board of each game.
        games: (k,), the indices of the games, for errors.
        states: `STATE` (k,), or (1,) for all games; contiguous.

    Raises:
        PositionError: naming the game, the key and the expected value.
    """
    j, fault = first_fault(records, board_index, states)
    if fault:
        row = states[j if len(states) > 1 else 0]
        error = position.fault_error(boards[int(board_index[j])], row, fault)
        raise position.PositionError(f"game {games[j]}: {error}")


def checked_arrays(
    snapshot: Mapping[str, Any], like: Mapping[str, npt.NDArray[Any]], k: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a snapshot, with the names and dtypes of `like`.

    Args:
        snapshot: arrays by name.
        like: arrays with the expected names and dtypes.
        k: expected number of games; a snapshot of one game is accepted too.

    Raises:
        ValueError: for a missing array, or one of another dtype or shape.
    """
    lengths: tuple[int, ...] = (1, k)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, other in like.items():
        array = snapshot.get(name)
        is_text = other.dtype.kind == "U"
        if not isinstance(array, np.ndarray) or (
            array.dtype.kind != "U" if is_text else array.dtype != other.dtype
        ):
            raise ValueError(f"snapshot: {name}: expected an array of {other.dtype!s:.80}")
        if array.ndim != 1 or len(array) not in lengths:
            expected = " or ".join(map(str, lengths))
            raise ValueError(f"snapshot: {name}: expected {expected} games, got {array.shape}")
        lengths = (len(array),)
        arrays[name] = np.require(array, None, ["C", "W", "E"])
    return arrays


def check_episode_info(
    boards: Rows, board_index: Games, arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Check the episode info and the legal masks of a snapshot with valid states.

    Args:
        boards: `BOARD` (b,).
        board_index: integers (k,), the board of each game.
        arrays: "states", "legal" and "episode_info", (k,) or (1,) each.

    Raises:
        ValueError: naming the wrong fields.
    """
    n = min(len(arrays["episode_info"]), len(board_index))
    info, masks = arrays["episode_info"][:n], arrays["legal"][:n]
    inside = {name: (low <= info[name]) & (info[name] <= high) for name, low, high in _INFO_LIMITS}
    wrong = [name for name, each in inside.items() if not each.all()]
    if (info["bot"] != NO_BOT).all(axis=1).any():
        wrong.append("a bot in both seats")
    if wrong:
        raise ValueError(f"snapshot: episode_info: not of a game: {', '.join(wrong)}")
    if first_wrong_mask(boards, board_index[:n], arrays["states"][:n], masks) != NOT_FOUND:
        raise ValueError("snapshot: legal: expected the legal actions of the states")


def _integers(
    name: str, values: npt.ArrayLike, shape: tuple[int, ...] | None = None, note: str = ""
) -> npt.NDArray[np.int64]:
    """Return integers of a shape (default: any number of them) as kernels take them."""
    array = np.asarray(values)
    has_shape = array.ndim == 1 if shape is None else array.shape == shape
    if not has_shape or array.dtype.kind not in "iu":
        expected = f"integers of shape {shape or '(k,)'}{note}"
        raise ValueError(f"{name}: expected {expected}, got {describe_array(array)}")
    return _as_int64(array)


def _as_int64(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return integers as kernels take them: int64, contiguous and writable."""
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:  # 2**63 would turn negative
        array = np.minimum(array, np.iinfo(np.int64).max)
    whole = np.ascontiguousarray(array, np.int64)
    return whole if whole.flags.writeable else whole.copy()


# Kernels


@entry
def first_outside(numbers: Any, low: int, high: int) -> int:
    """Return the index of the first of some integers, (k,), outside `low` to `high`, or -1."""
    for j in range(len(numbers)):
        if not low <= numbers[j] <= high:
            return j
    return NOT_FOUND


@entry
def first_repeated(games: Any, seen: Any) -> int:
    """Return the position of the first repeated index, or -1.

    Args:
        games: int64 (k,), indices.
        seen: bool (n,), all False; restored on return.
    """
    again = NOT_FOUND
    for j in range(len(games)):
        if seen[games[j]]:
            again = j
            break
        seen[games[j]] = True
    for j in range(again if again != NOT_FOUND else len(games)):
        seen[games[j]] = False
    return again
