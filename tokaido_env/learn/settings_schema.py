"""Settings that are declared once, with type, range and meaning, for every command that trains.

A setting reads, and is refused, alike on a command line, in a file and in Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tokaido_env.agents.registry import Parameter
from tokaido_env.core.arguments import MAX_SEED, repr_short

TEXT, COUNT, SHARE = Parameter(str), Parameter(int, 1), Parameter(float, 0, 1)
RATE = Parameter(float, 1e-9, 1)

MOST_TEXT = 4000  # characters of a setting


class RunError(ValueError):
    """A run folder or settings that cannot be used: the message says what was expected."""


def setting(default: Any, allowed: Parameter, meaning: str) -> Any:
    """Declare a setting, a field of a `Declared`: its default, what it may be, what it means."""
    return field(default=default, metadata={"allowed": allowed, "meaning": meaning})


@dataclass(frozen=True)
class Declared:
    """Settings, all made by `setting`: of the right type and within range.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, self.checked(name, value))

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return what each setting means."""
        return {one.name: one.metadata["meaning"] for one in fields(cls)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of each setting."""
        return {one.name: one.default for one in fields(cls)}

    @classmethod
    def checked(cls, name: str, value: Any) -> Any:
        """Return the value of a setting, an integer as a float where a float is meant.

        Raises:
            RunError: if it is of another type or out of range.
        """
        allowed = cls._allowed(name)
        right = type(value) in (allowed.type, *((int,) if allowed.type is float else ()))
        if right:
            text = isinstance(value, str)
            right = value in (allowed.words or (value,)) if text else allowed.holds(value)
        if not right:
            raise RunError(f"{name}: expected {allowed.expected}, got {repr_short(value)}")
        if isinstance(value, str):
            _check_text(name, value)
        elif abs(value) > MAX_SEED:  # more is no longer exact as a float
            raise RunError(
                f"{name}: expected at most {MAX_SEED} (2**53 - 1), got {repr_short(value)}"
            )
        return allowed.type(value)

    @classmethod
    def read(cls, name: str, text: str) -> Any:
        """Return what a text, as on the command line, stands for.

        Raises:
            RunError: if it stands for nothing that is allowed.
        """
        try:
            return cls.checked(name, cls._allowed(name).read(text))
        except RunError:
            raise
        except ValueError as error:
            raise RunError(f"{name}: {error}") from None

    @classmethod
    def add_options(cls, parser: argparse._ActionsContainer) -> None:
        """Give a command, or a group of its options, an option for each setting."""
        meanings = cls.meanings()
        for name, default in cls.defaults().items():
            usual = f"{default:,}" if isinstance(default, int) else default or "empty"
            parser.add_argument(
                "--" + name.replace("_", "-"),
                metavar={int: "N", float: "X", str: "TEXT"}[type(default)],
                help=f"{meanings[name]} ({usual})",
            )

    @classmethod
    def given(cls, options: argparse.Namespace) -> dict[str, Any]:
        """Return the settings that a command was given, by the options of `add_options`.

        Raises:
            RunError: as `read`.
        """
        texts = {name: getattr(options, name) for name in cls.defaults()}
        return {name: cls.read(name, text) for name, text in texts.items() if text is not None}

    @classmethod
    def _allowed(cls, name: str) -> Parameter:
        parameter: Parameter = cls.__dataclass_fields__[name].metadata["allowed"]
        return parameter


@contextmanager
def enough_memory(where: object) -> Iterator[None]:
    """Let `RunError` tell of settings that need more memory than there is."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # NumPy's and PyTorch's
        if isinstance(error, RuntimeError) and "allocate" not in str(error):
            raise
        raise RunError(
            f"{where}: more memory than there is: expected fewer games, rollout or width"
        ) from None


def _check_text(name: str, text: str) -> None:
    """Refuse what a file of settings cannot hold."""
    if len(text) > MOST_TEXT:
        raise RunError(
            f"{name}: expected at most {MOST_TEXT} characters, got {len(text)}: {repr_short(text)}"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RunError(f"{name}: expected a text in Unicode, got {repr_short(text)}") from None
