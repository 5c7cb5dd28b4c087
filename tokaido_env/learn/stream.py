"""Expert iteration as a stream: players never wait for the learner, nor it for any one of them.

    players   the executor: play units, each by the policy that holds the gate when it is begun
    learner   a thread: learns as soon as a round's worth of units has come, publishes a policy,
              lets it meet the gate

Which units a policy is learnt from depends on who was quick. The ledger says it, so that the run
can be replayed; a unit's file says whose policy has played it. What has been played and not been
learnt from when a run is stopped is learnt from when it goes on.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tokaido_env.arena.executors import Executor, SerialExecutor
from tokaido_env.learn.samples import Samples, save_samples
from tokaido_env.learn.self_play import SelfPlayUnit
from tokaido_env.learn.zero_folder import GATE, LEDGER, Figures, Folder, ZeroSettings
from tokaido_env.learn.zero_parts import (
    holder_of,
    learnt,
    meet_the_gate,
    note,
    speed_of,
    unit_of,
)

_UNIT = r"\d{4}-\d{4}-\d{4}\.npz"  # round, number, round of the policy that played it
_AHEAD = 2  # rounds' worth of units that may wait for the learner
_LOOK = 0.5  # seconds between two looks at what else may have happened


def stream(
    folder: Folder, settings: ZeroSettings, executor: Executor, report: Callable[[Figures], None]
) -> None:
    """Play and learn all rounds that the folder does not have: see `zero.iterate`."""
    state = _Stream(folder, settings)
    learner = threading.Thread(target=_learn_all, args=(state, report))
    learner.start()
    try:
        for number, samples in executor.map(state.units()):
            state.take(number, samples)
    except BaseException:
        state.stop()
        raise
    finally:
        learner.join()
    if state.error is not None:
        raise state.error


class _Stopped(Exception):  # noqa: N818  no error
    """Nobody plays any more."""


class _Stream:
    """What players and learner share.

    Args:
        folder: of the run.
        settings: of the run.

    Attributes:
        error: what has stopped the learner, None while it goes on.
    """

    def __init__(self, folder: Folder, settings: ZeroSettings) -> None:
        self.folder, self.settings = folder, settings
        self.error: BaseException | None = None
        self._changed = threading.Condition()
        self._stopped = False
        learnt_from = {name for one in folder.lines(LEDGER) for name in one["units"]}
        names = (path.name for path in (folder.path / "units").iterdir())
        there = sorted(name for name in names if re.fullmatch(_UNIT, name))
        self._played = {_place_of(name) for name in there}
        self._fresh = [name for name in there if name not in learnt_from]
        self._begun: list[Path] = []
        self._positions, self._since = 0, time.perf_counter()

    # Players

    def units(self) -> Iterator[SelfPlayUnit]:
        """Yield the units that have not been played, as somebody is there to play them."""
        for number in range(1, self.settings.rounds + 1):
            for index in range(self.settings.units):
                if (number, index) not in self._played and self._wait_for_room():
                    by = holder_of(self.folder, self.settings.rounds + 1)
                    self._begun.append(self.folder.unit(number, index, by))
                    yield unit_of(self.folder, number, index, by, self.settings)

    def take(self, number: int, samples: Samples) -> None:
        """Write a unit, and tell the learner."""
        path = self._begun[number]
        if path.is_file():  # done again
            return
        save_samples(path, samples)
        with self._changed:
            self._fresh.append(path.name)
            self._positions += len(samples.legal)
            self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        """Wait while too many units wait for the learner; return whether it goes on."""
        most = _AHEAD * self.settings.units
        with self._changed:
            while len(self._fresh) >= most and self.error is None:
                self._changed.wait(_LOOK)
            return self.error is None

    def stop(self) -> None:
        """Let the learner end at its next step."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # The learner

    def check(self) -> None:
        """Raise `_Stopped` if nobody plays any more because something went wrong."""
        if self._stopped:
            raise _Stopped

    def next_units(self) -> list[str]:
        """Wait for a round's worth of units; return the first that came."""
        with self._changed:
            while len(self._fresh) < self.settings.units:
                self.check()
                self._changed.wait(_LOOK)
            return self._fresh[: self.settings.units]

    def done_with(self, names: list[str]) -> Figures:
        """Note that units were learnt from; return how many were played since, and how fast."""
        with self._changed:
            self._fresh = [name for name in self._fresh if name not in names]
            now = time.perf_counter()
            found = speed_of(len(names), self._positions, now - self._since)
            self._positions, self._since = 0, now
            self._changed.notify_all()
            return found

    def fail(self, error: BaseException) -> None:
        """Tell the players that the learner has failed."""
        with self._changed:
            self.error = error
            self._changed.notify_all()


def _place_of(name: str) -> tuple[int, int]:
    """Return the round and the index of a unit by the name of its file."""
    number, index = re.findall(r"\d{4}", name)[:2]
    return int(number), int(index)


def _learn_all(state: _Stream, report: Callable[[Figures], None]) -> None:
    """Learn all rounds that the folder does not have: what runs in the learner's thread."""
    folder, settings = state.folder, state.settings
    try:
        for number in range(1, settings.rounds + 1):
            figures: Figures = {"round": number}
            if number > len(folder.lines(LEDGER)):
                figures |= _learn(state, number)
            if number > len(folder.lines(GATE)):
                report(figures | meet_the_gate(folder, number, settings, SerialExecutor()))
    except _Stopped:
        pass
    except BaseException as error:
        state.fail(error)


def _learn(state: _Stream, number: int) -> Figures:
    """Learn a round from the units that come first; return its figures."""
    folder, settings = state.folder, state.settings
    names = state.next_units()
    before = folder.lines(LEDGER)[max(0, number - settings.kept_rounds) : number - 1]
    window = [name for one in before for name in list(one["units"])[-settings.units :]] + names
    files = [folder.path / "units" / name for name in window]
    policy, figures = learnt(folder, number, files, settings, state.check)
    policy.save(folder.policy(number))
    note(folder, number, files)
    lag = sum(number - 1 - int(name[10:14]) for name in names) / len(names)
    return state.done_with(names) | figures | {"lag": round(lag, 2)}
