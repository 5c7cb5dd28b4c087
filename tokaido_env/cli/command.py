"""What all commands share: their names in messages and usages, errors, and exit status."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec

INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C ended

Arguments = ParamSpec("Arguments")


def program(command: str = "") -> str:
    """Return what to type for a command of ours, as this process was started; "" for the program.

    The same code runs as `tokaido COMMAND`, as `python -m tokaido_env COMMAND`, and for some
    commands as `python COMMAND.py` in a checkout.
    """
    script = Path(sys.argv[0])
    if command and script.name == f"{command}.py":
        return f"python {script.name}"
    is_module = script.name == "__main__.py" and script.parent.name == "tokaido_env"
    return f"{'python -m tokaido_env' if is_module else 'tokaido'} {command}".rstrip()


def parser_of(
    command: str, docstring: str | None, parents: Sequence[argparse.ArgumentParser] = ()
) -> argparse.ArgumentParser:
    """Return a parser for a command, with the examples of its module as the user would call them.

    Args:
        command: its name.
        docstring: of its module.
        parents: parsers whose options it has too.
    """
    return argparse.ArgumentParser(
        program(command),
        description=(docstring or "").replace(f"tokaido {command}", program(command)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=parents,
    )


def reports_errors(
    command: str, *kinds: type[Exception], interrupted: str = "interrupted"
) -> Callable[[Callable[Arguments, int]], Callable[Arguments, int]]:
    """Make the `main` of a command print an error as one line and return the exit status.

    Args:
        command: its name.
        kinds: errors that the user can cause, besides wrong values, files and missing packages.
        interrupted: what it prints after Ctrl-C.
    """
    errors: tuple[type[Exception], ...] = (ValueError, OSError, ModuleNotFoundError, *kinds)

    def decorate(main: Callable[Arguments, int]) -> Callable[Arguments, int]:
        @functools.wraps(main)
        def reporting(*arguments: Arguments.args, **named: Arguments.kwargs) -> int:
            try:
                return main(*arguments, **named)
            except errors as error:
                print(f"{command}: {error}", file=sys.stderr)
                return 1
            except KeyboardInterrupt:
                print(f"{command}: {interrupted}", file=sys.stderr)
                return INTERRUPTED

        return reporting

    return decorate
