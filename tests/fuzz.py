"""Fuzzing: damaged files of every format are taken and can be used, or are refused.

    python tests/fuzz.py N [--only FORMAT ...] [--seed S]
    python tests/fuzz.py --only FORMAT --case K      run one case again, with its traceback

Each format of `formats.FORMATS` gets N cases. A refusal is a declared error: its message is one
line of at most 500 characters. Everything else is a defect: another error, the end of the process,
a case of more than a minute, or more than 1 GiB of memory.
With NUMBA_BOUNDSCHECK=1 the kernels check their indices.
"""

import argparse
import faulthandler
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from formats import FORMATS, schemas

TESTS = Path(__file__).resolve().parent
# Flushing a file takes milliseconds on a disk, and nothing in memory.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
GIB = 1 << 30
MAX_SECONDS = 60.0  # for a case; the examples, which compile kernels, get five times that
MAX_MESSAGE = 500  # characters


class Fuzzer:
    """Damages the examples of one format, in a new folder that becomes the working directory."""

    def __init__(self, name: str, folder: Path, seed: int = 0) -> None:
        os.chdir(folder)
        os.mkfifo(folder / "fifo")
        self.name, self.seed, self.format = name, seed, FORMATS[name]
        self.path = folder / self.format.name
        self.examples = self.format.examples(folder)
        with schemas() as found:
            for data in self.examples:
                self.put(data)
                self.format.use(self.path)
        self.values = limit_values(found)

    def put(self, data: bytes) -> None:
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(data)

    def case(self, number: int) -> str:
        """Run a case; return the message of its refusal, "" if the file was taken."""
        rng = random.Random(f"{self.name} {self.seed} {number}")
        example = rng.choice(self.examples)
        if self.format.safe and rng.random() < 0.02:
            self.path.unlink(missing_ok=True)
            self.path.symlink_to(rng.choice(("fifo", self.path.name, "/dev/zero", "missing", ".")))
        else:
            self.put(self.format.damage(rng, example, self.values))
        try:
            self.format.use(self.path)
        except self.format.errors as error:
            message = str(error)
            check_message(message, self.path if self.format.safe else "")
            return message
        return ""


def check_message(message: str, names: object = "") -> None:
    """Check that a message is one short printable line, however long the input."""
    assert message.isprintable(), f"not one plain line: {message!r}"
    assert 0 < len(message.replace(str(names), "")) <= MAX_MESSAGE, f"{len(message)} characters"
    assert str(names) in message, f"does not name {names}: {message}"


def limit_values(kinds: list[Any]) -> list[Any]:
    """Return the names in the types of a format, and numbers at and beyond their limits."""
    found: list[Any] = []
    left: list[Any] = [msgspec.json.schema(kind) for kind in dict.fromkeys(kinds)]
    while left:
        schema = left.pop()
        left += schema.values() if isinstance(schema, dict) else schema
        left = [one for one in left if isinstance(one, dict | list)]
        if isinstance(schema, dict):
            for key, step in (("minimum", -1), ("maximum", 1), ("exclusiveMaximum", 0)):
                if isinstance(schema.get(key), int | float):
                    found += [schema[key], schema[key] + step]
            if isinstance(schema.get("pattern"), str):
                found += schema["pattern"].strip("^$").removesuffix("\\Z").strip("()").split("|")
    return sorted(set(found), key=str)


def fuzz(name: str, n: int, seed: int) -> int:
    """Run n cases of a format; print a row of the results; return the number of defects."""
    counts, began = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY) as folder:
        faulthandler.dump_traceback_later(5 * MAX_SECONDS, exit=True)
        fuzzer = Fuzzer(name, Path(folder), seed)
        limit_memory()
        for number in range(n):
            faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
            try:
                counts["refused" if fuzzer.case(number) else "taken"] += 1
            except Exception as error:
                counts["defects"] += 1
                print(f"{name}: case {number}: {type(error).__name__}: {str(error)[:300]}")
        faulthandler.cancel_dump_traceback_later()
        os.chdir(TESTS)
    seconds = time.monotonic() - began
    print(f"{name:<18} {n:>7} cases, {counts['taken'] / n:6.1%} taken, {seconds:.0f} s", flush=True)
    return counts["defects"]


def limit_memory() -> None:
    """Limit the memory of this process to 1 GiB more than it has."""
    status = Path("/proc/self/status")
    if status.exists():
        used = next(line for line in status.read_text().splitlines() if line.startswith("VmData"))
        most = int(used.split()[1]) * 1024 + GIB
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("n", nargs="?", type=int, default=1000, help="cases of each format (default: 1000)")
    add("--only", nargs="+", choices=FORMATS, default=list(FORMATS), metavar="FORMAT")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--case", type=int, help="run only this case")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case is not None:
        (name,) = options.only
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY) as folder:
            print(Fuzzer(name, Path(folder), options.seed).case(options.case) or "taken")
        return 0
    return int(any([fuzz(name, options.n, options.seed) for name in options.only]))


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS.parent))
    sys.exit(main())
