"""Decode untrusted files into typed structs, with limits and one error format.

Declare the contents of a file, read it, check its version, decode it, and check what types cannot
express::

    class Match(Struct, frozen=True):
        a: Name
        b: Name
        pairs: tuple[Count, Count, Count, Count, Count]

    class LadderFile(Struct, frozen=True):
        version: int
        rules: int
        matches: tuple[Match, ...]
        fit: Fit | None = None  # an optional key

    source = Source.json(path, "ladder", LadderError)
    source.check_versions("make it again", version=VERSION, rules=RULES_VERSION)
    ladder = source.decode(LadderFile)
    for i, match in enumerate(ladder.matches):
        source.expect(match.a != match.b, f"matches[{i}]", "two agents", match.a)

Every error has the given class (here `LadderError`) and one line: `FILE: matches[0].a: expected a
text, got 3`. Types are strict: no bool is an integer, and undeclared keys are refused. An integer
is accepted as a number, and 1.0 in JSON as an integer. A `ValueError` of `__post_init__` becomes
such an error too. `files.read_json` limits size, depth and digits before decoding.

`Source("FILE: header", data, error)` decodes a part of another file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from tokaido_env.core.arguments import MAX_NAME_CHARS, MAX_SEED, escape_text, repr_short, short_path
from tokaido_env.files import read_json

Name = Annotated[str, Meta(max_length=MAX_NAME_CHARS)]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED)]
Count = Annotated[int, Meta(ge=0, le=MAX_SEED)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
"""A score or a rating. NaN and infinity are refused."""

UNICODE = r"\A[^\ud800-\udfff]*\Z"
"""Pattern of a text without a lone surrogate, which UTF-8 cannot encode."""

T = TypeVar("T")

_MAX_MESSAGE = 300  # characters

_PATH_PARTS = re.compile(r"\.(\w+)|\[(\d+)\]")
_EXPECTED = re.compile(r"Expected `([^`]+)`(.*?)(?:, got .*)?", re.DOTALL)
_ONE_OF = re.compile(r"'\^\((.*)\)\\\\Z'")  # as `one_of` makes it
_TYPE_NAMES = {
    **{"int": "an integer", "float": "a number", "str": "a text", "bool": "true or false"},
    **{"array": "a list", "object": "an object"},
}


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Typed contents of a file; unknown fields are refused."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types."""
        data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return data


class PlacedError(ValueError):
    """An error about a value; `Source` sets its key.

    Attributes:
        key: the place of the value, such as `matches[0].a`; "" without a single place.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def one_of(names: Iterable[str]) -> Meta:
    """Return the constraint of a text that is one of some names of letters, digits and spaces."""
    return Meta(pattern=rf"^({'|'.join(names)})\Z")


class Source:
    """Data read from a file, and the name of the file for errors.

    Args:
        name: name of the file or of a part of it; every error starts with it. It may be empty.
        data: plain values as `files.parse_json` and `read_toml` return them.
        error: class of the errors.
    """

    def __init__(self, name: str | Path, data: Any, error: Callable[[str], Exception]) -> None:
        self.name = short_path(name)
        self.data = data
        self.error = error

    @classmethod
    def json(cls, path: Path, kind: str, error: Callable[[str], Exception]) -> Source:
        """Read a JSON file; `kind` names its contents in errors, such as "ladder"."""
        where = short_path(path)
        try:
            return cls(where, read_json(path), error)
        except FileNotFoundError:
            raise error(f"{where}: no such {kind}") from None
        except OSError as failed:
            raise error(f"{where}: cannot be read: {failed.strerror}") from None
        except ValueError as failed:
            raise error(str(failed)) from None

    def check_versions(self, remedy: str = "", **known: int | str) -> None:
        """Check versions before anything else is decoded.

        Args:
            remedy: advice to append to the error.
            known: the expected value of each key.
        """
        for key, value in known.items():
            found = isinstance(self.data, dict)
            own = self.data.get(key) if found else self.data
            right = found and type(own) is type(value) and own == value
            self.expect(right, key, str(value), own, remedy)

    def decode(self, kind: type[T]) -> T:
        """Return the data as a struct or another type that `msgspec` supports.

        Raises:
            An error of the class `error`: naming the place of the first value that does not fit.
        """
        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as error:
            raise self.failure(*_place_and_text(str(error), self.data)) from None
        except UnicodeEncodeError as error:  # a lone surrogate
            raise self.failure("", f"expected text, got {repr_short(error.object)}") from None

    def expect(self, right: object, place: str, wanted: str, got: object, remedy: str = "") -> None:
        """Raise an error about a place in the file unless a condition holds."""
        if not right:
            text = f"expected {wanted}, got {repr_short(got)}"
            raise self.failure(place, f"{text}: {remedy}" if remedy else text)

    def failure(self, place: str, text: str) -> Exception:
        """Return the error about a place in the file, or about the whole file."""
        place = escape_text(place)
        error = self.error(": ".join(part for part in (self.name, place, text) if part))
        if isinstance(error, PlacedError):
            error.key = place.partition("[...]")[0]
        return error


def _place_and_text(message: str, data: Any) -> tuple[str, str]:
    """Return the place of a `msgspec` error, and its text in this package's words."""
    what, _, path = message.rpartition(" - at ") if message.endswith("`") else (message, "", "")
    if not what or "$" not in path:  # the name of an unknown key may contain both
        what, path = message, "$"
    path = path.strip("`").rpartition("`")[2]
    place = path.partition("$")[2].lstrip(".")
    got = f", got {repr_short(_value_at(data, path))}"
    expected = _EXPECTED.fullmatch(what)
    if expected is not None:
        kinds = " or ".join(_TYPE_NAMES.get(one, one) for one in expected[1].split(" | "))
        limits, _, pattern = expected[2].partition(" matching regex ")
        names = _ONE_OF.fullmatch(pattern)
        limits = " of valid Unicode" if pattern else limits
        wanted = kinds + limits if names is None else "one of " + names[1].replace("|", ", ")
        text = f"expected {wanted}{got}"
    elif what.startswith(("Object missing required field", "Object contains unknown field")):
        name = what.partition("`")[2][:-1]
        place = f"{place}.{name}" if place else name
        text = "expected a value, got none" if "missing" in what[:14] else "expected no such key"
    elif what.startswith(("Invalid enum value", "Number out of range")):
        text = f"expected another value{got}"
    else:
        text = what
    return place, escape_text(text, _MAX_MESSAGE)


def _value_at(data: Any, path: str) -> Any:
    """Return the value at a path such as `$.matches[0].a`, up to an entry `[...]`."""
    for key, index in _PATH_PARTS.findall(path.partition("[...]")[0]):
        with suppress(LookupError, TypeError):  # the path of an unknown key may be anything
            data = data[key] if key else data[int(index)]
    return data
