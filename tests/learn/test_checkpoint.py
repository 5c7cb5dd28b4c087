"""Checkpoints: atomic writes, exact restores, and refusal of damaged files."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import rewrite, state_of
from networks import SMALL
from short_run import Finished, copy_run, error_line, newest_checkpoint, resume
from torch.optim import Adam

from tokaido_env.core.state import STATE
from tokaido_env.features.network_inputs import N_INPUTS
from tokaido_env.learn import run as runs
from tokaido_env.learn.checkpoint import (
    KEPT,
    MAX_BYTES,
    Checkpoint,
    checkpoints,
    done_of,
    read_checkpoint,
    write_checkpoint,
)
from tokaido_env.learn.network import ValueNetwork
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.tensor_file import as_rows, read_tensors

Learner = tuple[ValueNetwork, Adam]
STATES = np.frombuffer(bytes(range(2 * STATE.itemsize)), STATE)


def learner() -> Learner:
    network = ValueNetwork(SMALL)
    return network, Adam(network.parameters(), lr=0.01)


def update(network: ValueNetwork, optimizer: Adam) -> None:
    """Take a gradient step on inputs drawn from PyTorch's random state."""
    values = network(torch.rand(4, N_INPUTS))
    optimizer.zero_grad()
    values.square().sum().backward()
    optimizer.step()


def checkpoint_of(
    steps: int, network: ValueNetwork, optimizer: Adam, **counters: Any
) -> Checkpoint:
    moments = optimizer.state_dict()["state"]
    games = {"turns": np.arange(3), "luck": np.array([2**63], np.uint64), "states": STATES}
    counters |= {"run": {}}
    return Checkpoint(steps, network.state_dict(), moments, games, counters)


def weights(network: ValueNetwork) -> list[bytes]:
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
    assert as_rows(found.games, {"states": STATES})["states"].tobytes() == STATES.tobytes()
    assert (np.random.random(3) == numbers).all()  # noqa: NPY002


def test_write_checkpoint__writes_the_same_bytes_of_the_same_state(tmp_path: Path) -> None:
    parts = learner()
    update(*parts)
    write_checkpoint(tmp_path, checkpoint_of(5, *parts))
    (path,) = checkpoints(tmp_path)
    before = path.read_bytes()
    write_checkpoint(tmp_path, read_checkpoint(path))
    assert path.read_bytes() == before


def test_write_checkpoint__keeps_the_newest_two(tmp_path: Path) -> None:
    parts = learner()
    for steps in (5, 10, 100, 1000):
        write_checkpoint(tmp_path, checkpoint_of(steps, *parts))
    assert [done_of(path) for path in checkpoints(tmp_path)] == [100, 1000]
    assert KEPT == 2


def test_write_checkpoint__reports_a_failed_write(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file", encoding="utf-8")
    with pytest.raises(RunError, match=r"000000005\.safetensors: not saved: .* from the start"):
        write_checkpoint(tmp_path, checkpoint_of(5, *learner()))


# Damaged files


Output = pytest.CaptureFixture[str]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    at = len(data) * 3 // 4
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "Error while deserializing"),
        (flipped, "changed: its contents"),
    ],
)
def test_resume__refuses_a_broken_checkpoint(
    finished_run: Finished,
    tmp_path: Path,
    capsys: Output,
    damage: Callable[[bytes], bytes],
    message: str,
) -> None:
    run = copy_run(finished_run("ppo"), tmp_path)
    path = newest_checkpoint(run)
    path.write_bytes(damage(path.read_bytes()))
    assert resume(run) == 1
    error = error_line(capsys)
    assert f"{path}: broken checkpoint: " in error
    assert message in error
    older = run / "checkpoints" / "000000512.safetensors"
    assert f"delete it to resume from {older}" in error
    if damage is flipped:
        path.unlink()  # as the message says
        assert resume(run) == 0


@pytest.mark.parametrize("more", [("ppo", "--steps", "1280"), ("alphazero", "--rounds", "4")])
def test_resume__refuses_a_flipped_bit_in_a_snapshot(
    more: tuple[str, str, str], finished_run: Finished, tmp_path: Path, capsys: Output
) -> None:
    """Longer training plays against snapshots."""
    run, rng = copy_run(finished_run(more[0]), tmp_path), random.Random(7)
    for path in (run / "policies").iterdir():
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    assert resume(run, *more[1:]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"train: {run / 'policies'}/0")
    assert "not a policy file: " in error
    assert more[0] == "alphazero" or error.endswith(": restore the file, or begin a new run")


# Damaged contents with a valid checksum


POINT = Path("checkpoints") / "000000256.safetensors"


def check_refused(run: Path, message: str) -> None:
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            put("numpy.position", 10**6),
            "state: numpy: position: expected an integer <= 624, got 1000000",
        ),
        (put("run.best_elo", float("nan")), "run: best_elo: expected a number"),
        (
            put("pool.slot_opponents.0", "python:subprocess:Popen,args=echo"),
            "pool: slot_opponents: expected the number of a snapshot or latest or greedy, got 'py",
        ),
        (put("pool.snapshots.0", "../../mine"), "state: pool: snapshots[0]: expected a text"),
        (put("pool.results", {"greedy": [3, 2]}), "results: expected at least as many games"),
        (put("pool.results", {"greedy": [0, 0]}), "pool: results[...][1]: expected a number > 0"),
        (lambda state: state.pop("rng"), "no key 'rng': delete it to resume from"),
    ],
)
def test_restore__refuses_invalid_counters(
    run: Path, change: Callable[[Any], None], message: str
) -> None:
    state = state_of(run / POINT)
    change(state)
    rewrite(run / POINT, json.dumps(state))
    check_refused(run, f"broken checkpoint: .*{re.escape(message)}")


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("network.value.bias", lambda t: t * np.nan, "network: value.bias: expected finite float"),
        ("adam.0.exp_avg", lambda t: t[:1], r"adam.0.exp_avg: expected finite float32"),
        ("adam.0.exp_avg_sq", lambda t: t - 1, r"adam.0.exp_avg_sq: expected numbers from 0"),
        ("adam.1.step", lambda t: None, r"adam.1: expected Adam's moments of one parameter"),
        ("games.same_opponent", lambda t: t[:3], "snapshot: same_opponent: expected 8, got 3"),
        ("games.states", lambda t: t[:, :5], "states: expected the dtype of a snapshot, got uint8"),
        ("games.states", lambda t: t | 0x55, "game 0: "),
        ("torch_rng", lambda t: t[:5], "broken checkpoint: RuntimeError"),
    ],
)
def test_restore__refuses_invalid_arrays(run: Path, key: str, change: Any, message: str) -> None:
    arrays = read_tensors(run / POINT, MAX_BYTES).arrays
    own = next(name for name in arrays if name.startswith(key[:7]) and name.endswith(key[7:]))
    with np.errstate(over="ignore"):
        rewrite(run / POINT, arrays={own: change(arrays[own])})
    check_refused(run, message)
