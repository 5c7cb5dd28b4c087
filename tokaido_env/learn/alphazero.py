"""AlphaZero: search plays, the network learns from it, a promotion match decides who plays next.

In each round the incumbent leads a search, which plays shards of whole games against itself
(Silver et al. 2018); the first is `mcts`, which needs no network. The learner goes on from the
network of the round before with the positions of the last rounds. The policy learns how often the
search visited each action; the value learns the mean of what the search found and how the game
ended, and at chance, behind the action that was played, how it ended. Then the promotion match:
paired games of the new policy against the incumbent, until it is decided who is better. A policy
that is not shown to be worse is promoted.

Shards may be played anywhere: the bytes are the same. Those that are there are not played again.
`metrics.jsonl` names, for each round, the shards that it learnt from in their order, with their
SHA-256, and that of its policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.policy import Policy, quote_path
from tokaido_env.agents.registry import make
from tokaido_env.arena.executors import policy_sha256
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.match_series import play_series
from tokaido_env.arena.suite import file_sha256
from tokaido_env.arena.tournament import MatchState
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.state import copy_rows
from tokaido_env.learn.checkpoint import Checkpoint, load_checked
from tokaido_env.learn.network import PolicyNetwork
from tokaido_env.learn.replay_buffer import Samples, load_samples, save_samples
from tokaido_env.learn.rollouts import apply_each, judge, judge_chance
from tokaido_env.learn.run import Figures, Run
from tokaido_env.learn.selfplay_games import SelfPlayGames
from tokaido_env.learn.settings import AlphaZeroSettings

_PROMOTION_ERROR = 0.05


def make_trainer(run: Run) -> AlphaZeroTrainer:
    """Return the trainer of a run."""
    return AlphaZeroTrainer(run)


class AlphaZeroTrainer:
    """A network, and who plays.

    Attributes:
        done: rounds so far.
        players: the round of the policy that plays each round, the next one's last; 0 is what the
            run begins with.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, cast(AlphaZeroSettings, run.settings)
        self.network = run.new_network()
        self.done, self.players = 0, [0]

    def start(self) -> None:
        """Begin with the policy to start from, if there is one."""
        self.run.load_start(self.network)

    def advance(self, stopping: Callable[[], bool]) -> Figures | None:
        """Play the shards of a round, learn from them, play the promotion match."""
        number, began = self.done + 1, time.perf_counter()
        if not self._play(number, stopping):
            return None
        playing = time.perf_counter() - began
        files = self._window(number)
        figures = self._learn(number, files)
        path = self.run.snapshot(number)
        self.run.freeze(self.network, number).save(path)
        figures["shards"] = {file.name: file_sha256(file) for file in files}
        figures["policy_sha256"] = file_sha256(path)
        promotion = self._promotion_match(number)
        self.players.append(number if promotion["promoted"] else self.players[-1])
        self.done = number
        times = {"playing": playing, "round": time.perf_counter() - began}
        return figures | promotion | {f"time/{name}": value for name, value in times.items()}

    def policy(self) -> Policy:
        """Return the incumbent."""
        if self.players[-1] or self.settings.start_from:
            return Policy.load(self._path_of(self.players[-1]))
        return self.run.freeze(self.network, self.done)

    def checkpoint(self) -> Checkpoint:
        """Return all that `restore` needs."""
        return Checkpoint(self.done, self.network.state_dict(), {}, {}, {"players": self.players})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint: see `Trainer.restore`."""
        load_checked(self.network, checkpoint.weights)
        self.done, players = checkpoint.done, checkpoint.counters["players"]
        right = isinstance(players, list) and len(players) == self.done + 1
        if not right or not all(type(n) is int and 0 <= n <= self.done for n in players):
            raise ValueError(f"state.json: players: expected {self.done + 1} numbers of rounds")
        self.players = players

    def finish(self, tell: Callable[[str], None]) -> None:
        """Do nothing: the value is learnt from games against itself as it is."""

    # Self-play

    def _play(self, number: int, stopping: Callable[[], bool]) -> bool:
        """Play the shards that a round needs and that are not there; return whether all are."""
        (self.run.folder / "shards").mkdir(exist_ok=True)
        first = max(1, number - self.settings.replay_rounds + 1)
        missing = [
            (n, i)
            for n in range(first, number + 1)
            for i in range(self.settings.shards)
            if not self._shard(n, i).is_file()
        ]
        tasks = (self._task(n, i) for n, i in missing if not stopping())
        for which, samples in self.run.executor.map(tasks):
            save_samples(self._shard(*missing[which]), samples)
        return all(self._shard(n, i).is_file() for n, i in missing)

    def _task(self, number: int, index: int) -> SelfPlayGames:
        """Return the games of a shard of a round, as work for anybody."""
        settings, player = self.settings, self.players[number - 1]
        spec = f"mcts:sims={settings.first_sims}"
        if player or settings.start_from:
            path = quote_path(str(self._path_of(player)))
            spec = make(f"policy_search:{path},sims={settings.sims}").spec
        round_seed = int(arena_seed(settings.seed, number))
        return SelfPlayGames(
            *(spec, policy_sha256(spec), self.run.pool, settings.games),
            *(
                int(arena_seed(round_seed, index)),
                settings.visit_sampling,
                settings.uniform_sampling,
            ),
            *(settings.full_search_share, settings.cheap_sims),
        )

    def _path_of(self, player: int) -> Path:
        """Return the policy file of a round, or of what the run begins with."""
        return self.run.snapshot(player) if player else Path(self.settings.start_from)

    def _shard(self, number: int, index: int) -> Path:
        return self.run.folder / "shards" / f"{number:04d}-{index:04d}.npz"

    def _window(self, number: int) -> list[Path]:
        """Return the files that a round learns from, in order."""
        rounds = range(max(1, number - self.settings.replay_rounds + 1), number + 1)
        return [self._shard(n, i) for n in rounds for i in range(self.settings.shards)]

    # Learning

    def _learn(self, number: int, files: list[Path]) -> Figures:
        """Learn from shards, the new ones last; return the figures."""
        settings = self.settings
        parts = [load_samples(file, self.run.pool) for file in files]
        new = sum(len(part.legal) for part in parts[-settings.shards :])
        steps = max(1, round(settings.samples_per_position * new / settings.minibatch_size))
        seed = match_seed(settings.seed, "alphazero", "learn", str(number))
        policy_loss, value_loss = learn(self.network, Samples.join(parts), steps, seed, settings)
        return {
            "positions": new,
            "window": sum(len(part.legal) for part in parts),
            "samples_per_position": round(steps * settings.minibatch_size / new, 2),
            "policy_loss": policy_loss,
            "value_loss": value_loss,
        }

    # The promotion match

    def _promotion_match(self, number: int) -> Figures:
        """Let a policy play the incumbent; return whether it is promoted, and the figures."""
        settings, incumbent = self.settings, self.players[-1]
        if not (incumbent or settings.start_from) or not settings.promotion_games:
            return {"promoted": True}
        paths = self.run.snapshot(number), self._path_of(incumbent)
        a, b = (make(f"policy:{quote_path(str(path))}") for path in paths)
        seed = match_seed(settings.seed, "alphazero", "promotion", str(number))
        match_state = MatchState(a.spec, b.spec, settings.promotion_games, seed, self.run.pool)
        results, stopped = play_series(
            [(a, b)], [match_state], error=_PROMOTION_ERROR, executor=self.run.executor
        )
        if stopped is not None:
            raise stopped
        match, decided = results[0]
        figures = {"promotion/games": int(match.results.size), "promotion/score": match.score}
        return figures | {"promoted": decided != "b"}


def learn(
    network: PolicyNetwork, samples: Samples, steps: int, seed: int, settings: AlphaZeroSettings
) -> tuple[float, float]:
    """Train a network on samples.

    Args:
        network: is changed.
        samples: to learn from.
        steps: of the optimizer.
        seed: of the order of samples.
        settings: of the run.

    Returns:
        The mean losses, of policy and value, of the last tenth of the steps.
    """
    boards = settings.pool.records
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rng = np.random.Generator(np.random.PCG64(seed))
    order, at, losses = rng.permutation(len(samples.legal)), 0, []
    for step in range(steps):
        if at + settings.minibatch_size > len(order):
            order, at = rng.permutation(len(samples.legal)), 0
        rows = order[at : at + settings.minibatch_size]
        at += settings.minibatch_size
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        policy_loss, value_loss = _losses(network, boards, samples.part(rows))
        optimizer.zero_grad()
        (policy_loss + settings.value_weight * value_loss).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append((float(policy_loss.detach()), float(value_loss.detach())))
    policy, value = np.mean(losses[-max(1, steps // 10) :], axis=0).tolist()
    if not np.isfinite([policy, value]).all():
        raise FloatingPointError(f"the losses are {policy} and {value}")
    return policy, value


def _losses(
    network: PolicyNetwork, boards: npt.NDArray[np.void], samples: Samples
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cross-entropy to the visits, and that of the value at decisions and chance."""
    which, guides = samples.boards.astype(np.int64), eval_tables_of(boards)
    judged = judge(network, boards, guides, which, samples.states, samples.legal)
    movers = samples.states["player"].astype(np.int64)
    after = copy_rows(samples.states)
    seats = apply_each(boards, which, after, samples.actions.astype(np.int64))
    at = np.flatnonzero(seats >= 0)
    signs = np.where(seats == movers, 1, -1)[at]
    values = [judged.values]
    targets = [(samples.values + samples.results) / 2]
    if len(at):
        values.append(judge_chance(network, boards, guides, which[at], copy_rows(after, at))[1])
        targets.append((samples.results[at] * signs).astype(np.float32))
    odds = torch.from_numpy((np.concatenate(targets) + 1) / 2)
    value_loss = functional.binary_cross_entropy_with_logits(2 * torch.cat(values), odds)
    return _cross_entropy(judged.logits, samples), value_loss


def _cross_entropy(logits: torch.Tensor, samples: Samples) -> torch.Tensor:
    """Return the mean cross-entropy to the visits of the positions that have some."""
    visits = torch.from_numpy(samples.visits.astype(np.float32))
    counts = visits.sum(dim=1, keepdim=True)
    shares = visits / counts.clamp(min=1.0)
    log_odds = functional.log_softmax(logits, dim=1)
    return -(shares * log_odds).sum() / (counts > 0).sum().clamp(min=1)
