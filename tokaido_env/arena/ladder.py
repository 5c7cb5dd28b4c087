"""Ladders: agents rated against each other once and kept, so that one more can be placed quickly.

A ladder is a file of ratings and of the matches that they follow from, as counts of pairs. Its hash
stands for all of it: a rating is cited with the hash of its ladder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta
from msgspec.structs import asdict

from tokaido_env.agents.registry import check_spec_in_file, cost_of
from tokaido_env.arena.intervals import score_interval
from tokaido_env.arena.match import MAX_GAMES, Match
from tokaido_env.arena.rating_models import RATING_MODELS, model_named
from tokaido_env.arena.ratings import (
    DEFAULT_MODEL,
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

# This project's: on its default board, and on boards of the family.
LADDER = Path(__file__).resolve().parent / "ladder.json"
FAMILY_LADDER = LADDER.with_name("ladder-family.json")
# How many games two agents play when a ladder is made: `games_in_order`.
LADDER_SEARCHES = 4_000_000
MIN_LADDER_GAMES = 300
MAX_BOARDS = 1000  # of a pool that only a file names

PlayMatch = Callable[[str, str, int, int], Match]
"""Plays (a, b, games, seed): agents by their specs, seats swapped, as `play_match`."""


class LadderError(ValueError):
    """A ladder that cannot be used or made: the message says why and what helps."""


def ladder_for(pool: BoardPool) -> Path:
    """Return this project's ladder to rate an agent on that plays on some boards.

    Of the family there is one, on boards of the split `valid`: what is rated plays there, on
    `Ladder.pool`, whatever boards of the family it was trained on.
    """
    return FAMILY_LADDER if is_family(pool.name) else LADDER


_Pairs = Annotated[int, Meta(ge=0, le=MAX_GAMES)]


class LadderMatch(Struct, frozen=True):
    """A match as a ladder keeps it: how its pairs of games ended, without the games.

    Attributes:
        a: spec of one agent.
        b: spec of the other.
        seed: of the match; with it, `play_match` plays the same games again.
        pairs: how many pairs gave `a` 0, 0.5, 1, 1.5 and 2 of two games.
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
        """Return a match with the score of its pairs."""
        zero, one, two, three, four = map(int, pairs)
        halves = np.repeat(np.arange(5) / 4, pairs)  # the mean of each pair
        low, high = score_interval(np.stack([halves, halves], axis=1))
        score, ci95 = round(float(halves.mean()), 6), (round(low, 6), round(high, 6))
        return cls(a, b, seed, (zero, one, two, three, four), score, ci95)

    @property
    def pentanomial(self) -> npt.NDArray[np.int64]:
        """The counts of pairs, int64 (5,)."""
        return np.array(self.pairs, np.int64)

    @property
    def games(self) -> int:
        """How many games were played."""
        return 2 * sum(self.pairs)


@dataclass(frozen=True)
class Ladder:
    """Agents, their ratings and the matches behind them.

    Attributes:
        board: name of the board or pool.
        board_hash: `BoardPool.hash`.
        rules: version of the rules.
        seed: from which the seeds of all matches follow, and the resamples of the ratings.
        anchor: the agent at 0 Elo.
        agents: the ratings, best first; empty while matches are missing.
        matches: at most one of every two agents.
        pool: the board or pool, on which whoever is to be placed plays.
        link: name of the link of the ratings, see `rating_models`.
        fit: how far the matches are from that model; None while some are missing.
    """

    board: str
    board_hash: str
    rules: int
    seed: int
    anchor: str
    agents: tuple[Rating, ...]
    matches: tuple[LadderMatch, ...]
    pool: BoardPool = field(compare=False, repr=False)
    link: str = DEFAULT_MODEL
    fit: GoodnessOfFit | None = None

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change when anything in the ladder changes."""
        return content_hash(self._body())

    def to_dict(self) -> dict[str, Any]:
        """Return the ladder as plain JSON types, as it stands in a file."""
        return {**self._body(), "hash": self.hash}

    def save(self, path: str | Path) -> None:
        """Write the ladder to a file: whole or not at all."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(
        cls,
        path: str | Path,
        board: Boards | None = None,
        named: Container[str] = (),
    ) -> Ladder:
        """Read a ladder.

        Args:
            path: the file.
            board: the board or pool that its games were played on, needed when it is a file. Of a
                ladder on boards of the family it may be any others of them: it is for all.
            named: specs that the user has named; of the other agents only those that a file may
                name can stand on it, see `registry.check_spec_in_file`.

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
                    f"{where}: {repr_short(spec)}: a ladder names policies by their paths from "
                    "where the command runs: there is none in its folder"
                )
        return ladder

    @classmethod
    def _load(cls, path: Path, board: BoardPool | None, *, exactly: bool = False) -> Ladder:
        """Read a ladder that only names agents: none of them is going to be made.

        Args:
            path: the file.
            board: as for `load`.
            exactly: refuse a ladder on other boards of the family.
        """
        source = Source.json(path, "ladder", LadderError)
        remedy = "make it anew, or use the version that made it"
        source.check_versions(remedy, version=VERSION, rules=RULES_VERSION)
        held = source.decode(_LadderFile)
        _check(source, held)
        if board is not None and board.name != held.board and not exactly:
            board = None if is_family(board.name) and is_family(held.board) else board
        places = "board", "board_hash"
        pool = load_boards(source, places, held.board, held.board_hash, board)
        told = {key: one for key, one in asdict(held).items() if key not in ("version", "hash")}
        ladder = cls(**told, pool=pool)
        changed = "it was changed after it was made; restore it, or make it anew"
        wanted = f"{ladder.hash} of what it holds"
        source.expect(ladder.hash == held.hash, "hash", wanted, held.hash, changed)
        return ladder

    def _body(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "board": self.board,
            "board_hash": self.board_hash,
            "rules": self.rules,
            "seed": self.seed,
            "link": self.link,
            "fit": None if self.fit is None else self.fit.to_dict(),
            "anchor": self.anchor,
            "agents": [rating.to_dict() for rating in self.agents],
            "matches": [match.to_dict() for match in self.matches],
        }


class _LadderFile(Struct, frozen=True):
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
    hash: str


def _check(source: Source, held: _LadderFile) -> None:
    """Check what types do not say of a ladder: its model, its matches, who is rated."""
    source.expect(held.link in RATING_MODELS, "link", " or ".join(RATING_MODELS), held.link)
    fitted = (held.fit is not None) == bool(held.agents)
    source.expect(fitted, "fit", "null without ratings, and only then", held.fit)
    if held.fit is not None:
        known = (held.fit.p is None) == (held.fit.df == 0)
        source.expect(known, "fit.p", "null where df is 0, and only there", held.fit.p)
    for i, match in enumerate(held.matches):
        place = f"matches[{i}]"
        source.expect(match.a != match.b, place, "two agents", match.a)
        counted = 0 < sum(match.pairs) <= MAX_GAMES
        source.expect(counted, f"{place}.pairs", f"1 to {MAX_GAMES:,} pairs", match.pairs)
        right = match == LadderMatch.of(match.a, match.b, match.seed, match.pairs)
        source.expect(right, place, "score and ci95 of its pairs", (match.score, match.ci95))
    rated = {rating.agent for rating in held.agents}
    played = {name for match in held.matches for name in (match.a, match.b)}
    right = not rated or (rated == played and held.anchor in rated)
    source.expect(right, "agents", "those of its matches, the anchor among them", sorted(rated))


def load_boards(
    source: Source,
    places: tuple[str, str],
    name: str,
    hash_: str,
    pool: BoardPool | None = None,
) -> BoardPool:
    """Return the boards that a file was made on, by default those that it names.

    A name that stands in a file is no path, and not one of so many boards as to wait for.

    Args:
        source: the file: its errors are raised.
        places: of name and hash in it.
        name: of a built-in board, or of boards of the family.
        hash_: of the boards.
        pool: boards that the user has named instead.
    """
    if pool is None:
        try:
            pool = BoardPool.load(name if is_family(name) else Board.named(name))
        except BoardError as error:
            text = f"{source.name}: {places[0]}: {error}; give the file of its board"
            raise source.error(text) from None
        few = f"a name of at most {MAX_BOARDS:,} boards"
        remedy = f"it has {len(pool):,} boards, more than a file may ask for by itself: name it too"
        source.expect(len(pool) <= MAX_BOARDS, places[0], few, name, remedy)
    wanted, remedy = f"{pool.hash} of {pool.name!r}", "its games were played on another board"
    source.expect(pool.hash == hash_, places[1], wanted, hash_, remedy)
    return pool


def content_hash(body: Mapping[str, Any]) -> str:
    """Return the hash of a ladder or a suite, from all that its file holds but the hash."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def make_ladder(
    agents: Sequence[str],
    games_of: Callable[[str, str], int],
    seed: int,
    board: Boards,
    play: PlayMatch,
    path: str | Path,
    *,
    model: str = DEFAULT_MODEL,
    anchor: str | None = None,
) -> Ladder:
    """Let agents play a round robin, and write their ratings to a file.

    Every match is saved when it is over. If the file is there already, its matches are kept and
    those that are missing, or have another number of games, are played: to go on after a stop, to
    add an agent, or to rate the same games by another link or anchor. What is written does not
    depend on the stops. An agent is known by its spec alone: delete the file when what stands
    behind a spec has changed.

    Args:
        agents: their specs, each once.
        games_of: how many games two agents play, even; 0 if they do not meet.
        seed: from which those of the matches follow, each with luck of its own (`match_seed`).
        board: on which `play` plays, one board or a pool.
        play: see `Play`.
        path: the file.
        link: name of the link of the ratings.
        anchor: the agent at 0; if it is not among them, `ratings.anchor_among` tells which is.

    Raises:
        LadderError: before a game is played, if agents repeat or are not connected by matches, or
            if the file holds a ladder that this one would destroy.
        InUseError: if another command makes it.
    """
    check_seed(seed)
    games = _plan(agents, games_of)
    anchor = choose_anchor(agents, anchor)
    pool = BoardPool.load(board)
    link = model_named(model).name
    empty = Ladder(pool.name, pool.hash, RULES_VERSION, seed, anchor, (), (), pool, link)
    with locked(Path(path)):
        return _made(Path(path), empty, games, play)


def _made(
    path: Path, empty: Ladder, games: Mapping[tuple[str, str], int], play: PlayMatch
) -> Ladder:
    seed, agents = empty.seed, list(dict.fromkeys(name for pair in games for name in pair))
    matches = _matches_so_far(path, empty, agents)
    for pair, count in games.items():
        if count and (pair not in matches or matches[pair].games != count):
            own = match_seed(seed, *sorted(pair))
            played = play(*pair, count, own)
            matches[pair] = LadderMatch.of(played.a, played.b, own, played.pentanomial.tolist())
            replace(empty, matches=tuple(matches.values())).save(path)
    wanted = tuple(matches[pair] for pair, count in games.items() if count)
    ratings = rate_matches(wanted, model=empty.link, anchor=empty.anchor, seed=seed)
    found = goodness_of_fit(wanted, model=empty.link)
    replace(empty, agents=tuple(ratings), matches=wanted, fit=found).save(path)
    return Ladder._load(path, empty.pool, exactly=True)


def is_epsilon_baseline(spec: str) -> bool:
    """Return whether an agent plays at random, or errs at random with a given probability."""
    return spec == "random" or ":epsilon=" in spec


def epsilon_baselines(ladder: Ladder) -> tuple[tuple[LadderMatch, ...], str] | None:
    """Return the matches between agents that err at random, and the agent without errors.

    Random errors are a dose, not a way to play: such agents are shown on a scale of their own, by
    the matches between them and with the one that they are without errors, its anchor.

    Returns:
        None if there are fewer than two such agents, or no match with the one without errors.
    """
    names = [rating.agent for rating in ladder.agents]
    bases = {name.partition(":epsilon=")[0] for name in names if ":epsilon=" in name}
    base = next((name for name in names if name in bases), None)
    on = {
        name
        for name in names
        if is_epsilon_baseline(name) and name.partition(":")[0] in {base, "random"}
    }
    matches = tuple(match for match in ladder.matches if {match.a, match.b} <= on | {base})
    met = {name for match in matches for name in (match.a, match.b)}
    return (matches, base) if base in met and len(met) > 2 else None


def match_seed(seed: int, *names: str) -> int:
    """Return the seed of a match with luck of its own, from the seed of a set of matches.

    With one seed for all, lucky dice for an agent would be lucky against everyone, and more
    opponents would not make its rating more certain.
    """
    text = json.dumps([seed, *names])
    return int(hashlib.sha256(text.encode()).hexdigest()[:13], 16)  # 52 bits


def ladder_schedule(agents: Sequence[str], most: int, reach: int) -> Callable[[str, str], int]:
    """Return how many games two agents of a ladder play, for `make_ladder`.

    An agent meets those up to `reach` places from its own: further away one wins every game, and
    little is learnt. Two that do not search play `most` games, others 4,000,000 / `cost_of`
    the slower one, rounded down to an even number, within 300 and `most`.

    Args:
        agents: their specs, weakest first.
        most: games of two agents, even.
        reach: places.
    """
    place = {agent: i for i, agent in enumerate(agents)}

    def games(a: str, b: str) -> int:
        if abs(place[a] - place[b]) > reach:
            return 0
        slower = max(cost_of(a), cost_of(b), 1)
        return min(max(LADDER_SEARCHES // slower // 2 * 2, MIN_LADDER_GAMES), most)

    return games


def _plan(agents: Sequence[str], games_of: Callable[[str, str], int]) -> dict[tuple[str, str], int]:
    """Return the games of every two agents, after checking that they connect all."""
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
    apart = [agent for agent in agents if agent not in connected]
    if apart:
        raise LadderError(f"no match connects {agents[0]} with {', '.join(apart)}: plan one")
    return games


def _matches_so_far(
    path: Path, planned: Ladder, agents: Sequence[str]
) -> dict[tuple[str, str], LadderMatch]:
    """Return the matches in the file, if it is there, by agents in the order of the plan."""
    if not path.exists():
        return {}
    found = Ladder._load(path, planned.pool, exactly=True)
    if found.seed != planned.seed:
        raise LadderError(
            f"{path}: holds a ladder of seed {found.seed}, which one of seed {planned.seed} would "
            "destroy: choose another file, or the same seed"
        )
    matches = {}
    for match in found.matches:
        strangers = [agent for agent in (match.a, match.b) if agent not in agents]
        if strangers:
            raise LadderError(
                f"{path}: holds matches of {strangers[0]!r}, which would be lost: name this agent "
                "too, or choose another file"
            )
        if agents.index(match.a) > agents.index(match.b):
            match = LadderMatch.of(match.b, match.a, match.seed, match.pairs[::-1])
        matches[match.a, match.b] = match
    return matches
