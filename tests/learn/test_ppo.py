"""`ppo`: returns, self-play values and calibration at the end."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import ROUNDING
from positions import shikoku_data, write_board
from short_run import VALUES, contents, metrics
from slow_cases import slow_except_first
from stable_baselines3.common.callbacks import BaseCallback
from test_ppo_policy import learner_of, network_of

from tokaido_env.agents.policy import Policy
from tokaido_env.arena.executors.base import SerialExecutor
from tokaido_env.learn import ppo, run as runs
from tokaido_env.learn.opponent_pool import LATEST
from tokaido_env.learn.ppo import game_seed, learning_rate
from tokaido_env.learn.ppo_policy import LearnerEnv
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.learn.value_calibration import CalibratedPolicy, calibrate_value

LAST = ("policies/000000000", "last")


def test_learning_rate__falls_linearly(finished_run: Callable[[str], Path]) -> None:
    rate = learning_rate(PpoSettings(learning_rate=0.01, final_learning_rate=0.2))
    assert [rate(x) for x in (1.0, 0.5, 0.0, -0.1)] == pytest.approx([0.01, 0.006, 0.002, 0.002])
    constant = learning_rate(PpoSettings(learning_rate=0.01))
    assert [constant(x) for x in (1.0, 0.5, 0.0)] == [0.01] * 3
    rates = [line["train/learning_rate"] for line in metrics(finished_run("ppo"))]
    expected = [1e-3 * (1 - 0.5 * update / 5) for update in range(1, 6)]
    assert rates == pytest.approx(expected)


class Highest:
    """Agent that plays the legal action with the highest id, without random numbers."""

    spec = "highest"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([int(mask).bit_length() - 1 for mask in legal], np.int64)


class Rollout(BaseCallback):
    """Keep the first rollout and the games that ended in it."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[int, int, dict[str, Any]]] = []

    def _on_step(self) -> bool:
        step = self.num_timesteps // self.training_env.num_envs - 1
        for game in np.flatnonzero(self.locals["dones"]).tolist():
            self.ended.append((step, game, self.locals["infos"][game]))
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer  # type: ignore[attr-defined]
        self.returns, self.values = buffer.returns.copy(), buffer.values.copy()


def first_rollout(gae_lambda: float, board: str) -> Rollout:
    """Play whole games of an untrained learner, and return them."""
    settings = PpoSettings(
        **VALUES
        | {"games": 8, "n_steps": 400, "minibatch_size": 3200, "epochs": 1}
        | {"opponent_slots": 1, "gae_lambda": gae_lambda, "board": board}
    )
    env = LearnerEnv(settings, [Highest()])
    env.self_play[:] = True  # so that the first value is used
    model = learner_of(env, settings)
    network_of(model).outlook["weight"].data.zero_()  # otherwise it wins every game
    rollout = Rollout()
    model.learn(1, rollout)
    return rollout


@pytest.mark.parametrize(
    ("rounds", "gae_lambda"), [(200, 1.0), *slow_except_first([(2, 0.9), (2, 0.0), (2, 1.0)])]
)
def test_returns__are_the_learners_own_result_as_lambda_weighs_it(
    tmp_path: Path, rounds: int, gae_lambda: float
) -> None:
    """By hand: a value of 0 after the end, also at the cap, where nobody wins (R10.1)."""
    board = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": rounds})
    rollout, results = first_rollout(gae_lambda, str(board)), []
    for step, game, info in rollout.ended:
        steps = slice(step + 1 - info["episode"]["l"], step + 1)
        values = rollout.values[steps, game].tolist()
        results.append(info["episode"]["r"])
        towards = results[-1]  # V at the next decision and all after it, as lambda weighs them
        for place in reversed(range(len(values))):
            assert rollout.returns[steps, game][place] == pytest.approx(towards, abs=ROUNDING)
            towards = (1 - gae_lambda) * values[place] + gae_lambda * towards
        assert max(map(abs, values)) > 0.001
    assert {*results} >= ({1.0, -1.0} if rounds > 2 else {0.0})
    assert len(results) >= (10 if rounds > 2 else 100)


def test_ppo__without_self_play_keeps_the_value(tmp_path: Path) -> None:
    """With one slot the learner never plays itself: the value stays, the policy trains."""
    values = {"opponent_slots": 1, "share_latest": 0.001, "share_past": 0.0, "share_agents": 0.999}
    runs.begin(tmp_path / "run", PpoSettings(**VALUES | values))
    assert runs.train(tmp_path / "run")
    first, last = (Policy.load(tmp_path / "run" / name).tensors for name in LAST)
    for name in ("value.0.weight", "value.1.weight", "value.1.bias"):
        assert (first[name] == last[name]).all() == name.startswith("value.1")
    assert (first["move.weight"] != last["move.weight"]).all()
    for line in metrics(tmp_path / "run"):
        assert "win_rate/latest" not in line
        assert all(np.isfinite(number) for number in line.values())


def test_ppo__marks_self_play_by_slot(tmp_path: Path) -> None:
    """The critic's flag follows the opponent of each slot after every draw."""
    settings = PpoSettings(**VALUES | {"steps": 512, "resample_every": 128, "n_steps": 16})
    runs.begin(tmp_path / "run", settings)
    trainer = ppo.PpoTrainer(runs.Run(tmp_path / "run", settings, (), SerialExecutor()))
    trainer.start()
    for _ in range(6):
        is_latest = [name == LATEST for name in trainer.pool.slot_opponents]
        assert sum(is_latest) == settings.opponent_slots * settings.share_latest
        own = np.resize(is_latest, settings.games)
        assert (trainer.env.self_play == own).all()
        assert (trainer.model._last_obs["self_play"][:, 0] == own).all()
        trainer.advance(lambda: False)


def test_ppo__stops_at_a_number_that_is_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, run = LearnerEnv.observe, tmp_path / "run"
    runs.begin(run, PpoSettings(**VALUES))
    message = r"after 0 steps, a {} of the network is not finite: .*/000000000\.safetensors; a"

    def with_nan(env: LearnerEnv) -> dict[str, Any]:
        observed = real(env)
        return observed | {"observation": observed["observation"] * np.float32("nan")}

    with monkeypatch.context() as patch:
        patch.setattr(LearnerEnv, "observe", with_nan)
        with pytest.raises(RunError, match=message.format("logit or a value")):
            runs.train(run)
    monkeypatch.setattr(
        ppo.MaskablePPO, "train", lambda model: next(model.policy.parameters()).data.fill_(np.nan)
    )
    with pytest.raises(RunError, match=message.format("weight").replace("after 0", "after 256")):
        runs.train(run)


# Calibration at the end


@pytest.fixture(scope="module")
def uncalibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run before calibration, with different `last` and `best`."""
    run = tmp_path_factory.mktemp("uncalibrated") / "run"
    runs.begin(run, PpoSettings(**VALUES | {"rate_every": 128, "rating_games": 4, "n_steps": 16}))
    assert runs.train(run)
    return run


def calibrate_run(uncalibrated: Path, run: Path) -> list[str]:
    """Copy a run with calibration switched on, finish it, and return its notes."""
    if not run.exists():
        shutil.copytree(uncalibrated, run)
        config = (run / "config.toml").read_text(encoding="utf-8")
        lines = config.replace("calibration_games = 0 ", "calibration_games = 512 ")
        assert lines != config
        (run / "config.toml").write_text(lines, encoding="utf-8")
    notes: list[str] = []
    assert runs.train(run, lambda progress: notes.append(progress.note))
    return [note for note in notes if note]


@pytest.fixture(scope="module")
def calibrated(
    uncalibrated: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """The same run after calibration, and its notes."""
    run = tmp_path_factory.mktemp("calibrated") / "run"
    return run, calibrate_run(uncalibrated, run)


def test_finish__calibrates_the_values_of_last_and_best(
    uncalibrated: Path, calibrated: tuple[Path, list[str]]
) -> None:
    run, notes = calibrated
    same = (uncalibrated / "last").read_bytes() == (uncalibrated / "best").read_bytes()
    assert [note.partition(":")[0] for note in notes] == (["last"] if same else ["last", "best"])
    for name in ("last", "best"):
        before, after = (Policy.load(folder / name) for folder in (uncalibrated, run))
        made = calibrate_value(before, games=512, seed=0)
        assert made.is_better
        assert after.training == before.training | {"value": made.policy.training["value"]}
        for tensor, values in made.policy.tensors.items():
            assert after.tensors[tensor].tobytes() == values.tobytes(), tensor
            is_calibrated = tensor.startswith("value.1.")
            assert (values.tobytes() != before.tensors[tensor].tobytes()) == is_calibrated, tensor
    for path in ("policies/000000256", "checkpoints/000000256.safetensors"):
        assert (run / path).read_bytes() == (uncalibrated / path).read_bytes()


def test_finish__continues_after_an_interrupt(
    uncalibrated: Path,
    calibrated: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ppo, "calibrate_value", interrupt)
        with pytest.raises(KeyboardInterrupt):
            calibrate_run(uncalibrated, tmp_path / "run")
    assert (tmp_path / "run" / "last").read_bytes() == (uncalibrated / "last").read_bytes()
    assert calibrate_run(uncalibrated, tmp_path / "run")
    assert contents(tmp_path / "run") == contents(calibrated[0])
    assert calibrate_run(uncalibrated, tmp_path / "run") == []


def test_finish__does_not_repeat_a_calibration_that_does_not_help(
    uncalibrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()

    def without_success(policy: Policy, *others: Any) -> CalibratedPolicy:
        calls.append(1)
        return CalibratedPolicy(policy, before=0.5, after=0.5, bias=0.0, games=8)

    monkeypatch.setattr(ppo, "calibrate_value", without_success)
    run = tmp_path / "run"
    assert len(calibrate_run(uncalibrated, run)) == len(calls) > 0
    before, tried = contents(run), len(calls)
    for name in ("last", "best"):
        old, new = (Policy.load(folder / name) for folder in (uncalibrated, run))
        assert new.training == old.training | {"value": None}
        assert all((new.tensors[key] == old.tensors[key]).all() for key in old.tensors)
    assert calibrate_run(uncalibrated, run) == []
    assert (contents(run), len(calls)) == (before, tried)


def interrupt(*arguments: Any) -> Any:
    raise KeyboardInterrupt


def test_finish__keeps_a_value_of_all_games(tmp_path: Path) -> None:
    values = VALUES | {"value_games": "all", "calibration_games": 16}
    runs.begin(tmp_path / "run", PpoSettings(**values))
    notes: list[str] = []
    assert runs.train(tmp_path / "run", lambda progress: notes.append(progress.note))
    assert not any(notes)


def test_game_seed__runs_have_no_games_in_common() -> None:
    first = np.sort([game_seed(PpoSettings(seed=seed)) for seed in range(1000)])
    assert np.diff(first).min() > PpoSettings.defaults()["games"]
