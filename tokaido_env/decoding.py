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

Every error has the given class (here `LadderError`) and one line, such as `FILE: matches[0].a:
Expected `str`, got `int``. Types are strict: no bool is an integer, and undeclared keys are
refused. An integer is accepted as a number, and 1.0 in JSON as an integer. A `ValueError` of
`__post_init__` becomes such an error too.

`Source("FILE: header", data, error)` decodes a part of another file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

T = TypeVar("T")

_MAX_MESSAGE = 300  # characters


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Typed contents of a file; unknown fields are refused."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types."""
        data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return data


def one_of(names: Iterable[str]) -> Meta:
    """Return the constraint of a text to be one of some names, of letters, digits and spaces."""
    return Meta(pattern=rf"^({'|'.join(names)})\Z")


class Source:
    """Data read from a file, and the name of the file for errors.

    Args:
        name: name of the file or of a part of it; every error starts with it. It may be empty.
        data: dicts, lists, texts and numbers, as from JSON or TOML.
        error: class of the errors.
    """

    def __init__(self, name: str | Path, data: Any, error: Callable[[str], Exception]) -> None:
        self.name = short_path(name)
        self.data = data
        self.error = error

    @classmethod
    def json(cls, path: Path, kind: str, error: Callable[[str], Exception]) -> Source:
        """Read a JSON file, or raise `error`; `kind` names its contents there, such as "ladder"."""
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
            text, found, place = str(error).rpartition(" - at `$")
            place, text = (place.strip("`."), text) if found else ("", str(error))
            raise self.failure(place, escape_text(text, _MAX_MESSAGE)) from None

    def expect(self, right: object, place: str, wanted: str, got: object, remedy: str = "") -> None:
        """Raise an error, "expected `wanted`, got `got`" at a place, unless `right` is true."""
        if not right:
            text = f"expected {wanted}, got {repr_short(got)}"
            raise self.failure(place, f"{text}: {remedy}" if remedy else text)

    def failure(self, place: str, text: str) -> Exception:
        """Return an error of the class `error`, to raise.

        Args:
            place: the key in the file, such as `boards[0].hash`; "" for the whole file.
            text: what was expected there, and what was found.
        """
        return self.error(": ".join(part for part in (self.name, escape_text(place), text) if part))
