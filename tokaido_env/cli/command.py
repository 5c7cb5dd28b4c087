"""Declared commands: options as dataclasses, which cyclopts parses, and types of options.

CONTRIBUTING.md shows how to declare a command.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

from cyclopts import App, ArgumentCollection, Group, Parameter

from tokaido_env.core.arguments import check_seed, repr_short
from tokaido_env.files import expand_home, is_file

INTERRUPTED = 130  # exit status after Ctrl-C, as shells report it
USAGE = 2  # exit status of wrong arguments

T = TypeVar("T")


class UsageError(Exception):
    """Wrong arguments, which the types of the options allow; the status is 2."""


# Declarations


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def options(kind: type[T]) -> type[T]:
    """Declare the options of a command: make a dataclass, a docstring below each field its help.

    Fields that are not keywords become arguments without a name.
    """
    made = dataclass(kw_only=True)(kind)
    _, *parameters = inspect.signature(made.__init__).parameters.values()
    without_name = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    if without_name:
        made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(kind=one.POSITIONAL_ONLY) for one in without_name]
            + parameters[len(without_name) :]
        )
    return made


@options
class NoOptions:
    """The options of a command that has none."""


def command(name: str, kind: type | None = None) -> Callable[[Callable[[Any], int]], App]:
    """Return a decorator that makes a command of a function from its options to an exit status.

    The function's docstring is the help, with calls of the command below a line `Examples:`.

    Args:
        name: of the command.
        kind: class of the options; None: the type of the function's argument.
    """

    def declare(run: Callable[[Any], int]) -> App:
        text, _, examples = inspect.cleandoc(run.__doc__ or "").partition("\n\nExamples:\n")
        return App(
            name,
            text,
            help_epilogue=f"Examples:\n\n{examples}" if examples else None,
            default_command=kind or get_type_hints(run)["options"],
            default_parameter=Parameter(
                allow_repeating=True, negative=(), show_default=_default_text
            ),
            group_parameters=Group("Options", sort_key=1),
            version_flags=(),
            # None: the parser printed the help.
            result_action=lambda options: 0 if options is None else run(options),
        )

    return declare


def only_one(arguments: ArgumentCollection) -> None:
    """Raise `ValueError` for more than one of the options of a group."""
    given = [one.name for one in arguments if one.tokens]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: expected one of them")


def _default_text(value: object) -> str | None:
    if value is False:
        return "off"
    if isinstance(value, tuple):
        return " ".join(value) or None
    return f"{value:,}" if isinstance(value, int) else str(value or "") or None


# The command that runs

_words: Sequence[str] = ()


def start(words: Sequence[str]) -> None:
    """Store the words of the command line that runs now, its name first."""
    global _words
    _words = words


def running() -> tuple[str, Sequence[str]]:
    """Return the name and the arguments of the command that runs, as typed."""
    return _words[0], _words[1:]


def note(text: str) -> None:
    """Print a line on standard error that begins with the name of the command that runs."""
    print(f"{' '.join(_words[:1])}: {text}", file=sys.stderr)


# Types of options


def text_option(parse: Callable[[str], Any], metavar: str) -> Parameter:
    """Declare an option: `parse` converts its text or raises `ValueError`; help shows `metavar`."""
    return Parameter(converter=lambda _, tokens: parse(tokens[0].value), metavar=metavar)


def home_path(text: str) -> Path:
    """Return text as a path, with the home folder for a leading `~`."""
    return Path(expand_home(text))


def _replaced_path(text: str) -> Path:
    """Return text as the path of a file to write or replace; refuse one of recorded games."""
    path = home_path(text)
    if is_file(path):
        from tokaido_env.arena.records import HEAD  # here, as most commands read no records

        with path.open("rb") as file:
            if file.read(len(HEAD)) == HEAD:
                raise ValueError(f"{path}: expected another file: this one has recorded games")
    return path


def _seed(text: str) -> int:
    try:
        return check_seed(int(text))
    except ValueError:
        raise ValueError(f"expected an integer from 0, got {repr_short(text)}") from None


FILES = Group("Files", sort_key=3)
"""Options of files to write."""

Folder = Annotated[Path, text_option(home_path, "FOLDER")]
Input = Annotated[Path, text_option(home_path, "FILE")]
Output = Annotated[Path, text_option(home_path, "FILE"), Parameter(group=FILES)]
Replaced = Annotated[Path, text_option(_replaced_path, "FILE"), Parameter(group=FILES)]
Board = Annotated[str, text_option(expand_home, "BOARD")]
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
    """Options of commands that read recorded games; the docstring of each field is its help."""

    file: Input = field(kw_only=False)
    """record file, JSON Lines"""
    board: Board | None = None
    """board file of the games [default: the built-in or procedural board that they name]"""


SeedOption = Annotated[Seed, Parameter(help="random seed, an integer from 0")]
Json = Annotated[Replaced | None, Parameter(help="write the results to this file as JSON")]
Markdown = Annotated[Replaced | None, Parameter(help="write the tables to this file as Markdown")]
Plots = Annotated[Folder | None, Parameter(help="write figures to this folder", group=FILES)]
Records = Annotated[
    Output | None,
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
    """Options of the commands that play matches; the docstring of each field is its help."""

    games: int = 1000
    """games per pair of agents, even; searching agents play fewer in rate and ladder"""
    seed: SeedOption = 0
    board: Board = "shikoku"
    """a built-in board, a board file or a pool of boards"""
    executor: MatchExecutor = None
    json: Json = None
