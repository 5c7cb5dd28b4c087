"""Run tokaido-bench-1: measure all agents, and make the table of the page.

    python benchmarks/tokaido_bench_1.py                  everything: several hours
    python benchmarks/tokaido_bench_1.py --list           print only the commands
    python benchmarks/tokaido_bench_1.py --only champion  only agents with a word in their names
    python benchmarks/tokaido_bench_1.py --docs           also write the table to the page
    python benchmarks/tokaido_bench_1.py --constants      make the suite: its hash changes

Called again, it resumes, and repeats nothing. The folder `--results` contains submission, records
and timing of each agent, and `table.md`.

The suite contains a fixed rating of each opponent: on the default board from the ladder of this
project, on the test boards from a round robin of the opponents, which `--constants` plays.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from pages import fill

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "tokaido-bench-1.md"
SUITE = ROOT / "tokaido_env" / "arena" / "tokaido-bench-1.json"
LADDER = ROOT / "tokaido_env" / "arena" / "ladder.json"
GAMES = 2000  # per pair of opponents on the test boards

AGENTS = {
    "random": "random",
    "greedy": "greedy",
    "heuristic": "heuristic",
    "champion": "champion",
    "mcts-100": "mcts:sims=100",
    "mcts-400": "mcts:sims=400",
    "mcts-4000": "mcts:sims=4000",
    "expectimax-2": "expectimax:depth=2",
    "champion-400": "champion:sims=400",
    "mcts-20000": "mcts:sims=20000",
}

Words = list[str]


def measure(name: str, results: Path, suite: Path | None = None) -> Words:
    """Return the command that measures an agent."""
    files = {"json": "json", "records": "jsonl", "timing": "timing.json"}
    words = ["evaluate", "suite", AGENTS[name]]
    for option, ending in files.items():
        words += [f"--{option}", str(results / f"{name}.{ending}")]
    return words + ([] if suite is None else ["--suite", str(suite)])


def compare(names: Sequence[str], results: Path, suite: Path | None = None) -> Words:
    """Return the command that compares all results in a table."""
    files = [str(results / f"{name}.json") for name in names]
    words = ["evaluate", "suite", "--compare", *files, "--markdown", str(results / "table.md")]
    return words + ([] if suite is None else ["--suite", str(suite)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the remaining commands; return the exit status of the first that fails, or 0."""
    options = _parser().parse_args(arguments)
    results: Path = options.results
    if options.constants:
        return _make_suite(results)
    chosen = [
        name for name in AGENTS if not options.only or any(word in name for word in options.only)
    ]
    if options.list:
        for name in chosen:
            print("tokaido", shlex.join(measure(name, results, options.suite)))
        return 0
    results.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        if not (results / f"{name}.timing.json").is_file():  # written last
            status = _run(measure(name, results, options.suite))
            if status:
                return status
    status = _run(compare(chosen, results, options.suite))
    if not status and options.docs:
        fill(PAGE, (results / "table.md").read_text(encoding="utf-8"))
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    results = "folder of all results (default: %(default)s)"
    add("--results", type=Path, default=Path("runs/tokaido-bench-1"), help=results)
    add(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="only agents with one of these words in their names (default: all)",
    )
    add("--suite", type=Path, metavar="FILE", help="suite file (default: tokaido-bench-1)")
    add("--docs", action="store_true", help="write the table to the page (default: off)")
    add(
        "--list", action="store_true", help="print the commands without running them (default: off)"
    )
    add("--constants", action="store_true", help="make the suite (default: off)")
    return parser


def _run(command: Words) -> int:
    """Print and run a command of the project; return its exit status."""
    print("tokaido", shlex.join(command), flush=True)
    return subprocess.run([sys.executable, "-m", "tokaido_env", *command], check=False).returncode


def _make_suite(results: Path) -> int:
    """Play the opponents on the test boards, and write the suite with their ratings."""
    data = json.loads(SUITE.read_text(encoding="utf-8"))
    results.mkdir(parents=True, exist_ok=True)
    played = results / "opponents.json"
    status = _run(
        [
            *("evaluate", "ladder", *data["opponents"], "--board", data["test"]["boards"]),
            *("--games", str(GAMES), "--seed", "0", "--ladder", str(played)),
        ]
    )
    if not status:
        write_suite(SUITE, LADDER, played)
    return status


def write_suite(suite: Path, on_default: Path, on_test: Path) -> None:
    """Write a suite again with the ratings of its opponents on two ladders."""
    from tokaido_env.arena.suite import Suite, SuitePart

    found = Suite.load(suite)

    def rated(part: SuitePart, path: Path) -> SuitePart:
        ladder = json.loads(path.read_text(encoding="utf-8"))
        elo = {one["agent"]: one["elo"] for one in ladder["agents"]}
        return replace(part, elo=tuple(elo[spec] for spec in found.opponents))

    parts = rated(found.default, on_default), rated(found.test, on_test)
    made: Suite = replace(found, default=parts[0], test=parts[1])
    suite.write_text(json.dumps(made.to_dict(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
