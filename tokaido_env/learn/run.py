"""The loop of a training run, the same for all methods: resume, train, rate, log, save.

A run depends on its settings alone, wherever it is stopped: policies, ratings and `metrics.jsonl`
are byte for byte those of a run that was not. Only TensorBoard also holds times, and repeats what
was done again after a power cut.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.registry import check_spec_in_file
from tokaido_env.arena.executors import Executor, SerialExecutor
from tokaido_env.arena.ratings import Rating
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.arguments import str_short
from tokaido_env.decoding import Name, Number, Source, Struct
from tokaido_env.learn.boards import board_summary, splits_of
from tokaido_env.learn.checkpoint import (
    BROKEN,
    Checkpoint,
    broken,
    check_links,
    checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from tokaido_env.learn.checkpoint_rating import place
from tokaido_env.learn.interrupt import interruptible
from tokaido_env.learn.metrics import Logs, told_once
from tokaido_env.learn.network import (
    PolicyNetwork,
    frozen,
    load_weights,
    repeatable,
    seed32,
    torch_threads,
)
from tokaido_env.learn.run_folder import (
    CONFIG,
    METRICS,
    agents_of,
    begin_folder,
    kept_folder,
    load_ladder,
)
from tokaido_env.learn.settings import RunSettings
from tokaido_env.learn.settings_schema import RunError, explain_memory_errors

Figures = dict[str, Any]
"""What an update or a round tells, JSON types. Those whose names begin with "time/" are for
TensorBoard and the terminal only: they differ from run to run."""


@dataclass(frozen=True)
class Progress:
    """What a run tells after each update or round.

    Attributes:
        done, total: of the run's length.
        unit: that it is counted in: steps, updates or rounds.
        figures: of the update or round, empty before the first.
        rating: the newest, None before the first.
        is_new: whether the rating was found since the last report.
        is_best: whether a new rating is higher than those before it.
        note: a line to be told once, as by `Trainer.finish`.
    """

    done: int
    total: int
    unit: str
    figures: Figures
    rating: Rating | None = None
    is_new: bool = False
    is_best: bool = False
    note: str = ""


class RunState(Struct, frozen=True):
    """What a checkpoint keeps of a run, whatever trains.

    Attributes:
        ladder: hash of the one that it is rated on, None if it is not rated.
        rating: the newest.
        best_elo: of the highest rating so far.
        splits: of the boards that the policy to start from was trained on.
    """

    ladder: Name | None
    rating: Rating | None
    best_elo: Number | None
    splits: tuple[Name, ...]


class Trainer(Protocol):
    """A method of training: what an update or a round is.

    Attributes:
        done: of the run's length.
    """

    @property
    def done(self) -> int:
        """How much of the run's length is done."""

    def start(self) -> None:
        """Do what a new run does before its first update."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, whose numbers anybody may have written.

        Raises:
            One of `BROKEN`.
        """

    def advance(self, stopping: Callable[[], bool]) -> Figures | None:
        """Do an update or a round; return its figures, None if it was stopped within."""

    def policy(self) -> Policy:
        """Return the learner as it is now."""

    def checkpoint(self) -> Checkpoint:
        """Return all that `restore` needs."""

    def finish(self, tell: Callable[[str], None]) -> None:
        """Do what is due when a run is complete; it may have been done already."""


class Run:
    """A run that is being trained: its folder, settings, boards and ratings.

    Args:
        folder: of the run.
        settings: of the run.
        named: specs that the user has named now; of the run's other agents only those are made
            that a file may name, see `registry.check_spec_in_file`.
        executor: who plays games apart from the learner, in `alphazero`.

    Attributes:
        specs: of the agents that the learner meets: what is made of each.
        pool: the boards.
        rating: the newest, None before the first.
        best_elo: of the highest rating so far.
    """

    def __init__(
        self, folder: Path, settings: RunSettings, named: Container[str], executor: Executor
    ) -> None:
        check_links(folder)
        self.folder, self.settings, self.executor = folder, settings, executor
        where = f"{folder / CONFIG}: agents"
        self.specs = {
            spec: check_spec_in_file(spec, where, folder, named) for spec in agents_of(settings)
        }
        self.pool = settings.pool
        self.rating: Rating | None = None
        self.best_elo: float | None = None
        self._ladder = load_ladder(settings)
        self._splits: list[str] = []  # of the policy to start from
        self.snapshots.mkdir(exist_ok=True)

    @property
    def snapshots(self) -> Path:
        """The folder of the policy files that are kept along the way."""
        return self.folder / "policies"

    def snapshot(self, done: int) -> Path:
        """Return the policy file that is kept of the learner as it was then."""
        return self.snapshots / f"{done:09d}"

    def new_network(self, **options: Any) -> PolicyNetwork:
        """Return an untrained network; options as of `PolicyNetwork`."""
        return _new_network(self.settings, **options)

    def load_start(self, network: PolicyNetwork) -> None:
        """Give a network the weights of the policy that the run begins with, if there is one."""
        self._splits = _load_start(self.settings, network)

    def freeze(
        self, network: PolicyNetwork, done: int, extra: BoardPool | None = None, **told: Any
    ) -> Policy:
        """Return a network as a policy, with a summary of its training.

        Without how long the run is: it may grow, the policy is the same.

        Args:
            network: the learner's.
            done: of the run's length.
            extra: boards that it is trained on beside those of the run.
            told: what else there is to say.
        """
        settings = asdict(self.settings)
        del settings[self.settings.LENGTH]
        training = {"method": self.settings.METHOD, self.settings.LENGTH: done} | told
        splits = [*self._splits, *(board_summary(extra)["splits"] if extra else [])]
        training |= {"settings": settings, "board": board_summary(self.pool, splits)}
        return frozen(network, training)

    def rate(self, policy: Policy) -> tuple[Figures, bool]:
        """Place the learner on the ladder; keep it as `best` if it never stood higher.

        Returns:
            The figures, none if the run is not rated, and whether it never stood higher.
        """
        if self._ladder is None:
            return {}, False
        agent = PolicyAgent.from_policy(policy, "learner")
        self.rating = place(agent, self._ladder, self.settings.rating_games, self.settings.seed)
        is_best = self.best_elo is None or self.rating.elo > self.best_elo
        if is_best:
            self.best_elo = self.rating.elo
            policy.save(self.folder / "best")
        low, high = self.rating.ci95
        figures = {"elo": self.rating.elo, "low": low, "high": high, "games": self.rating.games}
        return {f"rating/{name}": value for name, value in figures.items()}, is_best

    def state(self) -> RunState:
        """Return what a checkpoint keeps of this."""
        rated_on = self._ladder.hash if self._ladder else None
        return RunState(rated_on, self.rating, self.best_elo, tuple(self._splits))

    def restore(self, state: RunState) -> None:
        """Go back to what `state` told.

        Raises:
            RunError: if the run was rated on another ladder.
        """
        known = self._ladder.hash if self._ladder else None
        if state.ladder != known:
            raise RunError(
                f"{self.folder}: rated on the ladder {str_short(state.ladder)}, the file is now "
                f"{known}: restore it, or ratings could not be compared"
            )
        self.rating, self.best_elo, self._splits = state.rating, state.best_elo, list(state.splits)

    def save(self, policy: Policy, checkpoint: Checkpoint) -> None:
        """Write `last`, and a checkpoint: whole or not at all."""
        policy.save(self.folder / "last")
        if self.best_elo is None:
            policy.save(self.folder / "best")
        counters = {**checkpoint.counters, "run": self.state().to_dict()}
        write_checkpoint(self.folder, checkpoint._replace(counters=counters))


def begin(folder: str | Path, settings: RunSettings) -> None:
    """Make a run folder that `train` can begin.

    Raises:
        RunError, PolicyError: if the policy to start from does not fit.
        Others: as `begin_folder`.
    """
    if settings.start_from:
        with explain_memory_errors(folder):
            _load_start(settings, _new_network(settings))
    begin_folder(folder, settings)


def train(
    folder: str | Path,
    report: Callable[[Progress], None] = lambda progress: None,
    named: Container[str] = (),
    executor: Executor | None = None,
) -> bool:
    """Train a run to its end, from its newest checkpoint if it has one.

    Ctrl-C saves a checkpoint at the next update and stops.

    Args:
        folder: of the run.
        report: called after each update or round.
        named: specs that the user has named now: see `Run`.
        executor: who plays games apart from the learner; None: this process.

    Returns:
        Whether the run is complete.

    Raises:
        RunError: if the run cannot be gone on with, or saved, or a number in it is not finite.
        AgentError: if it names an agent that a file may not name.
        InUseError: if another command works in the folder.
        AgentFailed: if a player fails.
    """
    folder = Path(folder)
    with (
        kept_folder(folder) as settings,
        told_once(),
        explain_memory_errors(folder),
        torch_threads(settings.threads),
        repeatable(),
    ):
        run = Run(folder, settings, named, executor or SerialExecutor())
        trainer = _resumed(run)
        with closing(Logs(folder / METRICS, settings.LENGTH, trainer.done)) as logs:
            complete = _train(run, trainer, logs, report)
        if complete:
            trainer.finish(lambda note: report(_progress(run, trainer, {}, note=note)))
        return complete


def _train(run: Run, trainer: Trainer, logs: Logs, report: Callable[[Progress], None]) -> bool:
    """Go on until the run is complete or interrupted, and save; return whether it is complete."""
    settings, total = run.settings, run.settings.length
    saved = trainer.done if checkpoints(run.folder) else -1
    report(_progress(run, trainer, {}))

    def save() -> None:
        nonlocal saved
        if saved != trainer.done:
            logs.sync()
            run.save(trainer.policy(), trainer.checkpoint())
            saved = trainer.done

    with interruptible() as stopping:
        while trainer.done < total and not stopping():
            before = trainer.done
            figures = _advanced(run, trainer, stopping)
            if figures is None:
                break
            is_best = is_rated = False
            if _passed(before, trainer.done, settings.rate_every) or trainer.done >= total:
                rated, is_best = run.rate(trainer.policy())
                figures, is_rated = figures | rated, bool(rated)
            logs.write(trainer.done, figures)
            report(_progress(run, trainer, figures, is_new=is_rated, is_best=is_best))
            if _passed(before, trainer.done, settings.checkpoint_every):
                save()
        save()
    return trainer.done >= total


def _advanced(run: Run, trainer: Trainer, stopping: Callable[[], bool]) -> Figures | None:
    try:
        return trainer.advance(stopping)
    except FloatingPointError as error:
        kept = checkpoints(run.folder)
        advice = f"{kept[-1]} is the last one before it" if kept else "there is no checkpoint"
        raise RunError(
            f"{run.folder}: after {trainer.done:,} {run.settings.LENGTH}, {error}: {advice}; a "
            "lower learning_rate may help"
        ) from None


def _passed(before: int, done: int, every: int) -> bool:
    """Return whether a multiple of a number was passed: where a run stops does not move them."""
    return bool(every) and done // every > before // every


def _progress(run: Run, trainer: Trainer, figures: Figures, **told: Any) -> Progress:
    settings = run.settings
    return Progress(trainer.done, settings.length, settings.LENGTH, figures, run.rating, **told)


def _resumed(run: Run) -> Trainer:
    """Return the trainer of a run as its newest checkpoint has it; without one, at the beginning.

    Methods are imported here: one of them needs Stable-Baselines3, and no other does.
    """
    method = run.settings.METHOD
    trainer: Trainer = import_module(f"tokaido_env.learn.{method}").make_trainer(run)
    found = checkpoints(run.folder)
    if not found:
        trainer.start()
        return trainer
    try:
        checkpoint = read_checkpoint(found[-1])
        state = Source("state.json: run", checkpoint.counters["run"], ValueError)
        run.restore(state.decode(RunState))
        trainer.restore(checkpoint)
    except RunError:
        raise
    except BROKEN as error:
        advice = f"delete it to go on from {found[-2]}" if found[1:] else "train anew"
        raise broken(found[-1], error, advice) from None
    return trainer


def _new_network(settings: RunSettings, **options: Any) -> PolicyNetwork:
    torch.manual_seed(seed32(settings.seed))
    np.random.seed(seed32(settings.seed))  # noqa: NPY002  a checkpoint holds that state, too
    return PolicyNetwork(settings.sizes, settings.network_boards, **options)


def _load_start(settings: RunSettings, network: PolicyNetwork) -> list[str]:
    """Load the policy to start from, if there is one; return the splits it was trained on."""
    if not settings.start_from:
        return []
    start = Policy.load(settings.start_from)
    load_weights(network, start)
    return splits_of(start.training)
