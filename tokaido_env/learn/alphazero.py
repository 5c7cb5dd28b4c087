"""AlphaZero (Silver et al. 2018) on afterstates: rounds of self-play, training and a match.

Self-play: a search with the incumbent's network plays shards of whole games. The first incumbent is
the network to start from or an untrained one. Training: the network continues from the round
before, on the positions of the newest rounds, at decisions and chance nodes. Its values learn a
mean of search value and game result, and at decisions the softmax of its afterstate values learns
the shares of the search's visits: values alone hardly order actions that differ little. Promotion
match: the new network plays paired games against the incumbent until the better one is known. It
becomes the incumbent unless it is shown to be worse.

Any executor plays the same bytes, and existing shards are not played again. `metrics.jsonl` lists,
for each round, its training shards in order with their SHA-256, and the SHA-256 of its policy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from tokaido_env.agents.policy import Policy
from tokaido_env.agents.registry import make
from tokaido_env.arena.executors.base import CallTask, task_agent
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.match import match_seed
from tokaido_env.arena.match_series import play_series
from tokaido_env.arena.tournament import MatchState
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import copy_rows
from tokaido_env.files import file_sha256
from tokaido_env.learn.network import (
    ValueNetwork,
    action_values,
    evaluate_positions,
    masked_logits,
    take_step,
)
from tokaido_env.learn.replay_buffer import Samples, legal_of, load_samples, save_samples
from tokaido_env.learn.run import Figures, Run, Trainer, checkpoints
from tokaido_env.learn.selfplay_games import SelfPlayGames, selfplay_task
from tokaido_env.learn.settings import AlphaZeroSettings, RunError

_PROMOTION_ERROR = 0.05  # maximum error probability of a promotion match


class AlphaZeroTrainer(Trainer):
    """Trainer of `alphazero`: a network, and the incumbent that plays its games."""

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, cast(AlphaZeroSettings, run.settings)
        self.network = run.new_network()
        self.parts = {"network": self.network}
        self.pools = (run.pool, run.extra_pool or run.pool)
        self.counters = {"incumbents": [0], "decisions": 0}
        if not checkpoints(run.folder):
            run.freeze(self.network, 0).save(run.snapshot(0))

    @property
    def incumbents(self) -> list[int]:
        """For each round, and last for the next one, the round that made its incumbent.

        0 stands for the network before the first round.
        """
        return self.counters["incumbents"]  # type: ignore[no-any-return]

    def advance(self, stopping: Callable[[], int]) -> Figures | None:
        """Play a round's games, train on them, play the promotion match; see `Trainer.advance`."""
        number = self.done + 1
        if not self._play(number, stopping):
            return None
        keys = self._replay_keys(number)
        figures = self._learn(number, keys)
        path = self.run.snapshot(number)
        self.run.freeze(self.network, number).save(path)
        files = [self._shard(*key) for key in keys]
        figures["shards"] = {file.name: file_sha256(file) for file in files}
        figures["policy_sha256"] = file_sha256(path)
        promotion = self._promotion_match(number)
        self.incumbents.append(number if promotion["promoted"] else self.incumbents[-1])
        self.done = number
        return figures | promotion

    def policy(self) -> Policy:
        """Return the incumbent: the last network promoted, or the first one if none was yet."""
        return Policy.load(self.run.snapshot(self.incumbents[-1]))

    # Self-play

    def _play(self, number: int, stopping: Callable[[], int]) -> bool:
        """Play the missing shards of a round's replay buffer; return whether all exist now."""
        (self.run.folder / "shards").mkdir(exist_ok=True)
        missing = [key for key in self._replay_keys(number) if not self._shard(*key).is_file()]
        tasks = (self._task(n, i) for n, i in missing if not stopping())
        try:
            for position, samples in self.run.executor.map(tasks):
                save_samples(self._shard(*missing[position]), samples)
        except AgentFailed:
            if not stopping():  # else the signal was for the group, and ended its workers too
                raise
        return all(self._shard(n, i).is_file() for n, i in missing)

    def _task(self, number: int, index: int) -> CallTask:
        """Return the task that plays a shard of a round."""
        settings = self.settings
        path = self.run.snapshot(self.incumbents[number - 1])
        agent = make(f"policy_search:{path},sims={settings.sims}")
        round_seed = int(arena_seed(settings.seed, number))
        seed = int(arena_seed(round_seed, index))
        games = SelfPlayGames(
            *(self.pools[self._is_extra(number, index)], settings.games, seed),
            *(settings.visit_sampling, settings.uniform_sampling),
            *(settings.search_share, settings.result_weight),
        )
        text = f"{settings.games} games of {repr_short(agent.spec)} against itself, seed {seed}"
        agents = (task_agent(agent, self.run.executor),)
        return CallTask(selfplay_task, agents, (games,), text)

    def _is_extra(self, number: int, index: int) -> bool:
        return self.settings.is_extra((number - 1) * self.settings.shards + index)

    def _shard(self, number: int, index: int) -> Path:
        return self.run.folder / "shards" / f"{number:04d}-{index:04d}.safetensors"

    def _replay_keys(self, number: int) -> list[tuple[int, int]]:
        """Return round and index of the shards in a round's replay buffer, the new ones last."""
        rounds = range(max(1, number - self.settings.replay_rounds + 1), number + 1)
        return [(n, i) for n in rounds for i in range(self.settings.shards)]

    # Training

    def _learn(self, number: int, keys: list[tuple[int, int]]) -> Figures:
        """Train on shards, the new ones last; return the figures."""
        settings = self.settings
        boards = np.concatenate([pool.records for pool in self.pools])
        parts = [self._load(*key) for key in keys]
        played = Samples.join(parts[-settings.shards :])
        new = len(played.targets)
        self.counters["decisions"] += int(played.visits.any(axis=1).sum())
        samples = Samples.join(parts)
        if not len(samples.targets):
            raise RunError("search_share: expected some searches, got none: begin a run with more")
        size = min(settings.minibatch_size, len(samples.targets))
        steps = max(1, round(settings.samples_per_position * new / size))
        seed = match_seed(settings.seed, "alphazero", "learn", str(number))
        loss = learn(self.network, boards, samples, steps, seed, settings)
        return {
            "decisions": self.counters["decisions"],  # searched ones, of all rounds so far
            "positions": new,
            "window": len(samples.targets),
            "samples_per_position": round(steps * size / max(new, 1), 2),
            "loss": loss,
        }

    def _load(self, number: int, index: int) -> Samples:
        """Return a shard; extra boards are numbered after those of the run."""
        is_extra = self._is_extra(number, index)
        samples = load_samples(self._shard(number, index), self.pools[is_extra])
        return samples._replace(boards=samples.boards + np.int32(is_extra * len(self.run.pool)))

    # The promotion match

    def _promotion_match(self, number: int) -> Figures:
        """Play a new network against the incumbent; return the figures, with "promoted"."""
        settings = self.settings
        if not settings.promotion_games:
            return {"promoted": True}
        paths = self.run.snapshot(number), self.run.snapshot(self.incumbents[-1])
        a, b = (make(f"policy:{path}") for path in paths)
        seed = match_seed(settings.seed, "alphazero", "promotion", str(number))
        state = MatchState(a.spec, b.spec, settings.promotion_games, seed, self.run.pool)
        results, stopped = play_series(
            [(a, b)], [state], error=_PROMOTION_ERROR, executor=self.run.executor
        )
        if stopped is not None:
            raise stopped
        match = results[0]
        figures = {"promotion/games": int(match.results.size), "promotion/score": match.score}
        return figures | {"promoted": match.decided != "b"}


def learn(
    network: ValueNetwork,
    boards: npt.NDArray[np.void],
    samples: Samples,
    steps: int,
    seed: int,
    settings: AlphaZeroSettings,
) -> float:
    """Train a network on samples; return the mean loss of the last tenth of the steps.

    Args:
        network: the network, changed in place.
        boards: `BOARD` (b,), of the samples.
        samples: the training samples.
        steps: steps of the optimizer.
        seed: of the order of the samples.
        settings: the run's settings.

    Raises:
        FloatingPointError: if the loss or the gradient's norm is not finite.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rng = np.random.Generator(np.random.PCG64(seed))
    order, start, losses = rng.permutation(len(samples.targets)), 0, []
    for step in range(steps):
        if start + settings.minibatch_size > len(order):
            order, start = rng.permutation(len(samples.targets)), 0
        rows = order[start : start + settings.minibatch_size]
        start += settings.minibatch_size
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        loss = _loss(network, boards, samples.take(rows))
        take_step(optimizer, loss, settings.max_grad_norm, f"step {step + 1} of {steps}")
        losses.append(float(loss.detach()))
    return float(np.mean(losses[-max(1, steps // 10) :]))


def _loss(network: ValueNetwork, boards: npt.NDArray[np.void], samples: Samples) -> torch.Tensor:
    """Return the cross-entropy of the win probabilities plus that of the actions at decisions."""
    which, states = samples.boards.astype(np.int64), samples.states
    values = evaluate_positions(network, boards, which, states)
    wins = network.to_device((samples.targets + 1) / np.float32(2))
    loss = functional.binary_cross_entropy_with_logits(2 * values, wins)
    legal = legal_of(boards, which, states)
    k = np.flatnonzero(legal)
    own = action_values(network, boards, which[k], copy_rows(states, k), legal[k])
    log_odds = torch.log_softmax(masked_logits(own, legal[k]), dim=1)
    shares = network.to_device(samples.visits[k] / np.float32(255))
    entropies = -torch.where(shares > 0, shares * log_odds, 0.0).sum(dim=1)
    return loss + entropies.sum() / len(states)
