"""Executors: which task runs when, and what is kept when one fails."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from networks import random_policy

from tokaido_env.agents import make
from tokaido_env.arena import executors
from tokaido_env.arena.executors import (
    AgentCache,
    Executor,
    SerialExecutor,
    base,
    check_executor,
    open_executor,
)
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import MatchState, _tasks, games_as_completed, play_match


class Counting(NamedTuple):
    """Returns its results slowly; may fail or end its process."""

    results: tuple[Any, ...]
    seconds: float = 0.0
    fails: bool = False
    ends: bool = False

    def run(self, make: Any) -> Iterator[Any]:
        for result in self.results:
            time.sleep(self.seconds)
            yield result
        if self.ends:
            os._exit(5)
        if self.fails:
            raise ZeroDivisionError("of nothing")

    def __str__(self) -> str:
        return f"task {self.results}"


class Who(NamedTuple):
    """Returns its process, and the agent that it is given."""

    def run(self, make: Any) -> Iterator[Any]:
        yield os.getpid(), id(make("greedy", ""))


def run(executor: Executor, tasks: Iterable[Any], into: list[Any]) -> None:
    """Append results as they come, so that they are there when an error follows."""
    for _, result in executor.map(tasks):
        into.append(result)


@pytest.fixture(scope="module")
def two() -> Iterator[Executor]:
    with open_executor("processes:2") as chosen:
        yield chosen


@pytest.fixture(params=["serial", "two"])
def executor(request: pytest.FixtureRequest) -> Any:
    return SerialExecutor() if request.param == "serial" else request.getfixturevalue("two")


def test_every_result_comes_with_the_number_of_its_task(executor: Executor) -> None:
    taken: dict[int, list[Any]] = {}
    for number, result in executor.map([Counting((10 * n, 10 * n + 1)) for n in range(7)]):
        taken.setdefault(number, []).append(result)
    assert taken == {n: [10 * n, 10 * n + 1] for n in range(7)}


def test_a_task_is_taken_when_a_worker_is_free(executor: Executor) -> None:
    """So that what is learnt from one task may change what the next one is."""
    asked, done = 0, list[int]()

    def tasks() -> Iterator[Counting]:
        nonlocal asked
        while asked < 6:
            assert asked - len(done) <= executor.workers
            asked += 1
            yield Counting((asked,))

    run(executor, tasks(), done)
    assert sorted(done) == [1, 2, 3, 4, 5, 6]


def test_after_a_failure_no_more_tasks_begin_and_no_result_is_lost(executor: Executor) -> None:
    run(executor, [Counting((0,)), Counting((0,))], [])  # both processes are there
    taken: list[Any] = []
    tasks = [Counting((1,)), Counting((2,), fails=True), *(Counting((n,), 0.05) for n in (3,) * 6)]
    error = ZeroDivisionError if isinstance(executor, SerialExecutor) else AgentFailed
    with pytest.raises(error, match="of nothing"):
        run(executor, tasks, taken)
    assert {1, 2} <= set(taken)
    assert len(taken) < 6
    run(executor, [Counting((4,))], taken)
    assert taken[-1] == 4


def test_of_several_failures_the_first_by_number_is_raised(two: Executor) -> None:
    taken: list[Any] = []
    with pytest.raises(AgentFailed, match="ZeroDivisionError: of nothing"):
        run(two, [Counting((1,), 0.3, fails=True), Counting((2,), ends=True)], taken)
    assert sorted(taken) == [1, 2]


def test_a_process_that_ends_is_reported_and_replaced(two: Executor) -> None:
    taken: list[Any] = []
    message = r"the process that played task \(1,\) ended with status 5: "
    with pytest.raises(AgentFailed, match=message):
        run(two, [Counting((1,), ends=True), Counting((2, 3), 0.2)], taken)
    assert sorted(taken) == [1, 2, 3]
    run(two, [Counting((4,)), Counting((5,))], taken)
    assert sorted(taken) == [1, 2, 3, 4, 5]


def test_processes_and_their_agents_stay_until_shutdown() -> None:
    seen: list[tuple[int, int]] = []
    with open_executor("processes:1") as executor:
        for _ in range(2):
            run(executor, [Who(), Who()], seen)
    assert len(set(seen)) == 1
    process = seen[0][0]
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_ctrl_c_yields_what_was_done_and_tasks_can_run_again(executor: Executor) -> None:
    class Interrupted(list[Any]):
        def append(self, result: Any) -> None:
            if result == 3:
                signal.raise_signal(signal.SIGINT)
            super().append(result)

    taken = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run(executor, [Counting((n, -n), 0.02) for n in range(1, 30)], taken)
    assert 3 in taken
    assert len(taken) < 40
    again: list[Any] = []
    run(executor, [Counting((100,)), Counting((101,))], again)  # nothing of the old tasks
    assert sorted(again) == [100, 101]


def test_the_policy_of_an_agent_that_plays_here_may_be_gone(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    random_policy(seed=0).save(path)
    agent = make(f"policy:{path}")
    path.unlink()
    assert len(play_match(agent, make("random"), 4, 0).games) == 2


def test_agents_are_made_once_and_the_oldest_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def count(spec: str) -> Any:
        made.append(spec)
        return make(spec)

    monkeypatch.setattr(base, "make", count)
    there = make("greedy")
    agents = AgentCache([there])
    assert agents("greedy") is there
    assert agents("random") is agents("random")
    specs = [f"mcts:sims={n}" for n in range(1, base._CACHED_AGENTS + 1)]
    for spec in specs:
        agents(spec)
    agents("random")
    assert made == ["random", *specs, "random"]


def test_a_policy_file_that_changes_while_it_is_used_is_an_error(tmp_path: Path) -> None:
    """Games that another process plays are those of the file that was there when they began."""
    path = tmp_path / "mine"
    random_policy(seed=0).save(path)
    agent, match_state = (
        make(f"policy:{path}"),
        MatchState(f"policy:{path}", "random", 200, 0, "shikoku"),
    )
    with open_executor("processes:1") as executor:
        for _ in games_as_completed(
            match_state, agent, make("random"), games=50, executor=executor
        ):
            random_policy(seed=1).save(path)
        expected = play_match(agent, make("random"), 200, 0)
        assert (match_state.to_match(50).games == expected.games[:25]).all()
        tasks = _tasks(match_state, agent, make("random"), None, 1)
        random_policy(seed=2).save(path)
        message = r"mine': expected SHA-256 \w+… of its policy file on .*, got another"
        with pytest.raises(AgentFailed, match=message):
            run(executor, tasks, [])


@pytest.mark.parametrize(
    "text", ["", "there", "serial:2", "processes:", "processes:0", "processes:x", "processes:99999"]
)
def test_what_names_no_executor_is_refused(text: str) -> None:
    expected = r"executor: expected serial, processes\[:N\] or ray\[:ADDRESS"
    with pytest.raises(ValueError, match=expected):
        check_executor(text)


def test_without_ray_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs ray: pip install '\.\[ray\]'"):
        check_executor("ray:auto")
