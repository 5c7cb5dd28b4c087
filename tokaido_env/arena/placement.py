"""Placement of one more agent on a ladder in few games; the ladder's ratings stay fixed."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tokaido_env.agents.registry import cost_of
from tokaido_env.arena.ladder import FAMILY_LADDER, LADDER, Ladder, LadderError, PlayMatch
from tokaido_env.arena.match import MAX_GAMES, Match, match_seed
from tokaido_env.arena.ratings import RESAMPLES, Rating, expected_score, rate_against
from tokaido_env.arena.tournament import MatchState
from tokaido_env.arena.verification import Claim, RecordsEntry, SubmissionError
from tokaido_env.boards.board_pool import Boards
from tokaido_env.boards.procedural import is_family
from tokaido_env.core.arguments import check_seed, short_path
from tokaido_env.decoding import Name, Seed, Source, Struct

VERSION = 2  # of the results as JSON
OPPONENTS = 4  # of a placement, by default

PLACING = "rate"  # in seeds, stands for any agent that is placed

# The number of games against an opponent: `games_against`. Chosen by hand, not tuned.
FAST_GAMES = 1000
SEARCHES = 800_000  # simulations a decision times games
MIN_GAMES = 40
MAX_SIMULATIONS = 4000  # of opponents, unless slow ones are included


@dataclass(frozen=True)
class LadderRating:
    """The rating of one agent placed on a ladder.

    Attributes:
        rating: of the agent, relative to the anchor of the ladder.
        matches: of the agent, in the order in which opponents were chosen.
        ladder: the ladder.
        seed: from which the seeds of the matches are derived.
        records: the record file; None if there is none.
    """

    rating: Rating
    matches: tuple[Match, ...]
    ladder: Ladder
    seed: int
    records: RecordsEntry | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types, as in the file of `rate --json`."""
        return {
            "version": VERSION,
            "seed": self.seed,
            "board": self.ladder.pool.name,
            "link": self.ladder.link,
            "anchor": self.ladder.anchor,
            "agents": [self.rating.agent],
            "ladder": self.ladder.hash,
            "matches": [match.to_dict() for match in self.matches],
            "ratings": [self.rating.to_dict()],
            "records": None if self.records is None else self.records.to_dict(),
        }


def rate_on_ladder(
    agent: str,
    ladder: Ladder,
    *,
    play: PlayMatch,
    seed: int = 0,
    opponents: int = OPPONENTS,
    include_slow: bool = False,
    resamples: int = RESAMPLES,
) -> LadderRating:
    """Place one agent on a ladder; the ladder's ratings stay fixed.

    The first opponent is in the middle of the fast agents. Each next one is the opponent with the
    greatest expected information: the number of games times p (1 - p), with p the expected score.
    The numbers of games, `games_between`, follow from the specs and not from a clock: the result
    is the same on every machine.

    Args:
        agent: its spec; if it is on the ladder, it does not meet itself.
        ladder: a finished ladder.
        play: see `PlayMatch`; on the board of the ladder.
        seed: from which the seed of each opponent's match is derived, the same for every agent.
        opponents: number of opponents.
        include_slow: also play against slow agents.
        resamples: for the interval, see `ratings.rate_against`.

    Raises:
        LadderError: if the ladder is not finished, or has no opponent for the agent.
    """
    seed = check_seed(seed)
    if not ladder.agents:
        played = len(ladder.matches)
        raise LadderError(
            f"the ladder is not finished: {played} matches, no ratings; run its command again"
        )
    matches: list[Match] = []
    rating: Rating | None = None
    while len(matches) < opponents:
        met = {match.b for match in matches}
        opponent = _next_opponent(agent, ladder, met, rating, include_slow)
        if opponent is None:
            break
        games = games_between(agent, opponent, include_slow=include_slow)
        matches.append(play(agent, opponent, games, match_seed(seed, PLACING, opponent)))
        rating = rate_against(
            agent,
            matches,
            ladder.matches,
            anchor=ladder.anchor,
            seed=seed,
            known_seed=ladder.seed,
            resamples=resamples,
        )
    if rating is None:
        raise LadderError(
            f"no opponent on the ladder for {agent!r}: expected opponents from 1, and another "
            f"agent with at most {MAX_SIMULATIONS} simulations; --include-slow adds slower ones"
        )
    return LadderRating(rating, tuple(matches), ladder, seed)


def possible_matches(
    agent: str, ladder: Ladder, *, seed: int, include_slow: bool, max_games: int
) -> dict[str, MatchState]:
    """Return the matches of a placement with all opponents, without games, by opponent.

    Args:
        agent: as for `rate_on_ladder`.
        ladder: likewise.
        seed: likewise.
        include_slow: likewise.
        max_games: of a match, even.
    """
    games = _games_by_opponent(agent, ladder, include_slow)
    return {
        opponent: MatchState(
            *(agent, opponent, min(count, max_games), match_seed(seed, PLACING, opponent)),
            ladder.pool,
        )
        for opponent, count in games.items()
        if count
    }


def _games_by_opponent(agent: str, ladder: Ladder, include_slow: bool) -> dict[str, int]:
    return {
        other.agent: games_between(agent, other.agent, include_slow=include_slow)
        for other in ladder.agents
        if other.agent != agent
    }


def games_between(agent: str, opponent: str, *, include_slow: bool = False) -> int:
    """Return the number of games of a placement between two agents: the slower one decides."""
    allowed = games_against(opponent, include_slow=include_slow)
    return min(games_against(agent, include_slow=True), allowed)


def games_against(opponent: str, *, include_slow: bool = False) -> int:
    """Return the number of games of a placement against an agent, by its spec.

    An agent that does not search: 1000. One that costs N simulations: 800,000 / N, rounded down to
    an even number, within 40 and 1000. With more than 4000: none, unless `include_slow`.
    """
    cost = cost_of(opponent)
    if cost > MAX_SIMULATIONS and not include_slow:
        return 0
    return min(max(SEARCHES // max(cost, 1) // 2 * 2, MIN_GAMES), FAST_GAMES)


def _next_opponent(
    agent: str, ladder: Ladder, met: set[str], rating: Rating | None, include_slow: bool
) -> str | None:
    """Return the next opponent, None if no agent is left."""
    games = _games_by_opponent(agent, ladder, include_slow)
    left = [other for other in ladder.agents if games.get(other.agent) and other.agent not in met]
    if not left:
        return None
    if rating is None:
        most = max(games.values())
        fast = [other.agent for other in left if games[other.agent] == most]
        return fast[(len(fast) - 1) // 2]
    elo = rating.elo

    def information(other: Rating) -> float:
        p = expected_score(elo - other.elo)
        return games[other.agent] * p * (1 - p)

    return max(left, key=information).agent


# Submissions


class _SubmittedMatch(Struct, frozen=True, forbid_unknown_fields=False):
    """A match of a submission: its opponent and the number of games."""

    b: Name
    games: Annotated[int, Meta(ge=2, le=MAX_GAMES, multiple_of=2)]


class _SubmittedRating(Struct, frozen=True, forbid_unknown_fields=False):
    """The part of a submission that determines its games; the rest is computed from them."""

    agents: tuple[Name]
    seed: Seed
    board: Name
    ladder: str
    matches: Annotated[tuple[_SubmittedMatch, ...], Meta(min_length=1)]
    records: RecordsEntry | None


def submitted_rating(
    path: Path,
    ladder: Path | None = None,
    board: Boards | None = None,
    named: Container[str] = (),
) -> Claim:
    """Read a result of `rate` with its records, to verify it.

    Args:
        path: the file.
        ladder: file of its ladder; None: the ladder of the package.
        board: as for `Ladder.load`.
        named: likewise.

    Raises:
        SubmissionError: if the file is no result of `rate` on this ladder.
        LadderError, AgentError: as `Ladder.load`.
    """
    source = Source.json(path, "submission", SubmissionError)
    source.check_versions("rate the agent again", version=VERSION)
    found = source.decode(_SubmittedRating)
    ladder = ladder or (FAMILY_LADDER if is_family(found.board) else LADDER)
    loaded = Ladder.load(ladder, board, named)
    expected, remedy = f"{loaded.hash} of {short_path(ladder)}", "name its ladder by --ladder"
    source.expect(found.ladder == loaded.hash, "ladder", expected, found.ladder, remedy)
    slow = any(not games_against(match.b) for match in found.matches)
    states = _submitted_matches(source, found, loaded, slow)

    def compute(states: Sequence[MatchState]) -> LadderRating:
        played = {state.b: state.to_match() for state in states}

        def play(a: str, b: str, games: int, seed: int) -> Match:
            source.expect(b in played, "matches", f"a match against {b} next", [*played])
            return played[b]

        chosen = len(found.matches)
        (agent,) = found.agents
        rated = rate_on_ladder(
            *(agent, loaded), play=play, seed=found.seed, opponents=chosen, include_slow=slow
        )
        return replace(rated, records=found.records)

    return Claim(path, source.data, found.records, states, compute)


def _submitted_matches(
    source: Source, found: _SubmittedRating, ladder: Ladder, slow: bool
) -> list[MatchState]:
    """Return the matches of a submission, without games; refuse other numbers of games."""
    (agent,) = found.agents
    most = max(match.games for match in found.matches)
    possible = possible_matches(agent, ladder, seed=found.seed, include_slow=slow, max_games=most)
    for i, match in enumerate(found.matches):
        games = len(possible.get(match.b, ()))
        wanted = f"{games} games of an opponent on the ladder"
        source.expect(match.games == games, f"matches[{i}]", wanted, match.to_dict())
    return [possible[match.b] for match in found.matches]
