"""Kill real commands at random moments, let them go on, and compare the bytes at the end.

    python benchmarks/kills.py                       100 of train, 25 of other rows, 10 of ladder
    python benchmarks/kills.py --kills 20 --seed 1   fewer of each, other moments
    python benchmarks/kills.py --only ladder         some of the rows
    make kills N=100

Each row runs a short real command in a temporary folder, once undisturbed; then again and again,
killed with all its processes (SIGKILL) and called again, until it has ended as often as it takes
for so many kills. Every file must then be what the undisturbed command wrote, and nothing else may
be left: only TensorBoard's logs, which hold times, are not compared.

A kill comes at a moment drawn from the time that the command takes to start and an eighth of what
it does then, so that it gets on; or at a change of the folder, drawn likewise; or when a file or
folder stands there unfinished. The row says how many kills left something half-written: a file
with the name of an unfinished one, or a last line without its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600  # the longest that a command may take
PART = 8  # a kill comes within so large a part of a command: the next one gets further

Words = list[str]
Command = Callable[[Path], Words]
"""What is called, given the folder that its files are in."""

Files = dict[str, int]  # sizes, by path


class Plan(NamedTuple):
    """What is killed.

    Attributes:
        name: of the row.
        commands: one after another.
        share: of the kills.
    """

    name: str
    commands: tuple[Command, ...]
    share: float


class Pace(NamedTuple):
    """How an undisturbed command goes: seconds to its first file, and to its end; changes."""

    start: float
    end: float
    changes: int


class Kill(NamedTuple):
    """A kill: how its moment was chosen, and whether something half-written was left."""

    kind: str
    half: bool


# The commands

_RUNS = {
    "ppo": """
--steps 8192 --games 8 --n-steps 32 --minibatch-size 128 --width 32 --opponent-slots 4
--agents greedy --snapshot-every 256 --resample-every 1024 --pool-size 4 --checkpoint-every 512
--rate-every 1024 --rating-games 4 --final-learning-rate 0.5 --calibration-games 16
""",
    "selfplay": """
--updates 12 --games 64 --minibatch-size 256 --width 32 --checkpoint-every 1 --snapshot-every 2
--ema-decay 0.5 --rate-every 4 --rating-games 4
""",
    "alphazero": """
--rounds 6 --shards 4 --games 6 --first-sims 8 --sims 8 --width 32 --minibatch-size 256
--promotion-games 12 --replay-rounds 2 --rate-every 2 --rating-games 4
""",
}


def train(method: str) -> Command:
    """Return the command that begins a run of a method in the folder, or resumes it."""

    def command(folder: Path) -> Words:
        run = folder / "run"
        if (run / "config.toml").exists():
            return ["train.py", "--resume", str(run)]
        return ["train.py", "--run", str(run), "--method", method, *_RUNS[method].split()]

    return command


def evaluate(words: str) -> Command:
    """Return the command that plays matches, with records and results in the folder."""

    def command(folder: Path) -> Words:
        files = ["--records", str(folder / "games.jsonl"), "--json", str(folder / "results.json")]
        return ["evaluate.py", *words.split(), *files]

    return command


def ladder(words: str) -> Command:
    """Return the command that makes a ladder of agents, in the folder."""

    def command(folder: Path) -> Words:
        path = folder / "ladder.json"
        return ["evaluate.py", "ladder", *words.split(), "--ladder", str(path)]

    return command


PLANS = (
    Plan("train", (train("ppo"),), 1.0),
    Plan("selfplay", (train("selfplay"),), 0.25),
    Plan("alphazero", (train("alphazero"),), 0.25),
    Plan("evaluate", (evaluate("mcts:sims=600 greedy random --games 240"),), 0.25),
    Plan(
        "evaluate, 2 processes",
        (evaluate("mcts:sims=600 greedy --games 400 --executor processes:2"),),
        0.25,
    ),
    Plan(
        "ladder",
        (
            ladder("random greedy heuristic --games 2000"),
            ladder("random greedy heuristic mcts:sims=100 --games 400"),
        ),
        0.1,
    ),
)


# Running and killing


def files(folder: Path) -> Files:
    """Return the sizes of all files in a folder, by their paths within it; folders too, as -1."""
    found: Files = {}
    for room, folders, names in os.walk(folder):
        place = Path(room).relative_to(folder)
        found |= {(place / name).as_posix(): -1 for name in folders}
        for name in names:
            with suppress(FileNotFoundError):
                found[(place / name).as_posix()] = Path(room, name).stat().st_size
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Return all that must be the same at the end."""
    return {
        name: (folder / name).read_bytes()
        for name, size in sorted(files(folder).items())
        if size >= 0 and not name.startswith("run/tb/")
    }


def started(words: Words, log: Path) -> subprocess.Popen[bytes]:
    """Start a command, with a process group of its own; its output goes to the end of a file."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def watched(process: subprocess.Popen[bytes], folder: Path) -> Iterator[Files]:
    """Yield the files of a folder again and again, as long as a command runs."""
    last = time.monotonic() + SECONDS
    while process.poll() is None:
        if time.monotonic() > last:
            stop(process)
            raise TimeoutError(f"{process.args!r} takes longer than {SECONDS} s")
        yield files(folder)
        time.sleep(0.0003)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def undisturbed(plan: Plan, folder: Path, log: Path) -> list[Pace]:
    """Run the commands of a plan to their ends; return how each goes."""
    paces = []
    for command in plan.commands:
        began = time.monotonic()
        process = started(command(folder), log)
        before, changes, first = files(folder), 0, None
        for now in watched(process, folder):
            if now != before:
                changes += 1
                first = first or time.monotonic() - began
            before = now
        check_ended(process, log)
        end = time.monotonic() - began
        paces.append(Pace(first or end, end, max(changes, 1)))
    return paces


def check_ended(process: subprocess.Popen[bytes], log: Path) -> None:
    """Raise an error if a command was not killed and did not end well."""
    if process.returncode:
        said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{process.args!r} ended with {process.returncode}:\n{said}")


def killed(
    process: subprocess.Popen[bytes], folder: Path, pace: Pace, rng: random.Random
) -> Kill | None:
    """Kill a command at a moment that is drawn; None if it ended before."""
    kind = rng.choice(("moment", "change", "unfinished"))
    moment = time.monotonic() + rng.uniform(0, pace.start + (pace.end - pace.start) / PART)
    left = rng.randint(1, max(1, pace.changes // PART))
    before = files(folder)
    for now in watched(process, folder):
        left -= now != before
        if kind == "moment":
            due = time.monotonic() > moment
        elif kind == "change":
            due = left <= 0
        else:
            due = left <= 0 and any(name.endswith(".tmp") for name in now)
        if due:
            stop(process)
            return Kill(kind, is_half(folder))
        before = now
    return None


def is_half(folder: Path) -> bool:
    """Return whether something half-written is left in a folder."""
    names = files(folder)
    lines = [folder / name for name in names if name.endswith(".jsonl")]
    return any(name.endswith(".tmp") for name in names) or any(
        path.read_bytes()[-1:] not in (b"", b"\n") for path in lines
    )


def disturbed(
    plan: Plan, folder: Path, paces: Sequence[Pace], log: Path, rng: random.Random, most: int
) -> list[Kill]:
    """Run the commands of a plan to their ends, killed at most so many times."""
    kills: list[Kill] = []
    for command, pace in zip(plan.commands, paces, strict=True):
        while True:
            process = started(command(folder), log)
            kill = killed(process, folder, pace, rng) if len(kills) < most else None
            process.wait(SECONDS)
            if kill is None:
                check_ended(process, log)
                break
            kills.append(kill)
    return kills


def difference(expected: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Return the names of the files that are not the same; killed commands may leave a lock."""
    names = expected.keys() | {name for name in found if not name.endswith(".lock")}
    return sorted(name for name in names if expected.get(name) != found.get(name))


def row(plan: Plan, count: int, seed: int, work: Path) -> str:
    """Kill the commands of a plan so many times; return what is told of it.

    Raises:
        RuntimeError: if a command failed, or a file is not the same at the end.
    """
    rng = random.Random(f"{plan.name} {seed}")
    log = work / "log"
    expected_in = work / "undisturbed"
    expected_in.mkdir(parents=True)
    paces = undisturbed(plan, expected_in, log)
    expected = contents(expected_in)
    kills: list[Kill] = []
    runs = 0
    while len(kills) < count:
        runs += 1
        folder = work / f"{runs:03d}"
        folder.mkdir()
        kills += disturbed(plan, folder, paces, log, rng, count - len(kills))
        if wrong := difference(expected, contents(folder)):
            raise RuntimeError(f"{plan.name}: {folder}: not the same: {', '.join(wrong)}")
        print(f"{plan.name}: {len(kills)} of {count} kills, {runs} runs", file=sys.stderr)
    kinds = [kill.kind for kill in kills]
    told = [len(kills), *map(kinds.count, ("moment", "change", "unfinished"))]
    cells = [plan.name, runs, *told, sum(kill.half for kill in kills), f"{len(expected)} the same"]
    return "| " + " | ".join(map(str, cells)) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--kills", type=int, default=100, help="of train; others have a quarter (default: 100)")
    add("--seed", type=int, default=0, help="of the moments (0)")
    add("--only", nargs="+", help=f"rows: {json.dumps([plan.name for plan in PLANS])}")
    options = parser.parse_args(arguments)
    print("| what | runs | kills | at a moment | at a change | unfinished | half-written | files |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    work = Path(tempfile.mkdtemp(prefix="kills-"))  # kept where something was wrong
    for plan in PLANS:
        if options.only is None or plan.name in options.only:
            count = max(1, round(options.kills * plan.share))
            print(row(plan, count, options.seed, work / plan.name), flush=True)
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
