"""An executor for tests of independence from task order and repeated results."""

import pickle
from collections.abc import Iterable, Iterator

from tokaido_env.arena.executors.base import Executor, Task, TaskResult


class RepeatingExecutor(Executor):
    """Runs pickled tasks in reverse order, each twice, as after the loss of a worker."""

    workers = 3

    def __init__(self) -> None:
        self.tasks: list[str] = []

    def map(self, tasks: Iterable[Task]) -> Iterator[TaskResult]:
        sent = [pickle.dumps(task) for task in tasks]
        for number in reversed(range(len(sent))):
            for _ in range(2):
                task: Task = pickle.loads(sent[number])
                for part in task.run():
                    yield number, part
            self.tasks.append(str(task))
