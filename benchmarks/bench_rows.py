"""Rows of `bench.py`: measurements with their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench_games import (
    Throughput,
    aec_play,
    afterstates,
    cuda_memory,
    cuda_play,
    deep_copies,
    draw_boards,
    first_decision,
    game_play,
    gym_play,
    import_seconds,
    random_play,
    searching,
    stepping,
)

import tokaido_env
from tokaido_env.core.state import STATE

Measure = Callable[[], Throughput | float]


@dataclass(frozen=True)
class Row:
    """A measurement.

    Attributes:
        key: short name, as `--only` takes it.
        what: description in the table.
        unit: of the figure.
        measure: measures once; returns the figure, or a throughput with it as its rate.
        budget: target of the figure, None for a row that is only compared.
        at_most: whether the target is an upper bound; else it is a lower bound.
        threads: number of threads of the kernels.
        needs: modules without which the row is left out.
        gpu: whether the row needs a GPU.
    """

    key: str
    what: str
    unit: str
    measure: Measure
    budget: float | None = None
    at_most: bool = False
    threads: int = 1
    needs: tuple[str, ...] = ()
    gpu: bool = False


@dataclass(frozen=True)
class Ratio:
    """The figures of one row divided by those of another, per run."""

    key: str
    what: str
    over: str
    under: str
    budget: float | None = None
    unit: str = "×"
    at_most: bool = False
    threads: int = 1


_POLICIES = ("safetensors",)
_SPEED, _SIMULATIONS = "decisions/s", "simulations/s"
_POOL = "family:train/1000"
_SIZES = range(10, 21, 2)  # of batches on a GPU, as powers of two


def _on_threads(
    key: str,
    what: str,
    measure: Measure,
    one: float | None = None,
    two: float | None = None,
    unit: str = _SPEED,
    needs: tuple[str, ...] = (),
) -> tuple[Row, Row]:
    """Return the rows KEY.1 and KEY.2, on one thread and on two, with their targets."""
    return (
        Row(f"{key}.1", what, unit, measure, one, needs=needs),
        Row(f"{key}.2", what, unit, measure, two, threads=2, needs=needs),
    )


def _on_gpu(key: str, what: str, bot: str, observation: str | None = None) -> Iterator[Row]:
    """Yield a row per batch size."""
    for size in _SIZES:
        measure = cuda_play(bot, 1 << size, observation)
        yield Row(f"cuda.{key}.{size}", what.format(size), _SPEED, measure, gpu=True)


ROWS = (
    *_on_threads("random", "random play, int8 masks", random_play(None), 18e6, 33e6),
    *_on_threads("pool", "… on a pool of 1,000 boards", random_play(None, board=_POOL)),
    *_on_threads("float32", "… and float32 observations", random_play("float32"), 7e6, 13e6),
    *_on_threads("block", "… and board features", random_play("float32", see_board=True)),
    *_on_threads("geometry", "… and the geometry", random_play("geometry")),
    *_on_threads("afterstates", "… and afterstates", random_play("afterstates")),
    *_on_threads("after", "`Batch.afterstates`", afterstates, two=300e3, unit="afterstates/s"),
    *_on_threads("uint8", "… and uint8 observations", random_play("uint8")),
    Row(
        "copied.1",
        "… float32, in copied arrays (the default)",
        _SPEED,
        random_play("float32", copy=True),
    ),
    Row("step.1", "`Batch.step` alone, checked", _SPEED, stepping()),
    Row("board", "a procedural board", "ms", draw_boards, 2.0, at_most=True),
    Row("game", "`Game` from Python, random play", _SPEED, game_play, 150e3),
    Row("env", "`env()`: last, mask, step", _SPEED, aec_play(tokaido_env.env, 50), 100e3),
    Row("gym", "Gymnasium environment against random", "steps/s", gym_play),
    Row("deepcopy", "deepcopy of a running `env()`", "µs", deep_copies, 50.0, at_most=True),
    *_on_threads(
        "mcts.4000",
        "`mcts:sims=4000`, evaluated leaves",
        searching("mcts:sims=4000"),
        1.5e6,
        unit=_SIMULATIONS,
    ),
    Row(
        "mcts.full.1",
        "`mcts:sims=400,rollout=full`",
        _SIMULATIONS,
        searching("mcts:sims=400,rollout=full"),
        80e3,
    ),
    *_on_threads("champion", "`champion`, without search", searching("champion"), needs=_POLICIES),
    *_on_threads(
        "champion.400",
        "`champion:sims=400`",
        searching("champion:sims=400"),
        unit=_SIMULATIONS,
        needs=_POLICIES,
    ),
    Row("import", "`import tokaido_env`", "s", import_seconds, 0.4, at_most=True),
    Row("first.warm", "first decision of a process", "s", first_decision(cold=False), 0.8, True),
    Row("first.cold", "… with an empty kernel cache", "s", first_decision(cold=True), 12.0, True),
    Row("state", "one state", "bytes", lambda: float(STATE.itemsize), 128.0, at_most=True),
    *_on_gpu("random", "on a GPU, 2^{} games, random play", "random"),
    *_on_gpu("float32", "… and float32 observations", "random", "float32"),
    *_on_gpu("greedy", "… `greedy`, without observations", "greedy"),
    Row("cuda.memory", "… memory read and written", "GB/s", cuda_memory(1 << _SIZES[-1]), gpu=True),
)
RATIOS = (
    Ratio("pool / random", "a pool of 1,000 boards to one board", "pool.1", "random.1", 0.93),
    Ratio("pool / random, 2", "… on two threads", "pool.2", "random.2", 0.93, threads=2),
    Ratio("block / float32", "board features added", "block.1", "float32.1", 0.6),
    Ratio("copied / float32", "copied arrays to shared ones", "copied.1", "float32.1", 0.85),
)
