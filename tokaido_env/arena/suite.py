"""Suites: fixed opponents, boards and seeds for comparing agents of different papers.

A suite is a file with a hash of its content. It gives an agent two numbers in Elo points on the
probit scale, where `mcts:sims=400` has 0: its strength on the default board, and the interquartile
mean of its strengths on boards of the family that nobody trains on.

The strength on a board has the maximum likelihood, given the games on this board and the fixed
opponent ratings of the suite. One drawn pair is added to each match of every agent, so that the
strength of an agent that won or lost every game is defined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta
from msgspec.structs import asdict

from tokaido_env.agents.registry import check_spec_in_file
from tokaido_env.arena.intervals import (
    BoardEstimate,
    Estimate,
    interquartile_mean,
    percentile_interval,
)
from tokaido_env.arena.ladder import HashedStruct, load_boards
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.paired_games import Pairs
from tokaido_env.arena.rating_model import ELO_PER_UNIT, PROBIT, maximum_likelihood
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.arguments import escape_text
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.decoding import Name, Number, Seed, Share, Source, Struct

SUITE = Path(__file__).resolve().parent / "tokaido-bench-1.json"
VERSION = 1  # of suites and of submissions
RESAMPLES = 2000
DEFAULT, TEST = "default", "test"  # the two parts of a suite
MAX_OPPONENTS = 100

Floats = npt.NDArray[np.float64]


class SubmissionError(ValueError):
    """A suite or a submission cannot be used: the message names the expected content."""


class SuitePart(Struct, frozen=True, dict=True):
    """Boards of a suite, the number of games and the fixed opponent ratings on them.

    Attributes:
        boards: name of the boards.
        hash: of the boards.
        pairs: of games, on each board, against each opponent.
        elo: the fixed rating of each opponent there, in the order of the opponents.
    """

    boards: Name
    hash: str
    pairs: Annotated[int, Meta(ge=1, le=MAX_GAMES)]
    elo: tuple[Number, ...]

    @cached_property
    def pool(self) -> BoardPool:
        """The boards."""
        return BoardPool.load(self.boards)


class Suite(HashedStruct, frozen=True):
    """Fixed opponents, boards and seeds.

    Attributes:
        version: of the file format.
        name: of the suite.
        rules: version of the rules.
        seed: from which the seeds of all games are derived.
        link: name of the rating model.
        opponents: their specs.
        default: the default board.
        test: the test boards.
    """

    version: int
    name: Name
    rules: int
    seed: Seed
    link: str
    opponents: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=MAX_OPPONENTS)]
    default: SuitePart
    test: SuitePart

    @classmethod
    def load(cls, path: Path | None = None) -> Suite:
        """Read a suite, by default tokaido-bench-1.

        Raises:
            SubmissionError: if the file is cut or changed, or made for other rules or boards.
            AgentError: if it names an agent that a file may not name.
        """
        path = SUITE if path is None else path
        source = Source.json(path, "suite", SubmissionError)
        remedy = "use the version of the package that it was made with"
        source.check_versions(remedy, version=VERSION, rules=RULES_VERSION, link=PROBIT)
        suite = cls.from_source(source)
        opponents = suite.opponents
        once = len(set(opponents)) == len(opponents)
        source.expect(once, "opponents", "specs of agents, each once", opponents)
        for spec in opponents:
            check_spec_in_file(spec, source.name, path.parent)
        for key, part in ((DEFAULT, suite.default), (TEST, suite.test)):
            places = f"{key}.boards", f"{key}.hash"
            pool = load_boards(source, places, part.boards, part.hash)
            most = MAX_GAMES // (2 * len(pool) * len(opponents))
            source.expect(part.pairs <= most, f"{key}.pairs", f"at most {most:,}", part.pairs)
            each = len(part.elo) == len(opponents)
            source.expect(each, f"{key}.elo", "a number for each opponent", part.elo)
        return suite

    def match_states(self, agent: str) -> list[MatchState]:
        """Return the matches of an agent: on the default board, then on the test boards.

        On both it meets each opponent in turn, on the test boards board after board. Every match
        on a board has its own seeds, the same for all agents.
        """
        return [
            MatchState.for_boards(
                agent, opponent, part.pool, part.pairs, self.seed, self.name, opponent
            )
            for part in (self.default, self.test)
            for opponent in self.opponents
        ]

    def result(self, match_states: Sequence[MatchState]) -> SuiteResult:
        """Return the result of finished matches."""
        matches = [match_state.to_match() for match_state in match_states]
        count = len(self.opponents)
        rng = np.random.default_rng(self.seed)
        (tb_1,) = strengths_by_board(self.default, matches[:count], rng).T
        on_test = strengths_by_board(self.test, matches[count:], rng)
        names = self.test.pool.names.tolist()
        boards = [
            BoardEstimate.of(one[0], percentile_interval(one[1:]), str(name), digits=2)
            for name, one in zip(names, on_test.T, strict=True)
        ]
        return SuiteResult(
            *(self.name, self.hash, matches[0].a),
            tb_1=_strength(tb_1),
            tb_g=_strength(interquartile_mean(on_test)),
            worst=_worst(boards),
            scores=tuple(
                OpponentScore(one.b, round(one.score, 6), round(other.score, 6))
                for one, other in zip(matches[:count], matches[count:], strict=True)
            ),
            boards=tuple(boards),
        )


def _strength(draws: Floats) -> Estimate:
    """Return an estimate from the strength of the games, then of each resample."""
    return Estimate.of(draws[0], percentile_interval(draws[1:]), digits=2)


def _worst(boards: Sequence[BoardEstimate]) -> BoardEstimate:
    """Return the board of the lowest strength, the first of equals."""
    return min(boards, key=lambda one: one.value)


def strengths_by_board(
    part: SuitePart, matches: Sequence[Match], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Floats:
    """Return the strength of an agent on each board, (1 + resamples, boards).

    The first row is of the matches, the others of resamples of the pairs within each board and
    match. Boards are not resampled: a suite has no others.

    Args:
        part: of the suite.
        matches: against each opponent, the same number of pairs on each board, board after board.
        rng: of the resamples.
        resamples: number of resamples.
    """
    counts = np.stack([match.pentanomials(len(part.pool)) for match in matches])
    one_column = np.ones((len(matches), 1))
    strengths = []
    for board in range(len(part.pool)):
        pairs = Pairs.of_counts(counts[:, board]).with_drawn_pairs(np.ones(len(matches), bool))
        points = pairs.bootstrap(rng, resamples)
        offset = np.broadcast_to(-np.array(part.elo) / ELO_PER_UNIT, points.shape)
        skills = maximum_likelihood(one_column, offset, points, pairs.played)
        strengths.append(ELO_PER_UNIT * skills[:, 0])
    return np.stack(strengths, axis=1)


# Results and submissions


class OpponentScore(Struct, frozen=True):
    """The score of an agent against an opponent, on the default and on the test boards."""

    opponent: Name
    default: Share
    test: Share


class SuiteResult(Struct, frozen=True):
    """The result of an agent in a suite.

    Attributes:
        suite: name of the suite.
        hash: of the suite.
        agent: its spec.
        tb_1: strength on the default board.
        tb_g: interquartile mean of the strengths on the test boards.
        worst: the test board on which it is weakest.
        scores: against each opponent.
        boards: the test boards, in their order.
    """

    suite: str
    hash: str
    agent: Name
    tb_1: Estimate
    tb_g: Estimate
    worst: BoardEstimate
    scores: tuple[OpponentScore, ...]
    boards: Annotated[tuple[BoardEstimate, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if self.worst != _worst(self.boards):
            raise ValueError("worst: expected the board of the lowest value")


class RecordsEntry(Struct, frozen=True):
    """The record file of a submission, in the same folder.

    Attributes:
        file: its name.
        sha256: 64 hex digits.
        games: number of games.
    """

    file: Name
    sha256: str
    games: int

    def __post_init__(self) -> None:
        if self.file in ("", "..") or Path(self.file).name != self.file:
            raise ValueError("file: expected the name of a file in the same folder")

    @classmethod
    def of(cls, path: Path, games: int) -> RecordsEntry:
        """Return the entry of a record file with its number of games."""
        return cls(path.name, file_sha256(path), games)


class Submission(SuiteResult, frozen=True):
    """A submitted result.

    Attributes:
        version: of the file format.
        records: the record file; None if there is none.
    """

    version: int
    records: RecordsEntry | None

    @classmethod
    def of(cls, result: SuiteResult, records: RecordsEntry | None) -> Submission:
        """Return a result as a submission."""
        return cls(**asdict(result), version=VERSION, records=records)

    @classmethod
    def load(cls, path: Path, suite: Suite) -> Submission:
        """Read a submission to a suite.

        Raises:
            SubmissionError: naming the file and the place in it.
        """
        source = Source.json(path, "submission", SubmissionError)
        remedy = f"expected a submission to {escape_text(suite.name)}"
        source.check_versions(remedy, version=VERSION, suite=suite.name, hash=suite.hash)
        return source.decode(cls)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
