"""The training loop of all methods: resume, train, rate, log and save checkpoints.

A run depends on its settings only, not on where it was stopped: policies, ratings and
`metrics.jsonl` are the same bytes as in a run that never stopped. TensorBoard's files also hold
times.
"""

from __future__ import annotations

import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.arena.executors.base import Executor, SerialExecutor
from tokaido_env.arena.result import Measure
from tokaido_env.core.arguments import str_short
from tokaido_env.decoding import Name, Number, Struct
from tokaido_env.learn.boards import board_summary, splits_of
from tokaido_env.learn.checkpoint import (
    READ_ERRORS,
    Checkpoint,
    broken_checkpoint,
    checkpoints,
    decode_counter,
    read_checkpoint,
    write_checkpoint,
)
from tokaido_env.learn.checkpoint_rating import rate_learner
from tokaido_env.learn.metrics import TIME, Logs, hide_writer_errors
from tokaido_env.learn.network import (
    ValueNetwork,
    deterministic,
    load_policy,
    seed32,
    torch_threads,
)
from tokaido_env.learn.run_folder import (
    METRICS,
    check_links,
    check_not_begun,
    create_folder,
    load_ladder,
    locked_run,
    specs_to_make,
)
from tokaido_env.learn.settings import CHECKPOINT_MINUTES, RunSettings
from tokaido_env.learn.settings_schema import RunError, explain_memory_errors

Figures = dict[str, Any]
"""Metrics of an update or a round, JSON types. Those with names "time/..." differ from run to run:
only TensorBoard and the terminal get them."""

_TRAINERS = {"td": "TdTrainer", "ppo": "PpoTrainer", "alphazero": "AlphaZeroTrainer"}
"""The class of each method, in the module of that name."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run after an update or a round.

    Attributes:
        done: the finished length of the run.
        total: its whole length.
        unit: steps, updates or rounds.
        figures: metrics of the update or round; empty before the first.
        rating: the newest rating; None before the first.
        is_new: whether the rating is new since the last report.
        is_best: whether a new rating is the highest so far.
        signal: in the last report of a stopped run, the signal that stopped it; else 0.
    """

    done: int
    total: int
    unit: str
    figures: Figures
    rating: Measure | None = None
    is_new: bool = False
    is_best: bool = False
    signal: int = 0


class RunState(Struct, frozen=True):
    """The part of a checkpoint that all methods share.

    Attributes:
        ladder: hash of the ladder that rates the run; None without ratings.
        rating: the newest rating.
        best_elo: the Elo of the highest rating so far.
        splits: splits of the board family that the policy to start from was trained on.
        snapshots: names of the snapshots so far.
    """

    ladder: Name | None
    rating: Measure | None
    best_elo: Number | None
    splits: tuple[Name, ...]
    snapshots: tuple[Name, ...]


class Run:
    """An open run: its folder, settings, boards and ratings.

    Args:
        folder: the run folder.
        settings: the run's settings.
        trusted: agent specs that the user has just typed; the run's other agents must be ones that
            a file may name: see `registry.check_spec_in_file`.
        executor: plays the games of `alphazero`.

    Attributes:
        specs: for each opponent's spec in the settings, the spec to make the agent from.
        pool: the boards.
        rating: the newest rating; None before the first.
        best_elo: the Elo of the highest rating so far.
    """

    def __init__(
        self, folder: Path, settings: RunSettings, trusted: Container[str], executor: Executor
    ) -> None:
        check_links(folder)
        self.folder, self.settings, self.executor = folder, settings, executor
        self.specs = specs_to_make(folder, settings, trusted)
        self.pool, self.extra_pool = settings.pool, settings.extra_pool
        self.rating: Measure | None = None
        self.best_elo: float | None = None
        self._ladder = load_ladder(settings)
        self._splits: list[str] = []  # of the policy to start from
        self.snapshots.mkdir(exist_ok=True)

    @property
    def snapshots(self) -> Path:
        """The folder of the snapshots."""
        return self.folder / "policies"

    def snapshot(self, done: int) -> Path:
        """Return the path of the policy file of the learner after `done` steps or rounds."""
        return self.snapshots / f"{done:09d}"

    def new_network(self, device: str = "cpu") -> ValueNetwork:
        """Return an untrained network on a device: "cpu", "cuda" or "auto", as the setting."""
        return _new_network(self.settings).to(_torch_device(device))

    def load_start(self, network: ValueNetwork) -> None:
        """Load the weights of the policy to start from, if the settings name one."""
        self._splits = _load_start(self.settings, network)

    def freeze(self, network: ValueNetwork, done: int, **metadata: Any) -> Policy:
        """Return a network as a policy with a summary of its training.

        The summary leaves out the run's length: a longer run makes the same policy here.

        Args:
            network: the learner's network.
            done: the finished length of the run.
            metadata: further entries of the summary.
        """
        settings = asdict(self.settings)
        del settings[self.settings.LENGTH]
        training = {"method": self.settings.METHOD, self.settings.LENGTH: done} | metadata
        extra = board_summary(self.extra_pool)["splits"] if self.extra_pool else []
        training |= {
            "settings": settings,
            "board": board_summary(self.pool, [*self._splits, *extra]),
        }
        return network.to_policy(training)

    def rate(self, policy: Policy) -> tuple[Figures, bool]:
        """Rate the learner on the ladder; save it as `best` if its rating is the highest so far.

        Returns:
            The figures, empty for a run without ratings, and whether the rating is the highest.
        """
        if self._ladder is None:
            return {}, False
        agent, settings = PolicyAgent.from_policy(policy, "learner"), self.settings
        self.rating = rate_learner(agent, self._ladder, settings.rating_games, settings.seed)
        is_best = self.best_elo is None or self.rating.value > self.best_elo
        if is_best:
            self.best_elo = self.rating.value
            policy.save(self.folder / "best")
        elo = self.rating
        figures = {"elo": elo.value, "low": elo.low, "high": elo.high, "games": elo.n}
        return {f"rating/{name}": value for name, value in figures.items()}, is_best

    def state(self, done: int) -> RunState:
        """Return this run's part of a checkpoint; a killed run may have later snapshots."""
        found = sorted(path.name for path in self.snapshots.iterdir())
        snapshots = tuple(name for name in found if name.isdecimal() and int(name) <= done)
        about = self._ladder_hash(), self.rating, self.best_elo, tuple(self._splits)
        return RunState(*about, snapshots)

    def restore(self, state: RunState) -> None:
        """Restore what `state` returned.

        Raises:
            RunError: if another ladder rated the run, or a policy file is missing.
        """
        for name in ("last", "best", *(f"{self.snapshots.name}/{one}" for one in state.snapshots)):
            if not (self.folder / name).is_file():
                raise RunError(
                    f"{self.folder}: expected the run's policy file {str_short(name)}, got "
                    "nothing: restore it, or begin a new run"
                )
        if state.ladder != self._ladder_hash():
            raise RunError(
                f"{self.folder}: ladder: expected the one with hash {str_short(state.ladder)}, "
                f"got {self._ladder_hash()}: restore the file, or ratings cannot be compared"
            )
        self.rating, self.best_elo, self._splits = state.rating, state.best_elo, list(state.splits)

    def save(self, policy: Policy, checkpoint: Checkpoint) -> None:
        """Save `last` and a checkpoint; an interrupted write leaves no partial file."""
        policy.save(self.folder / "last")
        if self.best_elo is None:
            policy.save(self.folder / "best")
        counters = {**checkpoint.counters, "run": self.state(checkpoint.done).to_dict()}
        write_checkpoint(self.folder, checkpoint._replace(counters=counters))

    def _ladder_hash(self) -> str | None:
        return self._ladder.result.hash if self._ladder else None


class Trainer(ABC):
    """A training method: the updates or rounds of a run.

    Attributes:
        run: the run to train.
        network: the learner's network.
    """

    run: Run
    network: ValueNetwork

    @property
    @abstractmethod
    def done(self) -> int:
        """The finished length of the run, in steps, updates or rounds."""

    def start(self) -> None:
        """Prepare a new run: load the policy to start from, if there is one."""
        self.run.load_start(self.network)

    @abstractmethod
    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint, which may come from an untrusted source.

        Raises:
            One of `checkpoint.READ_ERRORS`.
        """

    @abstractmethod
    def advance(self, stopping: Callable[[], int]) -> Figures | None:
        """Do one update or round and return its figures, or None if a signal ended it early."""

    @abstractmethod
    def policy(self) -> Policy:
        """Return the learner's current policy."""

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """Return the state that `restore` takes."""


def begin(folder: str | Path, settings: RunSettings) -> None:
    """Create a run folder for `train`.

    Args:
        folder: of the new run.
        settings: the run's settings.

    Raises:
        RunError: if the policy to start from does not fit, and as `create_folder`.
        PolicyError: if the policy to start from is missing or damaged.
        Others: as `create_folder`.
    """
    if settings.start_from:
        with explain_memory_errors(folder):
            _load_start(settings, _new_network(settings))
    create_folder(folder, settings)


def train(
    folder: str | Path,
    report: Callable[[Progress], None] = lambda progress: None,
    trusted: Container[str] = (),
    executor: Executor | None = None,
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
) -> bool:
    """Train a run to its end, from its newest checkpoint if it has one.

    Ctrl-C and SIGTERM stop at the next update, after saving a checkpoint. Outside the main thread
    Python handles no signals: there they have their usual effects.

    Args:
        folder: the run folder.
        report: called after each update or round.
        trusted: agent specs that the user has just typed: see `Run`.
        executor: plays the games of `alphazero`; None: this process.
        checkpoint_minutes: save a checkpoint at the first update after this time since the last,
            in addition to those of the setting `checkpoint_every`; 0: do not. No other file
            depends on it.

    Returns:
        Whether the run is complete.

    Raises:
        RunError: if the run cannot be resumed or saved, or a number in it is not finite.
        AgentError: if the run names an agent that files may not name.
        InUseError: if another command uses the folder.
        AgentFailed: if an agent fails.
    """
    folder = Path(folder)
    with (
        locked_run(folder, trusted) as settings,
        hide_writer_errors(),
        explain_memory_errors(folder),
        torch_threads(settings.threads),
        deterministic(),
    ):
        run = Run(folder, settings, trusted, executor or SerialExecutor())
        trainer = _make_trainer(run)
        with closing(Logs(folder / METRICS, settings.LENGTH, trainer.done)) as logs:
            complete = _train(run, trainer, logs, report, checkpoint_minutes)
        return complete


def _train(
    run: Run,
    trainer: Trainer,
    logs: Logs,
    report: Callable[[Progress], None],
    checkpoint_minutes: float,
) -> bool:
    """Train until the run is complete or interrupted, and save; return whether it is complete.

    A new run saves before its first update, so that a run always has a checkpoint.
    """
    settings, total = run.settings, run.settings.length
    saved, saved_at = trainer.done if checkpoints(run.folder) else -1, time.monotonic()
    report(_progress(run, trainer, {}))

    def save() -> None:
        nonlocal saved, saved_at
        if saved != trainer.done:
            logs.sync()
            run.save(trainer.policy(), trainer.checkpoint())
            saved, saved_at = trainer.done, time.monotonic()

    with interruptible() as stopping:
        if saved < 0:
            save()
        while trainer.done < total and not stopping():
            before = trainer.done
            figures = _advance(run, trainer, stopping)
            if figures is None:
                break
            is_best = is_rated = False
            if reached_multiple(before, trainer.done, settings.rate_every) or trainer.done >= total:
                rated, is_best = run.rate(trainer.policy())
                figures, is_rated = figures | rated, bool(rated)
            logs.write(trainer.done, figures)
            report(_progress(run, trainer, figures, is_new=is_rated, is_best=is_best))
            is_late = 0 < 60 * checkpoint_minutes <= time.monotonic() - saved_at
            if is_late or reached_multiple(before, trainer.done, settings.checkpoint_every):
                save()
        save()
    if trainer.done < total:
        report(_progress(run, trainer, {}, signal=stopping()))
    return trainer.done >= total


def _advance(run: Run, trainer: Trainer, stopping: Callable[[], int]) -> Figures | None:
    began = time.perf_counter()
    try:
        figures = trainer.advance(stopping)
    except FloatingPointError as error:
        newest = checkpoints(run.folder)[-1]
        raise RunError(
            f"{run.folder}: after {trainer.done:,} {run.settings.LENGTH}, {error}: the newest "
            f"checkpoint is {newest}; a resume repeats this: begin another run from a policy of "
            "this one, with --start-from"
        ) from None
    return figures and figures | {TIME + "seconds": time.perf_counter() - began}


def reached_multiple(before: int, done: int, every: int) -> bool:
    """Return whether counting from `before` to `done` reached a multiple of `every`; 0: never.

    The events of a run are at the same places wherever it was stopped.
    """
    return bool(every) and done // every > before // every


def _progress(run: Run, trainer: Trainer, figures: Figures, **options: Any) -> Progress:
    settings = run.settings
    return Progress(trainer.done, settings.length, settings.LENGTH, figures, run.rating, **options)


@contextmanager
def interruptible() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the first signal, SIGINT (Ctrl-C) or SIGTERM; before, 0.

    A second Ctrl-C raises `KeyboardInterrupt`. A second SIGTERM has no effect: `timeout` and
    clusters send one to a process and one to its group. Python allows handlers in the main thread
    only: in another thread the function returns 0.
    """
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    previous = {number: signal.getsignal(number) for number in signals}
    received = 0

    def receive(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received = received or number
        signal.signal(signal.SIGINT, previous[signal.SIGINT])

    for number in signals:
        signal.signal(number, receive)
    try:
        yield lambda: received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _make_trainer(run: Run) -> Trainer:
    """Return the trainer of a run, restored from its newest checkpoint or ready to begin.

    Its module is imported here: only `ppo` needs Stable-Baselines3.
    """
    method = run.settings.METHOD
    module = import_module(f"tokaido_env.learn.{method}")
    trainer: Trainer = getattr(module, _TRAINERS[method])(run)
    found = checkpoints(run.folder)
    if not found:
        check_not_begun(run.folder, run.settings.LENGTH)
        trainer.start()
        return trainer
    try:
        checkpoint = read_checkpoint(found[-1])
        run.restore(decode_counter(checkpoint.counters, "run", RunState))
        trainer.restore(checkpoint)
    except RunError:
        raise
    except READ_ERRORS as error:
        remedy = f"delete it to resume from {found[-2]}" if found[1:] else "begin a new run"
        raise broken_checkpoint(found[-1], error, remedy) from None
    return trainer


def _new_network(settings: RunSettings) -> ValueNetwork:
    torch.manual_seed(seed32(settings.seed))
    np.random.seed(seed32(settings.seed))  # noqa: NPY002  a checkpoint holds that state, too
    return ValueNetwork(settings.sizes)


def _torch_device(device: str) -> str:
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise RunError("device: expected cpu or auto, got cuda: PyTorch finds no GPU")
    return "cuda" if has_gpu and device != "cpu" else "cpu"


def _load_start(settings: RunSettings, network: ValueNetwork) -> list[str]:
    """Load the policy to start from, if there is one; return the splits it was trained on."""
    if not settings.start_from:
        return []
    start = Policy.load(settings.start_from)
    load_policy(network, start)
    return splits_of(start.training)
