"""How strong a learner is by the hour: Elo of the policies that runs have kept on their way.

    python benchmarks/strength_by_hour.py runs/home runs/sb3
    python benchmarks/strength_by_hour.py runs/home --games 1000 --json curve.json

Each policy in `policies/` of a run, and its `last`, is placed on the ladder of the default board.
The hours are those between the settings and the policy, by the files' times: a run counts that was
not interrupted, in a folder that was not copied.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.files import write_text
from tokaido_env.learn.checkpoint_rating import rate_learner

_BEGUN = ("settings.json", "config.toml")


class Strength(NamedTuple):
    """A policy on its run's way.

    Attributes:
        run: name of its folder.
        hours: of the run until then.
        steps: decisions until then.
        elo, low, high: its rating with the 95 % interval.
    """

    run: str
    hours: float
    steps: int
    elo: float
    low: float
    high: float


def strengths(run: Path, ladder: Ladder, games: int) -> Iterator[Strength]:
    """Rate the policies of a run, the first ones first.

    Args:
        run: its folder.
        ladder: to place them on.
        games: against each of three opponents, even.
    """
    begun = next(run / name for name in _BEGUN if (run / name).is_file()).stat().st_mtime
    for path in sorted((run / "policies").iterdir()):
        agent = PolicyAgent.from_policy(Policy.load(path), "learner")
        rating = rate_learner(agent, ladder, games)
        hours = (path.stat().st_mtime - begun) / 3600
        yield Strength(run.name, hours, int(path.name), rating.elo, *rating.ci95)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--games", type=int, default=1000, help="against each of three (1000)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    for run in options.runs:
        if not (run / "policies").is_dir() or not any((run / name).is_file() for name in _BEGUN):
            parser.error(f"{run}: expected the folder of a run, with policies/")
    pool = BoardPool.load("shikoku")
    ladder = Ladder.load(ladder_for(pool), pool)
    found: list[Strength] = []
    print("| run | hours | decisions | Elo | 95 % |\n|---|---|---|---|---|")
    for run in options.runs:
        for one in strengths(run, ladder, options.games):
            row = f"| {one.run} | {one.hours:.2f} | {one.steps / 1e6:.1f} M | {one.elo:.0f} | "
            print(f"{row}{one.low:.0f} – {one.high:.0f} |", flush=True)
            found.append(one)
    if options.json:
        text = json.dumps([one._asdict() for one in found], indent=1, ensure_ascii=False)
        write_text(options.json, text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
