"""Write recorded games as a dataset of Minari (Farama Foundation), an episode per seat and game.

    pip install 'minari[hdf5]>=0.5'
    tokaido evaluate champion greedy --games 100 --records games.jsonl
    python docs/recipes/minari_dataset.py games.jsonl tokaido/champion-greedy-v0

An episode has the observations and masks that `tokaido_env:TokaidoDuo-v0` shows to that seat; its
reward comes with its last action. `infos` have the mask, the line of the game in the file, from 1,
and the seat. Games that occur twice are written once. The variable MINARI_DATASETS_PATH sets the
folder of the datasets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import minari
import numpy as np
from minari.data_collector.episode_buffer import EpisodeBuffer

import tokaido_env  # noqa: F401  registers the environment
from tokaido_env.observers import masks, observe
from tokaido_env.record import Record, read_verified
from tokaido_env.spaces import action_space, observation_space
from tokaido_env.trajectory import Trajectory


def write(records: str | Path, dataset_id: str) -> minari.MinariDataset:
    """Write the games of a record file as a new dataset.

    Args:
        records: a record file, JSON Lines, of games on built-in boards or those of the family.
        dataset_id: name of the dataset, `namespace/name-v0`.
    """
    games = list(read_verified(Path(records), distinct=True))
    boards = {record.board for _, record, _ in games}
    # A dataset names one environment: none, if games are on several boards.
    env, known = "tokaido_env:TokaidoDuo-v0", dict[str, object]()
    if len(boards) == 1:
        known["env"] = gymnasium.make(env, board=boards.pop())
    else:
        known |= {"observation_space": observation_space(), "action_space": action_space()}
    players = sorted({name for _, record, _ in games for name in record.players})
    return minari.create_dataset_from_buffers(
        dataset_id,
        (one for game in games for one in episodes(*game)),
        **known,
        algorithm_name=", ".join(players),
        requirements=["tokaido-env"],
    )


def episodes(number: int, record: Record, played: Trajectory) -> Iterator[EpisodeBuffer]:
    """Yield the episodes of the seats that decided.

    Args:
        number: line of the game.
        record: of the game.
        played: its positions and decisions.
    """
    for seat in (0, 1):
        own = np.flatnonzero(played.decided & (played.movers == seat))
        if not len(own):
            continue
        # The last observation is of the final position.
        shown = np.append(own, len(played.states) - 1)
        seats, last = np.full(len(shown), seat), np.arange(len(own)) == len(own) - 1
        over, won = record.end is not None, {None: 0.0, seat: 1.0}.get(record.winner, -1.0)
        mask = masks(played.legal[shown])
        mask[-1] = False
        yield EpisodeBuffer(
            seed=record.seed,
            observations=observe(played.board.record, played.states[shown], seats),
            actions=played.events[own].astype(np.int64),
            rewards=np.where(last, won, 0.0).tolist(),
            terminations=(last & over).tolist(),
            truncations=(last & (not over)).tolist(),
            infos={
                "action_mask": mask.astype(np.int8),
                "game": np.full(len(shown), number),
                "seat": seats,
            },
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", help="record file, JSON Lines")
    parser.add_argument("dataset", help="name of the new dataset, namespace/name-v0")
    chosen = parser.parse_args()
    print(f"{write(chosen.records, chosen.dataset).total_steps} decisions")
