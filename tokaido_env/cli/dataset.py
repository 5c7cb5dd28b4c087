"""Tables of the decisions of recorded games, for offline learning and analysis.

`docs/reference/file-formats.md` lists the columns of Parquet files and the arrays of `.npz`
archives, which have the names of the fields of Minari's EpisodeData (Farama Foundation).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board_pool import Boards
from tokaido_env.cli.tabular_io import (
    TEXT,
    TEXTS,
    Kind,
    check_export,
    npz_archive,
    npz_member,
    table_file,
    write_member,
)
from tokaido_env.core import batch_kernels
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.observation import LAYOUT_HASH, N_FEATURES, quotient_table
from tokaido_env.core.rules import RULES_VERSION, rewards_of
from tokaido_env.core.state import END_TRIGGERS, NOT_ENDED, copy_rows
from tokaido_env.files import atomic_write
from tokaido_env.observers import observe
from tokaido_env.record import Record, read_unverified, read_verified
from tokaido_env.trajectory import Trajectory

FORMAT = "tokaido-duo-decisions"
VERSION = 1

Dtype = Literal["float32", "uint8"]

Arrays = Mapping[str, npt.NDArray[Any]]


class GameRows(NamedTuple):
    """The T decisions of one game.

    Attributes:
        rows: arrays of T rows by column; `player` and `chance` are lists.
        final_observations: (2, N_FEATURES), the final observation of each seat.
    """

    rows: dict[str, Any]
    final_observations: npt.NDArray[Any]


def export(
    records: str | Path, out: str | Path, board: Boards | None = None, dtype: Dtype = "float32"
) -> tuple[int, int]:
    """Verify a record file and write its decisions to a dataset.

    Args:
        records: a record file, JSON Lines.
        out: file to write, .parquet or .npz, whole or not at all.
        board: as for `record.load`.
        dtype: of the observations, "float32" or "uint8".

    Returns:
        The numbers of rows and of games.

    Raises:
        RecordError: for a wrong record, with its line and event.
        ValueError: for another suffix, no decision, or numbers too large for uint8.
        OSError: if a file cannot be read or written.
        ModuleNotFoundError: if pyarrow is missing, for a parquet file.
    """
    source, target = check_export(records, out, board)
    rows = count_decisions(source)
    lengths: list[int] = []

    def counted() -> Iterator[GameRows]:
        for played in read(source, board, dtype):
            lengths.append(len(played.rows["step"]))
            yield played
        if sum(lengths) != rows:
            raise ValueError(
                f"{source}: expected {rows} decisions, got {sum(lengths)}: it changed meanwhile"
            )

    about = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
    about |= {"layout": LAYOUT_HASH, "observation": dtype}
    if target.suffix == ".npz":
        _write_npz(target, counted(), (rows, N_FEATURES), about)
    else:
        with table_file(target, columns(dtype), about) as add:
            for played in counted():
                add(played.rows)
    return rows, len(lengths)


def columns(dtype: Dtype) -> dict[str, Kind]:
    """Return the columns of the table in order, with their kinds.

    Args:
        dtype: of the observations.
    """
    return {
        "game": "int64",
        "seed": "int64",
        "step": "int32",
        "seat": "int8",
        "player": TEXT,
        "board": TEXT,
        "board_hash": TEXT,
        "observation": (dtype, N_FEATURES),
        "mask": ("int8", N_ACTIONS),
        "action": "int64",
        "reward": "float32",
        "return": "float32",
        "terminated": "bool",
        "truncated": "bool",
        "chance": TEXTS,
        "next_player": "int8",
    }


def read(path: Path, board: Boards | None = None, dtype: Dtype = "float32") -> Iterator[GameRows]:
    """Yield the decisions of each game of a record file, verified; see `export`."""
    for number, record, played in read_verified(path, board):
        yield _decisions(number, record, played, dtype)


def count_decisions(path: Path) -> int:
    """Return the number of decisions in a record file, before they are verified.

    Raises:
        ValueError: if there is none.
    """
    count = sum(sum(event in IDS for event in record.events) for _, record in read_unverified(path))
    if not count:
        raise ValueError(f"{path}: expected games with decisions, found none")
    return count


# One game


def _decisions(number: int, record: Record, played: Trajectory, dtype: Dtype) -> GameRows:
    board = played.board
    decisions = np.flatnonzero(played.decided)
    # Both seats get a final observation, of the position after the last event.
    last = len(played.states) - 1
    following = np.append(decisions, last)[1:]
    seats = played.movers[decisions]
    seen_by = np.append(seats, [0, 1]).astype(np.int8)
    seen = copy_rows(played.states, np.append(decisions, [last, last]))
    observations: Any = observe(board.record, seen, seen_by, dtype)
    labels, length = played.labels(), len(decisions)
    between = zip(decisions.tolist(), following.tolist(), strict=True)
    rows = {
        "game": np.full(length, number),
        "seed": np.full(length, -1 if record.seed is None else record.seed),
        "step": np.arange(length, dtype=np.int32),
        "seat": seats,
        "player": [record.players[seat] for seat in seats.tolist()],
        "board": np.full(length, board.name),
        "board_hash": np.full(length, board.hash),
        "observation": observations[:-2],
        "mask": batch_kernels.mask_rows(decisions, played.legal),
        "action": played.events[decisions].astype(np.int64),
        "chance": [list(labels[i + 1 : j]) for i, j in between],
        "next_player": played.movers[following],
        **_results(played, seats),
    }
    return GameRows(rows, observations[-2:])


def _results(played: Trajectory, seats: npt.NDArray[np.int8]) -> Arrays:
    last = np.zeros(len(seats), bool)
    for seat in range(2):
        last[np.flatnonzero(seats == seat)[-1:]] = True
    final = played.ends
    end = int(final["end"][0])
    result = np.array(rewards_of(played.board.record, final, 0, False), np.float32)[seats]
    return {
        "reward": np.where(last, result, np.float32(0)),
        "return": np.full(len(seats), np.nan, np.float32) if end == NOT_ENDED else result,
        "terminated": last & (end == END_TRIGGERS),
        "truncated": last & (end != END_TRIGGERS),
    }


# Episodes of an archive

_PLURALS = {
    "mask": "action_masks",
    "action": "actions",
    "next_player": "next_players",
    "reward": "rewards",
    "return": "returns",
    "terminated": "terminations",
    "truncated": "truncations",
    "step": "steps",
}
_OF_EPISODES = {
    "game": "episode_games",
    "seed": "episode_seeds",
    "seat": "episode_seats",
    "player": "episode_players",
    "board": "episode_boards",
    "board_hash": "episode_board_hashes",
}


def _write_npz(
    path: Path, games: Iterator[GameRows], shape: tuple[int, int], about: dict[str, Any]
) -> None:
    """Write observations as they arrive, and the other, smaller arrays at the end."""
    parts: list[Arrays] = []
    labels: dict[str, int] = {}
    with atomic_write(path) as file, npz_archive(file) as archive:
        with npz_member(archive, "observations") as member:
            dtype = quotient_table(about["observation"]).dtype.str
            head = {"descr": dtype, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(member, head)
            for played in games:
                order = np.argsort(played.rows["seat"], kind="stable")
                member.write(played.rows["observation"][order].tobytes())
                parts.append(_episodes(played, order, labels))
        for name, array in _concatenate(parts, labels).items():
            write_member(archive, name, array)
        write_member(archive, "metadata", np.array(json.dumps(about)))


def _episodes(played: GameRows, order: npt.NDArray[np.int64], labels: dict[str, int]) -> Arrays:
    """Return the arrays of one game without its observations, and add new labels to `labels`."""
    rows = played.rows | {"player": np.array(played.rows["player"], np.str_)}
    seats, firsts, lengths = np.unique(rows["seat"], return_index=True, return_counts=True)
    chance = [rows["chance"][i] for i in order.tolist()]
    codes = [labels.setdefault(label, len(labels)) for row in chance for label in row]
    return {
        **{plural: rows[name][order] for name, plural in _PLURALS.items()},
        "chance": np.array(codes, np.uint16),
        "chance_starts": np.array([len(row) for row in chance], np.int64),
        "episode_starts": lengths.astype(np.int64),
        **{plural: rows[name][firsts] for name, plural in _OF_EPISODES.items()},
        "final_observations": played.final_observations[seats],
    }


def _concatenate(parts: list[Arrays], labels: dict[str, int]) -> Arrays:
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in ("chance_starts", "episode_starts"):
        arrays[name] = np.concatenate([[0], np.cumsum(arrays[name])])
    return arrays | {"chance_labels": np.array(list(labels), np.str_)}
