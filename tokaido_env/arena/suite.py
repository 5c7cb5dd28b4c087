"""Suites: fixed opponents, boards and luck, by which agents of different papers are compared.

A suite is data, with a hash of all that it is. It gives an agent two numbers in Elo points on the
probit scale, where `mcts:sims=400` has 0: its strength on the default board, and the interquartile
mean of its strengths on boards of the family that nobody trains on.

The strength on a board is that of the greatest likelihood, given the games on this board and what
the suite holds each opponent to be worth there, which is a constant. One drawn pair is added to
each match, for every agent alike, so that it is defined for an agent that won or lost every game.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta
from msgspec.structs import asdict

from tokaido_env.agents.registry import check_spec_in_file
from tokaido_env.arena.intervals import Estimate, interquartile_mean, percentile_interval
from tokaido_env.arena.ladder import content_hash, load_boards
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.paired_games import Pairs
from tokaido_env.arena.protocol import BoardEstimate, pentanomials_by_board, protocol_match
from tokaido_env.arena.rating_models import PROBIT, maximum_likelihood, model_named
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
    """A suite or a submission that cannot be used: the message says why and what was expected."""


class SuitePart(Struct, frozen=True, dict=True):
    """Boards of a suite, and what is played on them.

    Attributes:
        boards: name of the boards.
        hash: of the boards.
        pairs: of games, on each board, against each opponent.
        elo: what each opponent is worth there, in the order of the opponents.
    """

    boards: Name
    hash: str
    pairs: Annotated[int, Meta(ge=1, le=MAX_GAMES)]
    elo: tuple[Number, ...]

    @cached_property
    def pool(self) -> BoardPool:
        """The boards themselves."""
        return BoardPool.load(self.boards)


class Suite(Struct, frozen=True):
    """Fixed opponents, boards and luck.

    Attributes:
        version: of the file.
        name: of the suite.
        rules: version of the rules.
        seed: from which all luck follows.
        link: of the strengths.
        opponents: their specs.
        default: the board of the first number.
        test: the boards of the second.
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
        told = source.data.pop("hash", None)
        suite = source.decode(cls)
        source.expect(told == suite.hash, "hash", f"{suite.hash} of what it holds", told)
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

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change when anything in the suite changes."""
        return content_hash(super().to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the suite as plain JSON types, as it stands in a file."""
        return {**super().to_dict(), "hash": self.hash}

    def match_states(self, agent: str) -> list[MatchState]:
        """Return the matches of an agent: on the default board, then on the test boards.

        On both it meets each opponent in turn, on the test boards board after board. Every match
        on a board has luck of its own, the same for all agents.
        """
        return [
            protocol_match(agent, opponent, part.pool, part.pairs, self.seed, self.name, opponent)
            for part in (self.default, self.test)
            for opponent in self.opponents
        ]

    def result(self, match_states: Sequence[MatchState]) -> SuiteResult:
        """Return what follows from the matches, which are finished."""
        matches = [match_state.to_match() for match_state in match_states]
        half = len(self.opponents)
        rng = np.random.default_rng(self.seed)
        (tb_1,) = strengths_by_board(self.default, matches[:half], rng).T
        on_test = strengths_by_board(self.test, matches[half:], rng)
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
                for one, other in zip(matches[:half], matches[half:], strict=True)
            ),
            boards=tuple(boards),
        )


def _strength(draws: Floats) -> Estimate:
    """Return a strength from that of the games, then of each resample."""
    return Estimate.of(draws[0], percentile_interval(draws[1:]), digits=2)


def _worst(boards: Sequence[BoardEstimate]) -> BoardEstimate:
    """Return the board on which an agent is weakest, the first of equals."""
    return min(boards, key=lambda one: one.value)


def strengths_by_board(
    part: SuitePart, matches: Sequence[Match], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Floats:
    """Return the strength of an agent on each board, (1 + resamples, boards): found, resampled.

    Pairs are resampled within each board and match. The boards stay: they are all there are.

    Args:
        part: of the suite.
        matches: against each opponent, as many pairs on each board, board after board.
        rng: of the resamples.
        resamples: how many.
    """
    counts = np.stack([pentanomials_by_board(match, len(part.pool)) for match in matches])
    model = model_named(PROBIT)
    one_column = np.ones((len(matches), 1))
    found = []
    for board in range(len(part.pool)):
        pairs = Pairs.of_counts(counts[:, board]).with_drawn_pairs(np.ones(len(matches), bool))
        points = pairs.resample(rng, resamples)
        offset = np.broadcast_to(-np.array(part.elo) / model.points, points.shape)
        skills = maximum_likelihood(model, one_column, offset, points, pairs.played)
        found.append(model.points * skills[:, 0])
    return np.stack(found, axis=1)


# Results and submissions


class OpponentScore(Struct, frozen=True):
    """The share of points of an agent against an opponent, on default and on test boards."""

    opponent: Name
    default: Share
    test: Share


class SuiteResult(Struct, frozen=True):
    """What a suite says of an agent.

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
    """The file of all games of a submission, beside it.

    Attributes:
        file: its name.
        sha256: 64 hex digits.
        games: how many it holds.
    """

    file: Name
    sha256: str
    games: int

    def __post_init__(self) -> None:
        if self.file in ("", "..") or Path(self.file).name != self.file:
            raise ValueError("file: expected the name of a file beside it")

    @classmethod
    def of(cls, path: Path, games: int) -> RecordsEntry:
        """Return the entry of a file that holds so many games."""
        return cls(path.name, file_sha256(path), games)


class Submission(SuiteResult, frozen=True):
    """What somebody says of an agent.

    Attributes:
        version: of the file.
        records: the file of all games; None if none is named.
    """

    version: int
    records: RecordsEntry | None

    @classmethod
    def of(cls, result: SuiteResult, records: RecordsEntry | None) -> Submission:
        """Return the submission of a result."""
        return cls(**asdict(result), version=VERSION, records=records)

    @classmethod
    def load(cls, path: Path, suite: Suite) -> Submission:
        """Read a submission, and check that it is of a suite.

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
