"""Ordered matches and ratings, with a short name and a colour per agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokaido_env.arena.match import Match
from tokaido_env.arena.ratings import Rating
from tokaido_env.report.standings import Standing, standings
from tokaido_env.report.style import PALETTE

NAME_LENGTH = 22  # characters


@dataclass(frozen=True)
class Results:
    """Data of the figures and the report page.

    Attributes:
        matches: all of them.
        ratings: best first; empty if there are none.
        standings: best first; empty if no agent met another one.
        agents: specs, the best first.
        names: a unique short name of each spec.
        colours: of each spec.
    """

    matches: Sequence[Match]
    ratings: Sequence[Rating]
    standings: Sequence[Standing]
    agents: list[str]
    names: Mapping[str, str]
    colours: Mapping[str, str]

    @classmethod
    def of(cls, matches: Sequence[Match], ratings: Sequence[Rating]) -> Results:
        """Order matches and ratings.

        Raises:
            ValueError: if there is no match.
        """
        if not matches:
            raise ValueError("report: expected one match or more, got none")
        best_first = sorted(ratings, key=lambda rating: (-rating.elo, rating.agent))
        ranked = standings(matches, best_first)
        agents = dict.fromkeys(row.agent for row in ranked)
        rest = {spec for match in matches for spec in (match.a, match.b)} - agents.keys()
        means = {spec: float(results_of(matches, spec).mean()) for spec in rest}
        agents |= dict.fromkeys(sorted(rest, key=lambda spec: (-means[spec], spec)))
        specs = list(agents)
        colours = {spec: PALETTE[i % len(PALETTE)] for i, spec in enumerate(specs)}
        return cls(matches, best_first, ranked, specs, short_names(specs), colours)

    def games_of(self, spec: str) -> npt.NDArray[np.void]:
        """Return the games of an agent, `GAME` (n,), those against itself once."""
        played = [m.games.reshape(-1) for m in self.matches if spec in (m.a, m.b)]
        return np.concatenate(played) if played else self.matches[0].games[:0].reshape(-1)


def short_names(specs: Sequence[str], length: int = NAME_LENGTH) -> dict[str, str]:
    """Return a unique name of at most `length` characters for each spec.

    A long spec first loses the parts that all specs of its kind share (`mcts:sims=400,…`), then its
    middle. Equal names get a number.
    """
    names: dict[str, str] = {}
    for spec in dict.fromkeys(specs):
        kind = [other for other in dict.fromkeys(specs) if _parts(other)[0] == _parts(spec)[0]]
        printable = "".join(char if char.isprintable() else "·" for char in spec) or "·"
        if len(printable) > length and len(kind) > 1:
            printable = _without_shared(printable, kind)
        name, count = _shortened(printable, length), 1
        while name in names.values():
            count += 1
            mark = f" #{count}"
            name = _shortened(printable, length - len(mark)) + mark
        names[spec] = name
    return names


def _parts(spec: str) -> list[str]:
    """Return the parts of a spec alternating with their separators."""
    return re.split(r"([:,/])", spec)


def _without_shared(spec: str, kind: Sequence[str]) -> str:
    first, *rest = _parts(spec)
    shared = set.intersection(*(set(_parts(other)[2::2]) for other in kind))
    short = "".join("…" if part in shared else part for part in rest)
    return first + re.sub("…([,/]…)+", "…", short)


def results_of(matches: Sequence[Match], spec: str) -> npt.NDArray[np.float64]:
    """Return the results of an agent in all its games, in pairs: (pairs, 2)."""
    parts = [match.results for match in matches if match.a == spec]
    parts += [1 - match.results for match in matches if match.b == spec]
    return np.concatenate(parts)


def results_between(matches: Sequence[Match], a: str, b: str) -> npt.NDArray[np.float64] | None:
    """Return the results of `a` against `b` in all their games, (pairs, 2); None if none."""
    parts = [match.results for match in matches if (match.a, match.b) == (a, b)]
    if a != b:
        parts += [1 - match.results for match in matches if (match.a, match.b) == (b, a)]
    return np.concatenate(parts) if parts else None


def _shortened(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    head = length // 2
    return text[:head] + "…" + text[head + 1 - length :]
