"""Crews: who does units, in which order, and what is kept when one fails."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from networks import random_policy

from tokaido_env.agents import make
from tokaido_env.arena import crew as module, crews
from tokaido_env.arena.crew import Agents, Crew, Here
from tokaido_env.arena.crews import check_crew, open_crew
from tokaido_env.arena.playing import AgentFailed
from tokaido_env.arena.tournament import Sheet, _units, finished_games, play_match
from tokaido_env.arena.workers import Processes


class Counting(NamedTuple):
    """Gives what it is to give, slowly; may fail or end its process."""

    parts: tuple[Any, ...]
    seconds: float = 0.0
    fails: bool = False
    ends: bool = False

    def run(self, make: Any) -> Iterator[Any]:
        for part in self.parts:
            time.sleep(self.seconds)
            yield part
        if self.ends:
            os._exit(5)
        if self.fails:
            raise ZeroDivisionError("of nothing")

    def __str__(self) -> str:
        return f"unit {self.parts}"


class Who(NamedTuple):
    """Tells its process, and the agent that it is given."""

    def run(self, make: Any) -> Iterator[Any]:
        yield os.getpid(), id(make("greedy", ""))


def run(crew: Crew, units: Iterable[Any], take: Callable[[int, Any], None]) -> None:
    for number, part in crew.run(units):
        take(number, part)


@pytest.fixture(scope="module")
def two() -> Iterator[Crew]:
    with open_crew("processes:2") as chosen:
        yield chosen


@pytest.fixture(params=["here", "two"])
def crew(request: pytest.FixtureRequest) -> Any:
    return Here() if request.param == "here" else request.getfixturevalue("two")


def test_every_part_of_every_unit_is_handed_over_under_its_number(crew: Crew) -> None:
    taken: dict[int, list[Any]] = {}
    units = [Counting((10 * n, 10 * n + 1)) for n in range(7)]
    run(crew, units, lambda number, part: taken.setdefault(number, []).append(part))
    assert taken == {n: [10 * n, 10 * n + 1] for n in range(7)}


def test_units_are_asked_for_when_there_is_somebody_to_do_them(crew: Crew) -> None:
    """So that what is learnt from one unit may change what the next one is."""
    asked, done = 0, 0

    def units() -> Iterator[Counting]:
        nonlocal asked
        while asked < 6:
            assert asked - done <= crew.workers
            asked += 1
            yield Counting((asked,))

    def take(number: int, part: Any) -> None:
        nonlocal done
        done += 1

    run(crew, units(), take)
    assert asked == done == 6


def test_after_a_failure_no_more_units_are_begun_and_nothing_done_is_lost(crew: Crew) -> None:
    run(crew, [Counting((0,)), Counting((0,))], lambda number, part: None)  # both are there
    taken: list[Any] = []
    failing = Counting((2,), fails=True)
    units = [Counting((1,)), failing, *(Counting((n,), 0.05) for n in range(3, 9))]
    error = ZeroDivisionError if isinstance(crew, Here) else AgentFailed
    with pytest.raises(error, match="of nothing"):
        run(crew, units, lambda number, part: taken.append(part))
    assert {1, 2} <= set(taken)
    assert len(taken) < 6
    run(crew, units[2:4], lambda number, part: taken.append(part))
    assert {3, 4} <= set(taken)


def test_of_several_failures_the_first_by_number_is_told(two: Crew) -> None:
    units = [Counting((1,), 0.3, fails=True), Counting((2,), fails=True)]
    taken: list[Any] = []
    with pytest.raises(AgentFailed) as error:
        run(two, units, lambda number, part: taken.append(number))
    assert "ZeroDivisionError" in str(error.value)
    assert sorted(taken) == [0, 1]


def test_a_process_that_ends_is_told_of_and_replaced(two: Crew) -> None:
    taken: list[Any] = []
    message = r"the process that played unit \(1,\) ended with status 5: "
    with pytest.raises(AgentFailed, match=message):
        run(two, [Counting((1,), ends=True)], lambda number, part: taken.append(part))
    assert taken == [1]
    run(two, [Counting((2,)), Counting((3,))], lambda number, part: taken.append(part))
    assert sorted(taken) == [1, 2, 3]


def test_processes_and_their_agents_stay_until_the_crew_is_closed() -> None:
    told: list[tuple[int, int]] = []
    with open_crew("processes:1") as crew:
        for _ in range(2):
            run(crew, [Who(), Who()], lambda number, part: told.append(part))
    assert len(set(told)) == 1
    process = told[0][0]
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_ctrl_c_hands_over_what_was_done_and_the_crew_goes_on(crew: Crew) -> None:
    taken: list[Any] = []

    def take(number: int, part: Any) -> None:
        if part == 3:
            signal.raise_signal(signal.SIGINT)
        taken.append(part)

    with pytest.raises(KeyboardInterrupt):
        run(crew, [Counting((n,), 0.02) for n in range(1, 30)], take)
    assert len(taken) < 20
    assert 3 in taken
    run(crew, [Counting((100,))], take)
    assert taken[-1] == 100


def test_after_ctrl_c_nothing_of_the_old_units_is_taken_for_the_new(
    two: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C came while a message was being read: its process is still at work."""
    taken: list[Any] = []

    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Processes, "_received", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(two, [Counting((100, 101, 102), 0.1)], lambda number, part: None)
    run(two, [Counting((1,)), Counting((2,))], lambda number, part: taken.append(part))
    assert sorted(taken) == [1, 2]


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

    monkeypatch.setattr(module, "make", count)
    there = make("greedy")
    agents = Agents([there])
    assert agents("greedy") is there
    assert agents("random") is agents("random")
    specs = [f"mcts:sims={n}" for n in range(1, module._KEPT + 1)]
    for spec in specs:
        agents(spec)
    agents("random")
    assert made == ["random", *specs, "random"]


def test_a_policy_file_that_changes_while_it_is_used_is_told(tmp_path: Path) -> None:
    """Games that another process plays are those of the file that was there when they began."""
    path = tmp_path / "mine"
    random_policy(seed=0).save(path)
    agent, sheet = make(f"policy:{path}"), Sheet(f"policy:{path}", "random", 200, 0, "shikoku")

    changed = pytest.raises(
        AgentFailed, match=r"mine': its policy file has changed since .*, or is"
    )
    with open_crew("processes:1") as crew:
        for _ in finished_games(sheet, agent, make("random"), games=50, crew=crew):
            random_policy(seed=1).save(path)
        expected = play_match(agent, make("random"), 200, 0)
        assert (sheet.match(50).games == expected.games[:25]).all()
        unit = _units(sheet, agent, make("random"), None, 1)
        random_policy(seed=2).save(path)
        with changed:
            run(crew, unit, lambda number, part: None)


@pytest.mark.parametrize(
    "text", ["", "there", "here:2", "processes:", "processes:0", "processes:x", "processes:99999"]
)
def test_what_stands_for_no_crew_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"crew: expected here, processes\[:N\] or ray\[:ADDRESS"):
        check_crew(text)


def test_without_ray_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs ray: pip install '\.\[ray\]'"):
        check_crew("ray:auto")
