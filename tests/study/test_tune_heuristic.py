"""Tuning: the fit finds weights that are known, and the script writes a file that loads."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT

from tokaido_env.agents.eval_tables import N_TERMS, TERMS, load_weights

sys.path.insert(0, str(ROOT / "benchmarks"))

import tune_heuristic as tune
from tune_heuristic import Samples, fit, join, weights_text

Output = pytest.CaptureFixture[str]


def made_up(weights: np.ndarray, n: int) -> Samples:
    """Samples whose labels are results drawn with the chances that the weights give."""
    rng = np.random.default_rng(0)
    terms = rng.integers(-3, 4, (n, N_TERMS)).astype(np.float32)
    phase = rng.random(n).astype(np.float32)
    log_odds = (terms * (weights[0] * (1 - phase[:, None]) + weights[1] * phase[:, None])).sum(1)
    results = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return Samples(terms, phase, results.astype(np.float32))


def test_the_fit_finds_the_weights_behind_results() -> None:
    weights = np.random.default_rng(1).normal(0, 0.1, (2, N_TERMS)).astype(np.float32)
    found, loss = fit(made_up(weights, 60_000), ridge=0)
    assert np.abs(found - weights).max() < 0.05
    assert 0.4 < loss < np.log(2)
    smaller, _ = fit(made_up(weights, 6_000), ridge=0.1)
    assert np.abs(smaller).sum() < np.abs(found).sum()


def test_a_weights_file_loads_as_it_was_written(tmp_path: Path) -> None:
    weights = np.random.default_rng(2).integers(-9000, 9000, (2, N_TERMS)) / np.float32(4096)
    path = tmp_path / "weights.toml"
    path.write_text(weights_text(weights, "a command"), encoding="utf-8")
    assert np.abs(load_weights(path) - weights).max() < 1 / 4096
    text = path.read_text(encoding="utf-8")
    assert "a command" in text
    assert all(meaning in text for _, meaning in TERMS)


def test_the_script_writes_the_same_file_twice(tmp_path: Path, capsys: Output) -> None:
    texts = []
    for name in ("a", "b"):
        path = tmp_path / name
        arguments = ["--zero", "--rounds", "2", "--games", "12", "--sims", "4", "--seed", "7"]
        assert tune.main([*arguments, "--out", str(path)]) == 0
        texts.append(path.read_text(encoding="utf-8").replace(str(path), ""))
    assert texts[0] == texts[1]
    assert "round 1:" in capsys.readouterr().out
    assert np.abs(load_weights(tmp_path / "a")).max() < 8


def test_positions_are_joined_in_order() -> None:
    one = made_up(np.zeros((2, N_TERMS)), 5)
    both = join([one, one])
    assert (both.terms[5:] == one.terms).all()
    assert both.design().shape == (10, 2 * N_TERMS)
    assert both.design()[:, :N_TERMS] + both.design()[:, N_TERMS:] == pytest.approx(both.terms)


def test_games_without_a_result_are_refused(tmp_path: Path, capsys: Output) -> None:
    arguments = ["--zero", "--rounds", "1", "--games", "4", "--sims", "2", "--seed", "7"]
    assert tune.main([*arguments, "--out", str(tmp_path / "a")]) == 1
    assert "tune: no game had a result" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--board", "honshu"), "tune: unknown board 'honshu'"),
        (
            ("--board", "family:train/6"),
            "tune: board: expected one board, such as family:0, got family:train/6, a pool of 6",
        ),
        (("--out", "/nowhere/a"), "tune: /nowhere/a: there is no folder /nowhere"),
        (("--seed", "-1"), "tune: seed: expected an integer from 0"),
        (("--games", "-1"), "tune: --games: expected a number from 1 to 10,000,000, got -1"),
        (("--sims", "0"), "tune: --sims: expected a number from 1 to 1,000,000, got 0"),
    ],
)
def test_an_error_is_one_line_and_status_1(
    tmp_path: Path, capsys: Output, arguments: tuple[str, ...], message: str
) -> None:
    quick = ["--zero", "--rounds", "1", "--games", "4", "--sims", "2", "--out", str(tmp_path / "a")]
    assert tune.main([*quick, *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_what_was_tuned_before_it_is_stopped_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the second round leaves what the first has found."""
    rounds = []

    def interrupted(*arguments: Any) -> Any:
        rounds.append(1)
        if len(rounds) == 2:
            raise KeyboardInterrupt
        return self_play(*arguments)

    self_play = tune.self_play
    monkeypatch.setattr(tune, "self_play", interrupted)
    arguments = ["--zero", "--rounds", "2", "--games", "12", "--sims", "4", "--seed", "7"]
    with pytest.raises(KeyboardInterrupt):
        tune.main([*arguments, "--out", str(tmp_path / "a")])
    assert load_weights(tmp_path / "a").any()
