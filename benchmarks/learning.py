"""Compare methods of learning: train, rate, and make the table and the figure of the docs.

    python benchmarks/learning.py --list                         print only the commands
    python benchmarks/learning.py --only one_file_td --budget 2m --seeds 0
    python benchmarks/learning.py                                everything: days
    python benchmarks/learning.py --docs                         also write what is measured

Called again, it resumes, and repeats nothing. For each run the folder `--results` has the trained
agent, its cost (`.cost.json`), its rating (`.rating.json`), its other results (`.json`), and the
weights at each tenth of the budget (`.curve`). A training that fails is a row with its command.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from learning_report import KEYS, PAIR_POINTS, write_docs
from options import parser_of
from training_runs import ROOT, Run, Words, run_python, train

from tokaido_env.agents.registry import make
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.arena.result import Result
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.learn.rating import rate_learner

SEEDS = range(5)
GAMES, CURVE_GAMES = 4000, 100  # against the heuristic; against each opponent of a curve's rating
TD_UPDATE, TD_LONG = 40_500, 250_000  # decisions of an update of td, more of its first, long games
AZ_ROUNDS, AZ_GAMES = 8, 128
AZ_DECISIONS = 1930  # searched in one game of each round: 840 in the first, by random weights
FIXED, UNTRAINED = "none", "untrained"
TRACKS = "raw", "geometry", "afterstates"


BUDGETS = {FIXED: 0, UNTRAINED: 0, "2m": 2_000_000, "20m": 20_000_000}
"""Decisions of the training."""

TRAINED = UNTRAINED, "2m", "20m"


class Fixed(NamedTuple):
    """An agent without parameters: a score that learners must pass."""

    spec: str
    budgets: tuple[str, ...] = (FIXED,)

    def run(self, path: Path, track: str, decisions: int, seed: int) -> Run:
        """Return a run without a training."""
        return Run(path, self.spec, [], 0)


class Script(NamedTuple):
    """A training script with the options `--track`, `--decisions`, `--curve`.

    Attributes:
        file: of the script.
        agent: class in it that plays from the saved file.
        budgets: that it is run for.
        tracks: that it is run on.
    """

    file: str
    agent: str
    budgets: tuple[str, ...] = TRAINED
    tracks: tuple[str, ...] = ("raw", "afterstates")

    def run(self, path: Path, track: str, decisions: int, seed: int) -> Run:
        """Return a run of the script."""
        words = [self.file, "--track", track, "--decisions", str(decisions), "--seed", str(seed)]
        words += ["--games", "100", "--file", f"{path}.pt", "--curve", f"{path}.curve"]
        spec = f"python:{self.file}:{self.agent},file={path}.pt"
        return Run(path, spec, words, decisions)


class Train(NamedTuple):
    """A method of `tokaido train`, which reads afterstates."""

    method: str
    budgets: tuple[str, ...] = TRAINED

    def run(self, path: Path, track: str, decisions: int, seed: int) -> Run:
        """Return a run of the method; a started one is resumed."""
        words = ["-m", "tokaido_env", "train"]
        if (ROOT / path / "config.toml").is_file():
            words += ["--resume", str(path)]
        else:
            words += ["--run", str(path), "--method", self.method, "--seed", str(seed)]
            words += ["--threads", "1", *self._length(decisions)]
        return Run(path, f"policy:{path}/last", words, decisions)

    def _length(self, decisions: int) -> Words:
        """Return the options for a number of decisions; 0 takes one update that changes nothing."""
        still = [] if decisions else ["--learning-rate", "1e-9"]
        if self.method == "td":
            updates = max((decisions - TD_LONG) // TD_UPDATE, 1)
            snapshots = ["--snapshot-every", str(max(updates // 10, 1))]
            return ["--updates", str(updates), *snapshots, *still]
        if not decisions:
            few = ["--shards", "1", "--games", "2", "--sims", "2", "--promotion-games", "0"]
            return ["--rounds", "1", *few, *still]
        shards = max(decisions // (AZ_GAMES * AZ_DECISIONS), 1)
        return ["--rounds", str(AZ_ROUNDS), "--shards", str(shards)]


SHORT = (UNTRAINED, "2m")  # without 20 million: over eight hours a seed
METHODS: dict[str, Fixed | Script | Train] = {
    "lowest id": Fixed("python:agents/simple_players.py:LowestId"),
    "random": Fixed("random"),
    "sum of terms": Fixed("python:agents/simple_players.py:TermSum"),
    "heuristic": Fixed("heuristic"),
    "sb3": Script("docs/recipes/sb3_self_play.py", "ModelAgent"),
    "one_file_ppo": Script("agents/one_file_ppo.py", "NetworkAgent", tracks=TRACKS),
    "one_file_td": Script("agents/one_file_td.py", "ValueAgent", tracks=TRACKS),
    "torchrl_ppo": Script("docs/recipes/torchrl_ppo.py", "NetworkAgent"),
    "td": Train("td"),
    "alphazero": Train("alphazero", SHORT),
}


class Cell(NamedTuple):
    """A row of the table: a method, a track and a budget."""

    method: str
    track: str
    budget: str

    def run(self, results: Path, seed: int) -> Run:
        """Return the run of a seed."""
        path = results / f"{self.method.replace(' ', '-')}-{self.track}-{self.budget}-seed-{seed}"
        return METHODS[self.method].run(path, self.track, BUDGETS[self.budget], seed)


def cells(methods: Sequence[str], budgets: Sequence[str]) -> Iterator[Cell]:
    """Yield the rows of methods and budgets."""
    for budget in budgets:
        for name in methods:
            method = METHODS[name]
            tracks = method.tracks if isinstance(method, Script) else TRACKS[-1:]
            if isinstance(method, Fixed):
                tracks = ("none",)
            if budget in method.budgets:
                yield from (Cell(name, track, budget) for track in tracks)


def rate(run: Run) -> Words:
    """Return the command that rates a trained agent."""
    file = f"{run.path}.rating.json"
    return ["-m", "tokaido_env", "rate", run.spec, "--json", file]


def measure(run: Run) -> None:
    """Play against the heuristic, rate the learning curve, and write a run's results."""
    rating = Result.load(f"{run.path}.rating.json").estimate("Elo")
    cost = json.loads(Path(f"{run.path}.cost.json").read_text(encoding="utf-8"))
    match = play_match(make(run.spec), make("heuristic"), GAMES, 0)
    pairs = np.rint(PAIR_POINTS * match.results.mean(axis=1)).astype(int)
    found = {"elo": rating.value, "elo_ci95": rating.interval, "ci95": match.interval}
    found |= {key: cost[key] for key in ("decisions", "seconds", "wall")}
    found |= {"pairs": "".join(map(str, pairs)), "curve": curve(run, cost)}
    Path(f"{run.path}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def curve(run: Run, cost: dict[str, Any]) -> list[tuple[int, float, float]]:
    """Return decisions, processor seconds and Elo of each tenth of a run.

    The seconds of snapshots of `tokaido train` are interpolated.
    """
    pool = BoardPool.load("shikoku")
    ladder, points = Ladder.load(ladder_for(pool), pool), []
    file = run.path / "metrics.jsonl"
    metrics = map(json.loads, file.read_text("utf-8").splitlines() if file.is_file() else [])
    known = {line.get("updates") or line.get("rounds"): line["decisions"] for line in metrics}
    for file in sorted(Path(f"{run.path}.curve").glob("*.pt")):
        decisions, _, seconds = file.stem.partition("-")
        spec = run.spec.replace(f"{run.path}.pt", str(file))
        points.append((int(decisions), float(seconds), spec))
    for file in sorted((run.path / "policies").glob("*")):
        if decisions := known.get(int(file.name)):
            seconds = round(decisions / cost["decisions"] * cost["seconds"], 1)
            points.append((decisions, seconds, f"policy:{file}"))
    return [
        (*at, round(rate_learner(make(spec), ladder, CURVE_GAMES).value, 1)) for *at, spec in points
    ]


def perform(run: Run) -> None:
    """Train and measure what is missing; a failed training leaves its cost alone."""
    if Path(f"{run.path}.json").is_file():
        return
    if not train(run) and not run_python(rate(run)):
        measure(run)


def rows(chosen: Sequence[Cell], results: Path, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows of measured cells; a cell of failed trainings names its command."""
    found = []
    for cell in chosen:
        own = SEEDS[:1] if cell.budget == FIXED else seeds
        runs = [cell.run(results, seed) for seed in own]
        files = {str(seed): Path(f"{run.path}.json") for seed, run in zip(own, runs, strict=True)}
        done = {
            seed: json.loads(file.read_text("utf-8"))
            for seed, file in files.items()
            if file.is_file()
        }
        head = dict(zip(KEYS, cell, strict=True)) | {"rules": RULES_VERSION}
        if done:
            found.append(head | {"runs": done})
        elif any(Path(f"{run.path}.cost.json").is_file() for run in runs):
            found.append(
                head | {"tried": f"failed or unfinished: `python {shlex.join(runs[0].training)}`"}
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the remaining commands; return the exit status."""
    options = _parser().parse_args(arguments)
    chosen = list(cells(options.only, options.budget))
    if not options.list:
        os.chdir(ROOT)
        torch.set_num_threads(1)  # of matches: a second thread mostly waits
        options.results.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for cell in chosen:
            if cell.budget == FIXED and seed != options.seeds[0]:
                continue
            run = cell.run(options.results, SEEDS[0] if cell.budget == FIXED else seed)
            if options.list:
                if run.training:
                    print("python", shlex.join(run.training))
                print("python", shlex.join(rate(run)))
            else:
                perform(run)
    if options.docs:
        write_docs(rows(chosen, options.results, options.seeds))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__, f"runs/learning-rules-{RULES_VERSION}", METHODS)
    add = parser.add_argument
    budgets = f"of {', '.join(BUDGETS)} (default: all)"
    add("--budget", nargs="+", choices=BUDGETS, default=list(BUDGETS), metavar="B", help=budgets)
    seeds = "training seeds (default: 0 1 2 3 4)"
    add("--seeds", nargs="+", type=int, default=list(SEEDS), help=seeds)
    add("--list", action="store_true", help="print the commands only (default: off)")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
