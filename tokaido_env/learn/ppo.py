"""PPO by Stable-Baselines3: a learner against itself, its past and other agents.

`train` of `run` goes through it: an update plays `rollout` decisions in each of the learner's
games, and then MaskablePPO learns from them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from tokaido_env.agent import Agent
from tokaido_env.agents.policy import Policy, PolicyAgent
from tokaido_env.agents.registry import make
from tokaido_env.batch_validation import checked_arrays
from tokaido_env.learn.checkpoint import Checkpoint, moments_of, restore_learner
from tokaido_env.learn.network import PolicyNetwork, seed32
from tokaido_env.learn.opponent_pool import LATEST, OpponentPool
from tokaido_env.learn.ppo_policy import LearnerEnv, MovePolicy
from tokaido_env.learn.run import Figures, Run
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.value_calibration import refit

OPPONENT_TEMPERATURE = 1.0  # itself and its past play as the learner explores


def make_trainer(run: Run) -> PpoTrainer:
    """Return the trainer of a run."""
    return PpoTrainer(run)


class PpoTrainer:
    """A learner with its games and its opponents.

    Attributes:
        settings: of the run.
        pool: of the opponents.
        env: the learner's games.
        model: Stable-Baselines3's.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, cast(PpoSettings, run.settings)
        self.pool = OpponentPool(self.settings)
        self.env = LearnerEnv(self.settings)
        self.network = run.new_network(against_others=self.settings.value_of_self_play)
        self.model = new_learner(self.env, self.settings, self.network)
        self.rng = np.random.Generator(np.random.PCG64(self.settings.seed))
        self._agents: dict[str, Agent] = {}  # opponents that are seated, by name
        self._lengths: list[int] = []  # of the games that ended since the last update
        _, self._counting = self.model._setup_learn(
            self.settings.steps, _Counting(self), reset_num_timesteps=False
        )

    @property
    def done(self) -> int:
        """Steps so far."""
        return int(self.model.num_timesteps)

    def start(self) -> None:
        """Begin all games, against the opponents that are drawn first."""
        self.run.load_start(self.network)
        self._snapshot()
        self.pool.seat(self.rng)
        self._assign()
        self.env.reset()
        self.model._last_episode_starts = np.ones(self.env.num_envs, bool)
        self.pool.whole[:] = True
        self._observe()

    def advance(self, stopping: Callable[[], bool]) -> Figures:
        """Play, learn from it, and do what is due with the opponents."""
        model, before, began = self.model, self.done, time.perf_counter()
        model.collect_rollouts(self.env, self._counting, model.rollout_buffer, model.n_steps)
        model._update_current_progress_remaining(self.done, self.settings.steps)
        model.train()
        if self.done // self.settings.snapshot_every > before // self.settings.snapshot_every:
            self._snapshot()
        if self.done // self.settings.resample_every > before // self.settings.resample_every:
            self.pool.seat(self.rng)
        self._assign()
        self._observe()
        return self._figures((self.done - before) / (time.perf_counter() - began))

    def policy(self) -> Policy:
        """Return the learner as it is now."""
        return self.run.freeze(self.network, self.done)

    def checkpoint(self) -> Checkpoint:
        """Return all that `restore` needs."""
        games = self.env.snapshot() | {
            "episode_starts": self.model._last_episode_starts,
            "whole": self.pool.whole,
        }
        counters = {
            "updates": self.model._n_updates,
            "pool": self.pool.to_dict(),
            "rng": self.rng.bit_generator.state,
        }
        moments = moments_of(self.model.policy.optimizer)
        return Checkpoint(self.done, self.network.state_dict(), moments, games, counters)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint: see `Trainer.restore`."""
        restore_learner(self.network, self.model.policy.optimizer, checkpoint)
        games, counters = dict(checkpoint.games), checkpoint.counters
        starts, whole = (games.pop(name, None) for name in ("episode_starts", "whole"))
        flags = {"episode_starts": starts, "whole": whole}
        checked_arrays(flags, dict.fromkeys(flags, self.pool.whole), self.env.num_envs)
        self.model.num_timesteps = checkpoint.done
        self.model._n_updates = _count(counters["updates"])
        self.model._last_episode_starts = np.resize(starts, self.env.num_envs)
        self.env.restore(games)
        self.pool.restore(counters["pool"])
        self.pool.whole[:] = whole
        self.rng.bit_generator.state = counters["rng"]
        self._assign()
        self._observe()

    def finish(self, tell: Callable[[str], None]) -> None:
        """Fit the values of `last` and `best`, of each once: only the value changes."""
        settings = self.settings
        if not settings.calibration_games or not settings.value_of_self_play:
            return
        fitted: dict[bytes, Policy] = {}
        for name in ("last", "best"):
            path = self.run.folder / name
            before = path.read_bytes()
            policy = fitted.get(before) or Policy.load(path)
            if "value" not in policy.training:
                made = refit(policy, settings.pool, settings.calibration_games, settings.seed)
                tell(f"{name}: value fitted to games against itself: {made}")
                policy = made.policy if made.is_better else policy
            fitted[before] = policy
            policy.save(path)

    def count(self, dones: npt.NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Count the games that have just ended."""
        ended = np.flatnonzero(dones)
        episodes = [infos[game]["episode"] for game in ended]
        self.pool.count(ended, np.array([episode["r"] for episode in episodes], np.float64))
        self._lengths += [episode["l"] for episode in episodes]

    def _snapshot(self) -> None:
        self.pool.add(self.done)
        self.policy().save(self.run.snapshot(self.done))

    def _assign(self) -> None:
        """Let the games meet those who are seated, the learner as it is now among them."""
        names = dict.fromkeys(name for name in self.pool.seated if name != LATEST)
        self._agents = {name: self._agents.get(name) or self._opponent(name) for name in names}
        latest = PolicyAgent.from_policy(self.policy(), LATEST, OPPONENT_TEMPERATURE)
        self.env.set_opponents([self._agents.get(name, latest) for name in self.pool.seated])
        itself = np.array([name == LATEST for name in self.pool.seated])
        self.env.self_play[:] = np.resize(itself, self.env.num_envs)  # slot after slot, as above

    def _opponent(self, name: str) -> Agent:
        if not name.isdigit():
            return make(self.run.specs[name])
        path = self.run.snapshot(int(name))
        return PolicyAgent.from_policy(Policy.load(path), f"policy:{path}", OPPONENT_TEMPERATURE)

    def _observe(self) -> None:
        """Let the learner see whom each game meets from now on."""
        self.model._last_obs = self.env.observe()

    def _figures(self, speed: float) -> Figures:
        """Return what the update tells, and forget it."""
        logger = self.model.logger
        figures: Figures = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in sorted(logger.name_to_value.items())
        }
        logger.name_to_value.clear()
        figures |= {f"win_rate/{name}": rate for name, rate in self.pool.win_rates().items()}
        figures["games/ended"] = len(self._lengths)
        if self._lengths:
            figures["games/decisions"] = float(np.mean(self._lengths))
        self._lengths = []
        return figures | {"time/steps_per_second": speed}


class _Counting(BaseCallback):
    """Lets a trainer count its games."""

    def __init__(self, trainer: PpoTrainer) -> None:
        super().__init__()
        self._trainer = trainer

    def _on_step(self) -> bool:
        self._trainer.count(self.locals["dones"], self.locals["infos"])
        return True


def new_learner(env: LearnerEnv, settings: PpoSettings, network: PolicyNetwork) -> MaskablePPO:
    """Return Stable-Baselines3's learner of such games, which trains a network.

    gamma is 1: a game's only reward is its result. A step runs from one decision of the learner to
    its next, so every value is that of the learner's own seat.
    """
    model = MaskablePPO(
        MovePolicy,
        env,
        learning_rate=learning_rate(settings),
        n_steps=settings.n_steps,
        batch_size=settings.minibatch_size,
        n_epochs=settings.epochs,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.entropy_coef,
        policy_kwargs={"network": network},
        seed=seed32(settings.seed),
        device="cpu",
    )
    env.seed(settings.seed)  # SB3 has handed on its own
    model.set_logger(Logger(None, []))
    env.reset()
    model._last_obs = env.observe()  # so that SB3 begins no games of its own
    return model


def learning_rate(settings: PpoSettings) -> Callable[[float], float]:
    """Return the learning rate as a function of the share of `steps` that remains: linear."""
    first, end = settings.learning_rate, settings.learning_rate * settings.final_learning_rate

    def rate(remaining: float) -> float:
        return end + (first - end) * max(remaining, 0.0)  # the last update may go past the end

    return rate


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"state.json: updates: expected a count, got {number!r:.80}")
    return number
