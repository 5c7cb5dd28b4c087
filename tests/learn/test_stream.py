"""Expert iteration as a stream: what is played is learnt from once, and the ledger tells all."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import rest_slow

from tokaido_env.agents import Agent, Policy
from tokaido_env.arena.executors import Executor, SerialExecutor, Task, open_executor
from tokaido_env.arena.executors.base import Result
from tokaido_env.learn import stream as module
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.zero import ZeroSettings, iterate, main, replay

TINY = ZeroSettings(
    **{"mode": "stream", "rounds": 3, "units": 2, "games": 6, "first_sims": 3, "sims": 3},
    **{"width": 16, "minibatch": 256, "gate_games": 12, "kept_rounds": 2},
)

Output = pytest.CaptureFixture[str]


def ledger(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]


def units(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "units").iterdir()}


def check_whole(run: Path, settings: ZeroSettings) -> None:
    """Each unit was learnt from as a new one once, in a round after that of who played it."""
    lines = ledger(run)
    new = [list(one["units"])[-settings.units :] for one in lines]
    learnt = [name for names in new for name in names]
    assert sorted(learnt) == sorted(units(run))
    assert len(set(name[:9] for name in learnt)) == settings.rounds * settings.units
    for number, names in enumerate(new, start=1):
        assert all(int(name[10:14]) < number for name in names)
        before = new[max(0, number - settings.kept_rounds) : number - 1]
        assert list(lines[number - 1]["units"]) == [n for names in before for n in names] + names
    assert len((run / "gate.jsonl").read_text().splitlines()) == settings.rounds
    assert replay(run) == settings.rounds


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that two processes played; not to be changed."""
    folder = tmp_path_factory.mktemp("stream") / "whole"
    told: list[dict[str, Any]] = []
    with open_executor("processes:2") as executor:
        policy = iterate(folder, TINY, executor, told.append)
    assert [one["round"] for one in told] == [1, 2, 3]
    assert all(one["units"] == 2 and one["lag"] >= 0 for one in told)
    assert policy.training["round"] in (1, 2, 3)
    return folder


def test_all_that_is_played_is_learnt_from_and_replays(finished: Path) -> None:
    check_whole(finished, TINY)


def test_a_run_that_is_there_does_nothing(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    told: list[Any] = []
    iterate(finished, TINY, report=told.append)
    assert not told
    assert before == {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()}


def test_more_rounds_go_on(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    more = replace(TINY, rounds=4)
    iterate(run, more)
    check_whole(run, more)
    assert ledger(run)[:3] == ledger(finished)
    assert units(finished).items() <= units(run).items()


def test_a_run_stays_in_its_mode(finished: Path) -> None:
    with pytest.raises(RunError, match="cannot go on with other settings: mode"):
        iterate(finished, replace(TINY, mode="rounds"))


class Leaves(SerialExecutor):
    """An executor that is stopped after some units; the newest is done twice."""

    def __init__(self, after: int) -> None:
        self.left = after

    def map(self, tasks: Iterable[Task], agents: Sequence[Agent] = ()) -> Iterator[Result]:
        for part in super().map(tasks, agents):
            yield part
            yield part
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


@pytest.mark.parametrize("after", rest_slow([3, 1, 4]))
def test_what_was_played_before_a_stop_is_not_played_again(tmp_path: Path, after: int) -> None:
    run = tmp_path / "run"
    executor: Executor = Leaves(after)
    with pytest.raises(KeyboardInterrupt):
        iterate(run, TINY, executor)
    before = units(run)
    assert len(before) == after
    iterate(run, TINY)
    assert before.items() <= units(run).items()
    check_whole(run, TINY)


def test_a_learner_that_fails_ends_the_run_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Any:
        raise RunError("no idea")

    with monkeypatch.context() as patch:
        patch.setattr(module, "learnt", fail)
        with pytest.raises(RunError, match="no idea"):
            iterate(tmp_path / "run", TINY)
    iterate(tmp_path / "run", TINY)
    check_whole(tmp_path / "run", TINY)


def test_a_policy_that_is_not_in_the_ledger_is_learnt_again(finished: Path, tmp_path: Path) -> None:
    """Killed between the two: nobody has played by it yet."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for name in ("ledger.jsonl", "gate.jsonl"):
        lines = (run / name).read_text().splitlines(keepends=True)
        (run / name).write_text("".join(lines[:2]))
    iterate(run, TINY)
    check_whole(run, TINY)
    assert units(run) == units(finished)


@pytest.mark.slow
def test_a_driver_that_is_killed_in_the_middle_goes_on(tmp_path: Path) -> None:
    """`kill -9` once a policy is there and units wait; the same command goes on."""
    run = tmp_path / "run"
    settings = ["--mode=stream", "--rounds=3", "--units=2", "--games=6", "--first-sims=3"]
    settings += ["--sims=3", "--width=16", "--minibatch=256", "--gate-games=12", "--kept-rounds=2"]
    command = ["-m", "tokaido_env.learn.zero", f"--run={run}", "--executor=processes:2"]
    with subprocess.Popen([sys.executable, *command, *settings]) as driver:
        until = time.monotonic() + 300
        while not (run / "ledger.jsonl").is_file() and time.monotonic() < until:
            time.sleep(0.02)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    before = units(run)
    assert (run / "ledger.jsonl").is_file()
    assert main([f"--run={run}", "--executor=serial", *settings]) == 0
    check_whole(run, TINY)
    assert all(units(run)[name] == data for name, data in before.items() if name.endswith("npz"))
    assert Policy.load(run / "policies" / "0003").training["round"] == 3


def test_the_console_has_a_row_for_each_round(tmp_path: Path, capsys: Output) -> None:
    settings = ["--mode=stream", "--rounds=2", "--units=1", "--games=2", "--first-sims=2"]
    settings += ["--sims=2", "--width=16", "--minibatch=64", "--gate-games=2"]
    assert main([f"--run={tmp_path / 'run'}", *settings]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["round", "units", "positions", "positions/s", "samples/position"]
    assert (first.split()[:2], second.split()[:2]) == (["1", "1"], ["2", "1"])
    assert " passed " in second
    assert list((tmp_path / "run" / "tb").iterdir())
