"""How the user calls this program: messages and usages name it so."""

from __future__ import annotations

import sys
from pathlib import Path


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


def described(docstring: str | None, command: str) -> str:
    """Return the docstring of a command's module with the examples as the user would call them."""
    return (docstring or "").replace(f"tokaido {command}", program(command))
