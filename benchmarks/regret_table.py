"""Tables of regret by agent, and the cost of games and of positions for the same precision.

    python benchmarks/regret_table.py                   takes a quarter of an hour
    python benchmarks/regret_table.py --only champion   only agents with a word in their specs
    python benchmarks/regret_table.py --docs            also put tables and figure into the docs

`tokaido evaluate regret` measures each agent in a process of one thread. Results for the same set
in the folder `--results` are used again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pages import fill, titled
from regret_agreement import agreement

from tokaido_env.arena.intervals import PAIR_SCORES, Z95
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
from tokaido_env.study.regret import AgentChoices, regret_difference
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
CHOICES_OF_PAIR = 151
"""Decisions with a choice of one agent in a pair of games; both agents make 302."""

CERTAIN = 2.0
"""A difference counts as known at this number of standard errors."""


class Cost(NamedTuple):
    """The cost of knowing that one agent is better than another."""

    better: str
    """The agent with the higher score in games."""
    worse: str
    pairs: float
    """Pairs of games needed."""
    more: JsonDict
    """Regret of the worse agent less that of the better one: "mean", "ci95"."""
    positions: float
    """Positions of a regret set needed."""
    seconds: tuple[float, float]
    """Core seconds of the games, and of the positions."""


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
    games = costs(regret_set, found, ladder)
    details.append(costs_table(games, positions_on(regret_set, ladder["board"])))
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
        fill(DETAILS, f"\n{agreement_of(regret_set)}\n{more}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add(
        "--set",
        type=Path,
        default=SHIPPED,
        metavar="FILE",
        help="file of the set (default: the shipped one)",
    )
    add(
        "--results",
        type=Path,
        default=Path("runs/regret"),
        help="folder of results (default: runs/regret)",
    )
    add(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="only agents with one of these words in their specs (default: all)",
    )
    add(
        "--ladder",
        type=Path,
        default=LADDER,
        metavar="FILE",
        help="ladder of the games (default: the shipped one)",
    )
    add("--docs", action="store_true", help="put tables and figure into the docs")
    return parser


def _result_of(spec: str, regret_set: RegretSet, options: argparse.Namespace) -> JsonDict | None:
    """Return the result of an agent on a set, from its file if there; None if it failed."""
    path = options.results / f"{spec.replace(':', '-')}.json"
    known = read_json(path) if path.is_file() else None
    if known is None or known["set"]["hash"] != regret_set.hash:
        words = "regret", spec, "--timed", "--set", str(options.set), "--json", str(path)
        print("tokaido evaluate", *words, flush=True)
        command = [sys.executable, "-m", "tokaido_env", "evaluate", *words]
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


def agreement_of(regret_set: RegretSet) -> str:
    """Return the agreement of the two policies of the rollouts, in Markdown."""
    first, second = regret_set.card["policies"][:2]
    found = agreement(regret_set)
    lost = {name: report.with_interval(found[f"lost_by_{name}"]) for name in (first, second)}
    same = 100 * found["same_best"]["mean"]
    return (
        f"Agreement of `{first}` and `{second}`: their values of actions, less the mean of the "
        f"position, have a correlation of {found['correlation']:.2f}, and of "
        f"{found['correlation_without_noise']:.2f} without the noise of rollouts. They have the "
        f"same best action in {same:.0f} % of choices. The best action of `{second}` loses "
        f"{lost[first]} by the rollouts of `{first}`; the other way round {lost[second]}. "
        f"`{first}` values its best action {report.with_interval(found['higher'], sign=True)} "
        f"higher.\n"
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


# Costs


def costs(regret_set: RegretSet, found: Sequence[JsonDict], ladder: dict[str, Any]) -> list[Cost]:
    """Return the cost of ordering measured agents that are neighbours on a ladder.

    Args:
        regret_set: the set.
        found: results of `tokaido evaluate regret --timed`.
        ladder: contents of its file: "board", "agents" (best first), "matches".
    """
    known = {one["agent"]: one for one in found}
    names = [rating["agent"] for rating in ladder["agents"] if rating["agent"] in known]
    played = {(m["a"], m["b"]): m["pairs"] for m in ladder["matches"]}
    played |= {(b, a): counts[::-1] for (a, b), counts in played.items()}
    board = ladder["board"]
    return [
        _cost(regret_set, known[one], known[other], np.array(played[one, other], np.float64), board)
        for one, other in pairwise(names)
        if (one, other) in played
    ]


def _cost(regret_set: RegretSet, one: JsonDict, other: JsonDict, counts: Any, board: str) -> Cost:
    """Return the pairs and positions for a difference of `CERTAIN` standard errors."""
    shares = counts / counts.sum()
    score = float(shares @ PAIR_SCORES)
    spread = sqrt(float(shares @ (PAIR_SCORES - score) ** 2))
    pairs = (CERTAIN * spread / abs(score - 0.5)) ** 2 if score != 0.5 else np.inf
    more = regret_difference(regret_set, _choices(other), _choices(one), board)
    error = (more["ci95"][1] - more["ci95"][0]) / (2 * Z95)
    needed = (CERTAIN * error / more["mean"]) ** 2 if more["mean"] > 0 else np.inf
    positions = needed * positions_on(regret_set, board)
    clock = one["core_seconds"] + other["core_seconds"]
    seconds = pairs * CHOICES_OF_PAIR * clock, positions * clock
    return Cost(one["agent"], other["agent"], pairs, more, positions, seconds)


def positions_on(regret_set: RegretSet, board: str) -> int:
    """Return the number of positions of a set on a board or a pool."""
    own = np.array([stratum["boards"] == board for stratum in regret_set.card["strata"]])
    return int(own[regret_set.stratum].sum())


def _choices(found: JsonDict) -> AgentChoices:
    return AgentChoices(found["agent"], np.array(found["choices"], np.int64), 0.0)


def costs_table(games: Sequence[Cost], positions: int) -> Table:
    """Return costs as a table, without the positions that exceed the set.

    Args:
        games: the costs.
        positions: of the set.
    """
    headers = (
        *("better", "than", "pairs of games", "more regret", "positions"),
        *("core seconds", "times as dear"),
    )
    rows = []
    for cost in games:
        enough = cost.positions <= positions
        ratio = f"{cost.seconds[0] / cost.seconds[1]:.3g}"
        needed = f"{cost.positions:,.0f}" if enough else f"more than {positions:,}"
        clocks = report.seconds(cost.seconds[0]), report.seconds(cost.seconds[1])
        row = cost.better, cost.worse, f"{cost.pairs:,.0f}", report.with_interval(cost.more), needed
        rows.append(
            (*row, f"{clocks[0]} / {clocks[1] if enough else '–'}", ratio if enough else "–")
        )
    return Table(f"games or positions for {CERTAIN:g} standard errors", headers, rows)


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
