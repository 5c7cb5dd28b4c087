"""Decode what files hold into typed structs: limits in, one format of errors out.

Declare what a file holds, with its limits; read it, look at its version first, decode it, and check
what types cannot say::

    class Match(Struct, frozen=True):
        a: Name
        b: Name
        pairs: tuple[Count, Count, Count, Count, Count]

    class LadderFile(Struct, frozen=True):
        version: int
        rules: int
        matches: tuple[Match, ...]
        fit: Fit | None = None  # a key that may be missing

    source = Source.json(path, "ladder", LadderError)
    source.check_versions("make it again", version=VERSION, rules=RULES_VERSION)
    held = source.decode(LadderFile)
    for i, match in enumerate(held.matches):
        source.expect(match.a != match.b, f"matches[{i}]", "two agents", match.a)

Every error is of the class that is given (`LadderError` here), one line: `FILE: matches[0].a:
expected a text, got 3`. Types are taken at their word: a bool is no integer, 1.0 is none either, an
integer is a number, and keys that are not declared are refused. A `ValueError` of a struct's own
`__post_init__` becomes such an error too. `files.parse_json` and `read_toml` limit size, depth and
digits before anything is decoded.

A part of another file, as a header, is `Source("FILE: header", data, error)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from tokaido_env.core.arguments import (
    MAX_NAME_CHARS,
    MAX_PATH_CHARS,
    MAX_SEED,
    escape_text,
    repr_short,
    str_short,
)
from tokaido_env.files import read_json, read_toml

Name = Annotated[str, Meta(max_length=MAX_NAME_CHARS)]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED)]
Count = Annotated[int, Meta(ge=0, le=MAX_SEED)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
"""A score or a rating: no NaN, and nothing that games could not give."""

T = TypeVar("T")

_MOST = 300  # characters of what is expected, in a message

_PARTS = re.compile(r"\.(\w+)|\[(\d+)\]")
_EXPECTED = re.compile(r"Expected `([^`]+)`(.*?)(?:, got .*)?", re.DOTALL)
_WORDS = {
    **{"int": "an integer", "float": "a number", "str": "a text", "bool": "true or false"},
    **{"array": "a list", "object": "an object"},
}


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file holds: typed fields, which may have limits, and no others."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return data


class Source:
    """Data that were read, and how errors name where they are from.

    Args:
        name: of the file, or of the part of one: what stands first in every error.
        data: as `files.parse_json` and `read_toml` return it.
        error: class of the errors.
    """

    def __init__(self, name: str | Path, data: Any, error: Callable[[str], Exception]) -> None:
        self.name = str_short(name, MAX_PATH_CHARS)
        self.data = data
        self.error = error

    @classmethod
    def json(cls, path: Path, what: str, error: Callable[[str], Exception]) -> Source:
        """Read a file of one JSON value; `what` says what it should be, as "ladder"."""
        return cls._read(read_json, path, what, error)

    @classmethod
    def toml(cls, path: Path, what: str, error: Callable[[str], Exception]) -> Source:
        """Read a TOML file; `what` says what it should be."""
        return cls._read(read_toml, path, what, error)

    @classmethod
    def _read(
        cls, read: Callable[[Path], Any], path: Path, what: str, error: Callable[[str], Exception]
    ) -> Source:
        where = str_short(path, MAX_PATH_CHARS)
        try:
            return cls(where, read(path), error)
        except FileNotFoundError:
            raise error(f"{where}: no such {what}") from None
        except OSError as failed:
            raise error(f"{where}: cannot be read: {failed.strerror}") from None
        except ValueError as failed:
            raise error(str(failed)) from None

    def check_versions(self, remedy: str = "", **known: int | str) -> None:
        """Refuse another version, or rules, than this version of the package has: before the rest.

        Args:
            remedy: what helps, at the end of the error.
            known: by key, what it must be.
        """
        for key, value in known.items():
            own = self.data.get(key) if isinstance(self.data, dict) else self.data
            self.expect(type(own) is type(value) and own == value, key, str(value), own, remedy)

    def decode(self, kind: type[T]) -> T:
        """Return the data as a struct, or as another type that `msgspec` knows."""
        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as error:
            raise self.error(f"{self.name}: {_in_words(str(error), self.data)}") from None
        except UnicodeEncodeError as error:  # half of a pair of surrogates
            raise self.error(
                f"{self.name}: expected text, got {repr_short(error.object)}"
            ) from None

    def expect(self, right: object, place: str, wanted: str, got: object, remedy: str = "") -> None:
        """Refuse what is not right, by its place and what was wanted there, and say what helps."""
        if not right:
            text = f"{self.name}: {place}: expected {wanted}, got {repr_short(got)}"
            raise self.error(f"{text}: {remedy}" if remedy else text)


def _in_words(message: str, data: Any) -> str:
    """Return an error of `msgspec`'s in our words, with what stands in its place."""
    what, _, path = message.rpartition(" - at ")
    what, path = (what, path.strip("`")) if path.startswith("`") else (message, "$")
    place = path.rpartition("$")[2].lstrip(".")
    got = f", got {repr_short(_found(data, path))}" if "..." not in path and "`" not in path else ""
    expected = _EXPECTED.fullmatch(what)
    if expected is not None:
        kinds = " or ".join(_WORDS.get(one, one) for one in expected[1].split(" | "))
        text = f"expected {kinds}{expected[2]}{got}"
    elif what.startswith("Object missing required field"):
        text = f"expected the key {what.split('`')[1]}{got}"
    elif what.startswith("Object contains unknown field"):
        text = f"expected no key {escape_text(what.partition('`')[2][:-1])}{got}"
    elif what.startswith(("Invalid enum value", "Number out of range")):
        text = f"expected another value{got}"
    else:
        text = what
    return f"{place}: {escape_text(text, _MOST)}" if place else escape_text(text, _MOST)


def _found(data: Any, path: str) -> Any:
    """Return what stands at a path such as `$.matches[0].a`."""
    for key, index in _PARTS.findall(path):
        data = data[key] if key else data[int(index)]
    return data
