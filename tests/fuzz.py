"""Damaged input of every kind, by the thousand: the library takes or refuses it.

    python tests/fuzz.py N [--only KIND ...] [--seed S] [--processes P]
    python tests/fuzz.py --only KIND --case K      one case again, with its traceback

`KINDS` says which class has the cases of each kind. N cases of each are made, half of them with
every index of the kernels checked (NUMBA_BOUNDSCHECK=1). A refusal is an error that the library
declares, in one line of at most 500 characters, that names the file. All else is a defect: another
error (stacks), a process that dies (crashes), a case that takes a minute (hangs), more than 1 GiB.
"""

import argparse
import faulthandler
import importlib
import io
import json
import mmap
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, ClassVar

TESTS = Path(__file__).resolve().parent
KINDS = {
    "records": "fuzz_files:Records",
    "boards": "fuzz_boards:Boards",
    "positions": "fuzz_positions:Positions",
    "batch": "fuzz_batch:Objects",
    "configs": "fuzz_configs:Configs",
    "ladders": "fuzz_files:Ladders",
    "runs": "fuzz_runs:Runs",
    "policies": "fuzz_files:Policies",
    "results": "fuzz_files:Results",
    "regrets": "fuzz_files:Regrets",
    "suites": "fuzz_files:Suites",
}

# A file that is flushed to a disk costs some milliseconds: here it need not be.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

GIB = 1 << 30
MOST_SECONDS = 60.0  # for a case; five times that for the first of a process, which may compile
LONGEST = 500  # characters of a message
SHOWN = 5  # defects of a kind that are printed


class Cases:
    """A kind of input.

    Made in a folder of its own, which becomes the working directory. Most kinds are one file: they
    say what is sound (`make`), how it is damaged (`damage`) and what can be done with a file that
    is taken (`check`).

    Attributes:
        errors: that refuse it.
        name: of the file.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = ()
    name: ClassVar[str] = ""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)  # paths in specs are from here
        os.mkfifo(folder / "fifo")
        self.folder, self.path = folder, folder / self.name
        self.make()

    def make(self) -> None:
        """Prepare what is sound."""

    def check_sound(self) -> None:
        """Hand in what is not damaged: all of it is taken, else the damage would test nothing."""
        raise NotImplementedError

    def case(self, rng: random.Random) -> bool:
        """Hand in damaged input; return whether it was taken, if it was refused as it should be."""
        self.damage(rng)
        with refusal(*self.errors, names=self.path) as messages:
            self.check(rng)
        return not messages

    def damage(self, rng: random.Random) -> None:
        """Write a damaged file."""
        raise NotImplementedError

    def check(self, rng: random.Random) -> None:
        """Load the file and do what can be done with one that is taken."""
        raise NotImplementedError

    def put(self, rng: random.Random, data: bytes, odds: float, path: Path | None = None) -> None:
        """Write a file or, with some odds, let a link or a pipe stand in its place."""
        path = path or self.path
        path.unlink(missing_ok=True)
        if rng.random() < odds:
            path.symlink_to(rng.choice(("fifo", path.name, "/dev/zero", "missing", ".")))
        else:
            path.write_bytes(data)


# What cases call


@contextmanager
def refusal(*errors: type[Exception], names: object = "") -> Iterator[list[str]]:
    """Take errors of some kinds if their messages are in order; yield the messages.

    Args:
        errors: that may be raised.
        names: what the message has to name, such as the file.
    """
    messages: list[str] = []
    try:
        yield messages
    except errors as error:
        messages.append(str(error))
        check_message(str(error), names)


def check_message(message: str, names: object = "") -> None:
    """Check that a message is one printable line, short however long the input."""
    assert message.isprintable(), f"not one plain line: {message!r}"
    assert 0 < len(message.replace(str(names), "")) <= LONGEST, f"{len(message)} characters"
    assert str(names) in message, f"does not name {names}: {message}"


def run(main: Callable[[list[str]], int], words: Sequence[object], names: object = "") -> str:
    """Run a command; return what it says against its input: a line if it fails, else nothing."""
    wrong = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(wrong):
        status = main([str(word) for word in words])
    assert bool(status) == bool(wrong.getvalue()), wrong.getvalue()
    if status:
        check_message(wrong.getvalue().removesuffix("\n"), names)
    return wrong.getvalue()


# A process


def cases_of(kind: str, folder: Path) -> Cases:
    """Return the cases of a kind, made in an empty folder."""
    module, _, name = KINDS[kind].partition(":")
    made: Cases = getattr(importlib.import_module(module), name)(folder)
    return made


def work(kind: str, seed: int, first: int, stop: int, progress: Path) -> None:
    """Make every second case of a kind; print a line of JSON for each defect and for the whole.

    `progress` is a file that holds the number of the case in hand.
    """
    counts, seconds = Counter[str](), 5 * MOST_SECONDS
    with _folder() as folder, progress.open("r+b") as file, mmap.mmap(file.fileno(), 8) as note:
        cases = cases_of(kind, Path(folder))
        cases.check_sound()
        _limit_memory()
        before = _peak()
        for number in range(first, stop, 2):
            note[:] = number.to_bytes(8, "little")
            faulthandler.dump_traceback_later(seconds, exit=True)
            try:
                taken = cases.case(rng_of(kind, seed, number))
                counts["taken" if taken else "refused"] += 1
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = (
                    f"{type(error).__name__}: {str(error)[:300]} ({where.filename}, {where.lineno})"
                )
                print(json.dumps({"defect": f"case {number}: {what}"}), flush=True)
                counts["stacks"] += 1
            seconds = MOST_SECONDS
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"counts": counts, "memory": _peak() - before}))


def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY)


def rng_of(kind: str, seed: int, number: int) -> random.Random:
    """Return the random numbers of one case, whatever came before it."""
    return random.Random(f"{kind} {seed} {number}")


def _limit_memory() -> None:
    """Limit what a case may ask for beyond what there is now."""
    status = Path("/proc/self/status")
    if status.exists():
        used = next(line for line in status.read_text().splitlines() if line.startswith("VmData"))
        most = int(used.split()[1]) * 1024 + GIB
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _peak() -> int:
    """Return the most memory that this process had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# All processes


def run_half(kind: str, seed: int, half: int, n: int, progress: Path) -> dict[str, Any]:
    """Make half of the cases of a kind in a process, and in another after each that ends one.

    Returns:
        "counts" of what became of the cases, "defects" and "memory" in KiB.
    """
    counts, defects, memory, first = Counter[str](), list[str](), 0, half
    environment = {"NUMBA_BOUNDSCHECK": str(half), "PYTHONPATH": str(TESTS.parent)}
    environment |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    while first < n and counts["crashes"] + counts["hangs"] <= SHOWN:
        progress.write_bytes(first.to_bytes(8, "little"))
        words = ("--work", kind, seed, first, n, progress)
        done = subprocess.run(
            [sys.executable, __file__, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | environment,
            check=False,
        )
        lines = done.stdout.splitlines()
        for found in (json.loads(line) for line in lines if line.startswith(('{"def', '{"cou'))):
            counts.update(found.get("counts", ()))
            defects += [found["defect"]] if "defect" in found else []
            memory = found.get("memory", memory)
        if done.returncode == 0:
            break
        case = int.from_bytes(progress.read_bytes(), "little")
        how = "hangs" if any(line.startswith("Timeout (") for line in lines) else "crashes"
        counts[how] += 1
        defects.append(f"case {case}: {how}: status {done.returncode}: {lines[-1:]}")
        first = case + 2
    return {"counts": counts, "defects": defects, "memory": memory}


def fuzz(kinds: list[str], n: int, seed: int, processes: int) -> int:
    """Make n cases of each kind; print a table; return how many defects there are."""
    row = "{:<10} {:>8} {:>7} {:>7} {:>8} {:>6} {:>6} {:>6}"
    bad = ("stacks", "crashes", "hangs")
    print(row.format("kind", "cases", "taken", *bad, "MiB", "s"), flush=True)
    total = 0
    with _folder() as folder, ThreadPoolExecutor(processes) as pool:
        for kind in kinds:
            began = time.monotonic()
            asked = [(kind, seed, half, n, Path(folder, str(half))) for half in range(2)]
            done = [one.result() for one in [pool.submit(run_half, *words) for words in asked]]
            counts = done[0]["counts"] + done[1]["counts"]
            memory = max(one["memory"] for one in done) // 1024
            taken = f"{counts['taken'] / max(1, counts.total()):.1%}"
            found = [counts[how] for how in bad]
            seconds = round(time.monotonic() - began)
            print(row.format(kind, counts.total(), taken, *found, memory, seconds), flush=True)
            for defect in [each for one in done for each in one["defects"]][:SHOWN]:
                print(f"  {defect}", flush=True)
            total += sum(found)
    return total


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("n", nargs="?", type=int, default=1000, help="cases of each kind (1000)")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, default=0, help="of the damage (0)")
    parser.add_argument("--processes", type=int, default=2, help="at once (2)")
    parser.add_argument("--case", type=int, help="only this one, in this process")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)  # of a process of its own
    options = parser.parse_args()
    if options.work is not None:
        kind, seed, first, stop, progress = options.work
        work(kind, int(seed), int(first), int(stop), Path(progress))
        return 0
    if options.case is not None:
        (kind,) = options.only
        with _folder() as folder:
            taken = cases_of(kind, Path(folder)).case(rng_of(kind, options.seed, options.case))
        print("taken" if taken else "refused")
        return 0
    return int(fuzz(options.only, options.n, options.seed, options.processes) > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS.parent))
    sys.exit(main())
