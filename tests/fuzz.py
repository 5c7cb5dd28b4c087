"""Fuzzing: the library takes damaged input of every kind, or refuses it.

    python tests/fuzz.py N [--only KIND ...] [--seed S] [--processes P]
    python tests/fuzz.py --only KIND --case K      run one case again, with its traceback

Each kind of `KINDS` gets N cases, half of them with bounds checks in the kernels
(NUMBA_BOUNDSCHECK=1). A refusal is a declared error: its message is one line of at most 500
characters that names the file. Everything else is a defect: another error (stacks), the end of a
process (crashes), a case of more than a minute (hangs), or more than 1 GiB of memory.
"""

import argparse
import faulthandler
import importlib
import io
import json
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

import mutants

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
    "submissions": "fuzz_files:Submissions",
}


# Flushing a file takes milliseconds on a disk, and nothing in memory.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

GIB = 1 << 30
MAX_SECONDS = 60.0  # for a case; five times that for the first of a process, which may compile
MAX_MESSAGE = 500  # characters
MAX_PRINTED = 5  # defects of a kind


class Cases:
    """Cases of one kind of input, made in a new folder, which becomes the working directory.

    For a kind that is one file, a subclass defines `set_up`, `damage` and `check`.

    Attributes:
        errors: refuse the input.
        name: of the file.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = ()
    name: ClassVar[str] = ""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)  # relative paths in specs start here
        os.mkfifo(folder / "fifo")
        self.folder, self.path = folder, folder / self.name
        self.set_up()

    def set_up(self) -> None:
        """Make valid input."""

    def check_valid(self) -> None:
        """Check that undamaged input is taken; otherwise the damage would test nothing."""
        raise NotImplementedError

    def case(self, rng: random.Random) -> bool:
        """Hand in damaged input; return whether it was taken, else it was refused correctly."""
        self.damage(rng)
        with allow_refusal(*self.errors, names=self.path) as messages:
            self.check(rng)
        return not messages

    def damage(self, rng: random.Random) -> None:
        """Write a damaged file."""
        raise NotImplementedError

    def check(self, rng: random.Random) -> None:
        """Load the file, and use it if it is taken."""
        raise NotImplementedError

    def put(self, rng: random.Random, data: bytes, odds: float, path: Path | None = None) -> None:
        """Write a file, or with some odds a link or a pipe in its place."""
        path = path or self.path
        path.unlink(missing_ok=True)
        if rng.random() < odds:
            path.symlink_to(rng.choice(("fifo", path.name, "/dev/zero", "missing", ".")))
        else:
            path.write_bytes(data)

    def put_json(
        self, rng: random.Random, data: Any, odds: float, path: Path | None = None
    ) -> None:
        """Write JSON by `put`, in a tenth of the cases with damaged bytes."""
        line = mutants.json_bytes(data)
        damaged = line if rng.random() < 0.9 else mutants.mutated_bytes(rng, line)
        self.put(rng, damaged, odds, path)


# Helpers of cases


@contextmanager
def allow_refusal(*errors: type[Exception], names: object = "") -> Iterator[list[str]]:
    """Catch errors of some types and check their messages; yield the list of messages.

    Args:
        errors: types that may be raised.
        names: the message must contain it, such as the file.
    """
    messages: list[str] = []
    try:
        yield messages
    except errors as error:
        messages.append(str(error))
        check_message(str(error), names)


def check_message(message: str, names: object = "") -> None:
    """Check that a message is one short printable line, however long the input."""
    assert message.isprintable(), f"not one plain line: {message!r}"
    assert 0 < len(message.replace(str(names), "")) <= MAX_MESSAGE, f"{len(message)} characters"
    assert str(names) in message, f"does not name {names}: {message}"


def run_command(
    main: Callable[[list[str]], int], words: Sequence[object], names: object = ""
) -> str:
    """Run a command; return its error line, or "" if it succeeds."""
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        status = main([str(word) for word in words])
    assert bool(status) == bool(errors.getvalue()), errors.getvalue()
    if status:
        check_message(errors.getvalue().removesuffix("\n"), names)
    return errors.getvalue()


def cases_of(kind: str, folder: Path) -> Cases:
    """Return the cases of a kind, made in an empty folder."""
    module, _, name = KINDS[kind].partition(":")
    made: Cases = getattr(importlib.import_module(module), name)(folder)
    return made


def rng_of(kind: str, seed: int, number: int) -> random.Random:
    """Return the random numbers of one case, which do not depend on other cases."""
    return random.Random(f"{kind} {seed} {number}")


# Processes


def run_cases(kind: str, seed: int, first: int, stop: int, progress: Path) -> None:
    """Run every second case of a kind; print a JSON line for each defect, and one with totals.

    `progress` is a file for the number of the running case.
    """
    counts, seconds = Counter[str](), 5 * MAX_SECONDS
    with _memory_folder() as folder:
        cases = cases_of(kind, Path(folder))
        cases.check_valid()
        _limit_memory()
        before = _peak_memory()
        for number in range(first, stop, 2):
            progress.write_text(str(number))
            faulthandler.dump_traceback_later(seconds, exit=True)
            try:
                taken = cases.case(rng_of(kind, seed, number))
                counts["taken" if taken else "refused"] += 1
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__}: {str(error)[:300]} ({at.filename}, {at.lineno})"
                print(json.dumps({"defect": f"case {number}: {text}"}), flush=True)
                counts["stacks"] += 1
            seconds = MAX_SECONDS
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"counts": counts, "memory": _peak_memory() - before}))


def _memory_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY)


def _limit_memory() -> None:
    """Limit the memory of this process to 1 GiB more than it has."""
    status = Path("/proc/self/status")
    if status.exists():
        used = next(line for line in status.read_text().splitlines() if line.startswith("VmData"))
        most = int(used.split()[1]) * 1024 + GIB
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _peak_memory() -> int:
    """Return the peak memory of this process in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run_half(kind: str, seed: int, half: int, n: int, progress: Path) -> dict[str, Any]:
    """Run half of the cases of a kind in a new process, up to a crash or a hang.

    Returns:
        "counts" of the results, "defects", and "memory" in KiB.
    """
    counts, defects, memory = Counter[str](), list[str](), 0
    environment = {"NUMBA_BOUNDSCHECK": str(half), "PYTHONPATH": str(TESTS.parent)}
    environment |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--half", kind, *map(str, (seed, half, n, progress))],
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
    if done.returncode:
        how = "hangs" if any(line.startswith("Timeout (") for line in lines) else "crashes"
        counts[how] += 1
        case = progress.read_text() if progress.exists() else "none"
        defects.append(f"case {case}: {how}: status {done.returncode}: {lines[-1:]}")
    return {"counts": counts, "defects": defects, "memory": memory}


def fuzz(kinds: list[str], n: int, seed: int, processes: int) -> int:
    """Run n cases of each kind; print a table; return the number of defects."""
    row = "{:<10} {:>8} {:>7} {:>7} {:>8} {:>6} {:>6} {:>6}"
    bad = ("stacks", "crashes", "hangs")
    print(row.format("kind", "cases", "taken", *bad, "MiB", "s"), flush=True)
    total = 0
    with _memory_folder() as folder, ThreadPoolExecutor(processes) as pool:
        for kind in kinds:
            began = time.monotonic()
            halves = [(kind, seed, half, n, Path(folder, f"{kind}-{half}")) for half in range(2)]
            done = list(pool.map(lambda words: run_half(*words), halves))
            counts = done[0]["counts"] + done[1]["counts"]
            memory = max(one["memory"] for one in done) // 1024
            taken = f"{counts['taken'] / max(1, counts.total()):.1%}"
            found = [counts[how] for how in bad]
            seconds = round(time.monotonic() - began)
            print(row.format(kind, counts.total(), taken, *found, memory, seconds), flush=True)
            for defect in [each for one in done for each in one["defects"]][:MAX_PRINTED]:
                print(f"  {defect}", flush=True)
            total += sum(found)
    return total


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("n", nargs="?", type=int, default=1000, help="cases of each kind (default: 1000)")
    add("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--processes", type=int, default=2, help="processes at once (default: 2)")
    add("--case", type=int, help="run only this case, in this process")
    add("--half", nargs=5, help=argparse.SUPPRESS)  # for the processes of `run_half`
    options = parser.parse_args()
    if options.half is not None:
        kind, seed, first, stop, progress = options.half
        run_cases(kind, int(seed), int(first), int(stop), Path(progress))
        return 0
    if options.case is not None:
        (kind,) = options.only
        with _memory_folder() as folder:
            taken = cases_of(kind, Path(folder)).case(rng_of(kind, options.seed, options.case))
        print("taken" if taken else "refused")
        return 0
    return int(fuzz(options.only, options.n, options.seed, options.processes) > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS.parent))
    sys.exit(main())
