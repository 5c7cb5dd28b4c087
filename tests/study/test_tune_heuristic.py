"""`benchmarks/tune_heuristic.py`: the fit, the weights file, and the command's errors."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT

from tokaido_env.features.eval_tables import N_TERMS, TERMS, load_weights

sys.path.insert(0, str(ROOT / "benchmarks"))

import tune_heuristic as tune
from tune_heuristic import Samples, fit, join, weights_text

Output = pytest.CaptureFixture[str]


def random_samples(weights: np.ndarray, n: int) -> Samples:
    """Return samples with results drawn with the probabilities of the weights."""
    rng = np.random.default_rng(0)
    terms = rng.integers(-3, 4, (n, N_TERMS)).astype(np.float32)
    phase = rng.random(n).astype(np.float32)
    log_odds = (terms * (weights[0] * (1 - phase[:, None]) + weights[1] * phase[:, None])).sum(1)
    results = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return Samples(terms, phase, results.astype(np.float32))


def test_fit__finds_the_weights_of_results() -> None:
    weights = np.random.default_rng(1).normal(0, 0.1, (2, N_TERMS)).astype(np.float32)
    found, loss = fit(random_samples(weights, 60_000), ridge=0)
    assert np.abs(found - weights).max() < 0.05
    assert 0.4 < loss < np.log(2)
    smaller, _ = fit(random_samples(weights, 6_000), ridge=0.1)
    assert np.abs(smaller).sum() < np.abs(found).sum()


def test_weights_text__loads_as_the_same_weights(tmp_path: Path) -> None:
    weights = np.random.default_rng(2).integers(-9000, 9000, (2, N_TERMS)) / np.float32(4096)
    path = tmp_path / "weights.toml"
    path.write_text(weights_text(weights, "a command"), encoding="utf-8")
    assert np.abs(load_weights(path) - weights).max() < 1 / 4096
    text = path.read_text(encoding="utf-8")
    assert "a command" in text
    assert all(meaning in text for _, meaning in TERMS)


def test_command__writes_the_same_file_twice(tmp_path: Path, capsys: Output) -> None:
    texts = []
    for name in ("a", "b"):
        path = tmp_path / name
        arguments = ["--zero", "--rounds", "2", "--games", "12", "--sims", "4", "--seed", "7"]
        assert tune.main([*arguments, "--out", str(path)]) == 0
        texts.append(path.read_text(encoding="utf-8").replace(str(path), ""))
    assert texts[0] == texts[1]
    assert "round 1:" in capsys.readouterr().out
    assert np.abs(load_weights(tmp_path / "a")).max() < 8


def test_join__keeps_the_order() -> None:
    one = random_samples(np.zeros((2, N_TERMS)), 5)
    both = join([one, one])
    assert (both.terms[5:] == one.terms).all()
    assert both.design().shape == (10, 2 * N_TERMS)
    assert both.design()[:, :N_TERMS] + both.design()[:, N_TERMS:] == pytest.approx(both.terms)


def test_command__refuses_games_without_results(tmp_path: Path, capsys: Output) -> None:
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
def test_command__reports_an_error_in_one_line(
    tmp_path: Path, capsys: Output, arguments: tuple[str, ...], message: str
) -> None:
    quick = ["--zero", "--rounds", "1", "--games", "4", "--sims", "2", "--out", str(tmp_path / "a")]
    assert tune.main([*quick, *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_command__keeps_the_weights_of_finished_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the second round leaves the weights of the first."""
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
