"""The command line: `tokaido COMMAND`, or `python -m tokaido_env COMMAND`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from tokaido_env import __version__
from tokaido_env.cli.command import program

COMMANDS = {
    "play": "play against an agent, in a browser or the terminal",
    "review": "tell what decisions of recorded games lost, and what chance gave",
    "replay": "print recorded games move by move, verified; as a page or a GIF",
    "export": "write recorded games as a dataset",
    "features": "print the layout of the observation",
    "actions": "print the actions and the outcomes of chance",
    "train": "train a self-play agent",
    "evaluate": "measure agents: matches, rate, ladder, exploit, generalise",
    "bench": "measure the speeds of this machine",
    "certify": "run the conformance tests of all installed libraries",
    "warmup": "compile what is used, before it is used",
}
"""What each command does; its `main` is in the file of its name in `cli`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name in ("", "-h", "--help"):
        print(usage(), file=sys.stdout if name else sys.stderr)
        return 0 if name else 2
    if name == "--version":
        print(f"tokaido_env {__version__}")
        return 0
    if name not in COMMANDS:
        nearest = get_close_matches(name, COMMANDS, n=1, cutoff=0)[0]
        print(
            f"{program()}: unknown command {name[:40]!r}: the nearest is {nearest!r}, "
            f"{program()} --help lists all",
            file=sys.stderr,
        )
        return 2
    module = importlib.import_module(f"tokaido_env.cli.{name}")
    status: int = module.main(rest)
    return status


def usage() -> str:
    """Return all commands with a line for each."""
    lines = [f"  {name:<9} {summary}" for name, summary in COMMANDS.items()]
    title = f"usage: {program()} COMMAND …\n\nTokaido Duo for research.\n"
    more = f"{program()} COMMAND --help tells more of one, {program()} --version which this is."
    return "\n".join([title, *lines, "", more])


if __name__ == "__main__":
    sys.exit(main())
