"""Regret sets: read and written back, or refused."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import mutants
import numpy as np
from fuzz import refusal
from regrets import drawn_sums, small_set, truth_of

from tokaido_env.agents.registry import make
from tokaido_env.study.regret import figures, measure
from tokaido_env.study.regret_set import RegretSet, RegretSetError

ARRAYS = ("states", "board", "stratum", "starts", "actions", "sums")


class Cases:
    """A small set, and sets that are damaged inside or outside."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)
        self.path = folder / "set.npz"
        rng, told = np.random.default_rng(0), small_set(most=4)
        self.told = replace(told, sums=drawn_sums(told, truth_of(told, rng, 0.3), rng, few=2))
        os.mkfifo(folder / "fifo")

    def check_sound(self) -> None:
        self.told.save(self.path)
        assert RegretSet.load(self.path).hash == self.told.hash

    def case(self, rng: random.Random) -> bool:
        self._write(rng)
        with refusal(RegretSetError, names=self.path) as messages:
            try:
                loaded = RegretSet.load(self.path)
            finally:
                if self.path.is_symlink():
                    self.path.unlink()
            again = self.path.with_name("again.npz")
            loaded.save(again)
            assert RegretSet.load(again).hash == loaded.hash
            if rng.random() < 0.1:
                self._use(loaded)
        return not messages

    def _use(self, loaded: RegretSet) -> None:
        """What is taken can be measured by, and told."""
        found = figures(loaded, measure(make("greedy"), loaded))
        json.dumps(found, allow_nan=False)

    def _write(self, rng: random.Random) -> None:
        """Write a damaged set, with its hash made anew mostly."""
        if rng.random() < 0.02:
            self.path.unlink(missing_ok=True)
            self.path.symlink_to(rng.choice(("fifo", "/dev/zero", "missing", ".")))
            return
        changed: dict[str, Any] = {}
        if rng.random() < 0.5:
            card = mutants.tree(rng, self.told.card, 2)
            changed["card"] = card if isinstance(card, dict) else {}
        else:
            name = rng.choice(ARRAYS)
            changed[name] = _damaged(rng, getattr(self.told, name))
        replace(self.told, **changed).save(self.path)
        if rng.random() < 0.2:
            self.path.write_bytes(mutants.damaged(rng, self.path.read_bytes()))


def _damaged(rng: random.Random, array: Any) -> Any:
    """The same array with some bytes changed, shorter, or of another dtype."""
    kind = rng.randrange(4)
    if kind == 0:
        return array[: rng.randrange(len(array) + 1)]
    if kind == 1 and array.dtype.names is None:
        return array.astype(rng.choice((np.int64, np.float32, np.uint8)))
    raw = array.copy()
    data = raw.reshape(-1).view(np.uint8)
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 64, 127, 128, 255))
    return raw
