"""Make the regret set: positions, and rollout results of each action in them.

    python benchmarks/regret_set.py                  takes about an hour on two quiet cores
    python benchmarks/regret_set.py --positions 200 --name pilot --work runs/regret-pilot

A stopped run resumes from the folder `--work`. The same options give the same set, byte for byte.
`docs/benchmarks/regret.md` describes the set.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import regret_making as making

from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.core.arguments import check_seed
from tokaido_env.files import atomic_write, check_outputs, locked
from tokaido_env.study.regret_set import BLOCK, SHIPPED, RegretSet

PART = 20  # positions in one file of results


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the missing parts and the set; return the exit status."""
    options = _parser().parse_args(arguments)
    options.seed = check_seed(options.seed)
    check_outputs(options.out)
    options.work.mkdir(parents=True, exist_ok=True)
    with locked(options.work):
        plan = _plan(options)
        sums = [_rollout_sums(plan, policy, options.work) for policy in making.POLICIES]
    made = replace(plan, card=plan.card | _provenance(options), sums=np.stack(sums, axis=1))
    made.save(options.out)
    loaded = RegretSet.load(options.out)
    print(f"{options.out}: {len(loaded):,} positions, hash {loaded.hash}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    positions = "number, half on each kind of boards (default: 2000)"
    add("--positions", type=int, default=2000, help=positions)
    blocks = f"of {BLOCK} rollouts (default: {making.BLOCKS})"
    add("--blocks", type=int, default=making.BLOCKS, help=blocks)
    games = f"for each pair of sources (default: {making.GAMES})"
    add("--games", type=int, default=making.GAMES, help=games)
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--name", default="tokaido-regret-3", help="name of the set (default: tokaido-regret-3)")
    out = "file of the set (default: the shipped one)"
    add("--out", type=Path, default=SHIPPED, metavar="FILE", help=out)
    work = "folder of finished parts (default: runs/regret-set)"
    add("--work", type=Path, default=Path("runs/regret-set"), help=work)
    return parser


def _plan_options(options: argparse.Namespace) -> dict[str, Any]:
    names = ("positions", "blocks", "games", "seed")
    return {name: getattr(options, name) for name in names}


def _plan(options: argparse.Namespace) -> RegretSet:
    """Return the positions and the planned rollouts, from the folder if they are there."""
    path, asked = options.work / "plan.npz", _plan_options(options)
    if not path.is_file():
        print("drawing positions, choosing actions to roll out …", flush=True)
        plan = making.make_plan(options.positions, options.seed, options.games, options.blocks)
        replace(plan, card=plan.card | {"asked": asked}).save(path)
    plan = RegretSet.load(path)
    if plan.card.get("asked") != asked:
        raise ValueError(
            f"{path}: expected a plan for {asked}, got {plan.card.get('asked')}: use another --work"
        )
    del plan.card["asked"]
    return plan


def _rollout_sums(plan: RegretSet, policy: str, work: Path) -> npt.NDArray[np.int8]:
    """Return the sums of all actions, int8 (m, blocks), after rolling out missing parts."""
    began, rollouts, parts = time.perf_counter(), 0, []
    for some in making.ranges_of(len(plan), PART):
        path = work / f"{policy}-{some.start:05d}.npy"
        if not path.is_file():
            part = making.rolled_out(plan, policy, some)
            with atomic_write(path) as file:
                np.save(file, part)
            rollouts += int((part != making.NOT_ROLLED).sum()) * BLOCK
            speed = rollouts / (time.perf_counter() - began)
            done = f"{some.stop:,} of {len(plan):,} positions"
            print(f"{policy}: {done}, {speed:,.0f} rollouts/s", flush=True)
        parts.append(np.load(path, allow_pickle=False))
    return np.concatenate(parts)


def _provenance(options: argparse.Namespace) -> dict[str, Any]:
    """Return the entries of the card about how the set was made, without times and machine."""
    values = _plan_options(options) | {"name": options.name}
    words = [f"--{name} {value}" for name, value in values.items()]
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
