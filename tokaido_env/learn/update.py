"""The PPO update of a network with a rollout of whole games.

Schulman et al. 2017, "Proximal policy optimization algorithms". The value is trained as a win
probability, at decisions and chance nodes, by cross entropy with the targets: unlike squared error,
it keeps large gradients where a game is nearly decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from tokaido_env.learn.network import AUXILIARY, Moves, PolicyNetwork, take_step
from tokaido_env.learn.returns import Nodes, returns_of
from tokaido_env.learn.rollouts import ROW_MULTIPLE, Rollout, logits_of, moves_of, pad_rows
from tokaido_env.learn.settings import SelfPlaySettings

_TRIGGERS = 5
_POINTS, _ROUNDS = 20.0, 10.0  # scales of the auxiliary predictions; not tuned


class Losses(NamedTuple):
    """Means over the minibatches of an update; names as in Stable-Baselines3."""

    policy_loss: float
    entropy: float
    value_loss: float
    auxiliary_loss: float
    approx_kl: float
    clip_fraction: float


class Targets(NamedTuple):
    """Training targets of a rollout of n decisions and m chance nodes."""

    advantages: torch.Tensor
    """(n,)."""
    values: torch.Tensor
    """(n + m,), of decisions, then chance nodes, for the viewer, in [-1, 1]."""
    weights: torch.Tensor
    """(n + m,), of the nodes in the value loss; their mean is 1."""
    auxiliary: torch.Tensor
    """(n + m, AUXILIARY - 4): the numbers, and last the index of the end trigger."""


def targets_of(
    rollout: Rollout,
    settings: SelfPlaySettings,
    tensor: Callable[[npt.NDArray[Any]], torch.Tensor] = torch.from_numpy,
) -> Targets:
    """Return the training targets of a rollout; `tensor` converts arrays."""
    d, c = rollout.decisions, rollout.chances
    nodes = Nodes(d.game, d.mover, d.value, d.chance, c.value, rollout.results)
    found = returns_of(nodes, settings.value_lambda, settings.policy_lambda, settings.chance_weight)
    seat = np.concatenate([d.mover, c.viewer])
    game = np.concatenate([d.game, d.game[c.decision]])
    rounds = np.concatenate([d.round, d.round[c.decision]])
    weights = np.where(rounds >= settings.late_round_from, settings.late_round_weight, 1.0).astype(
        np.float32
    )
    return Targets(
        tensor(found.advantages),
        tensor(np.concatenate([found.targets, found.chance_targets]) * (1 - 2 * seat)),
        tensor(weights / weights.mean()),
        tensor(_auxiliary_targets(rollout, game, seat, rounds)),
    )


def _auxiliary_targets(
    rollout: Rollout, game: npt.NDArray[Any], seat: npt.NDArray[Any], rounds: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    ends = rollout.ends[game].astype(np.float32)
    sides = ends[:, :6].reshape(-1, 2, 3)
    rows = np.arange(len(game))
    own, other = sides[rows, seat], sides[rows, 1 - seat]
    margin = (own.sum(1) - other.sum(1)) / _POINTS
    left = (ends[:, 6] - rounds) / _ROUNDS
    columns = (margin[:, None], own / _POINTS, other / _POINTS, left[:, None], ends[:, 7:])
    return np.asarray(np.concatenate(columns, axis=1), np.float32)


class Minibatch(NamedTuple):
    """Indices of a minibatch's decisions and chance nodes."""

    decisions: torch.Tensor
    """int64 (b,)."""
    chances: torch.Tensor
    """int64 (c,)."""


def minibatches(n: int, m: int, size: int, generator: torch.Generator) -> Iterator[Minibatch]:
    """Yield minibatches of n decisions and m chance nodes in random order.

    Each has `size` decisions; the remainder is dropped.
    """
    decisions = torch.randperm(n, generator=generator)
    chances = torch.randperm(m, generator=generator)
    count = max(1, n // size)
    of_chance = m // count
    for i in range(count):
        yield Minibatch(
            decisions[i * size : (i + 1) * size], chances[i * of_chance : (i + 1) * of_chance]
        )


def update(
    network: PolicyNetwork,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    settings: SelfPlaySettings,
    generator: torch.Generator,
) -> Losses:
    """Update a network with a rollout of its own games; return the mean losses.

    Raises:
        FloatingPointError: as `take_step`.
    """
    targets = targets_of(rollout, settings, network.tensor)
    data = _Data(rollout, network)
    n, m = len(rollout.decisions.game), len(rollout.chances.decision)
    sums, count = torch.zeros(len(Losses._fields)), 0
    for _ in range(settings.epochs):
        for rows in minibatches(n, m, settings.minibatch_size, generator):
            minibatch = Minibatch(*(each.to(data.board.device) for each in rows))
            loss, parts = _losses(network, data, targets, minibatch, settings)
            take_step(optimizer, loss, settings.max_grad_norm, f"minibatch {count + 1}")
            sums += parts.cpu()
            count += 1
    return Losses(*(sums / count).tolist())


class _Data:
    """The rollout's tensors on the network's device, to take minibatches from."""

    def __init__(self, rollout: Rollout, network: PolicyNetwork) -> None:
        d = rollout.decisions
        self.rollout, self._tensor = rollout, network.tensor
        self.counts = np.bitwise_count(d.legal).astype(np.int64)
        self.begins = np.cumsum(self.counts) - self.counts
        self.board = self._tensor(d.board)
        self.chance_board = self._tensor(d.board[rollout.chances.decision])
        self.action = self._tensor(d.action)
        self.log_prob = self._tensor(d.log_prob)

    def moves(self, decisions: torch.Tensor) -> tuple[Moves, int]:
        """Return the padded legal actions of decisions, and their number without padding."""
        d, rows = self.rollout.decisions, decisions.cpu().numpy()
        position, action = moves_of(d.legal[rows])
        first = self.begins[rows] - (np.cumsum(self.counts[rows]) - self.counts[rows])
        k = len(position)
        where = first[position] + np.arange(k)
        padded = -(-k // (4 * ROW_MULTIPLE)) * 4 * ROW_MULTIPLE
        indices, *moves = (pad_rows(self._tensor(x), padded) for x in (where, position, action))
        return Moves(d.results.index_select(0, indices), *moves), k


def _losses(
    network: PolicyNetwork,
    data: _Data,
    targets: Targets,
    rows: Minibatch,
    settings: SelfPlaySettings,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of a minibatch, and its `Losses` as a tensor, in the same order."""
    d, c = data.rollout.decisions, data.rollout.chances
    inputs = d.inputs.index_select(0, rows.decisions)
    board = data.board[rows.decisions]
    moves, k = data.moves(rows.decisions)
    scores, values, auxiliary = network(inputs, moves, board)
    position, action = moves.position[:k], moves.action[:k]
    log_probs = torch.log_softmax(logits_of(scores[:k], position, action, len(inputs)), 1)
    policy_loss, entropy, approx_kl, clip_fraction = _policy_loss(
        log_probs,
        log_probs[position, action],
        data.action[rows.decisions],
        data.log_prob[rows.decisions],
        targets.advantages[rows.decisions],
        settings.clip_range,
    )
    chance_values, chance_auxiliary = network.values(
        c.inputs.index_select(0, rows.chances), data.chance_board[rows.chances]
    )
    nodes = torch.cat([rows.decisions, len(d.game) + rows.chances])
    wins, weight = (targets.values[nodes] + 1) / 2, targets.weights[nodes]
    logits = 2 * torch.cat([values, chance_values])
    value_loss = binary_cross_entropy_with_logits(logits, wins, weight=weight)
    predictions = torch.cat([auxiliary, chance_auxiliary])
    auxiliary_loss = _auxiliary_loss(predictions, targets.auxiliary[nodes])
    loss = policy_loss - settings.entropy_coef * entropy + value_loss
    loss = loss + settings.auxiliary_weight * auxiliary_loss
    parts = [policy_loss, entropy, value_loss, auxiliary_loss, approx_kl, clip_fraction]
    return loss, torch.stack(parts).detach()


def _policy_loss(
    log_probs: torch.Tensor,
    legal_log_probs: torch.Tensor,
    action: torch.Tensor,
    old_log_prob: torch.Tensor,
    advantages: torch.Tensor,
    clip_range: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the clipped loss, the entropy, the approximate KL divergence and the clip fraction."""
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    log_ratio = log_probs.gather(1, action[:, None])[:, 0] - old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    entropy = -(legal_log_probs.exp() * legal_log_probs).sum() / len(action)
    approx_kl = (ratio - 1 - log_ratio).mean()
    return loss, entropy, approx_kl, (ratio != clipped).float().mean()


def _auxiliary_loss(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    numbers = AUXILIARY - _TRIGGERS
    error = torch.nn.functional.smooth_l1_loss(predictions[:, :numbers], targets[:, :numbers])
    return error + cross_entropy(predictions[:, numbers:], targets[:, numbers].long())
