"""Samples of dice in a search: odds and stratified faces; UCB1's logarithm."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tokaido_env import Board
from tokaido_env.agents.search_tree import stratified_roll
from tokaido_env.agents.selection import _sqrt_log
from tokaido_env.core.jit import entry
from tokaido_env.core.rng import outcome_of_roll
from tokaido_env.core.rules import MAX_OUTCOMES, outcome_weights
from tokaido_env.core.state import initial_states

Ints = npt.NDArray[np.int64]

SAMPLES = 18


@entry
def _rolls(keys: Any, number: int, out: Any) -> None:
    for i in range(len(keys)):
        for j in range(out.shape[1]):
            out[i, j] = stratified_roll(keys[i], number, j)


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


# UCB1


def test_sqrt_log__is_right_past_its_table() -> None:
    visits = np.array([0, 1, 4094, 4095, 4096, 4097, 100_000, 999_999])
    out = np.empty(len(visits), np.float32)
    _roots(visits, out)
    assert out == pytest.approx(np.sqrt(np.log(visits + 1)), rel=1e-6)
