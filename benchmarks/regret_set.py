"""Make the regret set: positions, and what each action in them is worth by rollouts.

    python benchmarks/regret_set.py                  all of it: an hour or so on two quiet cores
    python benchmarks/regret_set.py --positions 200 --name pilot --work runs/regret-pilot

Called again, it goes on where it was stopped: what is done lies in the folder `--work`, and the
same options give the same set, byte for byte. The last step writes the set and prints how far the
policies that play the rollouts agree. `docs/regret.md` tells what a set is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import regret_making as making
from regret_agreement import agreement

from tokaido_env.arena.executors import EXECUTORS, Executor, check_executor, open_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.core.arguments import check_seed
from tokaido_env.files import atomic_write, check_outputs, locked
from tokaido_env.study.regret_set import BLOCK, SHIPPED, RegretSet

PART = 20  # positions between two looks at what is done


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is not there yet; return the exit status."""
    options = _parser().parse_args(arguments)
    check_seed(options.seed)
    check_outputs(options.out)
    check_executor(options.executor)
    options.work.mkdir(parents=True, exist_ok=True)
    numba.set_num_threads(options.threads)
    with locked(options.work), open_executor(options.executor) as executor:
        plan = _plan(options)
        sums = [_rolled(plan, policy, options.work, executor) for policy in making.POLICIES]
    made = replace(plan, card=plan.card | _origin(options), sums=np.stack(sums, axis=1))
    made.save(options.out)
    loaded = RegretSet.load(options.out)
    print(f"{options.out}: {len(loaded):,} positions, hash {loaded.hash}")
    print(json.dumps(agreement(loaded), indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--positions", type=int, default=2000, help="half on each kind of boards (2000)")
    add("--blocks", type=int, default=making.BLOCKS, help=f"of {BLOCK} rollouts ({making.BLOCKS})")
    add("--games", type=int, default=making.GAMES, help=f"of each two sources ({making.GAMES})")
    add("--seed", type=int, default=0, help="0 to 2**53 - 1 (0)")
    add("--name", default="tokaido-regret-1", help="of the set (tokaido-regret-1)")
    add("--out", type=Path, default=SHIPPED, metavar="FILE", help="(the one that is shipped)")
    add("--work", type=Path, default=Path("runs/regret-set"), help="(runs/regret-set)")
    add("--threads", type=int, default=numba.config.NUMBA_NUM_THREADS, help="of this process")
    add("--executor", default="serial", help=f"runs rollouts: {EXECUTORS} (default: serial)")
    return parser


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    names = ("positions", "blocks", "games", "seed")
    return {name: getattr(options, name) for name in names}


def _plan(options: argparse.Namespace) -> RegretSet:
    """Return the positions and what is to be rolled out, from the folder if it is there."""
    path, asked = options.work / "plan.npz", _asked(options)
    if not path.is_file():
        print("positions and their best actions …", flush=True)
        plan = making.make_plan(options.positions, options.seed, options.games, options.blocks)
        replace(plan, card=plan.card | {"asked": asked}).save(path)
    plan = RegretSet.load(path)
    if plan.card.get("asked") != asked:
        raise ValueError(f"{path}: made for {plan.card.get('asked')}, asked for {asked}")
    del plan.card["asked"]
    return plan


def _rolled(plan: RegretSet, policy: str, work: Path, executor: Executor) -> npt.NDArray[np.int8]:
    """Return the sums of all actions, int8 (m, blocks), rolling out what is not done."""
    began, rollouts = time.perf_counter(), 0
    files = {
        some: work / f"{policy}-{some.start:05d}.npy" for some in making.parts_of(len(plan), PART)
    }
    missing = [some for some, path in files.items() if not path.is_file()]

    def take(number: int, part: npt.NDArray[np.int8]) -> None:
        nonlocal rollouts
        with atomic_write(files[missing[number]]) as file:
            np.save(file, part)
        rollouts += int((part != making.NOT_ROLLED).sum()) * BLOCK
        speed = rollouts / (time.perf_counter() - began)
        done = f"{missing[number].stop:,} of {len(plan):,} positions"
        print(f"{policy}: {done}, {speed:,.0f} rollouts/s", flush=True)

    making.roll_all(plan, policy, missing, take, executor)
    return np.concatenate([np.load(path, allow_pickle=False) for path in files.values()])


def _origin(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the card says of how the set was made; no clock and no machine."""
    told = _asked(options) | {"name": options.name}
    words = [f"--{name} {value}" for name, value in told.items()]
    return {
        "name": options.name,
        "command": " ".join(["python benchmarks/regret_set.py", *words]),
        "tokaido_env": version("tokaido-env"),
        "rollouts": options.blocks * BLOCK,
        "rollouts_of_others": making.FEW * BLOCK,
        "sources": list(making.SOURCES),
        "judges": list(making.JUDGES),
        "references": list(making.REFERENCES),
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError, AgentFailed) as error:
        sys.exit(f"regret_set: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
