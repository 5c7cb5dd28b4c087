"""Declared settings: type, range and help text of each, for command lines, files and Python."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tokaido_env.agents.registry import Parameter
from tokaido_env.core.arguments import check_seed, repr_short
from tokaido_env.files import expand_home

TEXT, COUNT, SHARE = Parameter(str), Parameter(int, 1), Parameter(float, 0, 1)
RATE = Parameter(float, 1e-9, 1)


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
            SeedError: if the value of `seed` is no seed.
        """
        if name == "seed":
            return check_seed(value)
        allowed: Parameter = cls.__dataclass_fields__[name].metadata["allowed"]
        valid = type(value) in (allowed.type, *((int,) if allowed.type is float else ()))
        if valid:
            is_text = isinstance(value, str)
            valid = value in (allowed.choices or (value,)) if is_text else allowed.allows(value)
        if not valid:
            raise RunError(f"{name}: expected {allowed.expected}, got {repr_short(value)}")
        return expand_home(value) if isinstance(value, str) else allowed.type(value)
