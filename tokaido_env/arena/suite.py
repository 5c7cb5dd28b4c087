"""Suites: fixed opponents, boards and luck, by which agents of different papers are compared.

A suite is data, with a hash of all that it is. It gives an agent two numbers in Elo points on the
probit scale, where `mcts:sims=400` has 0: its strength on the default board, and the interquartile
mean of its strengths on boards of the family that nobody trains on.

The strength on a board is that of the greatest likelihood, given the games on this board and what
the suite holds each opponent to be worth there, which is a constant. One drawn pair is added to
each match, for every agent alike, so that it is defined for an agent that won or lost every game.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.intervals import interquartile_mean, interval_of
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.ladder_file import hash_of
from tokaido_env.arena.likelihood import maximise
from tokaido_env.arena.links import PROBIT, link_of
from tokaido_env.arena.match import Match
from tokaido_env.arena.pairs import Pairs
from tokaido_env.arena.tournament import Sheet
from tokaido_env.boards.pool import BoardPool

SUITE = Path(__file__).resolve().parent / "tokaido-bench-1.json"
RESAMPLES = 2000
DEFAULT, TEST = "default", "test"  # the two parts of a suite

Floats = npt.NDArray[np.float64]


class Part(NamedTuple):
    """Boards of a suite, and what is played on them.

    Attributes:
        pool: the boards.
        pairs: of games, on each board, against each opponent.
        elo: what each opponent is worth there, in the order of the opponents.
    """

    pool: BoardPool
    pairs: int
    elo: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        boards = {"boards": self.pool.name, "hash": self.pool.hash}
        return boards | {"pairs": self.pairs, "elo": list(self.elo)}


class Strength(NamedTuple):
    """A strength in Elo points, with its 95 % interval."""

    value: float
    ci95: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, to two decimals."""
        value, low, high = (round(x, 2) + 0.0 for x in (self.value, *self.ci95))  # never -0.0
        return {"value": value, "ci95": [low, high]}


class OnBoard(NamedTuple):
    """The strength of an agent on a board of a suite."""

    board: str
    strength: Strength

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {"board": self.board, **self.strength.to_dict()}


@dataclass(frozen=True)
class SuiteResult:
    """What a suite says of an agent.

    Attributes:
        suite: name of the suite.
        hash: of the suite.
        agent: its spec.
        tb_1: strength on the default board.
        tb_g: interquartile mean of the strengths on the test boards.
        boards: the test boards, in their order.
        scores: by opponent, its share of points on the default board and on the test boards.
    """

    suite: str
    hash: str
    agent: str
    tb_1: Strength
    tb_g: Strength
    boards: tuple[OnBoard, ...]
    scores: tuple[tuple[str, float, float], ...]

    @property
    def worst(self) -> OnBoard:
        """The test board on which it is weakest: to two decimals, the first of equals."""
        return min(self.boards, key=lambda one: round(one.strength.value, 2))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, with no clock and no machine in them."""
        return {
            "suite": self.suite,
            "hash": self.hash,
            "agent": self.agent,
            "tb_1": self.tb_1.to_dict(),
            "tb_g": self.tb_g.to_dict(),
            "worst": self.worst.to_dict(),
            "scores": [
                {"opponent": spec, DEFAULT: round(default, 6), TEST: round(test, 6)}
                for spec, default, test in self.scores
            ],
            "boards": [one.to_dict() for one in self.boards],
        }


@dataclass(frozen=True)
class Suite:
    """Fixed opponents, boards and luck.

    Attributes:
        name: of the suite.
        rules: version of the rules.
        seed: from which all luck follows.
        opponents: their specs.
        default: the board of the first number.
        test: the boards of the second.
    """

    name: str
    rules: int
    seed: int
    opponents: tuple[str, ...]
    default: Part
    test: Part

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change when anything in the suite changes."""
        return hash_of(self._body())

    def to_dict(self) -> dict[str, Any]:
        """Return the suite as plain JSON types, as it stands in a file."""
        return {**self._body(), "hash": self.hash}

    def _body(self) -> dict[str, Any]:
        return {
            "version": 1,
            "name": self.name,
            "rules": self.rules,
            "seed": self.seed,
            "link": PROBIT,
            "opponents": list(self.opponents),
            DEFAULT: self.default.to_dict(),
            TEST: self.test.to_dict(),
        }

    def sheets(self, agent: str) -> list[Sheet]:
        """Return the matches of an agent: on the default board, then on the test boards.

        On both it meets each opponent in turn, on the test boards board after board. Every match
        on a board has luck of its own, the same for all agents.
        """
        return [
            Sheet.by_board(
                *(agent, opponent, part.pool, part.pairs),
                partial(match_seed, self.seed, self.name, opponent),
            )
            for part in (self.default, self.test)
            for opponent in self.opponents
        ]

    def result(self, sheets: Sequence[Sheet]) -> SuiteResult:
        """Return what follows from the matches, which are finished."""
        matches = [sheet.match() for sheet in sheets]
        half = len(self.opponents)
        rng = np.random.default_rng(self.seed)
        (tb_1,) = strengths_on(self.default, matches[:half], rng).T
        on_test = strengths_on(self.test, matches[half:], rng)
        names = self.test.pool.names.tolist()
        return SuiteResult(
            *(self.name, self.hash, matches[0].a),
            tb_1=_strength(tb_1),
            tb_g=_strength(interquartile_mean(on_test)),
            boards=tuple(
                OnBoard(str(name), _strength(one))
                for name, one in zip(names, on_test.T, strict=True)
            ),
            scores=tuple(
                (one.b, one.score, other.score)
                for one, other in zip(matches[:half], matches[half:], strict=True)
            ),
        )


def strengths_on(
    part: Part, matches: Sequence[Match], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Floats:
    """Return the strength of an agent on each board, (1 + resamples, boards): found, resampled.

    Pairs are resampled within each board and match. The boards stay: they are all there are.

    Args:
        part: of the suite.
        matches: against each opponent, as many pairs on each board, board after board.
        rng: of the resamples.
        resamples: how many.
    """
    means = np.stack([match.results.mean(axis=1) for match in matches])
    twice = np.rint(4 * means).astype(np.int64).reshape(len(matches), len(part.pool), -1)
    counts = (twice[:, :, :, None] == np.arange(5)).sum(axis=2)
    model = link_of(PROBIT)
    one_column = np.ones((len(matches), 1))
    found = []
    for board in range(len(part.pool)):
        pairs = Pairs.of_counts(counts[:, board]).with_drawn_pairs(np.ones(len(matches), bool))
        points = pairs.resample(rng, resamples)
        offset = np.broadcast_to(-np.array(part.elo) / model.points, points.shape)
        skills = maximise(model, one_column, offset, points, pairs.played)
        found.append(model.points * skills[:, 0])
    return np.stack(found, axis=1)


def _strength(draws: Floats) -> Strength:
    """Return a strength from that of the games, then of each resample."""
    return Strength(float(draws[0]), interval_of(draws[1:]))
