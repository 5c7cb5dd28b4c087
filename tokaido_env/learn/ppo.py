"""Self-play training: MaskablePPO against itself, its past and other agents, resumable.

A run depends on its settings alone, wherever it is stopped: policies, ratings and `metrics.jsonl`
are byte for byte those of a run that was not. Only TensorBoard also holds times, and repeats what
was done again after a power cut.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Container
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from tokaido_env.agent import Agent
from tokaido_env.agents.policy import Policy, PolicyAgent, check_tensors
from tokaido_env.agents.registry import check_from_file, make
from tokaido_env.arena.ladder import Ladder
from tokaido_env.arena.ladder_file import MOST_ELO, check_rating
from tokaido_env.arena.ratings import Rating
from tokaido_env.core.checks import brief
from tokaido_env.files import write_text
from tokaido_env.learn.boards import summary, told_splits
from tokaido_env.learn.checkpoint import (
    BROKEN,
    Checkpoint,
    broken,
    check_links,
    check_moments,
    checkpoints,
    drop_old,
    read_checkpoint,
    snapshots_needed,
    write_checkpoint,
)
from tokaido_env.learn.declared import RunError, enough_memory
from tokaido_env.learn.interrupting import interruptible
from tokaido_env.learn.network import load_weights, repeatable, torch_threads
from tokaido_env.learn.pool import LATEST, Pool
from tokaido_env.learn.ppo_metrics import JsonLines, TensorBoard, told_once
from tokaido_env.learn.ppo_policy import (
    learner_env,
    network_of,
    new_learner,
    policy_of,
    tensors_of,
)
from tokaido_env.learn.rating import place
from tokaido_env.learn.refit import Refit, refit
from tokaido_env.learn.settings import (
    CONFIG,
    SELF_PLAY,
    Progress,
    Settings,
    kept_run,
    load_ladder,
    split_specs,
    start_run,
)
from tokaido_env.validity import checked_arrays

NEVER = sys.maxsize  # updates between the lines that SB3 would log: `_Run` does it
OPPONENT_TEMPERATURE = 1.0  # itself and its past play as the learner explores


def begin(folder: str | Path, settings: Settings) -> None:
    """Make a run folder that `train` can begin.

    Raises:
        RunError, PolicyError: if the policy to start from does not fit.
        Others: as `start_run`.
    """
    if settings.start_from:
        with enough_memory(folder):
            learner = new_learner(learner_env(settings, "random"), settings)
        load_weights(network_of(learner), Policy.load(settings.start_from))
    start_run(folder, settings)


def train(
    folder: str | Path,
    report: Callable[[Progress], None] = lambda progress: None,
    named: Container[str] = (),
    fitted: Callable[[str, Refit], None] = lambda name, made: None,
) -> bool:
    """Train a run to its end, from its newest checkpoint if it has one.

    At its end the values of `last` and `best` are fitted anew (`refit`), unless the settings say
    no. Ctrl-C saves a checkpoint at the next update and stops.

    Args:
        folder: of the run.
        report: called after each update.
        named: specs that the user has named now; of the run's other agents only those are made
            that a file may name, see `registry.check_from_file`.
        fitted: called with "last" or "best" and what fitting its value anew has found.

    Returns:
        Whether the run is complete.

    Raises:
        RunError: if the run cannot be gone on with, or saved.
        AgentError: if it names an agent that a file may not name.
        InUseError: if another command works in the folder.
    """
    folder = Path(folder)
    with kept_run(folder) as settings, told_once():
        with enough_memory(folder):
            run = _Run(folder, settings, named)
        complete = _train(run, report)
        if complete and settings.refit_games and settings.value_from == SELF_PLAY:
            _refit(folder, settings, fitted)
        return complete


def _train(run: _Run, report: Callable[[Progress], None]) -> bool:
    run.resume()
    try:
        report(run.progress())
        with torch_threads(run.settings.threads), repeatable(), interruptible() as stop:
            left = run.settings.steps - run.model.num_timesteps
            run.model.learn(
                left, _Keeper(run, stop, report), log_interval=NEVER, reset_num_timesteps=False
            )
        run.settle(stop=True)
        report(run.progress())
    except _Stopped:
        return False
    finally:
        run.model.logger.close()
    return True


def _refit(folder: Path, settings: Settings, fitted: Callable[[str, Refit], None]) -> None:
    """Fit the values of the policies of a finished run, of each once: only the value changes."""
    done: dict[bytes, Policy] = {}
    for name in ("last", "best"):
        path = folder / name
        before = path.read_bytes()
        policy = done.get(before) or Policy.load(path)
        if "value" not in policy.training:
            made = refit(policy, settings.pool, settings.refit_games, settings.seed)
            fitted(name, made)
            policy = made.policy if made.is_better else policy
        done[before] = policy
        policy.save(path)


class _Run:
    """A learner with its games, its opponents and its folder."""

    def __init__(self, folder: Path, settings: Settings, named: Container[str] = ()) -> None:
        check_links(folder)
        self.folder = folder
        self.settings = settings
        self.specs = {
            spec: check_from_file(spec, f"{folder / CONFIG}: agents", folder, named)
            for spec in split_specs(settings.agents)
        }
        self.ladder = load_ladder(settings)
        self.pool = Pool(settings)
        self.started_on: list[str] = []  # the splits of the policy to start from
        self.rating: Rating | None = None
        self.best_elo: float | None = None
        self.is_new = self.is_best = False  # of the rating
        self.settled_at = 0
        self.saved_at = -1
        self.lengths: list[int] = []  # of the games that ended since the last update
        self.agents: dict[str, Agent] = {}  # those that are seated, by name
        self.env = learner_env(settings, "random")
        self.model = new_learner(self.env, settings)
        self.rng = np.random.Generator(np.random.PCG64(settings.seed))
        (folder / "pool").mkdir(exist_ok=True)

    def resume(self) -> None:
        """Take up the newest checkpoint; without one, begin."""
        found = checkpoints(self.folder)
        if found:
            self._load(found)
            self._tidy()  # a kill may have come just before
            self._assign()
        else:
            if self.settings.start_from:
                start = Policy.load(self.settings.start_from)
                load_weights(network_of(self.model), start)
                self.started_on = told_splits(start.training)
            self._freeze()
            self.pool.seat(self.rng)
            self._assign()
            self.env.reset()
            self.model._last_episode_starts = np.ones(self.env.num_envs, bool)
            self.pool.whole[:] = True
        self.model._last_obs = self.env.observe()
        self.metrics = JsonLines(self.folder / "metrics.jsonl", self.model.num_timesteps)
        outputs = [self.metrics, TensorBoard(self.folder / "tb")]
        self.model.set_logger(Logger(str(self.folder), outputs))
        self.began = (self.model.num_timesteps, time.perf_counter())

    def settle(self, *, stop: bool = False) -> None:
        """Do all that is due between two updates; save in any case before a stop."""
        steps = self.model.num_timesteps
        saving = stop or self._due(self.settings.checkpoint_every)
        if steps > self.settled_at:
            if self._due(self.settings.freeze_every):
                self._freeze()
            if self._due(self.settings.reseat_every):
                self.pool.seat(self.rng)
            self._assign()
            self.model._last_obs = self.env.observe()  # it tells whom each game meets from now on
            if self.ladder and (
                self._due(self.settings.rate_every) or steps >= self.settings.steps
            ):
                self._rate(self.ladder)
            self._log()
            self.settled_at = steps
        if saving and self.saved_at != steps:
            self._save()

    def note(self, dones: np.typing.NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Count the games that have just ended."""
        ended = np.flatnonzero(dones)
        episodes = [infos[game]["episode"] for game in ended]
        self.pool.count(ended, np.array([episode["r"] for episode in episodes], np.float64))
        self.lengths += [episode["l"] for episode in episodes]

    def progress(self) -> Progress:
        """Return what there is to tell, a new rating once."""
        is_new, self.is_new = self.is_new, False
        steps, total = self.model.num_timesteps, self.settings.steps
        rates = self.pool.win_rates()
        return Progress(min(steps, total), total, rates, self.rating, is_new, self.is_best)

    # What is done between two updates

    def _due(self, every: int) -> bool:
        """Return whether a multiple of a number of steps was passed: stops do not move them."""
        return self.model.num_timesteps // every > self.settled_at // every

    def _freeze(self) -> None:
        name = self.pool.add(self.model.num_timesteps)
        self._policy().save(self.folder / "pool" / name)

    def _policy(self) -> Policy:
        """Return the learner as it is now, with a summary of its training.

        Without how many steps are still to come: they may grow, the policy is the same.
        """
        settings = asdict(self.settings)
        del settings["steps"]
        training = {"steps": self.model.num_timesteps, "settings": settings}
        boards = summary(self.settings.pool, self.started_on)
        return policy_of(self.model, training | {"board": boards})

    def _assign(self) -> None:
        """Let the games meet those who are seated, the learner as it is now among them."""
        names = dict.fromkeys(name for name in self.pool.seated if name != LATEST)
        self.agents = {name: self.agents.get(name) or self._opponent(name) for name in names}
        latest = PolicyAgent.of(self._policy(), LATEST, OPPONENT_TEMPERATURE)
        self.env.assign([self.agents.get(name, latest) for name in self.pool.seated])
        itself = np.array([name == LATEST for name in self.pool.seated])
        self.env.self_play[:] = np.resize(itself, self.env.num_envs)  # slot after slot, as above

    def _opponent(self, name: str) -> Agent:
        if not name.isdigit():
            return make(self.specs[name])
        path = self.folder / "pool" / name
        return PolicyAgent.of(Policy.load(path), f"policy:{path}", OPPONENT_TEMPERATURE)

    def _rate(self, ladder: Ladder) -> None:
        """Place the learner on the ladder; keep it as `best` if it never stood higher."""
        agent = PolicyAgent.of(self._policy(), "learner")
        self.rating = place(agent, ladder, self.settings.rating_games, self.settings.seed)
        self.is_new = True
        for name, value in zip(("low", "high"), self.rating.ci95, strict=True):
            self.model.logger.record(f"rating/{name}", value)
        self.model.logger.record("rating/elo", self.rating.elo)
        self.model.logger.record("rating/games", self.rating.games)
        self.is_best = self.best_elo is None or self.rating.elo > self.best_elo
        if self.is_best:
            self.best_elo = self.rating.elo
            agent.policy.save(self.folder / "best")

    def _log(self) -> None:
        logger, steps = self.model.logger, self.model.num_timesteps
        for name, rate_ in self.pool.win_rates().items():
            logger.record(f"win_rate/{name}", rate_)
        logger.record("games/ended", len(self.lengths))
        if self.lengths:
            logger.record("games/decisions", float(np.mean(self.lengths)))
        self.lengths = []
        done, began = self.began
        speed = (steps - done) / (time.perf_counter() - began)
        logger.record("time/steps_per_second", speed, exclude=JsonLines.NAME)
        logger.dump(steps)

    def _save(self) -> None:
        """Write `last`, and a checkpoint: whole or not at all."""
        folder, last = self.folder, self._policy()
        last.save(folder / "last")
        if self.best_elo is None:
            last.save(folder / "best")
        write_text(folder / "pool" / "pool.json", json.dumps(self.pool.to_dict(), indent=1) + "\n")
        self.metrics.sync()
        games = self.env.snapshot() | {
            "episode_starts": self.model._last_episode_starts,
            "whole": self.pool.whole,
        }
        write_checkpoint(folder, self._checkpoint(games))
        self.saved_at = self.model.num_timesteps
        self._tidy()

    def _tidy(self) -> None:
        """Delete what is too old: checkpoints, and copies of the pool that none of them needs."""
        drop_old(self.folder)
        needed = snapshots_needed(self.folder)
        for path in (self.folder / "pool").iterdir():
            if path.name.isdigit() and path.name not in needed:
                path.unlink()

    # What is kept of a run

    def _checkpoint(self, games: dict[str, Any]) -> Checkpoint:
        model = self.model
        return Checkpoint(
            model.num_timesteps,
            model._n_updates,
            model.policy.state_dict(),
            model.policy.optimizer.state_dict()["state"],
            games,
            self._counters(),
        )

    def _counters(self) -> dict[str, Any]:
        return {
            "pool": self.pool.to_dict(),
            "rng": self.rng.bit_generator.state,
            "ladder": self.ladder.hash if self.ladder else None,
            "rating": asdict(self.rating) if self.rating else None,
            "best_elo": self.best_elo,
        } | ({"started_on": self.started_on} if self.started_on else {})

    def _load(self, found: list[Path]) -> None:
        *older, newest = found
        try:
            self._restore(newest)
        except BROKEN as error:
            advice = f"delete it to go on from {older[-1]}" if older else "train anew"
            raise broken(newest, error, advice) from None
        known = self.ladder.hash if self.ladder else None
        if self.rated_on != known:
            raise RunError(
                f"{self.folder}: rated on the ladder {brief(self.rated_on)}, the file is now "
                f"{known}: "
                "restore it, or ratings could not be compared"
            )

    def _restore(self, checkpoint: Path) -> None:
        found = read_checkpoint(checkpoint)
        self.model.policy.load_state_dict(found.weights)
        seen = self.settings.boards_seen is not None
        for where, tensors in tensors_of(self.model).items():
            check_tensors(where, tensors, seen)
        optimizer = self.model.policy.optimizer
        check_moments(optimizer.param_groups[0]["params"], found.moments)
        optimizer.load_state_dict(optimizer.state_dict() | {"state": found.moments})
        self.model.num_timesteps, self.model._n_updates = found.steps, found.updates
        games, counters = dict(found.games), found.counters
        starts, whole = (games.pop(name, None) for name in ("episode_starts", "whole"))
        flags = {"episode_starts": starts, "whole": whole}
        checked_arrays(flags, dict.fromkeys(flags, self.pool.whole), self.env.num_envs)
        self.model._last_episode_starts = np.resize(starts, self.env.num_envs)
        self.env.restore(games)
        self.pool.restore(counters["pool"])
        self.pool.whole[:] = whole
        self.settled_at = self.saved_at = self.model.num_timesteps
        self.rng.bit_generator.state = counters["rng"]
        self.rated_on = counters["ladder"]
        self.started_on = told_splits({"board": {"splits": counters.get("started_on")}})
        self.rating, self.best_elo = _rating_of(counters["rating"]), counters["best_elo"]
        if self.best_elo is not None and not -MOST_ELO <= self.best_elo <= MOST_ELO:
            raise ValueError(f"state.json: best_elo: expected a number, got {self.best_elo}")


def _rating_of(data: Any) -> Rating | None:
    if data is None:
        return None
    check_rating("state.json", "rating", data)
    return Rating(**data | {"ci95": tuple(data["ci95"])})


class _Stopped(Exception):  # noqa: N818  not an error
    """Raised through SB3's loop when a run was interrupted and has been saved."""


class _Keeper(BaseCallback):
    """Lets a run count its games, and settle and report between two updates."""

    def __init__(
        self, run: _Run, stop: Callable[[], bool], report: Callable[[Progress], None]
    ) -> None:
        super().__init__()
        self.run = run
        self.stop = stop
        self.report = report

    def _on_rollout_start(self) -> None:
        stopping = self.stop()
        self.run.settle(stop=stopping)
        self.report(self.run.progress())
        if stopping:
            raise _Stopped

    def _on_step(self) -> bool:
        self.run.note(self.locals["dones"], self.locals["infos"])
        return True
