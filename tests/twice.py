"""An executor for tests: no outcome may rest on the order of tasks, nor on results coming once."""

import pickle
from collections.abc import Iterable, Iterator, Sequence

from tokaido_env.agent import Agent
from tokaido_env.arena.executors import AgentCache, Executor, Task
from tokaido_env.arena.executors.base import TaskResult


class Twice(Executor):
    """Runs tasks backwards, each as sent to elsewhere and two times, as after a lost worker."""

    workers = 3

    def __init__(self) -> None:
        self.units: list[str] = []

    def map(self, tasks: Iterable[Task], agents: Sequence[Agent] = ()) -> Iterator[TaskResult]:
        known = AgentCache(agents)
        sent = [pickle.dumps(unit) for unit in tasks]
        for number in reversed(range(len(sent))):
            for _ in range(2):
                unit: Task = pickle.loads(sent[number])
                for part in unit.run(known):
                    yield number, part
            self.units.append(str(unit))
