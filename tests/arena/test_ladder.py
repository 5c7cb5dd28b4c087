"""Tests of arena/ladder.py: the file, its checks, resuming, and ladders on pools."""

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from simulated_matches import SLOW, STRENGTHS, SimulatedMatches, make_simulated_ladder
from valid_files import with_hash

from tokaido_env.agents import make
from tokaido_env.arena.ladder import (
    FAMILY_LADDER,
    LADDER,
    Ladder,
    LadderError,
    epsilon_baselines,
    is_epsilon_baseline,
    ladder_for,
    ladder_schedule,
    make_ladder,
)
from tokaido_env.arena.match import Match
from tokaido_env.arena.placement import rate_on_ladder
from tokaido_env.arena.ratings import goodness_of_fit, rate_matches
from tokaido_env.arena.tournament import play_match
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool

BOARD = Board.load()
THREE = ["random", "greedy", SLOW]
FAMILY = "family:test/5"

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    return make_simulated_ladder(tmp_path_factory.mktemp("ladder") / "ladder.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ladder.json"


# The file


def test_make_ladder__rates_all_matches_together(ladder: Ladder) -> None:
    assert [(m.a, m.b) for m in ladder.result.scores] == list(combinations(STRENGTHS, 2))
    assert all(m.n == 60 for m in ladder.result.scores)
    rated = rate_matches(ladder.result.scores, seed=ladder.seed)
    assert list(ladder.agents) == [r.rounded(2) for r in rated]
    assert ladder.result.anchor == "mcts:sims=400"
    fit = ladder.result.estimates_of("chi-squared", "p of chi-squared")
    assert fit == goodness_of_fit(ladder.result.scores)


@pytest.mark.parametrize("path", [LADDER, FAMILY_LADDER], ids=lambda path: path.name)
def test_shipped_ladders__follow_from_their_matches(path: Path) -> None:
    ladder = Ladder.load(path)
    rated = rate_matches(ladder.result.scores, anchor=ladder.result.anchor, seed=ladder.seed)
    assert [r.agent for r in rated] == [r.agent for r in ladder.agents]
    for ours, theirs in zip(rated, ladder.agents, strict=True):
        assert ours.rounded(2) == theirs


def test_family_ladder__is_on_the_boards_of_the_validation_split() -> None:
    for board in ("shikoku", "shikoku_ring"):
        assert ladder_for(BoardPool.load(board)) == LADDER
    for spec in ("family:7", "family:train/1000", "family:valid"):
        assert ladder_for(BoardPool.load(spec)) == FAMILY_LADDER
    ladder = Ladder.load(FAMILY_LADDER, "family:train/10")
    assert (ladder.pool.name, len(ladder.pool)) == ("family:valid", 100)
    assert {"random", "greedy", "heuristic", "mcts:sims=400", "champion"} <= {
        rating.agent for rating in ladder.agents
    }
    assert ladder.result == Ladder.load(FAMILY_LADDER).result


def test_epsilon_baselines__have_a_separate_scale(ladder: Ladder) -> None:
    found = epsilon_baselines(Ladder.load(LADDER))
    assert found is not None
    matches, anchor = found
    baselines = {"random", *(f"greedy:epsilon=0.{i}" for i in (2, 4, 6, 8))}
    assert anchor == "greedy"
    assert {name for match in matches for name in (match.a, match.b)} == {"greedy", *baselines}
    names = ("champion", "greedy", *baselines)
    assert {name for name in names if is_epsilon_baseline(name)} == baselines
    assert epsilon_baselines(ladder) is None


@pytest.mark.parametrize(
    ("change", "rehash", "name"),
    [
        (lambda data: data["estimates"][0].update(value=99.0), False, "hash: "),
        (lambda data: data.update(protocol="rate"), True, "protocol: "),
        (lambda data: data["boards"][0].update(hash="0" * 16), True, "boards[0].hash: "),
        (lambda data: data["boards"][0].update(name="/etc/hostname"), True, "board: "),
    ],
)
def test_load__refuses_a_wrong_file(
    ladder: Ladder, path: Path, change: Change, rehash: bool, name: str
) -> None:
    data = ladder.result.to_dict()
    change(data)
    path.write_text(json.dumps(with_hash(data) if rehash else data), encoding="utf-8")
    with pytest.raises(LadderError, match=re.escape(f"{path}: {name}")):
        Ladder.load(path)


# Making and resuming


@pytest.mark.parametrize("stop_after", [0, 1, 7])
def test_make_ladder__resumes_to_the_same_bytes(
    ladder: Ladder, path: Path, stop_after: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        make_simulated_ladder(path, simulated=SimulatedMatches(stop_after=stop_after))
    if stop_after:
        unfinished = Ladder.load(path, named=STRENGTHS)
        assert len(unfinished.result.scores) == stop_after
        with pytest.raises(LadderError, match=f"not finished: {stop_after} matches"):
            rate_on_ladder("greedy", unfinished, play=SimulatedMatches().play)
    simulated = SimulatedMatches()
    assert make_simulated_ladder(path, simulated=simulated).result == ladder.result
    assert len(simulated.played) == len(ladder.result.scores) - stop_after
    ladder.result.save(path.with_name("at_once.json"))
    assert path.read_bytes() == path.with_name("at_once.json").read_bytes()
    assert sorted(p.name for p in path.parent.iterdir()) == ["at_once.json", "ladder.json"]


def test_make_ladder__plays_only_new_agents_and_changed_numbers_of_games(
    path: Path, tmp_path: Path
) -> None:
    make_simulated_ladder(path, THREE)
    simulated, agents = SimulatedMatches(), [SLOW, "policy:a", "greedy", "random"]
    added = make_simulated_ladder(path, agents, simulated=simulated)
    assert {frozenset(match[:2]) for match in simulated.played} == {
        frozenset(("policy:a", other)) for other in THREE
    }
    assert added.result.hash == make_simulated_ladder(tmp_path / "at_once.json", agents).result.hash
    simulated = SimulatedMatches()
    games_of = lambda a, b: 100 if {a, b} == {SLOW, "random"} else 60  # noqa: E731
    make_simulated_ladder(path, agents, games_of, simulated=simulated)
    assert [match[:3] for match in simulated.played] == [(SLOW, "random", 100)]


def test_make_ladder__needs_matches_that_connect_all_agents(path: Path) -> None:
    chain = make_simulated_ladder(path, THREE, lambda a, b: 60 * ((a, b) != ("random", SLOW)))
    assert [(m.a, m.b) for m in chain.result.scores] == [("random", "greedy"), ("greedy", SLOW)]
    simulated = SimulatedMatches()
    for games_of in (
        lambda a, b: 0 if SLOW in (a, b) else 60,
        lambda a, b: 60 if {a, b} in ({"random", "greedy"}, {"policy:a", SLOW}) else 0,
    ):
        other = path.with_name("other.json")
        with pytest.raises(LadderError, match=rf"no match connects random with .*{SLOW}"):
            make_simulated_ladder(other, [*THREE, "policy:a"], games_of, simulated=simulated)
    assert not simulated.played


def test_make_ladder__never_destroys_saved_matches(path: Path) -> None:
    make_simulated_ladder(path, ["random", "greedy"])
    before = path.read_bytes()
    with pytest.raises(LadderError, match="seed 0, which one of seed 1 would destroy"):
        make_simulated_ladder(path, ["random", "greedy"], seed=1)
    with pytest.raises(LadderError, match="matches of 'greedy', which would be lost"):
        make_simulated_ladder(path, ["random", SLOW])
    assert path.read_bytes() == before


@pytest.mark.parametrize("agents", [["random", "random"], ["random"]])
def test_make_ladder__refuses_a_wrong_plan_before_any_game(path: Path, agents: list[str]) -> None:
    with pytest.raises(LadderError, match=r"^agents: "):
        make_simulated_ladder(path, agents)
    assert not path.exists()


def test_ladder_schedule__plays_near_agents_and_fewer_games_of_slow_ones() -> None:
    agents = ["random", "greedy", "mcts:sims=400", "mcts:sims=4000", "mcts:sims=20000"]
    games = ladder_schedule(agents, 4000, max_distance=2)
    assert [games("random", b) for b in agents[1:]] == [4000, 4000, 0, 0]
    assert games("mcts:sims=4000", "greedy") == 1000
    assert games("mcts:sims=4000", "mcts:sims=20000") == 300


# On pools


def ladder_on(board: str, path: Path) -> Ladder:
    def play(a: str, b: str, games: int, seed: int) -> Match:
        return play_match(make(a), make(b), games, seed, board)

    return make_ladder(["random", "greedy"], lambda a, b: 20, 0, board, play, path)


def test_ladder_on_a_pool__serves_all_boards_of_the_family(path: Path) -> None:
    made = ladder_on(FAMILY, path)
    assert made.result.boards[0].hash == BoardPool.load(FAMILY).hash
    before = path.read_bytes()
    assert ladder_on(FAMILY, path).result.hash == made.result.hash
    for board in (None, FAMILY, "family:train/3", "family:7"):
        assert Ladder.load(path, board).pool.name == FAMILY
    with pytest.raises(LadderError, match=r"hash: .* of 'shikoku'.* of another board"):
        Ladder.load(path, "shikoku")
    with pytest.raises(LadderError, match=r"hash: .* of 'family:test/6'.* of another board"):
        ladder_on("family:test/6", path)
    assert path.read_bytes() == before
