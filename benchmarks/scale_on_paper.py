"""Where self-play on many cores gives out, on paper: from figures measured on one core.

    python benchmarks/scale_on_paper.py            print the table
    python benchmarks/scale_on_paper.py --docs     also put it into docs/scale.md

Everything is told in positions a second: what the cores play, and what each part that a position
goes through can take. The smallest gives out first; then one setting after another is changed until
nothing does. Measured figures are those of `scale.json`, by `scale_measured.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from tokaido_100 import filled

from tokaido_env.files import read_json, write_text
from tokaido_env.report import regret as report
from tokaido_env.report.tables import Table

MEASURED = Path(__file__).resolve().parent / "scale.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"

# Assumed, not measured

RAY = 0.07  # of all processors' time goes to Ray: a trial with two nodes on one machine
NETWORK = 1.25e9  # bytes/s of the driver's link, 10 Gbit/s
DISK = 5e8  # bytes/s of the folder that all share
GPU = 1e12  # operations/s that a GPU does in layers so narrow: a fiftieth of 50 TFLOP/s
BUS = 2.5e10  # bytes/s to each GPU
INPUT_CORES = 16  # beside each GPU, that make what the network reads

MOST_GAMES = 1024  # of a unit: a longer one holds up the end of a round

Measured = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What there is, and how it is set.

    Attributes:
        cores: that play.
        gpus: of the learner; 0: one core, as today.
        sims: simulations a decision.
        games: of a unit.
        samples: learnt from, for each new position.
        kept: rounds that are learnt from together.
        in_memory: whether units stay in memory so long; else each round reads them again.
        drivers: each with a part of the cores and a network link of its own.
        readers: processes that read units for the learner.
        packed: whether units are packed.
        disks: folders that units are shared out to.
    """

    cores: int
    gpus: int
    sims: int = 64
    games: int = 128
    samples: float = 4.0
    kept: int = 4
    in_memory: bool = False
    drivers: int = 1
    readers: int = 1
    packed: bool = False
    disks: int = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the table; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--measured", type=Path, default=MEASURED, metavar="FILE", help="(benchmarks/scale.json)")
    add("--docs", action="store_true", help="put the table into docs/scale.md")
    options = parser.parse_args(arguments)
    measured = read_json(options.measured)
    print(section(measured))
    if options.docs:
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), section(measured)))
    return 0


# The model


def played(m: Measured, s: Setting) -> float:
    """Return how many positions a second the cores play if nothing holds them up."""
    return float(s.cores * (1 - RAY) * m["positions_a_cpu_second"] * m["sims"] / s.sims)


def capacities(m: Measured, s: Setting) -> dict[str, float]:
    """Return how many new positions a second each part can take.

    - driver: takes a unit, and writes it to disk;
    - network: a position comes to the driver and goes to the shared folder;
    - disk: it is written once, and read in each of the rounds that keep it, or once if it stays;
    - reading: it is checked and hashed as often as it is read;
    - inputs, bus, steps: of its samples, on a GPU; without one all are "steps" of one core.
    """
    size = m["bytes_packed" if s.packed else "bytes_in_a_file"]
    unit = m["driver_seconds_a_unit"] / (s.games * m["positions_a_game"])
    reads = 1 if s.in_memory else s.kept
    reading = reads * (m["load_seconds"] + m["hash_seconds"])
    found = {
        "driver": s.drivers / (unit + m["driver_seconds"]),
        "network": s.drivers * NETWORK / (2 * size),
        "disk": s.disks * DISK / ((1 + reads) * size),
        "reading": s.readers / reading,
    }
    if not s.gpus:
        return found | {"steps": 1 / (s.samples * m["learn_seconds"])}
    return found | {
        "inputs": s.gpus * INPUT_CORES / (s.samples * m["inputs_seconds"]),
        "bus": s.gpus * BUS / (s.samples * m["inputs_bytes"]),
        "steps": s.gpus * GPU / (s.samples * m["flops"]),
    }


def first_out(m: Measured, s: Setting) -> str | None:
    """Return which part gives out first, None if the players never wait."""
    found = capacities(m, s)
    least = min(found, key=lambda name: found[name])
    return least if found[least] < played(m, s) else None


def busy(m: Measured, s: Setting, *, rounds: bool) -> float:
    """Return in which share of time the cores play.

    Args:
        m: what was measured.
        s: the setting.
        rounds: whether they wait while units are read and learnt, as in rounds; else all goes on
            at once.
    """
    found, speed = capacities(m, s), played(m, s)
    if not rounds:
        return min(1.0, min(found.values()) / speed)
    coming = ("driver", "network", "disk")
    playing = 1 / min(speed, *(found[name] for name in coming))
    learning = 1 / min(found[name] for name in found if name not in (*coming, "reading"))
    return 1 / speed / (playing + 1 / found["reading"] + learning)


def mended(m: Measured, s: Setting) -> Setting:
    """Return a setting in which the players do not wait: the part that is out first, then on."""
    while (out := first_out(m, s)) is not None:
        s = _mended(m, s, out)
    return s


def _mended(m: Measured, s: Setting, out: str) -> Setting:
    """Change one setting, for the part that is out."""
    lack = played(m, s) / capacities(m, s)[out]
    unit = m["driver_seconds_a_unit"] / (s.games * m["positions_a_game"])
    if out == "driver" and unit > m["driver_seconds"] / 5 and s.games < MOST_GAMES:
        return replace(s, games=2 * s.games)
    if out == "driver":
        return replace(s, drivers=ceil(s.drivers * lack))
    if out in ("network", "disk") and not s.packed:
        return replace(s, packed=True)
    if out == "network":
        return replace(s, drivers=ceil(s.drivers * lack))
    if out == "disk":
        return replace(s, disks=ceil(s.disks * lack))
    if out == "reading" and not s.in_memory:
        return replace(s, in_memory=True)
    if out == "reading":
        return replace(s, readers=ceil(s.readers * lack))
    if s.samples > 1:
        return replace(s, samples=max(1.0, int(10 * s.samples / lack) / 10))
    sims = ceil(s.sims * lack)
    step = 10 ** max(len(str(sims)) - 2, 0)
    return replace(s, sims=step * ceil(sims / step))  # two figures are enough


# Telling


def settings() -> list[Setting]:
    """Return what is told: 100 and 1,000 cores, with one core to eight GPUs that learn."""
    return [Setting(cores, gpus) for cores in (100, 1000) for gpus in (0, 1, 2, 4, 8)]


def table(m: Measured) -> Table:
    """Return where each setting gives out, and what to set then."""
    headers = (
        *("players, learner", "played", "driver", "network", "disk", "reading", "learning"),
        *("first out", "players busy", "in rounds", "then set", "in rounds then"),
    )
    return Table("positions a second, in 1,000", headers, [_row(m, s) for s in settings()])


def _row(m: Measured, s: Setting) -> tuple[str, ...]:
    found = capacities(m, s)
    learning = min(found[name] for name in ("inputs", "bus", "steps") if name in found)
    names = "driver", "network", "disk", "reading"
    learner = "1 core" if not s.gpus else "1 GPU" if s.gpus == 1 else f"{s.gpus} GPUs"
    after = mended(m, s)
    return (
        f"{s.cores:,} cores, {learner}",
        *(_thousands(x) for x in (played(m, s), *(found[n] for n in names), learning)),
        first_out(m, s) or "–",
        *(f"{100 * busy(m, s, rounds=rounds):.0f} %" for rounds in (False, True)),
        changes(s, after),
        f"{100 * busy(m, after, rounds=True):.0f} %",
    )


def _thousands(number: float) -> str:
    return f"{number / 1000:,.0f}"


def changes(before: Setting, after: Setting) -> str:
    """Return in words what has changed from a setting to another."""
    told = [
        f"{name} {getattr(after, name):,g}"
        for name in ("games", "drivers", "disks", "readers", "samples", "sims")
        if getattr(after, name) != getattr(before, name)
    ]
    told += ["units in memory"] if after.in_memory and not before.in_memory else []
    told += ["packed units"] if after.packed and not before.packed else []
    return ", ".join(told) or "–"


def section(m: Measured) -> str:
    """Return what stands between the marks of the page."""
    micro = {name: 1e6 * m[name] for name in m if "seconds" in name}
    day = {
        cores: 86400 * played(m, Setting(cores, 1)) * m["bytes_in_a_file"] / 1e12
        for cores in (100, 1000)
    }
    smaller = m["bytes_in_a_file"] / m["bytes_packed"]
    found = table(m)
    return (
        f"Measured on one core, {m['made']}, {m['on']}:\n\n"
        f"- **Playing** with {m['sims']} simulations: {m['positions_a_cpu_second']:,.0f} positions "
        f"a CPU-second, {m['positions_a_game']:.0f} a game.\n"
        f"- **A position in a unit's file**: {m['bytes_in_a_file']:.0f} bytes; "
        f"{m['bytes_packed']:.0f} if packed by `numpy.savez_compressed`, which takes "
        f"{micro['pack_seconds']:.1f} µs.\n"
        f"- **The driver**, with Ray: {micro['driver_seconds_a_unit'] / 1000:.1f} ms a unit and "
        f"{micro['driver_seconds']:.2f} µs a position in it, writing it included.\n"
        f"- **Reading**, a position: {micro['load_seconds']:.2f} µs with its checks, its SHA-256 "
        f"{micro['hash_seconds']:.2f} µs.\n"
        f"- **Learning**, a sample: {micro['learn_seconds']:.1f} µs, of which what the network "
        f"reads takes {micro['inputs_seconds']:.1f} µs and {m['inputs_bytes']:,} bytes; "
        f"{m['flops']:,} operations forwards and back, as PyTorch counts them.\n\n"
        f"**{found.title.capitalize()}:**\n\n{report.markdown_of(found)}\n"
        f"A day of play is {day[100]:.1f} TB of units with 100 cores and {day[1000]:.0f} TB with "
        f"1,000; packed it is {smaller:.0f} times less.\n"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError, KeyError) as error:
        sys.exit(f"scale_on_paper: {error}")
