"""Tests of `benchmarks/bench.py`: its table, and the counts behind its figures."""

import json
import sys
from pathlib import Path
from typing import Any

import numba
import pytest
from processes import ROOT

from tokaido_env import Batch, Game
from tokaido_env.gym import TokaidoDuoEnv

sys.path.insert(0, str(ROOT / "benchmarks"))

import bench
import bench_games
from bench import Result
from bench_rows import RATIOS, ROWS, Ratio, Row

FAST = ("state", "deepcopy", "game")

Output = pytest.CaptureFixture[str]


def figure() -> float:
    return 1.0


def test_table__has_median_range_and_verdict() -> None:
    row = Row("x", "something", "s", figure, 4.9, at_most=True)
    line = bench.table([Result(row, [9e6, 5.0, 1.0])]).splitlines()[-1]
    assert line == "| something | 1 | 5 | 1 – 9.00 M | s | ≤ 4.9 | missed |"


def test_rows__have_unique_keys_that_ratios_refer_to() -> None:
    keys = [row.key for row in ROWS]
    assert len(set(keys)) == len(keys)
    assert {key for ratio in RATIOS for key in (ratio.over, ratio.under)} <= set(keys)


def test_run__measures_rows_in_turn_and_discards_the_first() -> None:
    calls: list[str] = []

    def row(key: str, figures: list[float]) -> Row:
        rest = iter(figures)

        def once() -> float:
            calls.append(key)
            return next(rest)

        return Row(key, key, "s", once)

    rows = row("a", [99, 6, 8]), row("b", [99, 3, 2])
    results = bench.run(rows, (Ratio("a / b", "both", "a", "b"),), 2)
    assert calls == ["a", "b"] * 3
    assert [result.figures for result in results] == [[6, 8], [3, 2], [2, 4]]


def test_bench__leaves_out_rows_without_module_or_threads(capsys: Output) -> None:
    seen = []

    def threads() -> float:
        seen.append(numba.get_num_threads())
        return 1.0

    most = numba.config.NUMBA_NUM_THREADS
    rows = [Row(f"with {n}", f"row {n}", "s", threads, threads=n) for n in (1, most, most + 1)]
    rows.append(Row("absent", "absent", "s", figure, needs=("no_such_module",)))
    assert bench.main(["--runs", "1"], rows) == 0
    out = capsys.readouterr().out
    assert [f"| row {n} |" in out for n in (1, most, most + 1)] == [True, True, False]
    assert "absent" not in out
    assert seen == [1, most] * 2
    assert numba.get_num_threads() == most


def test_bench__prints_and_writes_real_rows(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "figures.json"
    assert bench.main(["--runs", "1", "--only", *FAST, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert {row["key"] for row in figures["rows"]} == set(FAST)
    assert all(row["median"] > 0 and len(row["figures"]) == 1 for row in figures["rows"])
    assert "| one state | 1 | 75 | 75 – 75 | bytes | ≤ 128 | met |" in out


class Counter:
    """Counter of an interface's calls, which it wraps."""

    def __init__(self) -> None:
        self.count = 0

    def wrap(self, patch: pytest.MonkeyPatch, owner: Any, name: str, count: Any) -> None:
        """Add `count(result, arguments)` at each call."""
        real = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            result = real(*arguments, **named)
            self.count += int(count(result, arguments))
            return result

        patch.setattr(owner, name, counted)


def deciders(turn: Any, arguments: Any) -> int:
    return int((turn.player >= 0).sum())


def one(result: Any, arguments: Any) -> int:
    return 1


# By the function of the row: owner and name of the wrapped method, and the count of a call.
COUNTED: dict[str, tuple[Any, str, Any]] = {
    "random_play": (Batch, "play", deciders),
    "stepping": (Batch, "step", deciders),
    "game_play": (Game, "play", one),
    "aec_play": (Game, "play", one),
    "gym_play": (TokaidoDuoEnv, "step", one),
}
OF_GAMES = [row for row in ROWS if row.measure.__qualname__.split(".")[0] in COUNTED]


@pytest.mark.parametrize("row", OF_GAMES, ids=lambda row: row.key)
def test_row__counts_every_step(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_games, "GAMES", 64)
    monkeypatch.setattr(bench_games, "_SECONDS", 0.01)
    row.measure()  # builds the batch
    counter = Counter()
    counter.wrap(monkeypatch, *COUNTED[row.measure.__qualname__.split(".")[0]])
    done = row.measure()
    assert isinstance(done, bench_games.Throughput)
    assert done.count == counter.count > 0


@pytest.mark.parametrize("spec", ["mcts:sims=30", "mcts:sims=20,rollout=full", "greedy"])
def test_searching__counts_simulations_or_decisions(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_games, "GAMES", 64)
    monkeypatch.setattr(bench_games, "_SEARCHED", 64)
    measure = bench_games.searching(spec)
    done = measure()
    batch = Batch(64, observation=None, autoreset=False)
    batch.reset(seed=0)
    for _ in range(60):
        batch.play("greedy")
    choices = (batch.masks(batch.all_games).sum(axis=1) > 1).sum()
    assert done.count == choices * {"mcts:sims=30": 30, "greedy": 1}.get(spec, 20)
    assert done.rate == done.count / done.seconds
