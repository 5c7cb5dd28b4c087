"""Files of training samples: round trip, and refusal of invalid ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import counting_policy

from tokaido_env.agents import make
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn.replay_buffer import Samples, load_samples, save_samples
from tokaido_env.learn.selfplay_games import SelfPlayGames
from tokaido_env.learn.settings import RunError
from tokaido_env.tensor_file import read_tensors, write_tensors

POOL = BoardPool.load("family:train/3")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """Samples of twelve games on a pool of three boards."""
    path = tmp_path_factory.mktemp("policies") / "policy"
    counting_policy().save(path)
    games = SelfPlayGames(POOL, 12, 50, 0.3, 0.1)
    return games.samples(make(f"policy_search:{path},sims=3"))


def test_load_samples__returns_what_was_saved_and_refuses_other_boards(
    tmp_path: Path, samples: Samples
) -> None:
    path = tmp_path / "0001-0000.safetensors"
    save_samples(path, samples)
    loaded = load_samples(path, POOL)
    assert all((one == other).all() for one, other in zip(loaded, samples, strict=True))
    for wrong in ((loaded.boards + 1) % 3, loaded.boards + 6, loaded.boards - 6):
        save_samples(path, samples._replace(boards=wrong.astype(np.int32)))
        with pytest.raises(RunError, match=r"broken samples: (game|boards: expected numbers) "):
            load_samples(path, POOL)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("states", lambda a: a | 0x55, "game 0: "),
        ("states", lambda a: a[:, :5], "states: "),
        ("boards", lambda a: a.astype(np.int64), "boards: "),
        ("targets", lambda a: a * np.nan, "targets: "),
        ("visits", lambda a: a * 0, "visits: "),
        ("visits", lambda a: a | 1, "visits: "),
    ],
)
def test_load_samples__refuses_invalid_arrays(
    tmp_path: Path, samples: Samples, name: str, change: Any, message: str
) -> None:
    path = tmp_path / "0001-0000.safetensors"
    samples = samples.take(np.arange(40))
    save_samples(path, samples)
    arrays = read_tensors(path, 1 << 20).arrays
    write_tensors(path, arrays | {name: change(arrays[name])}, {})
    with pytest.raises(RunError, match=f"broken samples: {message}"):
        load_samples(path, POOL)
