"""Tables and the figure of regret by agent.

    python benchmarks/regret_table.py                   takes a quarter of an hour
    python benchmarks/regret_table.py --only champion   only agents with a word in their specs
    python benchmarks/regret_table.py --docs            also put tables and figure into the docs

`tokaido regret` measures each agent in a process of one thread. Results for the same set
in the folder `--results` are used again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from options import parser_of
from pages import fill, titled

from tokaido_env.arena.ladder import LADDER
from tokaido_env.core.arguments import escape_text
from tokaido_env.files import read_json, write_text
from tokaido_env.report import regret as report
from tokaido_env.report.regret import JsonDict, in_order, with_interval
from tokaido_env.report.style import (
    FAINT,
    PALETTE,
    WIDTH,
    drawing,
    new_axes,
    new_figure,
    save_figure,
)
from tokaido_env.report.tables import Table, print_table
from tokaido_env.study.regret_set import NOT_ROLLED, SHIPPED, RegretSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "regret.md"
DETAILS = ROOT / "docs" / "dev" / "regret.md"
FIGURE = ROOT / "docs" / "pictures" / "regret.svg"
CAPTION = "Regret against core-seconds per decision"
_HEIGHT = 6.0  # inches, of the figure
_BUDGETS = ("sims", "epsilon")
_TICKS = (0, 5, 10, 20, 50, 100, 200)

AGENTS = (
    *("random", "greedy:epsilon=0.8", "greedy:epsilon=0.6", "greedy:epsilon=0.4"),
    *("greedy:epsilon=0.2", "greedy", "heuristic", "mcts:sims=25", "mcts:sims=100"),
    *("mcts:sims=400", "mcts:sims=1000", "mcts:sims=4000", "mcts:sims=20000", "champion"),
    *("champion:sims=16", "champion:sims=64", "champion:sims=400", "champion:sims=1600"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure missing agents and make the tables; return the exit status."""
    options = _parser().parse_args(arguments)
    regret_set = RegretSet.load(options.set)
    options.results.mkdir(parents=True, exist_ok=True)
    found = []
    for spec in AGENTS:
        if options.only and not any(word in spec for word in options.only):
            continue
        one = _result_of(spec, regret_set, options)
        if one is None:
            return 1
        found.append(one)
    title = report.title_of(
        {**regret_set.card, "hash": regret_set.hash, "positions": len(regret_set)}
    )
    main_tables = [report.main_table(title, found)]
    details = [report.groups_table(group, found) for group in ("boards", "phase", "rounds")]
    details.append(policies_table(regret_set.card["policies"], found))
    ladder = read_json(options.ladder)
    for table in (*main_tables, *details):
        print_table(table)
    write_plot(title, found, options.results)
    order = order_of(found, ladder)
    print(order)
    text, more = titled(main_tables) + f"\n{order}\n", titled(details)
    write_text(options.results / "tables.md", f"{text}\n{more}")
    if options.docs:
        shutil.copyfile(options.results / "regret.svg", FIGURE)
        picture = f"\n![{CAPTION}]({Path(os.path.relpath(FIGURE, PAGE.parent)).as_posix()})\n"
        fill(PAGE, f"\n{card_of(regret_set)}\n{text}{picture}\n")
        fill(DETAILS, f"\n{more}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__, "runs/regret")
    add = parser.add_argument
    of_set = "file of the set (default: the shipped one)"
    add("--set", type=Path, default=SHIPPED, metavar="FILE", help=of_set)
    ladder = "ladder of the games (default: the shipped one)"
    add("--ladder", type=Path, default=LADDER, metavar="FILE", help=ladder)
    return parser


def _result_of(spec: str, regret_set: RegretSet, options: argparse.Namespace) -> JsonDict | None:
    """Return the result of an agent on a set, from its file if there; None if it failed."""
    path = options.results / f"{spec.replace(':', '-')}.json"
    known = read_json(path) if path.is_file() else None
    if known is None or known["set"]["hash"] != regret_set.hash:
        words = "regret", spec, "--timed", "--set", str(options.set), "--json", str(path)
        print("tokaido", *words, flush=True)
        command = [sys.executable, "-m", "tokaido_env", *words]
        one_thread = os.environ | {"NUMBA_NUM_THREADS": "1"}
        if subprocess.run(
            command, env=one_thread, stdout=subprocess.DEVNULL, check=False
        ).returncode:
            return None
        known = read_json(path)
    found: JsonDict = known["agents"][0]
    return found


def card_of(regret_set: RegretSet) -> str:
    """Return a description of a set, in Markdown."""
    card = regret_set.card
    in_full = int((regret_set.sums[:, 0] != NOT_ROLLED).all(axis=1).sum())
    return (
        f"The set is `{card['name']}`, hash `{regret_set.hash}`: {len(regret_set):,} positions and "
        f"{len(regret_set.actions):,} actions, {in_full:,} of them with {card['rollouts']:,} "
        f"rollouts by each policy; `{card['command']}`, tokaido_env {card['tokaido_env']}.\n"
    )


def order_of(found: Sequence[JsonDict], ladder: dict[str, Any]) -> str:
    """Return the agreement of regret and ratings on a ladder's board, in a sentence."""
    elo = {rating["agent"]: rating["elo"] for rating in ladder["agents"]}
    both = [one for one in found if one["agent"] in elo]
    strength = np.array([elo[one["agent"]] for one in both])
    less = -np.array([one["boards"][ladder["board"]]["mean"] for one in both])
    pairs = np.triu_indices(len(both), 1)
    alike = [np.sign(x[:, None] - x)[pairs] for x in (strength, less)]
    ranks = [x.argsort().argsort() for x in (strength, less)]
    return (
        f"Of the {len(alike[0])} pairs of agents of the ladder regret on {ladder['board']} orders "
        f"{int((alike[0] == alike[1]).sum())} as their ratings do; rank correlation "
        f"{np.corrcoef(*ranks)[0, 1]:.2f}, linear {np.corrcoef(strength, less)[0, 1]:.3f}."
    )


def policies_table(policies: Sequence[str], found: Sequence[JsonDict]) -> Table:
    """Return the regret of agents by the rollouts of each policy alone."""
    rows = [
        (one["agent"], *(with_interval(one[f"by_{policy}"]) for policy in policies))
        for one in in_order(found)
    ]
    return Table("by policy of the rollouts", ("agent", *policies), rows)


def write_plot(title: str, found: Sequence[JsonDict], folder: Path) -> list[Path]:
    """Draw regret against core seconds a decision; return the files."""
    with drawing():
        return save_figure(_draw(title, found), folder, "regret")


def _series(spec: str) -> str:
    """Return a spec without its budget, which agents of one line in the figure share."""
    kind, _, rest = spec.partition(":")
    kept = [one for one in rest.split(",") if one and one.partition("=")[0] not in _BUDGETS]
    return " ".join([kind, *kept])


def _draw(title: str, found: Sequence[JsonDict]) -> Figure:
    figure = new_figure(_HEIGHT, "Regret of a decision, and its time", "")
    axes = new_axes(figure, 0.95, 0.95, 0.3, 0.2)
    kinds: dict[str, list[JsonDict]] = {}
    for one in found:
        kinds.setdefault(_series(one["agent"]), []).append(one)
    for number, (kind, several) in enumerate(kinds.items()):
        colour = PALETTE[number % len(PALETTE)]
        x = [one["core_seconds"] for one in several]
        y = [1000 * one["regret"]["mean"] for one in several]
        axes.plot(x, y, "o-", color=colour, linewidth=1.0, ms=6, label=escape_text(kind, 30))
        for place, one in zip(x, several, strict=True):
            low, high = (1000 * end for end in one["regret"]["ci95"])
            axes.plot([place, place], [low, high], color=colour, linewidth=1.5, alpha=0.6)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_yticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter(lambda place, _: f"{place:g}")
    axes.grid(axis="y", color=FAINT)
    axes.set_xlabel("core seconds a decision")
    axes.set_ylabel("regret a choice, in 1/1000 of a result")
    axes.legend(frameon=False, fontsize=10, loc="best")
    figure.text(0.95 / WIDTH, 0.2 / _HEIGHT, escape_text(title, 100), fontsize=10)
    return figure


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError) as error:
        sys.exit(f"regret_table: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
