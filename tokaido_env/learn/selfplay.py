"""Self-play PPO: thousands of whole games side by side, then an update of the network.

An update depends on the weights before it and its number alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

import torch

from tokaido_env.agents.policy import Policy
from tokaido_env.core.rng import arena_seed
from tokaido_env.learn.checkpoint import Checkpoint, load_checked, moments_of, restore_learner
from tokaido_env.learn.rollouts import Rollout, play_games
from tokaido_env.learn.run import Figures, Run
from tokaido_env.learn.settings import SelfPlaySettings
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.learn.update import update

_PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_GAMES, _ORDER = 1, 2  # purposes of seeds
_MEAN = "mean."  # what averaged weights are called in a checkpoint


def make_trainer(run: Run) -> SelfPlayTrainer:
    """Return the trainer of a run."""
    return SelfPlayTrainer(run)


class SelfPlayTrainer:
    """A network and its optimizer.

    Attributes:
        done: updates so far.
        decisions: so far.
    """

    def __init__(self, run: Run) -> None:
        self.run, settings = run, cast(SelfPlaySettings, run.settings)
        self.settings, self.extra_pool = settings, settings.extra_pool
        self.done = self.decisions = 0
        network = run.new_network(dtype=_PRECISIONS[settings.precision])
        self.network = network.to(_device(settings))
        self.averaged = deepcopy(self.network)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), settings.learning_rate, eps=1e-5, fused=True
        )

    def start(self) -> None:
        """Begin with the policy to start from, if there is one."""
        self.run.load_start(self.network)
        self.averaged.load_state_dict(self.network.state_dict())

    def advance(self, stopping: Callable[[], bool]) -> Figures:
        """Play games, learn from them, keep a snapshot if one is due."""
        settings, began = self.settings, time.perf_counter()
        self._set_learning_rate()
        played = self._play()
        learning = time.perf_counter()
        generator = torch.Generator()
        generator.manual_seed(self._seed(_ORDER))
        losses = update(self.network, self.optimizer, played, settings, generator)
        self._average()
        self.done += 1
        self.decisions += len(played.decisions.game)
        if self.done % settings.snapshot_every == 0:
            self.policy().save(self.run.snapshot(self.done))
        seconds = time.perf_counter() - began
        times = {"playing": learning - began, "learning": seconds - (learning - began)}
        times["steps_per_second"] = len(played.decisions.game) / seconds
        return {
            "decisions": self.decisions,
            **losses._asdict(),
            **_summary(played),
            **{f"time/{name}": value for name, value in times.items()},
        }

    def policy(self) -> Policy:
        """Return the averaged network as it is now."""
        extra = self.extra_pool if self.settings.extra_boards else None
        return self.run.freeze(self.averaged, self.done, extra, decisions=self.decisions)

    def checkpoint(self) -> Checkpoint:
        """Return all that `restore` needs."""
        weights = self.network.state_dict()
        weights |= {_MEAN + name: mean for name, mean in self.averaged.state_dict().items()}
        counters = {"decisions": self.decisions}
        return Checkpoint(self.done, weights, moments_of(self.optimizer), {}, counters)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint: see `Trainer.restore`."""
        weights = dict(checkpoint.weights)
        means = {name: weights.pop(_MEAN + name) for name in self.network.state_dict()}
        restore_learner(self.network, self.optimizer, checkpoint._replace(weights=weights))
        load_checked(self.averaged, means)
        self.done, self.decisions = checkpoint.done, int(checkpoint.counters["decisions"])

    def finish(self, tell: Callable[[str], None]) -> None:
        """Do nothing: the value is learnt from games against itself as it is."""

    def _play(self) -> Rollout:
        settings, every = self.settings, self.settings.extra_boards_every
        pool = self.extra_pool if self.done % every == every - 1 else self.run.pool
        return play_games(self.network, pool, settings.games, self._seed(_GAMES))

    def _seed(self, purpose: int) -> int:
        return int(arena_seed(int(arena_seed(self.settings.seed, purpose)), self.done))

    def _set_learning_rate(self) -> None:
        settings = self.settings
        left = max(0.0, 1 - self.done / settings.updates)
        share = settings.final_learning_rate + (1 - settings.final_learning_rate) * left
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * share

    @torch.no_grad()
    def _average(self) -> None:
        """Move the averaged weights towards the network's."""
        share = 1 - self.settings.ema_decay
        pairs = zip(self.averaged.parameters(), self.network.parameters(), strict=True)
        for mean, weight in pairs:
            mean.lerp_(weight, share)


def _device(settings: SelfPlaySettings) -> str:
    """Return the device that the network is on."""
    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        raise RunError("device: expected cpu or auto, as PyTorch finds no GPU")
    return "cuda" if there and settings.device != "cpu" else "cpu"


def _summary(played: Rollout) -> dict[str, Any]:
    ends = played.ends.astype(float)
    return {
        "result": float(played.results.mean()),
        "rounds": float(ends[:, 6].mean()),
        "points": float(ends[:, :6].sum() / (2 * len(ends))),
    }
