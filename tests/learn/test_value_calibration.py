"""Value calibration: the optimum of the fit, unchanged moves, and refusals."""

from typing import Any

import numpy as np
import pytest
from networks import ROUNDING, counting_policy, decisions, random_policy

from tokaido_env import Board
from tokaido_env.agents import Policy
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn import value_calibration as module
from tokaido_env.learn.value_calibration import Sample, calibrate_value, fit, units_of, values_of

BOARD = Board.load()


def overconfident(bias_shift: float = 0.7) -> Policy:
    """Return a usable policy with a value that is too high."""
    policy = counting_policy()
    bias = policy.tensors["value.1.bias"] + np.float32(bias_shift)
    return Policy(policy.tensors | {"value.1.bias": bias}, {"maker": "tests"})


def loss(x: Any, y: Any, weights: Any) -> float:
    """Return the mean negative log likelihood, result by result."""
    total = 0.0
    for row, result in zip(x, y, strict=True):
        win = (1 + np.tanh(row @ weights[:-1] + weights[-1])) / 2
        total -= (1 + result) / 2 * np.log(win) + (1 - result) / 2 * np.log(1 - win)
    return total / len(y)


def test_fit__is_an_optimum_of_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    units = np.maximum(rng.normal(size=(400, 5)), 0).astype(np.float32)
    chance = 1 / (1 + np.exp(-units @ [1.0, -2.0, 0.5, 0.0, 1.0] + 0.3))
    results = np.where(rng.random(400) < chance, 1.0, -1.0)
    results[::50] = 0.0
    found = fit(Sample(np.arange(400), np.ones(400, int), units, results), bias_penalty=0.0)
    least = loss(units, results, found)
    for i in range(6):
        for step in (-0.01, 0.01):
            other = found.copy()
            other[i] += step
            assert loss(units, results, other) > least
    values = np.tanh(units @ found[:-1] + found[-1])
    assert values.mean() == pytest.approx(
        results.mean(), abs=1e-5
    )  # a property of logistic regression


def test_fit__bias_penalty_corrects_each_group_of_rounds() -> None:
    """The units predict the results well on average and badly in some rounds."""
    rng = np.random.default_rng(0)
    units = np.maximum(rng.normal(size=(40_000, 8)), 0).astype(np.float32)
    rounds = 1 + np.minimum(units @ rng.random(8) * 3, 26).astype(
        int
    )  # a nonlinear function of the units
    slope = np.array([1.0, -2.0, 0.5, 0.0, 1.0, 0.3, -0.3, 0.1])
    hidden = units @ slope - 0.3 + 0.3 * np.cos(rounds / 3)
    results = np.where(rng.random(len(units)) < 1 / (1 + np.exp(-hidden)), 1.0, -1.0)
    sample = Sample(np.arange(len(units)), rounds, units, results)
    worst, errors = [], []
    for bias_penalty in (0.0, 10.0):
        found = fit(sample, bias_penalty)
        values = np.tanh(units @ found[:-1] + found[-1])
        groups = [(rounds - 1) // 3 == group for group in range(6)]
        worst.append(max(abs((values - results)[group].mean()) for group in groups))
        errors.append(((values - results) ** 2).mean())
    assert worst[0] > 0.03
    assert worst[1] < worst[0] / 2
    assert errors[1] < errors[0] + 0.01


def test_fit__is_finite_if_all_results_are_equal() -> None:
    units = np.ones((20, 3), np.float32)
    units[:, 2] = 0.0
    found = fit(Sample(np.arange(20), 1 + np.arange(20), units, np.ones(20)))
    assert np.isfinite(found).all()
    assert np.tanh(units @ found[:-1] + found[-1]).min() > 0.9


@pytest.mark.parametrize("uses_board_features", [False, True])
def test_units_of__equals_the_compiled_network(uses_board_features: bool) -> None:
    policy = random_policy(uses_board_features=uses_board_features)
    boards, states, legal = decisions()
    _, values = policy.evaluate(boards, states, legal)
    units = units_of(policy, BOARD, states, legal)
    np.testing.assert_allclose(values_of(policy, units), values, atol=ROUNDING)


def test_calibrate_value__keeps_moves_and_removes_the_bias() -> None:
    policy = overconfident()
    result = calibrate_value(policy, games=256, seed=1)
    assert result.after < result.before - 0.1
    assert result.games == 64
    boards, states, legal = decisions()
    logits, values = policy.evaluate(boards, states, legal)
    same, others = result.policy.evaluate(boards, states, legal)
    assert same.tobytes() == logits.tobytes()
    assert (others != values).any()
    for name, tensor in policy.tensors.items():
        changed = name.startswith("value.1.")
        assert (result.policy.tensors[name].tobytes() != tensor.tobytes()) == changed, name
    summary = {
        "board": "shikoku",
        "hash": BOARD.hash,
        "games": 256,
        "seed": 1,
        "bias_penalty": 10.0,
    }
    assert result.policy.training == {"maker": "tests", "value": summary}
    fresh = module.self_play(policy, BoardPool.load("shikoku"), 512, 9)
    errors = [values_of(one, fresh.units) - fresh.results for one in (policy, result.policy)]
    assert abs(errors[0].mean()) > 0.2
    assert abs(errors[1].mean()) < 0.05


def test_self_play__plays_every_board_of_a_pool() -> None:
    pool = BoardPool.load("family:train/3")
    sample = module.self_play(overconfident(), pool, 12, 0)
    assert np.unique(sample.games).tolist() == list(range(12))


def test_calibrate_value__says_that_a_value_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = counting_policy()
    wrong = np.append(np.zeros(policy.sizes.second), 3.0)
    monkeypatch.setattr(module, "fit", lambda sample: wrong)
    result = calibrate_value(policy, games=64)
    assert not result.is_better
    assert str(result).endswith(", on 16 held-out games")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"games": 7}, "games: expected 8 to 10,000,000, got 7"),
        ({"seed": -1}, "seed: expected an integer from 0"),
    ],
)
def test_calibrate_value__refuses_wrong_numbers(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate_value(random_policy(), **options)
