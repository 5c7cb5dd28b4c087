"""Argument parser, error reports and exit statuses of all commands."""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

from tokaido_env.core.arguments import parse_seed, repr_short, short_path, unknown_name
from tokaido_env.files import PIPE, expand_home, file_kind, write_text

INTERRUPTED = 130  # exit status after Ctrl-C, as shells report it
CLOSED_PIPE = 141  # exit status after SIGPIPE, likewise

_LIBRARIES = ("gymnasium", "minari", "h5py", "pyarrow", "matplotlib", "PIL", "ray", "safetensors")
"""Libraries with errors of their own classes, which the user can cause."""

Arguments = ParamSpec("Arguments")


def program(command: str = "") -> str:
    """Return the words that call a command the way this process was started.

    The same code runs as `tokaido COMMAND`, as `python -m tokaido_env COMMAND`, and for some
    commands as `python COMMAND.py` in a checkout.

    Args:
        command: the command, "evaluate rate" for a subcommand; "" for the program alone.
    """
    script, (name, _, subcommand) = Path(sys.argv[0]), command.partition(" ")
    if name and script.name == f"{name}.py":
        return f"python {script.name} {subcommand}".rstrip()
    is_module = script.name == "__main__.py" and script.parent.name == "tokaido_env"
    return f"{'python -m tokaido_env' if is_module else 'tokaido'} {command}".rstrip()


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that keeps the lines of the description and ends each option with its default.

    An option with the default None says in its own help text what happens without it.
    """

    def _get_help_string(self, action: argparse.Action) -> str:
        text, default = action.help or "", action.default
        has_default = action.option_strings and default not in (None, argparse.SUPPRESS)
        if not has_default or "(default: " in text:
            return text
        if default is False or default == []:
            return f"{text} (default: {'off' if default is False else 'none'})"
        return f"{text} (default: %(default)s)"


class CommandParser(argparse.ArgumentParser):
    """Argument parser with errors of one line, nearest known names, and defaults in its help.

    Args:
        command: its name, "evaluate rate" for a subcommand.
        description: a module's or function's docstring; the calls of `tokaido COMMAND` in it become
            calls as this process was started.
        parents: parsers with more options of the command.
        add_help: whether to add the option --help; a parent has none.

    An argument's `type` may be a name of `TYPES`.
    """

    def __init__(
        self,
        command: str,
        description: str | None,
        parents: Sequence[argparse.ArgumentParser] = (),
        *,
        add_help: bool = True,
    ) -> None:
        self._command = command.partition(" ")[0]
        super().__init__(
            program(command),
            description=inspect.cleandoc(description or "").replace(
                f"tokaido {self._command}", program(self._command)
            ),
            formatter_class=_HelpFormatter,
            parents=parents,
            allow_abbrev=False,
            add_help=add_help,
        )
        for name, convert in TYPES.items():
            self.register("type", name, convert)

    def add_record_file(self) -> None:
        """Add the arguments of a record file, and of the board of its games."""
        self.add_argument("file", type="input", help="record file, JSON Lines")
        board = "board file of the games (default: the built-in or procedural board that they name)"
        self.add_argument("--board", type="board", help=board)

    def error(self, message: str) -> NoReturn:
        """Print an error in one line and exit with status 2."""
        self.exit(2, f"{self._command}: {self._reworded(message)}\n")

    def _reworded(self, message: str) -> str:
        """Return a message of argparse as `NAME: expected X, got Y`, with the remedy."""
        remedy = f"{self.prog} --help lists all arguments"
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            name = unknown.split()[0].partition("=")[0]
            if not name.startswith("-"):
                return f"unexpected argument {repr_short(name)}: {remedy}"
            return f"{unknown_name('option', name, self._option_string_actions)}; {remedy}"
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            return f"{missing}: expected a value, got none: {remedy}"
        message = message.removeprefix("argument ")
        message = re.sub("invalid int value: ", "expected an integer, got ", message)
        message = re.sub("invalid float value: ", "expected a number, got ", message)
        return re.sub(
            r"invalid choice: (.*) \(choose from (.*)\)$", r"expected one of \2, got \1", message
        )


# Paths of options: ~ is the home folder, and - standard input or output

_inputs: dict[str, Path] = {}  # copies of what comes through pipes, by the texts of the options
_outputs: dict[str, Path] = {}  # what is to be written to pipes


def home_path(text: str) -> Path:
    """Return the path of a folder, or of a file that needs its folder."""
    return Path(expand_home(text))


def file_path(text: str) -> Path:
    """Return the path of a file that cannot be a pipe."""
    if _is_pipe(text):
        raise argparse.ArgumentTypeError(f"expected a file, got the pipe {text}")
    return home_path(text)


def read_path(text: str, suffix: str = "") -> Path:
    """Return the path of a file to read: of a pipe that of a copy, to be read more than once."""
    if not _is_pipe(text):
        return home_path(text)
    if text not in _inputs:
        _inputs[text] = _temporary(suffix)
        source = nullcontext(sys.stdin.buffer) if text == "-" else home_path(text).open("rb")
        with source as pipe, _inputs[text].open("wb") as copy:
            shutil.copyfileobj(pipe, copy)
    return _inputs[text]


def board_name(text: str) -> str:
    """Return the name of a board, or the path of a board file as `read_path` does."""
    return str(read_path(text, ".toml")) if _is_pipe(text) else expand_home(text)


def write_path(text: str) -> Path:
    """Return the path of a file to write; a pipe gets what is written at the end of the command.

    With standard output (-), the command prints all else on standard error.
    """
    if text == "-":
        sys.stdout = sys.stderr
    if not _is_pipe(text):
        return home_path(text)
    if text not in _outputs:
        _outputs[text] = _temporary()
    return _outputs[text]


TYPES: dict[str, Callable[[str], Any]] = {
    "path": home_path,
    "file": file_path,
    "input": read_path,
    "output": write_path,
    "board": board_name,
    "seed": parse_seed,
}


def _is_pipe(text: str) -> bool:
    return text == "-" or file_kind(home_path(text)) == PIPE


def _temporary(suffix: str = "") -> Path:
    handle, name = tempfile.mkstemp(suffix, "tokaido-")
    os.close(handle)
    return Path(name)


@contextmanager
def _pipes() -> Iterator[None]:
    """Write to the pipes of a command's options when it has ended."""
    try:
        with redirect_stdout(sys.stdout):  # `write_path` may change it
            yield
        for text, path in _outputs.items():
            if not path.stat().st_size:
                continue
            to = nullcontext(sys.stdout.buffer) if text == "-" else home_path(text).open("wb")
            with to as pipe:
                pipe.write(path.read_bytes())
    finally:
        for path in (*_inputs.values(), *_outputs.values()):
            path.unlink(missing_ok=True)
        _inputs.clear()
        _outputs.clear()


def write_json(path: Path | None, data: object, **options: Any) -> None:
    """Write data as JSON, whole or not at all; without a path, do nothing.

    Args:
        path: the file.
        data: plain JSON types.
        options: more of `json.dumps`.
    """
    if path is not None:
        write_text(path, json.dumps(data, indent=1, **options) + "\n")


def _one_line(error: Exception) -> str:
    """Return the message of an error; of the system's on a file, `FILE: problem`."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{short_path(error.filename)}: {error.strerror}"
    return " ".join(as_given(text).splitlines())


def as_given(text: str) -> str:
    """Return a text with the pipes that the options name, instead of their temporary files."""
    for given, path in (_inputs | _outputs).items():
        text = text.replace(str(path), given)
    return text


def reports_errors(
    command: str, *kinds: type[Exception], interrupted: str = "interrupted"
) -> Callable[[Callable[Arguments, int]], Callable[Arguments, int]]:
    """Return a decorator for the `main` of a command that prints an error as one line.

    An error ends the command with status 1, Ctrl-C with status 130.

    Args:
        command: its name.
        kinds: errors that the user can cause, besides wrong values, files and missing packages.
        interrupted: the text to print after Ctrl-C.
    """
    errors: tuple[type[Exception], ...] = (ValueError, OSError, ModuleNotFoundError, *kinds)

    def decorate(main: Callable[Arguments, int]) -> Callable[Arguments, int]:
        @functools.wraps(main)
        def reporting(*arguments: Arguments.args, **named: Arguments.kwargs) -> int:
            with _pipes():
                try:
                    return main(*arguments, **named)
                except BrokenPipeError:
                    raise  # `__main__` ends the command silently
                except Exception as error:
                    library = type(error).__module__.partition(".")[0]
                    if not isinstance(error, errors) and library not in _LIBRARIES:
                        raise
                    print(f"{command}: {_one_line(error)}", file=sys.stderr)
                    return 1
                except KeyboardInterrupt:
                    print(f"{command}: {interrupted}", file=sys.stderr)
                    return INTERRUPTED

        return reporting

    return decorate
