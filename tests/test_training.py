"""Training: short real runs, whole folders, exact resumption, and refusals that say why."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tokaido_env.agents import Policy, make
from tokaido_env.agents.run import Settings

ROOT = Path(__file__).resolve().parents[1]
SMALL = (
    *("--games", "32", "--rollout", "8", "--minibatch", "128", "--width", "32"),
    *("--freeze-every", "512", "--checkpoint-every", "512", "--eval-games", "8"),
)
SHORT = ("--steps", "2048", *SMALL)

main: Callable[[list[str]], int] = runpy.run_path(str(ROOT / "train.py"))["main"]


def train(run: Path, *options: str) -> int:
    return main(["--run", str(run), *options])


def resume(run: Path) -> int:
    return main(["--resume", str(run)])


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


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
    parts = {name for name in contents(finished) if not name.startswith("tb/")}
    checkpoint = ("learner.safetensors", "optimizer.safetensors", "games.npz", "state.json")
    assert parts == {
        *("config.toml", "metrics.jsonl", "last", "best"),
        *(f"checkpoints/{steps:09d}/{name}" for steps in (1536, 2048) for name in checkpoint),
        *(f"pool/{steps:09d}" for steps in (0, 512, 1024, 1536)),
    }
    assert len(list((finished / "tb").iterdir())) == 1


def test_nothing_in_a_run_folder_can_run_code(finished: Path) -> None:
    """Every file but TensorBoard's is read whole by a format that holds data only."""
    for name in contents(finished):
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
        elif path.suffix == ".toml":
            assert tomllib.loads(path.read_text(encoding="utf-8"))
        elif path.parent.name != "tb":
            assert Policy.load(path).policy


def test_the_configuration_tells_all_settings_versions_and_layouts(finished: Path) -> None:
    config = tomllib.loads((finished / "config.toml").read_text(encoding="utf-8"))
    expected = {"steps": 2048, "games": 32, "rollout": 8, "minibatch": 128, "width": 32}
    expected |= {"freeze_every": 512, "checkpoint_every": 512, "eval_games": 8}
    assert Settings(**config["settings"]) == Settings(**expected)
    assert set(config["layout"]) == {"rules", "actions", "features"}
    assert {"python", "tokaido-env", "numpy", "numba", "torch"} <= set(config["versions"])


def test_metrics_tell_steps_in_order_and_each_evaluation(finished: Path) -> None:
    told = metrics(finished)
    steps = [line["steps"] for line in told]
    assert steps == sorted(steps)
    assert set(steps) == set(range(256, 2049, 256))
    scores = [line["eval/greedy"] for line in told if "eval/greedy" in line]
    assert len(scores) == 4
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_a_trained_policy_plays(finished: Path) -> None:
    """The learner moved away from where it began; the run folder stands for its best."""
    assert make(f"policy:{finished}").spec == f"policy:{finished}"
    first, last = (Policy.load(finished / name) for name in ("pool/000000000", "last"))
    assert not np.array_equal(first.policy[0][0], last.policy[0][0])
    evaluate = runpy.run_path(str(ROOT / "evaluate.py"))["main"]
    agents = [f"policy:{finished}", f"policy:{finished}/last,temperature=1"]
    assert evaluate([*agents, "--games", "10"]) == 0


# The same again


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    runs = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert train(tmp_path / name, "--steps", "512", *SMALL, "--seed", seed) == 0
        runs.append((tmp_path / name / "last").read_bytes())
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_an_interrupted_run_goes_on_as_if_it_had_not_stopped(
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
    stopped_at = metrics(run)[-1]["steps"]
    assert stopped_at < 2048
    assert (run / "checkpoints" / f"{stopped_at:09d}").is_dir()

    assert resume(run) == 0
    assert (run / "last").read_bytes() == (finished / "last").read_bytes()
    steps = [line["steps"] for line in metrics(run)]
    assert steps == sorted(steps)
    assert set(steps) == {line["steps"] for line in metrics(finished)}


def wait_for_progress(file: Path, process: subprocess.Popen[str]) -> None:
    """Wait for the third update: a copy has joined the pool by then."""
    while process.poll() is None:
        if file.is_file() and file.read_text(encoding="utf-8").count("\n") >= 3:
            return
        time.sleep(0.01)


def test_a_checkpoint_goes_on_as_if_the_run_had_not_stopped(finished: Path, run: Path) -> None:
    """As after a power cut: the newest checkpoint and all that came later are gone."""
    shutil.rmtree(run / "checkpoints" / "000002048")
    (run / "last").unlink()
    assert resume(run) == 0
    assert (run / "last").read_bytes() == (finished / "last").read_bytes()
    assert (run / "best").read_bytes() == (finished / "best").read_bytes()
    steps = [line["steps"] for line in metrics(run)]
    assert steps == sorted(steps)


def test_a_finished_run_has_nothing_to_go_on_with(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run)
    assert resume(run) == 0
    after = contents(run)
    assert {name for name in before if before[name] != after[name]} <= {"metrics.jsonl"}
    assert "best" in capsys.readouterr().out


# Refusals


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    """What is said on stderr."""
    error = capsys.readouterr().err
    assert error.startswith("train: ")
    return error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", "0"), "steps: expected more than 0, got 0"),
        (("--games", "-1"), "games: expected more than 0, got -1"),
        (("--minibatch", "100"), "minibatch: expected a divisor of games × rollout = 256, got 100"),
        (("--learning-rate", "0"), "learning_rate: expected more than 0, got 0.0"),
        (("--learning-rate", "nan"), "learning_rate"),
        (("--learning-rate", "inf"), "learning_rate"),
        (("--eval-games", "7"), "eval_games"),
        (("--seed", "-1"), "seed: expected an integer from 0"),
        (("--seed", "9007199254740992"), "seed: expected an integer from 0"),
        (("--seed", "9007199254740990"), "seed"),  # game 31 would have a seed past the last one
        (("--board", "honshu"), "unknown board 'honshu': expected one of shikoku"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert train(tmp_path / "run", "--steps", "512", *SMALL, *options) == 1
    assert message in refusal(capsys)
    assert not (tmp_path / "run").exists()


def test_any_seed_of_a_game_can_train(tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--steps", "256", *SMALL, "--seed", str(2**40)) == 0


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rules = 1", "rules = 2", "layout.rules: this version has 1, the run 2"),
        ("actions = 1", "actions = 2", "layout.actions: this version has 1, the run 2"),
        ('features = "', 'features = "0', "layout.features: this version has"),
        ("[layout]", "[other]", "layout.rules: this version has 1, the run None"),
        ("steps = ", "stairs = ", "settings missing or unknown: stairs, steps"),
        ("[settings]", "[settings", "config.toml"),
        ("games = 32", 'games = "many"', "games"),
        ("games = 32", "games = 48", "checkpoint"),
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


@pytest.mark.parametrize("how", ["cut", "empty", "missing"])
@pytest.mark.parametrize(
    "name", ["learner.safetensors", "optimizer.safetensors", "games.npz", "state.json"]
)
def test_a_broken_checkpoint_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str], name: str, how: str
) -> None:
    path = run / "checkpoints" / "000002048" / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if how == "cut" else b"")
    if how == "missing":
        path.unlink()
    assert resume(run) == 1
    assert f"{path.parent}: broken checkpoint: " in refusal(capsys)


def test_a_checkpoint_without_a_counter_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "checkpoints" / "000002048" / "state.json"
    counters = json.loads(path.read_text(encoding="utf-8"))
    for key in counters:
        kept = {k: v for k, v in counters.items() if k != key}
        path.write_text(json.dumps(kept), encoding="utf-8")
        assert resume(run) == 1
        assert "broken checkpoint" in refusal(capsys)


def test_a_lost_copy_of_the_pool_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "pool" / "000001536").unlink()
    assert resume(run) == 1
    assert f"{run / 'pool' / '000001536'}: no such policy file" in refusal(capsys)
