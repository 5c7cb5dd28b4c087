"""Declared settings: type, range and help text of each, for command lines, files and Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tokaido_env.agents.registry import Parameter
from tokaido_env.core.arguments import MAX_SEED, SeedError, check_seed, plain_data, repr_short
from tokaido_env.files import expand_home

TEXT, COUNT, SHARE = Parameter(str), Parameter(int, 1), Parameter(float, 0, 1)
RATE = Parameter(float, 1e-9, 1)

MAX_TEXT = 4000  # characters of a setting


class RunError(ValueError):
    """A run folder or a setting is invalid; the message names it and the expected value."""


def setting(default: Any, allowed: Parameter, help_text: str) -> Any:
    """Declare a setting: a field of a `Settings` class."""
    return field(default=default, metadata={"allowed": allowed, "help": help_text})


@dataclass(frozen=True)
class Settings:
    """Base class of settings: every field is made by `setting` and checked when constructed.

    Raises:
        RunError: if a value has the wrong type or is out of range.
    """

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, self.checked(name, value))

    @classmethod
    def help_texts(cls) -> dict[str, str]:
        """Return the help text of each setting."""
        return {one.name: one.metadata["help"] for one in fields(cls)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of each setting."""
        return {one.name: one.default for one in fields(cls)}

    @classmethod
    def checked(cls, name: str, value: Any) -> Any:
        """Return the value of a setting; an integer becomes a float where floats are expected.

        Raises:
            RunError: if the value has the wrong type or is out of range.
        """
        allowed = cls._allowed(name)
        value = plain_data(value)
        if name == "seed":
            try:
                return check_seed(value)
            except SeedError as error:
                raise RunError(str(error)) from None
        valid = type(value) in (allowed.type, *((int,) if allowed.type is float else ()))
        if valid:
            is_text = isinstance(value, str)
            valid = value in (allowed.choices or (value,)) if is_text else allowed.allows(value)
        if not valid:
            raise RunError(f"{name}: expected {allowed.expected}, got {repr_short(value)}")
        if isinstance(value, str):
            _check_text(name, value)
            value = expand_home(value)  # a path may begin with ~, no other text does
        elif abs(value) > MAX_SEED:  # a float does not hold larger integers exactly
            raise RunError(
                f"{name}: expected at most {MAX_SEED} (2**53 - 1), got {repr_short(value)}"
            )
        return allowed.type(value)

    @classmethod
    def _allowed(cls, name: str) -> Parameter:
        parameter: Parameter = cls.__dataclass_fields__[name].metadata["allowed"]
        return parameter


@contextmanager
def explain_memory_errors(folder: object) -> Iterator[None]:
    """Turn failed allocations into a `RunError` that names the settings to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # NumPy's and PyTorch's
        if isinstance(error, RuntimeError) and "allocate" not in str(error):
            raise
        raise RunError(f"{folder}: out of memory: lower games, n_steps or width") from None


def _check_text(name: str, text: str) -> None:
    """Raise `RunError` if a TOML file cannot hold a text, or it is too long."""
    if len(text) > MAX_TEXT:
        raise RunError(
            f"{name}: expected at most {MAX_TEXT} characters, got {len(text)}: {repr_short(text)}"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RunError(f"{name}: expected a text in Unicode, got {repr_short(text)}") from None
