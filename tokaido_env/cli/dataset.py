"""Datasets: recorded games as tables of decisions, for offline learning and for analysis.

`python -m tokaido_env export games.jsonl games.parquet` writes one row a decision, in the order of
the games and of the decisions in each, for `pandas.read_parquet`:

| column | type | meaning |
|---|---|---|
| game | int64 | which line of the record file, from 1 |
| seed | int64 | of the game, -1 if its record has none |
| step | int32 | which decision of the game, from 0 |
| seat | int8 | who decides |
| player | string | what the record calls that seat |
| board | string | the name of the game's board |
| board_hash | string | its hash |
| observation | list of N_FEATURES, float32 or uint8 | what that seat sees |
| mask | list of N_ACTIONS, int8 | 1 = legal |
| action | int64 | what was chosen |
| reward | float32 | up to that seat's next decision: its return in its last row, else 0 |
| return | float32 | the final result of that seat: 1, 0 or -1; NaN in a game without an end |
| terminated | bool | that seat's last row, the game ended by a trigger |
| truncated | bool | that seat's last row, the game ended otherwise: by the cap, or is unfinished |
| chance | list of strings | the outcomes of chance between this decision and the next, by label |
| next_player | int8 | who decides next, -1 if nobody does |

`export games.jsonl games.npz` writes the same rows for `numpy.load`, under the names of the fields
of Minari's EpisodeData (Farama Foundation). An episode is one seat's view of one game; episodes
stand one after the other, by game and by seat, so that episode `e` has the rows
`episode_starts[e]` to `episode_starts[e + 1]` of

    observations, actions, rewards, terminations, truncations

and, beyond Minari's fields, of `action_masks`, `returns`, `steps` and `next_players`. Minari's
observations have one more than the actions, what the seat sees last of all: it is
`final_observations[e]`. Of each episode there are `episode_games`, `episode_seeds`,
`episode_seats`, `episode_players`, `episode_boards` and `episode_board_hashes`. The outcomes after
row `i` are `chance_labels[k]` for `k` in `chance[chance_starts[i] : chance_starts[i + 1]]`.

Both files carry `metadata`, JSON text with the versions of the format, the rules and the layout of
the observation: in the parquet file under the key "tokaido_env" of its schema. A uint8 observation
divided by `observation.SCALES` is the float32 one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.boards.pool import Boards
from tokaido_env.cli.columns import (
    check_format,
    npz_archive,
    npz_member,
    parquet_rows,
    write_member,
)
from tokaido_env.core import loops
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.episode import SLOT
from tokaido_env.core.observation import LAYOUT_HASH, N_FEATURES, check_fits, units
from tokaido_env.core.rules import RULES_VERSION, rewards_of
from tokaido_env.core.state import END_TRIGGERS, NOT_ENDED, copy_rows
from tokaido_env.files import check_outputs, whole_file
from tokaido_env.record import Record, read_each, records_of
from tokaido_env.trajectory import Trajectory

FORMAT = "tokaido-duo-decisions"
VERSION = 1

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Played:
    """The decisions of one game, T of them.

    Attributes:
        game: which line of its file, from 1.
        seed: of the game, -1 if the record has none.
        players: what the record calls the two seats.
        board: what it was played on.
        seats: int8 (T,), who decides.
        rows: arrays of T rows by the names of the columns: observation, mask, action, reward,
            return, terminated, truncated and next_player.
        chance: for each decision the labels of the outcomes after it.
        last: (2, N_FEATURES), what the seats see last of all.
    """

    game: int
    seed: int
    players: tuple[str, str]
    board: Board
    seats: npt.NDArray[np.int8]
    rows: Arrays
    chance: list[list[str]]
    last: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.seats)


def export(
    records: str | Path,
    out: str | Path,
    board: Boards | None = None,
    dtype: str = "float32",
) -> tuple[int, int]:
    """Write the decisions of a record file to a dataset, verified as they are read.

    Args:
        records: a record file, JSON Lines.
        out: the file to write, .parquet or .npz: whole or not at all.
        board: as for `record.load`.
        dtype: of the observations, "float32" or "uint8".

    Returns:
        The numbers of rows and of games.

    Raises:
        RecordError: naming the line and the event that is wrong.
        ValueError: if the suffix is another one, there is no decision, or the numbers do not fit.
        OSError: if a file cannot be read or written.
        ModuleNotFoundError: if pyarrow is missing, for a parquet file.
    """
    source, target = Path(records), Path(out)
    check_format(target)
    write = _write_npz if target.suffix == ".npz" else _write_parquet
    check_outputs(target, read=[source, board if isinstance(board, str | Path) else None])
    rows = count_decisions(source)
    if not rows:
        raise ValueError(f"{source}: expected games with decisions, found none")
    lengths: list[int] = []

    def noted() -> Iterator[Played]:
        for played in read(source, board, dtype):
            lengths.append(len(played))
            yield played

    with whole_file(target) as file:
        write(file, noted(), rows, dtype)
        if sum(lengths) != rows:
            raise ValueError(f"{source}: expected {rows} decisions as counted before, it changed")
    return rows, len(lengths)


def read(path: Path, board: Boards | None = None, dtype: str = "float32") -> Iterator[Played]:
    """Yield the decisions of each game of a record file, verified; see `export`."""
    for number, record, played in read_each(path, board):
        yield _columns(number, record, played, dtype)


def count_decisions(path: Path) -> int:
    """Return the number of decisions in a record file, before they are verified."""
    return sum(sum(event in IDS for event in record.events) for _, record in records_of(path))


# One game


def _columns(number: int, record: Record, played: Trajectory, dtype: str) -> Played:
    check_fits(played.board.record, dtype)
    decisions = np.flatnonzero(played.decided)
    # The position after the last event is what both seats see last of all.
    last = len(played.states) - 1
    following = np.append(decisions, last)[1:]
    players = played.movers[decisions]
    seen_by = np.append(players, [0, 1]).astype(np.int8)
    seen = copy_rows(played.states, np.append(decisions, [last, last]))
    observations = _observe(played.board, seen, seen_by, dtype)
    rows = {
        "observation": observations[:-2],
        "mask": loops.mask_rows(decisions, played.legal),
        "action": played.events[decisions].astype(np.int64),
        "next_player": played.movers[following],
        **_results(played, players),
    }
    labels = played.labels()
    between = zip(decisions.tolist(), following.tolist(), strict=True)
    chance = [list(labels[i + 1 : j]) for i, j in between]
    seed = -1 if record.seed is None else record.seed
    return Played(
        *(number, seed, record.players, played.board, players),
        *(rows, chance, observations[-2:]),
    )


def _observe(
    board: Board, states: npt.NDArray[np.void], seats: npt.NDArray[np.int8], dtype: str
) -> npt.NDArray[Any]:
    unit = units(dtype)
    out = np.empty((len(states), N_FEATURES), unit.dtype)
    slots = np.zeros(len(states), SLOT)
    loops.observe(np.arange(len(states)), board.record, states, slots, seats, unit, out)
    return out


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


# Files


def _metadata(dtype: str) -> str:
    versions = {"format": FORMAT, "version": VERSION, "rules": RULES_VERSION}
    return json.dumps(versions | {"layout": LAYOUT_HASH, "observation": dtype})


def _write_parquet(file: IO[bytes], games: Iterator[Played], rows: int, dtype: str) -> None:
    schema = _schema(dtype)
    # A dictionary finds nothing in observations that compression does not, and takes its time.
    coded = [field.name for field in schema if field.name not in ("observation", "mask")]
    with parquet_rows(file, schema, coded) as add:
        for played in games:
            add(_part(played))


def _schema(dtype: str) -> Any:
    import pyarrow as pa

    value = pa.float32() if dtype == "float32" else pa.uint8()
    columns = [
        ("game", pa.int64()),
        ("seed", pa.int64()),
        ("step", pa.int32()),
        ("seat", pa.int8()),
        ("player", pa.string()),
        ("board", pa.string()),
        ("board_hash", pa.string()),
        ("observation", pa.list_(value, N_FEATURES)),
        ("mask", pa.list_(pa.int8(), N_ACTIONS)),
        ("action", pa.int64()),
        ("reward", pa.float32()),
        ("return", pa.float32()),
        ("terminated", pa.bool_()),
        ("truncated", pa.bool_()),
        ("chance", pa.list_(pa.string())),
        ("next_player", pa.int8()),
    ]
    fields = [pa.field(name, kind, nullable=False) for name, kind in columns]
    return pa.schema(fields, metadata={"tokaido_env": _metadata(dtype)})


def _part(played: Played) -> dict[str, Any]:
    """Return the rows of a game by the names of their columns."""
    length = len(played)
    return {
        "game": np.full(length, played.game),
        "seed": np.full(length, played.seed),
        "step": np.arange(length),
        "seat": played.seats,
        "player": [played.players[seat] for seat in played.seats.tolist()],
        "board": np.full(length, played.board.name),
        "board_hash": np.full(length, played.board.hash),
        "chance": played.chance,
        **played.rows,
    }


_PLURALS = {
    "action": "actions",
    "reward": "rewards",
    "terminated": "terminations",
    "truncated": "truncations",
    "mask": "action_masks",
    "return": "returns",
    "next_player": "next_players",
}


def _write_npz(file: IO[bytes], games: Iterator[Played], rows: int, dtype: str) -> None:
    """Write observations as they come and hold all else, a fraction of their size."""
    parts: list[Arrays] = []
    labels: dict[str, int] = {}
    with npz_archive(file) as archive:
        with npz_member(archive, "observations") as member:
            shape = (rows, N_FEATURES)
            head = {"descr": units(dtype).dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(member, head)
            for played in games:
                order = np.argsort(played.seats, kind="stable")
                member.write(played.rows["observation"][order].tobytes())
                parts.append(_episodes(played, order, labels))
        for name, array in _joined(parts, labels).items():
            write_member(archive, name, array)
        write_member(archive, "metadata", np.array(_metadata(dtype)))


def _episodes(played: Played, order: npt.NDArray[np.int64], labels: dict[str, int]) -> Arrays:
    """Return the arrays of one game, but its observations; new labels are added to `labels`."""
    seats, lengths = np.unique(played.seats, return_counts=True)
    chance = [played.chance[i] for i in order.tolist()]
    codes = [labels.setdefault(label, len(labels)) for row in chance for label in row]
    arrays: dict[str, npt.NDArray[Any]] = {
        _PLURALS[name]: column[order]
        for name, column in played.rows.items()
        if name != "observation"
    }
    return arrays | {
        "steps": order.astype(np.int32),
        "chance": np.array(codes, np.uint16),
        "chance_starts": np.array([len(row) for row in chance], np.int64),
        "episode_starts": lengths.astype(np.int64),
        "episode_games": np.full(len(seats), played.game, np.int64),
        "episode_seeds": np.full(len(seats), played.seed, np.int64),
        "episode_seats": seats,
        "episode_players": np.array([played.players[seat] for seat in seats], np.str_),
        "episode_boards": np.full(len(seats), played.board.name),
        "episode_board_hashes": np.full(len(seats), played.board.hash),
        "final_observations": played.last[seats],
    }


def _joined(parts: list[Arrays], labels: dict[str, int]) -> Arrays:
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in ("chance_starts", "episode_starts"):
        arrays[name] = np.concatenate([[0], np.cumsum(arrays[name])])
    return arrays | {"chance_labels": np.array(list(labels), np.str_)}
