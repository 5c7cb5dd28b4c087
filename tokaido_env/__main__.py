"""The command line: `tokaido COMMAND`, or `python -m tokaido_env COMMAND`."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cyclopts import App

    from tokaido_env.cli.command import Command


class Entry(NamedTuple):
    """Entry of the list of commands.

    Attributes:
        place: module of the package `cli`, and the name of the command in it.
        summary: one line for the list.
    """

    place: str
    summary: str


GROUPS = {
    "Play and look": {
        "play": Entry("play:main", "play against an agent, in a browser or the terminal"),
        "replay": Entry(
            "replay:main", "verify recorded games and print them, or write a page or a GIF"
        ),
        "review": Entry(
            "review:main", "report the mistakes in recorded games and the effect of chance"
        ),
        "agents": Entry("listing:agents", "list the agents"),
        "boards": Entry("listing:boards", "list the boards"),
    },
    "Train": {"train": Entry("train:main", "train an agent by self-play")},
    "Measure": {
        "evaluate": Entry("evaluate:main", "play matches between agents"),
        "rate": Entry("ladders:rate", "rate an agent on a ladder"),
        "generalise": Entry("generalise:main", "measure an agent on unseen boards"),
        "exploit": Entry(
            "exploit:main", "measure how far an opponent that knows an agent beats it"
        ),
        "regret": Entry("regret:main", "measure the loss of decisions in rolled-out positions"),
        "ladder": Entry("ladders:ladder", "build a ladder"),
        "verify": Entry("verify:main", "check a result of rate or generalise by its records"),
        "text-play": Entry("text:play", "play games of a language model against an agent"),
        "text-positions": Entry("text:positions", "measure the regret of a language model"),
    },
    "Data": {
        "export": Entry("export:main", "write recorded games as a dataset"),
        "features": Entry("features:main", "print the layout of the observation"),
        "actions": Entry("actions:main", "print the actions and the outcomes of chance"),
    },
    "Maintenance": {"warmup": Entry("warmup:main", "compile all kernels in advance")},
}
"""The commands, by group."""

COMPLETION = "--install-completion"

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    Characters that the console cannot show are replaced. A closed pipe, as of `tokaido … | head`,
    ends the command silently.
    """
    try:  # Ctrl-C may come while modules load
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        print(f"{program()}: standard output: {error.strerror}", file=sys.stderr)
        return 1


def _run(arguments: list[str]) -> int:
    from tokaido_env.cli.command import USAGE, program
    from tokaido_env.core.arguments import unknown_name

    name, *rest = arguments or [""]
    if name in COMMANDS:
        return load(name)(rest)
    if name.startswith("-"):
        app(loaded=name == COMPLETION)(arguments, result_action="return_value")
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
    module, attribute = COMMANDS[name].place.split(":")
    found: Command = getattr(importlib.import_module(f"tokaido_env.cli.{module}"), attribute)
    return found


def app(*, loaded: bool = False) -> App:
    """Return the parser of all commands, for help, version and shell completion.

    Args:
        loaded: whether to load the commands with their options; the help needs only the summaries.
    """
    from cyclopts import App, Group

    from tokaido_env import __version__
    from tokaido_env.cli.command import program

    made = App(
        "tokaido" if loaded else program(),
        "Tokaido Duo for research.",
        version=f"tokaido_env {__version__}",
    )
    made.register_install_completion_command(COMPLETION, help="install completion in your shell")
    for order, (title, entries) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=order)
        for name, entry in entries.items():
            if loaded:
                command = load(name).app()
                command.group = (group,)
                made.command(command, name)
            else:
                made.command(entry.place, name, group=group, help=entry.summary)
    return made


if __name__ == "__main__":
    sys.exit(main())
