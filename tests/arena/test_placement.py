"""Tests of arena/placement.py: the choice of opponents, the games, and the rating."""

from pathlib import Path

import pytest
from simulated_matches import SLOW, STRENGTHS, SimulatedMatches, make_simulated_ladder

from tokaido_env.arena.ladder import Ladder, LadderError
from tokaido_env.arena.placement import games_against, games_between, rate_on_ladder
from tokaido_env.arena.ratings import expected_score, rate_against
from tokaido_env.core.arguments import check_seed

WITH_NEW = STRENGTHS | {"new": 450.0}


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    return make_simulated_ladder(tmp_path_factory.mktemp("ladder") / "ladder.json")


@pytest.mark.parametrize(
    ("spec", "games", "with_slow"),
    [
        ("policy:runs/sims/best", 1000, 1000),
        ("mcts:rollout=full,sims=1500", 532, 532),
        ("mcts:sims=4000", 200, 200),
        ("mcts:sims=4001", 0, 198),
        ("mcts:sims=100000", 0, 40),
        ("champion:sims=100", 500, 500),
    ],
)
def test_games_against__follows_from_the_cost_of_the_spec(
    spec: str, games: int, with_slow: int
) -> None:
    assert games_against(spec) == games
    assert games_against(spec, include_slow=True) == with_slow
    assert games_between("random", spec) == games
    assert games_between("mcts:sims=10000", spec) == min(games, 80)


@pytest.mark.parametrize("slow", [False, True])
def test_rate_on_ladder__meets_the_opponents_of_greatest_information(
    ladder: Ladder, slow: bool
) -> None:
    elo = {r.agent: r.value for r in ladder.agents}
    simulated = SimulatedMatches(WITH_NEW)
    rated = rate_on_ladder("new", ladder, play=simulated.play, include_slow=slow, opponents=9)
    met = [score.b for score in rated.scores]
    assert met[0] == "policy:a"  # in the middle of the four that play 1,000 games
    for i in range(1, len(met)):
        before = rate_against("new", rated.scores[:i], ladder.result.scores, resamples=10).value
        information = {
            b: games_between("new", b, include_slow=slow)
            * expected_score(before - elo[b])
            * expected_score(elo[b] - before)
            for b in set(STRENGTHS) - set(met[:i])
        }
        assert met[i] == max(information, key=lambda b: information[b])
    assert set(met) == set(STRENGTHS) - (set() if slow else {"mcts:sims=10000"})
    assert [match[:3] for match in simulated.played] == [
        ("new", b, games_between("new", b, include_slow=slow)) for b in met
    ]


def test_rate_on_ladder__gives_each_opponent_its_own_seed_for_all_agents(ladder: Ladder) -> None:
    simulated = SimulatedMatches(WITH_NEW)
    for agent in ("new", SLOW):
        rate_on_ladder(agent, ladder, play=simulated.play, seed=ladder.seed, opponents=9)
    by_opponent = {(b, seed) for _, b, _, seed in simulated.played}
    assert len(by_opponent) == len({b for b, _ in by_opponent})
    seeds = [match.seed for match in ladder.result.scores] + [seed for _, seed in by_opponent]
    assert len(set(seeds)) == len(seeds)
    assert all(seed is not None and check_seed(seed) == seed for seed in seeds)


@pytest.mark.parametrize("agent", ["random", "greedy", SLOW])
def test_rate_on_ladder__gives_an_agent_of_the_ladder_its_rating(
    ladder: Ladder, agent: str
) -> None:
    rated = rate_on_ladder(agent, ladder, play=SimulatedMatches().play, seed=2)
    assert agent not in {score.b for score in rated.scores}
    low, high = rated.estimate("Elo").interval
    assert low < next(r.value for r in ladder.agents if r.agent == agent) < high
    assert low < STRENGTHS[agent] - STRENGTHS[ladder.result.anchor] < high


def test_rate_on_ladder__uses_the_anchor_of_the_ladder(tmp_path: Path) -> None:
    play = SimulatedMatches().play
    ladder = make_simulated_ladder(tmp_path / "l.json", ["random", "greedy", SLOW], anchor="greedy")
    assert {r.agent: r.value for r in ladder.agents}[ladder.result.anchor] == 0.0
    placed = rate_on_ladder("policy:a", ladder, play=play)
    directly = rate_against("policy:a", placed.scores, ladder.result.scores, anchor="greedy")
    found = placed.estimate("Elo")
    assert found.value == round(directly.value, 2)
    assert found.value < rate_against("policy:a", placed.scores, ladder.result.scores).value - 100


def test_rate_on_ladder__refuses_a_ladder_without_opponents(tmp_path: Path) -> None:
    slow = ["mcts:sims=9000", "mcts:sims=10000"]
    simulated = SimulatedMatches(dict.fromkeys(slow, 0.0))
    ladder = make_simulated_ladder(tmp_path / "l.json", slow, simulated=simulated)
    with pytest.raises(LadderError, match=r"no opponent on the ladder .* --include-slow"):
        rate_on_ladder(slow[0], ladder, play=simulated.play)
    rated = rate_on_ladder(slow[0], ladder, play=simulated.play, include_slow=True)
    assert len(rated.scores) == 1


def test_rate_on_ladder__names_its_ladder_and_the_seeds_of_its_matches(ladder: Ladder) -> None:
    simulated = SimulatedMatches()
    rated = rate_on_ladder("greedy", ladder, play=simulated.play, opponents=1)
    assert (rated.protocol, rated.agents, rated.seed) == ("rate", ("greedy",), 0)
    assert (rated.ladder, rated.anchor) == (ladder.result.hash, ladder.result.anchor)
    assert [(x.b, x.n, x.seed) for x in rated.scores] == [match[1:] for match in simulated.played]
