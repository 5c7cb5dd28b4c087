"""Kill commands at random moments, resume them, and compare the bytes at the end.

    python benchmarks/kills.py                       100 of td, 25 of other rows, 10 of ladder
    python benchmarks/kills.py --kills 20 --seed 1   fewer kills at other moments
    python benchmarks/kills.py --only ladder         some of the rows
    make kills N=100

Each row runs a short command in a temporary folder once without kills. Then it runs the command
again and again, kills it with all its processes (by SIGKILL or SIGTERM) and resumes it, until the
number of kills is reached. The files must then equal those of the first run, with no others. The
comparison leaves out TensorBoard's logs, which contain times, and checkpoints before the last.

A kill comes at a random moment, or at the next change of the folder, or when it next has an
unfinished file. The moment is within the start-up and an eighth of the remaining time, so that most
attempts make progress. A row counts the kills that left an unfinished file, or a last line without
its end.
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
TIMEOUT = 600  # seconds of a command
SIGNALS = ("SIGKILL", "SIGTERM")
PART = 8  # a kill comes within the first eighth of a command, so that attempts make progress

Words = list[str]
Command = Callable[[Path], Words]
"""Returns the words of a command, given the folder of its files."""

Sizes = dict[str, int]  # bytes of files, by path


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        name: of the row.
        commands: to run one after another.
        share: of the kills.
    """

    name: str
    commands: tuple[Command, ...]
    share: float


class Timing(NamedTuple):
    """A command without kills: seconds to its first file and to its end."""

    start: float
    end: float


# The commands

_RUNS = {
    "td": """
--updates 12 --games 64 --minibatch-size 256 --width 32 --checkpoint-every 1 --snapshot-every 2
--rate-every 4 --rating-games 4
""",
    "alphazero": """
--rounds 6 --shards 4 --games 6 --sims 8 --width 32 --minibatch-size 256
--promotion-games 12 --replay-rounds 2 --rate-every 2 --rating-games 4
""",
}


def train(method: str) -> Command:
    """Return the command that begins or resumes a run of a method."""

    def command(folder: Path) -> Words:
        run = folder / "run"
        if (run / "config.toml").exists():
            return ["train", "--resume", str(run)]
        return ["train", "--run", str(run), "--method", method, *_RUNS[method].split()]

    return command


def evaluate(words: str) -> Command:
    """Return the command that plays matches with records and results."""

    def command(folder: Path) -> Words:
        files = ["--records", str(folder / "games.jsonl"), "--json", str(folder / "results.json")]
        return ["evaluate", *words.split(), *files]

    return command


def ladder(words: str) -> Command:
    """Return the command that makes a ladder of agents."""

    def command(folder: Path) -> Words:
        path = folder / "ladder.json"
        return ["ladder", *words.split(), "--out", str(path)]

    return command


ROWS = (
    *(Row(method, (train(method),), 1.0 if method == "td" else 0.25) for method in _RUNS),
    Row("evaluate", (evaluate("mcts:sims=600 greedy random --games 240"),), 0.25),
    Row(
        "evaluate, 2 processes",
        (evaluate("mcts:sims=600 greedy --games 400 --executor processes:2"),),
        0.25,
    ),
    Row(
        "ladder",
        (
            ladder("random greedy heuristic --games 2000"),
            ladder("random greedy heuristic mcts:sims=100 --games 400"),
        ),
        0.1,
    ),
)


# Run and kill


def sizes_in(folder: Path) -> Sizes:
    """Return the sizes of all files in a folder by relative path; -1 for folders."""
    found: Sizes = {}
    for parent, folders, names in os.walk(folder):
        relative = Path(parent).relative_to(folder)
        found |= {(relative / name).as_posix(): -1 for name in folders}
        for name in names:
            with suppress(FileNotFoundError):
                found[(relative / name).as_posix()] = Path(parent, name).stat().st_size
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files to compare."""
    older = [path.name for path in checkpoints(folder)[:-1]]
    excluded = ("run/tb/", *(f"run/checkpoints/{name}" for name in older))
    return {
        name: (folder / name).read_bytes()
        for name, size in sorted(sizes_in(folder).items())
        if size >= 0 and not name.startswith(excluded)
    }


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints, oldest first."""
    return sorted(folder.glob("run/checkpoints/*.safetensors"))


def start(words: Words, log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a new process group; append its output to a file."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tokaido_env", *words],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def watch(process: subprocess.Popen[bytes], folder: Path) -> Iterator[Sizes]:
    """Yield the sizes of a folder's files repeatedly while a command runs."""
    deadline = time.monotonic() + TIMEOUT
    while process.poll() is None:
        if time.monotonic() > deadline:
            stop(process, "SIGKILL")
            raise TimeoutError(f"{process.args!r} takes longer than {TIMEOUT} s")
        yield sizes_in(folder)
        time.sleep(0.0003)


def stop(process: subprocess.Popen[bytes], how: str) -> None:
    """Send a signal to a command and all its processes; wait until the command has ended."""
    number = signal.Signals[how]
    os.killpg(process.pid, number)
    if process.wait(TIMEOUT) not in (0, -number, 128 + number):
        raise RuntimeError(f"{process.args!r} ended with {process.returncode} after {how}")
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_without_kills(row: Row, folder: Path, log: Path) -> list[Timing]:
    """Run the commands of a row to their ends; return the timing of each."""
    timings = []
    for command in row.commands:
        began = time.monotonic()
        process = start(command(folder), log)
        before, first = sizes_in(folder), None
        for now in watch(process, folder):
            if now != before:
                first = first or time.monotonic() - began
        check_ended(process, log)
        end = time.monotonic() - began
        timings.append(Timing(first or end, end))
    return timings


def check_ended(process: subprocess.Popen[bytes], log: Path) -> None:
    """Raise `RuntimeError` if a command has failed."""
    if process.returncode:
        output = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{process.args!r} ended with {process.returncode}:\n{output}")


def kill_at_random(
    process: subprocess.Popen[bytes], folder: Path, timing: Timing, rng: random.Random
) -> bool | None:
    """Kill a command at random; return whether it left a partial file, None if it ended before."""
    how, kind = rng.choice(SIGNALS), rng.choice(("moment", "change", "unfinished"))
    before, began = sizes_in(folder), time.time()
    moment = began + rng.uniform(0, timing.start + (timing.end - timing.start) / PART)
    for now in watch(process, folder):
        unfinished = any(name.endswith(".tmp") for name in now)
        due = {"moment": True, "change": now != before, "unfinished": unfinished}[kind]
        if due and time.time() > moment:
            stop(process, how)
            return has_partial_file(folder)
        before = now
    return None


def has_partial_file(folder: Path) -> bool:
    """Return whether a folder has an unfinished file or a last line without its end."""
    names = sizes_in(folder)
    lines = [folder / name for name in names if name.endswith(".jsonl")]
    return any(name.endswith(".tmp") for name in names) or any(
        path.read_bytes()[-1:] not in (b"", b"\n") for path in lines
    )


def run_with_kills(
    row: Row, folder: Path, timings: Sequence[Timing], log: Path, rng: random.Random, most: int
) -> list[bool]:
    """Run the commands of a row to their ends, with at most `most` kills; return as each kill."""
    kills: list[bool] = []
    for command, timing in zip(row.commands, timings, strict=True):
        while True:
            process = start(command(folder), log)
            kill = kill_at_random(process, folder, timing, rng) if len(kills) < most else None
            process.wait(TIMEOUT)
            if kill is None:
                check_ended(process, log)
                break
            kills.append(kill)
    return kills


def difference(expected: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Return the names of files that differ; killed commands may leave a lock."""
    names = expected.keys() | {name for name in found if not name.endswith(".lock")}
    return sorted(name for name in names if expected.get(name) != found.get(name))


def table_row(row: Row, count: int, seed: int, work: Path) -> str:
    """Kill the commands of a row `count` times; return the row of the table.

    Raises:
        RuntimeError: if a command failed, or files differ at the end.
    """
    rng = random.Random(f"{row.name} {seed}")
    log = work / "log"
    first = work / "without-kills"
    first.mkdir(parents=True)
    timings = run_without_kills(row, first, log)
    expected = contents(first)
    kills: list[bool] = []
    runs = 0
    while len(kills) < count:
        runs += 1
        folder = work / f"{runs:03d}"
        folder.mkdir()
        kills += run_with_kills(row, folder, timings, log, rng, count - len(kills))
        if wrong := difference(expected, contents(folder)):
            raise RuntimeError(f"{row.name}: {folder}: files differ: {', '.join(wrong)}")
        print(f"{row.name}: {len(kills)} of {count} kills, {runs} runs", file=sys.stderr)
    cells = [row.name, runs, len(kills), sum(kills), f"{len(expected)} equal"]
    return "| " + " | ".join(map(str, cells)) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    kills = "kills of td; the other rows have a share of them (default: 100)"
    add("--kills", type=int, default=100, help=kills)
    add("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    only = f"rows to run: {json.dumps([row.name for row in ROWS])} (default: all)"
    add("--only", nargs="+", help=only)
    options = parser.parse_args(arguments)
    print("| row | runs | kills | partial | files |\n|---|---|---|---|---|", flush=True)
    work = Path(tempfile.mkdtemp(prefix="kills-"))  # kept after an error
    for row in ROWS:
        if options.only is None or row.name in options.only:
            count = max(1, round(options.kills * row.share))
            print(table_row(row, count, options.seed, work / row.name), flush=True)
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
