"""Train a self-play agent.

tokaido train --run runs/first --preset quick     begin; about five minutes on two cores
tokaido train --resume runs/first                 go on after Ctrl-C
tokaido train --resume runs/first --steps 9000000 go on for longer
tokaido train --run runs/second --config my.toml  settings from the table [settings] of a file
tokaido train --run runs/third --method selfplay  whole games against itself, for long runs
tokaido train --run runs/zero --method alphazero  search plays, on a cluster with --executor
tokaido train --method NAME --help                every setting of a method

A setting on the command line goes before the file, the file before the preset, the preset before
the default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokaido_env.arena.executors import EXECUTORS, open_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.cli.command import INTERRUPTED, CommandParser, program, reports_errors
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.learn.run_folder import extend, load_settings, read_config
from tokaido_env.learn.settings import METHODS, PRESETS, PpoSettings, RunSettings, split_specs
from tokaido_env.report.progress import run_bar

if TYPE_CHECKING:
    from tokaido_env.learn.run import Progress

_NEEDS = ("torch", "tensorboard", "rich", "safetensors")
_PPO_NEEDS = ("stable_baselines3", "sb3_contrib")

_SHOWN = {
    "win_rate/latest": "wins: latest {:.0%}",
    "win_rate/past": "past {:.0%}",
    "win_rate/agents": "agents {:.0%}",
    "value": "value loss {:.4f}",
    "entropy": "entropy {:.3f}",
    "points": "{:.1f} points",
    "policy_loss": "policy loss {:.4f}",
    "value_loss": "value loss {:.4f}",
    "promotion/score": "scored {:.1%} in the promotion match",
}
"""Figures that stand beside the bar, if a method has them."""


@reports_errors(
    "train",
    AgentFailed,
    interrupted="stopped at once; --resume goes on from the last checkpoint",
)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    # Read when PyTorch is loaded: its threads do not wait busily, the games need the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same bytes on a GPU
    kind = _kind(arguments)
    options = _parser(kind).parse_args(arguments)
    asked = _asked(options, kind)
    needs = _NEEDS + (_PPO_NEEDS if kind is PpoSettings else ())
    require_extra("training needs", "train", *needs)  # before a folder is begun
    if options.resume is not None:
        extend(options.resume, asked)
    else:
        from tokaido_env.learn import run

        run.begin(options.run, kind(**asked))
    return _train(options.resume or options.run, split_specs(asked.get("agents", "")), options)


def _methods() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--method",
        choices=METHODS,
        help="ppo: a learner against a pool, by Stable-Baselines3; selfplay: thousands of games "
        "against itself side by side; alphazero: search plays, the network learns from it (ppo)",
    )
    folder = parser.add_mutually_exclusive_group()
    folder.add_argument("--run", type=Path, help="begin a run in this folder")
    folder.add_argument("--resume", type=Path, help="go on with the run in this folder")
    parser.add_argument("--config", type=Path, metavar="FILE", help="as a run's config.toml")
    return parser


def _kind(arguments: Sequence[str] | None) -> type[RunSettings]:
    """Return the settings of the method that is asked for, or that the run or the file tells."""
    early, _ = _methods().parse_known_args(arguments)
    method = early.method
    if early.resume is not None:
        own = load_settings(early.resume).METHOD
        if method not in (None, own):
            raise ValueError(f"{early.resume}: is a run of --method {own}, not {method}")
        method = own
    elif method is None and early.config is not None:
        method = read_config(early.config, given=("agents",)).method  # the command line goes first
    return METHODS[method or PpoSettings.METHOD]


def _parser(kind: type[RunSettings]) -> argparse.ArgumentParser:
    parser = CommandParser("train", __doc__, [_methods()])
    if kind is PpoSettings:
        parser.add_argument("--preset", choices=PRESETS, help="5 minutes, an hour, a working day")
    if kind.METHOD == "alphazero":
        parser.add_argument("--executor", default="serial", help=f"{EXECUTORS} (serial)")
    kind.add_arguments(parser.add_argument_group(f"settings of --method {kind.METHOD}"))
    return parser


def _asked(options: argparse.Namespace, kind: type[RunSettings]) -> dict[str, Any]:
    """Return the settings that are given in any way."""
    if options.run is None and options.resume is None:
        raise ValueError("expected --run FOLDER to begin, or --resume FOLDER to go on")
    preset = getattr(options, "preset", None)
    asked = dict(PRESETS[preset]) if preset else {}
    given = kind.from_options(options)
    if options.config is not None:
        asked |= read_config(options.config, kind.METHOD, given).settings
    return asked | given


def _train(folder: Path, named: Sequence[str], options: argparse.Namespace) -> int:
    from tokaido_env.learn import run

    settings = load_settings(folder)
    begun: int | None = None
    with ExitStack() as stack:
        bar = stack.enter_context(run_bar(settings.length, settings.LENGTH))
        executor = None
        if "executor" in options:
            executor = stack.enter_context(open_executor(options.executor))

        def report(progress: Progress) -> None:
            nonlocal begun
            if begun is None:
                begun = progress.done
                _tell_length(settings, progress.done)
            if progress.note:
                bar.add_line(progress.note)
            if progress.is_new and progress.rating is not None:
                bar.add_rating(progress.done, progress.rating, progress.is_best)
            bar.update(progress.done, _state(progress.figures), progress.rating)

        complete = run.train(folder, report, named, executor)
    if not complete:
        again = f"{program('train')} --resume {folder}"
        print(f"Interrupted and saved. Go on with: {again}")
        return INTERRUPTED
    kind = "rated highest" if settings.rate_every else "the same: without ratings"
    print(f"policies  {folder}/last, {folder}/best ({kind})")
    print(f"logs      tensorboard --logdir {folder}/tb, and {folder}/metrics.jsonl")
    return 0


def _tell_length(settings: RunSettings, done: int) -> None:
    """Tell of a length that is rounded up, and of one that is reached already."""
    unit, asked = settings.LENGTH, getattr(settings, settings.LENGTH)
    if done >= settings.length:
        print(f"nothing to do: {done:,} {unit} are done")
    elif settings.length != asked:
        print(f"{settings.length:,} {unit}: {asked:,} rounded up to whole updates")


def _state(figures: Mapping[str, Any]) -> str:
    return ", ".join(form.format(figures[name]) for name, form in _SHOWN.items() if name in figures)
