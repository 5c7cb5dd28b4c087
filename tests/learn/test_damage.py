"""Damaged checkpoints whose checksums were made anew: refused by place, before they are gone on."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fuzz_runs import resealed
from safetensors.torch import load_file, save_file

from tokaido_env.learn import run as runs
from tokaido_env.learn.settings_schema import RunError, explain_memory_errors

POINT = Path("checkpoints") / "000000256"


def check_refused(run: Path, message: str) -> None:
    resealed(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match=message) as refused:
        runs.train(run)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def put(where: str, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        *holders, key = where.split(".")
        for holder in holders:
            data = data[int(holder) if holder.isdigit() else holder]
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
        (put("numpy.2", -1), "numpy: expected 624 keys and a position in them, got position -1"),
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
            put("pool.snapshots.0", "9" * 5000),
            "pool: snapshots: expected the number of a snapshot, got '999",
        ),
        (put("pool.results", [7]), "pool: results: expected an object, got [7]"),
        (put("pool.results", {"greedy": {"points": "1", "games": 2}}), "'greedy': expected points"),
        (put("pool.results", {"greedy": {"points": 3, "games": 2}}), "'greedy': expected points"),
        (put("pool.results", {"greedy": {"points": 0, "games": 0}}), "'greedy': expected points"),
        (lambda state: state.pop("rng"), "no key 'rng': begin a new run"),
    ],
)
def test_counters(run: Path, change: Callable[[Any], None], message: str) -> None:
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
def test_numbers_of_the_learner(run: Path, name: str, key: str, change: Any, message: str) -> None:
    file = run / POINT / f"{name}.safetensors"
    tensors = load_file(file)
    own = next((each for each in tensors if each.endswith(key)), "1.step")
    tensors[own if key in own else key] = change(tensors[own]).clone()
    save_file(tensors, file)
    check_refused(run, message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("whole", np.ones(3, bool), "snapshot: whole: expected 8, got 3"),
        ("whole", np.ones((8, 8), bool), r"snapshot: whole: expected 8, got shape \(8, 8\)"),
        ("episode_starts", np.zeros(8), "episode_starts: expected the dtype of a snapshot"),
        ("episode_starts", None, "episode_starts: expected an array, got NoneType"),
    ],
)
def test_flags_of_the_games(run: Path, name: str, value: Any, message: str) -> None:
    file = run / POINT / "games.npz"
    with np.load(file) as arrays:
        games = dict(arrays)
    games = {key: array for key, array in games.items() if key != name}
    np.savez(file, **games | ({} if value is None else {name: value}))
    check_refused(run, message)


@pytest.mark.parametrize(
    "name",
    ["games.npz", "state.json", "optimizer.safetensors", "learner.safetensors", "SHA256SUMS"],
)
def test_what_is_no_file_or_endless_is_not_read(run: Path, name: str) -> None:
    file = run / POINT / name
    os.truncate(file, 2**40)
    with pytest.raises(RunError, match=f"{name}: expected at most 256 MiB"):
        runs.train(run)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(RunError, match=f"{name}: expected a file, got a pipe"):
        runs.train(run)


def test_a_part_that_is_no_folder_is_named(run: Path) -> None:
    shutil.rmtree(run / "policies")
    (run / "policies").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match="policies: expected a folder, got a file"):
        runs.train(run)


def test_metrics_as_large_as_a_disk_are_not_read(run: Path) -> None:
    os.truncate(run / "metrics.jsonl", 2**40)
    with pytest.raises(RunError, match=r"metrics\.jsonl: not a text file: too large: expected at"):
        runs.train(run)


def test_too_little_memory_is_told() -> None:
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        with (
            pytest.raises(RunError, match="runs/x: out of memory: lower"),
            explain_memory_errors("runs/x"),
        ):
            raise error
    with pytest.raises(RuntimeError, match="another"), explain_memory_errors("runs/x"):
        raise RuntimeError("another")
