"""Reviews of many games by executors, and their totals."""

import numpy as np
import pytest
from reversed_executor import ReversedExecutor
from test_review import CHAMPION, are_equal, golden

from tokaido_env.agents import make
from tokaido_env.study.batch_review import review_games, totals_by_name
from tokaido_env.study.review import MARKS, Review, review

JUDGE = make("mcts:sims=20")
ASKED = JUDGE, CHAMPION, 4, 3
SEEDS = (3, 4, 5)


@pytest.fixture(scope="module")
def singles() -> list[Review]:
    return [review(golden(seed), *ASKED) for seed in SEEDS]


@pytest.mark.parametrize("executor", [None, ReversedExecutor()])
def test_review_games__gives_single_reviews_in_order(
    executor: ReversedExecutor | None, singles: list[Review]
) -> None:
    found = list(review_games([golden(seed) for seed in SEEDS], *ASKED, executor))
    assert all(map(are_equal, found, singles))
    assert len(found) == len(singles)


def test_totals_by_name__has_the_totals_of_the_games(singles: list[Review]) -> None:
    names = [("a", "b"), ("b", "a"), ("a", "b")]
    figures = totals_by_name(zip(names, singles, strict=True))
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
            half = 4.302653 * values.std(ddof=1) / 3**0.5
            assert of[key].high - of[key].value == pytest.approx(half, abs=1e-4)


def test_totals_by_name__of_one_name_in_both_seats_has_no_luck(singles: list[Review]) -> None:
    (of,) = totals_by_name((("a", "a"), one) for one in singles).values()
    assert of["games"] == 3
    assert of["luck"].value == of["luck"].high == 0
    assert of["result"].value == 0.5
