"""Tokaido-100 as a whole: train the learners, measure all agents, make the table and the figure.

    python benchmarks/tokaido_100.py                      all of it, one after another: some hours
    python benchmarks/tokaido_100.py --list               only print the commands
    python benchmarks/tokaido_100.py --only greedy        only agents whose names hold a word
    python benchmarks/tokaido_100.py --docs               also put table and figure into the docs

Called again, it goes on where it was stopped, and does nothing again. Everything lies in a folder
(`--results`): runs of learners, a JSON file for each agent, `table.md` and `plots`. The records of
the games of an agent are gone once its results are written, but for `--keep-records`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tokaido-100.md"
FIGURE = ROOT / "docs" / "pictures" / "tokaido-100.svg"
CAPTION = "Score and gap against the number of training boards"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"

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
    """An agent to be measured.

    Attributes:
        name: of its files.
        spec: to make it from.
        training: what comes before, nothing for an agent that is not trained.
    """

    name: str
    spec: str
    training: Words


def agents(results: Path, steps: int) -> list[Agent]:
    """Return all agents, the learners last."""
    found = [Agent(name, spec, []) for name, spec in AGENTS.items()]
    for boards in BOARDS:
        for seed in SEEDS:
            name = f"train-{boards}-seed-{seed}"
            found.append(
                Agent(name, f"policy:{results / name}", train(results / name, boards, seed, steps))
            )
    return found


def train(run: Path, boards: int, seed: int, steps: int) -> Words:
    """Return the command that trains a learner on some boards, or goes on with it."""
    if (run / "config.toml").is_file():
        return ["train.py", "--resume", str(run)]
    board = f"family:train/{boards}"
    return [
        *("train.py", "--run", str(run), "--board", board),
        *("--steps", str(steps), "--seed", str(seed), "--value-games", "all"),
    ]


def measure(agent: Agent, results: Path, options: Sequence[str] = ()) -> Words:
    """Return the command that measures an agent."""
    files = "--json", str(results / f"{agent.name}.json")
    records = "--records", str(results / f"{agent.name}.jsonl")
    return ["evaluate.py", "generalise", agent.spec, *options, *files, *records]


def compare(names: Sequence[str], results: Path, *, curve: bool) -> Words:
    """Return the command that puts all results into a table and, of learners, a figure."""
    files = [str(results / f"{name}.json") for name in names]
    plots = ["--plots", str(results / "plots")] if curve else []
    table = str(results / "table.md")
    return ["evaluate.py", "generalise", "--compare", *files, "--markdown", table, *plots]


def filled(page: str, told: str) -> str:
    """Return a page with a table, and a figure if there is one, between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the marks {BEGIN} and {END} in the page")
    return f"{before}{BEGIN}\n{told}{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all that has not been done; return the exit status of what has failed, or 0."""
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
                    print("python", shlex.join(command))
        return 0
    results.mkdir(parents=True, exist_ok=True)
    for agent in chosen:
        if not (results / f"{agent.name}.json").is_file():
            status = _run(agent.training) or _run(measure(agent, results, sizes))
            if status:
                return status
        if not options.keep_records:
            (results / f"{agent.name}.jsonl").unlink(missing_ok=True)
    curve = any(agent.training for agent in chosen)
    status = _run(compare([agent.name for agent in chosen], results, curve=curve))
    if not status and options.docs:
        _write_docs(results, chosen)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--results", type=Path, default=Path("runs/tokaido-100"), help="(runs/tokaido-100)")
    add("--only", nargs="+", default=[], metavar="WORD", help="agents whose names hold one")
    add("--steps", type=int, default=STEPS, help=f"decisions of each learner ({STEPS:,})")
    add("--boards", type=int, default=100, help="to test on (100)")
    add("--pairs", type=int, default=40, help="of games on each board (40)")
    add("--keep-records", action="store_true", help="keep every game, about 90 MB an agent")
    add("--docs", action="store_true", help="put table and figure into the docs")
    add("--list", action="store_true", help="print the commands, run nothing")
    return parser


def _run(command: Words) -> int:
    """Run a command of the project, if there is one; return its exit status."""
    if not command:
        return 0
    print("python", shlex.join(command), flush=True)
    script, *rest = command
    return subprocess.run([sys.executable, str(ROOT / script), *rest], check=False).returncode


def _write_docs(results: Path, measured: Sequence[Agent]) -> None:
    told = (results / "table.md").read_text(encoding="utf-8")
    for agent in measured:
        if agent.training:  # whose spec is a path of the machine that trained it
            told = told.replace(f"| {agent.spec} |", f"| {agent.name} |")
    curve = results / "plots" / "curve.svg"
    if curve.is_file():
        shutil.copyfile(curve, FIGURE)
        told += f"\n{by_number(results)}"
        told += f"\n![{CAPTION}]({FIGURE.relative_to(PAGE.parent).as_posix()})\n"
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), told), encoding="utf-8")


def by_number(results: Path) -> str:
    """Return a table of the learners: means of the seeds, and the lowest and the highest."""
    lines = ["| training boards | seeds | score on test | score on train | gap |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for boards in BOARDS:
        files = (results / f"train-{boards}-seed-{seed}.json" for seed in SEEDS)
        read = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
        if read:
            rows = [[one[split]["mean"]["value"] for one in read] for split in ("test", "train")]
            cells = [_spread(row) for row in rows]
            cells.append(_spread([one["gap"]["value"] for one in read], sign="+"))
            lines.append(f"| {boards:,} | {len(read)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[float], sign: str = "") -> str:
    """Return the mean of some shares in percent, and where they lie."""
    told = (f"{100 * one(values):{sign}.1f}" for one in (statistics.fmean, min, max))
    mean, low, high = (text.replace("-", "−") for text in told)
    return f"{mean} % ({low} to {high})"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
