"""Ratings of a learner: opponents, number of games and seeds."""

from typing import Any

import pytest

from tokaido_env.agents import make
from tokaido_env.agents.registry import cost_of
from tokaido_env.arena.ladder import LADDER, Ladder
from tokaido_env.arena.match import match_seed
from tokaido_env.arena.placement import PLACING
from tokaido_env.arena.tournament import play_match
from tokaido_env.learn.rating import MAX_COST, OPPONENTS, rate_learner


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Opponent, games, seed and pool of every match played."""
    seen: list[tuple[Any, ...]] = []

    def recorded(agent: Any, opponent: Any, *others: Any) -> Any:
        seen.append((opponent.spec, *others))
        return play_match(agent, opponent, *others)

    monkeypatch.setattr("tokaido_env.learn.rating.play_match", recorded)
    return seen


def test_rate_learner__plays_fast_agents_and_the_given_games(
    matches: list[tuple[Any, ...]],
) -> None:
    ladder = Ladder.load(LADDER, "shikoku")
    found = rate_learner(make("greedy"), ladder, 6, 3)
    assert len({spec for spec, *_ in matches}) == len(matches) == OPPONENTS
    assert all(cost_of(spec) <= MAX_COST for spec, *_ in matches)
    assert {(games, pool.name) for *_, games, _, pool in matches} == {(6, "shikoku")}
    assert found.n == 6 * OPPONENTS
    assert found.low < found.value < found.high


def test_rate_learner__uses_the_runs_seeds_only(matches: list[tuple[Any, ...]]) -> None:
    ladder = Ladder.load(LADDER, "shikoku")
    first, again = (rate_learner(make("random"), ladder, 4, 3) for _ in range(2))
    assert first == again
    assert matches[:OPPONENTS] == matches[OPPONENTS:]
    for spec, _, seed, _ in matches:
        assert seed == match_seed(match_seed(3, "train"), PLACING, spec)
        assert seed != match_seed(3, PLACING, spec)
