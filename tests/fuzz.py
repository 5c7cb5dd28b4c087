"""Damaged input of every kind, by the thousand: whatever is handed in, is taken or refused.

    python tests/fuzz.py N [--only KIND ...] [--seed S] [--processes P]
    python tests/fuzz.py --only KIND --case K      one case again, with its traceback

Each kind is a module `fuzz_KIND` with a class `Cases`. N cases of each are made, half of them with
every index of the kernels looked at (NUMBA_BOUNDSCHECK=1). A refusal is an error that the library
declares, in one line of at most 500 characters, that names the file. All else is a defect: other
errors (stacks), a process that dies (crashes), a case that takes a minute (hangs), more than 1 GiB.
"""

import argparse
import importlib
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

TESTS = Path(__file__).resolve().parent
KINDS = (
    *("records", "boards", "positions", "batch", "configs", "ladders", "runs", "policies"),
    *("results", "regrets", "suites"),
)

# Files that are seen on a disk cost some milliseconds each: here they need not be.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

GIB = 1 << 30
MOST_SECONDS = 60.0  # for a case; the first ones of a process may compile
LONGEST = 500  # characters of a message
SHOWN = 5  # defects of a kind that are printed


class Cases(Protocol):
    """A kind of input.

    Made with a folder of its own, in which it may write. Its sound inputs are to be accepted: what
    refuses everything at the door tests nothing.
    """

    def __init__(self, folder: Path) -> None: ...

    def check_sound(self) -> None:
        """Hand in what is not damaged: all of it is taken."""

    def case(self, rng: random.Random) -> bool:
        """Hand in damaged input; return whether it was taken, if it was refused as it should be."""


class Share(NamedTuple):
    """The cases of one process: every second one of a kind."""

    kind: str
    seed: int
    first: int
    stop: int
    bounds: str


# What cases call


@contextmanager
def refusal(*errors: type[Exception], names: object = "") -> Iterator[list[str]]:
    """Take errors of some kinds, if they are told as they should be; give the messages.

    Args:
        errors: what may be raised.
        names: what the message has to name, such as the file.
    """
    messages: list[str] = []
    try:
        yield messages
    except errors as error:
        messages.append(str(error))
        check_message(str(error), names)


def check_message(message: str, names: object = "") -> None:
    """A message is one line, short however long the input, that can be printed."""
    assert message.isprintable(), f"not one plain line: {message!r}"
    assert 0 < len(message.replace(str(names), "")) <= LONGEST, f"{len(message)} characters"
    assert str(names) in message, f"does not name {names}: {message}"


# A process


def work(share: Share, progress: Path) -> None:
    """Go through a share, noting the case in hand; print a line of JSON for each defect."""
    module = importlib.import_module(f"fuzz_{share.kind}")
    with (
        _folder() as folder,
        progress.open("r+b") as file,
    ):
        cases: Cases = module.Cases(Path(folder))
        cases.check_sound()
        _limit_memory()
        before, counts = _peak(), Counter[str]()
        with mmap.mmap(file.fileno(), 8) as note:
            for number in range(share.first, share.stop, 2):
                note[:] = number.to_bytes(8, "little")
                counts[_one(cases, share, number)] += 1
        print(json.dumps({"counts": counts, "memory": _peak() - before}))


def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY)


def _one(cases: Cases, share: Share, number: int) -> str:
    try:
        return "taken" if cases.case(rng_of(share.kind, share.seed, number)) else "refused"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {str(error)[:300]} ({where.filename}, {where.lineno})"
        print(json.dumps({"defect": told, "case": number}), flush=True)
        return "stacks"


def rng_of(kind: str, seed: int, number: int) -> random.Random:
    """The chance of one case, whatever was before it."""
    return random.Random(f"{kind} {seed} {number}")


def _limit_memory() -> None:
    """What a case may ask for beyond what there is now."""
    status = Path("/proc/self/status")
    if status.exists():
        used = next(line for line in status.read_text().splitlines() if line.startswith("VmData"))
        most = int(used.split()[1]) * 1024 + GIB
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _peak() -> int:
    """The most memory that this process had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# All processes


class Running:
    """A process with its share, watched: what dies or hangs is begun anew after that case."""

    def __init__(self, share: Share, folder: Path) -> None:
        self.share = share
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.defects: list[str] = []
        self.memory = 0
        self._begin(share.first)

    def _begin(self, first: int) -> None:
        share = self.share._replace(first=first)
        name = f"{share.kind}-{share.bounds}"
        self._progress, self._out = self.folder / f"{name}.case", self.folder / f"{name}.out"
        self._progress.write_bytes(first.to_bytes(8, "little"))
        environment = {"NUMBA_BOUNDSCHECK": share.bounds, "PYTHONPATH": str(TESTS.parent)}
        environment |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__)), "--share", *map(str, share)]
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(
                [*command, str(self._progress)],
                stdout=out,
                stderr=out,
                env=os.environ | environment,
            )
        self._first = self._case = first
        self._since = time.monotonic()

    def ended(self) -> bool:
        """Look after the process; return whether its share is done."""
        case = int.from_bytes(self._progress.read_bytes(), "little")
        if case != self._case:
            self._case, self._since = case, time.monotonic()
        if self._process.poll() is None:
            if time.monotonic() - self._since < MOST_SECONDS * (1 + 4 * (case == self._first)):
                return False
            self._process.kill()
            self._process.wait()
            self._stopped("hangs", f"more than {MOST_SECONDS:.0f} s")
        elif self._process.returncode:
            last = self._read()[-1:]
            self._stopped("crashes", f"status {self._process.returncode}: {last}")
        else:
            self._read()
            return True
        if (
            self._case + 2 >= self.share.stop
            or self.counts["crashes"] + self.counts["hangs"] > SHOWN
        ):
            return True
        self._begin(self._case + 2)
        return False

    def _stopped(self, how: str, why: str) -> None:
        self._read()
        self.counts[how] += 1
        self.defects.append(f"case {self._case}: {how}: {why}")

    def _read(self) -> list[str]:
        """Take in what the process printed; return what is none of its lines."""
        others = []
        for line in self._out.read_text(errors="replace").splitlines():
            if line.startswith('{"defect"'):
                found = json.loads(line)
                self.defects.append(f"case {found['case']}: {found['defect']}")
            elif line.startswith('{"counts"'):
                found = json.loads(line)
                self.counts += Counter(found["counts"])
                self.memory = found["memory"]
            else:
                others.append(line)
        self._out.write_bytes(b"")
        return others


def fuzz(kinds: list[str], n: int, seed: int, processes: int) -> int:
    """Go through n cases of each kind; print a table; return how many defects there are."""
    print(
        f"{'kind':<10} {'cases':>8} {'taken':>7} {'stacks':>7} {'crashes':>8} {'hangs':>6}"
        f" {'MiB':>6} {'s':>6}",
        flush=True,
    )
    defects = 0
    with _folder() as folder:
        for kind in kinds:
            began = time.monotonic()
            shares = [Share(kind, seed, i, n, str(i)) for i in range(2)]
            done = _all_of(shares, Path(folder), processes)
            defects += _tell(kind, done, time.monotonic() - began)
    return defects


def _all_of(shares: list[Share], folder: Path, processes: int) -> list[Running]:
    waiting, running, done = list(shares), list[Running](), list[Running]()
    while waiting or running:
        while waiting and len(running) < processes:
            running.append(Running(waiting.pop(0), folder))
        ended = [one for one in running if one.ended()]
        running = [one for one in running if one not in ended]
        done += ended
        time.sleep(0.1)
    return done


def _tell(kind: str, done: list[Running], seconds: float) -> int:
    counts = sum((one.counts for one in done), Counter[str]())
    bad = [counts[how] for how in ("stacks", "crashes", "hangs")]
    cases, memory = counts.total(), max(one.memory for one in done) / 1024
    taken = f"{counts['taken'] / max(1, cases):.1%}"
    print(
        f"{kind:<10} {cases:>8,} {taken:>7} {bad[0]:>7} {bad[1]:>8} {bad[2]:>6}"
        f" {memory:>6.0f} {seconds:>6.0f}",
        flush=True,
    )
    defects = [defect for one in done for defect in one.defects]
    for defect in defects[:SHOWN]:
        print(f"  {defect}", flush=True)
    return sum(bad)


def again(kind: str, seed: int, number: int) -> None:
    """One case, in this process."""
    module: Any = importlib.import_module(f"fuzz_{kind}")
    with _folder() as folder:
        taken = module.Cases(Path(folder)).case(rng_of(kind, seed, number))
    print("taken" if taken else "refused")


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
    parser.add_argument("--share", nargs=6, help=argparse.SUPPRESS)  # of a process of its own
    options = parser.parse_args()
    if options.share is not None:
        kind, seed, first, stop, bounds, progress = options.share
        work(Share(kind, int(seed), int(first), int(stop), bounds), Path(progress))
        return 0
    if options.case is not None:
        again(options.only[0], options.seed, options.case)
        return 0
    return int(fuzz(options.only, options.n, options.seed, options.processes) > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS.parent))
    sys.exit(main())
