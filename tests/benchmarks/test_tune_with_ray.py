"""`benchmarks/tune_with_ray.py`: trials equal runs of `tokaido train`, and pass weights on.

Needs Ray Tune: `make certify-rllib`.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.tune", reason="no Ray Tune: make certify-rllib", exc_type=ImportError)
pytest.importorskip("sb3_contrib")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import tune_with_ray  # noqa: E402
from ray.tune.result import TRIAL_INFO  # noqa: E402

from tokaido_env.learn import run as runs  # noqa: E402
from tokaido_env.learn.run_folder import load_settings  # noqa: E402
from tokaido_env.learn.settings import PpoSettings  # noqa: E402

DRAWN = {"learning_rate": 1e-3, "entropy_coef": 0.01, "clip_range": 0.2, "gae_lambda": 0.95}
SMALL: dict[str, Any] = {
    **{"games": 16, "n_steps": 8, "minibatch_size": 128, "width": 16, "opponent_slots": 4},
    **{"epochs": 1, "rating_games": 2, "agents": "greedy", "pool_size": 2},
}


class TrialInfo:
    """The trial information that Tune passes to a trial."""

    def __init__(self, trial_id: str) -> None:
        self.trial_id = trial_id


def trial(folder: Path, name: str, **changed: float) -> Any:
    config = {"run": str(folder), "round_steps": 128, "fixed": SMALL, **DRAWN, **changed}
    return tune_with_ray.Training({**config, TRIAL_INFO: TrialInfo(name)})


def saved(training: Any, folder: Path) -> str:
    folder.mkdir()
    training.save_checkpoint(str(folder))
    return str(folder)


def test_trial__equals_a_run_with_its_settings(tmp_path: Path) -> None:
    """Two rounds with a restart in between make the bytes of one run of that length."""
    training = trial(tmp_path, "a")
    first = training.train()
    assert (first["training_iteration"], first["steps"]) == (1, 128)
    assert first["low"] <= first["elo"] <= first["high"]
    again = trial(tmp_path, "a")
    again.load_checkpoint(saved(training, tmp_path / "kept"))
    again._iteration = 1  # as Tune restores it
    second = again.train()
    whole = PpoSettings(
        **SMALL,
        **DRAWN,
        steps=256,
        calibration_games=0,
        rate_every=2**53 - 1,
        checkpoint_every=2**53 - 1,
    )
    runs.begin(tmp_path / "whole", whole)
    runs.train(tmp_path / "whole")
    assert Path(second["policy"]).read_bytes() == (tmp_path / "whole" / "last").read_bytes()


def test_trial__continues_with_the_weights_of_another(tmp_path: Path) -> None:
    best, worst = trial(tmp_path, "best"), trial(tmp_path, "worst")
    worst.train()
    best.train()
    kept = saved(best, tmp_path / "kept")
    changed = trial(tmp_path, "worst", learning_rate=2e-3)
    changed.load_checkpoint(kept)
    changed._iteration = 1
    result = changed.train()
    assert result["steps"] == 256
    folder = Path(result["policy"]).parent
    assert folder == tmp_path / "trials" / "worst" / "1"
    settings = load_settings(folder)
    assert (settings.steps, settings.learning_rate) == (128, 2e-3)
    assert Path(settings.start_from).read_bytes() == (Path(kept) / "last").read_bytes()
    runs.begin(tmp_path / "whole", settings)
    runs.train(tmp_path / "whole")
    assert (folder / "last").read_bytes() == (tmp_path / "whole" / "last").read_bytes()
    assert (folder / "last").read_bytes() != Path(settings.start_from).read_bytes()


def test_tune__refuses_other_options_on_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune_with_ray._differences(tmp_path, {"trials": 8, "method": "asha"}) == ""
    assert tune_with_ray.main(["--run", str(tmp_path), "--trials", "4"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tune: {tmp_path}: expected --trials 8, ")
    assert error.count("\n") == 1


def test_clip_settings__keeps_the_ranges() -> None:
    assert tune_with_ray.clip_settings(DRAWN) == DRAWN
    wide = dict.fromkeys(DRAWN, 5.0)
    assert tune_with_ray.clip_settings(wide) == {
        name: domain.upper for name, domain in tune_with_ray.SPACE.items()
    }
