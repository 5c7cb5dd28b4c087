"""Train an agent by self-play.

tokaido train --run runs/first      begin a run; five minutes on two cores
tokaido train --resume runs/first                  continue a run after Ctrl-C or a kill
tokaido train --resume runs/first --updates 300    extend a run
tokaido train --run runs/second --config my.toml   take settings from a TOML file
tokaido train --run runs/third --method ppo        train with Stable-Baselines3
tokaido train --run runs/zero --method alphazero   train on search; --executor ray uses a cluster
tokaido train --method NAME --help                 list every setting of a method

Settings on the command line override those of the file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from tokaido_env.agents.registry import Parameter
from tokaido_env.arena.executors import EXECUTORS, open_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.cli.command import CommandParser, program, reports_errors
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.learn.run_folder import extend, load_settings, read_config
from tokaido_env.learn.settings import (
    CHECKPOINT_MINUTES,
    METHODS,
    PpoSettings,
    RunSettings,
    TdSettings,
    split_specs,
)
from tokaido_env.report.progress import run_bar

if TYPE_CHECKING:
    from tokaido_env.learn.run import Progress

_NEEDS = ("torch", "tensorboard", "rich", "safetensors")
_PPO_NEEDS = ("stable_baselines3", "sb3_contrib")

_PROGRESS_FORMATS = {
    "decisions": "{:,} decisions",
    "win_rate/latest": "wins: latest {:.0%}",
    "win_rate/past": "past {:.0%}",
    "win_rate/agents": "agents {:.0%}",
    "entropy": "entropy {:.3f}",
    "points": "{:.1f} points",
    "policy_loss": "policy loss {:.4f}",
    "value_loss": "value loss {:.4f}",
    "promotion/score": "scored {:.1%} in the promotion match",
}
"""The figures of a progress line, as far as a method has them."""


@reports_errors(
    "train",
    AgentFailed,
    interrupted="stopped at once; --resume continues from the last checkpoint",
)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    # Set before PyTorch is loaded: its idle threads must not spin, as the games need the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same bytes on a GPU
    kind = _settings_class(arguments)
    options = _parser(kind).parse_args(arguments)
    requested = _requested(options, kind)
    needs = _NEEDS + (_PPO_NEEDS if kind is PpoSettings else ())
    require_extra("training needs", "train", *needs)  # before a folder is created
    if options.resume is not None:
        extend(options.resume, requested)
    else:
        from tokaido_env.learn import run

        run.begin(options.run, kind(**requested))
    trusted = split_specs(requested.get("agents", ""))
    return _train(options.resume or options.run, trusted, options)


def _methods() -> argparse.ArgumentParser:
    parser = CommandParser("train", None, add_help=False)
    parser.add_argument(
        "--method",
        choices=METHODS,
        help="td: TD(lambda) on afterstates; ppo: Stable-Baselines3's PPO against an opponent "
        "pool; alphazero: self-play by search (default: of the run or file, else td)",
    )
    folder = parser.add_mutually_exclusive_group()
    folder.add_argument("--run", type="path", help="folder of a new run")
    folder.add_argument("--resume", type="path", help="folder of a run to continue or extend")
    config = "settings file, in the format of a run's config.toml (default: none)"
    parser.add_argument("--config", type="input", metavar="FILE", help=config)
    parser.add_argument(
        "--checkpoint-minutes",
        type=_minutes,
        metavar="X",
        default=CHECKPOINT_MINUTES,
        help="also save a checkpoint at the first update after X minutes without one; 0: do not; "
        "a resume may change it (default: %(default)g)",
    )
    return parser


def _minutes(text: str) -> float:
    try:
        return float(Parameter(float, 0).parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _settings_class(arguments: Sequence[str] | None) -> type[RunSettings]:
    """Return the settings class of the method: of the option, the run or the file."""
    early, _ = _methods().parse_known_args(arguments)
    method = early.method
    if early.resume is not None:
        own = load_settings(early.resume).METHOD
        if method not in (None, own):
            raise ValueError(
                f"--method: expected {own}, the method of {early.resume}, got {method}"
            )
        method = own
    elif method is None and early.config is not None:
        method = read_config(early.config, ignored=("agents",)).method  # --agents may override
    return METHODS[method or TdSettings.METHOD]


def _parser(kind: type[RunSettings]) -> argparse.ArgumentParser:
    parser = CommandParser("train", __doc__, [_methods()])
    if kind.METHOD == "alphazero":
        parser.add_argument("--executor", default="serial", help=f"{EXECUTORS} (default: serial)")
    kind.add_arguments(parser.add_argument_group(f"settings of --method {kind.METHOD}"))
    return parser


def _requested(options: argparse.Namespace, kind: type[RunSettings]) -> dict[str, Any]:
    """Return the settings of the command line and the file."""
    if options.run is None and options.resume is None:
        raise ValueError("expected --run FOLDER to begin a run, or --resume FOLDER to continue one")
    typed = kind.from_options(options)
    if options.config is None:
        return typed
    return read_config(options.config, kind.METHOD, typed).settings | typed


def _train(folder: Path, trusted: Sequence[str], options: argparse.Namespace) -> int:
    from tokaido_env.learn import run

    settings = load_settings(folder)
    is_first, stopped_by = True, 0
    with ExitStack() as stack:
        bar = stack.enter_context(run_bar(settings.length, settings.LENGTH))
        executor = None
        if "executor" in options:
            executor = stack.enter_context(open_executor(options.executor))

        def report(progress: Progress) -> None:
            nonlocal is_first, stopped_by
            stopped_by = progress.signal
            if is_first:
                is_first = False
                _print_length(settings, progress.done)
            if progress.note:
                bar.add_line(progress.note)
            if progress.is_new and progress.rating is not None:
                bar.add_rating(progress.done, progress.rating, progress.is_best)
            bar.update(progress.done, _format_figures(progress.figures), progress.rating)

        complete = run.train(folder, report, trusted, executor, options.checkpoint_minutes)
    if not complete:
        again = f"{program('train')} --resume {quote(str(folder))}"
        print(f"Interrupted and saved. Continue with: {again}")
        return 128 + stopped_by  # as shells report it: 130 after Ctrl-C, 143 after SIGTERM
    best = "the highest rating" if settings.rate_every else "the same: without ratings"
    print(f"policies  {folder}/last, {folder}/best ({best})")
    logs = quote(str(folder / "tb"))
    print(f"logs      tensorboard --logdir {logs}, and {folder}/metrics.jsonl")
    return 0


def _print_length(settings: RunSettings, done: int) -> None:
    """Report a length that is rounded up, or already reached."""
    unit, asked = settings.LENGTH, getattr(settings, settings.LENGTH)
    if done >= settings.length:
        print(f"nothing to do: {done:,} {unit} are done")
    elif settings.length != asked:
        print(f"{settings.length:,} {unit}: {asked:,} rounded up to whole updates")


def _format_figures(figures: Mapping[str, Any]) -> str:
    formats = _PROGRESS_FORMATS.items()
    return ", ".join(form.format(figures[name]) for name, form in formats if name in figures)
