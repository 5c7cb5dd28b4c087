"""tokaido-bench-1 as a whole: measure all agents, make the table of the page.

    python benchmarks/tokaido_bench_1.py                  all of it, one after another
    python benchmarks/tokaido_bench_1.py --list           only print the commands
    python benchmarks/tokaido_bench_1.py --only champion  only agents whose names hold a word
    python benchmarks/tokaido_bench_1.py --docs           also put the table into the page
    python benchmarks/tokaido_bench_1.py --constants      make the suite itself: its hash changes

Called again, it goes on where it was stopped, and does nothing again. Everything lies in a folder
(`--results`): of each agent a submission, its records and its time, and `table.md`.

The suite holds what each opponent is worth: on the default board by the ladder of this project, on
the test boards by a round robin of the opponents there, which `--constants` plays.
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
from tokaido_100 import filled

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tokaido-bench-1.md"
SUITE = ROOT / "tokaido_env" / "arena" / "tokaido-bench-1.json"
LADDER = ROOT / "tokaido_env" / "arena" / "ladder.json"
GAMES = 2000  # of two opponents on the test boards; half as many with the slowest

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
    words = ["evaluate.py", "suite", AGENTS[name]]
    for option, ending in files.items():
        words += [f"--{option}", str(results / f"{name}.{ending}")]
    return words + ([] if suite is None else ["--suite", str(suite)])


def compare(names: Sequence[str], results: Path, suite: Path | None = None) -> Words:
    """Return the command that puts all results into a table."""
    files = [str(results / f"{name}.json") for name in names]
    words = ["evaluate.py", "suite", "--compare", *files, "--markdown", str(results / "table.md")]
    return words + ([] if suite is None else ["--suite", str(suite)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all that has not been done; return the exit status of what has failed, or 0."""
    options = _parser().parse_args(arguments)
    results: Path = options.results
    if options.constants:
        return _make_suite(results)
    chosen = [
        name for name in AGENTS if not options.only or any(word in name for word in options.only)
    ]
    if options.list:
        for name in chosen:
            print("python", shlex.join(measure(name, results, options.suite)))
        return 0
    results.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        if not (results / f"{name}.timing.json").is_file():  # written last
            status = _run(measure(name, results, options.suite))
            if status:
                return status
    status = _run(compare(chosen, results, options.suite))
    if not status and options.docs:
        table = (results / "table.md").read_text(encoding="utf-8")
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--results", type=Path, default=Path("runs/tokaido-bench-1"), metavar="FOLDER")
    add("--only", nargs="+", default=[], metavar="WORD", help="agents whose names hold one")
    add("--suite", type=Path, metavar="FILE", help="another suite")
    add("--docs", action="store_true", help="put the table into the page")
    add("--list", action="store_true", help="print the commands, run nothing")
    add("--constants", action="store_true", help="make the suite itself")
    return parser


def _run(command: Words) -> int:
    """Run a command of the project; return its exit status."""
    print("python", shlex.join(command), flush=True)
    script, *rest = command
    return subprocess.run([sys.executable, str(ROOT / script), *rest], check=False).returncode


def _make_suite(results: Path) -> int:
    """Let the opponents meet on the test boards, and write the suite with what they are worth."""
    data = json.loads(SUITE.read_text(encoding="utf-8"))
    results.mkdir(parents=True, exist_ok=True)
    played = results / "opponents.json"
    status = _run(
        [
            *("evaluate.py", "ladder", *data["opponents"], "--board", data["test"]["boards"]),
            *("--games", str(GAMES), "--seed", "0", "--ladder", str(played)),
        ]
    )
    if not status:
        write_suite(SUITE, LADDER, played)
    return status


def write_suite(suite: Path, on_default: Path, on_test: Path) -> None:
    """Write a suite anew with what its opponents are worth on two ladders."""
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
