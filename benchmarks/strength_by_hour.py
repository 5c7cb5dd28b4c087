"""Learning curves: Elo of a run's snapshots by hours of training.

    python benchmarks/strength_by_hour.py runs/home runs/sb3
    python benchmarks/strength_by_hour.py runs/home --games 1000 --json curve.json

The ladder of the default board rates each policy in `policies/` of a run. The hours are the time
between `config.toml` and the policy, by the files' times: the run must not have been interrupted,
and its folder not copied.
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
from tokaido_env.learn.run_folder import CONFIG


class Point(NamedTuple):
    """A point of a learning curve.

    Attributes:
        run: name of the run's folder.
        hours: of training.
        steps: of training, in the run's unit.
        elo, low, high: the rating with its 95 % interval.
    """

    run: str
    hours: float
    steps: int
    elo: float
    low: float
    high: float


def learning_curve(run: Path, ladder: Ladder, games: int) -> Iterator[Point]:
    """Rate the snapshots of a run in order.

    Args:
        run: the run folder.
        ladder: rates the policies.
        games: against each of three opponents; even.
    """
    begun = (run / CONFIG).stat().st_mtime
    for path in sorted((run / "policies").iterdir()):
        agent = PolicyAgent.from_policy(Policy.load(path), "learner")
        rating = rate_learner(agent, ladder, games)
        hours = (path.stat().st_mtime - begun) / 3600
        yield Point(run.name, hours, int(path.name), rating.elo, *rating.ci95)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run folders")
    parser.add_argument(
        "--games",
        type=int,
        default=1000,
        help="games against each of three opponents (default: 1000)",
    )
    parser.add_argument("--json", type=Path, help="file to write the points to (default: none)")
    options = parser.parse_args(arguments)
    for run in options.runs:
        if not (run / "policies").is_dir() or not (run / CONFIG).is_file():
            parser.error(f"{run}: expected a run folder with {CONFIG} and policies/")
    pool = BoardPool.load("shikoku")
    ladder = Ladder.load(ladder_for(pool), pool)
    points: list[Point] = []
    print("| run | hours | steps | Elo | 95 % |\n|---|---|---|---|---|")
    for run in options.runs:
        for point in learning_curve(run, ladder, options.games):
            row = f"| {point.run} | {point.hours:.2f} | {point.steps:,} | {point.elo:.0f} | "
            print(f"{row}{point.low:.0f} – {point.high:.0f} |", flush=True)
            points.append(point)
    if options.json:
        text = json.dumps([point._asdict() for point in points], indent=1, ensure_ascii=False)
        write_text(options.json, text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
