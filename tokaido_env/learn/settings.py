"""Settings of a training run: those that all methods share, then those of each method.

A run's `config.toml` and `tokaido train --help` list them all with their help texts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from tokaido_env.agents.policy import LayerSizes
from tokaido_env.agents.registry import MAX_SIMS, Parameter
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.arguments import check_seed, repr_short
from tokaido_env.files import expand_home

MAX_DECISIONS = 2**24  # of one rollout; a decision takes about half a kilobyte
MAX_WIDTH = 2**12  # a policy file of this width takes up to 85 MB

TEXT, COUNT, SHARE = Parameter(str), Parameter(int, 1), Parameter(float, 0, 1)
RATE = Parameter(float, 1e-9, 1)
_NORM = Parameter(float, 1e-6, 1e6)
# Help texts of settings that methods have with different defaults.
_WIDTH = "units of the first layer; a multiple of 8"
_SECOND_WIDTH = "units of the second layer; 0: width / 4"
_CHECKPOINT_EVERY = "updates or rounds between checkpoints"
_RATE_EVERY = (
    "updates or rounds between ratings on the ladder, also at the end; 0: no ratings, best is last"
)


class RunError(ValueError):
    """A run folder or a setting is invalid; the message names it and the expected value."""


def setting(default: Any, allowed: Parameter, help_text: str) -> Any:
    """Declare a setting: a field of a class of settings.

    Args:
        default: its default value.
        allowed: the values that are accepted.
        help_text: its help on the command line.
    """
    return field(default=default, metadata={"allowed": allowed, "help": help_text})


@dataclass(frozen=True)
class RunSettings:
    """Settings of all methods; a method counts its length in updates or rounds.

    Every field is made by `setting` and checked when constructed.

    Raises:
        RunError: naming the setting, the expected value and the given one.
    """

    METHOD: ClassVar[str] = ""
    LENGTH: ClassVar[str] = ""
    """Name of the setting that is the run's length, the only one that may grow on resume."""

    seed: int = setting(0, Parameter(int), "random seed, an integer from 0")
    board: str = setting(
        "shikoku", TEXT, "a board, a file, family:NUMBER, or a pool such as family:train/1000"
    )
    start_from: str = setting(
        "",
        TEXT,
        "policy file to start from; empty: random weights, which know nothing",
    )
    width: int = setting(256, COUNT, _WIDTH)
    second_width: int = setting(0, Parameter(int, 0), _SECOND_WIDTH)
    learning_rate: float = setting(1e-3, RATE, "Adam's learning rate at the start")
    threads: int = setting(
        2, Parameter(int, 1, 256), "PyTorch threads; the trained weights depend on it"
    )
    checkpoint_every: int = setting(1, COUNT, _CHECKPOINT_EVERY)
    rate_every: int = setting(0, Parameter(int, 0), _RATE_EVERY)
    rating_games: int = setting(
        400, Parameter(int, 2), "games against each of three opponents in a rating; even"
    )
    ladder: str = setting(
        "", TEXT, "ladder file for ratings; empty: the shipped one, if it has the boards"
    )
    games: int = setting(128, COUNT, "games played to their end")
    minibatch_size: int = setting(1024, COUNT, "positions of a minibatch")
    extra_boards: str = setting(
        "",
        TEXT,
        "boards, separated by commas, or a pool, for every Nth update or shard; empty: none",
    )
    extra_boards_every: int = setting(
        4, Parameter(int, 2), "N of `extra_boards`: every Nth update or shard is played on them"
    )
    device: str = setting(
        "auto",
        Parameter(str, choices=("auto", "cpu", "cuda")),
        "device of the network; auto: a GPU if PyTorch finds one",
    )

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, self.checked(name, value))
        _check_even("rating_games", self.rating_games)
        if self.ladder and not self.rate_every:
            raise RunError("ladder: expected rate_every above 0 with it, got 0")
        if self.width % 8:
            raise RunError(f"width: expected a multiple of 8, got {self.width}")
        for name in ("width", "second_width"):
            _check_at_most(name, getattr(self, name), MAX_WIDTH)
        for name in ("games", "minibatch_size"):
            _check_at_most(name, getattr(self, name), MAX_DECISIONS)

    @classmethod
    def help_texts(cls) -> dict[str, str]:
        """Return the help text of each setting by name."""
        return {one.name: one.metadata["help"] for one in fields(cls)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of each setting by name."""
        return {one.name: one.default for one in fields(cls)}

    @classmethod
    def checked(cls, name: str, value: Any) -> Any:
        """Return the value of a setting; an integer becomes a float where floats are expected.

        Raises:
            RunError: if the value has the wrong type or is out of range.
            SeedError: if the value of `seed` is no seed.
        """
        if name == "seed":
            return check_seed(value)
        allowed: Parameter = cls.__dataclass_fields__[name].metadata["allowed"]
        valid = type(value) in (allowed.type, *((int,) if allowed.type is float else ()))
        if valid:
            is_text = isinstance(value, str)
            valid = value in (allowed.choices or (value,)) if is_text else allowed.allows(value)
        if not valid:
            raise RunError(f"{name}: expected {allowed.expected}, got {repr_short(value)}")
        return expand_home(value) if isinstance(value, str) else allowed.type(value)

    @property
    def length(self) -> int:
        """The run's length, in updates or rounds."""
        length: int = getattr(self, self.LENGTH)
        return length

    @property
    def sizes(self) -> LayerSizes:
        """The numbers of units of the network's two hidden layers."""
        return LayerSizes(self.width, self.second_width or self.width // 4)

    @property
    def pool(self) -> BoardPool:
        """The boards of the games, those of the setting `board`."""
        return BoardPool.load(self.board)

    @property
    def extra_pool(self) -> BoardPool | None:
        """The boards of `extra_boards`; None if it is empty."""
        names = self.extra_boards.split(",")
        return BoardPool.load(names if len(names) > 1 else names[0]) if self.extra_boards else None

    def is_extra(self, index: int) -> bool:
        """Return whether the update or the shard of an index is for `extra_boards`."""
        return bool(self.extra_boards) and (index + 1) % self.extra_boards_every == 0


@dataclass(frozen=True)
class TdSettings(RunSettings):
    """Settings of TD(λ): whole games by the best afterstate, then an update of the value."""

    METHOD: ClassVar[str] = "td"
    LENGTH: ClassVar[str] = "updates"

    updates: int = setting(300, COUNT, "updates of the network, each after new games; may grow")
    games: int = setting(256, COUNT, "games played to their end before each update")
    width: int = setting(128, COUNT, _WIDTH)
    second_width: int = setting(64, Parameter(int, 0), _SECOND_WIDTH)
    epochs: int = setting(1, COUNT, "passes over the new positions in each update")
    final_learning_rate: float = setting(
        0.03, SHARE, "share of learning_rate at the end; linear schedule, 1: constant"
    )
    value_lambda: float = setting(0.8, SHARE, "lambda of the value targets; gamma is 1")
    max_grad_norm: float = setting(1.0, _NORM, "norm that larger gradients are scaled down to")
    temperature: float = setting(
        0.03,
        Parameter(float, 0, 10),
        "temperature of the softmax over afterstate values at the start; falls linearly towards 0",
    )
    final_temperature: float = setting(
        0.005, Parameter(float, 0, 10), "lowest temperature, at the end"
    )
    snapshot_every: int = setting(50, COUNT, "updates between snapshots")
    checkpoint_every: int = setting(20, COUNT, _CHECKPOINT_EVERY)
    rate_every: int = setting(30, Parameter(int, 0), _RATE_EVERY)


@dataclass(frozen=True)
class AlphaZeroSettings(RunSettings):
    """Settings of AlphaZero: rounds of self-play by search, learning, and a promotion match."""

    METHOD: ClassVar[str] = "alphazero"
    LENGTH: ClassVar[str] = "rounds"

    rounds: int = setting(8, Parameter(int, 1, 9999), "rounds of self-play and learning; may grow")
    shards: int = setting(
        16, Parameter(int, 1, 10_000), "shards of self-play games in a round, one task each"
    )
    games: int = setting(128, COUNT, "games of a shard, played to their end")
    sims: int = setting(
        64, Parameter(int, 1, MAX_SIMS), "simulations per decision of `policy_search`, which plays"
    )
    search_share: float = setting(
        1.0,
        SHARE,
        "share of decisions that are searched and become samples; the others are sampled from the "
        "network's afterstate values; above 0",
    )
    result_weight: float = setting(
        0.5, SHARE, "share of the game's result in a value target; the rest is the search's value"
    )
    visit_sampling: float = setting(
        0.26, SHARE, "share of actions drawn in proportion to visit counts, to explore"
    )
    uniform_sampling: float = setting(
        0.04, SHARE, "share of actions drawn uniformly from the legal ones, to explore"
    )
    replay_rounds: int = setting(4, COUNT, "newest rounds in the replay buffer")
    samples_per_position: float = setting(
        4.0, Parameter(float, 0.01, 1000), "training samples per new position of a round"
    )
    learning_rate: float = setting(
        1e-3, RATE, "Adam's learning rate; a cosine schedule lowers it to 0 in each round"
    )
    max_grad_norm: float = setting(10.0, _NORM, "norm that larger gradients are scaled down to")
    promotion_games: int = setting(
        1000,
        Parameter(int, 0),
        "most games of a promotion match, new network against incumbent; even; 0: always promote",
    )
    threads: int = setting(
        1, Parameter(int, 1, 256), "PyTorch threads; the trained weights depend on it"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.visit_sampling + self.uniform_sampling > 1:
            shares = f"{self.visit_sampling:g} + {self.uniform_sampling:g}"
            raise RunError(f"visit_sampling + uniform_sampling: expected at most 1, got {shares}")
        if not self.search_share:
            raise RunError("search_share: expected above 0, got 0: searches make the samples")
        _check_even("promotion_games", self.promotion_games)


METHODS: dict[str, type[RunSettings]] = {
    settings.METHOD: settings for settings in (TdSettings, AlphaZeroSettings)
}
"""The settings class of each method, by the method's name."""


def _check_at_most(name: str, value: int, largest: int) -> None:
    if value > largest:
        raise RunError(f"{name}: expected at most {largest}, got {value}")


def _check_even(name: str, value: int) -> None:
    if value % 2:
        raise RunError(f"{name}: expected an even number, got {value}")
