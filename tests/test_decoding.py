"""Tests of `tokaido_env.decoding`: round trips, and errors that name the file and the place."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from tokaido_env.decoding import Count, Name, Share, Source, Struct, one_of


class Inner(Struct, frozen=True):
    name: Name
    number: Annotated[int, Meta(ge=1, le=5)]
    share: Share | None = None
    kind: Annotated[str, one_of(("a", "b b"))] = "a"

    def __post_init__(self) -> None:
        if self.name == "no":
            raise ValueError("name: expected another than no")


class Outer(Struct, frozen=True):
    parts: tuple[Inner, ...]
    counts: dict[str, Count] | None = None


GOOD = {"name": "x", "number": 5, "share": 1, "kind": "a"}


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
        (None, "f.json: Expected"),
        ({}, "f.json: Object missing required field `parts`"),
        ({"parts": "ab"}, "f.json: parts: Expected"),
        ({"parts": [GOOD, 7]}, "f.json: parts[1]: Expected"),
        ({"parts": [{**GOOD, "more": 1}]}, "f.json: parts[0]: Object contains unknown field"),
        ({"parts": [], "\x1b[2J`": 1}, r"f.json: Object contains unknown field `\x1b[2J"),
        ({"parts": [{**GOOD, "kind": "c"}]}, "f.json: parts[0].kind: Expected"),
        ({"parts": [{**GOOD, "kind": "a\n"}]}, "f.json: parts[0].kind: Expected"),
        ({"parts": [{**GOOD, "name": 3}]}, "f.json: parts[0].name: Expected"),
        ({"parts": [{**GOOD, "name": "no"}]}, "f.json: parts[0]: name: expected another than no"),
        ({"parts": [{**GOOD, "name": "n" * 1001}]}, "f.json: parts[0].name: Expected"),
        ({"parts": [{**GOOD, "number": True}]}, "f.json: parts[0].number: Expected"),
        ({"parts": [{**GOOD, "number": 5.0}]}, "f.json: parts[0].number: Expected"),
        ({"parts": [{**GOOD, "number": 6}]}, "f.json: parts[0].number: Expected"),
        ({"parts": [{**GOOD, "number": 2**64 + 1}]}, "f.json: parts[0].number: "),
        ({"parts": [{**GOOD, "share": "1"}]}, "f.json: parts[0].share: Expected"),
        ({"parts": [{**GOOD, "share": float("nan")}]}, "f.json: parts[0].share: Expected"),
        ({"parts": [], "counts": {"a": -1}}, "f.json: counts[...]: Expected"),
    ],
)
def test_decode__names_the_file_and_the_place_in_one_line(data: Any, message: str) -> None:
    with pytest.raises(FileError) as caught:
        Source("f.json", data, FileError).decode(Outer)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) <= 500
    assert str(caught.value).isprintable()


def test_source__names_the_file_that_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with pytest.raises(FileError, match=r"f\.json: no such set"):
        Source.json(path, "set", FileError)
    path.write_text('{"a": 1')
    for wrong in (path, tmp_path):
        with pytest.raises(FileError, match=f"^{wrong}: "):
            Source.json(wrong, "set", FileError)
    path.write_text(json.dumps({"parts": []}))
    assert Source.json(path, "set", FileError).decode(Outer) == Outer(())


def test_check_versions__runs_before_other_checks() -> None:
    Source("f", {"version": 1, "more": None}, FileError).check_versions(version=1)
    for data in ({"version": 2}, {"version": True}, {"version": "1"}, {}, [1], None):
        with pytest.raises(FileError, match=r"f: version: expected 1, got .*: make it again"):
            Source("f", data, FileError).check_versions("make it again", version=1)
