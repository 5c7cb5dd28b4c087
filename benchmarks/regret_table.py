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
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from options import parser_of
from pages import fill, titled

from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.arena.result import Measure, Result
from tokaido_env.core.arguments import escape_text
from tokaido_env.files import write_text
from tokaido_env.report.result_tables import regret_table, set_title
from tokaido_env.report.style import (
    FAINT,
    PALETTE,
    WIDTH,
    drawing,
    new_axes,
    new_figure,
    save_figure,
)
from tokaido_env.report.tables import print_table
from tokaido_env.study.regret_set import NOT_ROLLED, SHIPPED, RegretSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "regret.md"
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
    estimates = tuple(estimate for one in found for estimate in one.estimates)
    result = replace(found[0], estimates=estimates)
    table = regret_table(result)
    print_table(table)
    write_plot(result, options.results)
    order = order_of(result, Ladder.load(options.ladder))
    print(order)
    text = titled([table]) + f"\n{order}\n"
    write_text(options.results / "tables.md", text)
    if options.docs:
        shutil.copyfile(options.results / "regret.svg", FIGURE)
        picture = f"\n![{CAPTION}]({Path(os.path.relpath(FIGURE, PAGE.parent)).as_posix()})\n"
        fill(PAGE, f"\n{card_of(regret_set)}\n{text}{picture}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__, "runs/regret")
    add = parser.add_argument
    of_set = "file of the set (default: the shipped one)"
    add("--set", type=Path, default=SHIPPED, metavar="FILE", help=of_set)
    ladder = "ladder of the games (default: the shipped one)"
    add("--ladder", type=Path, default=LADDER, metavar="FILE", help=ladder)
    return parser


def _result_of(spec: str, regret_set: RegretSet, options: argparse.Namespace) -> Result | None:
    """Return the result of an agent on a set, from its file if there; None if it failed."""
    path = options.results / f"{spec.replace(':', '-')}.json"
    known = Result.load(path) if path.is_file() else None
    if known is None or known.boards[0].hash != regret_set.hash:
        words = "regret", spec, "--timed", "--set", str(options.set), "--json", str(path)
        print("tokaido", *words, flush=True)
        command = [sys.executable, "-m", "tokaido_env", *words]
        one_thread = os.environ | {"NUMBA_NUM_THREADS": "1"}
        if subprocess.run(
            command, env=one_thread, stdout=subprocess.DEVNULL, check=False
        ).returncode:
            return None
        known = Result.load(path)
    return known


def card_of(regret_set: RegretSet) -> str:
    """Return a description of a set, in Markdown."""
    card = regret_set.card
    in_full = int((regret_set.sums[:, 0] != NOT_ROLLED).all(axis=1).sum())
    return (
        f"The set is `{card['name']}`, hash `{regret_set.hash}`: {len(regret_set):,} positions and "
        f"{len(regret_set.actions):,} actions, {in_full:,} of them with {card['rollouts']:,} "
        f"rollouts by each policy; `{card['command']}`, tokaido_env {card['tokaido_env']}.\n"
    )


def order_of(result: Result, ladder: Ladder) -> str:
    """Return the agreement of regret and ratings on a ladder's board, in a sentence."""
    board = ladder.pool.name
    elo = {rating.agent: rating.value for rating in ladder.agents}
    regret = {
        one.agent: one.value
        for one in result.estimates_of("regret")
        if one.group == f"boards {board}" and one.agent in elo
    }
    strength = np.array([elo[agent] for agent in regret])
    less = -np.array([*regret.values()])
    pairs = np.triu_indices(len(regret), 1)
    alike = [np.sign(x[:, None] - x)[pairs] for x in (strength, less)]
    ranks = [x.argsort().argsort() for x in (strength, less)]
    return (
        f"Of the {len(alike[0])} pairs of agents of the ladder regret on {board} orders "
        f"{int((alike[0] == alike[1]).sum())} as their ratings do; rank correlation "
        f"{np.corrcoef(*ranks)[0, 1]:.2f}, linear {np.corrcoef(strength, less)[0, 1]:.3f}."
    )


def write_plot(result: Result, folder: Path) -> list[Path]:
    """Draw regret against core seconds a decision; return the files."""
    with drawing():
        return save_figure(_draw(result), folder, "regret")


def _series(spec: str) -> str:
    """Return a spec without its budget, which agents of one line in the figure share."""
    kind, _, rest = spec.partition(":")
    kept = [one for one in rest.split(",") if one and one.partition("=")[0] not in _BUDGETS]
    return " ".join([kind, *kept])


def _draw(result: Result) -> Figure:
    figure = new_figure(_HEIGHT, "Regret of a decision, and its time", "")
    axes = new_axes(figure, 0.95, 0.95, 0.3, 0.2)
    kinds: dict[str, list[Measure]] = {}
    for one in result.estimates_of("regret"):
        if not one.group:
            kinds.setdefault(_series(one.agent), []).append(one)
    seconds = {one.agent: one.value for one in result.estimates_of("core-seconds")}
    for number, (kind, several) in enumerate(kinds.items()):
        colour = PALETTE[number % len(PALETTE)]
        x = [seconds[one.agent] for one in several]
        y = [1000 * one.value for one in several]
        axes.plot(x, y, "o-", color=colour, linewidth=1.0, ms=6, label=escape_text(kind, 30))
        for place, one in zip(x, several, strict=True):
            ends = 1000 * one.low, 1000 * one.high
            axes.plot([place, place], ends, color=colour, linewidth=1.5, alpha=0.6)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_yticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter(lambda place, _: f"{place:g}")
    axes.grid(axis="y", color=FAINT)
    axes.set_xlabel("core seconds a decision")
    axes.set_ylabel("regret a choice, in 1/1000 of a result")
    axes.legend(frameon=False, fontsize=10, loc="best")
    figure.text(0.95 / WIDTH, 0.2 / _HEIGHT, escape_text(set_title(result), 100), fontsize=10)
    return figure


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError) as error:
        sys.exit(f"regret_table: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
