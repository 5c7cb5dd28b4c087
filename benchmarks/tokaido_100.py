"""Run Tokaido-100: train the learners, measure all agents, and make the tables.

    python benchmarks/tokaido_100.py                      everything: several hours
    python benchmarks/tokaido_100.py --list               print only the commands
    python benchmarks/tokaido_100.py --only greedy        only agents with a word in their names
    python benchmarks/tokaido_100.py --docs               also write the tables to the docs

Called again, it resumes, and repeats nothing. The folder `--results` contains the training runs, a
JSON file per agent, and `table.md`. The game records of an agent are deleted when its
results are written, unless `--keep-records` is given.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from options import parser_of
from pages import fill

from tokaido_env.arena.result import Result

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "tokaido-100.md"

AGENTS = {
    "greedy": "greedy",
    "heuristic": "heuristic",
    "mcts-100": "mcts:sims=100",
    "mcts-4000": "mcts:sims=4000",
    "champion": "champion",
    "generalist": "generalist",
}
BOARDS = (1, 10, 100, 1000)
SEEDS = (0, 1, 2)
STEPS = 2_000_000

Words = list[str]


class Agent(NamedTuple):
    """An agent to measure.

    Attributes:
        name: of its files.
        spec: its spec string.
        training: command that trains it first, empty for an agent without training.
    """

    name: str
    spec: str
    training: Words


def agents(results: Path, steps: int) -> list[Agent]:
    """Return all agents, learners last."""
    found = [Agent(name, spec, []) for name, spec in AGENTS.items()]
    for boards in BOARDS:
        for seed in SEEDS:
            name = f"train-{boards}-seed-{seed}"
            found.append(
                Agent(name, f"policy:{results / name}", train(results / name, boards, seed, steps))
            )
    return found


def train(run: Path, boards: int, seed: int, steps: int) -> Words:
    """Return the command that starts or resumes training a learner on some boards."""
    if (run / "config.toml").is_file():
        return ["train", "--resume", str(run)]
    board = f"family:train/{boards}"
    return [
        *("train", "--run", str(run), "--board", board),
        *("--steps", str(steps), "--seed", str(seed)),
    ]


def measure(agent: Agent, results: Path, options: Sequence[str] = ()) -> Words:
    """Return the command that measures an agent."""
    files = "--json", str(results / f"{agent.name}.json")
    records = "--records", str(results / f"{agent.name}.jsonl")
    return ["generalise", agent.spec, *options, *files, *records]


def compare(names: Sequence[str], results: Path) -> Words:
    """Return the command that compares all results in a table."""
    files = [str(results / f"{name}.json") for name in names]
    table = str(results / "table.md")
    return ["generalise", "--compare", *files, "--markdown", table]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the remaining commands; return the exit status of the first that fails, or 0."""
    options = _parser().parse_args(arguments)
    results: Path = options.results
    chosen = [
        agent
        for agent in agents(results, options.steps)
        if not options.only or any(word in agent.name for word in options.only)
    ]
    sizes = ["--boards", str(options.boards), "--pairs", str(options.pairs)]
    if options.list:
        for agent in chosen:
            for command in (agent.training, measure(agent, results, sizes)):
                if command:
                    print("tokaido", shlex.join(command))
        return 0
    results.mkdir(parents=True, exist_ok=True)
    for agent in chosen:
        if not (results / f"{agent.name}.json").is_file():
            status = _run(agent.training) or _run(measure(agent, results, sizes))
            if status:
                return status
        if not options.keep_records:
            (results / f"{agent.name}.jsonl").unlink(missing_ok=True)
    status = _run(compare([agent.name for agent in chosen], results))
    if not status and options.docs:
        _write_docs(results, chosen)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__, "runs/tokaido-100")
    add = parser.add_argument
    steps = "decisions to train each learner for (default: %(default)s)"
    add("--steps", type=int, default=STEPS, help=steps)
    add("--boards", type=int, default=100, help="number of test boards (default: 100)")
    add("--pairs", type=int, default=40, help="pairs of games on each board (default: 40)")
    records = "keep all games, about 90 MB per agent (default: off)"
    add("--keep-records", action="store_true", help=records)
    add("--list", action="store_true", help="print the commands only (default: off)")
    return parser


def _run(command: Words) -> int:
    """Print and run a command of the project unless it is empty; return its exit status."""
    if not command:
        return 0
    print("tokaido", shlex.join(command), flush=True)
    return subprocess.run([sys.executable, "-m", "tokaido_env", *command], check=False).returncode


def _write_docs(results: Path, measured: Sequence[Agent]) -> None:
    lines = (results / "table.md").read_text(encoding="utf-8").splitlines(keepends=True)
    learners = tuple(f"| {agent.spec} |" for agent in measured if agent.training)
    content = "".join(line for line in lines if not line.startswith(learners))
    fill(PAGE, content + (f"\n{learners_table(results)}" if learners else ""))


def learners_table(results: Path) -> str:
    """Return a table of the learners: mean, minimum and maximum over seeds."""
    lines = ["| training boards | seeds | score on test | score on train | gap |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for boards in BOARDS:
        files = (results / f"train-{boards}-seed-{seed}.json" for seed in SEEDS)
        read = [Result.load(file) for file in files if file.is_file()]
        if read:
            means = [[one.value for one in run.estimates_of("mean score")] for run in read]
            cells = [_mean_and_range(row) for row in zip(*means, strict=True)]
            gaps = [one.value for run in read for one in run.estimates_of("gap")]
            cells.append(_mean_and_range(gaps, sign="+"))
            lines.append(f"| {boards:,} | {len(read)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _mean_and_range(values: Sequence[float], sign: str = "") -> str:
    """Return mean, minimum and maximum of shares in percent."""
    texts = (f"{100 * one(values):{sign}.1f}" for one in (statistics.fmean, min, max))
    mean, low, high = (text.replace("-", "−") for text in texts)
    return f"{mean} % ({low} to {high})"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
