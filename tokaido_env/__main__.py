"""The command line: `tokaido COMMAND`, or `python -m tokaido_env COMMAND`."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

from tokaido_env import __version__
from tokaido_env.cli.command import CLOSED_PIPE, program
from tokaido_env.core.arguments import SIMILAR, unknown_name

COMMANDS = {
    "play": "play against an agent, in a browser or the terminal",
    "review": "report the mistakes in recorded games and the effect of chance",
    "replay": "verify recorded games and print them, or write a page or a GIF",
    "export": "write recorded games as a dataset",
    "features": "print the layout of the observation",
    "actions": "print the actions and the outcomes of chance",
    "train": "train an agent by self-play",
    "evaluate": "measure agents: matches, rate, ladder, exploit, generalise",
    "text": "measure a language model: play, positions",
    "warmup": "compile all kernels in advance",
}
"""Summary of each command; `cli/COMMAND.py` has its `main`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    Characters that the console cannot show are replaced. A closed pipe, as of `tokaido … | head`,
    ends the command silently.
    """
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, SIMILAR), (sys.stderr, SIMILAR)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:  # of standard output; commands report those of files
        # Discard what cannot be printed, because Python would report it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        print(f"{program()}: standard output: {error.strerror}", file=sys.stderr)
        return 1


def _run(arguments: Sequence[str] | None) -> int:
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name in ("", "-h", "--help"):
        print(usage(), file=sys.stdout if name else sys.stderr)
        return 0 if name else 2
    if name == "--version":
        print(f"tokaido_env {__version__}")
        return 0
    if name not in COMMANDS:
        problem = unknown_name("command", name, COMMANDS)
        print(f"{program()}: {problem}; {program()} --help lists all commands", file=sys.stderr)
        return 2
    module = importlib.import_module(f"tokaido_env.cli.{name}")
    status: int = module.main(rest)
    return status


def usage() -> str:
    """Return the usage text: one line per command."""
    lines = [f"  {name:<9} {summary}" for name, summary in COMMANDS.items()]
    title = f"usage: {program()} COMMAND …\n\nTokaido Duo for research.\n"
    more = f"Run {program()} COMMAND --help for its options, {program()} --version for the version."
    return "\n".join([title, *lines, "", more])


if __name__ == "__main__":
    sys.exit(main())
