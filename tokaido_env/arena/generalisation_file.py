"""Results of `tokaido evaluate generalise` read from their files: checked key by key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokaido_env.arena.generalisation import (
    TEST,
    TRAIN,
    VERSION,
    Estimate,
    Generalisation,
    OnBoard,
    Scores,
)
from tokaido_env.arena.match import MOST_GAMES
from tokaido_env.boards.family import is_family, numbers_of
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.checks import MAX_SEED, MOST_PATH, SeedError, brief, check_seed, shown
from tokaido_env.files import read_json

KEYS = ("version", "agent", "opponent", "seed", "trained_on", TEST, TRAIN, "gap")
SCORES_KEYS = (
    *("pool", "hash", "boards", "pairs", "drawn", "mean", "iqm", "above_even", "each"),
)  # fmt: skip


class ResultsError(ValueError):
    """A file that does not hold such results: the message says what was expected."""


def load_generalisation(path: Path) -> Generalisation:
    """Read what `generalise --json` wrote.

    Raises:
        ResultsError: naming the file and the place in it.
    """
    where = brief(path, MOST_PATH)
    try:
        data = read_json(path)
    except FileNotFoundError:
        raise ResultsError(f"{where}: no such results") from None
    except OSError as error:
        raise ResultsError(f"{where}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ResultsError(str(error)) from None
    return _generalisation(where, data)


def boards_trained_on(result: Generalisation) -> int | None:
    """Return on how many boards of the family an agent was trained, None if on none we know of."""
    name = result.trained_on
    return None if name is None or not is_family(name) else len(numbers_of(name))


def _generalisation(path: str, data: Any) -> Generalisation:
    known = data.get("version") if isinstance(data, dict) else None
    if type(known) is int and known != VERSION:
        raise ResultsError(f"{path}: version: expected {VERSION}, got {shown(known)}: measure anew")
    _check_keys(path, "results of generalise", data, KEYS)
    _expect(type(known) is int, path, "version", str(VERSION), known)
    for key in ("agent", "opponent"):
        _expect(isinstance(data[key], str), path, key, "a spec", data[key])
    try:
        check_seed(data["seed"])
    except SeedError:
        _expect(False, path, "seed", f"an integer from 0 to {MAX_SEED}", data["seed"])
    _check_training(path, data["trained_on"])
    both = (data[TRAIN] is None) == (data["gap"] is None)
    _expect(both, path, "gap", f"null where {TRAIN} is, and only there", data["gap"])
    return Generalisation(
        *(data["agent"], data["opponent"], data["seed"], data["trained_on"]),
        test=_scores(path, TEST, data[TEST]),
        train=None if data[TRAIN] is None else _scores(path, TRAIN, data[TRAIN]),
        gap=None if data["gap"] is None else _estimate(path, "gap", data["gap"], lowest=-1.0),
    )


def _check_training(path: str, name: Any) -> None:
    _expect(name is None or isinstance(name, str), path, "trained_on", "a name or null", name)
    if name is not None and is_family(name):
        try:
            numbers_of(name)
        except BoardError as error:
            raise ResultsError(f"{path}: trained_on: {error}") from None


def _scores(path: str, place: str, data: Any) -> Scores:
    _check_keys(path, place, data, SCORES_KEYS)
    for key in ("pool", "hash"):
        _expect(isinstance(data[key], str), path, f"{place}: {key}", "a text", data[key])
    _expect(type(data["drawn"]) is bool, path, f"{place}: drawn", "true or false", data["drawn"])
    _expect(isinstance(data["each"], list), path, f"{place}: each", "a list", data["each"])
    boards, pairs = data["boards"], data["pairs"]
    right = type(boards) is int and 1 <= boards == len(data["each"])
    _expect(right, path, f"{place}: boards", "how many there are in each, from 1", boards)
    right = type(pairs) is int and 1 <= pairs <= MOST_GAMES
    _expect(right, path, f"{place}: pairs", f"a number from 1 to {MOST_GAMES:,}", pairs)
    mean, iqm, above_even = (
        _estimate(path, f"{place}: {key}", data[key]) for key in ("mean", "iqm", "above_even")
    )
    each = [_on_board(path, f"{place}: each[{i}]", one) for i, one in enumerate(data["each"])]
    head = data["pool"], data["hash"], pairs, data["drawn"]
    return Scores(*head, mean, iqm, above_even, tuple(each))


def _on_board(path: str, place: str, data: Any) -> OnBoard:
    _check_keys(path, place, data, ("board", "value", "ci95"))
    _expect(isinstance(data["board"], str), path, f"{place}: board", "a name", data["board"])
    score = {key: data[key] for key in ("value", "ci95")}
    return OnBoard(data["board"], _estimate(path, place, score))


def _estimate(path: str, place: str, data: Any, lowest: float = 0.0) -> Estimate:
    _check_keys(path, place, data, ("value", "ci95"))
    ci95 = data["ci95"]
    right = isinstance(ci95, list) and len(ci95) == 2
    numbers = [data["value"], *ci95] if right else []
    right = right and all(type(x) in (int, float) and lowest <= x <= 1.0 for x in numbers)
    _expect(right, path, place, f"a value and an interval from {lowest:g} to 1", data)
    return Estimate(float(data["value"]), (float(ci95[0]), float(ci95[1])))


def _check_keys(path: str, place: str, data: Any, names: Sequence[str]) -> None:
    right = isinstance(data, dict) and set(data) == set(names)
    _expect(right, path, place, f"an object with the keys {', '.join(names)}", data)


def _expect(right: bool, path: str, where: str, wanted: str, got: object) -> None:
    if not right:
        raise ResultsError(f"{path}: {where}: expected {wanted}, got {shown(got)}")
