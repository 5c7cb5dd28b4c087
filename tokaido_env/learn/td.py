"""TD(λ): a value network learns from self-play by the best afterstate (Tesauro 1995).

An afterstate is the position after an action, before chance or the next decision (Sutton and Barto
2018, 6.8). Both players take the action with the best afterstate value, with some exploration. The
target of an afterstate is a mean of the later values and the game's result, by λ (chapter 12). An
update depends only on the weights before it and on its number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from tokaido_env.agent import States
from tokaido_env.agents.inference import AFTERSTATE_LOGIT, choose_actions, evaluate_all
from tokaido_env.agents.policy import Policy
from tokaido_env.agents.weights import Weights
from tokaido_env.batch import Batch, advance_checked
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.jit import entry, index
from tokaido_env.core.rng import arena_seed
from tokaido_env.core.rules import apply
from tokaido_env.core.state import OVER, copy_rows
from tokaido_env.features.network_inputs import active_seat
from tokaido_env.learn.network import evaluate_positions, take_step
from tokaido_env.learn.run import Figures, Run, Trainer
from tokaido_env.learn.settings import TdSettings

_GAMES, _ORDER = 1, 2  # purposes of seeds


class Rollout(NamedTuple):
    """Finished games of self-play: n afterstates, those of one game in the order of play."""

    game: npt.NDArray[np.int64]
    """(n,), index of the game."""
    states: States
    """(n,)."""
    viewer: npt.NDArray[np.int8]
    """(n,), the seat that the network's inputs and value are for."""
    value: npt.NDArray[np.float32]
    """(n,), for player_0, in [-1, 1]; the result at the end."""
    which: npt.NDArray[np.int64]
    """(games,), the boards: indices in the pool."""
    results: npt.NDArray[np.float32]
    """(games,), of player_0."""


class TdTrainer(Trainer):
    """Trainer of `td`: a value network, its optimizer and the number of decisions so far."""

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, cast(TdSettings, run.settings)
        self.pools = (run.pool, run.extra_pool or run.pool)
        self.network = run.new_network()
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), self.settings.learning_rate, fused=True
        )
        self.parts = {"network": self.network, "adam": self.optimizer}
        self.counters = {"decisions": 0}

    def advance(self, stopping: Callable[[], int]) -> Figures:
        """Play the games of an update, train on their afterstates; return the update's figures."""
        share = self._schedule()
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * max(share, settings.final_learning_rate)
        lowest = min(settings.temperature, settings.final_temperature)
        temperature = max(settings.temperature * share, lowest)
        pool = self.pools[settings.is_extra(self.done)]
        rollout = play_games(
            self.policy().network(), pool, settings.games, self._seed(_GAMES), temperature
        )
        loss = self._learn(rollout, pool)
        self.done += 1
        self.counters["decisions"] += len(rollout.game)
        if self.done % settings.snapshot_every == 0:
            self.policy().save(self.run.snapshot(self.done))
        return {
            **self.counters,
            "loss": loss,
            "result": float(rollout.results.mean()),
            "game_length": len(rollout.game) / settings.games,
        }

    def policy(self) -> Policy:
        """Return a copy of the learner's current network as a policy."""
        return self.run.freeze(self.network, self.done, **self.counters)

    def _schedule(self) -> float:
        """Return the share of the run that is left."""
        return max(0.0, 1 - self.done / self.settings.updates)

    def _seed(self, purpose: int) -> int:
        return int(arena_seed(int(arena_seed(self.settings.seed, purpose)), self.done))

    def _learn(self, rollout: Rollout, pool: BoardPool) -> float:
        """Train the network with a rollout; return the mean loss of the minibatches."""
        settings, generator = self.settings, torch.Generator()
        generator.manual_seed(self._seed(_ORDER))
        targets = targets_of(rollout, settings.value_lambda)
        learnt = np.flatnonzero(rollout.states["phase"] != OVER)
        size = min(settings.minibatch_size, len(learnt))
        losses: list[float] = []
        for _ in range(settings.epochs):
            order = learnt[torch.randperm(len(learnt), generator=generator).numpy()]
            for first in range(0, len(order) - size + 1, size):
                loss = self._loss(rollout, pool, targets, order[first : first + size])
                where = f"minibatch {len(losses) + 1}"
                take_step(self.optimizer, loss, settings.max_grad_norm, where)
                losses.append(float(loss.detach()))
        return float(np.mean(losses))

    def _loss(
        self,
        rollout: Rollout,
        pool: BoardPool,
        targets: npt.NDArray[np.float32],
        rows: npt.NDArray[np.int64],
    ) -> torch.Tensor:
        """Return the cross-entropy of the win probabilities of some positions, rows int64 (k,).

        The targets of all positions, float32 (m,), are values for the viewers, -1 to 1.
        """
        network = self.network
        which, states = rollout.which[rollout.game[rows]], copy_rows(rollout.states, rows)
        values = evaluate_positions(network, pool.records, which, states)
        wins = network.to_device((1 + targets[rows]) / np.float32(2))
        return binary_cross_entropy_with_logits(2 * values, wins)


def play_games(
    network: Weights, pool: BoardPool, games: int, seed: int, temperature: float
) -> Rollout:
    """Play games of a value network against itself to their end.

    Args:
        network: plays both seats.
        pool: the boards; a game's seed chooses its board.
        games: number of games.
        seed: of the games.
        temperature: of the softmax over afterstate values that draws an action; 0: the best one.
    """
    batch = Batch(games, pool, observation=None, autoreset=False, copy=False)
    batch.reset(seed=seed)
    which = batch.episode_info["board"].astype(np.int64)
    steps = []
    running = np.flatnonzero(~batch.over)
    while len(running):
        states, legal = copy_rows(batch.states, running), batch.legal[running]
        logits, _ = evaluate_all(network, batch.boards_of(running), states, legal)
        actions = np.empty(len(running), np.int64)
        noise = temperature * float(AFTERSTATE_LOGIT)
        choose_actions(actions, logits, legal, batch.keys(running), noise)
        sign = 1 - 2 * states["player"]
        value = logits[np.arange(len(running)), actions] / AFTERSTATE_LOGIT
        viewers = np.empty(len(running), np.int8)
        _apply_each(viewers, pool.records, which[running], states, actions)
        steps.append((running, states, viewers, sign * value))
        advance_checked(batch, running, actions)
        running = running[~batch.over[running]]
    columns = map(np.concatenate, zip(*steps, strict=True))
    return Rollout._make([*columns, which, batch.rewards(batch.all_games)[:, 0]])


@entry
def _apply_each(viewers: Any, boards: Any, which: Any, states: Any, actions: Any) -> None:
    for i in range(len(viewers)):
        apply(boards[index(which[i])], states[i], actions[i])
        viewers[i] = active_seat(states[i])


def targets_of(rollout: Rollout, value_lambda: float) -> npt.NDArray[np.float32]:
    """Return the TD(λ) targets of all afterstates for their viewers, float32 (n,) in [-1, 1].

    Args:
        rollout: the games.
        value_lambda: λ; 1: the game's result, 0: the value of the next afterstate.
    """
    targets = np.empty(len(rollout.game), np.float32)
    ahead = np.stack([rollout.results, rollout.results])
    _write_targets(targets, rollout.game, rollout.value, ahead, value_lambda)
    return targets * (1 - 2 * rollout.viewer).astype(np.float32)


@entry
def _write_targets(targets: Any, games: Any, values: Any, ahead: Any, value_lambda: float) -> None:
    """Write targets for player_0, from the last afterstate to the first.

    `ahead` has the value and the target of each game's next afterstate, float32 (2, games); at the
    end both are the result.
    """
    for i in range(len(targets) - 1, -1, -1):
        g = games[i]
        targets[i] = ahead[0, g] + value_lambda * (ahead[1, g] - ahead[0, g])
        ahead[0, g] = values[i]
        ahead[1, g] = targets[i]
