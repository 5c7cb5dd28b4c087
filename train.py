"""Train a self-play agent.

python train.py --run runs/first            begin
python train.py --resume runs/first         go on after Ctrl-C
python train.py --help                      every setting
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

# PyTorch, NumPy and Numba share the cores: PyTorch has them all but does not wait busily for its
# threads, NumPy's products (the opponents' networks) are small. Both are read on the first import.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tokaido_env.agents.run import Progress, Settings, load_settings, start_run

INTERRUPTED = 130  # the shell's exit status for Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.resume is not None:
            return _train(options.resume)
        names = [field.name for field in fields(Settings)]
        start_run(options.run, Settings(**{name: getattr(options, name) for name in names}))
        return _train(options.run)
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
    settings = parser.add_argument_group("settings of a new run (with their defaults)")
    for field in fields(Settings):
        default = getattr(Settings, field.name)
        option = "--" + field.name.replace("_", "-")
        settings.add_argument(option, type=type(default), default=default, metavar=str(default))
    return parser


def _train(folder: Path) -> int:
    from rich import progress as bars
    from rich.console import Console

    from tokaido_env.agents import selfplay

    console = Console()
    columns = (
        bars.TextColumn("{task.completed:,.0f} of {task.total:,.0f} decisions"),
        bars.BarColumn(),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[results]}"),
    )
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=load_settings(folder).steps, results="")

        def report(progress: Progress) -> None:
            bar.update(task, completed=progress.steps, results=_results(progress))

        complete = selfplay.train(folder, report)
    if not complete:
        console.print(
            f"Interrupted and saved. Go on with: python train.py --resume {folder}", soft_wrap=True
        )
        return INTERRUPTED
    console.print(f"policies  {folder}/best (the best against greedy), {folder}/last")
    console.print(f"logs      tensorboard --logdir {folder}/tb, and {folder}/metrics.jsonl")
    return 0


def _results(progress: Progress) -> str:
    """Return how the learner does, as far as it is known."""
    parts = []
    if progress.win_rate is not None:
        parts.append(f"wins {progress.win_rate:.0%} against its copies")
    if progress.greedy is not None:
        parts.append(f"{progress.greedy:.0%} against greedy")
    return ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
