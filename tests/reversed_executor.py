"""An executor for tests of independence from the order of tasks."""

import pickle
from collections.abc import Iterable, Iterator

from tokaido_env.arena.executors.base import CallTask, Executor, TaskResult


class ReversedExecutor(Executor):
    """Runs pickled tasks in reverse order."""

    workers = 3

    def __init__(self) -> None:
        self.tasks: list[str] = []

    def map(self, tasks: Iterable[CallTask]) -> Iterator[TaskResult]:
        sent = [pickle.dumps(task) for task in tasks]
        for number in reversed(range(len(sent))):
            task: CallTask = pickle.loads(sent[number])
            for part in task.run():
                yield number, part
            self.tasks.append(str(task))
