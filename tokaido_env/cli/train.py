"""`tokaido train`: train an agent by self-play."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, fields, make_dataclass
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import Group, Parameter

from tokaido_env.arena.executors import open_executor
from tokaido_env.cli import command as cli
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.learn.run_folder import extended, load_ladder, load_settings, read_config
from tokaido_env.learn.settings import METHODS, RunSettings, TdSettings
from tokaido_env.report.curve import curve_line, write_curve
from tokaido_env.report.progress import run_bar

if TYPE_CHECKING:
    from tokaido_env.learn.run import Progress

_NEEDS = ("torch", "tensorboard", "safetensors")

_PROGRESS_FORMATS = {
    "decisions": "{:,} decisions",
    "loss": "loss {:.4f}",
    "promotion/score": "scored {:.1%} in the promotion match",
}
"""The figures of a progress line, as far as a method has them."""


WHERE = Group("Where", sort_key=0, validator=cli.only_one)


@cli.options
class Train:
    """Options of `tokaido train` for all methods; the docstring of each field is its help."""

    method: Literal["td", "alphazero"] | None = None
    """td: TD(lambda) on afterstates; alphazero: self-play by search [default: of the run or file,
    else td]"""
    run: Annotated[cli.Folder | None, Parameter(group=WHERE)] = None
    """folder of a new run"""
    resume: Annotated[cli.Folder | None, Parameter(group=WHERE)] = None
    """folder of a run to continue or extend"""
    config: cli.Input | None = None
    """settings file, in the format of a run's config.toml"""
    executor: Annotated[cli.ExecutorSpec, Parameter(show_default="serial; only of alphazero")] = (
        "serial"
    )


def _with_settings() -> type[Train]:
    """Return the options with the settings of all methods: None for what the user has not set."""
    owners: dict[str, list[type[RunSettings]]] = {}
    for kind in METHODS.values():
        for one in fields(kind):
            owners.setdefault(one.name, []).append(kind)
    settings = [(name, _option(name, kinds), field(default=None)) for name, kinds in owners.items()]
    return make_dataclass("TrainOptions", settings, bases=(Train,), kw_only=True)


def _option(name: str, kinds: Sequence[type[RunSettings]]) -> Any:
    """Return the type of an option for a setting of some methods."""
    methods = [kind.METHOD for kind in kinds]
    own = [next(one for one in fields(kind) if one.name == name) for kind in kinds]
    names = "all methods" if len(kinds) == len(METHODS) else " and ".join(methods)
    return Annotated[
        get_type_hints(kinds[0])[name] | None,
        Parameter(
            group=Group(f"Settings of {names}", sort_key=5 - len(kinds)),
            help=_by_method(methods, [one.metadata["help"] for one in own], ": ", "; "),
            show_default=_by_method(methods, [_default_of(one.default) for one in own], " ", ", "),
            choices=own[0].metadata["allowed"].choices or None,
        ),
    ]


def _by_method(methods: Sequence[str], texts: Sequence[str], colon: str, comma: str) -> str:
    """Return the text of all methods, or the text of each."""
    if len(set(texts)) == 1:
        return texts[0]
    return comma.join(f"{method}{colon}{text}" for method, text in zip(methods, texts, strict=True))


def _default_of(default: object) -> str:
    return f"{default:,}" if isinstance(default, int) else str(default) or "empty"


def _settings_class(options: Train) -> type[RunSettings]:
    """Return the settings class of the method: of the option, the run or the file."""
    method: str | None = options.method
    if options.resume is not None:
        own = load_settings(options.resume).METHOD
        if method not in (None, own):
            raise ValueError(
                f"--method: expected {own}, the method of {options.resume}, got {method}"
            )
        method = own
    elif method is None and options.config is not None:
        method = read_config(options.config).method
    return METHODS[method or TdSettings.METHOD]


@cli.command("train", _with_settings())
def main(options: Train) -> int:
    """Train an agent by self-play.

    A run takes three minutes on two cores. It saves checkpoints: --resume continues it after Ctrl-C
    or a kill, or extends it. Settings on the command line override those of the file.

    Examples:
        tokaido train --run runs/first
        tokaido train --resume runs/first --updates 600
        tokaido train --run runs/second --config my.toml
        tokaido train --run runs/zero --method alphazero --executor processes
    """
    # Set before PyTorch is loaded: its idle threads must not spin, as the games need the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same bytes on a GPU
    kind = _settings_class(options)
    requested = _requested(options, kind)
    require_extra("training needs", "train", *_NEEDS)  # before a folder is created
    folder = options.resume or options.run
    if folder is None:
        raise cli.UsageError(
            "expected --run FOLDER to begin a run, or --resume FOLDER to continue one"
        )
    if options.resume is not None:
        settings = extended(options.resume, requested)
    else:
        from tokaido_env.learn import run

        settings = kind(**requested)
        run.begin(folder, settings)
    return _train(folder, settings, options)


def _requested(options: Train, kind: type[RunSettings]) -> dict[str, Any]:
    """Return the settings of the command line and the file."""
    typed = {}
    for name in dict.fromkeys(name for one in METHODS.values() for name in one.defaults()):
        if (value := getattr(options, name)) is None:
            continue
        if name not in kind.defaults():
            option = f"--{name.replace('_', '-')}"
            raise cli.UsageError(f"{option}: expected a setting of {kind.METHOD}, see --help")
        typed[name] = kind.checked(name, value)
    if options.executor != "serial" and kind.METHOD != "alphazero":
        raise cli.UsageError(f"--executor: expected it with alphazero, got {kind.METHOD}")
    if options.config is None:
        return typed
    return read_config(options.config, kind.METHOD).settings | typed


def _train(folder: Path, settings: RunSettings, options: Train) -> int:
    from tokaido_env.learn import run

    stopped_by = 0
    with ExitStack() as stack:
        bar = stack.enter_context(run_bar(settings.length, settings.LENGTH))
        executor = stack.enter_context(open_executor(options.executor))

        def report(progress: Progress) -> None:
            nonlocal stopped_by
            stopped_by = progress.signal
            if progress.done >= progress.total and not progress.figures:
                print(f"nothing to do: {progress.done:,} {progress.unit} are done")
            if progress.is_new and progress.rating is not None:
                bar.add_rating(progress.done, progress.rating, progress.is_best)
            bar.update(progress.done, _format_figures(progress.figures), progress.rating)

        complete = run.train(folder, report, executor, settings)
    if not complete:
        again = f"tokaido train --resume {quote(str(folder))}"
        print(f"Interrupted and saved. Continue with: {again}")
        return 128 + stopped_by  # as shells report it: 130 after Ctrl-C, 143 after SIGTERM
    ladder = load_ladder(settings)
    best = "the same: the run has no ratings" if ladder is None else "the newest not shown weaker"
    print(f"policies  {folder}/last, {folder}/best ({best})")
    logs = quote(str(folder / "tb"))
    print(f"logs      tensorboard --logdir {logs}, and {folder}/metrics.jsonl")
    if ladder is None and settings.rate_every:
        print(f"Elo       none: no ladder is for {settings.board}; --ladder FILE rates on yours")
    elif ladder is not None:
        print(f"Elo       {curve_line(folder)}")
        if find_spec("matplotlib"):
            print(f"curve     {write_curve(folder, ladder)}")
    return 0


def _format_figures(figures: Mapping[str, Any]) -> str:
    formats = _PROGRESS_FORMATS.items()
    return ", ".join(form.format(figures[name]) for name, form in formats if name in figures)
