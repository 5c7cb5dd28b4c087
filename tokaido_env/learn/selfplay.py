"""Self-play PPO: whole games of the network against itself, then an update of the network.

An update depends only on the weights before it and on its number.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

import torch

from tokaido_env.agents.policy import Policy
from tokaido_env.core.rng import arena_seed
from tokaido_env.learn.checkpoint import Checkpoint, load_checked, moments_of, restore_learner
from tokaido_env.learn.rollouts import Rollout, play_games
from tokaido_env.learn.run import Figures, Run, Trainer
from tokaido_env.learn.settings import SelfPlaySettings
from tokaido_env.learn.update import update

_PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_GAMES, _ORDER = 1, 2  # purposes of seeds
_EMA = "ema."  # prefix of the averaged weights in a checkpoint


class SelfPlayTrainer(Trainer):
    """Trainer of `selfplay`: a network, its optimizer and the moving average of its weights.

    Attributes:
        decisions: number of decisions so far.
    """

    done = 0

    def __init__(self, run: Run) -> None:
        self.run, settings = run, cast(SelfPlaySettings, run.settings)
        self.settings, self.pools = settings, (run.pool, run.extra_pool or run.pool)
        self.decisions = 0
        self.network = run.new_network(settings.device, dtype=_PRECISIONS[settings.precision])
        self.ema = deepcopy(self.network)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), settings.learning_rate, eps=1e-5, fused=True
        )

    def start(self) -> None:
        """Load the policy to start from, if there is one, into both networks."""
        super().start()
        self.ema.load_state_dict(self.network.state_dict())

    def advance(self, stopping: Callable[[], int]) -> Figures:
        """Play games, update the network with them, and save a snapshot if one is due."""
        settings = self.settings
        self._set_learning_rate()
        rollout = self._play()
        generator = torch.Generator()
        generator.manual_seed(self._seed(_ORDER))
        losses = update(self.network, self.optimizer, rollout, settings, generator)
        self._update_ema()
        self.done += 1
        self.decisions += len(rollout.decisions.game)
        if self.done % settings.snapshot_every == 0:
            self.policy().save(self.run.snapshot(self.done))
        return {"decisions": self.decisions, **losses._asdict(), **_summary(rollout)}

    def policy(self) -> Policy:
        """Return the network with averaged weights."""
        return self.run.freeze(self.ema, self.done, decisions=self.decisions)

    def checkpoint(self) -> Checkpoint:
        """Return the state that `restore` takes."""
        weights = self.network.state_dict()
        weights |= {_EMA + name: mean for name, mean in self.ema.state_dict().items()}
        counters = {"decisions": self.decisions}
        return Checkpoint(self.done, weights, moments_of(self.optimizer), {}, counters)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint: see `Trainer.restore`."""
        weights = dict(checkpoint.weights)
        means = {name: weights.pop(_EMA + name) for name in self.network.state_dict()}
        restore_learner(self.network, self.optimizer, checkpoint._replace(weights=weights))
        load_checked(self.ema, means)
        self.done, self.decisions = checkpoint.done, int(checkpoint.counters["decisions"])

    def _play(self) -> Rollout:
        pool = self.pools[self.settings.is_extra(self.done)]
        return play_games(self.network, pool, self.settings.games, self._seed(_GAMES))

    def _seed(self, purpose: int) -> int:
        return int(arena_seed(int(arena_seed(self.settings.seed, purpose)), self.done))

    def _set_learning_rate(self) -> None:
        settings = self.settings
        left = max(0.0, 1 - self.done / settings.updates)
        share = settings.final_learning_rate + (1 - settings.final_learning_rate) * left
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * share

    @torch.no_grad()
    def _update_ema(self) -> None:
        """Move the averaged weights towards the network's."""
        share = 1 - self.settings.ema_decay
        pairs = zip(self.ema.parameters(), self.network.parameters(), strict=True)
        for mean, weight in pairs:
            mean.lerp_(weight, share)


def _summary(rollout: Rollout) -> dict[str, Any]:
    ends = rollout.ends.astype(float)
    return {
        "result": float(rollout.results.mean()),
        "rounds": float(ends[:, 6].mean()),
        "points": float(ends[:, :6].sum() / (2 * len(ends))),
    }
