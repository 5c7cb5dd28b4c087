"""Training: short real runs, whole folders, exact resumption, and refusals that say why."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import rest_slow
from positions import shikoku_data, write_board
from safetensors.numpy import load_file
from signed import write_state
from stable_baselines3.common.callbacks import BaseCallback

from tokaido_env import Game
from tokaido_env.agents import Policy, make, policy as policies
from tokaido_env.agents.inputs import N_INPUTS, read_positions
from tokaido_env.arena.ladder import LADDER
from tokaido_env.cli.evaluate import main as evaluate
from tokaido_env.cli.train import main
from tokaido_env.learn import checkpoint, ppo, ppo_metrics
from tokaido_env.learn.network import torch_threads
from tokaido_env.learn.pool import LATEST
from tokaido_env.learn.ppo_policy import (
    SELF_PLAY_AT,
    learner_env,
    learning_rate,
    network_of,
    new_learner,
    policy_of,
)
from tokaido_env.learn.refit import Refit, refit
from tokaido_env.learn.settings import Progress, Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
VALUES: dict[str, Any] = {
    **{"games": 8, "rollout": 16, "minibatch": 64, "width": 32, "slots": 4, "agents": "greedy"},
    **{"freeze_every": 128, "reseat_every": 512, "pool_size": 4, "checkpoint_every": 256},
    **{"rate_every": 512, "rating_games": 4, "final_learning_rate": 0.5, "refit_games": 16},
    "threads": 1,
}
SMALL = [
    word for name, value in VALUES.items() for word in (f"--{name}".replace("_", "-"), str(value))
]
SHORT = ("--steps", "1024", *SMALL)
UNFITTED = {"refit_games": 0}
LAST = ("pool/000000000", "last")
CHECKPOINT = (
    *("learner.safetensors", "optimizer.safetensors", "games.npz", "state.json", "SHA256SUMS"),
)


def train(run: Path, *options: str) -> int:
    return main(["--run", str(run), *options])


def resume(run: Path, *options: str) -> int:
    return main(["--resume", str(run), *options])


def contents(folder: Path, *, logs: bool = True) -> dict[str, bytes]:
    """All files; without logs, those that do not depend on the time."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {name: data for name, data in files.items() if logs or not name.startswith("tb/")}


def metrics(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went to its end; not to be changed."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    assert train(run, *SHORT) == 0
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, to be changed."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


# The folder


def test_a_run_folder_has_exactly_its_parts(finished: Path) -> None:
    parts = set(contents(finished, logs=False))
    pool = {name for name in parts if name.startswith("pool/")}
    assert parts - pool == {
        *("config.toml", "metrics.jsonl", "last", "best"),
        *(f"checkpoints/{steps:09d}/{name}" for steps in (768, 1024) for name in CHECKPOINT),
    }
    told = json.loads((finished / "pool" / "pool.json").read_text(encoding="utf-8"))
    assert len(told["snapshots"]) == VALUES["pool_size"]
    assert {"pool/pool.json", *(f"pool/{name}" for name in told["snapshots"])} <= pool
    assert "pool/000000000" in pool
    assert len(list((finished / "tb").iterdir())) == 1


def test_nothing_in_a_run_folder_can_run_code(finished: Path) -> None:
    """Every file but TensorBoard's is read whole by a format that holds data only."""
    for name in contents(finished, logs=False):
        path = finished / name
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                assert all(arrays[key].dtype != object for key in arrays)
        elif path.suffix == ".safetensors":
            assert load_file(path)
        elif path.suffix == ".json":
            assert json.loads(path.read_text(encoding="utf-8"))
        elif path.name == "metrics.jsonl":
            assert metrics(finished)
        elif path.name == "SHA256SUMS":
            assert re.fullmatch(r"([0-9a-f]{64}  [a-z.]+\n){4}", path.read_text(encoding="utf-8"))
        elif path.suffix == ".toml":
            assert tomllib.loads(path.read_text(encoding="utf-8"))
        else:
            assert Policy.load(path).tensors


def test_the_configuration_tells_all_settings_versions_and_layouts(finished: Path) -> None:
    config = tomllib.loads((finished / "config.toml").read_text(encoding="utf-8"))
    assert Settings(**config["settings"]) == Settings(steps=1024, **VALUES)
    assert set(config["layout"]) == {"rules", "actions", "inputs"}
    assert {"python", "tokaido-env", "numpy", "numba", "torch"} <= set(config["versions"])


def test_metrics_tell_every_update_in_order(finished: Path) -> None:
    told = metrics(finished)
    assert [line["steps"] for line in told] == list(range(128, 1025, 128))
    assert {"train/loss", "train/approx_kl", "games/ended"} <= set(told[0])
    assert {"win_rate/latest", "win_rate/greedy", "win_rate/agents"} <= set(told[-1])
    rates = [told[-1][key] for key in told[-1] if key.startswith("win_rate/")]
    assert all(0.0 <= rate <= 1.0 for rate in rates)


def test_ratings_come_at_their_interval_and_the_highest_is_best(finished: Path) -> None:
    rated = [line for line in metrics(finished) if "rating/elo" in line]
    assert [line["steps"] for line in rated] == [512, 1024]
    for line in rated:
        assert line["rating/low"] < line["rating/elo"] < line["rating/high"]
        assert line["rating/games"] == 3 * VALUES["rating_games"]
    state = finished / "checkpoints" / "000001024" / "state.json"
    counters = json.loads(state.read_text(encoding="utf-8"))
    assert counters["best_elo"] == max(line["rating/elo"] for line in rated)
    assert counters["ladder"] == json.loads(LADDER.read_text(encoding="utf-8"))["hash"]


def test_best_is_kept_by_rating_and_ties_keep_the_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ratings by hand: the second is the highest, the third its equal."""
    elos = iter([100.0, 300.0, 300.0, 200.0])
    rated: list[Policy] = []

    def place(agent: Any, *others: Any) -> ppo.Rating:
        rated.append(agent.policy)
        elo = next(elos)
        return ppo.Rating("learner", elo, (elo - 1, elo + 1), 12)

    monkeypatch.setattr(ppo, "place", place)
    ppo.begin(tmp_path / "run", Settings(steps=512, **VALUES | {"rate_every": 128}))
    told: list[Progress] = []
    assert ppo.train(tmp_path / "run", told.append)
    best = Policy.load(tmp_path / "run" / "best")
    assert np.array_equal(best.tensors["trunk.0.weight"], rated[1].tensors["trunk.0.weight"])
    assert not np.array_equal(best.tensors["trunk.0.weight"], rated[2].tensors["trunk.0.weight"])
    new = [progress for progress in told if progress.is_new]
    assert [progress.steps for progress in new] == [128, 256, 384, 512]
    assert [progress.is_best for progress in new] == [True, True, False, False]


def test_without_ratings_best_is_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path / "run", "--steps", "128", *SMALL, "--rate-every", "0") == 0
    last = (tmp_path / "run" / "last").read_bytes()
    assert (tmp_path / "run" / "best").read_bytes() == last
    assert "without ratings" in capsys.readouterr().out


def test_a_trained_policy_plays(finished: Path) -> None:
    """The learner moved away from where it began; the run folder stands for its best."""
    assert make(f"policy:{finished}").spec == f"policy:{finished}"
    first, last = (Policy.load(finished / name) for name in ("pool/000000000", "last"))
    assert not np.array_equal(first.tensors["trunk.0.weight"], last.tensors["trunk.0.weight"])
    agents = [f"policy:{finished}", f"policy:{finished}/last,temperature=1"]
    assert evaluate([*agents, "--games", "10"]) == 0


def test_a_run_can_start_from_a_policy(finished: Path, tmp_path: Path) -> None:
    start = ("--start-from", str(finished / "last"))
    assert train(tmp_path / "run", "--steps", "128", *SMALL, *start) == 0
    first, last = Policy.load(tmp_path / "run/pool/000000000"), Policy.load(finished / "last")
    assert first.tensors.keys() == last.tensors.keys()
    for name, tensor in first.tensors.items():
        assert np.array_equal(tensor, last.tensors[name]), name


def test_a_saved_policy_tells_how_it_was_trained(finished: Path) -> None:
    training = Policy.load(finished / "last").training
    assert training["steps"] == 1024
    assert training["settings"] == {
        name: value for name, value in asdict(load_settings(finished)).items() if name != "steps"
    }


def test_settings_come_from_preset_then_file_then_command_line(tmp_path: Path) -> None:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in VALUES.items())
    file = tmp_path / "my.toml"
    file.write_text(f"[settings]\nsteps = 256\nseed = 5\n{lines}", encoding="utf-8")
    given = ("--preset", "long", "--config", str(file), "--seed", str(2**40), "--steps", "128")
    assert train(tmp_path / "run", *given) == 0
    expected = Settings(steps=128, seed=2**40, **VALUES)  # of the preset, all is overridden
    assert load_settings(tmp_path / "run") == expected


# The value at the end


@pytest.fixture(scope="module")
def unfitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose values are as they were trained: the last is not the best."""
    run = tmp_path_factory.mktemp("unfitted") / "run"
    values = {"steps": 256, "rate_every": 128}
    ppo.begin(run, Settings(**VALUES | UNFITTED | values))
    assert ppo.train(run)
    return run


def fitting(unfitted: Path, run: Path) -> list[tuple[str, Refit]]:
    """Copy a finished run to one that fits its values, train it to its end, tell what was found."""
    if not run.exists():
        shutil.copytree(unfitted, run)
        config = (run / "config.toml").read_text(encoding="utf-8")
        lines = config.replace("refit_games = 0 ", "refit_games = 512 ")
        assert lines != config
        (run / "config.toml").write_text(lines, encoding="utf-8")
    found: list[tuple[str, Refit]] = []
    assert ppo.train(run, fitted=lambda name, made: found.append((name, made)))
    return found


@pytest.fixture(scope="module")
def fitted(unfitted: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The same run with its values fitted, and the policies that were."""
    run = tmp_path_factory.mktemp("fitted") / "run"
    return run, [name for name, _ in fitting(unfitted, run)]


def test_at_the_end_the_values_are_fitted_to_games_against_itself(
    unfitted: Path, fitted: tuple[Path, list[str]]
) -> None:
    run, found = fitted
    same = (unfitted / "last").read_bytes() == (unfitted / "best").read_bytes()
    assert found == (["last"] if same else ["last", "best"])
    for name in ("last", "best"):
        before, after = (Policy.load(folder / name) for folder in (unfitted, run))
        made = refit(before, games=512, seed=0)
        assert made.is_better
        assert after.training == before.training | {"value": made.policy.training["value"]}
        for tensor, values in made.policy.tensors.items():
            assert after.tensors[tensor].tobytes() == values.tobytes(), tensor
            fitted = tensor in ("value.weight", "value.bias")
            assert (values.tobytes() != before.tensors[tensor].tobytes()) == fitted, tensor
    for path in ("pool/000000256", "checkpoints/000000256/learner.safetensors", "metrics.jsonl"):
        assert (run / path).read_bytes() == (unfitted / path).read_bytes()


def test_a_run_that_was_stopped_while_values_were_fitted_goes_on_there(
    unfitted: Path,
    fitted: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ppo, "refit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fitting(unfitted, tmp_path / "run")
    assert (tmp_path / "run" / "last").read_bytes() == (unfitted / "last").read_bytes()
    assert fitting(unfitted, tmp_path / "run")
    assert contents(tmp_path / "run", logs=False) == contents(fitted[0], logs=False)
    assert fitting(unfitted, tmp_path / "run") == []


def interrupt(*arguments: Any) -> Any:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def test_a_value_of_all_games_is_left_as_it_is(tmp_path: Path) -> None:
    ppo.begin(tmp_path / "run", Settings(steps=128, **VALUES | {"value_from": "all"}))
    found: list[str] = []
    assert ppo.train(tmp_path / "run", fitted=lambda name, made: found.append(name))
    assert found == []


# The same again


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    runs = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert train(tmp_path / name, "--steps", "256", *SMALL, "--seed", seed) == 0
        runs.append(contents(tmp_path / name, logs=False))
    assert runs[0] == runs[1]
    for name in ("last", "metrics.jsonl"):
        assert runs[0][name] != runs[2][name]


def test_an_interrupted_run_goes_on_as_if_it_had_not_stopped(
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C in the third update: a copy has joined the pool by then."""
    run, write = tmp_path / "run", ppo_metrics.JsonLines.write

    def press(self: Any, *arguments: Any, **options: Any) -> None:
        write(self, *arguments, **options)
        if len(metrics(run)) == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(ppo_metrics.JsonLines, "write", press)
        assert train(run, *SHORT) == 130
    assert f"--resume {run}\n" in capsys.readouterr().out
    check_goes_on(run, finished)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_command_that_is_interrupted_goes_on_as_if_it_had_not_stopped(
    finished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "train.py", "--run", str(run), *SHORT],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "300"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for_progress(run / "metrics.jsonl", process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130, output
    assert f"Go on with: python train.py --resume {run}" in output
    check_goes_on(run, finished)


def check_goes_on(run: Path, finished: Path) -> None:
    """Check that an interrupted run is saved where it stopped, and ends as one that was not."""
    stopped_at = metrics(run)[-1]["steps"]
    assert stopped_at < 1024
    assert (run / "checkpoints" / f"{stopped_at:09d}").is_dir()
    assert (run / "best").is_file()
    with torch_threads(2):  # whatever a process is left with, the run has its own number
        assert resume(run) == 0
    for name in ("last", "best", "metrics.jsonl", "config.toml", "pool/pool.json"):
        assert (run / name).read_bytes() == (finished / name).read_bytes()


def wait_for_progress(file: Path, process: subprocess.Popen[str]) -> None:
    """Wait for the third update: a copy has joined the pool by then."""
    while process.poll() is None:
        if file.is_file() and file.read_text(encoding="utf-8").count("\n") >= 3:
            return
        time.sleep(0.01)


@pytest.mark.slow
def test_a_run_stopped_after_every_update_is_the_same_run(finished: Path, tmp_path: Path) -> None:
    """But for TensorBoard's times, and which checkpoint stands before the last."""
    run = tmp_path / "run"
    ppo.begin(run, load_settings(finished))

    handler = signal.getsignal(signal.SIGINT)

    def stop(progress: Progress) -> None:
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.raise_signal(signal.SIGINT)

    runs = 1
    while not ppo.train(run, stop):
        runs += 1
    assert runs == 8  # nothing stops the last update
    expected = contents(finished, logs=False)
    found = contents(run, logs=False)
    later = [f"{steps:09d}" for steps in range(512, 1024, 128)]
    for name in expected.keys() | found.keys():
        if not any(steps in name for steps in later):
            assert found[name] == expected[name], name


def test_a_checkpoint_goes_on_as_if_the_run_had_not_stopped(finished: Path, run: Path) -> None:
    """As after a power cut: the newest checkpoint is gone, of what came later some is there."""
    shutil.rmtree(run / "checkpoints" / "000001024")
    (run / "last").unlink()
    metrics_file = run / "metrics.jsonl"
    metrics_file.write_bytes(metrics_file.read_bytes()[:-30])
    assert resume(run) == 0
    assert contents(run, logs=False) == contents(finished, logs=False)


@pytest.mark.parametrize(
    "place",
    [(checkpoint, "drop_old"), pytest.param((ppo, "snapshots_needed"), marks=pytest.mark.slow)],
)
def test_a_kill_after_the_last_checkpoint_leaves_nothing_old(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    class Killed(BaseException):
        pass

    def killed(folder: Path) -> Any:
        if (folder / "checkpoints" / "000001024").exists():
            raise Killed
        return kept(folder)

    run, kept = tmp_path / "run", getattr(*place)
    ppo.begin(run, load_settings(finished))
    with monkeypatch.context() as patch:
        patch.setattr(*place, killed)
        with pytest.raises(Killed):
            ppo.train(run)
    assert contents(run, logs=False) != contents(finished, logs=False)
    assert ppo.train(run)
    assert contents(run, logs=False) == contents(finished, logs=False)


def test_a_finished_run_has_nothing_to_go_on_with(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run, logs=False)
    assert resume(run) == 0
    assert contents(run, logs=False) == before
    assert "best" in capsys.readouterr().out


def test_more_steps_go_on_as_if_there_had_been_as_many_from_the_start(tmp_path: Path) -> None:
    """With a constant learning rate, and without the rating at the first end."""
    constant = (*SMALL, "--final-learning-rate", "1", "--rate-every", "0")
    assert train(tmp_path / "long", "--steps", "640", *constant) == 0
    assert train(tmp_path / "run", "--steps", "384", *constant) == 0
    assert resume(tmp_path / "run", "--steps", "640") == 0
    for name in ("last", "metrics.jsonl", "config.toml", "pool/pool.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "long" / name).read_bytes()


def test_the_learning_rate_falls_along_a_line(finished: Path) -> None:
    rate = learning_rate(Settings(learning_rate=0.01, final_learning_rate=0.2))
    assert [rate(x) for x in (1.0, 0.5, 0.0, -0.1)] == pytest.approx([0.01, 0.006, 0.002, 0.002])
    constant = learning_rate(Settings(learning_rate=0.01))
    assert [constant(x) for x in (1.0, 0.5, 0.0)] == [0.01] * 3
    told = [line["train/learning_rate"] for line in metrics(finished)]
    expected = [1e-3 * (1 - 0.5 * update / 8) for update in range(1, 9)]
    assert told == pytest.approx(expected)


# What the learner learns from


class Highest:
    """Plays the legal action of the highest number: known without a random number."""

    spec = "highest"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([int(mask).bit_length() - 1 for mask in legal], np.int64)


class Rollout(BaseCallback):
    """Keeps the first rollout, its last observations and whatever ended in it."""

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
        names = ("returns", "values", "actions", "observations")
        self.kept = {name: getattr(buffer, name).copy() for name in names}


def first_rollout(gae_lambda: float, board: str = "shikoku") -> tuple[Rollout, Policy]:
    """Let an untrained learner play whole games; return them, and its network of that time."""
    settings = Settings(
        **VALUES
        | {"games": 8, "rollout": 400, "minibatch": 3200, "epochs": 1}
        | {"slots": 1, "gae_lambda": gae_lambda, "board": board}
    )
    env = learner_env(settings, [Highest()])
    env.self_play[:] = True  # `Highest` in its place: the value is the policy's
    model = new_learner(env, settings)
    network_of(model).outlook.weight.data.zero_()  # else it would win every game
    policy, rollout = policy_of(model), Rollout()
    model.learn(1, rollout)
    return rollout, policy


def own_decisions(seed: int, seat: int, actions: list[int]) -> tuple[Game, list[Any], list[int]]:
    """Play a game again, the learner's decisions as given.

    Returns:
        The finished game, the position and the legal actions at each decision of the learner, and
        how many decisions the opponent made before each of them.
    """
    game, left = Game(seed=seed), iter(actions)
    seen, between, others = [], [], 0
    while not game.is_over:
        if game.player != seat:
            game.play(game.legal_actions()[-1])
            others += 1
            continue
        seen.append((game.state.copy(), game.legal_mask))
        between.append(others)
        others = 0
        game.play(next(left))
    return game, seen, between


def replayed(rollout: Rollout) -> list[tuple[Game, int, slice, int, list[Any], list[int]]]:
    """Return each finished game of a rollout with its seat, steps and index, and its replay."""
    games = []
    for step, index, info in rollout.ended:
        steps = slice(step + 1 - info["episode"]["l"], step + 1)
        actions = rollout.kept["actions"][steps, index, 0].astype(int).tolist()
        seat = info["seat"]
        game, seen, between = own_decisions(info["seed"], seat, actions)
        assert len(seen) == len(actions)
        games.append((game, seat, steps, index, seen, between))
    assert len(games) >= 10
    assert {seat for _, seat, *_ in games} == {0, 1}
    return games


def test_what_is_learnt_is_the_learners_own_result_at_each_of_its_decisions() -> None:
    """With gamma = lambda = 1: nothing is discounted and no sign turns, whoever decided between."""
    rollout, _ = first_rollout(gae_lambda=1.0)
    results, again, after_others = set(), 0, 0
    for game, seat, steps, index, _, between in replayed(rollout):
        winner = game.winner()
        result = 0.0 if winner is None else 1.0 if winner == seat else -1.0
        assert rollout.kept["returns"][steps, index] == pytest.approx(result, abs=1e-4)
        results.add(result)
        again += between[1:].count(0)
        after_others += len(between) - between.count(0)
    assert {1.0, -1.0} <= results
    assert again > 100 < after_others


def test_a_decision_is_worth_what_the_learner_sees_at_its_own_next_one() -> None:
    """With lambda = 0 the target is V there, its sign kept, whoever decided between."""
    rollout, policy = first_rollout(gae_lambda=0.0)
    for game, _, steps, index, seen, _between in replayed(rollout):
        states = np.concatenate([state for state, _ in seen])
        legal = np.array([mask for _, mask in seen], np.uint64)
        observations = rollout.kept["observations"][steps, index]
        assert np.array_equal(
            observations[:, :N_INPUTS], read_positions(game.boards, states, legal)
        )
        _, values = policy.evaluate(game.boards, states, legal)
        targets = rollout.kept["returns"][steps, index]
        assert targets[:-1] == pytest.approx(values[1:], abs=1e-5)


@pytest.mark.parametrize("gae_lambda", rest_slow([0.9, 0.0, 1.0]))
def test_a_game_that_reaches_the_cap_is_worth_nothing(tmp_path: Path, gae_lambda: float) -> None:
    """R10.1: nobody wins, and nothing comes after. By hand: no reward, and 0 after the end."""
    board = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 2})
    rollout, _ = first_rollout(gae_lambda, str(board))
    ended = 0
    for step, game, info in rollout.ended:
        steps = slice(step + 1 - info["episode"]["l"], step + 1)
        values = rollout.kept["values"][steps, game].tolist()
        assert info["episode"]["r"] == 0
        towards = 0.0  # V at the next decision and all after it, as lambda weighs them
        for place in reversed(range(len(values))):
            assert rollout.kept["returns"][steps, game][place] == pytest.approx(towards, abs=1e-5)
            towards = (1 - gae_lambda) * values[place] + gae_lambda * towards
        assert max(map(abs, values)) > 0.001
        ended += 1
    assert ended > 100


def test_the_value_is_learnt_from_self_play_alone(tmp_path: Path) -> None:
    """Of a run that never meets itself, for lack of slots, the value stays; the policy learns."""
    values = {"slots": 1, "share_latest": 0.001, "share_past": 0.0, "share_agents": 0.999}
    ppo.begin(tmp_path / "run", Settings(steps=256, **VALUES | UNFITTED | values))
    assert ppo.train(tmp_path / "run")
    first, last = (Policy.load(tmp_path / "run" / name).tensors for name in LAST)
    for name in ("value.weight", "value.bias"):
        assert (first[name] == last[name]).all()
    assert (first["move.weight"] != last["move.weight"]).all()
    for line in metrics(tmp_path / "run"):
        assert "win_rate/latest" not in line
        assert all(np.isfinite(number) for number in line.values())


def test_self_play_alone_trains_the_value_and_a_policy_has_no_other(tmp_path: Path) -> None:
    values = {"share_latest": 1.0, "share_past": 0.0, "share_agents": 0.0, "agents": ""}
    ppo.begin(tmp_path / "run", Settings(steps=128, **VALUES | UNFITTED | values))
    assert ppo.train(tmp_path / "run")
    first, last = (Policy.load(tmp_path / "run" / name).tensors for name in LAST)
    assert (first["value.weight"] != last["value.weight"]).any()  # units that are never on stay
    assert (first["value.bias"] != last["value.bias"]).all()
    kept = load_file(tmp_path / "run" / "checkpoints" / "000000128" / "learner.safetensors")
    assert any(name.endswith("against.weight") for name in kept)
    assert not any("against" in name for name in last)


def test_games_against_itself_are_told_to_the_critic(tmp_path: Path) -> None:
    """By what each slot is seated with, also where a run goes on; the share stays as it was."""
    rarely = {"rate_every": 0, "checkpoint_every": 1 << 20}
    settings = Settings(steps=512, **VALUES | rarely | {"reseat_every": 128})
    ppo.begin(tmp_path / "run", settings)
    run = ppo._Run(tmp_path / "run", settings)
    run.resume()
    for _ in range(20):
        itself = [name == LATEST for name in run.pool.seated]
        assert sum(itself) == settings.slots * settings.share_latest
        own = np.resize(itself, settings.games)
        assert (run.env.self_play == own).all()
        assert (run.model._last_obs[:, SELF_PLAY_AT] == own).all()
        run.model.num_timesteps += 128
        run.settle()
    run.model.logger.close()


# Refusals


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    """What is said on stderr, in one line."""
    error = capsys.readouterr().err
    assert error.startswith("train: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", "0"), "steps: expected an integer from 1, got '0'"),
        (("--steps", "many"), "steps: expected an integer from 1, got 'many'"),
        (("--minibatch", "100"), "minibatch: expected a divisor of games * rollout = 128, got 100"),
        (("--learning-rate", "nan"), "learning_rate"),
        (("--seed", "-1"), "seed: expected an integer from 0"),
        (("--board", "honshu"), "unknown board 'honshu': expected one of shikoku"),
        (("--agents", "gredy"), "unknown agent 'gredy'"),
        (("--ladder", "nowhere.json"), "nowhere.json: no such ladder; --ladder FILE names another"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("--start-from", "nowhere"), "nowhere: no such policy file"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert train(tmp_path / "run", "--steps", "256", *SMALL, *options) == 1
    assert message in refusal(capsys)
    assert not (tmp_path / "run").exists()


def test_a_policy_of_another_size_is_refused_before_anything_is_made(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ("--start-from", str(finished / "last"))
    assert train(tmp_path / "run", *SHORT, *start, "--width", "64") == 1
    assert "start_from: expected Sizes(first=64, second=16, move=8), " in refusal(capsys)
    assert not (tmp_path / "run").exists()


def test_an_existing_folder_is_refused_untouched(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run)
    assert train(run, *SHORT) == 1
    assert f"{run}: is not empty; resume it, or choose another folder" in refusal(capsys)
    assert contents(run) == before


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert train(tmp_path / "file", *SHORT) == 1
    assert str(tmp_path / "file") in refusal(capsys)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_what_is_no_run_cannot_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert resume(folder) == 1
        assert f"{folder}: no run folder: expected a config.toml in it" in refusal(capsys)


def test_other_settings_are_refused_when_a_run_goes_on(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run)
    assert resume(run, "--seed", "1", "--width", "32", "--entropy", "0.5") == 1
    error = refusal(capsys)
    assert "seed: the run has 0, asked for 1; entropy: the run has 0.005, asked for 0.5" in error
    assert resume(run, "--preset", "quick") == 1
    assert "width: the run has 32, asked for 256" in refusal(capsys)
    assert contents(run) == before
    assert resume(run, "--config", str(run / "config.toml")) == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rules = 1", "rules = 2", "layout.rules: this version has 1, the run 2"),
        ("actions = 1", "actions = 2", "layout.actions: this version has 1, the run 2"),
        ('inputs = "', 'inputs = "0', "layout.inputs: this version has"),
        ("[layout]", "[layouts]", "layout.rules: this version has 1, the run None"),
        ("steps = ", "stepps = ", "unknown setting 'stepps': the nearest is 'steps'"),
        ("[settings]", "[settings", "config.toml"),
        ("games = 8", 'games = "many"', "games: expected an integer from 1, got 'many'"),
        ("games = 8", "games = 16", "checkpoint"),
        ("width = 32", "width = 64", "checkpoint"),
    ],
)
def test_a_run_of_another_kind_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = contents(run)
    assert resume(run) == 1
    assert message in refusal(capsys)
    assert contents(run) == before


@pytest.mark.parametrize("how", ["cut", "empty", "missing", "flipped"])
@pytest.mark.parametrize("name", CHECKPOINT)
def test_a_broken_checkpoint_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str], name: str, how: str
) -> None:
    path = run / "checkpoints" / "000001024" / name
    whole = bytearray(path.read_bytes())
    path.write_bytes(whole[: len(whole) // 2] if how == "cut" else b"")
    if how == "flipped":
        whole[len(whole) * 3 // 4] ^= 1
        path.write_bytes(whole)
    if how == "missing":
        path.unlink()
        if name == "SHA256SUMS":  # as runs from before it have none
            assert resume(run) == 0
            return
    assert resume(run) == 1
    error = refusal(capsys)
    assert f"{path.parent}: broken checkpoint: " in error
    assert f"delete it to go on from {run / 'checkpoints' / '000000768'}" in error
    if how == "flipped":
        assert "was changed: its SHA-256 is not the one in SHA256SUMS" in error
        assert name in error
        if name == CHECKPOINT[0]:
            shutil.rmtree(path.parent)  # the advice
            assert resume(run) == 0


def test_the_sums_are_those_of_sha256sum(finished: Path) -> None:
    folder = finished / "checkpoints" / "000001024"
    sums = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert [line.split("  ")[1] for line in sums] == list(CHECKPOINT[:-1])
    for line in sums:
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_a_checkpoint_without_a_counter_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "checkpoints" / "000001024" / "state.json"
    counters = json.loads(path.read_text(encoding="utf-8"))
    for key in counters:
        kept = {k: v for k, v in counters.items() if k != key}
        write_state(path.parent, json.dumps(kept))
        assert resume(run) == 1
        assert "broken checkpoint" in refusal(capsys)


def seated_snapshot(run: Path) -> Path:
    """Make a snapshot of the pool be met when a run goes on; return its file."""
    path = run / "checkpoints" / "000001024" / "state.json"
    counters = json.loads(path.read_text(encoding="utf-8"))
    name = counters["pool"]["snapshots"][1]
    counters["pool"]["seated"][0] = name
    write_state(path.parent, json.dumps(counters))
    return run / "pool" / str(name)


def test_a_lost_copy_of_the_pool_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = seated_snapshot(run)
    path.unlink()
    assert resume(run) == 1
    assert f"{path}: no such policy file" in refusal(capsys)


def test_a_copy_with_other_inputs_is_named(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = seated_snapshot(run)
    policy = Policy.load(path)
    with monkeypatch.context() as other:
        other.setattr(policies, "INPUTS_HASH", "0123456789abcdef")
        policy.save(path)
    assert resume(run) == 1
    assert f"{path}: made for inputs '0123456789abcdef'" in refusal(capsys)


def test_another_ladder_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "checkpoints" / "000001024" / "state.json"
    counters = json.loads(path.read_text(encoding="utf-8"))
    write_state(path.parent, json.dumps(counters | {"ladder": "0123456789abcdef"}))
    assert resume(run) == 1
    assert "rated on the ladder 0123456789abcdef, the file is now" in refusal(capsys)


@pytest.mark.parametrize("full_at", rest_slow(["games.npz", "SHA256SUMS", "rename", "last"]))
def test_a_full_disk_leaves_what_was_saved_before(
    full_at: str,
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The checkpoint after 256 steps is whole, that after 512 is not; then there is room again."""
    run = tmp_path / "run"
    fill_the_disk(monkeypatch, full_at, run)
    assert train(run, *SHORT) == 1
    error = refusal(capsys)
    assert "No space left on device" in error
    assert ("checkpoints/000000512: not saved" in error) == (full_at != "last")
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["000000256"]
    assert Policy.load(run / "last").tensors
    assert Policy.load(run / "best").tensors
    monkeypatch.undo()
    assert resume(run) == 0
    assert contents(run, logs=False) == contents(finished, logs=False)


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, full_at: str, run: Path) -> None:
    """Let one write of the save after 512 steps, or its renaming, find no room."""
    unfinished = run / "checkpoints" / "000000512.tmp"

    def refuse(place: Any, name: str, refused: Path) -> None:
        real = getattr(place, name)

        def write(path: Path, *others: Any, **options: Any) -> Any:
            if path == refused and metrics(run)[-1]["steps"] == 512:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return real(path, *others, **options)

        monkeypatch.setattr(place, name, write)

    if full_at == "rename":
        refuse(Path, "replace", unfinished)
    else:
        refuse(Path, "open", run / "last.tmp" if full_at == "last" else unfinished / full_at)
