"""Training runs of each method: files, metrics, ratings, resumed runs and refusals."""

import json
import signal
import tomllib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import random_policy
from short_run import (
    METHODS,
    SHORT,
    TINY,
    Finished,
    contents,
    copy_run,
    error_line,
    metrics,
    newest_checkpoint,
    options_of,
    resume,
    train as main,
)

from tokaido_env.agents import Policy
from tokaido_env.agents.policy import LayerSizes
from tokaido_env.arena.ladder import LADDER
from tokaido_env.learn import run as runs, td
from tokaido_env.learn.metrics import Logs
from tokaido_env.learn.network import torch_threads
from tokaido_env.learn.run import Progress
from tokaido_env.learn.run_folder import load_settings
from tokaido_env.learn.settings import TdSettings
from tokaido_env.tensor_file import read_tensors, write_tensors

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "change-the-learner.md"
Output = pytest.CaptureFixture[str]


class Killed(BaseException):
    """Ends a run at once, as a kill does."""


def kill_at(done: int) -> Callable[[Progress], None]:
    def kill(progress: Progress) -> None:
        if progress.figures and progress.done == done:
            raise Killed

    return kill


# Files


@pytest.mark.parametrize("method", METHODS)
def test_run__writes_exactly_the_documented_files(finished_run: Finished, method: str) -> None:
    finished, settings = finished_run(method), SHORT[method]
    kept = {"td": (2,), "alphazero": range(4)}[method]
    shards = [f"{n:04d}-{i:04d}.safetensors" for n in (1, 2, 3) for i in range(3)]
    assert set(contents(finished)) == {
        *("config.toml", "metrics.jsonl", "last", "best"),
        *(f"checkpoints/{done:09d}.safetensors" for done in (2, 3)),
        *(f"policies/{done:09d}" for done in kept),
        *(f"shards/{name}" for name in shards if method == "alphazero"),
    }
    assert len(list((finished / "tb").iterdir())) == 1
    config = tomllib.loads((finished / "config.toml").read_text(encoding="utf-8"))
    assert config["run"] == {"method": method, "version": 9}
    assert type(settings)(**config["settings"]) == settings == load_settings(finished)
    assert set(config["boards"]) == {"board", "extra_boards"}
    assert {"python", "tokaido-env", "numpy", "numba", "torch"} <= set(config["versions"])


@pytest.mark.parametrize("method", METHODS)
def test_run__logs_every_update_and_its_ratings(finished_run: Finished, method: str) -> None:
    lines, settings = metrics(finished_run(method)), SHORT[method]
    assert [line[settings.LENGTH] for line in lines] == [1, 2, 3]
    names = {
        "td": {"loss", "decisions", "game_length"},
        "alphazero": {"loss", "decisions", "positions", "shards", "policy_sha256"},
    }
    assert names[method] <= set(lines[-1])
    assert not any(name.startswith("time/") for line in lines for name in line)
    rated = [line for line in lines if "rating/elo" in line]
    assert [line[settings.LENGTH] for line in rated] == [2, 3]
    for line in rated:
        assert line["rating/low"] < line["rating/elo"] < line["rating/high"]
        assert line["rating/games"] == 3 * settings.rating_games
    ratings = state_of(newest_checkpoint(finished_run(method)))["ratings"]
    assert ratings["highest_elo"] == max(line["rating/elo"] for line in rated)
    assert ratings["ladder"] == json.loads(LADDER.read_text(encoding="utf-8"))["hash"]


@pytest.mark.parametrize("method", METHODS)
def test_run__saves_policies_with_a_training_summary(finished_run: Finished, method: str) -> None:
    finished, settings = finished_run(method), SHORT[method]
    policy = Policy.load(finished / "last")
    own = {name: v for name, v in asdict(settings).items() if name != settings.LENGTH}
    assert policy.training["method"] == method
    assert policy.training[settings.LENGTH] <= settings.length
    assert policy.training["settings"] == own
    assert policy.sizes == settings.sizes
    assert policy.tensors["value.weight"].any()


def test_run__keeps_the_newest_policy_that_is_not_shown_to_be_weaker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fixed ratings, ± 10: the third is not shown to be lower than the second, the others are."""
    elos = iter([100.0, 300.0, 291.0, 289.0])
    rated: list[Policy] = []

    def rate_learner(agent: Any, *others: Any) -> runs.Measure:
        rated.append(agent.policy)
        elo = next(elos)
        return runs.Measure(elo, elo - 10, elo + 10, "Elo", "learner", 12)

    monkeypatch.setattr(runs, "rate_learner", rate_learner)
    runs.begin(tmp_path / "run", TdSettings(**TINY | {"rate_every": 1, "updates": 4}))
    reports: list[Progress] = []
    assert runs.train(tmp_path / "run", reports.append)
    best = Policy.load(tmp_path / "run" / "best")
    assert np.array_equal(best.tensors["first.weight"], rated[2].tensors["first.weight"])
    assert not np.array_equal(best.tensors["first.weight"], rated[3].tensors["first.weight"])
    new = [progress for progress in reports if progress.is_new]
    assert [progress.done for progress in new] == [1, 2, 3, 4]
    assert [progress.is_best for progress in new] == [True, True, True, False]


# Resume


def same_but_for_older_checkpoints(run: Path, other: Path) -> bool:
    """Compare two runs without older checkpoints: a stopped run has one more."""
    last = newest_checkpoint(run).name

    def compared(folder: Path) -> dict[str, bytes]:
        files = contents(folder).items()
        return {name: f for name, f in files if "checkpoints" not in name or last in name}

    return last == newest_checkpoint(other).name and compared(run) == compared(other)


@pytest.mark.parametrize("method", METHODS)
def test_resume__after_a_signal_makes_the_same_bytes(
    finished_run: Finished,
    method: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    """Ctrl-C, and SIGTERM twice, as `timeout` sends it, after the first update."""
    run, write = tmp_path / "run", Logs.write
    signals = {"td": [signal.SIGTERM] * 2, "alphazero": [signal.SIGINT]}[method]

    def send(logs: Any, *arguments: Any) -> None:
        write(logs, *arguments)
        for number in signals:
            signal.raise_signal(number)

    with monkeypatch.context() as patch:
        patch.setattr(Logs, "write", send)
        assert main(["--run", str(run), *options_of(SHORT[method])]) == 128 + signals[0]
    assert f"--resume {run}\n" in capsys.readouterr().out
    assert (run / "best").is_file()
    assert len(metrics(run)) == 1
    with torch_threads(2):  # the run sets its own number of threads
        assert resume(run) == 0
    assert same_but_for_older_checkpoints(run, finished_run(method))


@pytest.mark.parametrize("method", METHODS)
def test_resume__after_a_kill_makes_the_same_bytes(
    finished_run: Finished, method: str, tmp_path: Path
) -> None:
    """Between the first metrics and the next checkpoint, with unfinished files and a cut line."""
    run, temporary = tmp_path / "run", f".{7:016x}.tmp"
    runs.begin(run, SHORT[method])
    with pytest.raises(Killed):
        runs.train(run, kill_at(1))
    assert [path.stem for path in (run / "checkpoints").iterdir()] == ["000000000"]
    assert Policy.load(run / "best").tensors
    for name in (f"last{temporary}", f"policies/000000002{temporary}", "best.lock"):
        (run / name).write_text("half", encoding="utf-8")
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"upd')
    assert runs.train(run)
    assert contents(run) == contents(finished_run(method))


@pytest.mark.parametrize("method", METHODS)
def test_resume__after_a_power_cut_makes_the_same_bytes(
    finished_run: Finished, method: str, tmp_path: Path
) -> None:
    """The newest checkpoint and some later files are missing."""
    run = copy_run(finished_run(method), tmp_path)
    newest_checkpoint(run).unlink()
    for name in ("shards/0003-0001.safetensors", "policies/000000003"):
        (run / name).unlink(missing_ok=True)
    assert resume(run) == 0
    assert contents(run) == contents(finished_run(method))


def test_resume__of_the_changed_trainer_of_the_page_keeps_its_second_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].partition("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    with monkeypatch.context() as patch:
        patch.setattr(td, "TdTrainer", names["Averaged"])
        for name in ("run", "whole"):
            runs.begin(tmp_path / name, replace(SHORT["td"], checkpoint_every=1))
        assert runs.train(tmp_path / "whole")
        with pytest.raises(Killed):
            runs.train(tmp_path / "run", kill_at(2))
        assert runs.train(tmp_path / "run")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    _, tensors = read_tensors(newest_checkpoint(tmp_path / "run"), runs.MAX_BYTES)
    last = Policy.load(tmp_path / "run" / "last").tensors["first.weight"]
    assert np.array_equal(last, tensors["mean.module.first.weight"])
    assert not np.array_equal(last, tensors["network.first.weight"])
    assert resume(tmp_path / "run", "--updates", "4") == 1
    assert "mean: no part of this trainer" in error_line(capsys)


@pytest.mark.parametrize("method", METHODS)
def test_resume__with_a_greater_length_equals_a_longer_run(method: str, tmp_path: Path) -> None:
    """The learning rate is constant, and the first end has no rating."""
    whole: Any = replace(SHORT[method], rate_every=0)
    if method == "td":
        whole = replace(whole, final_learning_rate=1.0)
    for name, settings in (("whole", whole), ("run", replace(whole, **{whole.LENGTH: 1}))):
        runs.begin(tmp_path / name, settings)
        assert runs.train(tmp_path / name)
    assert resume(tmp_path / "run", f"--{whole.LENGTH}", "3") == 0
    assert same_but_for_older_checkpoints(tmp_path / "run", tmp_path / "whole")


# Checkpoints


def state_of(path: Path) -> Any:
    """Return the JSON state of a checkpoint."""
    return json.loads(read_tensors(path, runs.MAX_BYTES).header["state"])


def rewritten(change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Callable[[Path], None]:
    """Return a damage to state and arrays of a checkpoint that keeps its SHA-256 valid."""

    def damage(path: Path) -> None:
        state, arrays = state_of(path), read_tensors(path, runs.MAX_BYTES).arrays
        change(state, arrays)
        write_tensors(path, arrays, {"state": json.dumps(state)})

    return damage


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) * 3 // 4] ^= 1
    path.write_bytes(data)


DAMAGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("checkpoint", lambda path: path.write_bytes(path.read_bytes()[:5000]), "broken checkpoint"),
    ("checkpoint", flip_a_bit, "broken checkpoint"),
    ("checkpoint", rewritten(lambda state, _: state.pop("counters")), "broken checkpoint"),
    ("checkpoint", rewritten(lambda _, arrays: arrays.pop("network.value.bias")), "broken check"),
    (
        "checkpoint",
        rewritten(lambda _, arrays: arrays.update({"adam.0.exp_avg": np.zeros(5)})),
        "broken checkpoint",
    ),
    ("checkpoint", rewritten(lambda state, _: state["ratings"].update(ladder="0")), "ladder"),
    ("metrics.jsonl", lambda path: path.write_text('{"updates": 25\n'), "line 1"),
    ("metrics.jsonl", lambda path: path.write_text('{"loss": 1.0}\n'), "line 1"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGES)
def test_resume__refuses_a_damaged_file(
    name: str, damage: Callable[[Path], object], message: str, run: Path, capsys: Output
) -> None:
    path = newest_checkpoint(run) if name == "checkpoint" else run / name
    damage(path)
    assert resume(run, "--updates", "2") == 1
    error = error_line(capsys)
    assert message in error
    assert str(run) in error
    path.unlink()
    assert resume(run) == 0


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("version = 9", "version = 8", "run: version"),
        ('method = "td"', 'method = "zero"', "run.method"),
        ('inputs = "', 'inputs = "0', "layout.inputs"),
        ("width = 8", "width = 64", "checkpoint"),
    ],
)
def test_resume__refuses_an_incompatible_run(
    run: Path, capsys: Output, old: str, new: str, place: str
) -> None:
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = contents(run, logs=True)
    assert resume(run) == 1
    assert place in error_line(capsys)
    assert contents(run, logs=True).items() >= before.items()


# New runs


@pytest.mark.parametrize("method", METHODS)
def test_run__starts_from_a_policy(method: str, tmp_path: Path) -> None:
    """The trained policy names the boards of that policy, which may be deleted later."""
    settings, start = SHORT[method], tmp_path / "start"
    board = {"splits": ["test", "nowhere", 3], "name": "x" * 9000}
    replace(random_policy(settings.sizes), training={"board": board}).save(start)
    short: Any = {"start_from": str(start), "learning_rate": 1e-9, "rate_every": 0}
    runs.begin(tmp_path / "run", replace(settings, **short, **{settings.LENGTH: 1}))
    assert runs.train(tmp_path / "run")
    own = Policy.load(tmp_path / "run" / "last")
    for name, tensor in Policy.load(start).tensors.items():
        np.testing.assert_allclose(own.tensors[name], tensor, atol=1e-5)
    start.unlink()
    assert resume(tmp_path / "run", f"--{settings.LENGTH}", "2") == 0
    assert Policy.load(tmp_path / "run" / "last").training["board"]["splits"] == ["test"]


def test_run__starts_from_random_weights(tmp_path: Path) -> None:
    """The seed draws them; a position is as good for one as for the other."""
    policies = []
    for seed in (0, 1):
        short: Any = {"learning_rate": 1e-9, "rate_every": 0, "seed": seed}
        runs.begin(tmp_path / f"{seed}", replace(SHORT["td"], **short, updates=1))
        assert runs.train(tmp_path / f"{seed}")
        policies.append(Policy.load(tmp_path / f"{seed}" / "last").tensors)
    assert all(np.abs(tensors["value.weight"]).max() < 1e-6 for tensors in policies)
    assert (policies[0]["first.weight"] != policies[1]["first.weight"]).mean() > 0.99


def test_run__has_no_ratings_on_boards_without_a_ladder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    runs.begin(run, TdSettings(**TINY | {"rate_every": 1, "board": "shikoku_art"}))
    assert runs.train(run)
    assert not any("rating/elo" in line for line in metrics(run))
    assert (run / "best").read_bytes() == (run / "last").read_bytes()


def test_train__refuses_wrong_settings_before_creating_a_folder(
    tmp_path: Path, capsys: Output
) -> None:
    start = tmp_path / "start"
    random_policy(LayerSizes(64, 16)).save(start)
    for option, value, name in (
        ("--updates", "0", "updates"),
        ("--config", "nowhere.toml", "nowhere.toml"),
        ("--start-from", "nowhere", "nowhere"),
        ("--start-from", str(start), "start_from"),
        ("--ladder", "nowhere", "nowhere"),
        ("--board", "honshu", "honshu"),
    ):
        words = ["--run", str(tmp_path / "run"), *options_of(SHORT["td"]), option, value]
        assert main(words) == 1
        assert name in error_line(capsys)
        assert not (tmp_path / "run").exists()


def test_train__refuses_folders_of_a_run_and_those_without_one(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    before = contents(run, logs=True)
    assert main(["--run", str(run)]) == 1
    assert f"{run}: expected an empty folder" in error_line(capsys)
    assert contents(run, logs=True) == before
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert main(["--run", str(tmp_path / "file")]) == 1
    assert "file" in error_line(capsys)
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert resume(folder) == 1
        assert f"{folder}: no run folder" in error_line(capsys)
        assert not (folder / ".lock").exists()
    assert main([]) == 2
