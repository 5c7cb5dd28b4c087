"""Intervals of scores on many boards: they cover as often as they say, on simulated boards."""

import numpy as np
import numpy.typing as npt
import pytest
from cases import rest_slow

from tokaido_env.arena.generalisation import generalisation_gap, scores_on_boards
from tokaido_env.arena.intervals import (
    PAIR_SCORES,
    bootstrap_boards,
    interquartile_mean,
    percentile_interval,
    share_above_even,
    student_t_quantile,
    wilson_interval,
)
from tokaido_env.arena.match import GAME, Match
from tokaido_env.boards.board_pool import BoardPool

MEAN = 0.42
SIMULATED, RESAMPLES = 300, 250

Counts = npt.NDArray[np.int64]


def simulated(rng: np.random.Generator, boards: int, pairs: int, spread: float) -> Counts:
    """Pairs on boards whose true scores spread about `MEAN`: in a fifth the better dice win one."""
    true = np.clip(MEAN + spread * rng.standard_normal(boards), 0, 1)[:, None, None]
    games = rng.random((boards, pairs, 2)) < (true - 0.1) / 0.8
    dice = rng.random((boards, pairs)) < 0.2
    scores = np.where(dice, 0.5, games.mean(axis=2))
    return np.stack([(4 * scores == twice).sum(axis=1) for twice in range(5)], axis=1)


def covered(boards: int, pairs: int, spread: float) -> tuple[float, float]:
    """How often the interval holds the true mean, and how wide it is on average."""
    rng = np.random.default_rng(boards + pairs)
    held, widths = 0, []
    for i in range(SIMULATED):
        counts = simulated(rng, boards, pairs, spread)
        draws = bootstrap_boards(counts, [i, 0], resamples=RESAMPLES).mean(axis=1)
        low, high = percentile_interval(draws, boards)
        held += low <= MEAN <= high
        widths.append(high - low)
    return held / SIMULATED, float(np.mean(widths))


@pytest.mark.parametrize(
    ("boards", "pairs", "spread"),
    rest_slow(
        [(20, 10, 0.1), (10, 40, 0.1), (100, 1, 0.1)]
        + [(100, 40, spread) for spread in (0.1, 0.0, 0.03)]
    ),
)
def test_the_mean_is_covered(boards: int, pairs: int, spread: float) -> None:
    held, width = covered(boards, pairs, spread)
    assert 0.91 <= held <= 0.985  # three standard errors of 300 simulations
    # As wide as the spread of boards and the luck of pairs ask for, no wider.
    luck = 0.8 * (MEAN - 0.1) / 0.8 * (1 - (MEAN - 0.1) / 0.8) / 2
    wanted = 2 * 1.96 * np.sqrt((spread**2 + luck / pairs) / boards)
    assert 0.85 * wanted < width < 1.35 * wanted


@pytest.mark.parametrize("boards", [2, 3, 5])
def test_few_boards_give_an_interval_that_is_rather_too_wide(boards: int) -> None:
    held, _ = covered(boards, 10, 0.1)
    assert 0.935 <= held <= 1.0


def test_boards_that_are_all_there_are_are_not_resampled() -> None:
    """The interval is about games only: of boards that differ much it stays narrow."""
    counts = np.array([[100, 0, 0, 0, 0], [0, 0, 0, 0, 100], [25, 0, 50, 0, 25]] * 4)
    draws = bootstrap_boards(counts, 0, drawn=False)
    assert draws.shape == (2000, 12)
    assert (draws[:, ::3] == 0).all()
    assert (draws[:, 1::3] == 1).all()
    # Of a pair the variance is 1/8, of the mean of 100 of them 1/800.
    assert draws[:, 2].std() == pytest.approx(np.sqrt(1 / 800), rel=0.1)
    assert draws[:, 2].mean() == pytest.approx(0.5, abs=0.005)
    drawn = bootstrap_boards(counts, 0)
    assert drawn.mean(axis=1).std() > 5 * draws.mean(axis=1).std()


def test_resamples_repeat_and_do_not_hang_on_how_many_are_made_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = simulated(np.random.default_rng(0), 30, 10, 0.1)
    one, other, seeded = (bootstrap_boards(counts, seed) for seed in (1, 1, 2))
    assert (one == other).all()
    assert (one != seeded).any()
    monkeypatch.setattr("tokaido_env.arena.intervals._BOARDS_AT_ONCE", 300)
    parts = bootstrap_boards(counts, 1)
    assert parts.shape == one.shape
    assert parts.mean() == pytest.approx(one.mean(), abs=0.005)
    assert parts.mean(axis=1).std() == pytest.approx(one.mean(axis=1).std(), rel=0.1)


# Student's quantiles of 97.5 % (any table of them).
@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(3, 3.182), (4, 2.776), (9, 2.262), (19, 2.093), (99, 1.984), (10**9, 1.960)],
)
def test_few_boards_ask_for_a_farther_quantile(freedom: int, quantile: float) -> None:
    assert student_t_quantile(freedom) == pytest.approx(quantile, rel=0.01)


def test_the_interquartile_mean_by_hand() -> None:
    assert interquartile_mean(np.array([9.0, 1.0, 2.0, 3.0])) == 2.5
    assert interquartile_mean(np.array([5.0, 1.0])) == 3.0
    eight = np.array([[0.0, 0, 1, 2, 3, 4, 100, 100]] * 3)
    assert interquartile_mean(eight).tolist() == [2.5] * 3


def test_the_share_above_even_by_hand() -> None:
    assert share_above_even(np.array([0.5, 0.51, 0.49, 1.0])) == 0.625


# What is told of a match


def match_of(scores: npt.NDArray[np.float64]) -> Match:
    """A match of one pair a score: two games with this result."""
    games = np.zeros((scores.size, 2), GAME)
    games["result"] = scores.reshape(-1, 1)
    return Match("x", "y", games, np.zeros((scores.size, 2, 0), np.int8))


def test_scores_by_hand() -> None:
    pool = BoardPool.load("family:test/4")
    scores = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 0]], np.float64)
    told, draws = scores_on_boards(match_of(scores), pool, 0, 0, drawn=True)
    assert (told.pool, told.hash, told.pairs, told.games) == (pool.name, pool.hash, 4, 32)
    assert [one.board for one in told.each] == [board.name for board in pool]
    assert [one.value for one in told.each] == [1.0, 0.5, 0.25, 0.75]
    assert (told.mean.value, told.iqm.value, told.above_even.value) == (0.625, 0.625, 0.625)
    for estimate in (told.mean, told.iqm, told.above_even, *told.each):
        low, high = estimate.ci95
        assert 0 <= low <= estimate.value <= high <= 1
    assert draws.shape == (2000,)


def test_games_that_all_ended_alike_leave_doubt() -> None:
    pool = BoardPool.load("family:test/5")
    won, _ = scores_on_boards(match_of(np.ones((5, 6))), pool, 0, 0, drawn=True)
    assert won.mean.ci95 == pytest.approx(wilson_interval(1.0, 30), abs=1e-6)
    assert won.above_even.ci95 == pytest.approx(wilson_interval(1.0, 5), abs=1e-6)
    lost, _ = scores_on_boards(match_of(np.zeros((5, 6))), pool, 0, 0, drawn=True)
    assert lost.mean.ci95 == pytest.approx(wilson_interval(0.0, 30), abs=1e-6)


def test_the_gap_is_a_difference_and_holds_both_doubts() -> None:
    pool, rng = BoardPool.load("family:test/50"), np.random.default_rng(0)
    sides = []
    for kind, mean in enumerate((0.5, 0.75)):
        scores = (rng.random((50, 20)) < mean).astype(np.float64)
        sides.append(scores_on_boards(match_of(scores), pool, 0, kind, drawn=True))
    gap = generalisation_gap(*sides)
    (there, _), (here, _) = sides
    assert gap.value == pytest.approx(there.mean.value - here.mean.value, abs=1e-6)
    halves = [(one.mean.ci95[1] - one.mean.ci95[0]) / 2 for one, _ in sides]
    assert (gap.ci95[1] - gap.ci95[0]) / 2 == pytest.approx(np.hypot(*halves), rel=0.1)
    assert gap.ci95[0] < gap.value < gap.ci95[1] < 0
    assert PAIR_SCORES.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_a_gap_of_games_that_all_ended_alike() -> None:
    pool = BoardPool.load("family:test/5")
    both = [scores_on_boards(match_of(np.ones((5, 6))), pool, 0, k, drawn=True) for k in (0, 1)]
    gap = generalisation_gap(*both)
    assert gap.value == 0
    assert gap.ci95 == pytest.approx(
        (wilson_interval(1.0, 30)[0] - 1, 1 - wilson_interval(1.0, 30)[0]), abs=1e-6
    )
