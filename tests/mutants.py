"""Random damage to bytes, texts, trees and objects, for tests of wrong input."""

import copy
import enum
import json
import math
import random
from collections.abc import Callable
from typing import Any, NoReturn

# Wrong values: of every type, at the limits of types, long, deep, hostile.
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 63, 64, 127, 128, 255, 256, 1000, 65_536, -128, -129, 2**31, -(2**31) - 1),
    *(2**53, 2**53 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), -float("inf")),
)
TEXTS = (
    *("", " ", "x", "a" * 9999, "\x1b[31m", "[/x]", "<script>", "\u202e\u2028", "é日", "%s{}"),
    *("\x00", "\ud800", "../../etc/passwd", "/dev/zero", ".", "~", "C:\\", "a.b", "a,b=c", '"'),
    "'",
    *("python:subprocess:Popen,args=echo", "policy:/dev/zero", "mcts:sims=999999999", "null", "1"),
    *("shikoku", "random", "greedy", "nan", "-1", "1e400", "True", "０", "١"),
)


def deep_list(levels: int) -> Any:
    """Return a list nested `levels` deep."""
    nest: Any = 1
    for _ in range(levels):
        nest = [nest]
    return nest


def wrong_value(rng: random.Random) -> Any:
    """Return a value that is probably wrong anywhere."""
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: rng.choice(NUMBERS),
        lambda: rng.choice(TEXTS),
        lambda: rng.choice((None, True, False, [], {}, [[]], [None], {"": None}, [0] * 1000)),
        lambda: deep_list(rng.choice((3, 63, 64, 65, 200))),
        lambda: {str(i): i for i in range(rng.choice((2, 300)))},
    )
    return rng.choices(kinds, (6, 4, 3, 1, 1))[0]()


# Trees


def mutated_tree(rng: random.Random, data: Any, most: int = 3) -> Any:
    """Return a copy of a tree of dicts, lists and plain values with one to `most` changes."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, most)):
        entries = entries_of(data)
        if not entries:
            return wrong_value(rng)
        rng.choices(CHANGES, WEIGHTS)[0](rng, entries)
    return wrong_value(rng) if rng.random() < 0.01 else data


Entries = list[tuple[Any, Any]]
"""Containers, dicts or lists, and a key of each."""


def entries_of(data: Any) -> Entries:
    """Return every entry of a tree: its container and its key."""
    entries: Entries = []
    left = [data]
    while left:
        container = left.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        entries += [(container, key) for key in keys]
        left += [container[key] for key in keys if isinstance(container[key], dict | list)]
    return entries


def _replace(rng: random.Random, entries: Entries) -> None:
    container, key = rng.choice(entries)
    container[key] = wrong_value(rng)


def _nudge(rng: random.Random, entries: Entries) -> None:
    """Change a number a little, change a letter, or copy another container."""
    container, key = rng.choice(entries)
    old = container[key]
    if isinstance(old, bool):
        container[key] = not old
    elif isinstance(old, int | float):
        step = 0.5 if abs(old) < 2**53 else 5  # larger integers have no floats in between
        container[key] = old + rng.choice((-1, 1, 2, -3, 10, step))
    elif isinstance(old, str) and old:
        at = rng.randrange(len(old))
        container[key] = old[:at] + rng.choice("abC1:.\x7f") + old[at + rng.randint(0, 1) :]
    else:
        container[key] = copy.deepcopy(rng.choice(entries)[0])


def _swap(rng: random.Random, entries: Entries) -> None:
    """Exchange two items of a list, or copy one entry to another."""
    (one, key), (other, other_key) = rng.choice(entries), rng.choice(entries)
    if rng.random() < 0.5 and isinstance(one, list):
        other, other_key = one, rng.randrange(len(one))
        one[key], other[other_key] = other[other_key], one[key]
    else:
        one[key] = copy.deepcopy(other[other_key])


def _drop(rng: random.Random, entries: Entries) -> None:
    container, key = rng.choice(entries)
    del container[key]


def _add(rng: random.Random, entries: Entries) -> None:
    container, key = rng.choice(entries)
    if isinstance(container, list):
        container.insert(key, rng.choice((wrong_value(rng), copy.deepcopy(container[key]))))
    else:
        container[rng.choice((*TEXTS, str(key) + "s"))] = wrong_value(rng)


def _rename(rng: random.Random, entries: Entries) -> None:
    container, key = rng.choice(entries)
    if isinstance(container, dict):
        container[rng.choice((str(key).upper(), str(key)[:-1], *TEXTS))] = container.pop(key)
    else:
        container[key] = {"0": container[key]}


def _repeat(rng: random.Random, entries: Entries) -> None:
    """Repeat an item many times, or put it into a list."""
    container, key = rng.choice(entries)
    if isinstance(container, list) and len(container) < 1000:
        container[key:key] = [copy.deepcopy(container[key])] * rng.choice((2, 100))
    else:
        container[key] = [container[key]]


Change = Callable[[random.Random, Entries], None]
CHANGES: tuple[Change, ...] = (_replace, _nudge, _swap, _drop, _add, _rename, _repeat)
WEIGHTS = (5, 6, 3, 2, 2, 1, 1)


# Python objects that no file holds


class HostileInt(int):
    """An integer with methods that raise errors."""

    def _fail(self, *others: object) -> NoReturn:
        raise RuntimeError("hostile\nobject")

    __index__ = __int__ = __repr__ = __str__ = __eq__ = _fail  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class One(enum.IntEnum):
    """An integer with a name."""

    ONE = 1


class StrSubclass(str):
    """A subclass of str."""


# Texts and bytes


def mutated_text(rng: random.Random, line: str, most: int = 4) -> bytes:
    """Return a text with one to `most` changes, as bytes; they may be no valid text."""
    return mutated_bytes(rng, line.encode("utf-8", "surrogatepass"), most)


def mutated_bytes(rng: random.Random, data: bytes, most: int = 4) -> bytes:
    """Return bytes with one to `most` changes: flips, cuts, repeats, insertions."""
    for _ in range(rng.randint(1, most)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 100))
        data = rng.choice(BYTE_CHANGES)(rng, data, at, length)
    return data


def _flip(rng: random.Random, data: bytes, at: int, length: int) -> bytes:
    if at == len(data):
        return data
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _overwrite(rng: random.Random, data: bytes, at: int, length: int) -> bytes:
    new = (
        rng.randbytes(length)
        if rng.random() < 0.3
        else bytes(rng.choices(range(32, 127), k=length))
    )
    return data[:at] + new + data[at + length :]


def _cut(rng: random.Random, data: bytes, at: int, length: int) -> bytes:
    return data[:at] + data[at + length :]


def _end(rng: random.Random, data: bytes, at: int, length: int) -> bytes:
    return data[:at] if rng.random() < 0.3 else data


def _again(rng: random.Random, data: bytes, at: int, length: int) -> bytes:
    return data[:at] + data[max(0, at - length) :]


def _insert(rng: random.Random, data: bytes, at: int, length: int) -> bytes:
    return data[:at] + rng.choice(TOKENS) + data[at:]


BYTE_CHANGES = (_flip, _overwrite, _cut, _end, _again, _insert)
TOKENS = (
    *(b"[", b"]", b"{", b"}", b'"', b"'", b",", b":", b"=", b".", b"\n", b"\r", b"\\", b"\x00"),
    *(b"\\u0000", b"\\ud800", b"#", b"-", b"e", b"9" * 5000, b"[" * 2000, b'{"":' * 2000),
    *(b"a." * 500, b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"null", b"NaN", b"Infinity"),
    *(b"1e999", b"\x1b[2J"),
)


def mutated_json(rng: random.Random, data: Any) -> bytes:
    """Return a tree of JSON types as a file with a wrong tree, mostly, or wrong text."""
    if rng.random() < 0.75:
        data = mutated_tree(rng, data)
    line = json_bytes(data)
    return line if rng.random() < 0.75 else mutated_bytes(rng, line)


def mutated_toml(rng: random.Random, data: dict[str, Any]) -> bytes:
    """Return a table as TOML, one line for each key, damaged as by `mutated_json`."""
    changed = mutated_tree(rng, data) if rng.random() < 0.75 else data
    table = changed if isinstance(changed, dict) else {"": changed}
    line = "".join(f"{_quoted(key)} = {_toml(item)}\n" for key, item in table.items())
    return mutated_text(rng, line) if rng.random() < 0.25 else line.encode("utf-8", "surrogatepass")


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


def json_bytes(data: Any) -> bytes:
    """Return JSON, with NaN, and lone surrogates as escapes, allowed."""
    text = json.dumps(data, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace")
