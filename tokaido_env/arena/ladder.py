"""Ladders: stored ratings of agents, and the match results from which they follow.

A ladder file has a hash of its content: cite a rating together with the hash of its ladder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta
from msgspec.structs import replace

from tokaido_env.agents.registry import check_spec_in_file, cost_of
from tokaido_env.arena.intervals import PAIR_SCORES, score_interval
from tokaido_env.arena.match import MAX_GAMES, Match, match_seed
from tokaido_env.arena.rating_model import PROBIT
from tokaido_env.arena.ratings import (
    GoodnessOfFit,
    Rating,
    choose_anchor,
    goodness_of_fit,
    rate_matches,
)
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.boards.procedural import is_family
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import check_seed, repr_short
from tokaido_env.core.rules import RULES_VERSION
from tokaido_env.decoding import Name, Seed, Share, Source, Struct
from tokaido_env.files import locked, write_text

VERSION = 2

# This project's ladders: on its default board, and on boards of the family.
LADDER = Path(__file__).resolve().parent / "ladder.json"
FAMILY_LADDER = LADDER.with_name("ladder-family.json")
# The number of games of two agents when a ladder is made: `ladder_schedule`. Chosen by hand.
LADDER_SEARCHES = 4_000_000
MIN_LADDER_GAMES = 300
MAX_BOARDS = 1000  # of a pool that only a file names

PlayMatch = Callable[[str, str, int, int], Match]
"""Plays (a, b, games, seed): agents by their specs, with swapped seats, as `play_match`."""


class LadderError(ValueError):
    """A ladder cannot be used or made: the message gives the reason and a remedy."""


def ladder_for(pool: BoardPool) -> Path:
    """Return this project's ladder for agents that play on some boards.

    The family has one ladder, on boards of the split `valid`. Every agent of the family is rated
    on these boards, `Ladder.pool`.
    """
    return FAMILY_LADDER if is_family(pool.name) else LADDER


_Pairs = Annotated[int, Meta(ge=0, le=MAX_GAMES)]


class LadderMatch(Struct, frozen=True):
    """A match on a ladder: the results of its pairs, without the games.

    Attributes:
        a: spec of one agent.
        b: spec of the other.
        seed: of the match; with it `play_match` plays the same games again.
        pairs: the number of pairs in which `a` scored 0, 0.5, 1, 1.5 and 2.
        score: of `a`, from 0 to 1.
        ci95: the 95 % interval of the score.
    """

    a: Name
    b: Name
    seed: Seed
    pairs: tuple[_Pairs, _Pairs, _Pairs, _Pairs, _Pairs]
    score: Share
    ci95: tuple[Share, Share]

    @classmethod
    def of(cls, a: str, b: str, seed: int, pairs: Sequence[int]) -> LadderMatch:
        """Return a match with the score and interval of its pairs."""
        zero, one, two, three, four = map(int, pairs)
        scores = np.repeat(PAIR_SCORES, pairs)
        low, high = score_interval(np.stack([scores, scores], axis=1))
        score, ci95 = round(float(scores.mean()), 6), (round(low, 6), round(high, 6))
        return cls(a, b, seed, (zero, one, two, three, four), score, ci95)

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        """The numbers of pairs, int64 (5,)."""
        return np.array(self.pairs, np.int64)

    @property
    def games(self) -> int:
        """The number of games."""
        return 2 * sum(self.pairs)


class Ladder(Struct, frozen=True, dict=True):
    """Agents, their ratings and their matches; a file of it ends with a hash of its content.

    Attributes:
        version: of the file format.
        board: name of the board or pool.
        board_hash: `BoardPool.hash`.
        rules: version of the rules.
        seed: from which the seeds of all matches are derived; also of the ratings' resamples.
        link: the rating model, "probit".
        fit: of the matches to it; None while matches are missing.
        anchor: the agent at 0 Elo.
        agents: the ratings, best first; empty while matches are missing.
        matches: at most one of every two agents.
    """

    version: int
    board: Name
    board_hash: str
    rules: int
    seed: Seed
    link: str
    fit: GoodnessOfFit | None
    anchor: Name
    agents: tuple[Rating, ...]
    matches: tuple[LadderMatch, ...]

    @cached_property
    def pool(self) -> BoardPool:
        """The board or pool on which agents are placed."""
        return BoardPool.load(self.board)

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change with anything in the content."""
        return content_hash(super().to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the content and the hash as plain JSON types, as in the file."""
        return {**super().to_dict(), "hash": self.hash}

    def save(self, path: str | Path) -> None:
        """Write the ladder to a file, whole or not at all."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(
        cls, path: str | Path, board: Boards | None = None, named: Container[str] = ()
    ) -> Ladder:
        """Read a ladder.

        Args:
            path: the file.
            board: the board or pool of its games, required if it is not built in. For a ladder on
                boards of the family, any other boards of the family are also accepted.
            named: specs that the user has named; other agents must be such that a file may name
                them, see `registry.check_spec_in_file`.

        Raises:
            LadderError: if the file is cut or changed, or made for other rules or another board.
            AgentError: if it names an agent that a file may not name.
        """
        ladder = cls._load(Path(path), None if board is None else BoardPool.load(board))
        where = Source(path, None, LadderError).name
        names = [name for match in ladder.matches for name in (match.a, match.b)]
        for spec in dict.fromkeys([*(rating.agent for rating in ladder.agents), *names]):
            if check_spec_in_file(spec, where, Path(path).parent, named) != spec:
                raise LadderError(
                    f"{where}: {repr_short(spec)}: no such policy in the folder of the command, "
                    "from which a ladder names policies"
                )
        return ladder

    @classmethod
    def _load(cls, path: Path, board: BoardPool | None, *, exactly: bool = False) -> Ladder:
        """Read a ladder as `load` does, without checks of the named agents.

        Args:
            path: the file.
            board: as for `load`.
            exactly: refuse a ladder on other boards of the family.
        """
        source = Source.json(path, "ladder", LadderError)
        remedy = "make the ladder again, or use the version that made it"
        source.check_versions(remedy, version=VERSION, rules=RULES_VERSION, link=PROBIT)
        changed = "it was changed after it was made; restore it, or make the ladder again"
        found = source.data.pop("hash", None)
        ladder = source.decode(cls)
        right = found == ladder.hash
        source.expect(right, "hash", f"{ladder.hash} of its content", found, changed)
        _check(source, ladder)
        if board is not None and board.name != ladder.board and not exactly:
            board = None if is_family(board.name) and is_family(ladder.board) else board
        pool = _load_boards(source, ladder, board)
        ladder.__dict__["pool"] = pool  # a name alone does not give boards of a file
        return ladder


def _check(source: Source, ladder: Ladder) -> None:
    """Check the values of a ladder against each other."""
    fitted = (ladder.fit is not None) == bool(ladder.agents)
    source.expect(fitted, "fit", "null without ratings, and only then", ladder.fit)
    if ladder.fit is not None:
        with_p = (ladder.fit.p is None) == (ladder.fit.df == 0)
        source.expect(with_p, "fit.p", "null where df is 0, and only there", ladder.fit.p)
    for i, match in enumerate(ladder.matches):
        place = f"matches[{i}]"
        source.expect(match.a != match.b, place, "two agents", match.a)
        counted = 0 < sum(match.pairs) <= MAX_GAMES
        source.expect(counted, f"{place}.pairs", f"1 to {MAX_GAMES:,} pairs", match.pairs)
        right = match == LadderMatch.of(match.a, match.b, match.seed, match.pairs)
        source.expect(right, place, "score and ci95 of its pairs", (match.score, match.ci95))
    rated = {rating.agent for rating in ladder.agents}
    played = {name for match in ladder.matches for name in (match.a, match.b)}
    right = not rated or (rated == played and ladder.anchor in rated)
    source.expect(right, "agents", "those of its matches, the anchor among them", sorted(rated))


def _load_boards(source: Source, ladder: Ladder, pool: BoardPool | None) -> BoardPool:
    """Return the boards that the user has named, by default those that the ladder names.

    A ladder may neither name a path nor more than `MAX_BOARDS` boards.
    """
    name = ladder.board
    if pool is None:
        try:
            pool = BoardPool.load(name if is_family(name) else Board.by_name(name))
        except BoardError as error:
            text = f"{source.name}: board: {error}; give the file of its board"
            raise source.error(text) from None
        few = f"a name of at most {MAX_BOARDS:,} boards"
        remedy = f"it has {len(pool):,} boards: name them in the command too"
        source.expect(len(pool) <= MAX_BOARDS, "board", few, name, remedy)
    expected, remedy = f"{pool.hash} of {pool.name!r}", "its games were played on another board"
    right = pool.hash == ladder.board_hash
    source.expect(right, "board_hash", expected, ladder.board_hash, remedy)
    return pool


def content_hash(body: Mapping[str, Any]) -> str:
    """Return the hash of the content of a file, without the hash itself."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def make_ladder(
    agents: Sequence[str],
    games_of: Callable[[str, str], int],
    seed: int,
    board: Boards,
    play: PlayMatch,
    path: str | Path,
    *,
    anchor: str | None = None,
) -> Ladder:
    """Play a round robin between agents, and write their ratings to a file.

    Every match is saved when it has ended. If the file exists, its matches are kept; only missing
    matches and those with another number of games are played. So a stopped run can be resumed, an
    agent added, and the same games rated with another anchor. The file does not depend on
    stops. An agent is identified by its spec alone: delete the file when a policy file has changed.

    Args:
        agents: their specs, each once.
        games_of: returns the number of games of two agents, even; 0 if they do not meet.
        seed: from which the seeds of the matches are derived (`match_seed`).
        board: on which `play` plays, one board or a pool.
        play: see `PlayMatch`.
        path: the file.
        anchor: the agent at 0; if it is not among them, see `ratings.choose_anchor`.

    Raises:
        LadderError: before any game is played, if agents repeat or are not connected by matches,
            or if matches of the file would be lost.
        InUseError: if another command makes the ladder.
    """
    seed = check_seed(seed)
    games = _schedule(agents, games_of)
    anchor = choose_anchor(agents, anchor)
    pool = BoardPool.load(board)
    empty = Ladder(
        *(VERSION, pool.name, pool.hash, RULES_VERSION, seed, PROBIT),
        fit=None,
        anchor=anchor,
        agents=(),
        matches=(),
    )
    with locked(Path(path)):
        return _play_and_rate(Path(path), empty, pool, games, play)


def _play_and_rate(
    path: Path,
    empty: Ladder,
    pool: BoardPool,
    games: Mapping[tuple[str, str], int],
    play: PlayMatch,
) -> Ladder:
    agents = list(dict.fromkeys(name for pair in games for name in pair))
    matches = _saved_matches(path, empty.seed, pool, agents)
    for pair, count in games.items():
        if count and (pair not in matches or matches[pair].games != count):
            seed = match_seed(empty.seed, *sorted(pair))
            played = play(*pair, count, seed)
            matches[pair] = LadderMatch.of(played.a, played.b, seed, played.pentanomial.tolist())
            replace(empty, matches=tuple(matches.values())).save(path)
    counted = tuple(matches[pair] for pair, count in games.items() if count)
    ratings = rate_matches(counted, anchor=empty.anchor, seed=empty.seed)
    fit = goodness_of_fit(counted).rounded()
    agents_rated = tuple(rating.rounded() for rating in ratings)
    replace(empty, agents=agents_rated, matches=counted, fit=fit).save(path)
    return Ladder._load(path, pool, exactly=True)


def is_epsilon_baseline(spec: str) -> bool:
    """Return whether an agent plays random moves, always or with a given probability."""
    return spec == "random" or ":epsilon=" in spec


def epsilon_baselines(ladder: Ladder) -> tuple[tuple[LadderMatch, ...], str] | None:
    """Return the matches between epsilon baselines, and the agent from which these are derived.

    The matches include those with that agent, which is the anchor of a separate scale. The
    baselines measure the effect of a share of random moves.

    Returns:
        None if there are fewer than two such agents, or no match with the agent of epsilon 0.
    """
    names = [rating.agent for rating in ladder.agents]
    bases = {name.partition(":epsilon=")[0] for name in names if ":epsilon=" in name}
    base = next((name for name in names if name in bases), None)
    baselines = {
        name
        for name in names
        if is_epsilon_baseline(name) and name.partition(":")[0] in {base, "random"}
    }
    matches = tuple(m for m in ladder.matches if {m.a, m.b} <= baselines | {base})
    met = {name for match in matches for name in (match.a, match.b)}
    return (matches, base) if base in met and len(met) > 2 else None


def ladder_schedule(
    agents: Sequence[str], max_games: int, max_distance: int
) -> Callable[[str, str], int]:
    """Return a function of two agents: the number of their games, for `make_ladder`.

    An agent meets those up to `max_distance` places from its own: between agents further apart one
    wins every game, which adds little information. Two agents that do not search play `max_games`.
    Others play 4,000,000 / `cost_of` the slower one, rounded down to an even number, within 300
    and `max_games`.

    Args:
        agents: their specs, weakest first.
        max_games: of two agents, even.
        max_distance: in places.
    """
    place = {agent: i for i, agent in enumerate(agents)}

    def games(a: str, b: str) -> int:
        if abs(place[a] - place[b]) > max_distance:
            return 0
        slower = max(cost_of(a), cost_of(b), 1)
        return min(max(LADDER_SEARCHES // slower // 2 * 2, MIN_LADDER_GAMES), max_games)

    return games


def _schedule(
    agents: Sequence[str], games_of: Callable[[str, str], int]
) -> dict[tuple[str, str], int]:
    """Return the number of games of every two agents; check that the matches connect all."""
    if len(agents) < 2 or len(set(agents)) < len(agents):
        raise LadderError(f"agents: expected two or more, each once, got {', '.join(agents)}")
    games = {pair: games_of(*pair) for pair in combinations(agents, 2)}
    for (a, b), count in games.items():
        if count < 0 or count % 2:
            raise LadderError(f"games of {a!r} and {b!r}: expected an even number, got {count}")
    connected = {agents[0]}
    for _ in agents:
        for pair, count in games.items():
            if count and connected & set(pair):
                connected |= set(pair)
    unconnected = [agent for agent in agents if agent not in connected]
    if unconnected:
        raise LadderError(
            f"no match connects {agents[0]} with {', '.join(unconnected)}: schedule one"
        )
    return games


def _saved_matches(
    path: Path, seed: int, pool: BoardPool, agents: Sequence[str]
) -> dict[tuple[str, str], LadderMatch]:
    """Return the matches of the file, if it exists, by agents in the order of the schedule."""
    if not path.exists():
        return {}
    found = Ladder._load(path, pool, exactly=True)
    if found.seed != seed:
        raise LadderError(
            f"{path}: holds a ladder of seed {found.seed}, which one of seed {seed} would "
            "destroy: choose another file, or the same seed"
        )
    matches = {}
    for match in found.matches:
        unknown = [agent for agent in (match.a, match.b) if agent not in agents]
        if unknown:
            raise LadderError(
                f"{path}: holds matches of {unknown[0]!r}, which would be lost: name this agent "
                "too, or choose another file"
            )
        if agents.index(match.a) > agents.index(match.b):
            match = LadderMatch.of(match.b, match.a, match.seed, match.pairs[::-1])
        matches[match.a, match.b] = match
    return matches
