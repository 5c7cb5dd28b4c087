"""Checkpoints: atomic writes, exact restores, and refusal of damaged files."""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import write_state
from fuzz_runs import resealed
from networks import SMALL
from safetensors.torch import load_file, save_file
from short_run import (
    CHECKPOINT_FILES,
    METHODS,
    Finished,
    copy_run,
    error_line,
    newest_checkpoint,
    resume,
)
from torch.optim import Adam

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.network_inputs import N_AFTERSTATE, N_INPUTS
from tokaido_env.learn import checkpoint, run as runs
from tokaido_env.learn.checkpoint import (
    KEPT,
    Checkpoint,
    checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from tokaido_env.learn.network import Moves, PolicyNetwork
from tokaido_env.learn.settings_schema import RunError

Learner = tuple[PolicyNetwork, Adam]


def learner() -> Learner:
    network = PolicyNetwork(SMALL)
    return network, Adam(network.parameters(), lr=0.01)


def update(network: PolicyNetwork, optimizer: Adam) -> None:
    """Take a gradient step on inputs drawn from PyTorch's random state."""
    moves = Moves(torch.rand(8, N_AFTERSTATE), torch.arange(8) % 4, torch.randint(N_ACTIONS, (8,)))
    scores, values = network(torch.rand(4, N_INPUTS), moves)
    optimizer.zero_grad()
    (scores.square().sum() + values.sum()).backward()
    optimizer.step()


def checkpoint_of(
    steps: int, network: PolicyNetwork, optimizer: Adam, **counters: Any
) -> Checkpoint:
    moments = optimizer.state_dict()["state"]
    games = {"turns": np.arange(3), "luck": np.array([2**63], np.uint64)}
    counters |= {"run": {}}
    return Checkpoint(steps, network.state_dict(), moments, games, counters)


def weights(network: PolicyNetwork) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in network.state_dict().values()]


def test_checkpoint__restores_learner_and_random_states(tmp_path: Path) -> None:
    network, optimizer = learner()
    for _ in range(3):
        update(network, optimizer)
    write_checkpoint(tmp_path, checkpoint_of(30, network, optimizer, name="é"))
    update(network, optimizer)
    numbers = np.random.random(3)  # noqa: NPY002  the state that SB3 draws from

    other, its_optimizer = learner()
    (path,) = checkpoints(tmp_path)
    found = read_checkpoint(path)
    other.load_state_dict(found.weights)
    its_optimizer.load_state_dict(its_optimizer.state_dict() | {"state": found.moments})
    assert (found.done, found.counters["name"]) == (30, "é")
    assert found.games["turns"].tolist() == [0, 1, 2]
    assert found.games["luck"].dtype == np.uint64
    assert weights(other) != weights(network)
    update(other, its_optimizer)
    assert weights(other) == weights(network)
    sums = (path / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    for digest, name in (line.split("  ") for line in sums):
        assert hashlib.sha256((path / name).read_bytes()).hexdigest() == digest
    assert (np.random.random(3) == numbers).all()  # noqa: NPY002


def test_write_checkpoint__keeps_the_newest_two(tmp_path: Path) -> None:
    parts = learner()
    for steps in (5, 10, 100, 1000):
        write_checkpoint(tmp_path, checkpoint_of(steps, *parts))
    assert [int(path.name) for path in checkpoints(tmp_path)] == [100, 1000]
    assert KEPT == 2


def test_write_checkpoint__killed_while_deleting_leaves_whole_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill after one file of the oldest is deleted; the next write deletes the rest."""

    class Killed(BaseException):
        pass

    def killed(path: Path, **options: Any) -> None:
        if path.exists():
            (path / "state.json").unlink()
            raise Killed

    parts = learner()
    for steps in (5, 10):
        write_checkpoint(tmp_path, checkpoint_of(steps, *parts))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.shutil, "rmtree", killed)
        with pytest.raises(Killed):
            write_checkpoint(tmp_path, checkpoint_of(15, *parts))
    assert [read_checkpoint(path).done for path in checkpoints(tmp_path)] == [10, 15]
    write_checkpoint(tmp_path, checkpoint_of(20, *parts))
    assert [path.name for path in checkpoints(tmp_path)] == ["000000015", "000000020"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/fd")
def test_write_checkpoint__flushes_before_renaming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, done = learner(), []
    for steps in (5, 10):
        write_checkpoint(tmp_path, checkpoint_of(steps, *parts))
    fsync, replace, rmtree = os.fsync, Path.replace, shutil.rmtree

    def flushed(handle: int) -> None:
        done.append(f"flush {Path(f'/proc/self/fd/{handle}').readlink().name}")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append(f"rename {self.name} to {target.name}")
        return replace(self, target)

    def removed(path: Path, **options: Any) -> None:
        if path.exists():
            done.append(f"delete {path.name}")
        rmtree(path, **options)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr(checkpoint.shutil, "rmtree", removed)
    write_checkpoint(tmp_path, checkpoint_of(15, *parts))
    files = ("learner.safetensors", "optimizer.safetensors", "games.npz", "state.json")
    assert done[1:] == [
        *(f"flush {name}" for name in (*files, "SHA256SUMS", "000000015.tmp")),
        *("rename 000000015.tmp to 000000015", "flush checkpoints"),
        *("rename 000000005 to 000000005.tmp", "flush checkpoints", "delete 000000005.tmp"),
    ]


def test_write_checkpoint__reports_a_failed_write(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file", encoding="utf-8")
    with pytest.raises(RunError, match="000000005: not saved: "):
        write_checkpoint(tmp_path, checkpoint_of(5, *learner()))


# Damaged files


Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("how", ["cut", "missing", "flipped"])
@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_resume__refuses_a_broken_checkpoint(
    finished_run: Finished, tmp_path: Path, capsys: Output, name: str, how: str
) -> None:
    run = copy_run(finished_run("ppo"), tmp_path)
    path = newest_checkpoint(run) / name
    whole = bytearray(path.read_bytes())
    path.write_bytes(whole[: len(whole) // 2])
    if how == "flipped":
        whole[len(whole) * 3 // 4] ^= 1
        path.write_bytes(whole)
    if how == "missing":
        path.unlink()
    assert resume(run) == 1
    error = error_line(capsys)
    assert f"{path.parent}: broken checkpoint: " in error
    assert f"delete it to resume from {run / 'checkpoints' / '000000512'}" in error
    if how == "flipped":
        assert "changed: its SHA-256 is not the one in SHA256SUMS" in error
        assert name in error
        if name == CHECKPOINT_FILES[0]:
            shutil.rmtree(path.parent)  # as the message says
            assert resume(run) == 0


@pytest.mark.parametrize("method", METHODS)
def test_resume__refuses_a_checkpoint_without_a_counter(
    finished_run: Finished, method: str, tmp_path: Path, capsys: Output
) -> None:
    run = copy_run(finished_run(method), tmp_path)
    path = newest_checkpoint(run) / "state.json"
    counters = json.loads(path.read_text(encoding="utf-8"))
    for key in counters:
        write_state(path.parent, json.dumps({k: v for k, v in counters.items() if k != key}))
        assert resume(run) == 1
        assert "broken checkpoint" in error_line(capsys)


# Damaged files with valid checksums


POINT = Path("checkpoints") / "000000256"


def check_refused(run: Path, message: str) -> None:
    resealed(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match=message) as refused:
        runs.train(run)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def put(path: str, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        *parents, key = path.split(".")
        for parent in parents:
            data = data[int(parent) if parent.isdigit() else parent]
        data[int(key) if key.isdigit() else key] = value

    return change


RATING = {"agent": "x", "elo": 1.0, "ci95": [0.0, 2.0], "games": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            put("numpy.2", 10**6),
            "numpy: expected 624 keys and a position in them, got position 1000000",
        ),
        (put("numpy.1", [1, 2]), "numpy: expected 624 keys and a position in them"),
        (put("updates", "x"), "state.json: updates: expected an integer from 0, got 'x'"),
        (put("run.best_elo", float("nan")), "run: best_elo: expected a number"),
        (put("run.rating", RATING | {"elo": "x"}), "state.json: run: rating.elo: expected a num"),
        (put("run.rating", [1]), "state.json: run: rating: expected an object"),
        (
            put("pool.slot_opponents", "latest"),
            "pool: slot_opponents: expected a list, got 'latest'",
        ),
        (
            put("pool.slot_opponents.0", "python:subprocess:Popen,args=echo"),
            "pool: slot_opponents: expected the number of a snapshot or latest or greedy, got 'py",
        ),
        *(
            (
                put("pool.snapshots.0", name),
                "pool: snapshots: expected the number of a snapshot, got",
            )
            for name in ("../../mine", "1 ", "\x1b" * 10**6, "9" * 5000, 7, ["1"])
        ),
        (put("pool.results", [7]), "pool: results: expected an object, got [7]"),
        (put("pool.results", {"greedy": {"points": "1", "games": 2}}), "'greedy': expected points"),
        (put("pool.results", {"greedy": {"points": 3, "games": 2}}), "'greedy': expected points"),
        (put("pool.results", {"greedy": {"points": 0, "games": 0}}), "'greedy': expected points"),
        (lambda state: state.pop("rng"), "no key 'rng': begin a new run"),
    ],
)
def test_restore__refuses_invalid_counters(
    run: Path, change: Callable[[Any], None], message: str
) -> None:
    file = run / POINT / "state.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    change(state)
    file.write_text(json.dumps(state), encoding="utf-8")
    check_refused(run, f"256: broken checkpoint: .*{re.escape(message)}")


@pytest.mark.parametrize(
    ("name", "key", "change", "message"),
    [
        (
            "learner",
            "value.1.bias",
            lambda t: t * torch.nan,
            r"value.1.bias: expected finite float32",
        ),
        (
            "learner",
            "against.bias",
            lambda t: t * torch.nan,
            "against others: value.1.bias: expected finite float32",
        ),
        ("learner", "move.weight", lambda t: t + 3e38, "learner.safetensors: weights so large"),
        ("optimizer", "0.exp_avg", lambda t: t[:1].clone(), r"0.exp_avg: expected finite float32"),
        ("optimizer", "0.exp_avg_sq", lambda t: t - 1, r"0.exp_avg_sq: expected numbers from 0"),
        ("optimizer", "1.step", lambda t: t * torch.inf, r"1.step: expected finite float32"),
        (
            "optimizer",
            "99.step",
            lambda t: t,
            "optimizer.safetensors: 99: expected Adam",
        ),
    ],
)
def test_restore__refuses_invalid_tensors(
    run: Path, name: str, key: str, change: Any, message: str
) -> None:
    file = run / POINT / f"{name}.safetensors"
    tensors = load_file(file)
    own = next((each for each in tensors if each.endswith(key)), "1.step")
    tensors[own if key in own else key] = change(tensors[own]).clone()
    save_file(tensors, file)
    check_refused(run, message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("same_opponent", np.ones(3, bool), "snapshot: same_opponent: expected 8, got 3"),
        ("same_opponent", np.ones((8, 8), bool), r"same_opponent: expected 8, got shape \(8, 8\)"),
        ("episode_starts", np.zeros(8), "episode_starts: expected the dtype of a snapshot"),
        ("episode_starts", None, "episode_starts: expected an array, got NoneType"),
    ],
)
def test_restore__refuses_invalid_game_flags(
    run: Path, name: str, value: Any, message: str
) -> None:
    file = run / POINT / "games.npz"
    with np.load(file) as arrays:
        games = dict(arrays)
    games = {key: array for key, array in games.items() if key != name}
    np.savez(file, **games | ({} if value is None else {name: value}))
    check_refused(run, message)


@pytest.mark.parametrize("name", ["games.npz", "SHA256SUMS"])
def test_restore__refuses_huge_and_special_files(run: Path, name: str) -> None:
    file = run / POINT / name
    os.truncate(file, 2**40)
    with pytest.raises(RunError, match=f"{name}: expected at most 256 MiB"):
        runs.train(run)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(RunError, match=f"{name}: expected a file, got a pipe"):
        runs.train(run)


def test_restore__refuses_a_file_in_place_of_a_folder(run: Path) -> None:
    shutil.rmtree(run / "policies")
    (run / "policies").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match="policies: expected a folder, got a file"):
        runs.train(run)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"pool": ' + "9" * 5000 + "}", "[]"])
def test_restore__reports_a_broken_state_in_one_line(
    run: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = run / "checkpoints" / "000000256" / "state.json"
    write_state(state.parent, text)
    assert resume(run, "--steps", "512") == 1
    error = capsys.readouterr().err
    assert f"{state.parent}: broken checkpoint: " in error
    assert error.count("\n") == 1
