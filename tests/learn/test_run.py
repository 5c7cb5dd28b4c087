"""Training runs of every method: files, metrics, resumed runs and command-line errors."""

import errno
import json
import os
import random
import re
import shutil
import signal
import tomllib
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from checkpoint_files import rewrite, state_of
from networks import random_policy
from short_run import (
    METHODS,
    SHORT,
    VALUES,
    Finished,
    contents,
    copy_run,
    error_line,
    metrics,
    newest_checkpoint,
    options_of,
    resume,
)
from slow_cases import slow_except_first

from tokaido_env.agents import Policy
from tokaido_env.agents.policy import LayerSizes
from tokaido_env.arena.ladder import LADDER
from tokaido_env.cli.train import main
from tokaido_env.files import TEMP_SUFFIX
from tokaido_env.learn import run as runs
from tokaido_env.learn.checkpoint import done_of
from tokaido_env.learn.metrics import Logs
from tokaido_env.learn.network import torch_threads
from tokaido_env.learn.run import Progress
from tokaido_env.learn.run_folder import load_settings
from tokaido_env.learn.settings import PpoSettings

pytest.importorskip("sb3_contrib")


Output = pytest.CaptureFixture[str]


@pytest.fixture
def run(finished_run: Finished, tmp_path: Path) -> Path:
    """A copy of the finished PPO run of `SHORT`, to change."""
    return copy_run(finished_run("ppo"), tmp_path)


# Files


@pytest.mark.parametrize("method", METHODS)
def test_run__writes_exactly_the_documented_files(finished_run: Finished, method: str) -> None:
    finished, settings = finished_run(method), SHORT[method]
    dones = {"ppo": (512, 640), "td": (2, 3), "alphazero": (2, 3)}[method]
    kept = {"ppo": range(0, 641, 128), "td": (2,), "alphazero": range(4)}[method]
    shards = [f"{n:04d}-{i:04d}.safetensors" for n in (1, 2, 3) for i in range(3)]
    assert set(contents(finished)) == {
        *("config.toml", "metrics.jsonl", "last", "best"),
        *(f"checkpoints/{done:09d}.safetensors" for done in dones),
        *(f"policies/{done:09d}" for done in kept),
        *(f"shards/{name}" for name in shards if method == "alphazero"),
    }
    assert len(list((finished / "tb").iterdir())) == 1
    config = tomllib.loads((finished / "config.toml").read_text(encoding="utf-8"))
    assert config["run"] == {"method": method, "version": 6}
    assert type(settings)(**config["settings"]) == settings == load_settings(finished)
    assert set(config["layout"]) == {"rules", "actions", "inputs"}
    assert {"python", "tokaido-env", "numpy", "numba", "torch"} <= set(config["versions"])


@pytest.mark.parametrize("method", METHODS)
def test_run__logs_every_update_in_order(finished_run: Finished, method: str) -> None:
    lines, settings = metrics(finished_run(method)), SHORT[method]
    each = settings.update_steps if isinstance(settings, PpoSettings) else 1
    dones = [line[settings.LENGTH] for line in lines]
    assert dones == list(range(each, settings.length + 1, each))
    names = {
        "ppo": {"train/loss", "train/approx_kl", "games/ended", "win_rate/greedy"},
        "td": {"loss", "decisions", "game_length"},
        "alphazero": {"loss", "positions", "shards", "policy_sha256"},
    }
    assert names[method] <= set(lines[-1])
    assert not any(name.startswith("time/") for line in lines for name in line)
    rated = [line for line in lines if "rating/elo" in line]
    assert [line[settings.LENGTH] for line in rated] == ([512, 640] if method == "ppo" else [2, 3])
    for line in rated:
        assert line["rating/low"] < line["rating/elo"] < line["rating/high"]
        assert line["rating/games"] == 3 * settings.rating_games
    state = state_of(newest_checkpoint(finished_run(method)))
    assert state["run"]["best_elo"] == max(line["rating/elo"] for line in rated)
    assert state["run"]["ladder"] == json.loads(LADDER.read_text(encoding="utf-8"))["hash"]


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


def test_run__keeps_the_first_policy_with_the_highest_rating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fixed ratings: the second is the highest, the third equals it."""
    elos = iter([100.0, 300.0, 300.0, 200.0])
    rated: list[Policy] = []

    def rate_learner(agent: Any, *others: Any) -> runs.Measure:
        rated.append(agent.policy)
        elo = next(elos)
        return runs.Measure(elo, elo - 1, elo + 1, "Elo", "learner", 12)

    monkeypatch.setattr(runs, "rate_learner", rate_learner)
    runs.begin(tmp_path / "run", PpoSettings(**VALUES | {"rate_every": 256, "steps": 1024}))
    reports: list[Progress] = []
    assert runs.train(tmp_path / "run", reports.append)
    best = Policy.load(tmp_path / "run" / "best")
    assert np.array_equal(best.tensors["first.weight"], rated[1].tensors["first.weight"])
    assert not np.array_equal(best.tensors["first.weight"], rated[2].tensors["first.weight"])
    new = [progress for progress in reports if progress.is_new]
    assert [progress.done for progress in new] == [256, 512, 768, 1024]
    assert [progress.is_best for progress in new] == [True, True, False, False]


# Resume


class Stopping:
    """Send signals to this process after the first logged update."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *signals: signal.Signals) -> None:
        write, left = Logs.write, list(signals)

        def send(logs: Any, *arguments: Any) -> None:
            write(logs, *arguments)
            while left:
                signal.raise_signal(left.pop())

        monkeypatch.setattr(Logs, "write", send)


@pytest.mark.parametrize("method", METHODS)
def test_resume__after_a_signal_makes_the_same_bytes(
    finished_run: Finished,
    method: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    """Ctrl-C, and SIGTERM twice, as `timeout` sends it."""
    run, is_ppo = tmp_path / "run", method == "ppo"
    with monkeypatch.context() as patch:
        Stopping(patch, *([signal.SIGTERM] * 2 if is_ppo else [signal.SIGINT]))
        status = main(["--run", str(run), *options_of(SHORT[method])])
        assert status == (143 if is_ppo else 130)
    assert f"--resume {run}\n" in capsys.readouterr().out
    assert (run / "best").is_file()
    assert len(metrics(run)) == 1
    assert newest_checkpoint(run).is_file()
    with torch_threads(2):  # the run sets its own number of threads
        assert resume(run) == 0
    assert same_but_for_older_checkpoints(run, finished_run(method))


def same_but_for_older_checkpoints(run: Path, other: Path) -> bool:
    """Compare two runs without older checkpoints: a stopped run has one more."""
    last = newest_checkpoint(run).name

    def compared(folder: Path) -> dict[str, bytes]:
        files = contents(folder).items()
        return {name: f for name, f in files if "checkpoints" not in name or last in name}

    return last == newest_checkpoint(other).name and compared(run) == compared(other)


@pytest.mark.parametrize("method", METHODS)
def test_resume__after_a_power_cut_makes_the_same_bytes(
    finished_run: Finished, method: str, tmp_path: Path
) -> None:
    """The newest checkpoint and some later files are missing, as after a power cut."""
    run = copy_run(finished_run(method), tmp_path)
    newest_checkpoint(run).unlink()
    for name in ("shards/0003-0001.safetensors", "policies/000000640", "policies/000000003"):
        (run / name).unlink(missing_ok=True)
    metrics_file = run / "metrics.jsonl"
    metrics_file.write_bytes(metrics_file.read_bytes()[:-30])
    assert resume(run) == 0
    assert contents(run) == contents(finished_run(method))


class Killed(Exception):  # noqa: N818  not an error
    """Ends a run at once, as a kill does."""


@pytest.mark.parametrize("method", METHODS)
def test_resume__before_the_second_checkpoint_makes_the_same_bytes(
    finished_run: Finished, method: str, tmp_path: Path
) -> None:
    """The run has the checkpoint before its first update, and the metrics of that update."""
    run = tmp_path / "run"

    def kill(progress: Progress) -> None:
        if progress.figures:
            raise Killed

    runs.begin(run, SHORT[method])
    with pytest.raises(Killed):
        runs.train(run, kill)
    assert [done_of(path) for path in (run / "checkpoints").iterdir()] == [0]
    assert len(metrics(run)) == 1
    assert Policy.load(run / "best").tensors
    assert runs.train(run)
    assert contents(run) == contents(finished_run(method))


@pytest.mark.parametrize("method", METHODS)
def test_resume__refuses_a_run_that_lost_its_checkpoints(
    finished_run: Finished, method: str, tmp_path: Path, capsys: Output
) -> None:
    """A run that has lost everything but its settings begins again."""
    run = copy_run(finished_run(method), tmp_path)
    shutil.rmtree(run / "checkpoints")
    message = f"train: {run / 'checkpoints'}: expected a checkpoint, got none, but the run has "
    for found in ("metrics.jsonl", "policies", "best", "last"):
        before = contents(run, logs=True)
        assert resume(run) == 1
        error = error_line(capsys)
        assert error.startswith(message + found)
        assert error.endswith(": restore the checkpoint, or begin a new run in another folder\n")
        assert contents(run, logs=True) == before
        path = run / found
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert resume(run) == 0
    assert contents(run) == contents(finished_run(method))


def is_needed(name: str, newest: Path) -> bool:
    """Return whether a finished run cannot do without a file: no samples or older checkpoint."""
    return not name.startswith(("shards/", "checkpoints/")) or Path(name).name == newest.name


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_resume__with_missing_files_makes_the_same_bytes_or_is_refused(
    finished_run: Finished,
    method: str,
    tmp_path: Path,
    capsys: Output,
    pytestconfig: pytest.Config,
) -> None:
    """Random files, 40 times or `--subsets` times."""
    finished, unfinished, rng = finished_run(method), tmp_path / "unfinished", random.Random(7)
    runs.begin(unfinished, SHORT[method])

    def kill(progress: Progress) -> None:
        if progress.figures and progress.done >= SHORT[method].length * 0.6:
            raise Killed

    with pytest.raises(Killed):
        runs.train(unfinished, kill)
    refused, whole = 0, contents(finished)
    needed = {name for name in whole if is_needed(name, newest_checkpoint(finished))}
    for number in range(pytestconfig.getoption("subsets")):
        run = copy_run((finished, unfinished)[number % 2], tmp_path)
        share = rng.choice((0.02, 0.2, 0.5))
        for path in sorted(path for path in run.rglob("*") if path.is_file()):
            if rng.random() < share:
                path.unlink()
        before = contents(run)
        capsys.readouterr()
        if resume(run) == 0:
            found = contents(run)
            assert found.items() <= (contents(unfinished) | whole).items()
            assert found.keys() >= (whole.keys() & before.keys()) | needed
        else:
            error_line(capsys)
            assert contents(run) == before
            refused += 1
        shutil.rmtree(run)
    assert refused


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_resume__after_every_update_makes_the_same_bytes(
    finished_run: Finished, method: str, tmp_path: Path
) -> None:
    run, handler = tmp_path / "run", signal.getsignal(signal.SIGINT)
    runs.begin(run, SHORT[method])

    def stop(progress: Progress) -> None:
        if progress.figures and signal.getsignal(signal.SIGINT) is not handler:
            signal.raise_signal(signal.SIGINT)

    times = 1
    while not runs.train(run, stop):
        times += 1
    assert times == len(metrics(run))
    assert same_but_for_older_checkpoints(run, finished_run(method))


@pytest.mark.parametrize("method", METHODS)
def test_checkpoint_minutes__change_nothing_but_the_checkpoints(
    finished_run: Finished, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading of the clock is a minute after the one before; in a thread without signals.

    `alphazero` saves after every round by default.
    """
    saved, clock, write = list[int](), count(), runs.write_checkpoint
    monkeypatch.setattr(
        runs, "time", SimpleNamespace(monotonic=lambda: 60.0 * next(clock), perf_counter=lambda: 0)
    )

    def write_checkpoint(folder: Path, checkpoint: Any) -> None:
        saved.append(checkpoint.done)
        write(folder, checkpoint)

    monkeypatch.setattr(runs, "write_checkpoint", write_checkpoint)
    run = tmp_path / "run"
    words = ["--run", str(run), "--checkpoint-minutes", "1", *options_of(SHORT[method])]
    thread = Thread(target=main, args=(words,))
    thread.start()
    thread.join()
    assert saved == [0, *(line[SHORT[method].LENGTH] for line in metrics(run))]
    assert same_but_for_older_checkpoints(run, finished_run(method))


@pytest.mark.parametrize("method", METHODS)
def test_resume__of_a_finished_run_does_nothing(
    finished_run: Finished, method: str, tmp_path: Path, capsys: Output
) -> None:
    run = copy_run(finished_run(method), tmp_path)
    length, unit = SHORT[method].length, SHORT[method].LENGTH
    assert resume(run) == 0
    assert contents(run) == contents(finished_run(method))
    assert f"nothing to do: {length} {unit} are done\n" in capsys.readouterr().out


def test_train__reports_rounded_steps(tmp_path: Path, capsys: Output) -> None:
    run, settings = tmp_path / "run", PpoSettings(**VALUES | {"steps": 300})
    assert main(["--run", str(run), *options_of(settings)]) == 0
    assert "512 steps: 300 rounded up to whole updates\n" in capsys.readouterr().out
    assert [line["steps"] for line in metrics(run)] == [256, 512]
    assert resume(run, "--steps", "512") == 0
    assert "nothing to do: 512 steps are done\n" in capsys.readouterr().out


@pytest.mark.parametrize("method", METHODS)
def test_resume__with_more_steps_equals_a_longer_run(
    finished_run: Finished, method: str, tmp_path: Path
) -> None:
    """The learning rate is constant, and the first end has no rating."""
    whole: Any = SHORT[method]
    constant: Any = {} if method == "alphazero" else {"final_learning_rate": 1.0}
    whole = replace(whole, rate_every=0, **constant)
    shorter = {whole.LENGTH: 384 if method == "ppo" else 1}
    for name, settings in (("whole", whole), ("run", replace(whole, **shorter))):
        runs.begin(tmp_path / name, settings)
        assert runs.train(tmp_path / name)
    length = getattr(whole, whole.LENGTH)
    assert resume(tmp_path / "run", f"--{whole.LENGTH}", str(length)) == 0
    assert same_but_for_older_checkpoints(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("full_at", slow_except_first(["checkpoint", "rename", "last"]))
def test_resume__after_a_full_disk_makes_the_same_bytes(
    full_at: str,
    finished_run: Finished,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    """The disk is full at the second checkpoint, after 512 steps; then there is space again."""
    run = tmp_path / "run"
    fill_the_disk(monkeypatch, full_at, run)
    assert main(["--run", str(run), *options_of(SHORT["ppo"])]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "No space left on device" in error
    assert ("checkpoints/000000512.safetensors: not saved" in error) == (full_at != "last")
    kept = [done_of(path) for path in sorted((run / "checkpoints").iterdir())]
    assert kept == [0, 256]
    assert Policy.load(run / "last").tensors
    assert Policy.load(run / "best").tensors
    monkeypatch.undo()
    assert resume(run) == 0
    assert contents(run) == contents(finished_run("ppo"))


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, full_at: str, run: Path) -> None:
    """Make one write, or the rename, of the save after 512 steps fail with ENOSPC."""
    checkpoint = "000000512.safetensors"

    def refuse(name: str, refused: str) -> None:
        real = getattr(Path, name)

        def write(path: Path, *others: Any, **options: Any) -> Any:
            is_refused = re.fullmatch(re.escape(refused) + TEMP_SUFFIX, path.name)
            if is_refused and [line["steps"] for line in metrics(run)][-1:] == [512]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return real(path, *others, **options)

        monkeypatch.setattr(Path, name, write)

    if full_at == "rename":
        refuse("replace", checkpoint)
    else:
        refuse("open", "last" if full_at == "last" else checkpoint)


@pytest.mark.parametrize("method", slow_except_first(METHODS))
@pytest.mark.parametrize("part", ["tb", "policies"])
def test_train__names_its_folder_when_it_is_moved(
    method: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Before or after the metrics of the first update are written."""
    run, write = tmp_path / "run", Logs.write

    def move(logs: Any, *arguments: Any) -> None:
        steps = [partial(write, logs, *arguments), partial(run.rename, tmp_path / "moved")]
        for step in steps if part == "policies" else reversed(steps):
            step()

    monkeypatch.setattr(Logs, "write", move)
    assert main(["--run", str(run), *options_of(SHORT[method])]) == 1
    *progress, error = capsys.readouterr().err.splitlines()
    assert error.startswith(f"train: {run / part}/")
    assert error.endswith((": No such file or directory", ": no such policy file"))
    assert not any("Error" in line for line in progress), progress


@pytest.mark.parametrize("method", METHODS)
def test_resume__refuses_other_settings(
    finished_run: Finished, method: str, tmp_path: Path, capsys: Output
) -> None:
    run = copy_run(finished_run(method), tmp_path)
    before = contents(run, logs=True)
    seed, games = SHORT[method].seed, asdict(SHORT[method])["games"]
    assert resume(run, "--seed", "1", "--games", "64", "--width", str(SHORT[method].width)) == 1
    error = error_line(capsys)
    assert f"seed: expected {seed}, got 1; games: expected {games}, got" in error
    assert f"only {SHORT[method].LENGTH} may grow" in error
    other = METHODS[METHODS.index(method) - 1]
    assert resume(run, "--method", other) == 1
    assert f"--method: expected {method}, the method of {run}, got {other}" in error_line(capsys)
    assert contents(run, logs=True) == before
    assert resume(run, "--config", str(run / "config.toml")) == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 6", "version = 5", "run.version: expected 6, got 5: begin a new run"),
        ("[run]", "[runs]", "run.version: expected 6, got None"),
        ('method = "ppo"', 'method = "zero"', "run.method: expected td, ppo, alphazero, got"),
        ("rules = 2", "rules = 1", "layout.rules: expected 2, got 1"),
        ("actions = 1", "actions = 2", "layout.actions: expected 1, got 2"),
        ('inputs = "', 'inputs = "0', "layout.inputs: expected"),
        ("[layout]", "[layouts]", "layout.rules: expected 2, got None"),
        ("games = 8", "games = 16", "checkpoint"),
        ("width = 32", "width = 64", "checkpoint"),
    ],
)
def test_resume__refuses_an_incompatible_run(
    run: Path, capsys: Output, old: str, new: str, message: str
) -> None:
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = contents(run, logs=True)
    assert resume(run) == 1
    assert message in error_line(capsys)
    assert contents(run, logs=True) == before


def test_resume__refuses_another_ladder(run: Path, capsys: Output) -> None:
    path = newest_checkpoint(run)
    counters = state_of(path)
    counters["run"]["ladder"] = "0123456789abcdef"
    rewrite(path, json.dumps(counters))
    assert resume(run) == 1
    assert "ladder: expected the one with hash 0123456789abcdef, got" in error_line(capsys)


# New runs


@pytest.mark.parametrize("method", METHODS)
def test_run__starts_from_a_policy(method: str, tmp_path: Path) -> None:
    """The trained policy names the boards of that policy, which may be deleted later."""
    settings, start = SHORT[method], tmp_path / "start"
    board = {"splits": ["test", "nowhere", 3], "name": "x" * 9000}
    replace(random_policy(settings.sizes), training={"board": board}).save(start)
    little = {"ppo": {"steps": 128}, "td": {"updates": 1}, "alphazero": {"rounds": 1}}
    short: Any = {"start_from": str(start), "learning_rate": 1e-9, "rate_every": 0}
    short |= little[method]
    runs.begin(tmp_path / "run", replace(settings, **short))
    assert runs.train(tmp_path / "run")
    own = Policy.load(tmp_path / "run" / "last")
    for name, tensor in Policy.load(start).tensors.items():
        np.testing.assert_allclose(own.tensors[name], tensor, atol=1e-5)
    assert own.training["board"]["splits"] == ["test"]
    start.unlink()
    assert resume(tmp_path / "run") == 0


def test_train__refuses_wrong_settings_before_creating_a_folder(
    tmp_path: Path, capsys: Output
) -> None:
    start = tmp_path / "start"
    random_policy(LayerSizes(64, 16)).save(start)
    for method, option, value, message in (
        ("ppo", "--steps", "0", "steps: expected an integer from 1, got 0"),
        ("ppo", "--config", "nowhere.toml", "nowhere.toml"),
        ("ppo", "--start-from", "nowhere", "nowhere: no such policy file"),
        ("td", "--start-from", str(start), "start_from: expected layers of at most 8, 64 units, "),
    ):
        words = ["--run", str(tmp_path / "run"), *options_of(SHORT[method]), option, value]
        assert main(words) == 1
        assert message in error_line(capsys)
        assert not (tmp_path / "run").exists()


def test_train__refuses_folders_of_a_run_and_those_without_one(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    before = contents(run, logs=True)
    assert main(["--run", str(run)]) == 1
    assert f"{run}: expected an empty folder: resume the run, or choose" in error_line(capsys)
    assert contents(run, logs=True) == before
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert main(["--run", str(tmp_path / "file"), "--rate-every", "0"]) == 1
    assert str(tmp_path / "file") in error_line(capsys)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert resume(folder) == 1
        assert f"{folder}: no run folder: expected a config.toml in it" in error_line(capsys)
    assert main([]) == 2
    assert "expected --run FOLDER to begin a run, or --resume FOLDER to continue one" in error_line(
        capsys
    )
