"""Checkpoints: a network, its optimizer and the random states, without any trainer."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import SMALL
from torch.optim import Adam

from tokaido_env.agents.network_inputs import N_AFTERSTATE, N_INPUTS
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.learn import checkpoint
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
    """A gradient step on positions drawn from PyTorch's random state."""
    moves = Moves(torch.rand(8, N_AFTERSTATE), torch.arange(8) % 4, torch.randint(N_ACTIONS, (8,)))
    scores, values, _ = network(torch.rand(4, N_INPUTS), moves)
    optimizer.zero_grad()
    (scores.square().sum() + values.sum()).backward()
    optimizer.step()


def taken(steps: int, network: PolicyNetwork, optimizer: Adam, **counters: Any) -> Checkpoint:
    moments = optimizer.state_dict()["state"]
    games = {"turns": np.arange(3), "luck": np.array([2**63], np.uint64)}
    counters |= {"run": {}}
    return Checkpoint(steps, network.state_dict(), moments, games, counters)


def weights(network: PolicyNetwork) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in network.state_dict().values()]


def test_a_learner_goes_on_from_a_checkpoint_as_if_nothing_had_been(tmp_path: Path) -> None:
    network, optimizer = learner()
    for _ in range(3):
        update(network, optimizer)
    write_checkpoint(tmp_path, taken(30, network, optimizer, name="é"))
    update(network, optimizer)
    drawn = np.random.random(3)  # noqa: NPY002  the state that SB3 draws from

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
    assert (np.random.random(3) == drawn).all()  # noqa: NPY002


def test_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    parts = learner()
    for steps in (5, 10, 100, 1000):
        write_checkpoint(tmp_path, taken(steps, *parts))
    assert [int(path.name) for path in checkpoints(tmp_path)] == [100, 1000]
    assert KEPT == 2


def test_half_deleted_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill comes when one file of the oldest is gone; what is left is swept the next time."""

    class Killed(BaseException):
        pass

    def killed(path: Path, **options: Any) -> None:
        if path.exists():
            (path / "state.json").unlink()
            raise Killed

    parts = learner()
    for steps in (5, 10):
        write_checkpoint(tmp_path, taken(steps, *parts))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.shutil, "rmtree", killed)
        with pytest.raises(Killed):
            write_checkpoint(tmp_path, taken(15, *parts))
    assert [read_checkpoint(path).done for path in checkpoints(tmp_path)] == [10, 15]
    write_checkpoint(tmp_path, taken(20, *parts))
    assert [path.name for path in checkpoints(tmp_path)] == ["000000015", "000000020"]


@pytest.mark.skipif(sys.platform != "linux", reason="open files have no names there")
def test_a_checkpoint_is_on_the_disk_before_its_name_and_loses_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, done = learner(), []
    for steps in (5, 10):
        write_checkpoint(tmp_path, taken(steps, *parts))
    fsync, replace, rmtree = os.fsync, Path.replace, shutil.rmtree

    def synced(handle: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append(f"{self.name} becomes {target.name}")
        return replace(self, target)

    def removed(path: Path, **options: Any) -> None:
        if path.exists():
            done.append(f"delete {path.name}")
        rmtree(path, **options)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr(checkpoint.shutil, "rmtree", removed)
    write_checkpoint(tmp_path, taken(15, *parts))
    files = ("learner.safetensors", "optimizer.safetensors", "games.npz", "state.json")
    assert done[1:] == [
        *(f"sync {name}" for name in (*files, "SHA256SUMS", "000000015.tmp")),
        *("000000015.tmp becomes 000000015", "sync checkpoints"),
        *("000000005 becomes 000000005.tmp", "sync checkpoints", "delete 000000005.tmp"),
    ]


def test_a_checkpoint_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file", encoding="utf-8")
    with pytest.raises(RunError, match="000000005: not saved: "):
        write_checkpoint(tmp_path, taken(5, *learner()))
