"""Settings and folder of a run at scale: what stands where, and how it is read.

settings.json          of the run
metrics.jsonl, tb/     of each update, for programs and for TensorBoard
times.jsonl            how long each update took, which no other file tells
checkpoints/<steps>/   as `checkpoint` tells
policies/<steps>       policy files, one every `freeze_every` updates
last, best             the newest, and the one that was rated highest
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from tokaido_env.agents.inputs import SIGHTED_HASH
from tokaido_env.agents.policy import SightedSizes
from tokaido_env.agents.registry import Parameter
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.checks import check_seed, shown
from tokaido_env.files import read_json, write_text
from tokaido_env.learn.boards import BOARD_MEANING, SEEING, SEEING_MEANING, boards_seen
from tokaido_env.learn.declared import (
    COUNT,
    RATE,
    SHARE,
    TEXT,
    RunError,
    differences,
    setting,
)
from tokaido_env.learn.settings import (
    CONFIG,
    MOST_DECISIONS,
    MOST_WIDTH,
    check_most,
    check_width,
)
from tokaido_env.learn.update import UpdateSettings

SETTINGS, METRICS, TIMES = "settings.json", "metrics.jsonl", "times.jsonl"
FILES = rf"{SETTINGS}|{METRICS}|{TIMES}|last|best|policies/\d{{11}}"
"""What may stand in a run's folder, besides checkpoints and what a kill has left."""

METHOD = "scale"

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class ScaleSettings(UpdateSettings):
    """What a run is. A step is a decision with more than nothing to choose, of either player.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    seed: int = setting(0, Parameter(int), "of games and network, 0 to 2**53 - 1")
    board: str = setting("shikoku", TEXT, BOARD_MEANING)
    see_board: str = setting("auto", SEEING, SEEING_MEANING)
    beside: str = setting("", TEXT, "boards with commas between, or a pool, for some updates")
    beside_every: int = setting(4, Parameter(int, 2), "updates, of which the last is on `beside`")
    start_from: str = setting("", TEXT, "policy file to begin with; empty: random weights")
    updates: int = setting(30, COUNT, "of the network, each after games of its own; may grow")
    games: int = setting(2048, COUNT, "played to their end before an update")

    learning_rate: float = setting(1e-3, RATE, "of Adam, at the beginning")
    final_learning_rate: float = setting(
        1.0, SHARE, "share of learning_rate left after `updates`, linear between; 1 is constant"
    )
    average: float = setting(
        0.0, SHARE, "share that the averaged weights keep at an update; policy files hold these"
    )
    width: int = setting(256, COUNT, "units that policy and value read of the first layer, each")
    second: int = setting(
        0, Parameter(int, 0), "units of the second layers of policy and value; 0: width / 4"
    )
    move: int = setting(0, Parameter(int, 0), "units of the layer of a move; 0: width / 8")
    precision: str = setting(
        "float32",
        Parameter(str, words=tuple(PRECISIONS)),
        "of the layers while training; bfloat16 is faster where the processor has it",
    )
    device: str = setting(
        "auto", Parameter(str, words=("auto", "cpu", "cuda")), "auto: a GPU if PyTorch has one"
    )
    threads: int = setting(2, Parameter(int, 1, 256), "of PyTorch; results depend on it")

    freeze_every: int = setting(50, COUNT, "updates between copies in policies/")
    checkpoint_every: int = setting(20, COUNT, "updates between checkpoints")
    rate_every: int = setting(
        0, Parameter(int, 0), "updates between ratings; 0: none, best is last"
    )
    rating_games: int = setting(
        400, Parameter(int, 2), "games against each of three opponents in a rating, even"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        check_width(self.width)
        check_most("second", self.second, MOST_WIDTH)
        check_most("move", self.move, MOST_WIDTH)
        check_most("games", self.games, MOST_DECISIONS)
        if self.device == "cuda" and not torch.cuda.is_available():
            raise RunError("device: expected cpu or auto, as PyTorch finds no GPU")
        if self.beside and self.boards_seen is not None:
            raise RunError("beside: expected see_board = no, as the network reads boards of a pool")
        if self.rating_games % 2:
            raise RunError(f"rating_games: expected an even number, got {self.rating_games}")

    @property
    def sizes(self) -> SightedSizes:
        """How wide the layers of the network are."""
        sizes = SightedSizes.of_width(self.width)
        second = self.second or sizes.second
        return sizes._replace(second=second, value_second=second, move=self.move or sizes.move)

    @property
    def on(self) -> str:
        """The device that the network is on."""
        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @property
    def pool(self) -> BoardPool:
        """The boards that are played on."""
        return BoardPool.load(self.board)

    @property
    def pool_beside(self) -> BoardPool:
        """The boards that some updates are played on instead; of a list each in turn."""
        names = self.beside.split(",")
        return BoardPool.load((names if len(names) > 1 else self.beside) or self.board)

    @property
    def boards_seen(self) -> npt.NDArray[np.void] | None:
        """The boards that the network reads, `BOARD` (b,), None if it reads none."""
        return boards_seen(self.pool, self.see_board)


def open_folder(path: Path, settings: ScaleSettings) -> None:
    """Make the folder's settings, or see that it was made with the same but for its length.

    Raises:
        RunError: if it was made with others, by another method, or for other inputs or boards.
    """
    file, asked = path / SETTINGS, asdict(settings)
    if not file.is_file():
        if (path / CONFIG).is_file() or (path / "ledger.jsonl").is_file():
            raise RunError(f"{path}: is a run of another method: expected one of --method {METHOD}")
        _write(file, settings)
        return
    own = asdict(settings_of(path))
    if differing := differences(own | {"updates": settings.updates}, asked):
        raise RunError(f"{path}: cannot go on with other settings: {differing}")
    if settings.updates > own["updates"]:
        _write(file, settings)


def _write(file: Path, settings: ScaleSettings) -> None:
    contents = {
        "method": METHOD,
        "inputs": SIGHTED_HASH,
        "boards": settings.pool.hash,
        "settings": asdict(settings),
    }
    write_text(file, json.dumps(contents, indent=1) + "\n")


def settings_of(path: Path) -> ScaleSettings:
    """Read the settings of a run.

    Raises:
        RunError: if it is none of this method, or was made for other inputs or boards.
    """
    file = path / SETTINGS
    found = read_json(file)
    if not isinstance(found, dict) or found.get("method") != METHOD:
        raise RunError(f"{file}: is a run of another method: expected one of --method {METHOD}")
    own, known = found.get("settings"), ScaleSettings.defaults()
    if not isinstance(own, dict) or own.keys() != known.keys():
        raise RunError(f"{file}: expected an object of the settings {', '.join(known)}")
    settings = ScaleSettings(**own)
    for key, value in (("inputs", SIGHTED_HASH), ("boards", settings.pool.hash)):
        if found.get(key) != value:
            raise RunError(
                f"{file}: made for {key} {shown(found.get(key))}, this version has {value!r}: "
                "train anew, or use the version that made it"
            )
    return settings
