"""The command line: `tokaido COMMAND`, or `python -m tokaido_env COMMAND`."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING

from tokaido_env import ends_by_signal

if TYPE_CHECKING:
    from cyclopts import App

    from tokaido_env.cli.command import Command


GROUPS = {
    "Play and look": {
        "play": ("play:main", "play against an agent, in a browser or the terminal"),
        "replay": ("replay:main", "verify and print recorded games, or write a page or a GIF"),
        "review": ("review:main", "report mistakes in recorded games, and the effect of chance"),
        "agents": ("listing:agents", "list the agents"),
        "boards": ("listing:boards", "list the boards"),
    },
    "Train": {"train": ("train:main", "train an agent by self-play")},
    "Measure": {
        "evaluate": ("evaluate:main", "play matches between agents"),
        "rate": ("ladders:rate", "rate an agent on a ladder"),
        "generalise": ("generalise:main", "measure an agent on unseen boards"),
        "regret": ("regret:main", "measure the loss of decisions in rolled-out positions"),
        "ladder": ("ladders:ladder", "build a ladder"),
    },
    "Data": {
        "export": ("export:main", "write recorded games as a dataset"),
        "features": ("features:main", "print the layout of the observation"),
        "actions": ("actions:main", "print the actions and the outcomes of chance"),
    },
    "Maintenance": {"warmup": ("warmup:main", "compile kernels in advance")},
}
"""By group: the name of each command, its place in the package `cli`, and its summary."""

COMMANDS = {name: place for group in GROUPS.values() for name, (place, _) in group.items()}
COMPLETION = "--install-completion"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    Characters that the console cannot show are replaced. A closed pipe, as of `tokaido … | head`,
    ends the command silently.
    """
    try:  # Ctrl-C may come while modules load
        if ends_by_signal and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, _end)
        from tokaido_env.cli.command import CLOSED_PIPE, program
        from tokaido_env.core.arguments import SIMILAR

        for stream, errors in (
            (sys.stdin, "replace"),
            (sys.stdout, SIMILAR),
            (sys.stderr, SIMILAR),
        ):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=errors)
        try:
            return _run(sys.argv[1:] if arguments is None else list(arguments))
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        print("tokaido: interrupted", file=sys.stderr)
        return 130
    except OSError as error:  # of standard output; commands report those of files
        # Discard what cannot be printed, because Python would report it at exit.
        with suppress(AttributeError, io.UnsupportedOperation):  # none, or one without a file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        print(f"{program()}: standard output: {error.strerror}", file=sys.stderr)
        return 1


def _end(number: int, frame: object) -> None:
    """End on Ctrl-C while modules load: Python ignores exceptions in callbacks of imports."""
    print("tokaido: interrupted", file=sys.stderr, flush=True)
    os._exit(130)


def _run(arguments: list[str]) -> int:
    from tokaido_env.cli.command import USAGE, parse, program
    from tokaido_env.core.arguments import unknown_name

    name, *rest = arguments or [""]
    if name in COMMANDS:
        found = load(name)
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return found(rest)
    if name in ("-h", "--help", "--version", COMPLETION):
        from cyclopts import CycloptsError
        from cyclopts.completion import ShellDetectionError

        try:
            parse(app(loaded=name == COMPLETION), arguments)
        except (CycloptsError, ShellDetectionError) as error:
            print(f"{program()}: {name}: {error}", file=sys.stderr)
            return USAGE
        return 0
    if not name:
        with redirect_stdout(sys.stderr):
            app().help_print([])
        return USAGE
    problem = unknown_name("command", name, COMMANDS)
    print(f"{program()}: {problem}; {program()} --help lists all commands", file=sys.stderr)
    return USAGE


def load(name: str) -> Command:
    """Return the command with a name; only now its module is loaded."""
    module, attribute = COMMANDS[name].split(":")
    found: Command = getattr(importlib.import_module(f"tokaido_env.cli.{module}"), attribute)
    return found


def app(*, loaded: bool = False) -> App:
    """Return the parser of all commands, for help, version and shell completion.

    Args:
        loaded: whether to load the commands with their options; the help needs only the summaries.
    """
    from cyclopts import App, Group

    from tokaido_env import __version__
    from tokaido_env.cli.command import HelpFormatter, program

    made = App(
        "tokaido" if loaded else program(),
        "Tokaido Duo for research.",
        version=f"tokaido_env {__version__}",
        help_formatter=HelpFormatter(),
    )
    made.register_install_completion_command(COMPLETION, help="install completion in your shell")
    for order, (title, entries) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=order)
        for name, (place, summary) in entries.items():
            if loaded:
                command = load(name).app()
                command.group = (group,)
                made.command(command, name)
            else:
                made.command(place, name, group=group, help=summary)
    return made


if __name__ == "__main__":
    sys.exit(main())
