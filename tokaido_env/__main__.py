"""The command line: `tokaido COMMAND`, or `python -m tokaido_env COMMAND`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from tokaido_env import __version__
from tokaido_env.cli.program import program


class Command(NamedTuple):
    """A command: the file in `tools` whose `main` runs it, and what it does."""

    module: str
    summary: str


COMMANDS = {
    "play": Command("play", "play against an agent, in a browser or the terminal"),
    "review": Command("review", "tell what decisions of recorded games lost, and what chance gave"),
    "replay": Command("replay", "print recorded games move by move, verified; as a page or a GIF"),
    "export": Command("export", "write recorded games as a dataset"),
    "features": Command("features", "print the layout of the observation"),
    "actions": Command("actions", "print the actions and the outcomes of chance"),
    "train": Command("train", "train a self-play agent"),
    "evaluate": Command("evaluate", "measure agents: matches, rate, ladder, exploit, generalise"),
    "bench": Command("bench", "measure the speeds of this machine"),
    "certify": Command("certify", "run the conformance tests of all installed libraries"),
    "warmup": Command("warmup", "compile what is used, before it is used"),
}


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
    module = importlib.import_module(f"tokaido_env.cli.{COMMANDS[name].module}")
    status: int = module.main(rest)
    return status


def usage() -> str:
    """Return all commands with a line for each."""
    lines = [f"  {name:<9} {command.summary}" for name, command in COMMANDS.items()]
    title = f"usage: {program()} COMMAND …\n\nTokaido Duo for research.\n"
    more = f"{program()} COMMAND --help tells more of one, {program()} --version which this is."
    return "\n".join([title, *lines, "", more])


if __name__ == "__main__":
    sys.exit(main())
