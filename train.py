"""Train a self-play agent.

python train.py --run runs/first --preset quick     begin; about five minutes on two cores
python train.py --resume runs/first                 go on after Ctrl-C
python train.py --resume runs/first --steps 9000000 go on for longer
python train.py --run runs/second --config my.toml  settings from the table [settings] of a file
python train.py --help                              every setting

A setting on the command line goes before the file, the file before the preset, the preset before
the default.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# PyTorch, NumPy and Numba share the cores: PyTorch has them all but does not wait busily for its
# threads, NumPy's products (the opponents' networks) are small. Both are read on the first import.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tokaido_env.agents.arena.ratings import Rating
from tokaido_env.agents.learn.settings import (
    DEFAULTS,
    MEANINGS,
    PRESETS,
    Progress,
    Settings,
    load_settings,
    read_setting,
    read_settings,
    resume_run,
    split_specs,
)

INTERRUPTED = 130  # the shell's exit status for Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        asked = _asked(options)
        named = split_specs(asked.get("agents", ""))
        if options.resume is not None:
            resume_run(options.resume, asked)
            return _train(options.resume, named)
        from tokaido_env.agents.learn import ppo

        ppo.begin(options.run, Settings(**asked))
        return _train(options.run, named)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("train: stopped at once; --resume goes on from the last checkpoint", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = parser.add_mutually_exclusive_group(required=True)
    folder.add_argument("--run", type=Path, help="begin a run in this folder")
    folder.add_argument("--resume", type=Path, help="go on with the run in this folder")
    parser.add_argument("--preset", choices=PRESETS, help="5 minutes, an hour, a working day")
    parser.add_argument("--config", type=Path, metavar="FILE", help="as a run's config.toml")
    settings = parser.add_argument_group("settings (a step is a decision of the learner)")
    for name, default in DEFAULTS.items():
        told = f"{default:,}" if isinstance(default, int) else default or "empty"
        settings.add_argument(
            "--" + name.replace("_", "-"),
            metavar={int: "N", float: "X", str: "TEXT"}[type(default)],
            help=f"{MEANINGS[name]} ({told})",
        )
    return parser


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that are given in any way."""
    asked = dict(PRESETS[options.preset]) if options.preset else {}
    texts = {name: getattr(options, name) for name in DEFAULTS}
    given = {name: read_setting(name, text) for name, text in texts.items() if text is not None}
    if options.config is not None:
        asked |= read_settings(options.config, given)
    return asked | given


def _train(folder: Path, named: Sequence[str]) -> int:
    from rich import progress as bars
    from rich.console import Console

    from tokaido_env.agents.learn import ppo

    console = Console()
    columns = (
        bars.TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps, {task.fields[told]}"),
        bars.BarColumn(bar_width=8),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=load_settings(folder).steps, told="")

        def report(progress: Progress) -> None:
            if progress.is_new and progress.rating is not None:
                best = ", the best so far" if progress.is_best else ""
                steps = f"{progress.steps:>13,} steps"
                bar.console.print(f"{steps}  {_elo(progress.rating)}{best}", highlight=False)
            speed = bar.tasks[0].speed
            told = f"{speed or 0:,.0f}/s\n{_results(progress)}"
            bar.update(task, completed=progress.steps, told=told)

        complete = ppo.train(folder, report, named)
    if not complete:
        console.print(
            f"Interrupted and saved. Go on with: python train.py --resume {folder}", soft_wrap=True
        )
        return INTERRUPTED
    kind = "rated highest" if load_settings(folder).rate_every else "the same: without ratings"
    console.print(f"policies  {folder}/last, {folder}/best ({kind})", soft_wrap=True)
    console.print(
        f"logs      tensorboard --logdir {folder}/tb, and {folder}/metrics.jsonl", soft_wrap=True
    )
    return 0


def _results(progress: Progress) -> str:
    """Return how the learner does, as far as it is known."""
    rates = progress.win_rates
    known = [group for group in ("latest", "past", "agents") if group in rates]
    parts = ["wins: " + ", ".join(f"{group} {rates[group]:.0%}" for group in known)] * bool(known)
    if progress.rating is not None:
        parts.append(_elo(progress.rating))
    return " · ".join(parts)


def _elo(rating: Rating) -> str:
    low, high = rating.ci95
    return f"Elo {rating.elo:.0f} ({low:.0f} – {high:.0f})"


if __name__ == "__main__":
    sys.exit(main())
