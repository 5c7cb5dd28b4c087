"""Ladders: results with the matches of agents, and the ratings that follow from them.

Cite a rating together with the hash of its ladder.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tokaido_env.agents.registry import check_spec_in_file, cost_of, sha256_of
from tokaido_env.arena.match import Match, match_seed
from tokaido_env.arena.ratings import choose_anchor, goodness_of_fit, rate_matches
from tokaido_env.arena.result import BoardsEntry, Measure, Result, Score
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.boards.procedural import is_family
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import check_seed, repr_short
from tokaido_env.decoding import Source
from tokaido_env.files import locked

# This project's ladders: on its default board, and on boards of the family.
LADDER = Path(__file__).resolve().parent / "ladder.json"
FAMILY_LADDER = LADDER.with_name("ladder-family.json")
# The number of games of two agents when a ladder is made: `ladder_schedule`. Chosen by hand.
LADDER_SEARCHES = 4_000_000
MIN_LADDER_GAMES = 300

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


@dataclass(frozen=True)
class Ladder:
    """A result with the matches and ratings of agents, and the boards it was played on.

    Attributes:
        result: of the protocol "ladder", with at most one score of every two agents: `play_match`
            with their seeds plays the same games again. It has no estimates while matches are
            missing.
        pool: the board or pool on which agents are placed.
    """

    result: Result
    pool: BoardPool

    @property
    def agents(self) -> tuple[Measure, ...]:
        """The ratings, best first; empty while matches are missing."""
        return tuple(self.result.estimates_of("Elo"))

    @property
    def seed(self) -> int:
        """The seed of all matches, and of the ratings' resamples."""
        return self.result.seed or 0

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
            LadderError: if the file is cut or changed, made for other rules or another board, or
                the files of its agents have changed since.
            AgentError: if it names an agent that a file may not name.
        """
        ladder = _load(Path(path), None if board is None else BoardPool.load(board))
        where = Source(path, None, LadderError).name
        names = [name for match in ladder.result.scores for name in (match.a, match.b)]
        for spec in dict.fromkeys([*(rating.agent for rating in ladder.agents), *names]):
            if check_spec_in_file(spec, where, Path(path).parent, named) != spec:
                raise LadderError(
                    f"{where}: {repr_short(spec)}: no such policy in the folder of the command, "
                    "from which a ladder names policies"
                )
            _check_unchanged(where, ladder.result, spec)
        return ladder


def _load(path: Path, board: BoardPool | None, *, exactly: bool = False) -> Ladder:
    """Read a ladder as `Ladder.load` does, without checks of the named agents.

    Args:
        path: the file.
        board: as for `Ladder.load`.
        exactly: refuse a ladder on other boards of the family.
    """
    source = Source.json(path, "ladder", LadderError)
    result = Result.decoded(source)
    source.expect(result.protocol == "ladder", "protocol", "ladder", result.protocol)
    source.expect(not result.ladder, "ladder", "a file of --out, which has none", result.ladder)
    source.expect(len(result.boards) == 1, "boards", "one", len(result.boards))
    name = result.boards[0].name
    if board is not None and board.name != name and not exactly:
        board = None if is_family(board.name) and is_family(name) else board
    return Ladder(result, _load_boards(source, result.boards[0], board))


def _load_boards(source: Source, boards: BoardsEntry, pool: BoardPool | None) -> BoardPool:
    """Return the boards that the user has named, by default those that the ladder names.

    A ladder may not name a path.
    """
    name = boards.name
    if pool is None:
        try:
            pool = BoardPool.load(name if is_family(name) else Board.by_name(name))
        except BoardError as error:
            raise source.error(f"{source.name}: board: {error}") from None
    expected = f"{pool.hash} of {pool.name!r}"
    remedy = "it is of another board: name that with --board, or make one by tokaido ladder --board"
    source.expect(pool.hash == boards.hash, "boards[0].hash", expected, boards.hash, remedy)
    return pool


def make_ladder(
    agents: Sequence[str],
    games_of: Callable[[str, str], int],
    seed: int,
    board: Boards,
    play: PlayMatch,
    path: str | Path,
    *,
    anchor: str | None = None,
    command: str = "",
) -> Ladder:
    """Play a round robin between agents, and write their ratings to a file.

    Every match is saved when it has ended. If the file exists, all its matches are kept and count;
    only missing ones and those with fewer games are played. So a stopped run can be resumed, an
    agent added, and the same games rated with another anchor. The file does not depend on stops.

    Args:
        agents: their specs, each once.
        games_of: returns the number of games of two agents, even; 0 if they do not meet.
        seed: determines the seeds of the matches (`match_seed`).
        board: on which `play` plays, one board or a pool.
        play: see `PlayMatch`.
        path: the file.
        anchor: the agent at 0; if it is not among them, see `ratings.choose_anchor`.
        command: that makes the ladder.

    Raises:
        LadderError: before any game is played, if agents repeat or are not connected by matches,
            if matches of the file would be lost, or the files of its agents have changed.
        InUseError: if another command makes the ladder.
    """
    seed = check_seed(seed)
    games = _schedule(agents, games_of)
    anchor = choose_anchor(agents, anchor)
    pool = BoardPool.load(board)
    boards, files = (BoardsEntry.of(pool),), {x: sha256_of(x) for x in agents if sha256_of(x)}
    about: dict[str, Any] = {"agents": tuple(agents), "boards": boards, "files": files}
    empty = Result.made("ladder", command, **about, seed=seed, anchor=anchor)
    with locked(Path(path)):
        return _play_and_rate(Path(path), empty, pool, games, play)


def _play_and_rate(
    path: Path,
    empty: Result,
    pool: BoardPool,
    games: Mapping[tuple[str, str], int],
    play: PlayMatch,
) -> Ladder:
    seed, board = empty.seed or 0, pool.name
    matches = _saved_matches(path, pool, empty)
    for pair, count in games.items():
        if count and (pair not in matches or matches[pair].n < count):
            own = match_seed(seed, *sorted(pair))
            pairs = play(*pair, count, own).pentanomial.tolist()
            matches[pair] = Score.of_pairs(*pair, board, own, pairs)
            replace(empty, scores=tuple(matches.values())).save(path)
    counted = tuple(matches[pair] for pair in games if pair in matches)
    ratings = rate_matches(counted, anchor=empty.anchor, seed=seed)
    fit = goodness_of_fit(counted)
    estimates = (*(rating.rounded(2) for rating in ratings), *fit)
    if any(matches[pair].n != count for pair, count in games.items() if pair in matches):
        empty = replace(empty, command="")  # of matches that other commands have played
    replace(empty, estimates=estimates, scores=counted).save(path)
    return _load(path, pool, exactly=True)


def is_epsilon_baseline(spec: str) -> bool:
    """Return whether a spec is "random", or "greedy" with a probability of random moves."""
    return spec == "random" or ":epsilon=" in spec


def epsilon_baselines(ladder: Ladder) -> tuple[tuple[Score, ...], str] | None:
    """Return the matches between epsilon baselines, and the agent that they are variants of.

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
    matches = tuple(m for m in ladder.result.scores if {m.a, m.b} <= baselines | {base})
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


def _saved_matches(path: Path, pool: BoardPool, empty: Result) -> dict[tuple[str, str], Score]:
    """Return the matches of the file, if it exists, by agents in the order of the schedule."""
    if not path.exists():
        return {}
    found, agents = _load(path, pool, exactly=True), empty.agents
    if found.seed != empty.seed:
        raise LadderError(
            f"{path}: holds a ladder of seed {found.seed}, which one of seed {empty.seed} would "
            "destroy: choose another file, or the same seed"
        )
    matches = {}
    for match in found.result.scores:
        unknown = [agent for agent in (match.a, match.b) if agent not in agents]
        if unknown:
            raise LadderError(
                f"{path}: holds matches of {unknown[0]!r}, which would be lost: name this agent "
                "too, or choose another file"
            )
        if agents.index(match.a) > agents.index(match.b):
            match = match.reversed()
        matches[match.a, match.b] = match
        for spec in (match.a, match.b):
            _check_unchanged(path, found.result, spec)
    return matches


def _check_unchanged(where: str | Path, ladder: Result, spec: str) -> None:
    sha256 = sha256_of(spec)  # "" for a policy that is not here, which may not be needed
    if sha256 and ladder.files.get(spec) != sha256:
        raise LadderError(
            f"{where}: files: {repr_short(spec)} has changed since its games were played: restore "
            "its file, or make a ladder in another file"
        )
