"""Reviews of many games: in order whoever does them, and totals with intervals by games."""

import numpy as np
import pytest
from test_review import CHAMPION, golden
from twice import Twice

from tokaido_env.agents import make
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.study.batch_review import Asked, Tally, review_each
from tokaido_env.study.review import MARKS, Review, review

JUDGE = make("mcts:sims=20")
ASKED = Asked(JUDGE, CHAMPION, 4, 3)
SEEDS = (3, 4, 5)


@pytest.fixture(scope="module")
def singles() -> list[Review]:
    return [review(golden(seed), JUDGE, CHAMPION, 4, 3) for seed in SEEDS]


@pytest.mark.parametrize("executor", [None, Twice()])
def test_games_are_reviewed_in_order_and_as_alone(
    executor: Twice | None, singles: list[Review]
) -> None:
    found: list[Review] = []
    review_each((golden(seed) for seed in SEEDS), ASKED, found.append, executor)
    assert [one.to_dict() for one in found] == [one.to_dict() for one in singles]


def test_who_cannot_judge_is_refused_by_any_executor() -> None:
    asked = ASKED._replace(judge=make("greedy"))
    with pytest.raises(ValueError, match="'greedy' does not tell") as refused:
        review_each([golden()], asked, lambda found: None, Twice())
    assert not isinstance(refused.value, AgentFailed)


def test_no_more_games_are_begun_than_are_reviewed() -> None:
    """A file may be longer than memory."""
    begun, done = [], []

    def games() -> object:
        for seed in SEEDS:
            assert len(begun) == len(done)
            begun.append(seed)
            yield golden(seed)

    review_each(games(), ASKED, done.append)  # type: ignore[arg-type]
    assert len(done) == 3


def test_totals_are_those_of_the_games(singles: list[Review]) -> None:
    tally, names = Tally(), [("a", "b"), ("b", "a"), ("a", "b")]
    for name, one in zip(names, singles, strict=True):
        tally.add(name, one)
    figures = tally.figures()
    assert list(figures) == ["a", "b"]
    for name, of in figures.items():
        totals = [one.totals()[who.index(name)] for who, one in zip(names, singles, strict=True)]
        choices = np.array([each["choices"] for each in totals])
        assert (of["games"], of["choices"]) == (3, choices.sum())
        for mark in MARKS:
            assert of[mark] == sum(each[mark] for each in totals)
        for key in ("loss", "agreed"):
            weighted = np.average([each[key] for each in totals], weights=choices)
            assert of[key]["mean"] == pytest.approx(weighted, abs=2e-6)
        where = [each["open_choices"] for each in totals]
        weighted = np.average([each["open_loss"] for each in totals], weights=where)
        assert of["open_loss"]["mean"] == pytest.approx(weighted, abs=2e-6)
        assert of["open_loss"]["n"] == sum(where) < choices.sum()
        for key in ("luck", "result", "result_less_luck"):
            values = np.array([each[key] for each in totals])
            assert of[key]["mean"] == pytest.approx(values.mean(), abs=2e-6)
            half = 1.96 * values.std(ddof=1) / 3**0.5
            assert of[key]["ci95"][1] - of[key]["mean"] == pytest.approx(half, abs=1e-4)


def test_one_name_for_both_has_no_luck_and_half_the_results(singles: list[Review]) -> None:
    tally = Tally()
    for one in singles:
        tally.add(("a", "a"), one)
    (of,) = tally.figures().values()
    assert (tally.games, of["games"]) == (3, 3)
    assert of["luck"]["mean"] == of["luck"]["ci95"][1] == 0
    assert of["result"]["mean"] == 0.5
