"""What a ladder file may hold: checked key by key before anything is made of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from tokaido_env.arena.links import LINKS
from tokaido_env.arena.match import MOST_GAMES
from tokaido_env.boards.board import Board
from tokaido_env.boards.family import is_family
from tokaido_env.boards.pool import BoardPool
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.checks import MAX_SEED, SeedError, check_seed, plain, shown
from tokaido_env.core.rules import RULES_VERSION

VERSION = 2

KEYS = (
    *("version", "board", "board_hash", "rules", "seed", "link", "fit", "anchor", "agents"),
    *("matches", "hash"),
)
SINCE_2 = ("link", "fit")  # keys that a ladder of version 1 does not have
FIT_KEYS = ("chi2", "df", "p")
RATING_KEYS = ("agent", "elo", "ci95", "games")
MATCH_KEYS = ("a", "b", "seed", "pairs", "score", "ci95")
MOST_ELO = 1_000_000
MOST_BOARDS = 1000  # of a pool that only the file names


class LadderError(ValueError):
    """A ladder that cannot be used or made: the message says why and what helps."""


def hash_of(body: Mapping[str, Any]) -> str:
    """Return the hash of a ladder, from all that its file holds but the hash."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def check_ladder(path: str, data: Any) -> None:
    """Check that a file holds a ladder of this version, as it was written."""
    if not isinstance(data, dict) or "matches" not in data:
        raise LadderError(f"{path}: not a ladder: expected the keys {', '.join(KEYS)}")
    for key, known in (("version", (1, VERSION)), ("rules", (RULES_VERSION,))):
        if type(data.get(key)) is not int or data[key] not in known:
            ours = " and ".join(map(str, known))
            raise LadderError(
                f"{path}: {key}: this version has {ours}, the ladder {shown(data.get(key))}: "
                "make it anew, or use the version that made it"
            )
    expected_keys = set(KEYS) - (set(SINCE_2) if data["version"] == 1 else set())
    if set(data) != expected_keys:
        wrong = ", ".join(sorted(set(data) ^ expected_keys))
        raise LadderError(f"{path}: keys missing or unknown: {plain(wrong)}")
    expected = hash_of({key: value for key, value in data.items() if key != "hash"})
    if data["hash"] != expected:
        raise LadderError(
            f"{path}: hash: expected {expected} of what it holds, got {shown(data['hash'])}: "
            "it was changed after it was made; restore it, or make it anew"
        )
    _check_types(path, data)


def _check_types(path: str, data: Mapping[str, Any]) -> None:
    for key in ("board", "board_hash", "anchor"):
        _expect(isinstance(data[key], str), path, key, "a text", data[key])
    _check_seed(path, "seed", data["seed"])
    if data["version"] > 1:
        _check_model(path, data)
    for key, names in (("agents", RATING_KEYS), ("matches", MATCH_KEYS)):
        _expect(isinstance(data[key], list), path, key, "a list", data[key])
        for i, one in enumerate(data[key]):
            _check_keys(path, f"{key}[{i}]", one, names)
    for i, rating in enumerate(data["agents"]):
        check_rating(path, f"agents[{i}]", rating)
    for i, match in enumerate(data["matches"]):
        _check_match(path, f"matches[{i}]", match)
    rated = {rating["agent"] for rating in data["agents"]}
    played = {match[side] for match in data["matches"] for side in "ab"}
    right = not rated or (rated == played and data["anchor"] in rated)
    _expect(right, path, "agents", "those of its matches, the anchor among them", sorted(rated))


def _check_model(path: str, data: Mapping[str, Any]) -> None:
    right = isinstance(data["link"], str) and data["link"] in LINKS
    _expect(right, path, "link", " or ".join(LINKS), data["link"])
    fit = data["fit"]
    finished = bool(data["agents"])
    _expect((fit is not None) == finished, path, "fit", "null without ratings, and only then", fit)
    if fit is None:
        return
    _check_keys(path, "fit", fit, FIT_KEYS)
    chi2, df, p = (fit[key] for key in FIT_KEYS)
    right = type(chi2) in (int, float) and 0 <= chi2 < inf
    _expect(right, path, "fit: chi2", "a number from 0", chi2)
    _expect(type(df) is int and 0 <= df <= MOST_GAMES, path, "fit: df", "a count", df)
    right = p is None if df == 0 else type(p) in (int, float) and 0 <= p <= 1
    _expect(right, path, "fit: p", "a number from 0 to 1, or null where df is 0", p)


def check_rating(path: str, place: str, rating: Any) -> None:
    """Check that something is a rating as `Rating.to_dict` gives it, or raise `LadderError`."""
    _check_keys(path, place, rating, RATING_KEYS)
    agent, ci95 = rating["agent"], rating["ci95"]
    _expect(isinstance(agent, str), path, f"{place}: agent", "a spec", agent)
    right = isinstance(ci95, list) and len(ci95) == 2
    numbers = [rating["elo"], *ci95] if right else []
    right = right and all(type(x) in (int, float) and abs(x) <= MOST_ELO for x in numbers)
    _expect(right, path, f"{shown(agent)}: elo and ci95", "three numbers", rating)
    count = rating["games"]
    right = type(count) is int and 0 <= count <= MOST_GAMES
    _expect(right, path, f"{shown(agent)}: games", "a count", count)


def _check_keys(path: str, place: str, one: Any, names: Sequence[str]) -> None:
    right = isinstance(one, dict) and set(one) == set(names)
    _expect(right, path, place, f"an object with the keys {', '.join(names)}", one)


def _check_match(path: str, place: str, match: Mapping[str, Any]) -> None:
    a, b, pairs = match["a"], match["b"], match["pairs"]
    right = isinstance(a, str) and isinstance(b, str) and a != b
    _expect(right, path, f"{place}: a and b", "the specs of two agents", (a, b))
    where = f"{shown(a)} against {shown(b)}"
    _check_seed(path, f"{where}: seed", match["seed"])
    right = isinstance(pairs, list) and len(pairs) == 5
    right = right and all(type(count) is int and 0 <= count <= MOST_GAMES for count in pairs)
    wanted = "five counts, of pairs with 0, 0.5, 1, 1.5 and 2 points"
    _expect(right and 0 < sum(pairs) <= MOST_GAMES, path, f"{where}: pairs", wanted, pairs)


def _check_seed(path: str, where: str, seed: object) -> None:
    try:
        check_seed(seed)
    except SeedError:
        _expect(False, path, where, f"an integer from 0 to {MAX_SEED}", seed)


def _expect(right: bool, path: str, where: str, wanted: str, got: object) -> None:
    if not right:
        raise LadderError(f"{path}: {where}: expected {wanted}, got {shown(got)}")


def boards_of(path: str, data: Mapping[str, Any], board: BoardPool | None) -> BoardPool:
    """Return what a ladder was made on, by default the board or pool that it names.

    Raises:
        LadderError: if it was made on something else.
    """
    pool = _named(path, data["board"]) if board is None else board
    if pool.hash != data["board_hash"]:
        raise LadderError(
            f"{path}: board_hash: expected {pool.hash} of {pool.name!r}, "
            f"got {shown(data['board_hash'])}: its games were played on another board"
        )
    return pool


def _named(path: str, name: str) -> BoardPool:
    """Return the boards of a name that stands in a file: no path, and not so many as to wait."""
    try:
        pool = BoardPool.load(name if is_family(name) else Board.named(name))
    except BoardError as error:
        raise LadderError(f"{path}: board: {error}; give the file of its board") from None
    if len(pool) > MOST_BOARDS:
        raise LadderError(
            f"{path}: board: {name} has {len(pool):,} boards, more than a file may ask for by "
            f"itself ({MOST_BOARDS:,}): name it as the board too"
        )
    return pool
