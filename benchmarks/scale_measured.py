"""What self-play, the driver, the files and the learner take a position: measured on one core.

    python benchmarks/scale_measured.py          a few minutes; writes benchmarks/scale.json

Seconds are of processors, by the code that a run uses (`learn/alphazero.py`), on one thread each.
The driver's are those of this process while a Ray cluster on this machine does units of two sizes:
what a unit takes, and what each position in it adds. `scale_on_paper.py` reads the file.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from tokaido_env.agents import make
from tokaido_env.agents.champion import CHAMPION
from tokaido_env.agents.heuristic import guides_of
from tokaido_env.agents.inputs import N_INPUTS, read_positions
from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.suite import sha256_of
from tokaido_env.boards.pool import BoardPool
from tokaido_env.core.state import STATE
from tokaido_env.files import write_text
from tokaido_env.learn.alphazero import learn
from tokaido_env.learn.network import PolicyNetwork
from tokaido_env.learn.replay_buffer import Samples, load_samples, save_samples
from tokaido_env.learn.rollouts import judge
from tokaido_env.learn.selfplay_games import SelfPlayGames
from tokaido_env.learn.settings import AlphaZeroSettings

MEASURED = Path(__file__).resolve().parent / "scale.json"

Call = Callable[[], Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the file; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--out", type=Path, default=MEASURED, metavar="FILE", help="(benchmarks/scale.json)")
    add("--games", type=int, default=128, help="of a unit (128)")
    add("--sims", type=int, default=64, help="simulations a decision (64)")
    add("--steps", type=int, default=40, help="of the learner (40)")
    add("--units", type=int, default=40, help="of each size, for the driver (40)")
    options = parser.parse_args(arguments)
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    samples, found = played(options.games, options.sims)
    with tempfile.TemporaryDirectory() as folder:
        found |= kept(samples, Path(folder))
        found |= taken(options.units, Path(folder))
    found |= learnt(samples, options.steps)
    machine = f"tokaido_env {version('tokaido-env')}, PyTorch {torch.__version__}"
    told = {"made": time.strftime("%Y-%m-%d"), "on": machine, "sims": options.sims}
    write_text(options.out, json.dumps(told | found, indent=1) + "\n")
    print(json.dumps(told | found, indent=1))
    return 0


def played(games: int, sims: int) -> tuple[Samples, dict[str, float]]:
    """Play a unit; return its samples, and how fast."""
    expert: Any = make(f"policy_search:{CHAMPION},sims={sims}")

    def unit(games: int, seed: int) -> SelfPlayGames:
        return SelfPlayGames(expert.spec, "", BoardPool.load(), games, seed, 0.26, 0.04)

    unit(2, 0).samples(expert)  # what is loaded or compiled
    seconds, samples = _cpu(lambda: unit(games, 1).samples(expert))
    count = len(samples.legal)
    return samples, {
        "positions_a_cpu_second": round(count / seconds, 1),
        "positions_a_game": round(count / games, 1),
    }


def kept(samples: Samples, folder: Path) -> dict[str, float]:
    """Return what a position takes in a file and on its way, and seconds to read it."""
    path, n = folder / "unit.npz", len(samples.legal)
    save_samples(path, samples)
    packed = io.BytesIO()
    states = samples.states.view(np.uint8).reshape(-1, STATE.itemsize)
    columns = {**samples._asdict(), "states": states}
    packing, _ = _cpu(lambda: np.savez_compressed(packed, **columns))
    load_samples(path, "shikoku")
    return {
        "bytes_in_a_file": round(path.stat().st_size / n, 1),
        "bytes_packed": round(len(packed.getvalue()) / n, 1),
        "pack_seconds": round(packing / n, 9),
        "load_seconds": _each(lambda: load_samples(path, "shikoku"), n),
        "hash_seconds": _each(lambda: sha256_of(path), n),
    }


def taken(units: int, folder: Path) -> dict[str, float]:
    """Return what the driver of a cluster takes a unit, and a position more in it."""
    costs = {}
    with open_executor("ray") as executor:
        for games in (1, 32):  # by a search that costs next to nothing
            some = [
                SelfPlayGames("mcts:sims=1", "", BoardPool.load(), games, 1000 * k, 0.26, 0.04)
                for k in range(units)
            ]

            def save(units: list[SelfPlayGames]) -> int:
                positions = 0
                for number, part in executor.map(units):
                    positions += len(part.legal)
                    save_samples(folder / f"{number}.npz", part)
                return positions

            save(some[:4])
            seconds, positions = _cpu(lambda some=some, save=save: save(some))  # type: ignore[misc]
            costs[positions / units] = seconds / units
    (few, less), (many, more) = sorted(costs.items())
    position = (more - less) / (many - few)
    return {
        "driver_seconds_a_unit": round(less - few * position, 6),
        "driver_seconds": round(position, 9),
    }


def learnt(samples: Samples, steps: int) -> dict[str, float]:
    """Return what the learner takes a sample: its inputs, and a step with them."""
    settings = AlphaZeroSettings()
    network, rows = PolicyNetwork(settings.sizes), settings.minibatch
    learn(network, samples, 2, 0, settings)
    part = samples.part(np.arange(rows))
    boards = settings.pool.records
    guides, which = guides_of(boards), part.boards.astype(np.int64)
    asked = boards, guides, which, part.states, part.legal
    each = _each(lambda: read_positions(*asked), rows)
    counter = FlopCounterMode(display=False)
    with counter:
        found = judge(network, *asked)
        (found.logits.sum() + found.values.sum()).backward()  # type: ignore[no-untyped-call]
    seconds, _ = _cpu(lambda: learn(network, samples, steps, 0, settings))
    return {
        "inputs_seconds": each,
        "inputs_bytes": 4 * N_INPUTS,
        "learn_seconds": round(seconds / (steps * rows), 9),
        "flops": round(counter.get_total_flops() / rows),
    }


def _cpu(call: Call) -> tuple[float, Any]:
    """Return the seconds of processors that a call takes in this process, and what it returns."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def _each(call: Call, n: int, repeats: int = 5) -> float:
    """Return the median seconds for each of n."""
    return round(float(np.median([_cpu(call)[0] for _ in range(repeats)])) / n, 9)


if __name__ == "__main__":
    sys.exit(main())
