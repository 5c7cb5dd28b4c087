"""Tables of recorded games as Parquet files: a row per decision, or a row per game.

`docs/reference/file-formats.md` lists the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.match import SCORE_KEYS
from tokaido_env.boards.board_pool import Boards
from tokaido_env.cli.tabular_io import TEXT, TEXTS, Kind, Part, check_format, table_file
from tokaido_env.core import batch_kernels
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.constants import TRIGGER_LEVELS
from tokaido_env.core.observation import LAYOUT_HASH, N_FEATURES
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.state import copy_rows
from tokaido_env.features.afterstate_observation import (
    AFTERSTATE_LAYOUT_HASH,
    GEOMETRY_LAYOUT_HASH,
    N_AFTERSTATE,
    N_OBSERVED,
)
from tokaido_env.features.geometry_features import N_GEOMETRY
from tokaido_env.files import check_outputs
from tokaido_env.observers import AFTERSTATES, ObservationFormat, observe
from tokaido_env.record import Record, read_verified
from tokaido_env.trajectory import Trajectory

VERSION = 1

Rows = Literal["decisions", "games"]

Arrays = Mapping[str, npt.NDArray[Any]]

_LAYOUTS = {
    "float32": ("float32", N_FEATURES, LAYOUT_HASH),
    "uint8": ("uint8", N_FEATURES, LAYOUT_HASH),
    "geometry": ("float32", N_GEOMETRY, GEOMETRY_LAYOUT_HASH),
    "afterstates": ("float32", N_OBSERVED, AFTERSTATE_LAYOUT_HASH),
}
"""The dtype, the length and the hash of the layout of an observation, by format."""

GAME_COLUMNS: Mapping[str, Kind] = {
    "game": "int64",
    "seed": "int64",
    **dict.fromkeys(("board", "board_hash", "player_0", "player_1"), TEXT),
    "winner": "int8",
    "end": TEXT,
    "margin": "int32",
    **{f"{name}_{seat}": "int32" for seat in range(2) for name in SCORE_KEYS},
    "rounds": "int16",
    **{f"decisions_{seat}": "int32" for seat in range(2)},
    "trigger": TEXT,
    "trigger_seat": "int8",
    "trigger_round": "int16",
    "forfeit_seat": "int8",
    "forfeit_reason": TEXT,
}
"""The columns of the table of games in order, with their kinds."""


def export(
    records: str | Path,
    out: str | Path,
    board: Boards | None = None,
    observation: ObservationFormat = "float32",
    rows: Rows = "decisions",
    distinct: bool = False,
) -> tuple[int, int]:
    """Verify a record file and write its decisions or its games to a Parquet file, each game once.

    Args:
        records: a record file, JSON Lines.
        out: file to write, .parquet, whole or not at all.
        board: the board or pool of the games, if neither built in nor of the family.
        observation: "float32", "uint8", "geometry" or "afterstates".
        rows: what a row contains, "decisions" or "games".
        distinct: of a player's decisions with equal observations, masks and boards write only the
            first.

    Returns:
        The numbers of rows and of games.

    Raises:
        RecordError: for a wrong record, with its line and event.
        ValueError: for another suffix, no row, numbers too large for uint8, or `distinct` games.
        OSError: if a file cannot be read or written.
        ModuleNotFoundError: if pyarrow is missing.
    """
    if (distinct or observation != "float32") and rows == "games":
        raise ValueError("distinct, observation: expected with rows of decisions, got games")
    source, target = Path(records), Path(out)
    check_format(target)
    check_outputs(target, read=[source, board if isinstance(board, str | Path) else None])
    about = {"format": f"tokaido-duo-{rows}", "version": VERSION, "rules": RULES_VERSION}
    if rows == "decisions":
        about |= {"layout": _LAYOUTS[observation][2], "observation": observation}
    kinds = GAME_COLUMNS if rows == "games" else columns(observation)
    seen: set[bytes] = set()
    written = games = 0
    with table_file(target, kinds, about) as add:
        for part in _parts(source, board, observation, rows):
            if distinct:
                part = _without(part, seen)
            add(part)
            written += len(part["game"])
            games += 1
        if not written:
            raise ValueError(f"{source}: expected {rows}, found none")
    return written, games


def columns(observation: ObservationFormat) -> dict[str, Kind]:
    """Return the columns of the table of decisions in order: name to text kind, dtype or array.

    Args:
        observation: "float32", "uint8", "geometry" or "afterstates".
    """
    dtype, size, _ = _LAYOUTS[observation]
    shown: dict[str, Kind] = {"observation": (dtype, size)}
    if observation == AFTERSTATES:
        shown["actions"] = "float32", N_ACTIONS * N_AFTERSTATE
    return {
        "game": "int64",
        "seed": "int64",
        "step": "int32",
        "seat": "int8",
        "player": TEXT,
        "board": TEXT,
        "board_hash": TEXT,
        **shown,
        "mask": ("int8", N_ACTIONS),
        "action": "int64",
        "reward": "float32",
        "return": "float32",
        "terminated": "bool",
        "truncated": "bool",
        "chance": TEXTS,
        "next_player": "int8",
    }


def _parts(
    path: Path, board: Boards | None, observation: ObservationFormat, rows: Rows
) -> Iterator[Part]:
    """Yield the rows of each distinct game, verified."""
    for number, record, played in read_verified(path, board, distinct=True):
        if rows == "decisions":
            yield _decisions(number, record, played, observation)
        else:
            yield {name: [value] for name, value in game_row(number, record, played).items()}


def _without(part: Part, seen: set[bytes]) -> Part:
    """Return the rows of positions that their player had not seen, and add these to the seen."""
    new = []
    names = "observation", "mask", "board_hash", "player"
    shown = zip(*(part[name] for name in names), strict=True)
    for row, (observation, mask, board, player) in enumerate(shown):
        text = observation.tobytes() + mask.tobytes() + f"{board}{player}".encode()
        key = blake2b(text, digest_size=16).digest()
        if key not in seen:
            seen.add(key)
            new.append(row)
    return {
        name: [column[row] for row in new] if isinstance(column, list) else column[new]
        for name, column in part.items()
    }


# One game


def _decisions(
    number: int, record: Record, played: Trajectory, observation: ObservationFormat
) -> Part:
    board = played.board
    decisions = np.flatnonzero(played.decided)
    last = len(played.states) - 1
    following = np.append(decisions, last)[1:]
    seats = played.movers[decisions]
    labels, length = played.labels(), len(decisions)
    states = copy_rows(played.states, decisions)
    seen = observe(board.record, states, seats, observation)
    shown = seen if isinstance(seen, dict) else {"observation": seen}
    if "actions" in shown:
        shown["actions"] = shown["actions"].reshape(length, N_ACTIONS * N_AFTERSTATE)
    shown["mask"] = shown.pop("action_mask", batch_kernels.mask_rows(decisions, played.legal))
    between = zip(decisions.tolist(), following.tolist(), strict=True)
    return {
        "game": np.full(length, number),
        "seed": np.full(length, -1 if record.seed is None else record.seed),
        "step": np.arange(length, dtype=np.int32),
        "seat": seats,
        "player": [record.players[seat] for seat in seats.tolist()],
        "board": np.full(length, board.name),
        "board_hash": np.full(length, board.hash),
        **shown,
        "action": played.events[decisions].astype(np.int64),
        "chance": [list(labels[i + 1 : j]) for i, j in between],
        "next_player": np.append(seats, np.int8(-1 if record.end else played.movers[last]))[1:],
        **_results(record, seats),
    }


def _results(record: Record, seats: npt.NDArray[np.int8]) -> Arrays:
    last = np.zeros(len(seats), bool)
    for seat in range(2):
        last[np.flatnonzero(seats == seat)[-1:]] = True
    over, won = record.end is not None, 0 if record.winner is None else 1 - 2 * record.winner
    result = np.array([won, -won], np.float32)[seats]
    return {
        "reward": np.where(last, result, np.float32(0)),
        "return": result if over else np.full(len(seats), np.nan, np.float32),
        "terminated": last & over,
        "truncated": last & (not over),
    }


# The row of a game


def game_row(number: int, record: Record, played: Trajectory) -> dict[str, Any]:
    """Return the row of one game by the names of `GAME_COLUMNS`.

    Args:
        number: line of the game, from 1.
        record: of the game.
        played: its trajectory.
    """
    movers = played.movers[played.decided]
    first, second = record.scores
    forfeit = record.forfeit
    row = {
        "game": number,
        "seed": -1 if record.seed is None else record.seed,
        "board": played.board.name,
        "board_hash": record.board_hash,
        "winner": -1 if record.winner is None else record.winner,
        "end": record.end or "",
        "margin": first["total"] - second["total"],
        "rounds": record.rounds,
        "forfeit_seat": -1 if forfeit is None else forfeit.seat,
        "forfeit_reason": "" if forfeit is None else forfeit.reason,
    }
    for seat, points in enumerate(record.scores):
        row |= {f"{name}_{seat}": points[name] for name in SCORE_KEYS}
        row |= {f"player_{seat}": record.players[seat]}
        row |= {f"decisions_{seat}": int((movers == seat).sum())}
    return row | _trigger(played)


def _trigger(played: Trajectory) -> dict[str, Any]:
    """Return the end trigger: its name, seat and round."""
    triggered = np.flatnonzero(played.states["end_triggered"])
    if len(triggered):
        state = played.states[triggered[0]]
        for name, last in TRIGGER_LEVELS.items():
            for seat in np.flatnonzero(state[name] >= last).tolist():
                found = {"trigger": name, "trigger_seat": seat}
                return found | {"trigger_round": int(state["round"])}
    return {"trigger": "", "trigger_seat": -1, "trigger_round": 0}
