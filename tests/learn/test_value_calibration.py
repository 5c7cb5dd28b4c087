"""The value fitted anew: the moves stay, the value is the likeliest, and it is true."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import counting_policy, decisions, random_policy

from tokaido_env import Board
from tokaido_env.agents import Policy
from tokaido_env.agents.champion import CHAMPION
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.learn import value_calibration as module
from tokaido_env.learn.value_calibration import (
    Sample,
    calibrate_value,
    fit,
    main,
    units_of,
    values_of,
)

BOARD = Board.load()
SMALL = ("--games", "64")


def tilted(by: float = 0.7) -> Policy:
    """A policy that plays well enough and is too sure of itself."""
    policy = counting_policy()
    bias = policy.tensors["value.1.bias"] + np.float32(by)
    return Policy(policy.tensors | {"value.1.bias": bias}, {"maker": "tests"})


def loss(x: Any, y: Any, weights: Any) -> float:
    """What is made least, result by result: minus the logarithm of its chance, and the penalty."""
    total = 0.0
    for row, result in zip(x, y, strict=True):
        win = (1 + np.tanh(row @ weights[:-1] + weights[-1])) / 2
        total -= (1 + result) / 2 * np.log(win) + (1 - result) / 2 * np.log(1 - win)
    return total / len(y)


def test_no_weights_near_those_found_are_likelier() -> None:
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
    assert values.mean() == pytest.approx(results.mean(), abs=1e-5)  # as of any such regression


def test_the_mean_of_each_three_rounds_is_held_right() -> None:
    """Where what the units tell is right on the whole and wrong in some rounds."""
    rng = np.random.default_rng(0)
    units = np.maximum(rng.normal(size=(40_000, 8)), 0).astype(np.float32)
    rounds = 1 + np.minimum(units @ rng.random(8) * 3, 26).astype(int)  # a curve of them
    slope = np.array([1.0, -2.0, 0.5, 0.0, 1.0, 0.3, -0.3, 0.1])
    hidden = units @ slope - 0.3 + 0.3 * np.cos(rounds / 3)
    results = np.where(rng.random(len(units)) < 1 / (1 + np.exp(-hidden)), 1.0, -1.0)
    positions = Sample(np.arange(len(units)), rounds, units, results)
    worst, errors = [], []
    for bias_penalty in (0.0, 10.0):
        found = fit(positions, bias_penalty)
        values = np.tanh(units @ found[:-1] + found[-1])
        groups = [(rounds - 1) // 3 == group for group in range(6)]
        worst.append(max(abs((values - results)[group].mean()) for group in groups))
        errors.append(((values - results) ** 2).mean())
    assert worst[0] > 0.03
    assert worst[1] < worst[0] / 2
    assert errors[1] < errors[0] + 0.01


def test_games_that_all_end_alike_give_finite_weights() -> None:
    units = np.ones((20, 3), np.float32)
    units[:, 2] = 0.0
    found = fit(Sample(np.arange(20), 1 + np.arange(20), units, np.ones(20)))
    assert np.isfinite(found).all()
    assert np.tanh(units @ found[:-1] + found[-1]).min() > 0.9


@pytest.mark.parametrize("uses_board_features", [False, True])
def test_units_are_those_of_the_compiled_network(uses_board_features: bool) -> None:
    policy = random_policy(uses_board_features=uses_board_features)
    boards, states, legal = decisions()
    _, values = policy.evaluate(boards, states, legal)
    units = units_of(policy, BOARD, states, legal)
    np.testing.assert_allclose(values_of(policy, units), values, atol=1e-5)


def test_the_moves_stay_and_the_value_becomes_true() -> None:
    policy = tilted()
    made = calibrate_value(policy, games=256, seed=1)
    assert made.after < made.before - 0.1
    assert made.games == 64
    boards, states, legal = decisions()
    logits, values = policy.evaluate(boards, states, legal)
    same, others = made.policy.evaluate(boards, states, legal)
    assert same.tobytes() == logits.tobytes()
    assert (others != values).any()
    for name, tensor in policy.tensors.items():
        changed = name.startswith("value.1.")
        assert (made.policy.tensors[name].tobytes() != tensor.tobytes()) == changed, name
    told = {"board": "shikoku", "hash": BOARD.hash, "games": 256, "seed": 1, "bias_penalty": 10.0}
    assert made.policy.training == {"maker": "tests", "value": told}
    fresh = module.self_play(policy, BoardPool.load("shikoku"), 512, 9, lambda games: None)
    errors = [values_of(one, fresh.units) - fresh.results for one in (policy, made.policy)]
    assert abs(errors[0].mean()) > 0.2
    assert abs(errors[1].mean()) < 0.05


def test_on_a_pool_as_many_games_are_played_on_each_board() -> None:
    pool = BoardPool.load("family:train/3")
    positions = module.self_play(tilted(), pool, 12, 0, lambda games: None)
    assert np.unique(positions.games).tolist() == list(range(12))


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    tilted().save(tmp_path / "policy")
    files = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        files.append(tmp_path / name)
        words = [str(tmp_path / "policy"), "--out", str(files[-1]), "--seed", seed, *SMALL]
        assert main(words) == 0
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()
    assert Policy.load(files[0]).training["value"]["games"] == 64


def test_a_value_that_is_no_better_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = counting_policy()
    policy.save(tmp_path / "policy")
    wrong = np.append(np.zeros(policy.sizes.second), 3.0)
    monkeypatch.setattr(module, "fit", lambda positions, bias_penalty: wrong)
    assert main([str(tmp_path / "policy"), "--out", str(tmp_path / "out"), *SMALL]) == 1
    error = capsys.readouterr().err
    assert "found no better value: squared error " in error
    assert error.endswith(", on 16 held-out games; nothing written\n")
    assert not (tmp_path / "out").exists()


def test_ctrl_c_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(positions: Sample, bias_penalty: float) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "fit", stop)
    assert main([str(CHAMPION), "--out", str(tmp_path / "out"), "--games", "8"]) == 130
    assert capsys.readouterr().err == "value_calibration: stopped, nothing written\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "value_calibration: nowhere: no such policy file"),
        (
            [str(CHAMPION), "--games", "7"],
            "value_calibration: games: expected 8 to 10,000,000, got 7",
        ),
        (
            [str(CHAMPION), "--bias-penalty", "nan"],
            "value_calibration: bias_penalty: expected 0 to 1,000, got nan",
        ),
        ([str(CHAMPION), "--seed", "-1"], "value_calibration: seed: expected an integer from 0"),
        ([str(CHAMPION), "--board", "honshu"], "value_calibration: unknown board 'honshu'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
