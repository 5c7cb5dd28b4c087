"""`ppo`: learning rates, returns and numbers that are not finite."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import ROUNDING
from positions import shikoku_data, write_board
from short_run import VALUES, metrics
from slow_cases import slow_except_first
from stable_baselines3.common.callbacks import BaseCallback
from test_ppo_policy import learner_of

from tokaido_env.learn import ppo, ppo_policy, run as runs
from tokaido_env.learn.ppo import learning_rate
from tokaido_env.learn.ppo_policy import LearnerEnv
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.settings_schema import RunError


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
    """Play whole games of a learner with random weights, and return them."""
    settings = PpoSettings(
        **VALUES
        | {"games": 8, "n_steps": 400, "minibatch_size": 3200, "epochs": 1}
        | {"opponent_slots": 1, "gae_lambda": gae_lambda, "board": board}
    )
    env = LearnerEnv(settings, [Highest()])
    model = learner_of(env, settings)
    rollout = Rollout()
    model.learn(1, rollout)
    return rollout


@pytest.mark.parametrize(
    ("rounds", "gae_lambda"), [(200, 1.0), *slow_except_first([(2, 0.9), (2, 0.0), (2, 1.0)])]
)
def test_returns__are_the_learners_own_result_as_lambda_weighs_it(
    tmp_path: Path, rounds: int, gae_lambda: float
) -> None:
    """By hand: no value is added to the result of a finished game, also at the cap (R10.1)."""
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
    assert {*results} >= {1.0, -1.0}
    assert len(results) >= (10 if rounds > 2 else 100)


def test_ppo__stops_at_a_number_that_is_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, run = ppo_policy.action_values, tmp_path / "run"
    runs.begin(run, PpoSettings(**VALUES))
    message = r"after 0 steps, a {} of the network is not finite: .*/000000000\.safetensors; a"

    with monkeypatch.context() as patch:

        def broken(*given: Any) -> Any:
            return real(*given) * np.nan

        patch.setattr(ppo_policy, "action_values", broken)
        with pytest.raises(RunError, match=message.format("value")):
            runs.train(run)
    monkeypatch.setattr(
        ppo.MaskablePPO, "train", lambda model: next(model.policy.parameters()).data.fill_(np.nan)
    )
    with pytest.raises(RunError, match=message.format("weight").replace("after 0", "after 256")):
        runs.train(run)
