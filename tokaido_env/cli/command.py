"""Declared commands: options as dataclasses, which cyclopts parses; errors and exit statuses.

docs/dev/commands.md shows how to declare a command.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import (
    IO,
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from cyclopts import App, ArgumentCollection, CycloptsError, Group, Parameter
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)
from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel
from cyclopts.help.specs import ColumnSpec, DescriptionRenderer, NameRenderer

from tokaido_env.core.arguments import check_seed, repr_short, short_path, unknown_name
from tokaido_env.files import PIPE, expand_home, file_kind, write_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

INTERRUPTED = 130  # exit status after Ctrl-C, as shells report it
CLOSED_PIPE = 141  # exit status after SIGPIPE, likewise
USAGE = 2  # exit status of wrong arguments

_LIBRARIES = ("gymnasium", "minari", "h5py", "pyarrow", "matplotlib", "PIL", "ray", "safetensors")
"""Libraries with errors of their own classes, which the user can cause."""

_DASH = "\0-"  # stands for -, which cyclopts takes for an option
_KINDS = {int: "an integer", float: "a number", bool: "no value, or true or false"}

_COLUMNS_FROM = 80  # width of a terminal, for help with a column of names

T = TypeVar("T")


class UsageError(Exception):
    """Wrong arguments, which the types of the options allow; the status is 2."""


def program(command: str = "") -> str:
    """Return the words that call a command the way this process was started.

    The same code runs as `tokaido COMMAND`, as `python -m tokaido_env COMMAND`, and for some
    commands as `python COMMAND.py` in a checkout.
    """
    script = Path(sys.argv[0])
    if command and script.name == f"{command}.py":
        return f"python {script.name}"
    is_module = script.name == "__main__.py" and script.parent.name == "tokaido_env"
    return f"{'python -m tokaido_env' if is_module else 'tokaido'} {command}".rstrip()


# Declarations


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def options(kind: type[T]) -> type[T]:
    """Declare the options of a command: make a dataclass, a docstring below each field its help."""
    return with_arguments(dataclass(kw_only=True)(kind))


def with_arguments(kind: type[T]) -> type[T]:
    """Make the fields of a dataclass that are not keywords arguments without a name."""
    _, *parameters = inspect.signature(kind.__init__).parameters.values()
    kind.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            one.replace(kind=one.POSITIONAL_ONLY) if one.kind is one.POSITIONAL_OR_KEYWORD else one
            for one in parameters
        ]
    )
    return kind


def parse(app: App, words: Sequence[str]) -> Any:
    """Return the options of the words of a command; None if they ask for help, which it prints.

    Raises:
        CycloptsError: if the words are wrong.
    """
    try:
        return app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except SystemExit:  # by rich, at a closed pipe
        raise BrokenPipeError from None


@options
class NoOptions:
    """The options of a command without any."""


@dataclass(frozen=True)
class Command:
    """A command that parses arguments, runs, and prints an error as one line.

    Attributes:
        name: its name.
        run: takes the options, and returns the exit status; its docstring is the help, with calls
            of the command below a line `Examples:`.
        errors: that the user can cause, besides wrong values, files and missing packages.
        interrupted: the text to print after Ctrl-C.
        kind_of: returns the class of the options by the arguments; None: the type of `run`.
        explain: returns a better error for an unknown option, from it and the known options; ""
            for none.
    """

    name: str
    run: Callable[[Any], int]
    errors: tuple[type[Exception], ...] = ()
    interrupted: str = "interrupted"
    kind_of: Callable[[Sequence[str]], type] | None = None
    explain: Callable[[str, list[str]], str] = lambda *_: ""

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Run the command; return the exit status: 1 after an error, 130 after Ctrl-C."""
        arguments = sys.argv[1:] if arguments is None else arguments
        with _pipes(self.name, arguments):
            try:
                return self._run(arguments)
            except BrokenPipeError:
                raise  # `__main__` ends the command silently
            except KeyboardInterrupt:
                note(self.interrupted)
                return INTERRUPTED
            except Exception as error:
                library = type(error).__module__.partition(".")[0]
                known: tuple[type[Exception], ...] = (
                    ValueError,
                    OSError,
                    ModuleNotFoundError,
                    *self.errors,
                )
                if not isinstance(error, known) and library not in _LIBRARIES:
                    raise
                note(_one_line(error))
                return 1

    def _run(self, arguments: Sequence[str]) -> int:
        try:
            words = [_DASH if word == "-" else word for word in arguments]
            found = parse(self.app(words), words)
            return 0 if found is None else self.run(found)  # None: it printed its help
        except (CycloptsError, UsageError) as error:
            remedy = f"{program(self.name)} --help lists all arguments"
            problem = self._reworded(error) if isinstance(error, CycloptsError) else str(error)
            note(problem if isinstance(error, CoercionError) else f"{problem}; {remedy}")
            return USAGE

    def app(self, arguments: Sequence[str] = ()) -> App:
        """Return the parser of the command, which returns its options."""
        kind = self.kind_of(arguments) if self.kind_of else get_type_hints(self.run)["options"]
        called = program(self.name)
        doc = inspect.cleandoc(self.run.__doc__ or "").replace(f"tokaido {self.name}", called)
        text, _, examples = doc.partition("\n\nExamples:\n")
        app = App(
            name=called,
            help=text,
            help_epilogue=f"Examples:\n\n{examples}" if examples else None,
            default_command=kind,
            default_parameter=Parameter(
                allow_repeating=True, negative=(), show_default=_default_text
            ),
            group_parameters=Group("Options", sort_key=1),
            version_flags=(),
            help_formatter=HelpFormatter(),
        )
        app["--help"].show = False
        return app

    def _reworded(self, error: CycloptsError) -> str:
        """Return an error of the parser as `NAME: expected X, got Y`."""
        if unknown := self._unknown(error):
            return unknown
        name = error.argument.name if error.argument else ""
        match error:
            case UnusedCliTokensError():
                return f"unexpected argument {repr_short((error.unused_tokens or [''])[0])}"
            case MissingArgumentError():
                return f"{name}: expected a value, got none"
            case ValidationError():
                return error.exception_message
            case CoercionError():
                return f"{name}: {_expected(error)}"
        return " ".join(str(error).split())

    def _unknown(self, error: CycloptsError) -> str:
        """Return an error that names an unknown option, "" without one.

        It comes before that of a missing argument, which may be due to a misspelled name.
        """
        words = error.unused_tokens or [] if isinstance(error, MissingArgumentError) else []
        if isinstance(error, UnknownOptionError):
            words = [error.token.keyword or error.token.value]
        arguments = error.app.assemble_argument_collection() if error.app else ()
        known = [one for argument in arguments for one in argument.names]
        for name in (word.partition("=")[0] for word in words if word.startswith("-")):
            if name not in known:
                return self.explain(name, known) or unknown_name("option", name, known)
        return ""


def command(name: str, *errors: type[Exception], **more: Any) -> Callable[[Any], Command]:
    """Return a decorator that makes a `Command` of a function of options."""
    return lambda run: Command(name, run, errors, **more)


class HelpFormatter(DefaultFormatter):
    """Help with names in a column, or above their meanings where that would break names."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print a panel."""
        columns = (ColumnSpec(_stacked),) if console.width < _COLUMNS_FROM else None
        DefaultFormatter(column_specs=columns)(console, options, panel)


def _stacked(entry: HelpEntry) -> RenderableType:
    from rich.console import Group as Lines
    from rich.padding import Padding
    from rich.text import Text

    name = Text(str(NameRenderer()(entry)), "cyclopts.name")
    return Lines(name, Padding(DescriptionRenderer()(entry), (0, 0, 0, 2)))


def only_one(arguments: ArgumentCollection) -> None:
    """Raise `ValueError` for more than one of the options of a group."""
    given = [one.name for one in arguments if one.tokens]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: expected one of them")


def _expected(error: CoercionError) -> str:
    """Return the expected and the given value of an argument with a wrong text."""
    if error.msg:  # of a function of `text_option`
        return str(error.msg)
    given = repr_short(error.token.value if error.token else "")
    if get_origin(error.target_type) is Literal:
        return f"expected one of {', '.join(map(repr, get_args(error.target_type)))}, got {given}"
    if error.target_type in _KINDS:
        return f"expected {_KINDS[error.target_type]}, got {given}"
    return str(error.__cause__ or error.__context__)  # the latter for one of several values


def _default_text(value: object) -> str | None:
    if (not value and not isinstance(value, int | float)) or value is False:
        return "off" if value is False else None
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


# Paths of options: ~ is the home folder, and - standard input or output

_inputs: dict[str, Path] = {}  # copies of what comes through pipes, by the texts of the options
_outputs: dict[str, Path] = {}  # what is to be written to pipes
_running: list[tuple[str, Sequence[str]]] = []  # names and arguments of the commands that run


def note(text: str) -> None:
    """Print a line on standard error that begins with the name of the command that runs."""
    print(f"{_running[-1][0]}: {text}", file=sys.stderr)


def running() -> tuple[str, Sequence[str]]:
    """Return the name and the arguments of the command that runs."""
    return _running[-1]


def home_path(text: str) -> Path:
    """Return the path of a folder, or of a file that needs its folder."""
    return Path(expand_home(text))


def file_path(text: str) -> Path:
    """Return the path of a file; raise `ValueError` for a pipe."""
    if _is_pipe(text):
        raise ValueError(f"expected a file, got the pipe {text}")
    return home_path(text)


def read_path(text: str, suffix: str = "") -> Path:
    """Return the path of a file to read; a pipe is copied to a file, to be read more than once."""
    if not _is_pipe(text):
        return home_path(text)
    if text not in _inputs:
        source = nullcontext(_standard_input()) if text == "-" else home_path(text).open("rb")
        _inputs[text] = _temporary(suffix)
        with source as pipe, _inputs[text].open("wb") as copy:
            shutil.copyfileobj(pipe, copy)
    return _inputs[text]


def _standard_input() -> IO[bytes]:
    """Return standard input as bytes; it may be one of text, as in a notebook."""
    if sys.stdin is None:  # of a process without a console
        raise ValueError("expected a file, got -: there is no standard input")
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer
    return BytesIO(sys.stdin.read().encode(errors="surrogateescape"))


def board_name(text: str) -> str:
    """Return the name of a board, or the path of a board file; a pipe is read as by `read_path`."""
    return str(read_path(text, ".toml")) if _is_pipe(text) else expand_home(text)


def write_path(text: str) -> Path:
    """Return the path of a file to write; a pipe gets what is written at the end of the command.

    With standard output (-), the command prints all else on standard error.
    """
    if text == "-":
        if sys.stdout is None:  # of a process without a console
            raise ValueError("expected a file, got -: there is no standard output")
        sys.stdout = sys.stderr
    if not _is_pipe(text):
        return home_path(text)
    if text not in _outputs:
        _outputs[text] = _temporary()
    return _outputs[text]


def _seed(text: str) -> int:
    try:
        return check_seed(int(text))
    except ValueError:
        raise ValueError(f"expected an integer from 0, got {repr_short(text)}") from None


def text_option(parse: Callable[[str], Any], metavar: str) -> Parameter:
    """Declare an option by the function that converts its text and refuses a wrong one."""
    return Parameter(
        converter=lambda _, tokens: parse(tokens[0].value.replace(_DASH, "-")), metavar=metavar
    )


FILES = Group("Files", sort_key=3)
"""Options of files to write."""

Folder = Annotated[Path, text_option(home_path, "FOLDER")]
Input = Annotated[Path, text_option(read_path, "FILE")]
Output = Annotated[Path, text_option(write_path, "FILE"), Parameter(group=FILES)]
File = Annotated[Path, text_option(file_path, "FILE"), Parameter(group=FILES)]
"""A file to write or append to, which cannot be a pipe."""
Board = Annotated[str, text_option(board_name, "BOARD")]
Seed = Annotated[int, text_option(_seed, "SEED")]
AgentSpec = Annotated[str, Parameter(metavar="AGENT")]
ExecutorSpec = Annotated[
    str,
    Parameter(
        metavar="EXECUTOR", help="where to run the work: serial, processes[:N] or ray[:ADDRESS]"
    ),
]
Several = Parameter(consume_multiple=True)


@options
class Recorded:
    """Options of commands that read recorded games."""

    file: Input = field(kw_only=False)
    """record file, JSON Lines"""
    board: Board | None = None
    """board file of the games [default: the built-in or procedural board that they name]"""


SeedOption = Annotated[Seed, Parameter(help="random seed, an integer from 0")]
Json = Annotated[Output | None, Parameter(help="write the results to this file as JSON")]
Markdown = Annotated[Output | None, Parameter(help="write the tables to this file as Markdown")]
Plots = Annotated[Folder | None, Parameter(help="write figures to this folder", group=FILES)]
Records = Annotated[
    File | None,
    Parameter(help="append every game to this record file, and resume from its games"),
]
LadderFile = Annotated[
    Input | None, Parameter(help="ladder file [default: the ladder of the package for the board]")
]
Positions = Annotated[
    Input,
    Parameter(
        help="file of rolled-out positions, or solved: last rounds with exact results",
        show_default="the regret set of the package",
    ),
]
AllowedAgents = Annotated[
    tuple[AgentSpec, ...],
    Several,
    Parameter(help="agents of the ladder that may run code, or load policies outside its folder"),
]
MatchExecutor = Annotated[
    ExecutorSpec | None,
    Parameter(show_default="serial; for agents that play one game at a time, processes"),
]


@options
class Matches:
    """Options of the commands that play matches."""

    games: int = 1000
    """games per pair of agents, even"""
    seed: SeedOption = 0
    board: Board = "shikoku"
    """a built-in board, a board file or a pool of boards"""
    executor: MatchExecutor = None
    json: Json = None


def _is_pipe(text: str) -> bool:
    return text == "-" or file_kind(home_path(text)) == PIPE


def _temporary(suffix: str = "") -> Path:
    handle, name = tempfile.mkstemp(suffix, "tokaido-")
    os.close(handle)
    return Path(name)


@contextmanager
def _pipes(name: str, arguments: Sequence[str]) -> Iterator[None]:
    """Write to the pipes of a command's options when it has ended."""
    _running.append((name, arguments))
    try:
        with redirect_stdout(sys.stdout):  # `write_path` may change it
            yield
        for text, path in _outputs.items():
            if not path.stat().st_size:
                continue
            _copy_to(text, path)
    finally:
        _running.pop()
        for path in (*_inputs.values(), *_outputs.values()):
            path.unlink(missing_ok=True)
        _inputs.clear()
        _outputs.clear()


def _copy_to(text: str, path: Path) -> None:
    """Copy a text file to a pipe; standard output may be one without bytes, as in a notebook."""
    if text == "-" and not hasattr(sys.stdout, "buffer"):
        sys.stdout.write(path.read_text(encoding="utf-8"))
        return
    to = nullcontext(sys.stdout.buffer) if text == "-" else home_path(text).open("wb")
    with to as pipe:
        pipe.write(path.read_bytes())


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
