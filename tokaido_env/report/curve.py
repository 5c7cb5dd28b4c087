"""The learning curve of a training run, as a figure and as a line of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokaido_env.arena.ladder import Ladder
from tokaido_env.files import write_text
from tokaido_env.report.style import INK, PALETTE, as_svg, drawing, new_axes, new_figure

_MARGIN = 120  # Elo above and below the curve in which agents of the ladder are drawn


def write_curve(folder: Path, ladder: Ladder, name: str = "curve") -> Path:
    """Draw the ratings of a run next to agents of its ladder; return the file, an SVG.

    Args:
        folder: a run with at least one rating in its `metrics.jsonl`.
        ladder: rated the run.
        name: of the file in the folder, without `.svg`.

    Raises:
        ExtraError: if matplotlib is missing.
    """
    rated = _rated(folder)
    unit = "updates" if "updates" in rated[0] else "rounds"
    done = [line[unit] for line in rated]
    elo, low, high = ([line[f"rating/{key}"] for line in rated] for key in ("elo", "low", "high"))
    with drawing():
        figure = new_figure(4.6, "Elo of tokaido train during training", "95 % intervals")
        axes = new_axes(figure, 0.9, 0.7, 1.7, 0.1)
        axes.fill_between(done, low, high, color=PALETTE[0], alpha=0.2, linewidth=0)
        axes.vlines(done, low, high, color=PALETTE[0], linewidth=1)
        axes.plot(done, elo, color=PALETTE[0], marker="o", ms=4, clip_on=False)
        for agent in ladder.agents:
            if min(low) - _MARGIN <= agent.value <= max(high) + _MARGIN:
                axes.axhline(agent.value, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
                place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
                axes.text(1.02, agent.value, agent.agent, fontsize=10, **place)
        axes.set_xlim(0, done[-1])
        axes.set_xlabel(unit)
        axes.set_ylabel("Elo on the ladder")
        write_text(folder / f"{name}.svg", as_svg(figure, name))
    return folder / f"{name}.svg"


def curve_line(folder: Path) -> str:
    """Return the ratings of a run as block characters between its first and its last Elo."""
    elos = [line["rating/elo"] for line in _rated(folder)]
    low = min(elos)
    span = max(elos) - low or 1
    blocks = "".join("▁▂▃▄▅▆▇█"[int(7 * (elo - low) / span)] for elo in elos)
    return f"{elos[0]:.0f} {blocks} {elos[-1]:.0f}"


def _rated(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, lines) if "rating/elo" in line]
