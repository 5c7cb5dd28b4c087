"""Checks for optional packages, with errors that give the command to install them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PROJECT = "tokaido-env"

_ROOT = Path(__file__).resolve().parents[2]


class ExtraError(ModuleNotFoundError):
    """A package of an extra is not installed; the message gives the command to install it."""


def extra_error(subject: str, module: str | None, extra: str) -> ExtraError:
    """Return the error for a package that is not installed.

    Args:
        subject: first words of the message, such as "figures need".
        module: the import name of the package; None if unknown.
        extra: the extra of this project that contains it.
    """
    name = extra if module is None else module.partition(".")[0]
    return ExtraError(f"{subject} {name}: {install_command(extra)}", name=module)


def require_extra(subject: str, extra: str, *modules: str) -> None:
    """Check that modules, by import name, are installed, without importing them.

    Raises:
        ExtraError: for the first one missing; it begins with `subject` and names the extra.
    """
    for module in modules:
        if find_spec(module.partition(".")[0]) is None or find_spec(module) is None:
            raise extra_error(subject, module, extra)


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra, of this checkout or the package."""
    if not (_ROOT / "pyproject.toml").is_file():
        return f"pip install '{PROJECT}[{extra}]'"
    command = f"pip install '.[{extra}]'"
    return command if Path.cwd() == _ROOT else f"{command} in {_ROOT}"
