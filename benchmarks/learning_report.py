"""The table and the figure of docs/benchmarks/learning.md, from learning.json.

A row of that file has the results of each training seed (`runs`), or figures that somebody wrote,
and the version of the rules that it was measured with, 1 if it names none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pages import fill

from tokaido_env.arena.intervals import mean_over_seeds, student_t_quantile
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import write_text
from tokaido_env.report.style import FAINT, PALETTE, drawing, new_axes, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "learning.md"
RESULTS = PAGE.with_suffix(".json")
FIGURES = ROOT / "docs" / "pictures"
KEYS = "method", "track", "budget"
BUDGETS = "none", "untrained", "2m", "20m"
LINES = {"raw": ":", "geometry": "--", "afterstates": "-"}  # of the figure
PAIR_POINTS = 4  # a pair of games has 0 to 4 half points
HEADERS = "method", "track", "Elo", "score against `heuristic`", "spread", "decisions"
HEADERS += "core-minutes", "seeds"
JsonDict = dict[str, Any]


def measured(row: JsonDict) -> JsonDict:
    """Return a row with the figures over its training seeds.

    Seeds play the same games: seeds and pairs of games are crossed random effects of the score.
    The interval of the Elo covers seeds, by Student's t distribution, and the games of one seed.
    """
    if "runs" not in row:
        return row
    seeds = list(row["runs"].values())
    elos = [one["elo"] for one in seeds]
    points = np.array([[int(digit) for digit in one["pairs"]] for one in seeds]) / PAIR_POINTS
    found: JsonDict = {"seeds": len(seeds), "elo": float(np.mean(elos))}
    if len(seeds) == 1:
        found |= {"elo_ci95": seeds[0]["elo_ci95"], "score": float(points.mean())}
        found |= {"ci95": seeds[0]["ci95"], "spread": None}
    else:
        half = student_t_quantile(len(seeds) - 1) * float(np.std(elos, ddof=1)) / sqrt(len(seeds))
        widths = [high - low for low, high in (one["elo_ci95"] for one in seeds)]
        half = float(np.hypot(half, np.sqrt(np.mean(np.square(widths))) / 2))
        score, spread = mean_over_seeds(points)
        found |= {"elo_ci95": [found["elo"] - half, found["elo"] + half], "score": score.value}
        found |= {"ci95": score.interval, "spread": spread}
    for key in ("decisions", "seconds"):
        found[key] = float(np.mean([one[key] for one in seeds]))
    return row | found | {"curves": [one["curve"] for one in seeds]}


def write_docs(rows: Sequence[JsonDict], file: Path = RESULTS, page: Path = PAGE) -> None:
    """Add the seeds of rows to the results file, and write the page's table and figure.

    A seed that the file has is replaced, and so is a row without seeds.
    """
    old = json.loads(file.read_text(encoding="utf-8"))["rows"]
    known = {tuple(row[key] for key in KEYS): row for row in old}
    for row in rows:
        key = tuple(row[name] for name in KEYS)
        old_row = known.get(key, {})
        same_rules = old_row.get("rules") == row.get("rules")
        runs = (old_row.get("runs", {}) if same_rules else {}) | row.get("runs", {})
        head = {name: row[name] for name in (*KEYS, "rules") if name in row}
        known[key] = head | {"runs": dict(sorted(runs.items()))} if runs else row
    found = [known[key] for key in sorted(known)]
    lines = ",\n".join(json.dumps(row) for row in found)
    write_text(file, f'{{"version": 1, "rows": [\n{lines}\n]}}\n')
    fill(page, content(found))
    if curves(found):
        with drawing():
            save_figure(draw(found), FIGURES, "learning")
        (FIGURES / "learning.png").unlink()


def content(rows: Sequence[JsonDict]) -> str:
    """Return the tables of all budgets, and the figure if there is one."""
    if not rows:
        return "\nNo row is measured yet.\n"
    used = {row["budget"] for row in rows}
    parts = [table(budget, rows) for budget in BUDGETS if budget in used]
    if curves(rows):
        parts.append("![Elo over decisions and core-minutes](../pictures/learning.svg)\n")
    return "\n" + "\n".join(parts)


def table(budget: str, rows: Sequence[JsonDict]) -> str:
    """Return the rows of a budget as Markdown, best first, failures last."""
    own = [measured(row) for row in rows if row["budget"] == budget]
    title = "without parameters" if budget == "none" else budget
    lines = [f"**{title}**\n", f"| {' | '.join(HEADERS)} |", "|" + " --- |" * len(HEADERS)]
    for row in sorted(own, key=lambda row: -row.get("elo", -np.inf)):
        rules = row.get("rules", 1)
        of_old_rules = "" if rules == RULES_VERSION else f" (rules {rules})"
        cells = [f"`{row['method']}`{of_old_rules}", row["track"].replace("none", "")]
        cells += [row["tried"], *[""] * 5] if "tried" in row else _figures(row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _figures(row: JsonDict) -> list[str]:
    elo, *bounds = (f"{round(x)}".replace("-", "−") for x in (row["elo"], *row["elo_ci95"]))
    score, low, high = (f"{100 * x:.1f}" for x in (row["score"], *row["ci95"]))
    spread = "" if row["spread"] is None else f"{100 * row['spread']:.1f}"
    cost = f"{row['decisions']:,.0f}", f"{row['seconds'] / 60:.1f}"
    scored = f"{score} % ({low} to {high})"
    return [f"{elo} ({bounds[0]} to {bounds[1]})", scored, spread, *cost, str(row["seeds"])]


def curves(rows: Sequence[JsonDict]) -> dict[tuple[str, str], Any]:
    """Return the mean curve of each method and track in the budget that all have, 2 million.

    A curve is an array (points, 3): decisions, processor seconds and Elo.
    """
    found: dict[tuple[str, str], Any] = {}
    for row in sorted(map(measured, rows), key=lambda row: row.get("decisions", 0)):
        if row["budget"] == "2m" and row.get("curves", [[]])[0]:
            shortest = min(map(len, row["curves"]))
            each = np.array([one[:shortest] for one in row["curves"]], float)
            found[row["method"], row["track"]] = each.mean(axis=0)
    return found


def draw(rows: Sequence[JsonDict]) -> Figure:
    """Return the figure of the learning curves, over decisions and over core-minutes."""
    from matplotlib.ticker import LogLocator

    figure = new_figure(5.0, "Elo of learners during training", "mean of the seeds")
    panels = new_axes(figure, 1.0, 0.7, 6.0, 0.1), new_axes(figure, 4.7, 0.7, 2.0, 0.1)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for (method, track), points in curves(rows).items():
        style = {"color": PALETTE[methods.index(method) % len(PALETTE)]}
        style |= {"linestyle": LINES[track]}
        for panel, x in zip(panels, (points[:, 0] / 1e6, points[:, 1] / 60), strict=True):
            panel.plot(x, points[:, 2], label=f"{method}, {track}", **style)
    for panel, label in zip(panels, ("million decisions", "core-minutes"), strict=True):
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(lambda place, _: f"{place:g}")
        panel.xaxis.set_minor_formatter(lambda place, _: "")
        panel.set_xlabel(label)
        panel.grid(axis="y", color=FAINT)
    panels[0].set_ylabel("Elo on the ladder")
    panels[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
