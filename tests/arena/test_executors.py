"""Tests of arena/executors: order of tasks, failures, interrupts, and caches of agents."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from networks import random_policy

from tokaido_env.agents import make
from tokaido_env.arena.executors import check_executor, open_executor
from tokaido_env.arena.executors.base import Executor, SerialExecutor, make_verified
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_match


class FakeTask(NamedTuple):
    """Yields results slowly; then may fail or end its process."""

    results: tuple[Any, ...]
    seconds: float = 0.0
    fails: bool = False
    exits: bool = False

    def run(self) -> Iterator[Any]:
        for result in self.results:
            time.sleep(self.seconds)
            yield result
        if self.exits:
            os._exit(5)
        if self.fails:
            raise ZeroDivisionError("of nothing")

    def __str__(self) -> str:
        return f"task {self.results}"


class IdentityTask(NamedTuple):
    """Yields the ids of its process and of its agent."""

    def run(self) -> Iterator[Any]:
        yield os.getpid(), id(make_verified("greedy"))


def run(executor: Executor, tasks: Iterable[Any], results: list[Any]) -> None:
    """Append results one by one, so that they are kept if an error follows."""
    for _, result in executor.map(tasks):
        results.append(result)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with open_executor("processes:2") as chosen:
        yield chosen


@pytest.fixture(params=["serial", "processes"])
def executor(request: pytest.FixtureRequest) -> Any:
    return SerialExecutor() if request.param == "serial" else request.getfixturevalue("processes")


def test_map__yields_each_result_with_the_number_of_its_task(executor: Executor) -> None:
    found: dict[int, list[Any]] = {}
    for number, result in executor.map([FakeTask((10 * n, 10 * n + 1)) for n in range(7)]):
        found.setdefault(number, []).append(result)
    assert found == {n: [10 * n, 10 * n + 1] for n in range(7)}


def test_map__takes_a_task_when_a_worker_is_free(executor: Executor) -> None:
    """So that a task may depend on the results of earlier ones."""
    taken, results = 0, list[int]()

    def tasks() -> Iterator[FakeTask]:
        nonlocal taken
        while taken < 6:
            assert taken - len(results) <= executor.workers
            taken += 1
            yield FakeTask((taken,))

    run(executor, tasks(), results)
    assert sorted(results) == [1, 2, 3, 4, 5, 6]


def test_map__starts_no_task_after_a_failure_and_loses_no_result(executor: Executor) -> None:
    run(executor, [FakeTask((0,)), FakeTask((0,))], [])  # starts both processes
    results: list[Any] = []
    tasks = [FakeTask((1,)), FakeTask((2,), fails=True), *(FakeTask((3,), 0.05) for _ in range(6))]
    error = ZeroDivisionError if isinstance(executor, SerialExecutor) else AgentFailed
    with pytest.raises(error, match="of nothing"):
        run(executor, tasks, results)
    assert {1, 2} <= set(results)
    assert len(results) < 6
    run(executor, [FakeTask((4,))], results)
    assert results[-1] == 4


def test_map__reports_and_replaces_a_process_that_ends(processes: Executor) -> None:
    results: list[Any] = []
    with pytest.raises(AgentFailed, match=r"the worker that played task \(1,\) was lost"):
        run(processes, [FakeTask((1,), exits=True), FakeTask((2, 3), 0.2)], results)
    run(processes, [FakeTask((4,)), FakeTask((5,))], results)
    assert sorted(results)[-2:] == [4, 5]


def test_map__yields_finished_results_at_ctrl_c_and_can_run_again(executor: Executor) -> None:
    class Interrupted(list[Any]):
        def append(self, result: Any) -> None:
            if result == 3:
                signal.raise_signal(signal.SIGINT)
            super().append(result)

    results = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run(executor, [FakeTask((n, -n), 0.02) for n in range(1, 30)], results)
    assert 3 in results
    assert len(results) < 40
    again: list[Any] = []
    run(executor, [FakeTask((100,)), FakeTask((101,))], again)  # no results of the old tasks
    assert sorted(again) == [100, 101]


def test_shutdown__ends_processes_that_kept_their_agents() -> None:
    found: list[tuple[int, int]] = []
    with open_executor("processes:1") as executor:
        for _ in range(2):
            run(executor, [IdentityTask(), IdentityTask()], found)
    assert len(set(found)) == 1
    process = found[0][0]
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_policy_file__that_changes_is_an_error_in_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    random_policy(seed=0).save(path)
    agent, random = make(f"policy:{path}"), make("random")
    match_state = MatchState(agent.spec, "random", 200, 0, "shikoku")
    with open_executor("processes:1") as executor:
        for _ in games_as_completed(match_state, agent, random, games=50, executor=executor):
            random_policy(seed=1).save(path)
        expected = play_match(agent, random, 200, 0)
        assert (match_state.to_match(50).games == expected.games[:25]).all()
    # Another worker would make another agent.
    with open_executor("processes:1") as executor, pytest.raises(AgentFailed, match="mine'"):
        play_match(agent, random, 200, 0, executor=executor)


@pytest.mark.parametrize(
    "text", ["", "there", "serial:2", "processes:", "processes:0", "processes:x", "processes:99999"]
)
def test_check_executor__refuses_an_unknown_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"^executor: "):
        check_executor(text)
