"""Few-shot scores on test boards: fine-tune a policy in k games, or train one from scratch.

    python benchmarks/few_shot.py --boards 3            three boards: some minutes each
    python benchmarks/few_shot.py --list                print only the commands
    python benchmarks/few_shot.py --start RUN/last      another policy to start from

For each of the first boards of `family:test`, one learner starts from a policy that has not seen
test boards, another from random weights. Both play k games against themselves on this board
(`tokaido train --method selfplay`), then pairs against `mcts:sims=400` on it. With k = 0 the policy
is measured as it is. Called again, it resumes, and repeats nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tokaido_env.agents.champion import GENERALIST
from tokaido_env.agents.policy import Policy
from tokaido_env.arena.intervals import student_t_quantile
from tokaido_env.boards.procedural import SPLITS

OPPONENT = "mcts:sims=400"
# Games of an update and updates, by the number of games. Fixed before the first measurement.
SHOTS = {10: (10, 1), 100: (20, 5), 1000: (50, 20)}
RATES = {"fine-tuned": "1e-4", "from scratch": "1e-3"}

Words = list[str]


class Case(NamedTuple):
    """A learner on one board: its way to start, its games and its folder."""

    method: str
    games: int
    board: int
    path: Path

    @property
    def result(self) -> Path:
        """The file of its score."""
        return self.path.with_suffix(".json")

    def training(self, start: Path) -> Words:
        """Return the command that trains it, empty without games."""
        if not self.games:
            return []
        if (self.path / "config.toml").is_file():
            return ["train", "--resume", str(self.path)]
        games, updates = SHOTS[self.games]
        words = ["--method", "selfplay", "--board", f"family:{self.board}", "--see-board", "yes"]
        words += ["--games", str(games), "--updates", str(updates), "--seed", "0"]
        words += ["--learning-rate", RATES[self.method], "--threads", "1"]
        sizes = Policy.load(start).sizes
        words += ["--width", str(sizes.first), "--second-width", str(sizes.second)]
        words += ["--move-width", str(sizes.move)]
        words += ["--start-from", str(start)] * (self.method == "fine-tuned")
        return ["train", "--run", str(self.path), *words]

    def measuring(self, start: Path, pairs: int) -> Words:
        """Return the command that measures it."""
        policy = self.path / "last" if self.games else start
        words = ["--board", f"family:{self.board}", "--games", str(2 * pairs), "--seed", "0"]
        return ["evaluate", f"policy:{policy}", OPPONENT, *words, "--json", str(self.result)]


def cases(results: Path, boards: int) -> list[Case]:
    """Return all cases, board by board."""
    kinds = [("fine-tuned", 0), *((method, games) for games in SHOTS for method in RATES)]
    return [
        Case(method, games, board, results / f"{method.replace(' ', '-')}-{games}-{board}")
        for board in SPLITS["test"][:boards]
        for method, games in kinds
    ]


def mean_cell(values: Sequence[float], sign: str = "") -> str:
    """Return the mean of shares over boards in percent, with its interval by Student's t."""
    each = 100 * np.array(values)
    half = student_t_quantile(len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each))
    low, mean, high = (
        f"{x:{sign}.1f}" for x in (each.mean() - half, each.mean(), each.mean() + half)
    )
    return f"{mean} % ({low} to {high})".replace("-", "−")


def table(found: Sequence[Case]) -> str:
    """Return the scores by number of games as Markdown."""
    scores: dict[tuple[str, int], list[float]] = {}
    for case in found:
        data = json.loads(case.result.read_text(encoding="utf-8"))
        scores.setdefault((case.method, case.games), []).append(data["matches"][0]["score"])
    zero = scores["fine-tuned", 0]
    lines = [
        "| games on the board | fine-tuned | gain | from scratch |",
        "| --- | --- | --- | --- |",
    ]
    lines.append(f"| 0 | {mean_cell(zero)} | | |")
    for games in SHOTS:
        tuned, scratch = (scores[method, games] for method in RATES)
        gain = mean_cell([a - b for a, b in zip(tuned, zero, strict=True)], "+")
        lines.append(f"| {games:,} | {mean_cell(tuned)} | {gain} | {mean_cell(scratch)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the remaining commands; return the exit status of the first that fails, or 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    folder = "folder of all results (default: %(default)s)"
    add("--results", type=Path, default=Path("runs/few-shot"), help=folder)
    start = "policy file to start from (default: the generalist)"
    add("--start", type=Path, default=GENERALIST, help=start)
    add("--boards", type=int, default=10, help="number of test boards, from 2 (default: 10)")
    add("--pairs", type=int, default=40, help="pairs of games on each board (default: 40)")
    add("--list", action="store_true", help="only print the commands (default: off)")
    options = parser.parse_args(arguments)
    if options.boards < 2:
        parser.error(f"--boards: expected 2 or more, got {options.boards}")
    if not options.list:
        options.results.mkdir(parents=True, exist_ok=True)
    found = cases(options.results, options.boards)
    for case in found:
        for words in (case.training(options.start), case.measuring(options.start, options.pairs)):
            if words and (options.list or not case.result.is_file()):
                print("tokaido", shlex.join(words), flush=True)
                command = [sys.executable, "-m", "tokaido_env", *words]
                if not options.list and (status := subprocess.run(command, check=False).returncode):
                    return status
    if not options.list:
        print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
