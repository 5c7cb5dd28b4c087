"""Suites and submissions read from their files: checked key by key."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agents.registry import check_from_file
from tokaido_env.arena.ladder_file import LadderError, boards_of, hash_of
from tokaido_env.arena.links import PROBIT
from tokaido_env.arena.match import MOST_GAMES
from tokaido_env.arena.suite import (
    DEFAULT,
    SUITE,
    TEST,
    OnBoard,
    Part,
    Strength,
    Suite,
    SuiteResult,
)
from tokaido_env.core.checks import (
    MAX_SEED,
    MOST_NAME,
    MOST_PATH,
    SeedError,
    brief,
    check_seed,
    plain,
    shown,
)
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.files import read_json

VERSION = 1  # of suites and of submissions

SUITE_KEYS = ("version", "name", "rules", "seed", "link", "opponents", DEFAULT, TEST, "hash")
PART_KEYS = ("boards", "hash", "pairs", "elo")
RESULT_KEYS = ("suite", "hash", "agent", "tb_1", "tb_g", "worst", "scores", "boards")
KEYS = ("version", *RESULT_KEYS, "records")
RECORDS_KEYS = ("file", "sha256", "games")
MOST_ELO = 1_000_000
MOST_OPPONENTS = 100


class SubmissionError(ValueError):
    """A suite or a submission that cannot be used: the message says why and what was expected."""


class Submission(NamedTuple):
    """What somebody says of an agent.

    Attributes:
        result: of the suite.
        records: the file of all games, beside that of the submission; None if none is named.
        sha256: of the records, 64 hex digits.
    """

    result: SuiteResult
    records: Path | None
    sha256: str


def load_suite(path: Path | None = None) -> Suite:
    """Read a suite, by default tokaido-bench-1.

    Raises:
        SubmissionError: if the file is cut or changed, or made for other rules or other boards.
        AgentError: if it names an agent that a file may not name.
    """
    path = SUITE if path is None else path
    where, data = _read(path, "suite")
    _check_keys(where, "a suite", data, SUITE_KEYS)
    known = {"version": VERSION, "rules": RULES_VERSION, "link": PROBIT}
    for key, ours in known.items():
        right = type(data[key]) is type(ours) and data[key] == ours
        _expect(right, where, key, f"{ours}, as this version of the package has", data[key])
    expected = hash_of({key: value for key, value in data.items() if key != "hash"})
    right = data["hash"] == expected
    _expect(right, where, "hash", f"{expected} of what it holds", data["hash"])
    _expect(isinstance(data["name"], str), where, "name", "a text", data["name"])
    try:
        check_seed(data["seed"])
    except SeedError:
        _expect(False, where, "seed", f"an integer from 0 to {MAX_SEED}", data["seed"])
    opponents = data["opponents"]
    right = isinstance(opponents, list) and 1 <= len(opponents) <= MOST_OPPONENTS
    right = right and all(isinstance(spec, str) for spec in opponents)
    right = right and len(set(opponents)) == len(opponents)
    _expect(right, where, "opponents", "specs of agents, each once", opponents)
    for spec in opponents:
        check_from_file(spec, where, path.parent)
    parts = (_part(where, key, data[key], len(opponents)) for key in (DEFAULT, TEST))
    head = data["name"], data["rules"], data["seed"], tuple(opponents)
    return Suite(*head, *parts)


def _part(path: str, key: str, data: Any, opponents: int) -> Part:
    _check_keys(path, key, data, PART_KEYS)
    for name in ("boards", "hash"):
        _expect(isinstance(data[name], str), path, f"{key}: {name}", "a text", data[name])
    try:
        pool = boards_of(path, {"board": data["boards"], "board_hash": data["hash"]}, None)
    except LadderError as error:
        raise SubmissionError(f"{brief(key)}: {error}") from None
    pairs, elo = data["pairs"], data["elo"]
    most = MOST_GAMES // (2 * len(pool) * opponents)
    right = type(pairs) is int and 1 <= pairs <= most
    _expect(right, path, f"{key}: pairs", f"a number from 1 to {most:,}", pairs)
    right = isinstance(elo, list) and len(elo) == opponents and all(map(_is_elo, elo))
    # 0 and 0.0 are alike, but the hashes of what holds them are not.
    right = right and all(isinstance(x, float) for x in elo)
    _expect(right, path, f"{key}: elo", "a number such as -57.0 for each opponent", elo)
    return Part(pool, pairs, tuple(elo))


def load_submission(path: Path, suite: Suite) -> Submission:
    """Read a submission, and check that it is of a suite.

    Raises:
        SubmissionError: naming the file and the place in it.
    """
    where, data = _read(path, "submission")
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is int and version != VERSION:
        _expect(False, where, "version", f"{VERSION}, as this version of the package has", version)
    _check_keys(where, "a submission", data, KEYS)
    _expect(type(version) is int, where, "version", str(VERSION), version)
    for key, ours in (("suite", suite.name), ("hash", suite.hash)):
        theirs = f"{ours} of the suite {plain(suite.name)}"
        _expect(data[key] == ours, where, key, theirs, data[key])
    agent = data["agent"]
    right = isinstance(agent, str) and len(agent) <= MOST_NAME
    _expect(right, where, "agent", f"a spec of at most {MOST_NAME} characters", agent)
    result = _result(where, data)
    if data["records"] is None:
        return Submission(result, None, "")
    _check_keys(where, "records", data["records"], RECORDS_KEYS)
    name, digest = data["records"]["file"], data["records"]["sha256"]
    right = isinstance(name, str) and bool(name) and name != ".." and Path(name).name == name
    _expect(right, where, "records: file", "the name of a file beside it", name)
    _expect(isinstance(digest, str), where, "records: sha256", "64 hex digits", digest)
    return Submission(result, path.parent / name, digest)


def _result(path: str, data: Any) -> SuiteResult:
    for key in ("boards", "scores"):
        _expect(isinstance(data[key], list), path, key, "a list", data[key])
    boards = [_on_board(path, f"boards[{i}]", one) for i, one in enumerate(data["boards"])]
    _expect(bool(boards), path, "boards", "one or more", data["boards"])
    worst = _on_board(path, "worst", data["worst"])
    result = SuiteResult(
        *(data["suite"], data["hash"], data["agent"]),
        tb_1=_strength(path, "tb_1", data["tb_1"]),
        tb_g=_strength(path, "tb_g", data["tb_g"]),
        boards=tuple(boards),
        scores=tuple(_score(path, f"scores[{i}]", one) for i, one in enumerate(data["scores"])),
    )
    right = worst == result.worst
    _expect(right, path, "worst", "the board of the lowest value", data["worst"])
    return result


def _on_board(path: str, place: str, data: Any) -> OnBoard:
    _check_keys(path, place, data, ("board", "value", "ci95"))
    _expect(isinstance(data["board"], str), path, f"{place}: board", "a name", data["board"])
    strength = {key: data[key] for key in ("value", "ci95")}
    return OnBoard(data["board"], _strength(path, place, strength))


def _strength(path: str, place: str, data: Any) -> Strength:
    _check_keys(path, place, data, ("value", "ci95"))
    ci95 = data["ci95"]
    right = isinstance(ci95, list) and len(ci95) == 2
    right = right and all(map(_is_elo, [data["value"], *ci95]))
    _expect(right, path, place, "a value and an interval, in Elo points", data)
    return Strength(float(data["value"]), (float(ci95[0]), float(ci95[1])))


def _score(path: str, place: str, data: Any) -> tuple[str, float, float]:
    _check_keys(path, place, data, ("opponent", DEFAULT, TEST))
    shares = [data[DEFAULT], data[TEST]]
    right = isinstance(data["opponent"], str)
    right = right and all(type(x) in (int, float) and 0 <= x <= 1 for x in shares)
    _expect(right, path, place, "an opponent and two shares of points", data)
    return data["opponent"], float(shares[0]), float(shares[1])


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def submission_to_dict(result: SuiteResult, records: Path | None, games: int) -> dict[str, Any]:
    """Return a submission as plain JSON types.

    Args:
        result: of the suite.
        records: the file of all games, which is to lie beside that of the submission.
        games: how many it holds.
    """
    kept = None
    if records is not None:
        kept = {"file": records.name, "sha256": sha256_of(records), "games": games}
    return {"version": VERSION, **result.to_dict(), "records": kept}


def _is_elo(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= MOST_ELO


def _read(path: Path, what: str) -> tuple[str, Any]:
    """Return what a file is called in messages, and what it holds."""
    where = brief(path, MOST_PATH)
    try:
        return where, read_json(path)
    except FileNotFoundError:
        raise SubmissionError(f"{where}: no such {what}") from None
    except OSError as error:
        raise SubmissionError(f"{where}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SubmissionError(str(error)) from None


def _check_keys(path: str, place: str, data: Any, names: Sequence[str]) -> None:
    right = isinstance(data, dict) and set(data) == set(names)
    _expect(right, path, place, f"an object with the keys {', '.join(names)}", data)


def _expect(right: bool, path: str, where: str, wanted: str, got: object) -> None:
    if not right:
        raise SubmissionError(f"{path}: {where}: expected {wanted}, got {shown(got)}")
