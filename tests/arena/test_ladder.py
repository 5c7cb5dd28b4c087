"""Ladders: whole, resumable, checked when read; and an agent placed on one, repeatably."""

import hashlib
import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from positions import shikoku_data, write_board

from tokaido_env import SeedError
from tokaido_env.arena.ladder import (
    Ladder,
    LadderError,
    LadderMatch,
    epsilon_baselines,
    is_epsilon_baseline,
    ladder_schedule,
    make_ladder,
)
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.placement import games_against, games_between, rate_on_ladder
from tokaido_env.arena.ratings import expected_score, goodness_of_fit, rate_against, rate_matches
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import check_seed

BOARD = Board.load()
SLOW = "mcts:sims=4000"
STRENGTHS = {
    "random": 0.0,
    "greedy": 300.0,
    "policy:a": 420.0,
    "mcts:sims=400": 500.0,
    SLOW: 600.0,
    "mcts:sims=10000": 620.0,
}
COMMITTED = sorted((Path(__file__).parents[2] / "tokaido_env" / "arena").glob("ladder*.json"))


class Table:
    """Plays matches as agents of known strengths would, and notes them."""

    def __init__(self, strengths: dict[str, float] = STRENGTHS, stop_after: int = 1000) -> None:
        self.strengths = strengths
        self.stop_after = stop_after
        self.played: list[tuple[str, str, int, int]] = []

    def play(self, a: str, b: str, games: int, seed: int) -> Match:
        if len(self.played) == self.stop_after:
            raise KeyboardInterrupt
        self.played.append((a, b, games, seed))
        first, second = sorted((a, b))
        rng = np.random.default_rng([crc32(f"{first} {second}".encode()), seed])
        p = expected_score(self.strengths[first] - self.strengths[second])
        results = (rng.random((games // 2, 2)) < p).astype(float)
        data = np.zeros((games // 2, 2), GAME)
        data["seed"] = np.arange(games // 2)[:, None] + seed
        data["result"] = results if a == first else 1 - results[:, ::-1]
        return Match(a, b, data, np.zeros((games // 2, 2, 0), np.int8))


def sixty(a: str, b: str) -> int:
    return 60


def made(
    path: Path,
    agents: list[str] | None = None,
    games_of: Callable[[str, str], int] = sixty,
    seed: int = 0,
    table: Table | None = None,
    **model: Any,
) -> Ladder:
    play = (table or Table()).play
    return make_ladder(agents or list(STRENGTHS), games_of, seed, BOARD, play, path, **model)


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    return made(tmp_path_factory.mktemp("ladder") / "ladder.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ladder.json"


# The file


def test_a_ladder_is_its_matches_rated_together(ladder: Ladder) -> None:
    assert [(m.a, m.b) for m in ladder.matches] == list(combinations(STRENGTHS, 2))
    assert all(m.games == 60 for m in ladder.matches)
    rated = rate_matches(ladder.matches, seed=ladder.seed)
    assert [r.to_dict() for r in ladder.agents] == [r.to_dict() for r in rated]
    assert (ladder.anchor, ladder.link) == ("mcts:sims=400", "probit")
    assert ladder.fit is not None
    assert ladder.fit.to_dict() == goodness_of_fit(ladder.matches).to_dict()


def test_a_match_keeps_score_and_interval_of_its_games() -> None:
    match = Table().play("greedy", "policy:a", 100, 0)
    kept = LadderMatch.of(match.a, match.b, 7, match.pentanomial.tolist()).to_dict()
    told = match.to_dict()
    assert {key: kept[key] for key in ("a", "b", "score", "ci95")} == {
        key: told[key] for key in ("a", "b", "score", "ci95")
    }
    assert sum(kept["pairs"]) == 50


def test_what_is_loaded_is_what_was_saved(ladder: Ladder, path: Path) -> None:
    ladder.save(path)
    assert Ladder.load(path, named=STRENGTHS) == ladder
    assert Ladder.load(path, BOARD, STRENGTHS) == ladder
    data = json.loads(path.read_text(encoding="utf-8"))
    found = data.pop("hash")
    text = json.dumps(data, sort_keys=True).encode()
    assert found == ladder.hash == hashlib.sha256(text).hexdigest()[:16]
    assert data["board_hash"] == BOARD.hash


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_committed_ladders_follow_from_their_matches(path: Path) -> None:
    ladder = Ladder.load(path)
    model = {"model": ladder.link, "anchor": ladder.anchor}
    rated = rate_matches(ladder.matches, **model, seed=ladder.seed)
    assert [r.agent for r in rated] == [r.agent for r in ladder.agents]
    for ours, theirs in zip(rated, ladder.agents, strict=True):
        assert ours.games == theirs.games
        assert [ours.elo, *ours.ci95] == pytest.approx([theirs.elo, *theirs.ci95], abs=0.02)


def test_the_same_games_are_rated_by_another_link_without_being_played(path: Path) -> None:
    logistic, table = made(path, model="logistic", anchor="random"), Table()
    again = made(path, table=table)
    assert not table.played
    assert (logistic.link, logistic.anchor, again.link) == ("logistic", "random", "probit")
    assert again.matches == logistic.matches
    assert again.hash != logistic.hash
    assert made(path, model="logistic", anchor="random") == logistic


def test_agents_that_err_at_random_have_a_scale_of_their_own(ladder: Ladder) -> None:
    found = epsilon_baselines(Ladder.load(COMMITTED[-1]))
    assert found is not None
    matches, anchor = found
    rungs = {"random", *(f"greedy:epsilon=0.{i}" for i in (2, 4, 6, 8))}
    assert anchor == "greedy"
    assert {name for match in matches for name in (match.a, match.b)} == {"greedy", *rungs}
    assert {name for name in ("champion", "greedy", *rungs) if is_epsilon_baseline(name)} == rungs
    assert epsilon_baselines(ladder) is None


def changed(ladder: Ladder, path: Path, change: Callable[[dict[str, Any]], Any], fix: bool) -> None:
    data = ladder.to_dict()
    change(data)
    if fix:
        body = {key: value for key, value in data.items() if key != "hash"}
        text = json.dumps(body, sort_keys=True).encode()
        data["hash"] = hashlib.sha256(text).hexdigest()[:16]
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "fix", "message"),
    [
        (lambda data: data["agents"][0].update(elo=9999.0), False, r"hash: expected \w{16} of "),
        (lambda data: data["agents"].pop(), True, r"agents: expected those of its matches"),
        (lambda data: data.update(seed=9), False, r"changed after it was made; restore it"),
        (lambda data: data.pop("seed"), True, r"expected the key seed, got"),
        (lambda data: data.update(clock=1), True, r"expected no key clock, got"),
        (
            lambda data: data.update(version=1),
            True,
            r"version: expected 2, got 1: make the ladder again",
        ),
        (lambda data: data.update(rules=0), True, r"rules: expected \d+, got 0: make the ladder a"),
        (lambda data: data.update(link="elo"), True, r"link: expected logistic or probit, got 'e"),
        (lambda data: data.update(fit=None), True, r"fit: expected null without ratings, and only"),
        (lambda data: data["fit"].update(p=None), True, r"fit.p: expected null where df is 0"),
        (lambda data: data.update(board_hash="0" * 16), True, r"board_hash: .* on another board"),
        (lambda data: data.update(board="x"), True, r"unknown board 'x'.*; give the file of"),
        (lambda data: data.update(board="/etc/hostname"), True, r"unknown board '/etc/hostname'"),
        (lambda data: data["matches"][0].update(pairs=[1, 2, 3]), True, r"matches\[0\].pairs: exp"),
        (lambda data: data["matches"][0].update(pairs=[0] * 5), True, r"pairs: expected 1 to 10,"),
        (lambda data: data["matches"][0].update(pairs=[10**15] * 5), True, r"pairs\[0\]: expected"),
        (
            lambda data: data["matches"][0].update(score=0.999),
            True,
            r"matches\[0\]: expected s",
        ),
        (
            lambda data: data["matches"][0].update(b="random"),
            True,
            r"matches\[0\]: expected t",
        ),
        (lambda data: data["agents"][0].update(elo=1e9), True, r"agents\[0\].elo: expected a numb"),
        (lambda data: data.update(anchor="x"), True, r"agents: expected those of its matches"),
        (lambda data: data.update(board="x" * 10**6), True, r"board: expected a text of length"),
        (lambda data: data.clear(), False, r"version: expected 2, got None"),
    ],
)
def test_a_file_that_is_not_a_ladder_of_ours_is_refused(
    ladder: Ladder, path: Path, change: Callable[[dict[str, Any]], Any], fix: bool, message: str
) -> None:
    changed(ladder, path, change, fix)
    with pytest.raises(LadderError, match=message) as caught:
        Ladder.load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_ladder_of_another_board_needs_its_file(ladder: Ladder, path: Path) -> None:
    ladder.save(path)
    short = write_board(path.parent / "short.toml", shikoku_data() | {"max_rounds": 10})
    with pytest.raises(LadderError, match="games were played on another board"):
        Ladder.load(path, short)
    board = Board.load(short)
    played = make_ladder(["greedy", "random"], sixty, 0, board, Table().play, path.parent / "s")
    assert Ladder.load(path.parent / "s", short) == played


# Making one


@pytest.mark.parametrize("stop_after", [0, 1, 7])
def test_a_stopped_ladder_goes_on_where_it_was(ladder: Ladder, path: Path, stop_after: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        made(path, table=Table(stop_after=stop_after))
    if stop_after:
        unfinished = Ladder.load(path, named=STRENGTHS)
        assert len(unfinished.matches) == stop_after
        with pytest.raises(LadderError, match=f"not finished: {stop_after} matches"):
            rate_on_ladder("greedy", unfinished, play=Table().play)
    table = Table()
    assert made(path, table=table) == ladder
    assert len(table.played) == len(ladder.matches) - stop_after
    ladder.save(path.with_name("at_once.json"))
    assert path.read_bytes() == path.with_name("at_once.json").read_bytes()
    assert sorted(p.name for p in path.parent.iterdir()) == ["at_once.json", "ladder.json"]


def test_an_agent_can_be_added_in_any_place(path: Path, tmp_path: Path) -> None:
    made(path, ["random", "greedy", SLOW])
    table, agents = Table(), [SLOW, "policy:a", "greedy", "random"]
    added = made(path, agents, table=table)
    assert {frozenset(match[:2]) for match in table.played} == {
        frozenset(("policy:a", other)) for other in ("random", "greedy", SLOW)
    }
    assert added == made(tmp_path / "at_once.json", agents)


def test_only_matches_with_another_number_of_games_are_played_anew(path: Path) -> None:
    agents = ["random", "greedy", SLOW]
    made(path, agents)
    table = Table()
    made(path, agents, lambda a, b: 100 if SLOW in (a, b) else 60, table=table)
    assert [match[:3] for match in table.played] == [
        ("random", SLOW, 100),
        ("greedy", SLOW, 100),
    ]


def test_agents_need_not_all_meet_but_all_be_connected(path: Path) -> None:
    agents = ["random", "greedy", SLOW]
    chain = made(path, agents, lambda a, b: 0 if (a, b) == ("random", SLOW) else 60)
    assert [(m.a, m.b) for m in chain.matches] == [("random", "greedy"), ("greedy", SLOW)]
    apart, table = [*agents, "policy:a"], Table()
    for games_of in (
        lambda a, b: 0 if SLOW in (a, b) else 60,
        lambda a, b: 60 if {a, b} in ({"random", "greedy"}, {"policy:a", SLOW}) else 0,
    ):
        with pytest.raises(LadderError, match=rf"no match connects random with .*{SLOW}"):
            made(path.with_name("apart.json"), apart, games_of, table=table)
    assert not table.played


def test_a_ladder_is_never_destroyed(path: Path) -> None:
    made(path, ["random", "greedy"])
    before = path.read_bytes()
    with pytest.raises(LadderError, match="seed 0, which one of seed 1 would destroy"):
        made(path, ["random", "greedy"], seed=1)
    with pytest.raises(LadderError, match="matches of 'greedy', which would be lost"):
        made(path, ["random", SLOW])
    assert path.read_bytes() == before


def test_a_wrong_plan_is_refused_before_a_game_is_played(path: Path) -> None:
    table = Table()
    with pytest.raises(LadderError, match="two or more, each once, got random, random"):
        made(path, ["random", "random"], table=table)
    with pytest.raises(LadderError, match="two or more"):
        made(path, ["random"], table=table)
    with pytest.raises(LadderError, match="games of 'random' and 'greedy': expected an even"):
        made(path, ["random", "greedy"], lambda a, b: 7, table=table)
    with pytest.raises(SeedError):
        made(path, ["random", "greedy"], seed=-1, table=table)
    assert not table.played
    assert not path.exists()


def test_another_agent_can_be_the_anchor(path: Path) -> None:
    play = Table().play
    agents = ["random", "greedy", SLOW]
    ladder = make_ladder(agents, sixty, 0, BOARD, play, path, anchor="greedy")
    assert ladder.anchor == "greedy"
    assert {r.agent: r.elo for r in ladder.agents}["greedy"] == 0.0
    placed = rate_on_ladder("policy:a", ladder, play=play)
    directly = rate_against("policy:a", placed.matches, ladder.matches, anchor="greedy")
    assert placed.rating == directly
    assert placed.rating.elo < rate_against("policy:a", placed.matches, ladder.matches).elo - 100


# How many games


def test_a_ladder_plays_near_agents_and_slow_ones_less() -> None:
    agents = ["random", "greedy", "mcts:sims=400", "mcts:sims=4000", "mcts:sims=20000"]
    games = ladder_schedule(agents, 4000, max_distance=2)
    assert [games("random", b) for b in agents[1:]] == [4000, 4000, 0, 0]
    assert games("mcts:sims=4000", "greedy") == 1000
    assert games("mcts:sims=4000", "mcts:sims=20000") == 300


# Placing an agent


@pytest.mark.parametrize(
    ("spec", "games", "thorough"),
    [
        ("policy:runs/sims/best", 1000, 1000),
        ("mcts:rollout=2,sims=1500", 532, 532),
        ("mcts:sims=4000", 200, 200),
        ("mcts:sims=4001", 0, 198),
        ("mcts:sims=100000", 0, 40),
        ("champion:sims=100", 500, 500),
    ],
)
def test_games_against_an_agent_follow_from_its_spec(spec: str, games: int, thorough: int) -> None:
    assert games_against(spec) == games
    assert games_against(spec, include_slow=True) == thorough
    assert games_between("random", spec) == games
    assert games_between("mcts:sims=10000", spec) == min(games, 80)


@pytest.mark.parametrize("thorough", [False, True])
def test_opponents_are_those_that_tell_most(ladder: Ladder, thorough: bool) -> None:
    elo = {r.agent: r.elo for r in ladder.agents}
    table = Table(STRENGTHS | {"policy:new": 450.0})
    rated = rate_on_ladder(
        "policy:new", ladder, play=table.play, include_slow=thorough, opponents=9
    )
    met = [match.b for match in rated.matches]
    assert met[0] == "policy:a"  # in the middle of the four that play 1,000 games
    for i in range(1, len(met)):
        before = rate_against("policy:new", rated.matches[:i], ladder.matches, resamples=10).elo
        worth = {
            b: games_between("policy:new", b, include_slow=thorough)
            * expected_score(before - elo[b])
            * expected_score(elo[b] - before)
            for b in set(STRENGTHS) - set(met[:i])
        }
        assert met[i] == max(worth, key=lambda b: worth[b])
    assert set(met) == set(STRENGTHS) - (set() if thorough else {"mcts:sims=10000"})
    assert [match[:3] for match in table.played] == [
        ("policy:new", b, games_between("policy:new", b, include_slow=thorough)) for b in met
    ]


def test_all_agents_meet_an_opponent_with_the_same_luck_and_no_other_match_has_it(
    ladder: Ladder,
) -> None:
    table = Table(STRENGTHS | {"new": 450.0})
    for agent in ("new", SLOW):
        rate_on_ladder(agent, ladder, play=table.play, seed=ladder.seed, opponents=9)
    by_opponent = {(b, seed) for _, b, _, seed in table.played}
    assert len(by_opponent) == len({b for b, _ in by_opponent})
    seeds = [match.seed for match in ladder.matches] + [seed for _, seed in by_opponent]
    assert len(set(seeds)) == len(seeds)
    assert all(check_seed(seed) == seed for seed in seeds)


def test_placing_is_repeatable(ladder: Ladder) -> None:
    def told(seed: int) -> str:
        play = Table(STRENGTHS | {"new": 450.0}).play
        return json.dumps(
            rate_on_ladder("new", ladder, play=play, seed=seed, opponents=2).to_dict()
        )

    assert told(1) == told(1) != told(2)


@pytest.mark.parametrize("agent", ["random", "greedy", SLOW])
def test_an_agent_of_the_ladder_is_placed_where_it_stands(ladder: Ladder, agent: str) -> None:
    rated = rate_on_ladder(agent, ladder, play=Table().play, seed=2)
    assert agent not in {match.b for match in rated.matches}
    (known,) = (r for r in ladder.agents if r.agent == agent)
    assert rated.rating.ci95[0] < known.elo < rated.rating.ci95[1]
    truth = STRENGTHS[agent] - STRENGTHS[ladder.anchor]
    assert rated.rating.ci95[0] < truth < rated.rating.ci95[1]


def test_nobody_to_play_against_is_an_error(path: Path) -> None:
    slow = ["mcts:sims=9000", "mcts:sims=10000"]
    table = Table(dict.fromkeys(slow, 0.0))
    ladder = made(path, slow, table=table)
    with pytest.raises(LadderError, match=r"no opponent on the ladder .* --include-slow"):
        rate_on_ladder(slow[0], ladder, play=table.play)
    assert len(rate_on_ladder(slow[0], ladder, play=table.play, include_slow=True).matches) == 1


def test_a_placing_as_json(ladder: Ladder) -> None:
    table = Table()
    rated = rate_on_ladder("greedy", ladder, play=table.play, opponents=1)
    (match,) = rated.matches
    assert rated.to_dict() == {
        **rated.rating.to_dict(),
        "ladder": ladder.hash,
        "seed": 0,
        "matches": [match.to_dict() | {"seed": table.played[0][3]}],
    }
