"""The command line: `tokaido COMMAND`, or `python -m tokaido_env COMMAND`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group

from tokaido_env import __version__
from tokaido_env.cli import command as cli

CLOSED_PIPE = 141  # exit status after SIGPIPE, as shells report it

HELP = """Play, train and measure agents of Tokaido Duo.

Begin with `tokaido play`, or train an agent in three minutes and rate it:
`tokaido train --run runs/first`, then `tokaido rate policy:runs/first`.

All pages: https://github.com/tokaido-env/tokaido-env
"""

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    An error of the user is printed as one line. A closed pipe, as of `tokaido … | head`, ends the
    command silently.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for consoles without all characters
    cli.start(words if words and words[0] in COMMANDS else ["tokaido"])
    try:
        status = app(summaries=words[:1] in ([], ["-h"], ["--help"]))(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status or 0
    except (CycloptsError, cli.UsageError) as error:
        return _failed(error, cli.USAGE)
    except KeyboardInterrupt:
        return _failed("interrupted", cli.INTERRUPTED)
    except BrokenPipeError:  # Python would report it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except (ValueError, OSError, ModuleNotFoundError, RuntimeError) as error:
        return _failed(error, 1)


def _failed(error: object, status: int) -> int:
    cli.note(" ".join(str(error).split()))
    return status


def app(*, summaries: bool = False) -> App:
    """Return the parser of all commands; a command's module is loaded when it is looked up.

    Args:
        summaries: whether it only lists the commands, each with its summary instead of its help.
    """
    made = App(
        "tokaido",
        HELP,
        version=f"tokaido_env {__version__}",
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    made.register_install_completion_command(help="install completion in your shell")
    for order, (title, entries) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=order)
        for name, (place, summary) in entries.items():
            shown = summary if summaries else None
            made.command(f"tokaido_env.cli.{place}", name, group=group, help=shown)
    return made


if __name__ == "__main__":
    sys.exit(main())
