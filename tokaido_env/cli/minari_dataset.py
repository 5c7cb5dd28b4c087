"""Minari datasets (Farama Foundation) of recorded games: `tokaido export FILE minari:ID`.

`docs/reference/file-formats.md` lists the parts of a dataset. The variable MINARI_DATASETS_PATH
sets the folder of the datasets.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import Boards
from tokaido_env.boards.reader import BoardError
from tokaido_env.cli.dataset import Dtype, GameRows, read
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.observation import LAYOUT_HASH
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.record import game_key, read_unverified

if TYPE_CHECKING:
    from minari.data_collector.episode_buffer import EpisodeBuffer

PREFIX = "minari:"

_ENVIRONMENT = "tokaido_env:TokaidoDuo-v0"


def export(
    records: str | Path, dataset_id: str, board: Boards | None = None, dtype: Dtype = "float32"
) -> tuple[int, int]:
    """Write the distinct games of a record file as a dataset of Minari, whole or not at all.

    Args:
        records: a record file, JSON Lines.
        dataset_id: name of the new dataset, `namespace/name-v0`.
        board: as for `record.load`.
        dtype: of the observations, "float32" or "uint8".

    Returns:
        The numbers of decisions and of games.

    Raises:
        RecordError: for a wrong record, with its line and event.
        ValueError: for no decisions, a name that Minari refuses, or one that is taken.
        ModuleNotFoundError: if Minari is missing.
    """
    require_extra("datasets of Minari need", "minari", "minari", "h5py")
    import minari
    from minari.dataset.minari_dataset import parse_dataset_id

    source = Path(records)
    if re.search("-v[0-9]+$", dataset_id) is None:
        raise ValueError(
            f"{PREFIX}{dataset_id}: expected a name that ends in its version, as "
            f"{PREFIX}{dataset_id or 'games'}-v0"
        )
    parse_dataset_id(dataset_id)
    # Warnings here are of other, damaged datasets.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        known = minari.list_local_datasets()
    if dataset_id in known:
        raise ValueError(
            f"{PREFIX}{dataset_id}: expected a new name, it exists: choose another version"
        )
    players, boards, rows, games = _summary(source)
    try:
        # of a missing author and link
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            minari.create_dataset_from_buffers(
                dataset_id,
                _episodes(source, board, dtype),
                env=_environment(boards, dtype),
                algorithm_name=", ".join(players),
                description=_description(players, boards),
                requirements=["tokaido-env"],
            )
    except BaseException:
        with contextlib.redirect_stdout(io.StringIO()):  # Minari prints the deletion
            minari.delete_dataset(dataset_id)
        raise
    return rows, games


def _summary(source: Path) -> tuple[list[str], list[str], int, int]:
    """Return the names of players and boards in the records, and the decisions and games."""
    players: dict[str, None] = {}
    boards: dict[str, None] = {}
    rows: dict[bytes, int] = {}  # by distinct game
    for _, record in read_unverified(source):
        players |= dict.fromkeys(record.players)
        boards[record.board] = None
        rows[game_key(record)] = sum(event in IDS for event in record.events)
    if not any(rows.values()):
        raise ValueError(f"{source}: expected decisions, found none")
    return list(players), list(boards), sum(rows.values()), len(rows)


def _environment(boards: list[str], dtype: Dtype) -> Any:
    """Return the environment of the dataset, on the board of the games if they share one."""
    options: dict[str, Any] = {} if dtype == "float32" else {"observation": dtype}
    if len(boards) == 1:
        with contextlib.suppress(BoardError):
            options["board"] = Board.by_name(boards[0]).name
    return gymnasium.make(_ENVIRONMENT, **options)


def _description(players: list[str], boards: list[str]) -> str:
    about = {"players": players, "boards": boards, "rules": RULES_VERSION, "layout": LAYOUT_HASH}
    return f"Games of Tokaido Duo, an episode per seat. {json.dumps(about)}"


def _episodes(source: Path, board: Boards | None, dtype: Dtype) -> Iterator[EpisodeBuffer]:
    for played in read(source, board, dtype):
        for seat in np.unique(played.rows["seat"]).tolist():
            yield _episode(played, seat)


def _episode(played: GameRows, seat: int) -> EpisodeBuffer:
    from minari.data_collector.episode_buffer import EpisodeBuffer

    own = np.flatnonzero(played.rows["seat"] == seat)
    names = "observation", "mask", "action", "reward", "terminated", "truncated", "game", "seed"
    rows = {name: played.rows[name][own] for name in names}
    seed, count = int(rows["seed"][0]), len(own) + 1
    nothing = np.zeros((1, N_ACTIONS), np.int8)
    return EpisodeBuffer(
        seed=seed if seed >= 0 else None,
        observations=np.concatenate([rows["observation"], played.final_observations[seat][None]]),
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
