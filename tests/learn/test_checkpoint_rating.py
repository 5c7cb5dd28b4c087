"""The rating of a learner: whom it meets, how often, and by which luck."""

from typing import Any

import pytest

from tokaido_env.agents import make
from tokaido_env.arena.ladder import LADDER, Ladder, match_seed
from tokaido_env.arena.placement import PLACING
from tokaido_env.arena.tournament import play_match
from tokaido_env.learn import checkpoint_rating
from tokaido_env.learn.checkpoint_rating import MAX_COST, OPPONENTS, rate_learner


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The opponents of all matches, with games, seed and board."""
    seen: list[tuple[Any, ...]] = []

    def noted(agent: Any, opponent: Any, *others: Any) -> Any:
        seen.append((opponent.spec, opponent.cost, *others))
        return play_match(agent, opponent, *others)

    monkeypatch.setattr(checkpoint_rating, "play_match", noted)
    return seen


def test_a_learner_meets_fast_agents_only_in_as_many_games_as_it_is_given(
    met: list[tuple[Any, ...]],
) -> None:
    ladder = Ladder.load(LADDER, "shikoku")
    found = rate_learner(make("greedy"), ladder, 6, 3)
    assert len({spec for spec, *_ in met}) == len(met) == OPPONENTS
    assert all(cost <= MAX_COST for _, cost, *_ in met)
    assert {(games, pool.name) for *_, games, _, pool in met} == {(6, "shikoku")}
    assert found.games == 6 * OPPONENTS
    low, high = found.ci95
    assert low < found.elo < high


def test_luck_is_that_of_the_run_and_not_that_of_the_final_rating(
    met: list[tuple[Any, ...]],
) -> None:
    ladder = Ladder.load(LADDER, "shikoku")
    first, again = (rate_learner(make("random"), ladder, 4, 3) for _ in range(2))
    assert first == again
    assert met[:OPPONENTS] == met[OPPONENTS:]
    for spec, _, _, seed, _ in met:
        assert seed == match_seed(match_seed(3, "train"), PLACING, spec)
        assert seed != match_seed(3, PLACING, spec)
