"""Samples of chance in a search: odds, stratified faces, and different draws; UCB1's logarithm."""

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import random_move

from tokaido_env import Board, Game
from tokaido_env.agents.search_tree import _resolve_chance_stratified, stratified_roll
from tokaido_env.agents.selection import _sqrt_log
from tokaido_env.core.constants import ARTIST, MERCHANT, PILGRIM
from tokaido_env.core.jit import entry
from tokaido_env.core.rng import LUCK, hash_bits, init_luck, outcome_of_roll
from tokaido_env.core.rules import MAX_OUTCOMES, outcome_weights
from tokaido_env.core.state import DRAW, NO_PLAYER, STATE, initial_states

Ints = npt.NDArray[np.int64]

SAMPLES = 18


@entry
def _rolls(keys: Any, number: int, out: Any) -> None:
    for i in range(len(keys)):
        for j in range(out.shape[1]):
            out[i, j] = stratified_roll(keys[i], number, j)


@entry
def _settled(boards: Any, states: Any, lucks: Any, keys: Any, number: int) -> None:
    for i in range(len(states)):
        init_luck(lucks[i], hash_bits(keys[i], 0, 0, number))
        _resolve_chance_stratified(boards[0], states[i], lucks[i], keys[i], number)


@entry
def _outcomes(boards: Any, states: Any, out: Any, weights: Any) -> int:
    for roll in range(len(out)):
        out[roll] = outcome_of_roll(boards[0], roll)
    return int(outcome_weights(boards[0], states[0], weights))


@entry
def _roots(visits: Any, out: Any) -> None:
    for i in range(len(visits)):
        out[i] = _sqrt_log(visits[i])


def keys_of(n: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(4).integers(2**64, size=n, dtype=np.uint64)


def rolls(n: int, number: int = 3) -> Ints:
    """Return stratified rolls by their faces, (keys, samples, dice)."""
    out = np.empty((n, SAMPLES), np.int64)
    _rolls(keys_of(n), number, out)
    return np.stack([out // 36, out // 6 % 6, out % 6], axis=-1)


def chi_square_score(counts: Any, odds: Any) -> float:
    """Return the distance of counts from odds, in standard deviations of chi-square."""
    expected = np.asarray(odds, float) / np.sum(odds) * np.sum(counts)
    there = expected > 0
    assert (np.asarray(counts)[~there] == 0).all()
    chi2 = float((((counts - expected)[there]) ** 2 / expected[there]).sum())
    degrees = int(there.sum()) - 1
    return (chi2 - degrees) / np.sqrt(2 * degrees)


# Dice


def test_stratified_roll__shows_each_face_once_in_six_samples() -> None:
    faces = rolls(500).reshape(500, SAMPLES // 6, 6, 3)
    assert (np.sort(faces, axis=2) == np.arange(6)[:, None]).all()


@pytest.mark.parametrize("sample", [0, 1, 5, 6, 13])
def test_stratified_roll__has_the_odds_of_the_rules(sample: int) -> None:
    """In each sample all 216 rolls are equally likely, and outcomes have their weights."""
    faces = rolls(216 * 200)[:, sample]
    roll = faces @ [36, 6, 1]
    counts = np.bincount(roll, minlength=216)
    assert chi_square_score(counts, np.ones(216)) < 4
    board, weights, of_roll = Board.load(), np.zeros(MAX_OUTCOMES, np.int64), np.zeros(216, int)
    states = initial_states(board.record)
    states["phase"] = 1
    assert _outcomes(board.record, states, of_roll, weights) == MAX_OUTCOMES
    assert (np.bincount(of_roll, minlength=MAX_OUTCOMES) == weights).all()
    outcomes = np.bincount(of_roll[roll], minlength=MAX_OUTCOMES)
    assert chi_square_score(outcomes, weights) < 4


def test_stratified_roll__is_independent_between_dice_blocks_and_rounds() -> None:
    """Two samples depend on each other only within six samples of one die."""
    first, other = rolls(36 * 600), rolls(36 * 600, 4)
    free = np.ones((6, 6))
    for die in range(3):
        for pair, odds in (
            ((first[:, 0, die], first[:, 3, die]), free - np.eye(6)),
            ((first[:, 0, die], first[:, 6, die]), free),
            ((first[:, 0, die], other[:, 0, die]), free),
            ((first[:, 0, die], first[:, 0, (die + 1) % 3]), free),
            ((first[:, 2, die], first[:, 4, (die + 1) % 3]), free),
        ):
            counts = np.bincount(6 * pair[0] + pair[1], minlength=36)
            assert chi_square_score(counts, odds.ravel()) < 4.5


def test_stratified_roll__has_all_orders_of_faces_equally_often() -> None:
    orders = rolls(720 * 40)[:, :6, MERCHANT] @ 6 ** np.arange(6)
    _, counts = np.unique(orders, return_counts=True)
    assert len(counts) == 720
    assert chi_square_score(counts, np.ones(720)) < 4


def test_stratified_roll__gives_the_exact_mean_of_a_sum_over_dice() -> None:
    """The mean of six samples of a sum of one number for each die is exact."""
    worth = np.array([[0, 1, 5, 2, 2, 9], [1, 1, 1, 7, 3, 0], [4, 0, 0, 0, 2, 1]])
    faces = rolls(200)[:, :6]
    values = sum(worth[die][faces[:, :, die]] for die in (PILGRIM, MERCHANT, ARTIST))
    assert np.asarray(values).mean(axis=1) == pytest.approx(worth.mean(axis=1).sum())


# Wares and tiles


def drawing(hot_spring: bool) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return a board and a position in which a player draws three wares and may draw again."""
    game, rng = Game(seed=2, chance="explicit"), random.Random(2)
    while not (game.phase == DRAW and len(game.to_dict()["dice_left"]) == 2):
        game.play(random_move(game, rng))
    state = game.state.copy()
    state["pending"] = 3
    state["wares"] = 0
    state["bag"] = 9
    state["hot_spring"] = state["lead"] if hot_spring else NO_PLAYER
    return game.boards, state


def wares_drawn(hot_spring: bool, n: int, number: int = 2) -> Ints:
    """Return the wares of one sample for n keys, by kind: (n, 4)."""
    boards, state = drawing(hot_spring)
    assert state["phase"] == DRAW
    states = np.repeat(state, n).astype(STATE)
    _settled(boards, states, np.zeros(n, LUCK), keys_of(n), number)
    return states["wares"].sum(axis=1).astype(np.int64)


def test_resolve_chance_stratified__draws_again_in_a_second_draw() -> None:
    """The hot spring token lets a player draw twice; the draws differ as those of two keys."""
    n = 4000
    first, second = wares_drawn(True, n), wares_drawn(False, n)
    assert (first.sum(axis=1) == 3).all()
    alike = (first == second).all(axis=1).mean()
    by_chance = (first == np.roll(second, 1, axis=0)).all(axis=1).mean()
    assert alike == pytest.approx(by_chance, abs=0.03)
    for kind in range(4):
        assert abs(np.corrcoef(first[:, kind], second[:, kind])[0, 1]) < 0.06
        assert first[:, kind].mean() == pytest.approx(0.75, abs=0.05)
        assert second[:, kind].mean() == pytest.approx(0.75, abs=0.05)
    assert (wares_drawn(True, n) == first).all()  # from the key alone


# UCB1


def test_sqrt_log__is_right_past_its_table() -> None:
    visits = np.array([0, 1, 4094, 4095, 4096, 4097, 100_000, 999_999])
    out = np.empty(len(visits), np.float32)
    _roots(visits, out)
    assert out == pytest.approx(np.sqrt(np.log(visits + 1)), rel=1e-6)
