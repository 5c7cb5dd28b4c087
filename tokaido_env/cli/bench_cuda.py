"""What `tokaido bench` measures of games on a GPU, where there is one."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from functools import cache
from typing import Any

SIZES = tuple(range(10, 21, 2))
"""Games of a batch, as powers of two."""

_SECONDS = 0.4
_BETWEEN_LOOKS = 16  # plies that are launched before the clock is looked at


def has_gpu() -> bool:
    """Return whether games can be played on a GPU here."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    from numba import cuda

    return bool(cuda.is_available())


def playing(bot: str, size: int, observation: str | None = None) -> Callable[[], float]:
    """Return a measure of a bot's play of a batch of 2**size games, in decisions/s."""

    @cache
    def begun() -> Any:
        from tokaido_env.cuda import CudaBatch

        batch = CudaBatch(1 << size, observation=observation, check=False)  # type: ignore[arg-type]
        batch.reset(seed=0)
        for _ in range(400):  # games at all stages
            batch.play("random")
        return batch

    def measure() -> float:
        from numba import cuda

        batch, count = begun(), 0
        cuda.synchronize()
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < _SECONDS:
            for _ in range(_BETWEEN_LOOKS):
                batch.play(bot)
            cuda.synchronize()
            count += _BETWEEN_LOOKS
        return (1 << size) * count / elapsed

    return measure


def moving(size: int) -> Callable[[], float]:
    """Return a measure of the memory that random play reads and writes at least, in GB/s."""

    def measure() -> float:
        from tokaido_env.cuda import BYTES_OF_A_STEP

        return playing("random", size)() * BYTES_OF_A_STEP / 1e9

    return measure
