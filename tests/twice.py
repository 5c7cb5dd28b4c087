"""A crew for tests: results may not rest on the order of units, nor on being handed each once."""

import pickle
from collections.abc import Iterable, Iterator, Sequence

from tokaido_env.agent import Agent
from tokaido_env.arena.crew import Agents, Part, Unit


class Twice:
    """Does units backwards, each as sent to elsewhere and two times, as after a lost worker."""

    workers = 3

    def __init__(self) -> None:
        self.units: list[str] = []

    def run(self, units: Iterable[Unit], agents: Sequence[Agent] = ()) -> Iterator[Part]:
        known = Agents(agents)
        sent = [pickle.dumps(unit) for unit in units]
        for number in reversed(range(len(sent))):
            for _ in range(2):
                unit: Unit = pickle.loads(sent[number])
                for part in unit.run(known):
                    yield number, part
            self.units.append(str(unit))

    def close(self) -> None:
        pass
