"""Tests of `tokaido_env.decoding`: valid data and each kind of error."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from tokaido_env.decoding import UNICODE, Count, Name, PlacedError, Share, Source, Struct, one_of


class Inner(Struct, frozen=True):
    name: Name
    number: Annotated[int, Meta(ge=1, le=5)]
    share: Share | None = None
    kind: Annotated[str, one_of(("a", "b b"))] = "a"
    text: Annotated[str, Meta(pattern=UNICODE)] = ""

    def __post_init__(self) -> None:
        if self.name == "no":
            raise ValueError("name: expected another than no")


class Outer(Struct, frozen=True):
    parts: tuple[Inner, ...]
    counts: dict[str, Count] | None = None


GOOD = {"name": "x", "number": 5, "share": 1, "kind": "a", "text": ""}


class FileError(ValueError):
    pass


def test_decode__round_trips() -> None:
    held = Source("f.json", {"parts": [GOOD], "counts": {"a": 0}}, FileError).decode(Outer)
    assert held == Outer((Inner("x", 5, 1.0),), {"a": 0})
    assert held.to_dict() == {"parts": [GOOD], "counts": {"a": 0}}
    assert Source("f.json", {"parts": []}, FileError).decode(Outer) == Outer(())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "f.json: expected an object, got None"),
        ({}, "f.json: parts: expected a value, got none"),
        ({"parts": "ab"}, "f.json: parts: expected a list, got 'ab'"),
        ({"parts": [GOOD, 7]}, "f.json: parts[1]: expected an object, got 7"),
        ({"parts": [{**GOOD, "more": 1}]}, "f.json: parts[0].more: expected no such key"),
        ({"parts": [], "\x1b[2J`": 1}, r"f.json: \x1b[2J`: expected no such key"),
        ({"parts": [], "x - at `$.y": 1}, "expected no such key"),
        ({"parts": [], "roun$": 1}, "f.json: roun$: expected no such key"),
        ({"parts": [{**GOOD, "kind": "c"}]}, "parts[0].kind: expected one of a, b b, got 'c'"),
        ({"parts": [{**GOOD, "kind": "a\n"}]}, "parts[0].kind: expected one of a, b b, got 'a"),
        (
            {"parts": [{**GOOD, "text": "\ud800"}]},
            r"text: expected a text of valid Unicode, got '\ud",
        ),
        ({"parts": [{**GOOD, "name": 3}]}, "f.json: parts[0].name: expected a text, got 3"),
        ({"parts": [{**GOOD, "name": "no"}]}, "f.json: parts[0]: name: expected another than no"),
        ({"parts": [{**GOOD, "name": "n" * 1001}]}, "name: expected a text of length <= 1000, "),
        ({"parts": [{**GOOD, "number": True}]}, "number: expected an integer, got True"),
        ({"parts": [{**GOOD, "number": 5.0}]}, "number: expected an integer, got 5.0"),
        ({"parts": [{**GOOD, "number": 6}]}, "number: expected an integer <= 5, got 6"),
        ({"parts": [{**GOOD, "share": "1"}]}, "share: expected a number or null, got '1'"),
        ({"parts": [{**GOOD, "share": float("nan")}]}, "share: expected a number >= 0.0, got nan"),
        ({"parts": [{**GOOD, "share": 10**400}]}, "share: expected another value, got 1000"),
        (
            {"parts": [], "counts": {"a": -1}},
            "f.json: counts[...]: expected an integer >= 0, got {'a': -1}",
        ),
    ],
)
def test_decode__names_place_expectation_and_value(data: Any, message: str) -> None:
    with pytest.raises(FileError) as caught:
        Source("f.json", data, FileError).decode(Outer)
    assert message in str(caught.value)
    assert len(str(caught.value)) <= 500
    assert str(caught.value).isprintable()


def test_placed_error__has_the_place() -> None:
    source = Source("", {"parts": [{**GOOD, "number": 0}]}, PlacedError)
    with pytest.raises(PlacedError, match=r"^parts\[0\]\.number: expected an in") as caught:
        source.decode(Outer)
    assert caught.value.key == "parts[0].number"


def test_source__refuses_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with pytest.raises(FileError, match="no such set"):
        Source.json(path, "set", FileError)
    path.write_text('{"a": 1, "a": 2}')
    with pytest.raises(
        FileError, match=r"f\.json: not a whole JSON file: expected each key once, got 'a' twice"
    ):
        Source.json(path, "set", FileError)
    with pytest.raises(FileError, match="expected a file, got a folder"):
        Source.json(tmp_path, "set", FileError)
    path.write_text(json.dumps({"parts": []}))
    assert Source.json(path, "set", FileError).decode(Outer) == Outer(())


def test_check_versions__runs_before_other_checks() -> None:
    Source("f", {"version": 1, "more": None}, FileError).check_versions(version=1)
    for data in ({"version": 2}, {"version": True}, {"version": "1"}, {}, [1], None):
        with pytest.raises(FileError, match=r"f: version: expected 1, got .*: make it again"):
            Source("f", data, FileError).check_versions("make it again", version=1)


def test_expect__raises_unless_the_condition_holds() -> None:
    source = Source("f", {}, FileError)
    source.expect(True, "a", "more", 1)
    with pytest.raises(FileError, match=r"f: a\[0\]: expected more, got 1"):
        source.expect([], "a[0]", "more", 1)
