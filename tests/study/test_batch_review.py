"""Reviews of many games by executors, and their totals."""

import numpy as np
import pytest
from repeating_executor import RepeatingExecutor
from test_review import CHAMPION, golden

from tokaido_env.agents import make
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.study.batch_review import ReviewConfig, ReviewTotals, review_games
from tokaido_env.study.review import MARKS, Review, review

JUDGE = make("mcts:sims=20")
CONFIG = ReviewConfig(JUDGE, CHAMPION, 4, 3)
SEEDS = (3, 4, 5)


@pytest.fixture(scope="module")
def singles() -> list[Review]:
    return [review(golden(seed), JUDGE, CHAMPION, 4, 3) for seed in SEEDS]


@pytest.mark.parametrize("executor", [None, RepeatingExecutor()])
def test_review_games__gives_single_reviews_in_order(
    executor: RepeatingExecutor | None, singles: list[Review]
) -> None:
    found: list[Review] = []
    review_games((golden(seed) for seed in SEEDS), CONFIG, found.append, executor)
    assert [one.to_dict() for one in found] == [one.to_dict() for one in singles]


def test_review_games__refuses_a_judge_without_values() -> None:
    config = CONFIG._replace(judge=make("greedy"))
    with pytest.raises(ValueError, match="got 'greedy'") as refused:
        review_games([golden()], config, lambda found: None, RepeatingExecutor())
    assert not isinstance(refused.value, AgentFailed)


def test_review_games__takes_games_one_by_one() -> None:
    """A file may be longer than memory."""
    taken, done = [], []

    def games() -> object:
        for seed in SEEDS:
            assert len(taken) == len(done)
            taken.append(seed)
            yield golden(seed)

    review_games(games(), CONFIG, done.append)  # type: ignore[arg-type]
    assert len(done) == 3


def test_summary__has_the_totals_of_the_games(singles: list[Review]) -> None:
    totals_by_name, names = ReviewTotals(), [("a", "b"), ("b", "a"), ("a", "b")]
    for name, one in zip(names, singles, strict=True):
        totals_by_name.add(name, one)
    figures = totals_by_name.summary()
    assert list(figures) == ["a", "b"]
    for name, of in figures.items():
        totals = [one.totals()[who.index(name)] for who, one in zip(names, singles, strict=True)]
        choices = np.array([each["choices"] for each in totals])
        assert (of["games"], of["choices"]) == (3, choices.sum())
        for mark in MARKS:
            assert of[mark] == sum(each[mark] for each in totals)
        for key in ("loss", "agreed"):
            weighted = np.average([each[key] for each in totals], weights=choices)
            assert of[key].value == pytest.approx(weighted, abs=2e-6)
        where = [each["open_choices"] for each in totals]
        weighted = np.average([each["open_loss"] for each in totals], weights=where)
        assert of["open_loss"].value == pytest.approx(weighted, abs=2e-6)
        for key in ("luck", "result", "result_less_luck"):
            values = np.array([each[key] for each in totals])
            assert of[key].value == pytest.approx(values.mean(), abs=2e-6)
            half = 1.96 * values.std(ddof=1) / 3**0.5
            assert of[key].high - of[key].value == pytest.approx(half, abs=1e-4)


def test_summary__of_one_name_in_both_seats_has_no_luck(singles: list[Review]) -> None:
    totals_by_name = ReviewTotals()
    for one in singles:
        totals_by_name.add(("a", "a"), one)
    (of,) = totals_by_name.summary().values()
    assert (totals_by_name.games, of["games"]) == (3, 3)
    assert of["luck"].value == of["luck"].high == 0
    assert of["result"].value == 0.5
