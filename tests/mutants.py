"""Damage: bytes, texts, trees and objects, changed at random in ways that input is wrong."""

import copy
import decimal
import enum
import fractions
import json
import math
import random
from collections import OrderedDict, UserDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

# What a wrong value may be: of every type, at the ends of what types hold, long, deep, hostile.
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 63, 64, 127, 128, 255, 256, 1000, 65_536, -128, -129, 2**31, -(2**31) - 1),
    *(2**53, 2**53 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), -float("inf")),
)
TEXTS = (
    *("", " ", "x", "a" * 9999, "\x1b[31m", "[/x]", "<script>", "\u202e\u2028", "é日", "%s{}"),
    *(
        "\x00",
        "\ud800",
        "../../etc/passwd",
        "/dev/zero",
        ".",
        "~",
        "C:\\",
        "a.b",
        "a,b=c",
        '"',
        "'",
    ),
    *("python:subprocess:Popen,args=echo", "policy:/dev/zero", "mcts:sims=999999999", "null", "1"),
    *("shikoku", "random", "greedy", "nan", "-1", "1e400", "True", "０", "١"),
)


def deep(levels: int) -> Any:
    """Lists within each other."""
    nest: Any = 1
    for _ in range(levels):
        nest = [nest]
    return nest


def value(rng: random.Random) -> Any:
    """A value that is likely to be wrong."""
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: rng.choice(NUMBERS),
        lambda: rng.choice(TEXTS),
        lambda: rng.choice((None, True, False, [], {}, [[]], [None], {"": None}, [0] * 1000)),
        lambda: deep(rng.choice((3, 63, 64, 65, 200))),
        lambda: {str(i): i for i in range(rng.choice((2, 300)))},
    )
    return rng.choices(kinds, (6, 4, 3, 1, 1))[0]()


# Trees


def tree(rng: random.Random, data: Any, most: int = 3) -> Any:
    """A copy of a tree of dicts, lists and plain values with one to `most` changes."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, most)):
        found = places(data)
        if not found:
            return value(rng)
        rng.choices(CHANGES, WEIGHTS)[0](rng, found)
    return value(rng) if rng.random() < 0.01 else data


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every place of a tree: what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    left = [data]
    while left:
        holder = left.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        found += [(holder, key) for key in keys]
        left += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found


Places = list[tuple[Any, Any]]


def _replace(rng: random.Random, places: Places) -> None:
    holder, key = rng.choice(places)
    holder[key] = value(rng)


def _nudge(rng: random.Random, places: Places) -> None:
    """A number near the right one, another word of the file, or a letter changed."""
    holder, key = rng.choice(places)
    old = holder[key]
    if isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int | float):
        part = 0.5 if abs(old) < 2**53 else 5  # of no float, if it is that large
        holder[key] = old + rng.choice((-1, 1, 2, -3, 10, part))
    elif isinstance(old, str) and old:
        at = rng.randrange(len(old))
        holder[key] = old[:at] + rng.choice("abC1:.\x7f") + old[at + rng.randint(0, 1) :]
    else:
        holder[key] = copy.deepcopy(rng.choice(places)[0])


def _swap(rng: random.Random, places: Places) -> None:
    """Put what stands at one place at another, or exchange neighbours."""
    (one, key), (other, there) = rng.choice(places), rng.choice(places)
    if rng.random() < 0.5 and isinstance(one, list):
        other, there = one, rng.randrange(len(one))
        one[key], other[there] = other[there], one[key]
    else:
        one[key] = copy.deepcopy(other[there])


def _drop(rng: random.Random, places: Places) -> None:
    holder, key = rng.choice(places)
    del holder[key]


def _add(rng: random.Random, places: Places) -> None:
    holder, key = rng.choice(places)
    if isinstance(holder, list):
        holder.insert(key, rng.choice((value(rng), copy.deepcopy(holder[key]))))
    else:
        holder[rng.choice((*TEXTS, str(key) + "s"))] = value(rng)


def _rename(rng: random.Random, places: Places) -> None:
    holder, key = rng.choice(places)
    if isinstance(holder, dict):
        holder[rng.choice((str(key).upper(), str(key)[:-1], *TEXTS))] = holder.pop(key)
    else:
        holder[key] = {"0": holder[key]}


def _repeat(rng: random.Random, places: Places) -> None:
    """Many of the same."""
    holder, key = rng.choice(places)
    if isinstance(holder, list) and len(holder) < 1000:
        holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice((2, 100))
    else:
        holder[key] = [holder[key]]


Change = Callable[[random.Random, Places], None]
CHANGES: tuple[Change, ...] = (_replace, _nudge, _swap, _drop, _add, _rename, _repeat)
WEIGHTS = (5, 6, 3, 2, 2, 1, 1)


# Objects of Python that no file has


class Mute(int):
    """An integer that tells nothing of itself."""

    def _fail(self, *others: object) -> NoReturn:
        raise RuntimeError("not to be\nasked")

    __index__ = __int__ = __repr__ = __str__ = __eq__ = _fail  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class One(enum.IntEnum):
    """An integer with a name."""

    ONE = 1


class Word(str):
    """Text of another type."""


def stranger(rng: random.Random) -> Any:
    """A value that no file has."""
    number = rng.choice((-1, 0, 1, 2, 7, 255, 2**31, 2**63))
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: rng.choice((np.int8(1), np.int64(3), np.uint64(2**64 - 1), np.float64("nan"))),
        lambda: rng.choice((np.bool_(True), np.str_("C1"), np.datetime64("2026-01-01"), One.ONE)),
        lambda: rng.choice((Mute(number % 5), object(), int, len, NotImplemented, ..., Word("C1"))),
        lambda: rng.choice((b"C1", 1j, decimal.Decimal(1), fractions.Fraction(1), Path("C1"))),
        lambda: rng.choice((set(), {number}, range(3), iter(()), (x for x in (1, 2)), ())),
        lambda: rng.choice((np.arange(3), np.zeros((2, 2)), np.array(number), np.array(["C1"]))),
        lambda: np.array([None, Mute(1)], object),
        lambda: [[1, 2], [3]],
    )
    return rng.choice(kinds)()


def disguised(rng: random.Random, data: Any, most: int = 2) -> Any:
    """A copy of a tree in which one to `most` values look like what they were, or are strangers."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, most)):
        holder, key = rng.choice(places(data))
        if isinstance(holder, dict | list):
            alike = _ALIKE.get(type(holder[key]))
            try:
                holder[key] = rng.choice(alike)(holder[key]) if alike else stranger(rng)
            except (OverflowError, ValueError, RuntimeError):  # too large, NaN, or mute already
                holder[key] = stranger(rng)
    return data


_ALIKE: dict[type, tuple[Callable[[Any], Any], ...]] = {
    dict: (OrderedDict, UserDict, MappingProxyType, list, lambda table: list(table.items())),
    list: (tuple, np.array, iter, lambda items: dict(enumerate(items)), str),
    int: (np.int64, np.int8, float, str, Mute, np.array, lambda n: n + 0j, bool, decimal.Decimal),
    str: (Word, np.str_, str.encode, str.upper, list, Path),
    bool: (int, np.bool_, str, float),
}


# Texts and bytes


def text(rng: random.Random, line: str, most: int = 4) -> bytes:
    """A text with one to `most` changes, as bytes: what comes out need be no text."""
    return damaged(rng, line.encode("utf-8", "surrogatepass"), most)


def damaged(rng: random.Random, data: bytes, most: int = 4) -> bytes:
    """Bytes with one to `most` changes: flips, cuts, repeats, insertions."""
    for _ in range(rng.randint(1, most)):
        at, long = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 100))
        data = rng.choice(SPOILS)(rng, data, at, long)
    return data


def _flip(rng: random.Random, data: bytes, at: int, long: int) -> bytes:
    if at == len(data):
        return data
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _overwrite(rng: random.Random, data: bytes, at: int, long: int) -> bytes:
    new = rng.randbytes(long) if rng.random() < 0.3 else bytes(rng.choices(range(32, 127), k=long))
    return data[:at] + new + data[at + long :]


def _cut(rng: random.Random, data: bytes, at: int, long: int) -> bytes:
    return data[:at] + data[at + long :]


def _end(rng: random.Random, data: bytes, at: int, long: int) -> bytes:
    return data[:at] if rng.random() < 0.3 else data


def _again(rng: random.Random, data: bytes, at: int, long: int) -> bytes:
    return data[:at] + data[max(0, at - long) :]


def _insert(rng: random.Random, data: bytes, at: int, long: int) -> bytes:
    return data[:at] + rng.choice(TOKENS) + data[at:]


SPOILS = (_flip, _overwrite, _cut, _end, _again, _insert)
TOKENS = (
    *(b"[", b"]", b"{", b"}", b'"', b"'", b",", b":", b"=", b".", b"\n", b"\r", b"\\", b"\x00"),
    *(
        b"\\u0000",
        b"\\ud800",
        b"#",
        b"-",
        b"e",
        b"9" * 5000,
        b"[" * 2000,
        b'{"":' * 2000,
        b"a." * 500,
    ),
    *(
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"null",
        b"NaN",
        b"Infinity",
        b"1e999",
        b"\x1b[2J",
    ),
)


def as_json(rng: random.Random, data: Any) -> bytes:
    """A tree of JSON types as a damaged file: a wrong tree, mostly, or a wrong text."""
    if rng.random() < 0.75:
        data = tree(rng, data)
    line = dumps(data)
    return line if rng.random() < 0.75 else damaged(rng, line)


def as_toml(rng: random.Random, data: dict[str, Any]) -> bytes:
    """As `as_json`, of a table as TOML, a line a key."""
    changed = tree(rng, data) if rng.random() < 0.75 else data
    table = changed if isinstance(changed, dict) else {"": changed}
    line = "".join(f"{_quoted(key)} = {_toml(item)}\n" for key, item in table.items())
    return text(rng, line) if rng.random() < 0.25 else line.encode("utf-8", "surrogatepass")


def _toml(item: Any) -> str:
    if isinstance(item, dict):
        pairs = (f"{_quoted(key)} = {_toml(inner)}" for key, inner in item.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(item, list):
        return "[" + ", ".join(map(_toml, item)) + "]"
    if isinstance(item, float) and not math.isfinite(item):
        return repr(item)
    return json.dumps(item)


def _quoted(key: str) -> str:
    return key if key.isascii() and key.isidentifier() else json.dumps(key)


def dumps(data: Any) -> bytes:
    """JSON, of lone surrogates and numbers that are none, too."""
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")
