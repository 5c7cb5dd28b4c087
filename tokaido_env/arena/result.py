"""Results of all measurements: matches, `rate`, `ladder`, `generalise` and `regret`.

A result has the scores of the games that were played, estimates that follow from them, and what
identifies the measurement: agents, boards, seed, command, versions and the file of the games. The
file is JSON and ends with a hash of its content; cite a ladder by it.

    result = Result.load("rating.json")
    result.estimate("Elo").value
    result.to_frame()                     # a row for each score and each estimate
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Meta, field
from msgspec.structs import replace

from tokaido_env.arena.intervals import PAIR_SCORES, Estimate, score_interval
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.arguments import str_short
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.core.state import END_CAP
from tokaido_env.decoding import Count, Name, Number, Seed, Share, Source, Struct
from tokaido_env.files import file_sha256, write_text
from tokaido_env.record import Files

VERSION = 1

Protocol = Literal["matches", "rate", "ladder", "generalise", "regret"]

_Pairs = Annotated[int, Meta(ge=0, le=MAX_GAMES)]
_Points = tuple[Number, Number, Number]


class ResultError(ValueError):
    """A file cannot be read as a result: the message names the expected content."""


class Games(Struct, frozen=True):
    """Counts and means of the games of a score, of `a` and `b` where there are two.

    Attributes:
        draws: number of shared victories.
        seats: score of `a` as player_0 and as player_1.
        points: mean faith, commerce and culture of games without a forfeit.
        forfeits: number of games lost by forfeit.
        capped: number of games that reached the cap on rounds (R10.1).
        equal: number of pairs of two equal games, because the agents play alike.
    """

    draws: Count
    seats: tuple[Share, Share]
    points: tuple[_Points, _Points]
    forfeits: tuple[Count, Count]
    capped: Count = 0
    equal: Count = 0

    @classmethod
    def of(cls, match: Match) -> Games:
        """Return the counts and means of the games of a match, of `a` and of `b`."""
        points = [tuple(round(x, 4) for x in match.mean_points(side)) for side in range(2)]
        lost = match.games["forfeit"] > 0
        first, second = (round(x, 6) for x in match.results.mean(axis=0).tolist())
        forfeits = [int((lost & (match.results == side)).sum()) for side in range(2)]
        draws = int((match.results == 0.5).sum())
        same = (match.actions[:, 0] == match.actions[:, 1]).all(axis=1)
        played = (match.games["decisions"] + match.games["forfeit"] > 0).all(axis=1)
        more = int((match.games["end"] == END_CAP).sum()), int((same & played).sum())
        return cls(draws, (first, second), tuple(points), tuple(forfeits), *more)  # type: ignore[arg-type]  # pairs


class Score(Struct, frozen=True, omit_defaults=True):
    """The score of agent `a` against agent `b` on a board or a pool of boards.

    Attributes:
        a: spec of the agent.
        b: spec of its opponent.
        board: name of the board or pool.
        seed: of the match; None if the games have several seeds.
        pairs: the number of pairs of games in which `a` scored 0, 0.5, 1, 1.5 and 2.
        value: the mean score of `a`, 0 to 1.
        low: lower end of its 95 % interval.
        high: upper end.
        group: the part of the measurement, such as the pool that the board is from.
        games: more about the games; None if left out.
        decided: the better agent, "a" or "b", if a sequential test has found it.
    """

    a: Name
    b: Name
    board: Name
    seed: Seed | None
    pairs: tuple[_Pairs, _Pairs, _Pairs, _Pairs, _Pairs]
    value: Share
    low: Share
    high: Share
    group: Name = ""
    games: Games | None = None
    decided: Literal["a", "b"] | None = None

    @classmethod
    def of_pairs(
        cls, a: str, b: str, board: str, seed: int | None, pairs: Iterable[int], **more: Any
    ) -> Score:
        """Return the score of numbers of pairs with 0, 0.5, 1, 1.5 and 2 points for `a`.

        It has its 95 % interval; `more` are other fields of a `Score`.
        """
        zero, one, two, three, four = map(int, pairs)
        counts = zero, one, two, three, four
        scores = np.repeat(PAIR_SCORES, counts)
        interval = score_interval(np.stack([scores, scores], axis=1))
        found = Estimate.of(float(scores.mean()), interval)
        return cls(a, b, board, seed, counts, found.value, found.low, found.high, **more)

    @classmethod
    def of(cls, match: Match, board: str, seed: int | None, **more: Any) -> Score:
        """Return the score of a match with its 95 % interval and `Games`; `more`: other fields."""
        pairs = match.pentanomial.tolist()
        more = {"games": Games.of(match), "decided": match.decided} | more
        return cls.of_pairs(match.a, match.b, board, seed, pairs, **more)

    def reversed(self) -> Score:
        """Return the score of `b` against `a`; its `games` and `decided` are None."""
        pairs = self.pairs[::-1]
        return Score.of_pairs(self.b, self.a, self.board, self.seed, pairs, group=self.group)

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        """The numbers of pairs with 0, 0.5, 1, 1.5 and 2 points for `a`: int64 (5,)."""
        return np.array(self.pairs, np.int64)

    @property
    def n(self) -> int:
        """The number of games, two for each pair."""
        return 2 * sum(self.pairs)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends, low and high, of the 95 % interval of the score, 0 to 1, by `intervals`."""
        return self.low, self.high

    @property
    def points(self) -> float:
        """The points of `a`: its wins and half of its draws, a multiple of 0.5."""
        return sum(half_points * count for half_points, count in enumerate(self.pairs)) / 2


class Measure(Estimate, frozen=True, omit_defaults=True):
    """A named estimate.

    Attributes:
        measure: what the estimate is of.
        agent: spec of the agent; "" of all.
        n: number of games or positions behind it; 0 if unknown.
        other: the agent or the boards that it is compared with.
        group: the part of the measurement: boards, rounds, a policy.
    """

    measure: Name
    agent: Name
    n: Count = 0
    other: Name = ""
    group: Name = ""

    @classmethod
    def named(
        cls,
        measure: str,
        agent: str,
        value: float,
        interval: Sequence[float] | None = None,
        **more: Any,
    ) -> Measure:
        """Return an estimate rounded to six decimals; `more` are other fields, such as `n`."""
        found = Estimate.of(value, interval)
        return cls(found.value, found.low, found.high, measure, agent, **more)

    def rounded(self, digits: int) -> Measure:
        """Return the estimate and its interval rounded to `digits` decimals."""
        value, low, high = (round(x, digits) + 0.0 for x in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)


class BoardsEntry(Struct, frozen=True):
    """Boards of a measurement, or the positions of a regret set.

    Attributes:
        name: of the board, pool or set.
        hash: of the contents.
        count: number of boards or positions.
        drawn: whether the boards are a sample; if not, they are all there are of their kind, and
            intervals contain the uncertainty of the games only.
    """

    name: Name
    hash: str
    count: Count
    drawn: bool = False

    @classmethod
    def of(cls, pool: BoardPool, *, drawn: bool = False) -> BoardsEntry:
        """Return the entry of a board or pool; `drawn`: whether it is a sample of more boards."""
        return cls(pool.name, pool.hash, len(pool), drawn)


class RecordsEntry(Struct, frozen=True):
    """The record file of a result, in the same folder.

    Attributes:
        file: its name.
        sha256: 64 hex digits.
        games: number of games.
    """

    file: Name
    sha256: str
    games: Count

    @classmethod
    def of(cls, path: Path, games: int) -> RecordsEntry:
        """Return the entry, with its SHA-256, of a record file that holds this many games."""
        return cls(path.name, file_sha256(path), games)


class Result(Struct, frozen=True, kw_only=True):
    """The result of a measurement.

    Attributes:
        version: of the file format.
        protocol: of the measurement.
        command: that measures again; "" if none does, or a program called the library.
        package: version of tokaido_env.
        rules: version of the rules.
        agents: specs of the measured agents.
        files: of the agents; left out of the file if it is empty.
        boards: that were played on; of `regret` the set of positions.
        seed: of the measurement; None if the games have several.
        scores: of the games, one a match or board.
        estimates: that follow from the scores or positions.
        anchor: the agent at 0 Elo; "" without ratings.
        ladder: hash of the ladder that an agent was rated on, or that the differences are of.
        trained_on: the boards that the agent was trained on; None if unknown.
        complete: whether the measurement ran to its end.
        records: the file of the games; None if there is none.
    """

    version: int = VERSION
    protocol: Protocol
    command: str = ""
    package: str = ""
    rules: int = RULES_VERSION
    agents: Annotated[tuple[Name, ...], Meta(min_length=1)]
    boards: tuple[BoardsEntry, ...]
    seed: Seed | None
    scores: tuple[Score, ...] = ()
    estimates: tuple[Measure, ...] = ()
    anchor: Name = ""
    ladder: str = ""
    trained_on: Name | None = None
    complete: bool = True
    files: Files = field(default_factory=dict)
    records: RecordsEntry | None = None

    @classmethod
    def made(cls, protocol: Protocol, command: str = "", **fields: Any) -> Result:
        """Return a result of this version of the package; `fields` are other attributes."""
        package = version("tokaido-env")
        return cls(protocol=protocol, command=command, package=package, **fields)

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change with anything measured, not with command or package."""
        return content_hash(self._content())

    def to_dict(self) -> dict[str, Any]:
        """Return the content and the hash as plain JSON types, as in the file."""
        return {**self._content(), "hash": self.hash}

    def _content(self) -> dict[str, Any]:
        data = super().to_dict()
        return data if self.files else {key: x for key, x in data.items() if key != "files"}

    def to_json(self) -> str:
        """Return the JSON text of the file, with each score and estimate on its own line."""
        parts = []
        for key, value in self.to_dict().items():
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, list) and value and isinstance(value[0], dict):
                rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
                text = f"[\n  {rows}\n ]"
            parts.append(f' "{key}": {text}')
        return "{\n" + ",\n".join(parts) + "\n}\n"

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file, whole or not at all; see `files.atomic_write`."""
        write_text(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a result.

        Raises:
            ResultError: if the file is cut or changed, or made by another version.
        """
        return cls.decoded(Source.json(Path(path), "result", ResultError))

    @classmethod
    def decoded(cls, source: Source) -> Result:
        """Return the result in a file's data; raise `ResultError` if it is cut or changed."""
        remedy = "measure again, or use the version that made it"
        source.check_versions(remedy, version=VERSION, rules=RULES_VERSION)
        found = source.data.pop("hash", None)
        changed = "it was changed after it was made: restore it, or measure again"
        result = source.decode(cls)
        wanted = f"{result.hash} of its content"
        source.expect(found == result.hash, "hash", wanted, found, changed)
        return result

    def estimate(
        self, measure: str, *, agent: str | None = None, other: str = "", group: str = ""
    ) -> Measure:
        """Return the estimate with these fields, `agent=None` for any; else raise `ResultError`."""
        for one in self.estimates_of(measure):
            if one.other == other and one.group == group and agent in (None, one.agent):
                return one
        place = f"{measure} of {str_short(other or group) or 'the whole'}"
        raise ResultError(f"estimates: expected {place}, got none")

    def estimates_of(self, *measures: str) -> list[Measure]:
        """Return the estimates with one of these names of measures, in the result's order."""
        return [one for one in self.estimates if one.measure in measures]

    def scores_of(self, group: str) -> list[Score]:
        """Return the scores with a `group`, a part of the measurement, in the result's order."""
        return [score for score in self.scores if score.group == group]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each score, then for each estimate.

        Its columns are `measure`, `agent`, `other`, `group`, `board`, `value`, `low`, `high`, `n`.

        Raises:
            ModuleNotFoundError: if pandas is missing.
        """
        require_extra("data frames need", "notebooks", "pandas")
        import pandas

        columns = ("measure", "agent", "other", "group", "board", "value", "low", "high", "n")
        rows: list[tuple[Any, ...]] = [
            ("score", one.a, one.b, one.group, one.board, one.value, one.low, one.high, one.n)
            for one in self.scores
        ]
        rows += [
            (x.measure, x.agent, x.other, x.group, "", x.value, x.low, x.high, x.n)
            for x in self.estimates
        ]
        return pandas.DataFrame(rows, columns=columns)


def content_hash(data: Mapping[str, Any]) -> str:
    """Return sixteen hex digits of a result's content, without command, package and hash."""
    body = {key: data[key] for key in data if key not in ("command", "package", "hash")}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
