"""The rows of `tokaido bench`: what is measured, with which budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tokaido_env
from tokaido_env.cli.bench_cuda import SIZES, moving, playing
from tokaido_env.cli.bench_games import (
    Done,
    aec_play,
    connect_four,
    deep_copies,
    draw_boards,
    game_play,
    gym_play,
    open_spiel_play,
    pgx_play,
    random_play,
    searching,
    stepping,
)
from tokaido_env.cli.bench_processes import Learning, first_decision, import_seconds
from tokaido_env.core.state import STATE


@dataclass(frozen=True)
class Row:
    """Something to measure.

    Attributes:
        key: short name, as `--only` takes it.
        what: what is measured.
        unit: of the figure.
        measure: measures once: what was done, whose rate is the figure, or the figure itself.
        budget: what the figure should reach, None for a row that is there for comparison.
        at_most: the budget is an upper bound; else more is better.
        threads: how many kernels may use.
        needs: modules without which the row is left out.
        gpu: left out where games cannot be played on a GPU.
    """

    key: str
    what: str
    unit: str
    measure: Callable[[], Done | float]
    budget: float | None = None
    at_most: bool = False
    threads: int = 1
    needs: tuple[str, ...] = ()
    gpu: bool = False


@dataclass(frozen=True)
class Ratio:
    """The figures of one row divided by those of another, run by run."""

    key: str
    what: str
    over: str
    under: str
    budget: float | None = None
    unit: str = "×"
    at_most: bool = False
    threads: int = 1


_learning = Learning()
_POLICIES = ("safetensors",)
_LEARNING = ("stable_baselines3", "sb3_contrib", "torch", "safetensors")
_SPEED = "decisions/s"
_POOL = "family:train/1000"

_ON_GPU = (
    *(
        Row(f"cuda.random.{size}", f"on a GPU, 2^{size} games, random play", _SPEED, play, gpu=True)
        for size, play in ((size, playing("random", size)) for size in SIZES)
    ),
    *(
        Row(f"cuda.float32.{size}", "… and float32 observations", _SPEED, play, gpu=True)
        for size, play in ((size, playing("random", size, "float32")) for size in SIZES)
    ),
    *(
        Row(f"cuda.greedy.{size}", "… `greedy`, without observations", _SPEED, play, gpu=True)
        for size, play in ((size, playing("greedy", size)) for size in SIZES)
    ),
    Row("cuda.memory", "… memory read and written", "GB/s", moving(SIZES[-1]), gpu=True),
)

ROWS = (
    Row("random.1", "random play, int8 masks", _SPEED, random_play(None), 18e6),
    Row("random.2", "random play, int8 masks", _SPEED, random_play(None), 33e6, threads=2),
    Row("pool.1", "… on a pool of 1,000 boards", _SPEED, random_play(None, board=_POOL)),
    Row("pool.2", "… on a pool of 1,000 boards", _SPEED, random_play(None, board=_POOL), threads=2),
    Row("float32.1", "… and float32 observations", _SPEED, random_play("float32"), 7e6),
    Row("float32.2", "… and float32 observations", _SPEED, random_play("float32"), 13e6, threads=2),
    Row(
        "block.1",
        "… and the board's block",
        _SPEED,
        random_play("float32", see_board=True),
    ),
    Row(
        "block.2",
        "… and the board's block",
        _SPEED,
        random_play("float32", see_board=True),
        threads=2,
    ),
    Row("entities.1", "… and entities", _SPEED, random_play("entities")),
    Row("uint8.1", "… and uint8 observations", _SPEED, random_play("uint8")),
    Row("uint8.2", "… and uint8 observations", _SPEED, random_play("uint8"), threads=2),
    Row(
        "copied.1",
        "… float32, in arrays of one's own (the default)",
        _SPEED,
        random_play("float32", copy=True),
    ),
    Row("step.1", "`Batch.step` alone, checked", _SPEED, stepping()),
    Row("board", "a board of the family", "ms", draw_boards, 2.0, at_most=True),
    Row("game", "`Game` from Python, random play", _SPEED, game_play, 150e3),
    Row("env", "`env()`: last, mask, step", _SPEED, aec_play(tokaido_env.env, 50), 100e3),
    Row(
        "connect_four",
        "PettingZoo connect_four_v3, the same loop",
        _SPEED,
        aec_play(connect_four, 40),
        needs=("pygame",),
    ),
    Row("gym", "Gymnasium `TokaidoDuo-v0` against random", "steps/s", gym_play),
    Row("deepcopy", "deepcopy of a running `env()`", "µs", deep_copies, 50.0, at_most=True),
    Row(
        "pyspiel.tokaido",
        "OpenSpiel `tokaido_duo`, random play",
        _SPEED,
        open_spiel_play("tokaido_duo", tensor=False),
        needs=("pyspiel",),
    ),
    Row(
        "pyspiel.backgammon",
        "OpenSpiel backgammon (C++), random play",
        _SPEED,
        open_spiel_play("backgammon", tensor=False),
        needs=("pyspiel",),
    ),
    Row(
        "pyspiel.tensor",
        "OpenSpiel backgammon (C++), with tensor",
        _SPEED,
        open_spiel_play("backgammon", tensor=True),
        needs=("pyspiel",),
    ),
    Row(
        "pgx.connect_four",
        "Pgx connect_four, random play, all cores",
        _SPEED,
        pgx_play("connect_four"),
        threads=2,
        needs=("pgx",),
    ),
    Row(
        "pgx.backgammon",
        "Pgx backgammon, random play, all cores",
        _SPEED,
        pgx_play("backgammon"),
        threads=2,
        needs=("pgx",),
    ),
    Row(
        "ppo.free",
        "MaskablePPO, environment that costs nothing",
        "steps/s",
        _learning.of("free"),
        threads=2,
        needs=_LEARNING,
    ),
    Row(
        "ppo.kernel",
        "MaskablePPO, opponents in the kernel (greedy)",
        "steps/s",
        _learning.of("kernel"),
        threads=2,
        needs=_LEARNING,
    ),
    Row(
        "ppo.pool",
        "MaskablePPO, a pool of four networks",
        "steps/s",
        _learning.of("pool"),
        threads=2,
        needs=_LEARNING,
    ),
    Row(
        "mcts.4000.1",
        "`mcts:sims=4000`, evaluated leaves",
        "simulations/s",
        searching("mcts:sims=4000"),
        1.5e6,
    ),
    Row(
        "mcts.4000.2",
        "`mcts:sims=4000`, evaluated leaves",
        "simulations/s",
        searching("mcts:sims=4000"),
        threads=2,
    ),
    Row(
        "mcts.full.1",
        "`mcts:sims=400,rollout=full`",
        "simulations/s",
        searching("mcts:sims=400,rollout=full"),
        80e3,
    ),
    Row(
        "champion.1",
        "`champion`, one forward pass",
        "decisions/s",
        searching("champion"),
        threads=1,
        needs=_POLICIES,
    ),
    Row(
        "champion.2",
        "`champion`, one forward pass",
        "decisions/s",
        searching("champion"),
        threads=2,
        needs=_POLICIES,
    ),
    Row(
        "champion.400.1",
        "`champion:sims=400`",
        "simulations/s",
        searching("champion:sims=400"),
        threads=1,
        needs=_POLICIES,
    ),
    Row(
        "champion.400.2",
        "`champion:sims=400`",
        "simulations/s",
        searching("champion:sims=400"),
        threads=2,
        needs=_POLICIES,
    ),
    Row("import", "`import tokaido_env`", "s", import_seconds, 0.4, at_most=True),
    Row("first.warm", "first decision of a process", "s", first_decision(cold=False), 0.8, True),
    Row(
        "first.cold",
        "… with an empty kernel cache",
        "s",
        first_decision(cold=True),
        12.0,
        at_most=True,
    ),
    Row("state", "one state", "bytes", lambda: float(STATE.itemsize), 128.0, at_most=True),
    *_ON_GPU,
)
RATIOS = (
    Ratio("pool / random", "a pool of 1,000 boards to one board", "pool.1", "random.1", 0.93),
    Ratio("pool / random, 2", "… on two threads", "pool.2", "random.2", 0.93, threads=2),
    Ratio(
        "block / float32", "the board's block behind the observation", "block.1", "float32.1", 0.6
    ),
    Ratio("copied / float32", "arrays of one's own to the batch's", "copied.1", "float32.1", 0.85),
    Ratio(
        "env / connect_four", "`env()` to PettingZoo connect_four_v3", "env", "connect_four", 8.0
    ),
    Ratio("ppo.kernel / free", "learner with kernel opponents", "ppo.kernel", "ppo.free", 0.95),
    Ratio("ppo.pool / free", "learner with a pool of networks", "ppo.pool", "ppo.free"),
)
