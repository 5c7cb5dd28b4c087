"""Train a self-play agent.

tokaido train --run runs/first --preset quick     begin; about five minutes on two cores
tokaido train --resume runs/first                 go on after Ctrl-C
tokaido train --resume runs/first --steps 9000000 go on for longer
tokaido train --run runs/second --config my.toml  settings from the table [settings] of a file
tokaido train --run runs/zero --method zero       expert iteration, on a cluster with --executor
tokaido train --help                              every setting

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

from tokaido_env.cli.program import described, program
from tokaido_env.core.extras import ExtraError, require
from tokaido_env.learn.refit import Refit
from tokaido_env.learn.settings import (
    PRESETS,
    Progress,
    Settings,
    load_settings,
    read_settings,
    resume_run,
    split_specs,
)
from tokaido_env.report.progress import run_bar

INTERRUPTED = 130  # the shell's exit status for Ctrl-C
_PPO = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "rich", "safetensors")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    chosen, rest = _methods().parse_known_args(arguments)
    if chosen.method == "ppo":
        return _ppo(rest)
    try:
        require("training needs", "train", "torch", "safetensors")
    except ExtraError as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    called = f"{program('train')} --method {chosen.method}"
    if chosen.method == "zero":
        from tokaido_env.learn import zero

        return zero.main(rest, called)
    from tokaido_env.learn import scale

    return scale.main(rest, called)


def _ppo(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    # Read when PyTorch is loaded: its threads do not wait busily, the games need the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        asked = _asked(options)
        named = split_specs(asked.get("agents", ""))
        require("training needs", "train", *_PPO)  # before a folder is begun
        if options.resume is not None:
            resume_run(options.resume, asked)
            return _train(options.resume, named)
        from tokaido_env.learn import ppo

        ppo.begin(options.run, Settings(**asked))
        return _train(options.run, named)
    except (ValueError, OSError, ExtraError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("train: stopped at once; --resume goes on from the last checkpoint", file=sys.stderr)
        return INTERRUPTED


def _methods() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--method",
        choices=("ppo", "scale", "zero"),
        default="ppo",
        help="ppo: a learner against a pool, by Stable-Baselines3; scale: thousands of games of "
        "self-play side by side; zero: expert iteration on any executor. --method NAME --help "
        "lists the settings of the others (ppo)",
    )
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        program("train"),
        description=described(__doc__, "train"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_methods()],
    )
    folder = parser.add_mutually_exclusive_group(required=True)
    folder.add_argument("--run", type=Path, help="begin a run in this folder")
    folder.add_argument("--resume", type=Path, help="go on with the run in this folder")
    parser.add_argument("--preset", choices=PRESETS, help="5 minutes, an hour, a working day")
    parser.add_argument("--config", type=Path, metavar="FILE", help="as a run's config.toml")
    settings = parser.add_argument_group("settings (a step is a decision of the learner)")
    Settings.add_options(settings)
    return parser


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that are given in any way."""
    asked = dict(PRESETS[options.preset]) if options.preset else {}
    given = Settings.given(options)
    if options.config is not None:
        asked |= read_settings(options.config, given)
    return asked | given


def _train(folder: Path, named: Sequence[str]) -> int:
    from rich.console import Console

    from tokaido_env.learn import ppo

    console = Console()
    with run_bar(console, load_settings(folder).steps) as bar:

        def report(progress: Progress) -> None:
            if progress.is_new and progress.rating is not None:
                bar.rated(progress.steps, progress.rating, progress.is_best)
            bar.update(progress.steps, progress.win_rates, progress.rating)

        def fitted(name: str, made: Refit) -> None:
            bar.told(f"{name}: value fitted to games against itself: {made}")

        complete = ppo.train(folder, report, named, fitted)
    if not complete:
        again = f"{program('train')} --resume {folder}"
        print(f"Interrupted and saved. Go on with: {again}")
        return INTERRUPTED
    kind = "rated highest" if load_settings(folder).rate_every else "the same: without ratings"
    print(f"policies  {folder}/last, {folder}/best ({kind})")
    print(f"logs      tensorboard --logdir {folder}/tb, and {folder}/metrics.jsonl")
    return 0
