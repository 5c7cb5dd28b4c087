"""The training loop of all methods: resume, train, rate, log and save checkpoints.

A run depends on its settings only, not on where it was stopped: policies, ratings and
`metrics.jsonl` are the same bytes as in a run that never stopped. TensorBoard's files also hold
times.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn

from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.arena.executors.base import Executor, SerialExecutor
from tokaido_env.arena.result import Measure
from tokaido_env.core.arguments import escape_text
from tokaido_env.decoding import Struct
from tokaido_env.files import locked, parse_json
from tokaido_env.learn.boards import board_summary, splits_of
from tokaido_env.learn.metrics import TIME, Logs
from tokaido_env.learn.network import (
    ValueNetwork,
    deterministic,
    load_policy,
    seed32,
    torch_threads,
)
from tokaido_env.learn.rating import rate_learner
from tokaido_env.learn.run_folder import (
    create_folder,
    delete_unfinished,
    load_ladder,
    load_settings,
    save_settings,
)
from tokaido_env.learn.settings import RunError, RunSettings
from tokaido_env.tensor_file import read_tensors, write_tensors

Figures = dict[str, Any]
"""Metrics of an update or a round, JSON types."""

KEPT = 2  # checkpoints of a run
MAX_BYTES = 512 << 20  # of a checkpoint: the widest network and its optimizer take 210 MB

_TRAINERS = {"td": "TdTrainer", "alphazero": "AlphaZeroTrainer"}
"""The class of each method, in the module of that name."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run after an update or a round.

    Attributes:
        done: the finished length of the run.
        total: its whole length.
        unit: updates or rounds.
        figures: metrics of the update or round; empty before the first.
        rating: the newest rating; None before the first.
        is_new: whether the rating is new since the last report.
        is_best: whether the policy of a new rating is now `best`, see `Run.rate`.
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


class Ratings(Struct, frozen=True):
    """The ratings of a run so far.

    Attributes:
        ladder: hash of the ladder; None without ratings.
        newest: the newest rating; None before the first.
        highest_elo: of the ratings; None before the first.
    """

    ladder: str | None
    newest: Measure | None = None
    highest_elo: float | None = None


class State(Struct, frozen=True):
    """The state of a run in the header of a checkpoint.

    Attributes:
        counters: of the trainer, by name.
        ratings: the ratings so far.
        splits: splits of the board family that the policy to start from was trained on.
    """

    counters: dict[str, Any]
    ratings: Ratings
    splits: list[str]


class Trainer(ABC):
    """A training method: what it trains, and the updates or rounds of a run.

    Attributes:
        run: the run to train.
        parts: modules and optimizers, by name. A checkpoint has all their tensors, so a method may
            train a second network or keep an average.
        counters: further state, of JSON types.
        done: the finished length of the run, in updates or rounds.
    """

    run: Run
    parts: dict[str, nn.Module | torch.optim.Optimizer]
    counters: dict[str, Any]
    done = 0

    @abstractmethod
    def advance(self, stopping: Callable[[], int]) -> Figures | None:
        """Do one update or round; return its figures by name, or None if a signal ended it early.

        `stopping` returns the signal that asks the run to stop; 0 before one has come.
        """

    @abstractmethod
    def policy(self) -> Policy:
        """Return the learner's current policy, which is rated and saved as `last`."""


class Run:
    """An open run: its folder, settings, boards and ratings.

    Args:
        folder: the run folder.
        settings: the run's settings.
        executor: plays the games of `alphazero`.

    Attributes:
        pool: the boards.
        ratings: the ratings so far.
        splits: splits of the board family that the policy to start from was trained on.
    """

    def __init__(self, folder: Path, settings: RunSettings, executor: Executor) -> None:
        self.folder, self.settings, self.executor = folder, settings, executor
        self.pool, self.extra_pool = settings.pool, settings.extra_pool
        self._ladder = load_ladder(settings)
        self.ratings = Ratings(self._ladder.result.hash if self._ladder else None)
        self.splits: list[str] = []
        for name in ("policies", "checkpoints"):
            (folder / name).mkdir(exist_ok=True)

    def snapshot(self, done: int) -> Path:
        """Return the path of the policy file of the learner after `done` updates or rounds."""
        return self.folder / "policies" / f"{done:09d}"

    def new_network(self) -> ValueNetwork:
        """Return the network at the start of the run, on the device of the settings.

        A run with checkpoints does not need the policy to start from, which may be gone.
        """
        network = _new_network(self.settings)
        if self.settings.start_from and not checkpoints(self.folder):
            self.splits = _load_start(self.settings, network)
        return network.to(_torch_device(self.settings.device))

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
        board = board_summary(self.pool, [*self.splits, *extra])
        return network.to_policy(training | {"settings": settings, "board": board})

    def rate(self, policy: Policy) -> tuple[Figures, bool]:
        """Rate the learner on the ladder; save it as `best` unless its rating is shown to be lower.

        That is if its 95 % interval ends below the highest rating so far. A policy with just the
        highest of many ratings would often be an older one that was lucky.

        Returns:
            The figures, empty for a run without ratings, and whether the policy is now `best`.
        """
        if self._ladder is None:
            return {}, False
        agent, settings = PolicyAgent.from_policy(policy, "learner"), self.settings
        elo = rate_learner(agent, self._ladder, settings.rating_games, settings.seed)
        highest = self.ratings.highest_elo
        if highest is None:
            highest = elo.value
        is_best = elo.high >= highest
        if is_best:
            policy.save(self.folder / "best")
        self.ratings = Ratings(self.ratings.ladder, elo, max(highest, elo.value))
        figures = {"elo": elo.value, "low": elo.low, "high": elo.high, "games": elo.n}
        return {f"rating/{name}": value for name, value in figures.items()}, is_best

    def save(self, trainer: Trainer) -> None:
        """Save `last` and a checkpoint, each whole or not at all; keep the newest two checkpoints.

        Until the first rating, `best` is the same policy as `last`.
        A checkpoint has the tensors of the trainer's parts, named `part.name`, and a `State`.
        """
        policy = trainer.policy()
        policy.save(self.folder / "last")
        if self.ratings.highest_elo is None:
            policy.save(self.folder / "best")
        arrays = {
            f"{name}.{key}": tensor.detach().cpu().numpy()
            for name, part in trainer.parts.items()
            for key, tensor in _tensors_of(part).items()
        }
        state = State(trainer.counters, self.ratings, self.splits)
        header = {"state": json.dumps(state.to_dict())}
        write_tensors(
            self.folder / "checkpoints" / f"{trainer.done:09d}.safetensors", arrays, header
        )
        for old in checkpoints(self.folder)[:-KEPT]:
            old.unlink()

    def restore(self, trainer: Trainer, path: Path) -> None:
        """Restore a checkpoint.

        Raises:
            RunError: if it is damaged or of another network, or another ladder rated the run.
        """
        try:
            header, arrays = read_tensors(path, MAX_BYTES)
            if others := {key.partition(".")[0] for key in arrays} - set(trainer.parts):
                raise ValueError(f"{', '.join(sorted(others))}: no part of this trainer")
            for name, part in trainer.parts.items():
                own = [key for key in arrays if key.startswith(f"{name}.")]
                tensors = {key[len(name) + 1 :]: torch.from_numpy(arrays[key]) for key in own}
                _load_tensors(part, tensors)
            state = msgspec.convert(parse_json(header["state"]), State)
            trainer.done, trainer.counters = int(path.stem), state.counters
        except (OSError, ValueError, LookupError, TypeError, RuntimeError) as error:
            why = escape_text(str(error), 300)
            raise RunError(
                f"{path}: broken checkpoint (delete it), or another trainer's (resume there): {why}"
            ) from None
        if state.ratings.ladder != self.ratings.ladder:
            expected = escape_text(str(state.ratings.ladder), 60)
            raise RunError(
                f"{self.folder}: ladder: expected the one with hash {expected}, got "
                f"{self.ratings.ladder}: restore the file, or ratings cannot be compared"
            )
        self.ratings, self.splits = state.ratings, state.splits


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, oldest first; their names are the finished lengths."""
    return sorted((folder / "checkpoints").glob("*.safetensors"))


def _tensors_of(part: nn.Module | torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return the tensors of a module, or of an optimizer's state as `parameter.name`."""
    state = part.state_dict()
    if isinstance(part, nn.Module):
        return state
    return {
        f"{number}.{name}": tensor
        for number, own in state["state"].items()
        for name, tensor in own.items()
    }


def _load_tensors(
    part: nn.Module | torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Load what `_tensors_of` returned; raise an error if it does not fit."""
    if isinstance(part, nn.Module):
        part.load_state_dict(dict(tensors))
        return
    parameters = [one for group in part.param_groups for one in group["params"]]
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        if tensor.shape not in ((), parameters[int(number)].shape):
            raise ValueError(f"{key}: expected the shape of parameter {number}")
        state.setdefault(int(number), {})[name] = tensor
    part.load_state_dict(part.state_dict() | {"state": state})


def _new_network(settings: RunSettings) -> ValueNetwork:
    """Return an untrained network."""
    torch.manual_seed(seed32(settings.seed))
    return ValueNetwork(settings.sizes)


def _load_start(settings: RunSettings, network: ValueNetwork) -> list[str]:
    """Load the policy to start from; return the splits that it was trained on."""
    start = Policy.load(settings.start_from)
    load_policy(network, start)
    return splits_of(start.training)


def _torch_device(device: str) -> str:
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise RunError("device: expected cpu or auto, got cuda: PyTorch finds no GPU")
    return "cuda" if has_gpu and device != "cpu" else "cpu"


def begin(folder: str | Path, settings: RunSettings) -> None:
    """Create a run folder for `train`.

    Args:
        folder: of the new run.
        settings: the run's settings.

    Raises:
        RunError: if the policy to start from does not fit, or the folder has other files.
        PolicyError: if the policy to start from is missing or damaged.
        InUseError: if another command uses the folder.
        BoardError: if a board does not exist; LadderError if the ladder does not.
    """
    if settings.start_from:
        _load_start(settings, _new_network(settings))
    create_folder(folder, settings)


def train(
    folder: str | Path,
    report: Callable[[Progress], None] = lambda progress: None,
    executor: Executor | None = None,
    settings: RunSettings | None = None,
) -> bool:
    """Train a run to its end, from its newest checkpoint if it has one.

    Ctrl-C and SIGTERM stop at the next update, after saving a checkpoint. Outside the main thread
    Python handles no signals: there they have their usual effects.

    Args:
        folder: the run folder.
        report: called after each update or round.
        executor: plays the games of `alphazero`; None: this process.
        settings: those of `run_folder.extended`, saved if the run can be resumed; None: its own.

    Returns:
        Whether the run is complete.

    Raises:
        RunError: if the run cannot be resumed, or a number in it is not finite.
        InUseError: if another command uses the folder.
        AgentFailed: if a worker of the executor fails.
    """
    folder = Path(folder)
    settings = settings or load_settings(folder)  # refuses other folders before it writes a lock
    with locked(folder), deterministic():
        delete_unfinished(folder)
        run = Run(folder, settings, executor or SerialExecutor())
        with torch_threads(settings.threads), interruptible() as stopping:
            return _train(run, report, stopping)


def _train(run: Run, report: Callable[[Progress], None], stopping: Callable[[], int]) -> bool:
    """Train until the run is complete or interrupted, and save; return whether it is complete.

    A new run saves before its first update, so that a run always has a checkpoint.
    """
    settings, total = run.settings, run.settings.length
    trainer = _make_trainer(run)
    if settings != load_settings(run.folder):
        save_settings(run.folder, settings)
    logs = Logs(run.folder, settings.LENGTH, trainer.done)
    saved = trainer.done

    def progress(figures: Figures, **more: Any) -> None:
        newest = run.ratings.newest
        report(Progress(trainer.done, total, settings.LENGTH, figures, newest, **more))

    progress({})
    while trainer.done < total and not stopping():
        began = time.perf_counter()
        figures = _advance(run, trainer, stopping)
        if figures is None:
            break
        rate_every = settings.rate_every or total
        is_due = trainer.done >= total or trainer.done % rate_every == 0
        rated, is_best = run.rate(trainer.policy()) if is_due else ({}, False)
        figures |= {TIME: time.perf_counter() - began} | rated
        logs.write(trainer.done, figures)
        progress(figures, is_new=bool(rated), is_best=is_best)
        if trainer.done % settings.checkpoint_every == 0:
            run.save(trainer)
            saved = trainer.done
    if saved != trainer.done:
        run.save(trainer)
    logs.close()
    if trainer.done < total:
        progress({}, signal=stopping())
    return trainer.done >= total


def _make_trainer(run: Run) -> Trainer:
    """Return the trainer of a run, restored from its newest checkpoint, or saved as the first."""
    method = run.settings.METHOD
    module = import_module(f"tokaido_env.learn.{method}")  # they import this module
    trainer: Trainer = getattr(module, _TRAINERS[method])(run)
    if found := checkpoints(run.folder):
        run.restore(trainer, found[-1])
    else:
        run.save(trainer)
    return trainer


def _advance(run: Run, trainer: Trainer, stopping: Callable[[], int]) -> Figures | None:
    try:
        return trainer.advance(stopping)
    except FloatingPointError as error:
        raise RunError(
            f"{run.folder}: after {trainer.done:,} {run.settings.LENGTH}, {error}: a resume "
            "repeats this: begin another run from a policy of this one, with --start-from"
        ) from None


@contextmanager
def interruptible() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the first signal, SIGINT (Ctrl-C) or SIGTERM; before, 0.

    A second Ctrl-C raises `KeyboardInterrupt`. A second SIGTERM has no effect: `timeout` and
    clusters send one to a process and one to its group. Python allows handlers in the main thread
    only: in another thread the function returns 0.
    """
    is_main = threading.current_thread() is threading.main_thread()
    previous = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if is_main
    }
    received: list[int] = []

    def receive(number: int, frame: object) -> None:
        received.append(number)
        signal.signal(signal.SIGINT, previous[signal.SIGINT])

    for number in previous:
        signal.signal(number, receive)
    try:
        yield lambda: received[0] if received else 0
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
