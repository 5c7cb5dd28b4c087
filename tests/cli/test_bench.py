"""The table of speeds: how it is made from figures; the figures themselves are no test."""

import json
from pathlib import Path
from typing import Any

import numba
import pytest

from tokaido_env import Batch, Game
from tokaido_env.__main__ import main
from tokaido_env.cli import bench, bench_games
from tokaido_env.cli.bench import Result
from tokaido_env.cli.bench_processes import child
from tokaido_env.cli.bench_rows import RATIOS, ROWS, Ratio, Row
from tokaido_env.core.actions import IDS
from tokaido_env.gym import TokaidoDuoEnv

FAST = ("state", "deepcopy", "game")


def figure() -> float:
    return 1.0


def test_the_median_and_the_spread_are_told() -> None:
    row = Row("x", "something", "things/s", figure, budget=2e6)
    lines = bench.table([Result(row, [3e6, 1e6, 2.5e6])]).splitlines()
    assert lines[-1] == ("| something | 1 | 2.50 M | 1.00 M – 3.00 M | things/s | ≥ 2.00 M | met |")


@pytest.mark.parametrize(
    ("budget", "at_most", "verdict"),
    [(5.0, False, True), (5.1, False, False), (5.0, True, True), (4.9, True, False)],
)
def test_a_budget_is_met_or_missed(budget: float, at_most: bool, verdict: bool) -> None:
    row = Row("x", "something", "s", figure, budget, at_most)
    assert Result(row, [9.0, 5.0, 1.0]).met is verdict
    assert ("met |" in bench.table([Result(row, [5.0])])) is verdict


def test_a_row_without_a_budget_has_no_verdict() -> None:
    result = Result(Row("x", "something", "s", figure), [1.0])
    assert result.met is None
    assert bench.table([result]).endswith("| s |  |  |")


def test_every_budget_has_a_row() -> None:
    budgets = {row.key: row.budget for row in (*ROWS, *RATIOS) if row.budget is not None}
    assert budgets == {
        "random.1": 18e6,
        "random.2": 33e6,
        "pool / random": 0.93,
        "pool / random, 2": 0.93,
        "block / float32": 0.6,
        "copied / float32": 0.85,
        "board": 2.0,
        "float32.1": 7e6,
        "float32.2": 13e6,
        "game": 150e3,
        "env": 100e3,
        "env / connect_four": 8.0,
        "mcts.4000.1": 1.5e6,
        "mcts.full.1": 80e3,
        "deepcopy": 50.0,
        "ppo.kernel / free": 0.95,
        "import": 0.4,
        "first.warm": 0.8,
        "first.cold": 12.0,
        "state": 128.0,
    }


def test_keys_are_unique_and_ratios_are_of_rows() -> None:
    keys = [row.key for row in ROWS]
    assert len(set(keys)) == len(keys)
    assert {key for ratio in RATIOS for key in (ratio.over, ratio.under)} <= set(keys)


def test_runs_are_in_turn_and_the_first_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def measure(key: str, figures: list[float]) -> Row:
        rest = iter(figures)

        def once() -> float:
            calls.append(key)
            return next(rest)

        return Row(key, key, "s", once)

    monkeypatch.setattr(bench, "ROWS", (measure("a", [99, 6, 8]), measure("b", [99, 3, 2])))
    monkeypatch.setattr(bench, "RATIOS", (Ratio("a / b", "both", "a", "b"),))
    results = bench.run(2, None)
    assert calls == ["a", "b"] * 3
    assert [result.figures for result in results] == [[6, 8], [3, 2], [2, 4]]


def test_threads_are_set_for_a_row_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def threads() -> float:
        seen.append(numba.get_num_threads())
        return 1.0

    most = numba.config.NUMBA_NUM_THREADS
    rows = [Row(f"with {n}", "x", "s", threads, threads=n) for n in (1, most, most + 1)]
    monkeypatch.setattr(bench, "ROWS", tuple(rows))
    assert [result.row.key for result in bench.run(1, None)] == ["with 1", f"with {most}"]
    assert seen == [1, most] * 2
    assert numba.get_num_threads() == most


def test_rows_that_need_what_is_missing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (Row("a", "a", "s", figure, needs=("no_such_module",)), Row("b", "b", "s", figure))
    monkeypatch.setattr(bench, "ROWS", rows)
    assert [result.row.key for result in bench.run(1, None)] == ["b"]


def test_real_rows_give_a_table_and_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    assert main(["bench", "--runs", "1", "--only", *FAST, "--json", str(file)]) == 0
    told = capsys.readouterr().out
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert {row["key"] for row in figures["rows"]} == set(FAST)
    assert all(row["median"] > 0 and len(row["figures"]) == 1 for row in figures["rows"])
    state = next(row for row in figures["rows"] if row["key"] == "state")
    assert (state["median"], state["met"], state["unit"]) == (75.0, True, "bytes")
    assert figures["machine"]["versions"]["numba"] == numba.__version__
    assert "| one state | 1 | 75 | 75 – 75 | bytes | ≤ 128 | met |" in told
    assert told.startswith(f"## {figures['date']}\n\n{figures['machine']['processor']}, ")
    assert f"numba {numba.__version__}, " in told


class Counter:
    """Counts what an interface does, by wrapping it."""

    def __init__(self) -> None:
        self.count = 0

    def wrap(self, patch: pytest.MonkeyPatch, owner: Any, name: str, seen: Any) -> None:
        """Add `seen(result, arguments)` at each call."""
        real = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            result = real(*arguments, **named)
            self.count += int(seen(result, arguments))
            return result

        patch.setattr(owner, name, counted)


def deciders(turn: Any, arguments: Any) -> int:
    return int((turn.player >= 0).sum())


def one(result: Any, arguments: Any) -> int:
    return 1


# By the function of the row: what is wrapped, and how much a call of it does.
COUNTED: dict[str, tuple[Any, str, Any]] = {
    "random_play": (Batch, "play", deciders),
    "stepping": (Batch, "step", deciders),
    "game_play": (Game, "play", one),
    "aec_play": (Game, "play", one),
    "gym_play": (TokaidoDuoEnv, "step", one),
    "open_spiel_play": (Game, "play", lambda _, arguments: arguments[0].events()[-1] in IDS),
}
OF_GAMES = [row for row in ROWS if row.measure.__qualname__.split(".")[0] in COUNTED]


@pytest.mark.parametrize("row", OF_GAMES, ids=lambda row: row.key)
def test_a_row_counts_what_was_done(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    if row.key in NOT_OURS:
        pytest.skip("the game of another library")
    for module in row.needs:
        pytest.importorskip(module)
    monkeypatch.setattr(bench_games, "GAMES", 64)
    row.measure()  # what is made once
    counter = Counter()
    counter.wrap(monkeypatch, *COUNTED[row.measure.__qualname__.split(".")[0]])
    done = row.measure()
    assert isinstance(done, bench_games.Done)
    assert done.count == counter.count > 0


NOT_OURS = ("connect_four", "pyspiel.backgammon", "pyspiel.tensor")


@pytest.mark.parametrize("spec", ["mcts:sims=30", "mcts:sims=20,rollout=full", "greedy"])
def test_simulations_and_decisions_are_counted(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each position with a choice as many as the spec says."""
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--runs", "0"], "--runs: expected 1 or more, got 0"),
        (["--only", "nothing"], "--only: expected one of random.1, random.2, "),
    ],
)
def test_wrong_arguments_are_told(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 1
    assert told in capsys.readouterr().err


def test_a_failing_process_is_told_with_its_reason() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        child("1 / 0")
