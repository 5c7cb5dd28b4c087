"""PPO by Stable-Baselines3: a learner against itself, its snapshots and other agents.

An update plays `n_steps` decisions in each of the learner's games; then MaskablePPO trains on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from tokaido_env.agent import Agent
from tokaido_env.agents.policy import Policy, PolicyAgent, PolicyError
from tokaido_env.agents.registry import make
from tokaido_env.batch_validation import checked_arrays
from tokaido_env.decoding import Count
from tokaido_env.learn.checkpoint import Checkpoint, decode_counter, moments_of, restore_learner
from tokaido_env.learn.network import ValueNetwork, seed32
from tokaido_env.learn.opponent_pool import LATEST, OpponentPool, PoolState
from tokaido_env.learn.ppo_policy import AfterstatePolicy, LearnerEnv
from tokaido_env.learn.run import Figures, Run, Trainer, reached_multiple
from tokaido_env.learn.settings import PpoSettings
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.tensor_file import as_rows

OPPONENT_TEMPERATURE = 1.0  # the learner's snapshots sample their actions, as the learner does


class PpoTrainer(Trainer):
    """Trainer of `ppo`: the learner's games and its opponents.

    Attributes:
        settings: the run's settings.
        pool: the opponent pool.
        env: the learner's games.
        model: Stable-Baselines3's model.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, cast(PpoSettings, run.settings)
        self.pool = OpponentPool(self.settings)
        self.env = LearnerEnv(self.settings)
        self.network = run.new_network()
        self.model = make_model(self.env, self.settings, self.network)
        self.rng = np.random.Generator(np.random.PCG64(self.settings.seed))
        self._agents: dict[str, Agent] = {}  # the current opponents, by name
        self._lengths: list[int] = []  # of the games that ended since the last update
        _, self._callback = self.model._setup_learn(
            self.settings.steps, _CountGames(self), reset_num_timesteps=False
        )

    @property
    def done(self) -> int:
        """Number of steps so far."""
        return int(self.model.num_timesteps)

    def start(self) -> None:
        """Load the policy to start from, draw opponents and begin all games."""
        super().start()
        self._snapshot()
        self.pool.resample(self.rng)
        self._assign()
        self.env.reset()
        self.model._last_episode_starts = np.ones(self.env.num_envs, bool)
        self.pool.same_opponent[:] = True
        self.model._last_obs = self.env.observe()

    def advance(self, stopping: Callable[[], int]) -> Figures:
        """Collect a rollout, train on it, and update the opponents.

        Raises:
            FloatingPointError: if a weight is no longer finite.
        """
        model, settings, before = self.model, self.settings, self.done
        model.collect_rollouts(self.env, self._callback, model.rollout_buffer, model.n_steps)
        model._update_current_progress_remaining(self.done, settings.steps)
        model.train()
        if not all(bool(weights.isfinite().all()) for weights in self.network.parameters()):
            raise FloatingPointError("a weight of the network is not finite")
        if reached_multiple(before, self.done, settings.snapshot_every):
            self._snapshot()
        if reached_multiple(before, self.done, settings.resample_every):
            self.pool.resample(self.rng)
        self._assign()
        return self._figures()

    def policy(self) -> Policy:
        """Return the learner's current policy."""
        return self.run.freeze(self.network, self.done)

    def checkpoint(self) -> Checkpoint:
        """Return the state that `restore` takes."""
        games = self.env.games.batch.snapshot() | {
            "episode_starts": self.model._last_episode_starts,
            "same_opponent": self.pool.same_opponent,
        }
        counters = {
            "updates": self.model._n_updates,
            "pool": self.pool.state().to_dict(),
            "rng": self.rng.bit_generator.state,
        }
        moments = moments_of(self.model.policy.optimizer)
        return Checkpoint(self.done, self.network.state_dict(), moments, games, counters)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint: see `Trainer.restore`."""
        restore_learner(self.network, self.model.policy.optimizer, checkpoint)
        games, counters = checkpoint.games, checkpoint.counters
        flags: dict[str, Any] = {
            name: games.get(name) for name in ("episode_starts", "same_opponent")
        }
        checked_arrays(flags, dict.fromkeys(flags, self.pool.same_opponent), self.env.num_envs)
        self.model.num_timesteps = checkpoint.done
        self.model._n_updates = decode_counter(counters, "updates", Count)
        self.model._last_episode_starts = np.resize(flags["episode_starts"], self.env.num_envs)
        self.env.games.batch.restore(as_rows(games, self.env.games.batch.snapshot()))
        self.pool.restore(decode_counter(counters, "pool", PoolState))
        self.pool.same_opponent[:] = flags["same_opponent"]
        self.rng.bit_generator.state = counters["rng"]
        self._assign()
        self.model._last_obs = self.env.observe()

    def count(self, dones: npt.NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Count the games that ended at this step.

        Args:
            dones: bool (games,).
            infos: of the step, as from `TokaidoVecEnv`.
        """
        ended = np.flatnonzero(dones)
        episodes = [infos[game]["episode"] for game in ended]
        self.pool.count(ended, np.array([episode["r"] for episode in episodes], np.float64))
        self._lengths += [episode["l"] for episode in episodes]

    def _snapshot(self) -> None:
        self.pool.add(self.done)
        self.policy().save(self.run.snapshot(self.done))

    def _assign(self) -> None:
        """Give each slot of games its opponent, with the learner's newest weights as `LATEST`."""
        names = dict.fromkeys(name for name in self.pool.slot_opponents if name != LATEST)
        self._agents = {name: self._agents.get(name) or self._opponent(name) for name in names}
        latest = PolicyAgent.from_policy(self.policy(), LATEST, OPPONENT_TEMPERATURE)
        opponents = self.pool.slot_opponents
        agents = [self._agents.get(name, latest) for name in opponents]
        self.env.set_opponents(agents, when="now")  # the newest weights, also in running games

    def _opponent(self, name: str) -> Agent:
        if not name.isdigit():
            return make(self.run.specs[name])
        path = self.run.snapshot(int(name))
        try:
            policy = Policy.load(path)
        except PolicyError as error:
            raise RunError(f"{error}: restore the file, or begin a new run") from None
        return PolicyAgent.from_policy(policy, f"policy:{path}", OPPONENT_TEMPERATURE)

    def _figures(self) -> Figures:
        """Return and clear the metrics of an update."""
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
        return figures


class _CountGames(BaseCallback):
    """SB3 callback that reports finished games to the trainer."""

    def __init__(self, trainer: PpoTrainer) -> None:
        super().__init__()
        self._trainer = trainer

    def _on_step(self) -> bool:
        self._trainer.count(self.locals["dones"], self.locals["infos"])
        return True


def make_model(env: LearnerEnv, settings: PpoSettings, network: ValueNetwork) -> MaskablePPO:
    """Return Stable-Baselines3's model, which trains a network on the learner's games.

    gamma is 1: the only reward of a game is its result. A step spans one decision of the learner
    to its next, so that every value is for the learner's seat.
    """
    model = MaskablePPO(
        AfterstatePolicy,
        env,
        learning_rate=learning_rate(settings),
        n_steps=settings.n_steps,
        batch_size=settings.minibatch_size,
        n_epochs=settings.epochs,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip_range,
        ent_coef=settings.entropy_coef,
        policy_kwargs={"network": network, "pool": env.games.boards},
        seed=seed32(settings.seed),
        device="cpu",
    )
    env.seed(settings.seed)  # SB3 has set its own, of 32 bits
    model.set_logger(Logger(None, []))
    env.reset()
    model._last_obs = env.observe()  # otherwise SB3 resets the games
    return model


def learning_rate(settings: PpoSettings) -> Callable[[float], float]:
    """Return SB3's linear schedule: the learning rate by the share of `steps` that remains."""
    first, end = settings.learning_rate, settings.learning_rate * settings.final_learning_rate

    def rate(remaining: float) -> float:
        return end + (first - end) * max(remaining, 0.0)  # the last update may exceed `steps`

    return rate
