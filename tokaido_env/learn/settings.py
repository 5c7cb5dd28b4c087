"""The settings of a training run: those of all methods, then those of each.

Every setting, with its meaning, is in a run's `config.toml` and in `tokaido train --help`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.policy import Sizes
from tokaido_env.agents.registry import Parameter
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.arguments import check_seed, repr_short
from tokaido_env.learn.settings_schema import (
    COUNT,
    RATE,
    SHARE,
    TEXT,
    Declared,
    RunError,
    setting,
)

MOST_DECISIONS = 2**24  # at once, of about 8 KB
MOST_WIDTH = 2**12  # a policy file so wide takes 70 MB
MAX_SIMS = 2**16 - 1
"""The most simulations for a decision: what a sample can hold as the visits of one action."""

REFIT_GAMES = 12_000
LEAST_REFIT_GAMES = 8

_SIMS = Parameter(int, 1, MAX_SIMS)
_WEIGHT = Parameter(float, 0, 100)
_SPEC = re.compile(r"""'([^']*)'(?!\S)|"([^"]*)"(?!\S)|(\S+)""")


@dataclass(frozen=True)
class RunSettings(Declared):
    """What every run has. Its length is counted in steps, updates or rounds, as its method tells.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    METHOD: ClassVar[str] = ""
    LENGTH: ClassVar[str] = ""
    """The setting that is the run's length, the only one that may grow."""

    seed: int = setting(0, Parameter(int), "of games, network and opponents, 0 to 2**53 - 1")
    board: str = setting(
        "shikoku", TEXT, "a board, a file, family:NUMBER or a pool such as family:train/1000"
    )
    see_board: str = setting(
        "auto",
        Parameter(str, words=("auto", "yes", "no")),
        "whether the network reads the board; auto: if there is more than one",
    )
    start_from: str = setting("", TEXT, "policy file to begin with; empty: random weights")
    width: int = setting(
        256, COUNT, "units that policy and value read of the first layer, each; a multiple of 8"
    )
    second: int = setting(
        0, Parameter(int, 0), "units of the second layers of policy and value; 0: width / 4"
    )
    move: int = setting(0, Parameter(int, 0), "units of the layer of a move; 0: width / 8")
    learning_rate: float = setting(1e-3, RATE, "of Adam, at the beginning")
    threads: int = setting(2, Parameter(int, 1, 256), "of PyTorch; results depend on it")
    checkpoint_every: int = setting(1, COUNT, "steps, updates or rounds between checkpoints")
    rate_every: int = setting(
        0,
        Parameter(int, 0),
        "steps, updates or rounds between ratings on the ladder, also at the end; 0: none, best is "
        "last",
    )
    rating_games: int = setting(
        400, Parameter(int, 2), "games against each of three opponents in a rating, even"
    )
    ladder: str = setting("", TEXT, "ladder file for ratings; empty: this project's")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        _check_even("rating_games", self.rating_games)
        if self.width % 8:
            raise RunError(f"width: expected a multiple of 8, got {self.width}")
        for name in ("width", "second", "move"):
            check_most(name, getattr(self, name), MOST_WIDTH)

    @property
    def length(self) -> int:
        """How long the run is: whole updates, so that it may be more than was asked for."""
        length: int = getattr(self, self.LENGTH)
        return length

    @property
    def sizes(self) -> Sizes:
        """How wide the layers of the network are."""
        sizes = Sizes.of_width(self.width)
        second = self.second or sizes.second
        return sizes._replace(second=second, value_second=second, move=self.move or sizes.move)

    @property
    def pool(self) -> BoardPool:
        """The boards that are played on."""
        return BoardPool.load(self.board)

    @property
    def boards_seen(self) -> npt.NDArray[np.void] | None:
        """The boards that the network reads, `BOARD` (b,), None if it reads none."""
        pool = self.pool
        seen = len(pool) > 1 if self.see_board == "auto" else self.see_board == "yes"
        return pool.records if seen else None


@dataclass(frozen=True)
class PpoSettings(RunSettings):
    """A learner against a pool of opponents, by Stable-Baselines3's MaskablePPO.

    A step is a decision of the learner. What happens every so many steps happens at the first
    update after a multiple of the number.
    """

    METHOD: ClassVar[str] = "ppo"
    LENGTH: ClassVar[str] = "steps"

    steps: int = setting(
        1_966_080, COUNT, "decisions of the learner, rounded up to whole updates; may grow"
    )
    games: int = setting(512, COUNT, "games side by side")
    rollout: int = setting(32, COUNT, "decisions in each game between two updates")
    minibatch: int = setting(2048, COUNT, "decisions; a divisor of games * rollout")
    epochs: int = setting(3, COUNT, "passes over the decisions of an update")
    final_learning_rate: float = setting(
        1.0, SHARE, "share of learning_rate left after `steps`, linear between; 1 is constant"
    )
    gae_lambda: float = setting(0.95, SHARE, "of generalised advantage estimation; gamma is 1")
    entropy: float = setting(0.005, Parameter(float, 0, 10), "weight of the entropy bonus")
    clip: float = setting(0.2, Parameter(float, 0.001, 1), "range of the probability ratio")

    share_latest: float = setting(0.5, SHARE, "share of games against the newest self")
    share_past: float = setting(0.25, SHARE, "share of games against snapshots, by hardness")
    share_agents: float = setting(0.25, SHARE, "share of games against `agents`; sum is 1")
    agents: str = setting("greedy heuristic", TEXT, "specs, with spaces between; alike often")
    value_from: str = setting(
        "self-play",
        Parameter(str, words=("self-play", "all")),
        "games that the policy's value is learnt from: self-play, those against the newest self, "
        "or all",
    )
    refit_games: int = setting(
        REFIT_GAMES,
        Parameter(int, 0),
        "games of the best and the last policy against itself, to whose results their values are "
        "fitted at the end of a run; 0: none; only if the value is that of self-play",
    )
    opponent_slots: int = setting(8, COUNT, "opponents at once; a divisor of games")
    reseat_every: int = setting(131_072, COUNT, "steps between draws of the opponents")
    snapshot_every: int = setting(163_840, COUNT, "steps between snapshots")
    pool_size: int = setting(24, Parameter(int, 2), "snapshots kept to play against")

    checkpoint_every: int = setting(491_520, COUNT, "steps between checkpoints")
    rate_every: int = setting(
        491_520,
        Parameter(int, 0),
        "steps between ratings on the ladder, also at the end; 0: none, best is last",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed + self.games - 1)  # of the last game
        check_most("games * rollout", self.update_steps, MOST_DECISIONS)
        if self.refit_games and self.refit_games < LEAST_REFIT_GAMES:
            raise RunError(
                f"refit_games: expected 0, or {LEAST_REFIT_GAMES} or more, got {self.refit_games}"
            )
        _check_divisor("minibatch", self.minibatch, "games * rollout", self.update_steps)
        _check_divisor("opponent_slots", self.opponent_slots, "games", self.games)
        self._check_opponents()

    @property
    def update_steps(self) -> int:
        """Steps between two updates."""
        return self.games * self.rollout

    @property
    def length(self) -> int:
        """The steps of all updates that are begun before `steps` are done."""
        return -(-self.steps // self.update_steps) * self.update_steps

    @property
    def value_of_self_play(self) -> bool:
        """Whether the policy's value is learnt from games against itself only."""
        return self.value_from == "self-play"

    def _check_opponents(self) -> None:
        shares = (self.share_latest, self.share_past, self.share_agents)
        if abs(sum(shares) - 1) > 1e-6:
            parts = " + ".join(f"{share:g}" for share in shares)
            raise RunError(
                "share_latest + share_past + share_agents: "
                f"expected a sum of 1, got {parts} = {sum(shares):g}"
            )
        if self.value_of_self_play and not self.share_latest:
            raise RunError(
                "share_latest: expected above 0, as the value is learnt from self-play, got 0: or "
                "value_from = all"
            )
        specs = split_specs(self.agents)
        if self.share_agents and not specs:
            raise RunError("agents: expected one or more specs, or share_agents = 0")
        if len(set(specs)) < len(specs):
            raise RunError(f"agents: expected each once, got {repr_short(self.agents)}")


@dataclass(frozen=True)
class SelfPlaySettings(RunSettings):
    """Whole games of the network against itself, side by side, then an update by our own PPO."""

    METHOD: ClassVar[str] = "selfplay"
    LENGTH: ClassVar[str] = "updates"

    updates: int = setting(30, COUNT, "of the network, each after games of its own; may grow")
    games: int = setting(2048, COUNT, "played to their end before an update")
    minibatch: int = setting(4096, COUNT, "decisions")
    epochs: int = setting(2, COUNT, "passes over the decisions of an update")
    final_learning_rate: float = setting(
        1.0, SHARE, "share of learning_rate left after `updates`, linear between; 1 is constant"
    )
    policy_lambda: float = setting(0.97, SHARE, "of the advantages; gamma is 1")
    value_lambda: float = setting(0.97, SHARE, "of the returns that the value is learnt from")
    luck: float = setting(1.0, SHARE, "of what chance brings that advantages take; 1 is GAE")
    entropy: float = setting(0.003, Parameter(float, 0, 10), "weight of the entropy bonus")
    clip: float = setting(0.2, Parameter(float, 0.001, 1), "range of the probability ratio")
    largest_gradient: float = setting(0.5, Parameter(float, 1e-6, 1e6), "norm that is left alone")
    auxiliary: float = setting(0.1, _WEIGHT, "weight of the auxiliary predictions")
    late_round_weight: float = setting(1.0, _WEIGHT, "weight of late rounds in the value's loss")
    late_from: int = setting(16, COUNT, "round that is late")
    ema_decay: float = setting(
        0.0, SHARE, "share that the averaged weights keep at an update; policy files hold these"
    )

    extra_boards: str = setting("", TEXT, "boards with commas between, or a pool, for some updates")
    extra_boards_every: int = setting(
        4, Parameter(int, 2), "updates, of which the last is on `extra_boards`"
    )
    precision: str = setting(
        "float32",
        Parameter(str, words=("float32", "bfloat16")),
        "of the layers while training; bfloat16 is faster where the processor has it",
    )
    device: str = setting(
        "auto", Parameter(str, words=("auto", "cpu", "cuda")), "auto: a GPU if PyTorch has one"
    )
    snapshot_every: int = setting(50, COUNT, "updates between snapshots")
    checkpoint_every: int = setting(20, COUNT, "updates between checkpoints")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_most("games", self.games, MOST_DECISIONS)
        check_most("minibatch", self.minibatch, MOST_DECISIONS)
        if self.extra_boards and self.boards_seen is not None:
            raise RunError(
                "extra_boards: expected see_board = no, as the network reads boards of a pool"
            )

    @property
    def extra_pool(self) -> BoardPool:
        """The boards that some updates are played on instead; of a list each in turn."""
        names = self.extra_boards.split(",")
        return BoardPool.load((names if len(names) > 1 else self.extra_boards) or self.board)


@dataclass(frozen=True)
class AlphaZeroSettings(RunSettings):
    """Rounds of self-play by search, of learning from it, and of a promotion match."""

    METHOD: ClassVar[str] = "alphazero"
    LENGTH: ClassVar[str] = "rounds"

    rounds: int = setting(8, Parameter(int, 1, 9999), "of self-play and learning; may grow")
    shards: int = setting(16, Parameter(int, 1, 10_000), "of self-play in a round, played apart")
    games: int = setting(128, COUNT, "of a shard, played to their end")
    first_sims: int = setting(100, _SIMS, "simulations a decision of `mcts` in the first round")
    sims: int = setting(64, _SIMS, "simulations a decision of `policy_search` in the others")
    full: float = setting(
        1.0, SHARE, "share of decisions searched by all simulations: the policy learns from these"
    )
    cheap_sims: int = setting(
        0,
        Parameter(int, 0, MAX_SIMS),
        "simulations of the other decisions, unless they find another action best than the policy "
        "does; 0: all are searched alike",
    )
    sampled: float = setting(0.26, SHARE, "share of decisions drawn by visits, for variety")
    uniform: float = setting(
        0.04, SHARE, "share of decisions drawn from all legal actions, for variety"
    )
    kept_rounds: int = setting(4, COUNT, "rounds whose positions are learnt from together")
    samples: float = setting(
        4.0, Parameter(float, 0.01, 1000), "learnt from, for each new position of a round"
    )
    minibatch: int = setting(1024, COUNT, "positions")
    learning_rate: float = setting(
        1e-3, RATE, "of Adam, falling to nothing in each round as a cosine"
    )
    value_weight: float = setting(
        1.0, _WEIGHT, "of the value's loss; 0: the policy alone learns, as from a trained value"
    )
    promotion_games: int = setting(
        1000,
        Parameter(int, 0),
        "at most, even, of a new policy against the one that plays; 0: none",
    )
    threads: int = setting(1, Parameter(int, 1, 256), "of PyTorch; results depend on it")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_most("games", self.games, MOST_DECISIONS)
        check_most("minibatch", self.minibatch, MOST_DECISIONS)
        if self.sampled + self.uniform > 1:
            shares = f"{self.sampled:g} + {self.uniform:g}"
            raise RunError(f"sampled + uniform: expected at most 1, got {shares}")
        if self.full < 1 and not self.cheap_sims:
            raise RunError("full: expected 1, as cheap_sims = 0 searches all decisions alike")
        _check_even("promotion_games", self.promotion_games)


METHODS: dict[str, type[RunSettings]] = {
    settings.METHOD: settings for settings in (PpoSettings, SelfPlaySettings, AlphaZeroSettings)
}
"""The settings of each method, by its name."""

# By duration on two cores: five minutes, an hour, a working day.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        **{"steps": 2_129_920, "width": 256, "snapshot_every": 163_840},
        **{"checkpoint_every": 491_520, "rate_every": 491_520},
    },
    "standard": {
        **{"steps": 30_000_000, "width": 256, "snapshot_every": 819_200},
        **{"checkpoint_every": 1_966_080, "rate_every": 1_966_080},
    },
    "long": {
        **{"steps": 140_000_000, "width": 512, "snapshot_every": 3_276_800},
        **{"checkpoint_every": 3_276_800, "rate_every": 6_553_600},
    },
}


def split_specs(text: str) -> list[str]:
    """Return the specs of a text: its words, or what stands in quotes, which may hold spaces."""
    return ["".join(parts) for parts in _SPEC.findall(text)]


def join_specs(specs: Iterable[str]) -> str:
    """Return specs as a text that `split_specs` takes apart.

    Raises:
        RunError: if there is one that no quotes can hold.
    """
    return " ".join(_in_quotes(spec) for spec in specs)


def _in_quotes(spec: str) -> str:
    for text in (spec, f"'{spec}'", f'"{spec}"'):
        if split_specs(text) == [spec]:
            return text
    raise RunError(f"agent {repr_short(spec)}: expected one without spaces, or without quotes")


def check_most(name: str, value: int, most: int) -> None:
    """Raise `RunError` if a setting asks for more memory than any machine has for it."""
    if value > most:
        raise RunError(f"{name}: expected at most {most}, got {value}")


def _check_even(name: str, value: int) -> None:
    if value % 2:
        raise RunError(f"{name}: expected an even number, got {value}")


def _check_divisor(name: str, value: int, of: str, whole: int) -> None:
    if whole % value:
        raise RunError(f"{name}: expected a divisor of {of} = {whole}, got {value}")
