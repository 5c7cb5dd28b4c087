"""Recorded games as a dataset of Minari (Farama Foundation): `tokaido export FILE minari:ID`.

An episode is one seat's view of one game, as `TokaidoDuo-v0` shows it to who plays that seat:
observations, one more than actions; the reward comes with the last one. Of each episode `infos` has

| name | shape | meaning |
|---|---|---|
| action_mask | int8 (T + 1, N_ACTIONS) | 1 = legal; zeros behind the last action |
| game | int64 (T + 1,) | which line of the record file, from 1 |
| seat | int64 (T + 1,) | whose view it is |

`recover_environment()` gives `TokaidoDuo-v0` on the board of the games, if they have one board that
has a name, against its default opponent: who played is told in the metadata and is never made from
a file. Where datasets lie is Minari's rule: its variable MINARI_DATASETS_PATH.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import Boards
from tokaido_env.boards.reader import BoardError
from tokaido_env.cli.dataset import Dtype, Played, count_decisions, read
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.observation import LAYOUT_HASH
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.record import read_unverified

if TYPE_CHECKING:
    from minari.data_collector.episode_buffer import EpisodeBuffer

PREFIX = "minari:"

_ENVIRONMENT = "TokaidoDuo-v0"


def export(
    records: str | Path, dataset_id: str, board: Boards | None = None, dtype: Dtype = "float32"
) -> tuple[int, int]:
    """Write the games of a record file as a dataset of Minari, whole or not at all.

    Args:
        records: a record file, JSON Lines.
        dataset_id: its name there, `namespace/name-v0`; there must be none of that name.
        board: as for `record.load`.
        dtype: of the observations, "float32" or "uint8".

    Returns:
        The numbers of decisions and of games.

    Raises:
        RecordError: naming the line and the event that is wrong.
        ValueError: if there are no decisions, the name is none of Minari's, or it is taken.
        ModuleNotFoundError: if Minari is missing.
    """
    require_extra("datasets of Minari need", "minari", "minari", "h5py")
    import minari
    from minari.dataset.minari_dataset import parse_dataset_id

    source = Path(records)
    parse_dataset_id(dataset_id)
    if dataset_id in minari.list_local_datasets():
        raise ValueError(f"{PREFIX}{dataset_id}: there is such a dataset: choose another version")
    rows = count_decisions(source)
    players, boards, games = _told_of(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an author and a link: there are none
            minari.create_dataset_from_buffers(
                dataset_id,
                _episodes(source, board, dtype),
                env=_environment(boards, dtype),
                algorithm_name=", ".join(players),
                description=_described(players, boards),
                requirements=["tokaido-env"],
            )
    except BaseException:
        with contextlib.redirect_stdout(io.StringIO()):  # it tells what it has deleted
            minari.delete_dataset(dataset_id)
        raise
    return rows, games


def _told_of(source: Path) -> tuple[list[str], list[str], int]:
    """Return who plays in the records, the names of the boards, and how many games there are."""
    players: dict[str, None] = {}
    boards: dict[str, None] = {}
    games = 0
    for _, record in read_unverified(source):
        players |= dict.fromkeys(record.players)
        boards[record.board] = None
        games += 1
    return list(players), list(boards), games


def _environment(boards: list[str], dtype: Dtype) -> Any:
    """Return the environment that Minari notes: on the board of the games, if it can be named."""
    options: dict[str, Any] = {} if dtype == "float32" else {"observation": dtype}
    if len(boards) == 1:
        with contextlib.suppress(BoardError):
            options["board"] = Board.named(boards[0]).name
    return gymnasium.make(_ENVIRONMENT, **options)


def _described(players: list[str], boards: list[str]) -> str:
    about = {"players": players, "boards": boards, "rules": RULES_VERSION, "layout": LAYOUT_HASH}
    return f"Games of Tokaido Duo, an episode a seat. {json.dumps(about)}"


def _episodes(source: Path, board: Boards | None, dtype: Dtype) -> Iterator[EpisodeBuffer]:
    """Yield the episodes of all games."""
    for played in read(source, board, dtype):
        for seat in np.unique(played.rows["seat"]).tolist():
            yield _episode(played, seat)


def _episode(played: Played, seat: int) -> EpisodeBuffer:
    from minari.data_collector.episode_buffer import EpisodeBuffer

    own = np.flatnonzero(played.rows["seat"] == seat)
    names = "observation", "mask", "action", "reward", "terminated", "truncated", "game", "seed"
    rows = {name: played.rows[name][own] for name in names}
    seed, count = int(rows["seed"][0]), len(own) + 1
    nothing = np.zeros((1, N_ACTIONS), np.int8)
    return EpisodeBuffer(
        seed=seed if seed >= 0 else None,
        observations=np.concatenate([rows["observation"], played.last[seat][None]]),
        actions=rows["action"],
        rewards=rows["reward"].tolist(),
        terminations=rows["terminated"].tolist(),
        truncations=rows["truncated"].tolist(),
        infos={
            "action_mask": np.concatenate([rows["mask"], nothing]),
            "game": np.full(count, rows["game"][0]),
            "seat": np.full(count, seat),
        },
    )
